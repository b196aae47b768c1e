//! The nights before, out of the store: `--gate 'worse<5%@p99 vs baseline'`.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use anyhow::Result;
use jiff::Timestamp;

use super::{alike, output};
use crate::{
    analysis::{
        nights::MOST_NIGHTS,
        trend::{
            LevelNights, ONE_NIGHT, TrendKey, TrendRun, judged_nights, level_nights,
            without_kernels_in_turn,
        },
    },
    report::{
        compare::{SeriesNights, WorseGate},
        gate_decision::GateResult,
    },
    run::{Run, RunEntry, SeriesEntry, Status, Validity, series_name::is_called},
    store::{ListedRun, Store},
    units::many,
};

/// A difference that is told by itself.
const MACHINE: &str = "machine";

/// Differences of conditions that are named.
const NAMED: usize = 4;

/// A gate against the nights before, with all runs among which they are.
#[derive(Debug, Clone)]
pub(super) struct NightsGate {
    gate: WorseGate,
    nights: usize,
    runs: Arc<[KnownRun]>,
}

/// A run of the store, and what must be equal in those that are alike; made once, as a plan asks
/// for many cells.
#[derive(Debug)]
pub(super) struct KnownRun {
    /// The run.
    pub listed: ListedRun,
    key: TrendKey,
}

impl KnownRun {
    /// All of these.
    pub(super) fn all(runs: Vec<ListedRun>) -> Arc<[Self]> {
        let known = |listed: ListedRun| Self { key: alike::key(&listed.entry), listed };
        runs.into_iter().map(known).collect()
    }
}

/// Gates against the nights before; the store is read once, and only if there are some.
pub(super) fn nights_gates<'a>(
    gates: impl Iterator<Item = &'a WorseGate>,
    store: &Store,
) -> Result<Vec<NightsGate>> {
    let mut found = Vec::new();
    let mut known: Option<Arc<[KnownRun]>> = None;
    for gate in gates {
        let Some(nights) = gate.past_nights else { continue };
        let runs = match &known {
            Some(runs) => Arc::clone(runs),
            None => {
                let runs = KnownRun::all(store.listing()?.runs);
                name_hidden(&runs);
                Arc::clone(known.insert(runs))
            }
        };
        found.push(NightsGate { gate: gate.clone(), nights, runs });
    }
    Ok(found)
}

/// A run may be called as the nights before are.
fn name_hidden(runs: &[KnownRun]) {
    if let Some(run) = runs.iter().find(|run| run.listed.entry.name == "baseline") {
        let id = &run.listed.entry.id;
        output::warn(&format!(
            "vs baseline: the nights before are meant; for the run baseline write its id, {id}"
        ));
    }
}

/// Why runs of the store do not count, and how many of each.
#[derive(Debug, Default)]
struct LeftOut {
    invalid: usize,
    unfinished: usize,
    other_machine: usize,
    other_conditions: usize,
    differences: BTreeSet<String>,
    same_night: usize,
}

impl NightsGate {
    /// A gate against runs that it names: their nights are among these too.
    pub(super) const fn among(gate: WorseGate, runs: Arc<[KnownRun]>) -> Self {
        Self { gate, nights: MOST_NIGHTS, runs }
    }

    /// The nights up to now that are like this run.
    pub(super) fn planned(&self, like: &RunEntry) -> Vec<SeriesNights> {
        let key = alike::key(like);
        let (before, left_out) = self.before(&[], &key, Timestamp::now());
        self.nights((like, &[]), &before, &left_out, &key)
    }

    /// Which gate.
    pub(super) const fn gate(&self) -> &WorseGate {
        &self.gate
    }

    /// What these runs of one set-up say of it.
    pub(super) fn decide(&self, runs: &[&Run]) -> Vec<GateResult> {
        let judged: Vec<RunEntry> = runs.iter().map(|run| RunEntry::from((*run).clone())).collect();
        self.of_entries(&judged).unwrap_or_else(|why| vec![self.gate.inconclusive(why)])
    }

    fn of_entries(&self, judged: &[RunEntry]) -> Result<Vec<GateResult>, String> {
        let first = judged.first().ok_or("no run")?;
        if let Some(run) = judged.iter().find(|run| run.validity == Validity::Invalid) {
            return Err(format!("{} is invalid, and its figures decide nothing", run.name));
        }
        if self.series(first).is_empty() {
            let there: Vec<&str> = first.whole().map(|own| own.name.as_str()).collect();
            let own = self.gate.series().unwrap_or("with latencies");
            return Err(format!("unknown series {own}; there are {}", there.join(", ")));
        }
        let key = alike::key(first);
        if let Some(other) = judged.iter().find(|run| alike::key(run) != key) {
            let differences = names(&differences(&key, &alike::key(other)));
            return Err(format!(
                "{} and {} differ ({differences}), and runs of one set-up are judged",
                first.name, other.name
            ));
        }
        let started = judged.iter().filter_map(RunEntry::start).min();
        let started = started.ok_or("it is unknown when the run started")?;
        let (before, left_out) = self.before(judged, &key, started);
        Ok(self.gate.decide_by_nights(&self.nights((first, judged), &before, &left_out, &key)))
    }

    /// The runs that are alike and came before, and why others do not count.
    fn before(
        &self,
        judged: &[RunEntry],
        key: &TrendKey,
        started: Timestamp,
    ) -> (Vec<&RunEntry>, LeftOut) {
        let mut left_out = LeftOut::default();
        let is_judged = |run: &RunEntry| judged.iter().any(|own| own.id == run.id);
        let is_earlier = |run: &RunEntry| run.start().is_some_and(|own| own < started);
        let own_probe = self.runs.iter().filter(|run| run.key.probe == key.probe);
        let is_meant = |run: &&KnownRun| {
            let entry = &run.listed.entry;
            !is_judged(entry) && is_earlier(entry)
        };
        let kernels: Vec<&str> = judged.iter().map(|run| run.facts.kernel.as_str()).collect();
        let counts = |known: &&KnownRun| {
            let run = &known.listed.entry;
            let is_near = run.start().is_some_and(|own| started.duration_since(own) <= ONE_NIGHT);
            let is_same_night = is_near && kernels.contains(&run.facts.kernel.as_str());
            let mut differences = differences(key, &known.key);
            if judged.iter().chain([run]).any(|own| own.status == Status::Imported) {
                alike::forgive_unstated(&mut differences, key, &known.key);
            }
            left_out.takes(run, &differences, is_same_night)
        };
        let alike = own_probe.filter(is_meant).filter(counts);
        let runs = alike.map(|run| &run.listed.entry).collect();
        (runs, left_out)
    }

    fn nights(
        &self,
        (like, judged): (&RunEntry, &[RunEntry]),
        before: &[&RunEntry],
        left_out: &LeftOut,
        key: &TrendKey,
    ) -> Vec<SeriesNights> {
        let mut groups: BTreeMap<TrendKey, Vec<TrendRun>> = BTreeMap::new();
        let first = self.series(like);
        for SeriesEntry { name, .. } in &first {
            let own = TrendKey { series: name.clone(), ..key.clone() };
            groups.insert(own, self.figures(before.iter().copied(), name));
        }
        let kernel = &judged.last().unwrap_or(like).facts.kernel;
        let others = without_kernels_in_turn(&mut groups, kernel);
        let mut words = left_out.words();
        if others.nights > 0 {
            let nights = many(others.nights as u64, "night");
            words
                .push(format!("{nights} of other kernels in turn ({})", others.kernels.join(", ")));
        }
        let mut levels = level_nights(groups, self.nights);
        let series = |SeriesEntry { name, .. }: &SeriesEntry| {
            let level = levels.remove(name).unwrap_or_default();
            let mut left_out = words.clone();
            left_out.extend(of_level(&level));
            let judged = judged_nights(&self.figures(judged.iter(), name));
            SeriesNights { series: name.clone(), before: level.nights, judged, left_out }
        };
        first.iter().map(series).collect()
    }

    /// The series of a run that it is for.
    fn series(&self, run: &RunEntry) -> Vec<SeriesEntry> {
        let is_meant = |name: &str| self.gate.series().is_none_or(|own| is_called(own, name));
        run.whole().filter(|series| is_meant(&series.name)).cloned().collect()
    }

    /// The figure of each of these runs.
    fn figures<'a>(&self, runs: impl Iterator<Item = &'a RunEntry>, series: &str) -> Vec<TrendRun> {
        let name = self.gate.figure.name().trim_start_matches('p');
        let figure = |run: &RunEntry| {
            let own = run.whole().find(|own| own.name == series)?;
            own.percentile(name).filter(|_| !own.is_uncertain(name))
        };
        let run = |run: &RunEntry| {
            Some(TrendRun {
                started: run.start()?,
                kernel: run.facts.kernel.clone(),
                program: run.provenance.called(),
                p99_ns: figure(run).and_then(|ns| i64::try_from(ns).ok()),
                block_max_ns: None,
                max_ns: None,
                late: None,
            })
        };
        runs.filter_map(run).collect()
    }
}

impl LeftOut {
    /// Whether a run counts, which differs in this; notes why not.
    fn takes(
        &mut self,
        run: &RunEntry,
        differences: &BTreeSet<String>,
        is_same_night: bool,
    ) -> bool {
        match () {
            () if differences.contains(MACHINE) => self.other_machine += 1,
            () if !differences.is_empty() => {
                self.other_conditions += 1;
                self.differences.extend(differences.iter().cloned());
            }
            () if !run.has_ended() => self.unfinished += 1,
            () if run.validity == Validity::Invalid => self.invalid += 1,
            () if is_same_night => self.same_night += 1,
            () => return true,
        }
        false
    }

    fn words(&self) -> Vec<String> {
        let conditions = format!(" under other conditions ({})", names(&self.differences));
        let counts = [
            (self.invalid, "invalid run", ""),
            (self.unfinished, "unfinished run", ""),
            (self.same_night, "run", " of the same night"),
            (self.other_machine, "run", " of another machine"),
            (self.other_conditions, "run", conditions.as_str()),
        ];
        let some = counts.into_iter().filter(|(count, ..)| *count > 0);
        some.map(|(count, what, why)| many(count as u64, what) + why).collect()
    }
}

/// Nights of one series that do not count.
fn of_level(level: &LevelNights) -> Vec<String> {
    let nights = |count: usize| many(count as u64, "night");
    let mut words = Vec::new();
    if let Some(since) = level.since.as_ref().filter(|_| level.before_change > 0) {
        words.push(format!("{} before the change of {since}", nights(level.before_change)));
    }
    if level.older > 0 {
        words.push(format!("{} that are older", nights(level.older)));
    }
    words
}

/// In what runs of these keys differ. A machine without an id is known by its name alone.
fn differences(a: &TrendKey, b: &TrendKey) -> BTreeSet<String> {
    let ids = [a, b].map(|key| key.conditions.get(alike::MACHINE_ID));
    let is_other_id = matches!(ids, [Some(one), Some(other)] if one != other);
    let fields = [
        (MACHINE, a.machine != b.machine || is_other_id),
        ("probe", a.probe != b.probe),
        ("loads", a.loads != b.loads),
        ("policy", a.policy != b.policy),
        ("length", a.length != b.length),
    ];
    let mut found: BTreeSet<String> =
        fields.into_iter().filter(|(_, differ)| *differ).map(|(name, _)| name.into()).collect();
    let all = a.conditions.keys().chain(b.conditions.keys());
    found.extend(all.filter(|name| a.conditions.get(*name) != b.conditions.get(*name)).cloned());
    found.remove(alike::MACHINE_ID);
    if found.contains("length") {
        found.retain(|name| !name.starts_with("planned "));
    }
    found
}

/// `CPUs, policy`, the first ones.
fn names(all: &BTreeSet<String>) -> String {
    let mut words: Vec<&str> = all.iter().take(NAMED).map(String::as_str).collect();
    if all.len() > NAMED {
        words.push("...");
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_machines_of_one_name_are_two_and_one_without_an_id_is_known_by_its_name() {
        let key = |id: Option<&str>| TrendKey {
            machine: "vm".into(),
            conditions: id.map(|id| (alike::MACHINE_ID.into(), id.into())).into_iter().collect(),
            ..TrendKey::default()
        };
        let [a, b, old] = [Some("a"), Some("b"), None].map(key);
        assert_eq!(differences(&a, &b), BTreeSet::from([MACHINE.to_owned()]));
        assert_eq!(differences(&a, &old), BTreeSet::new());
        assert_eq!(differences(&a, &a), BTreeSet::new());
    }
}
