//! What tells metrics of runs apart: machine, kernel and conditions. Nothing of it is new each
//! night, so that the metrics of the next run continue those of the one before.

use super::rows::RunColumns;
use crate::units::Nanos;

/// Labels by name, without those that are empty.
#[derive(Debug)]
pub(super) struct Identity(Vec<(String, String)>);

impl Identity {
    /// Names of machine and host begin with `prefix`, which keeps them beside a target's own.
    pub(super) fn of(run: &RunColumns<'_>, prefix: &str) -> Self {
        let (facts, conditions) = (&run.document.facts, &run.conditions);
        let interval_ns = Some(conditions.interval_ns).filter(|ns| *ns > 0);
        let interval = interval_ns.map(|ns| Nanos(ns).typed()).unwrap_or_default();
        let owned = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut all = vec![
            (format!("{prefix}host"), facts.hostname.clone()),
            (format!("{prefix}machine"), run.machine.clone()),
            owned("kernel", &facts.kernel),
            owned("probe", &conditions.probe),
            owned("policy", &conditions.policy_words()),
            owned("interval", &interval),
            owned("load", &conditions.load),
            owned("conditions", &run.conditions_key),
        ];
        let labels = facts.labels.iter().filter(|(name, _)| is_word(name));
        all.extend(labels.map(|(name, value)| (format!("label_{name}"), value.clone())));
        all.retain(|(_, value)| !value.is_empty());
        Self(all)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Whether every format takes it as a part of a name: records of others may have any text there.
fn is_word(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The place of each run among those of one identity, from 1, in the order of their starts.
pub(super) fn repeats(runs: &[RunColumns<'_>], identities: &[String]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by_key(|at| runs.get(*at).map(|run| (run.started_ns, &run.document.id)));
    let mut counts = std::collections::HashMap::<&str, u32>::new();
    let mut places = vec![1; runs.len()];
    for at in order {
        if let (Some(identity), Some(place)) = (identities.get(at), places.get_mut(at)) {
            let count = counts.entry(identity).or_default();
            *count += 1;
            *place = *count;
        }
    }
    places
}
