//! Watches what must not change while a run goes on: the terms of the measured threads, and the
//! conditions of the machine. Looks about once a second, from outside the measuring threads.

use crate::{
    run::{
        Doubt, Incident,
        conditions::{ConditionsRecord, CpuRecord},
    },
    setup::threads::{Found, describe_found},
    sys::{
        conditions::{Conditions, CpuConditions},
        cpus::Cpus,
        perf::SmiCount,
        root::Root,
        sched,
    },
    units::Nanos,
};

/// Clocks are read one after the other, and the thread that reads may lose its CPU in between, so
/// that a little difference is no suspend: to sleep and to wake up takes a machine far longer.
const SUSPEND_NS: i64 = 20_000_000;

/// What is watched, and what has been seen.
#[derive(Debug)]
pub struct Watcher {
    root: Root,
    measured: Cpus,
    threads: Vec<Watched>,
    smis: Option<SmiCount>,
    history: History,
    looks: u64,
}

/// A measured thread, and in what it was once found otherwise than when it was armed.
#[derive(Debug)]
struct Watched {
    series: String,
    armed: Found,
    broken: Option<String>,
}

impl Watcher {
    /// Threads by their series, as they were found when armed.
    #[must_use]
    pub fn new(root: Root, measured: Cpus, threads: &[(String, Found)]) -> Self {
        let watched = |(series, armed): &(String, Found)| Watched {
            series: series.clone(),
            armed: armed.clone(),
            broken: None,
        };
        let threads = threads.iter().map(watched).collect();
        let history = History::of(Conditions::default());
        Self { root, measured, threads, smis: None, history, looks: 0 }
    }

    /// Reads how things are. Slow, and to be done before the measured time.
    pub fn begin(&mut self) {
        self.history = History::of(Conditions::read(&self.root, &self.measured));
        self.smis = SmiCount::begin(&self.root, &self.measured);
    }

    /// Looks whether everything still is as it was; `at_s` is the time since the start of the run.
    pub fn look(&mut self, at_s: f64) {
        self.looks += 1;
        for thread in &mut self.threads {
            thread.look(at_s);
        }
        self.history.add(Conditions::glimpse(&self.root, &self.measured));
    }

    /// Reads everything once more, after the measured time.
    pub fn end(&mut self) {
        self.history.add(Conditions::read(&self.root, &self.measured));
    }

    /// In what measured threads were found otherwise than when they were armed, by series.
    pub fn broken(&self) -> impl Iterator<Item = (&str, &str)> {
        let broken = |thread: &'_ Watched| thread.broken.is_some();
        self.threads
            .iter()
            .filter(move |thread| broken(thread))
            .map(|thread| (thread.series.as_str(), thread.broken.as_deref().unwrap_or_default()))
    }

    /// What changed, as doubts.
    #[must_use]
    pub fn doubts(&self) -> Vec<Doubt> {
        self.history.incidents(&self.measured).into_iter().map(Doubt::Happened).collect()
    }

    /// System management interrupts since [`Watcher::begin`]; absent where nothing counts them.
    #[must_use]
    pub fn smis(&self) -> Option<u64> {
        self.smis.as_ref().and_then(SmiCount::read)
    }

    /// What was found, for `run.json`; what the threads used is not known here.
    #[must_use]
    pub fn record(&self) -> ConditionsRecord {
        ConditionsRecord { looks: self.looks, smis: self.smis(), ..self.history.record() }
    }
}

impl Watched {
    fn look(&mut self, at_s: f64) {
        let tid = self.armed.tid;
        // A thread that has ended its loop may be gone.
        let (Ok(scheduling), Ok(cpus)) = (sched::of_thread(tid), Cpus::of_thread(tid)) else {
            return;
        };
        let now = Found { scheduling, cpus: cpus.to_string(), ..self.armed.clone() };
        if now != self.armed && self.broken.is_none() {
            let (now, armed) = (describe_found(&now), describe_found(&self.armed));
            self.broken = Some(format!("{now} instead of {armed} at {at_s:.1} s"));
        }
    }
}

/// The conditions at the first look and at the last, and every change between two looks.
#[derive(Debug)]
struct History {
    first: Conditions,
    last: Conditions,
    clock_sources: Vec<String>,
    /// CPUs that came or went at least once.
    changed: Cpus,
    /// CPUs that went.
    gone: Cpus,
    governors: Vec<String>,
}

impl History {
    fn of(first: Conditions) -> Self {
        Self {
            clock_sources: first.clock_source.iter().cloned().collect(),
            last: first.clone(),
            first,
            changed: Cpus::default(),
            gone: Cpus::default(),
            governors: Vec::new(),
        }
    }

    fn add(&mut self, now: Conditions) {
        if let (Some(before), Some(now)) = (&self.last.online, &now.online) {
            let (gone, come) = (before.without(now), now.without(before));
            self.gone = self.gone.iter().chain(gone.iter()).collect();
            self.changed = self.changed.iter().chain(gone.iter()).chain(come.iter()).collect();
        }
        if let Some(source) = &now.clock_source
            && self.clock_sources.last() != Some(source)
        {
            self.clock_sources.push(source.clone());
        }
        for (before, now) in self.last.cpus.iter().zip(&now.cpus) {
            if let (Some(was), Some(is)) = (&before.governor, &now.governor)
                && was != is
            {
                let change = format!("CPU {} from {was} to {is}", now.cpu);
                if !self.governors.contains(&change) {
                    self.governors.push(change);
                }
            }
        }
        self.last = now;
    }

    fn incidents(&self, measured: &Cpus) -> Vec<Incident> {
        let some = |text: String| (!text.is_empty()).then_some(text);
        let is_measured = |cpu: &u32| measured.contains(*cpu);
        let gone: Cpus = self.gone.iter().filter(is_measured).collect();
        let changed = self.changed.without(&gone);
        let suspended_ns = self.last.suspended_ns - self.first.suspended_ns;
        let (had, has) = (self.first.locked_bytes, self.last.locked_bytes);
        let mut incidents = Vec::new();
        let mut note = |incident: Option<Incident>| incidents.extend(incident);
        note(some(gone.to_string()).map(|cpus| Incident::MeasuredCpuOffline { cpus }));
        note(some(changed.to_string()).map(|cpus| Incident::CpusChanged { cpus }));
        let sources = self.clock_sources.join(", then ");
        note((self.clock_sources.len() > 1).then_some(Incident::ClockSourceChanged { sources }));
        note(
            (suspended_ns > SUSPEND_NS)
                .then(|| Incident::Suspended { time: Nanos(suspended_ns).to_string() }),
        );
        note(some(self.governors.join("; ")).map(|what| Incident::GovernorChanged { what }));
        note(some(self.each_cpu(frequency)).map(|what| Incident::FrequencyChanged { what }));
        note(some(self.each_cpu(throttles)).map(|what| Incident::CpuThrottled { what }));
        let throttled = (self.first.rt_throttled, self.last.rt_throttled);
        note((throttled == (Some(false), Some(true))).then_some(Incident::RtThrottled));
        // More than half: what a thread had on its stack may go with it.
        if let (Some(had), Some(has)) = (had, has)
            && has < had / 2
        {
            let what = format!("{} KiB at the start, {} KiB at the end", had >> 10, has >> 10);
            note(Some(Incident::MemoryUnlocked { what }));
        }
        incidents
    }

    fn each_cpu(&self, line: fn(&CpuConditions, &CpuConditions) -> Option<String>) -> String {
        let pairs = self.first.cpus.iter().zip(&self.last.cpus);
        let lines: Vec<String> = pairs
            .filter_map(|(first, last)| Some(format!("CPU {} {}", last.cpu, line(first, last)?)))
            .collect();
        lines.join("; ")
    }

    fn record(&self) -> ConditionsRecord {
        let difference = |first: Option<u64>, last: Option<u64>| Some(last? - first?.min(last?));
        let cpu = |(first, last): (&CpuConditions, &CpuConditions)| CpuRecord {
            cpu: last.cpu,
            governor: last.governor.clone(),
            frequency_khz: first.frequency_khz.zip(last.frequency_khz),
            frequency_changes: difference(first.transitions, last.transitions),
            throttles: difference(first.throttles, last.throttles),
            nmis: None,
        };
        let known = (self.first.rt_throttled, self.last.rt_throttled);
        ConditionsRecord {
            cpus: self.first.cpus.iter().zip(&self.last.cpus).map(cpu).collect(),
            clock_sources: self.clock_sources.clone(),
            suspended_ns: Some(self.last.suspended_ns - self.first.suspended_ns)
                .filter(|slept_ns| *slept_ns > SUSPEND_NS)
                .unwrap_or(0),
            locked_bytes: self.last.locked_bytes,
            rt_throttled: match known {
                (Some(false), now) => now,
                // The kernel says it once in a boot, and it has.
                _ => None,
            },
            ..ConditionsRecord::default()
        }
    }
}

/// "3 changes, 1200 MHz before and 3000 MHz after"
fn frequency(first: &CpuConditions, last: &CpuConditions) -> Option<String> {
    let changes =
        last.transitions.zip(first.transitions).map(|(last, first)| last - first.min(last));
    let changes = changes.filter(|changes| *changes > 0).map(|changes| format!("{changes} times"));
    let (before, after) = first.frequency_khz.zip(last.frequency_khz).unwrap_or_default();
    // A reading wavers by a little even where nothing changes.
    let differs = before.abs_diff(after) > before / 10;
    let ends = differs
        .then(|| format!("from {} MHz at the start to {} at the end", before / 1000, after / 1000));
    let parts: Vec<String> = [changes, ends].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn throttles(first: &CpuConditions, last: &CpuConditions) -> Option<String> {
    let times = last.throttles?.saturating_sub(first.throttles?);
    (times > 0).then(|| format!("{times} times"))
}

#[cfg(test)]
mod tests;
