//! Watches what must not change during a run: the terms of the measured threads, and the
//! conditions of the machine. Looks about once a second, from outside the measuring threads.

use tardy_hot::clock::now_ns;

use super::foreign_use::ForeignWatch;
use crate::{
    run::{
        Deviation, GovernorChange, ThreadDeviation, UnreadSource,
        conditions::{ConditionsRecord, CpuRecord},
    },
    setup::{
        shield::{ShieldLoss, ShieldWatch},
        threads::Found,
    },
    sys::{
        conditions::{Conditions, CpuConditions, ThrottlingLog, UnreadFile},
        cpus::Cpus,
        perf::SmiCount,
        quota::QuotaUse,
        root::Root,
        sched,
    },
};

/// Clocks are read one after the other, and the reading thread may lose its CPU in between. So a
/// small difference is not a suspend: a machine takes far longer to sleep and to wake up.
const SUSPEND_NS: i64 = 20_000_000;

/// What is watched, and what has been seen.
#[derive(Debug)]
pub(super) struct ConditionsMonitor {
    root: Root,
    measured: Cpus,
    threads: Vec<MonitoredThread>,
    smis: Option<SmiCount>,
    shield: Option<ShieldWatch>,
    shield_loss: Option<(ShieldLoss, Option<i64>)>,
    interrupts_back: Vec<String>,
    shield_unread: Vec<UnreadSource>,
    history: ConditionsHistory,
    foreign: ForeignWatch,
    looks: u64,
}

/// A measured thread, and in what it was once found otherwise than when it was armed.
#[derive(Debug)]
struct MonitoredThread {
    series: String,
    armed: Found,
    broken: Option<Deviation>,
    /// Whether the kernel ever answered for it.
    is_seen: bool,
    /// Whether it refused to, while the thread was there.
    is_refused: bool,
}

impl ConditionsMonitor {
    /// Threads by their series, as they were found when armed.
    #[must_use]
    pub(super) fn new(root: Root, measured: Cpus, threads: &[(String, Found)]) -> Self {
        let watched = |(series, armed): &(String, Found)| MonitoredThread {
            series: series.clone(),
            armed: armed.clone(),
            broken: None,
            is_seen: false,
            is_refused: false,
        };
        let threads = threads.iter().map(watched).collect();
        Self {
            root,
            measured,
            threads,
            smis: None,
            shield: None,
            shield_loss: None,
            interrupts_back: Vec::new(),
            shield_unread: Vec::new(),
            history: ConditionsHistory::default(),
            foreign: ForeignWatch::default(),
            looks: 0,
        }
    }

    /// Watches this shield, too.
    #[must_use]
    pub(super) fn guard(self, shield: Option<ShieldWatch>) -> Self {
        Self { shield, ..self }
    }

    /// Reads how things are. Slow, and to be done before the measured time.
    pub(super) fn begin(&mut self) {
        self.history = ConditionsHistory::of(Conditions::read(&self.root, &self.measured));
        self.foreign = ForeignWatch::begin(&self.root, now_ns());
    }

    /// Counts from here on what only counts: the end of the warm-up.
    pub(super) fn begin_counts(&mut self) {
        let now = Conditions::glimpse(&self.root, &self.measured, &mut || {});
        self.history.begin_counts(now);
        self.smis = SmiCount::begin(&self.root, &self.measured);
    }

    /// Looks whether everything still is as it was, with a `pause` before each file; `at_ns` is the
    /// time since the start of the run.
    pub(super) fn poll(&mut self, at_ns: i64, pause: &mut dyn FnMut()) {
        self.looks += 1;
        for thread in &mut self.threads {
            thread.poll(at_ns);
        }
        self.look_at_shield(Some(at_ns));
        self.history.add(Conditions::glimpse(&self.root, &self.measured, pause));
    }

    fn look_at_shield(&mut self, at_ns: Option<i64>) {
        if self.shield_loss.is_none() {
            let loss = self.shield.as_ref().and_then(ShieldWatch::loss);
            self.shield_loss = loss.map(|loss| (loss, at_ns));
        }
    }

    /// Reads everything again, after the measured time and before anything is restored.
    pub(super) fn end(&mut self) {
        self.look_at_shield(None);
        if let Some(shield) = &self.shield {
            self.interrupts_back = shield.interrupts_back();
            self.shield_unread = shield.unread();
        }
        self.foreign.end(&self.root, &self.measured, now_ns());
        self.history.add(Conditions::read(&self.root, &self.measured));
    }

    /// The processes beside the run.
    pub(super) const fn foreign(&self) -> &ForeignWatch {
        &self.foreign
    }

    /// In what measured threads were found otherwise than when they were armed.
    pub(super) fn deviations(&self) -> Vec<ThreadDeviation> {
        let deviation = |thread: &MonitoredThread| {
            let deviation = thread.broken.clone()?;
            Some(ThreadDeviation { series: thread.series.clone(), deviation })
        };
        self.threads.iter().filter_map(deviation).collect()
    }

    /// What nothing is known of, and what would have shown it.
    pub(super) fn unread(&self) -> Vec<UnreadSource> {
        let unread = self.history.unread.iter();
        let files = unread.map(|unread| UnreadSource::new(unread.what, unread.file));
        let unseen = self.threads.iter().any(|thread| thread.is_refused && !thread.is_seen);
        let threads = UnreadSource::new("policy and CPUs of measured threads", "sched_getattr");
        let shield = self.shield_unread.iter().cloned();
        files.chain(unseen.then_some(threads)).chain(shield).collect()
    }

    /// What of the shield was found changed, and when.
    #[must_use]
    pub(super) fn shield_loss(&self) -> Option<(ShieldLoss, Option<i64>)> {
        self.shield_loss.clone()
    }

    /// What could reach the shielded CPUs again at the end.
    #[must_use]
    pub(super) fn interrupts_back(&self) -> Vec<String> {
        self.interrupts_back.clone()
    }

    /// How the conditions changed.
    #[must_use]
    pub(super) const fn history(&self) -> &ConditionsHistory {
        &self.history
    }

    /// System management interrupts since [`ConditionsMonitor::begin_counts`]; `None` if nothing
    /// counts them.
    #[must_use]
    pub(super) fn smis(&self) -> Option<u64> {
        self.smis.as_ref().and_then(SmiCount::read)
    }

    /// What was found, for `run.json`; what the threads used is not known here.
    #[must_use]
    pub(super) fn record(&self) -> ConditionsRecord {
        ConditionsRecord { looks: self.looks, smis: self.smis(), ..self.history.record() }
    }
}

impl MonitoredThread {
    fn poll(&mut self, at_ns: i64) {
        let tid = self.armed.tid;
        let found = sched::of_thread(tid).and_then(|how| Ok((how, Cpus::of_thread(tid)?)));
        let (scheduling, cpus) = match found {
            Ok(found) => found,
            Err(error) => {
                // A thread that has ended its loop may be gone: there was nothing to be seen.
                self.is_refused |= error.raw_os_error() != Some(libc::ESRCH);
                return;
            }
        };
        self.is_seen = true;
        let now = Found { scheduling, cpus: cpus.to_string(), ..self.armed.clone() };
        if self.broken.is_none() {
            self.broken = Deviation::between((&now).into(), (&self.armed).into(), Some(at_ns));
        }
    }
}

/// The conditions when first and last read, and every change between two reads.
#[derive(Debug, Clone, Default)]
pub(super) struct ConditionsHistory {
    first: Conditions,
    last: Conditions,
    /// The clock source, and those that came after it.
    pub clock_sources: Vec<String>,
    /// CPUs that came or went at least once.
    pub changed: Cpus,
    /// CPUs that went.
    pub gone: Cpus,
    /// Changes of governors, each once.
    pub governors: Vec<GovernorChange>,
    /// What could not be read at one look or another, each once.
    pub unread: Vec<UnreadFile>,
}

impl ConditionsHistory {
    /// Begins with these.
    pub(super) fn of(first: Conditions) -> Self {
        let clock_sources = first.clock_source.iter().cloned().collect();
        let unread = first.unread.clone();
        Self { clock_sources, unread, last: first.clone(), first, ..Self::default() }
    }

    /// Takes what was found at another look, before which nothing is to be counted.
    fn begin_counts(&mut self, now: Conditions) {
        for (first, now) in self.first.cpus.iter_mut().zip(&now.cpus) {
            (first.transitions, first.throttles) = (now.transitions, now.throttles);
        }
        self.add(now);
    }

    /// Takes what was found at another look.
    pub(super) fn add(&mut self, now: Conditions) {
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
                let change =
                    GovernorChange { cpu: now.cpu, before: was.clone(), after: is.clone() };
                if !self.governors.contains(&change) {
                    self.governors.push(change);
                }
            }
        }
        let fresh = now.unread.iter().filter(|unread| !self.unread.contains(unread));
        self.unread.extend(fresh.copied().collect::<Vec<_>>());
        self.last = now;
    }

    /// The measured CPUs at the first look and at the last.
    pub(super) fn cpus(&self) -> impl Iterator<Item = (&CpuConditions, &CpuConditions)> {
        self.first.cpus.iter().zip(&self.last.cpus)
    }

    /// Time suspended between the first look and the last, ns; see
    /// [`ConditionsHistory::is_suspended`].
    pub(super) const fn suspended_ns(&self) -> i64 {
        self.last.suspended_ns - self.first.suspended_ns
    }

    /// Whether that is more than clocks that are read in turn differ by.
    pub(super) const fn is_suspended(&self) -> bool {
        self.suspended_ns() > SUSPEND_NS
    }

    /// Bytes of memory that were locked at the first look and at the last, where that is known.
    pub(super) fn locked_bytes(&self) -> Option<(u64, u64)> {
        self.first.locked_bytes.zip(self.last.locked_bytes)
    }

    /// Whether the kernel said meanwhile that it stops real-time tasks. It says so once a boot.
    pub(super) fn is_throttled(&self) -> bool {
        let was_there = self.first.rt_throttling;
        matches!(was_there, ThrottlingLog::Silent | ThrottlingLog::Never)
            && self.last.rt_throttling == ThrottlingLog::Throttled
    }

    /// How often its CPU quota was used up between the two looks, and for how long tasks were kept
    /// from running for that.
    pub(super) fn quota_used_up(&self) -> Option<QuotaUse> {
        let used = self.last.quota?.since(self.first.quota?);
        (used.times > 0).then_some(used)
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
        let never = ThrottlingLog::Never;
        let was_never = (self.first.rt_throttling, self.last.rt_throttling) == (never, never);
        ConditionsRecord {
            cpus: self.cpus().map(cpu).collect(),
            clock_sources: self.clock_sources.clone(),
            suspended_ns: if self.is_suspended() { self.suspended_ns() } else { 0 },
            locked_bytes: self.last.locked_bytes,
            // The kernel says it once in a boot, if at all: its silence may mean nothing.
            rt_throttled: match self.is_throttled() {
                true => Some(true),
                false => was_never.then_some(false),
            },
            ..ConditionsRecord::default()
        }
    }
}

#[cfg(test)]
mod tests;
