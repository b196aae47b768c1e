//! The axes of a plan: their places, each with its own name and flags.

use std::ops::Range;

use anyhow::{Result, bail};
use toml::Spanned;

use super::{
    reading::{Reading, Words},
    syntax::{Part, ProbeAxis, ProbeTable, SetupTable},
};
use crate::run::probes::ProbeInfo;

/// One place of an axis.
#[derive(Debug, Clone, Default)]
pub(super) struct Entry {
    pub name: String,
    pub at: Range<usize>,
    pub words: Words,
    /// The probe of a `[[probe]]`.
    pub probe: Option<String>,
    pub prepare: Option<String>,
}

/// All but loads.
pub(super) struct Axes {
    pub probes: Vec<Entry>,
    pub setups: Vec<Entry>,
    pub policies: Vec<Entry>,
    pub waits: Vec<Entry>,
}

/// Each axis; one that the plan does not have is one place without a name.
pub(super) fn axes(reading: &Reading<'_>, part: &Part<'_>) -> Result<Axes> {
    let or_none = |axis: Vec<Entry>| if axis.is_empty() { vec![Entry::default()] } else { axis };
    let probes = probes(reading, part)?;
    let setups = setups(reading, part)?;
    let policies: Vec<Entry> =
        part.policies.iter().map(|own| policy(reading, own)).collect::<Result<_>>()?;
    let wait = |wait: &Spanned<String>| {
        let name = reading.name("waits", wait)?;
        Ok(Entry { name, at: wait.span(), ..Entry::default() })
    };
    let waits: Vec<Entry> = part.waits.iter().map(wait).collect::<Result<_>>()?;
    for axis in [&probes, &setups, &policies, &waits] {
        differ(reading, axis)?;
    }
    Ok(Axes {
        probes: or_none(probes),
        setups: or_none(setups),
        policies: or_none(policies),
        waits: or_none(waits),
    })
}

fn probes(reading: &Reading<'_>, part: &Part<'_>) -> Result<Vec<Entry>> {
    Ok(match part.probe {
        ProbeAxis::Default => Vec::new(),
        ProbeAxis::One(name) => vec![Entry { probe: Some(name.clone()), ..Entry::default() }],
        ProbeAxis::Several(all) => {
            let entry = |probe: &Spanned<ProbeTable>| {
                let (own, at) = (probe.get_ref(), probe.span());
                let name = reading.name("name of a probe", &own.name)?;
                let used = own.probe.as_ref();
                let used = used.map(|used| reading.name("use", used)).transpose()?;
                let probe = Some(used.unwrap_or_else(|| name.clone()));
                Ok(Entry { name, at, words: reading.words("run", &own.run)?, probe, prepare: None })
            };
            all.iter().map(entry).collect::<Result<_>>()?
        }
    })
}

fn setups(reading: &Reading<'_>, part: &Part<'_>) -> Result<Vec<Entry>> {
    let setup = |setup: &Spanned<SetupTable>| {
        let (own, at) = (setup.get_ref(), setup.span());
        let name = reading.name("name of a setup", &own.name)?;
        let prepare = reading.command("prepare", own.prepare.as_ref())?;
        Ok(Entry { name, at, words: reading.words("run", &own.run)?, probe: None, prepare })
    };
    let setups: Vec<Entry> = part.setup.iter().map(setup).collect::<Result<_>>()?;
    if let (true, Some(bare)) = (
        setups.iter().any(|setup| setup.prepare.is_some()),
        setups.iter().find(|setup| setup.prepare.is_none()),
    ) {
        let what = format!(
            "setup {:?} has no `prepare`, and others do: it would be measured as they leave the \
             machine; write what it needs, or prepare = \"true\"",
            bare.name
        );
        bail!(reading.refusal(Some(bare.at.clone()), &what));
    }
    Ok(setups)
}

fn differ(reading: &Reading<'_>, axis: &[Entry]) -> Result<()> {
    for (number, entry) in axis.iter().enumerate() {
        if let Some(other) = axis.iter().take(number).find(|other| other.name == entry.name) {
            let line = reading.line(&other.at);
            let what = format!("{:?} is given twice; see line {line}", entry.name);
            bail!(reading.refusal(Some(entry.at.clone()), &what));
        }
    }
    Ok(())
}

/// `other`, `fifo`, or with a priority `fifo:80`.
fn policy(reading: &Reading<'_>, policy: &Spanned<String>) -> Result<Entry> {
    let name = reading.name("policies", policy)?;
    let at = policy.span();
    let (kind, priority) = match name.split_once(':') {
        Some((kind, priority)) => (kind, Some(priority)),
        None => (name.as_str(), None),
    };
    let mut words = Words::new();
    words.insert("policy".into(), (Some(format!("--policy={kind}")), at.clone()));
    if let Some(priority) = priority {
        words.insert("priority".into(), (Some(format!("--priority={priority}")), at.clone()));
    }
    Ok(Entry { name, at, words, ..Entry::default() })
}

/// Flag that sets how this probe waits.
pub(super) fn wait_words(wait: &Entry, probe: &str) -> Words {
    if wait.name.is_empty() {
        return Words::new();
    }
    let is_of_messages = ProbeInfo::find(probe).is_some_and(ProbeInfo::has_messages);
    let flag = if is_of_messages { "wait" } else { "wake" };
    let word = Some(format!("--{flag}={}", wait.name));
    Words::from([(flag.to_owned(), (word, wait.at.clone()))])
}
