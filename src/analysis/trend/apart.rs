//! By what rows that would look alike are told apart.

use std::collections::{BTreeMap, BTreeSet};

use super::TrendKey;

/// Conditions whose values say what they are of.
const PLAIN: [&str; 3] = ["tracing", "CPU model", "architecture"];

/// Of each key the conditions in which it differs from another one that is alike in all that its
/// row shows: `not traced`, `CPUs 0-3`. The series does not count: all series of a run are called
/// the same.
pub(super) fn apart(keys: &[&TrendKey]) -> Vec<Vec<String>> {
    let mut alike: BTreeMap<[&str; 5], Vec<&TrendKey>> = BTreeMap::new();
    for key in keys {
        alike.entry(look(key)).or_default().push(key);
    }
    let differing: BTreeMap<[&str; 5], Vec<&str>> =
        alike.into_iter().map(|(look, keys)| (look, differing(&keys))).collect();
    let words = |key: &&TrendKey| {
        let names = differing.get(&look(key)).map(Vec::as_slice).unwrap_or_default();
        names.iter().map(|name| word(name, key.conditions.get(*name))).collect()
    };
    keys.iter().map(words).collect()
}

fn look(key: &TrendKey) -> [&str; 5] {
    [&key.machine, &key.probe, &key.loads, &key.policy, &key.length].map(String::as_str)
}

/// Conditions that are not the same in all.
fn differing<'a>(keys: &[&'a TrendKey]) -> Vec<&'a str> {
    let names: BTreeSet<&str> =
        keys.iter().flat_map(|key| key.conditions.keys()).map(String::as_str).collect();
    let differs = |name: &&str| {
        let values: BTreeSet<_> = keys.iter().map(|key| key.conditions.get(*name)).collect();
        values.len() > 1
    };
    names.into_iter().filter(differs).collect()
}

fn word(name: &str, value: Option<&String>) -> String {
    match value {
        Some(value) if PLAIN.contains(&name) => value.clone(),
        Some(value) => format!("{name} {value}"),
        None => format!("{name} unknown"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(machine: &str, series: &str, conditions: &[(&str, &str)]) -> TrendKey {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let conditions = conditions.iter().map(own).collect();
        TrendKey {
            machine: machine.into(),
            series: series.into(),
            conditions,
            ..TrendKey::default()
        }
    }

    #[test]
    fn only_what_differs_among_rows_that_look_alike_is_said_of_all_of_their_series() {
        let keys = [
            key("a", "cpu0", &[("CPUs", "0"), ("tracing", "traced"), ("interval", "1 ms")]),
            key("a", "cpu0", &[("CPUs", "0-1"), ("tracing", "not traced"), ("interval", "1 ms")]),
            key("a", "cpu1", &[("CPUs", "0-1"), ("tracing", "not traced"), ("interval", "1 ms")]),
            key("b", "cpu0", &[("CPUs", "0")]),
        ];
        let found = apart(&keys.iter().collect::<Vec<_>>());
        assert_eq!(found[0], ["CPUs 0", "traced"]);
        assert_eq!(found[1], ["CPUs 0-1", "not traced"]);
        assert_eq!(found[2], found[1]);
        assert_eq!(found[3], [""; 0]);
    }

    #[test]
    fn what_one_of_them_does_not_say_is_said_to_be_unknown() {
        let keys = [key("a", "x", &[("CPU model", "EPYC")]), key("a", "x", &[])];
        let found = apart(&keys.iter().collect::<Vec<_>>());
        assert_eq!(found, [vec!["EPYC".to_owned()], vec!["CPU model unknown".to_owned()]]);
    }
}
