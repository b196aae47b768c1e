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
        Self { origin: Origin::Measured, program: "tardy".into(), version: version.into() }
    }

    /// Made up by `program`.
    #[must_use]
    pub fn synthesised(program: &str, version: &str) -> Self {
        let (program, version) = (program.into(), version.into());
        Self { origin: Origin::Synthesised, program, version }
    }

    /// `synthesised by xtask 0.1.0`; absent for what tardy measured itself.
    #[must_use]
    pub fn remark(&self) -> Option<String> {
        let how = match self.origin {
            Origin::Measured if self.program == "tardy" => return None,
            Origin::Measured => "measured by",
            Origin::Imported => "imported from",
            Origin::Synthesised => "synthesised by",
        };
        Some(format!("{how} {} {}", self.program, self.version).trim_end().to_owned())
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
        let origin = Origin::Imported;
        let imported = Provenance { origin, program: "cyclictest".into(), version: String::new() };
        assert_eq!(imported.remark().unwrap(), "imported from cyclictest");
    }
}
