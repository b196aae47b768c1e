//! The tables and keys of a plan's file.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize,
    de::{Deserializer, SeqAccess, Visitor},
};
use toml::{Spanned, Value};

/// All of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanFile {
    pub name: Spanned<String>,
    // As plans of the lab called it first.
    #[serde(alias = "repeats")]
    pub repeat: Option<Spanned<i64>>,
    pub order: Option<Spanned<String>>,
    pub seed: Option<Spanned<i64>>,
    pub pause: Option<Spanned<String>>,
    pub budget: Option<Spanned<String>>,
    pub undo: Option<Spanned<String>>,
    #[serde(default)]
    pub gates: Vec<Spanned<String>>,
    #[serde(default)]
    pub kernels: Vec<Spanned<String>>,
    #[serde(default)]
    pub policies: Vec<Spanned<String>>,
    #[serde(default)]
    pub waits: Vec<Spanned<String>>,
    #[serde(default)]
    pub probe: ProbeAxis,
    pub boxes: Option<Spanned<i64>>,
    #[serde(default)]
    pub run: Flags,
    #[serde(default)]
    pub echo: Flags,
    #[serde(default)]
    pub setup: Vec<Spanned<SetupTable>>,
    #[serde(default)]
    pub load: Vec<Spanned<LoadTable>>,
    #[serde(default)]
    pub part: Vec<Spanned<PartTable>>,
}

impl PlanFile {
    /// The first command that may change the machine.
    pub(super) fn first_change(&self) -> Option<&Spanned<String>> {
        let of_parts = self.part.iter().flat_map(|part| &part.get_ref().setup);
        let commands =
            self.setup.iter().chain(of_parts).filter_map(|own| own.get_ref().prepare.as_ref());
        // Which tardy itself advises where a setup needs nothing.
        commands.into_iter().find(|command| command.get_ref().trim() != "true")
    }
}

/// The axes of one part, beside those of other parts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PartTable {
    pub name: Spanned<String>,
    #[serde(default)]
    pub policies: Vec<Spanned<String>>,
    #[serde(default)]
    pub waits: Vec<Spanned<String>>,
    #[serde(default)]
    pub probe: ProbeAxis,
    #[serde(default)]
    pub run: Flags,
    #[serde(default)]
    pub setup: Vec<Spanned<SetupTable>>,
    #[serde(default)]
    pub load: Vec<Spanned<LoadTable>>,
}

/// The axes of one part; of a plan without parts, those of the file.
pub(super) struct Part<'a> {
    /// Its name; `None` if the plan has no parts.
    pub name: Option<&'a Spanned<String>>,
    pub policies: &'a [Spanned<String>],
    pub waits: &'a [Spanned<String>],
    pub probe: &'a ProbeAxis,
    /// Flags beside those of the file; `None` if the plan has no parts.
    pub run: Option<&'a Flags>,
    pub setup: &'a [Spanned<SetupTable>],
    pub load: &'a [Spanned<LoadTable>],
}

impl PlanFile {
    /// Its parts; all of it is one where it has none.
    pub(super) fn parts(&self) -> Vec<Part<'_>> {
        if self.part.is_empty() {
            return vec![self.whole()];
        }
        self.part.iter().map(|part| part.get_ref().axes()).collect()
    }

    /// Whether it has an axis outside of its parts.
    pub(super) fn has_own_axis(&self) -> bool {
        let whole = self.whole();
        let has_names = !whole.policies.is_empty() || !whole.waits.is_empty();
        let has_tables = !whole.setup.is_empty() || !whole.load.is_empty();
        has_names || has_tables || !matches!(whole.probe, ProbeAxis::Default)
    }

    fn whole(&self) -> Part<'_> {
        Part {
            name: None,
            policies: &self.policies,
            waits: &self.waits,
            probe: &self.probe,
            run: None,
            setup: &self.setup,
            load: &self.load,
        }
    }
}

impl PartTable {
    fn axes(&self) -> Part<'_> {
        Part {
            name: Some(&self.name),
            policies: &self.policies,
            waits: &self.waits,
            probe: &self.probe,
            run: Some(&self.run),
            setup: &self.setup,
            load: &self.load,
        }
    }
}

/// One load.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoadTable {
    pub name: Spanned<String>,
    pub probe: Option<Spanned<String>>,
    pub boxes: Option<Spanned<i64>>,
    /// Without it, the load that `name` is.
    #[serde(rename = "use")]
    pub loads: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    pub run: Flags,
    #[serde(default)]
    pub echo: Flags,
}

/// One setup.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetupTable {
    pub name: Spanned<String>,
    pub prepare: Option<Spanned<String>>,
    #[serde(default)]
    pub run: Flags,
}

/// One probe of several.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProbeTable {
    pub name: Spanned<String>,
    #[serde(rename = "use")]
    pub probe: Option<Spanned<String>>,
    #[serde(default)]
    pub run: Flags,
}

/// By name, without the dashes.
pub(super) type Flags = BTreeMap<Spanned<String>, Spanned<Value>>;

/// `probe = "timer"`, or a `[[probe]]` for each of several.
#[derive(Default)]
pub(super) enum ProbeAxis {
    #[default]
    Default,
    One(String),
    Several(Vec<Spanned<ProbeTable>>),
}

impl<'de> Deserialize<'de> for ProbeAxis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Axis;
        impl<'de> Visitor<'de> for Axis {
            type Value = ProbeAxis;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a probe, or a [[probe]] for each of several")
            }

            fn visit_str<E>(self, name: &str) -> Result<ProbeAxis, E> {
                Ok(ProbeAxis::One(name.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<ProbeAxis, A::Error> {
                let mut probes = Vec::new();
                while let Some(probe) = all.next_element()? {
                    probes.push(probe);
                }
                Ok(ProbeAxis::Several(probes))
            }
        }
        deserializer.deserialize_any(Axis)
    }
}

/// What a parser of TOML says, with the key that an unknown one is like.
pub(super) fn reason(said: &str) -> String {
    let plain = said.replace('`', "\"").replace('\n', " ");
    let mut quoted = said.split('`').skip(1).step_by(2);
    let unknown = said.starts_with("unknown field").then(|| quoted.next()).flatten();
    let nearest = unknown.and_then(|unknown| nearest(unknown, quoted));
    match (unknown, nearest) {
        (Some(unknown), Some(nearest)) => {
            let known = plain.split_once(", ").map(|(_, known)| known).unwrap_or_default();
            format!("unknown key {unknown:?}: did you mean {nearest:?}? ({known})")
        }
        _ => plain.replacen("unknown field", "unknown key", 1),
    }
}

/// The key that is most like this one, where one is.
fn nearest<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let by_likeness = |known: &'a str| (strsim::jaro(unknown, known), known);
    let (likeness, nearest) = known.map(by_likeness).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (likeness > 0.75).then_some(nearest)
}
