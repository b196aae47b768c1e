//! Where the samples of a run come from: who measured them, or made them up.

use serde::{Deserialize, Serialize};

/// Where samples come from, and which program wrote the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Provenance {
    /// How the samples came about.
    pub origin: Origin,
    /// The program that measured, or that was imported from, or that made them up.
    pub program: String,
    /// Its version; empty where it has none.
    pub version: String,
    /// Whether host names, arguments, paths and stacks were taken out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// Whether it came in a bundle from elsewhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub received: bool,
}

/// What a [`super::RunEntry`] has of where it is from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EntryProvenance {
    /// The program that measured.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub program: String,
    /// Its version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Whether it came in a bundle from elsewhere.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub received: bool,
}

impl EntryProvenance {
    /// `cyclictest 2.40`; empty if unknown.
    #[must_use]
    pub fn called(&self) -> String {
        format!("{} {}", self.program, self.version).trim_end().to_owned()
    }
}

/// How samples came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// By this machine's clock.
    Measured,
    /// By another program, whose output was read.
    Imported,
    /// Nobody measured: for tests and demonstrations.
    Synthesised,
}

/// The parameter of an imported probe with the SHA-256 of the unpacked file, in hexadecimal digits.
pub(crate) const CONTENT_SHA256: &str = "content_sha256";

/// Parameters of an imported probe that tell its file from others, and nothing of what measured.
pub(crate) const OF_ONE_FILE: [&str; 2] = ["file", CONTENT_SHA256];

impl Provenance {
    /// Measured by tardy of this version.
    #[must_use]
    pub fn measured(version: &str) -> Self {
        Self::of(Origin::Measured, "tardy", version)
    }

    /// Made up by `program`.
    #[must_use]
    pub fn synthesised(program: &str, version: &str) -> Self {
        Self::of(Origin::Synthesised, program, version)
    }

    /// Of this program's version; an empty one where it has none.
    #[must_use]
    pub fn of(origin: Origin, program: &str, version: &str) -> Self {
        let (program, version) = (program.into(), version.into());
        Self { origin, program, version, redacted: false, received: false }
    }

    /// `synthesised by xtask 0.1.0`, `received in a bundle`; absent for what tardy measured here.
    #[must_use]
    pub fn remark(&self) -> Option<String> {
        let how = match self.origin {
            Origin::Measured if self.program == "tardy" => None,
            Origin::Measured => Some("measured by"),
            Origin::Imported => Some("imported from"),
            Origin::Synthesised => Some("synthesised by"),
        };
        let by = |how| format!("{how} {} {}", self.program, self.version).trim_end().to_owned();
        let remarks = [
            how.map(by),
            self.received.then(|| "received in a bundle".into()),
            self.redacted.then(|| "redacted: no host name, arguments, paths and stacks".into()),
        ];
        let remarks: Vec<String> = remarks.into_iter().flatten().collect();
        (!remarks.is_empty()).then(|| remarks.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_tardy_did_not_measure_is_remarked_on() {
        assert_eq!(Provenance::measured("0.1.0").remark(), None);
        let made_up = Provenance::synthesised("xtask", "0.1.0");
        assert_eq!(made_up.remark().unwrap(), "synthesised by xtask 0.1.0");
        let mut imported = Provenance::of(Origin::Imported, "cyclictest", "");
        assert_eq!(imported.remark().unwrap(), "imported from cyclictest");
        imported.received = true;
        assert_eq!(imported.remark().unwrap(), "imported from cyclictest; received in a bundle");
    }
}
