//! Runs that leave a condition out: cyclictest states no CPU model, and older versions of tardy no
//! id of the machine. They belong to the runs that are alike in all that both state.

use std::collections::{BTreeMap, BTreeSet};

use super::{CPU_MODEL, MACHINE_ID};
use crate::analysis::trend::{TrendKey, TrendRun};

/// Takes out of what two keys differ in what one of them does not state.
pub(in crate::cli) fn forgive_unstated(
    differences: &mut BTreeSet<String>,
    a: &TrendKey,
    b: &TrendKey,
) {
    if [a, b].iter().any(|key| !key.conditions.contains_key(CPU_MODEL)) {
        differences.remove(CPU_MODEL);
    }
}

/// Puts groups that leave conditions out to the only group that is alike in all that both state:
/// without an id of the machine all groups, without a CPU model those of imported results.
pub(super) fn join(groups: &mut BTreeMap<TrendKey, Vec<TrendRun>>, imported: &BTreeSet<TrendKey>) {
    let all: Vec<TrendKey> = groups.keys().cloned().collect();
    for key in &all {
        join_one(groups, key, &[MACHINE_ID]);
    }
    // The runs that they may belong to have their own place by now.
    for key in imported {
        join_one(groups, key, &[CPU_MODEL, MACHINE_ID]);
    }
}

fn join_one(
    groups: &mut BTreeMap<TrendKey, Vec<TrendRun>>,
    key: &TrendKey,
    conditions: &[&'static str],
) {
    let unstated: Vec<&str> =
        conditions.iter().copied().filter(|name| !key.conditions.contains_key(*name)).collect();
    let is_alike = |own: &&TrendKey| {
        let states_more = unstated.iter().any(|name| own.conditions.contains_key(*name));
        let mut own = (*own).clone();
        unstated.iter().for_each(|name| drop(own.conditions.remove(*name)));
        states_more && own == *key
    };
    let mut alike = groups.keys().filter(is_alike);
    if let (Some(own), None) = (alike.next().cloned(), alike.next())
        && let Some(runs) = groups.remove(key)
    {
        groups.entry(own).or_default().extend(runs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group of runs on this model and machine, as far as they state them.
    fn key(model: Option<&str>, machine: Option<&str>) -> TrendKey {
        let stated = [(CPU_MODEL, model), (MACHINE_ID, machine), ("CPUs", Some("0-1"))];
        let stated = stated.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let conditions = stated.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        TrendKey { machine: "vm".into(), conditions, ..TrendKey::default() }
    }

    fn joined(keys: &[TrendKey], imported: &[TrendKey]) -> BTreeSet<TrendKey> {
        let mut groups = keys.iter().map(|key| (key.clone(), Vec::new())).collect();
        join(&mut groups, &imported.iter().cloned().collect());
        groups.into_keys().collect()
    }

    #[test]
    fn a_cpu_that_a_file_does_not_state_is_that_of_the_only_row_that_is_alike() {
        let [none, xeon, epyc] = [None, Some("Xeon"), Some("EPYC")].map(|own| key(own, None));
        let keys = [none.clone(), xeon.clone(), epyc.clone()];
        let imported = std::slice::from_ref(&none);
        assert_eq!(joined(&keys[..2], imported), [xeon].into());
        assert_eq!(joined(&keys[..1], imported), [none.clone()].into());
        assert_eq!(joined(&keys, imported), keys.clone().into());
        assert_eq!(joined(&keys[..2], &[]).len(), 2, "a run of tardy states its CPU if it can");
    }

    #[test]
    fn runs_before_machines_had_ids_belong_to_the_only_machine_of_their_name() {
        let [old, a, b] = [None, Some("a"), Some("b")].map(|id| key(Some("Xeon"), id));
        let keys = [old.clone(), a.clone(), b.clone()];
        assert_eq!(joined(&keys[..2], &[]), [a.clone()].into());
        assert_eq!(joined(&keys, &[]), keys.clone().into(), "two machines of one name");
        // A result of cyclictest states neither.
        let imported = key(None, None);
        let with_imported = [imported.clone(), old, a.clone()];
        assert_eq!(joined(&with_imported, &[imported]), [a].into());
    }
}
