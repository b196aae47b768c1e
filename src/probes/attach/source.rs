//! Reads what the programs count, and looks after what they cannot see.

use std::{
    collections::HashMap,
    sync::{Arc, mpsc::Sender},
};

use tardy_hot::{clock::now_ns, stop::Stop};

use super::{
    Attach, AttachTarget,
    command::StartedCommand,
    cycles::{cycles, of_thread, wait_calls},
    figures::{SLICES, SliceMeans},
    followed::Followed,
    hand_over::hand_over,
    room::{AttachSlots, is_there, sleeps},
    schedule::Phase,
    target::{FoundTask, cut_name, scan_children},
    threads::Threads,
};
use crate::{
    kernel::{AttachPrograms, AttachUnavailable, AttachedTime, SlotError},
    probes::{
        ArmError, FinishedAttach, LateCycle, Schedule, SeriesSource, ThreadReport, TracedThread,
        found_series::FoundSeriesList,
    },
    run::{AttachRecord, Deadlines},
    sys::root::Root,
};

/// Counts are read so often, and places of threads that have ended are given back: within an
/// interval of the log, and where there are many threads less often.
const READ_NS: i64 = 90_000_000;
const READ_NAMED_NS: i64 = 10_000_000;
const READ_EACH_NS: i64 = 1_000_000;

/// What the programs cannot see is looked for so often: threads that are moved into a group, and
/// those for which there was no place.
const SCAN_NS: i64 = 1_000_000_000;

/// The source.
#[derive(Debug)]
pub(super) struct AttachSource {
    target: AttachTarget,
    deadlines: Deadlines,
    to_stderr: bool,
    root: Root,
    clock: fn() -> i64,
    programs: AttachPrograms,
    stop: Arc<Stop>,
    schedule: Option<Schedule>,
    command: Option<StartedCommand>,
    list: FoundSeriesList,
    threads: Threads,
    /// By place.
    followed: HashMap<usize, Followed>,
    means: SliceMeans,
    phase: Phase,
    next_read_ns: i64,
    next_scan_ns: i64,
    next_slice_ns: i64,
    room: AttachSlots,
    /// Threads that began without a place, as the programs counted at the start.
    refused: u64,
    gone_ns: Option<i64>,
    ended_ns: Option<i64>,
    finished: Option<FinishedAttach>,
    /// The profile takes cycles that missed their deadline from here.
    pub(super) late_cycles: Option<Sender<LateCycle>>,
}

impl AttachSource {
    /// Lets the programs run, and finds the threads that are there.
    ///
    /// # Errors
    /// What is missing for the programs, or that nothing matches, with the remedy.
    pub(super) fn new(
        plan: &Attach,
        stop: Arc<Stop>,
        traced: Option<Sender<TracedThread>>,
    ) -> Result<Self, ArmError> {
        let root = Root::default();
        plan.target.check(&root).map_err(ArmError::Transport)?;
        let refused = |error: AttachUnavailable| ArmError::Transport(error.to_string());
        let cycles = cycles(plan, &root);
        let room = plan.target.room(&root);
        let to = plan.target.attached_to();
        let mut programs = AttachPrograms::load(&to, cycles, room).map_err(refused)?;
        programs.attach().map_err(refused)?;
        Ok(Self::over(plan, programs, stop, traced, (root, now_ns)))
    }

    /// What these programs count of the threads that are there and of those that come.
    pub(super) fn over(
        plan: &Attach,
        programs: AttachPrograms,
        stop: Arc<Stop>,
        traced: Option<Sender<TracedThread>>,
        (root, clock): (Root, fn() -> i64),
    ) -> Self {
        let list = FoundSeriesList::default();
        let command = match &plan.target {
            AttachTarget::Command(argv) => Some(StartedCommand::new(argv)),
            _ => None,
        };
        let mut source = Self {
            target: plan.target.clone(),
            deadlines: plan.deadlines.clone(),
            to_stderr: plan.to_stderr,
            root,
            clock,
            programs,
            stop,
            schedule: None,
            command,
            threads: Threads::new(list.clone(), traced, plan.only.as_deref()),
            list,
            followed: HashMap::new(),
            means: SliceMeans::default(),
            phase: Phase::WarmUp,
            next_read_ns: 0,
            next_scan_ns: 0,
            next_slice_ns: i64::MAX,
            room: AttachSlots::default(),
            refused: 0,
            gone_ns: None,
            ended_ns: None,
            finished: None,
            late_cycles: None,
        };
        source.scan(clock());
        source
    }

    /// Where its series go.
    pub(super) fn found(&self) -> FoundSeriesList {
        self.list.clone()
    }

    /// Gives places to threads that have none; of too many to the most active.
    fn scan(&mut self, now_ns: i64) {
        let found = self.find();
        let with_sleeps = |task: FoundTask| {
            let count = sleeps(&self.root, &task);
            (task, count)
        };
        let found = found.into_iter().map(with_sleeps).collect();
        let in_order = self.room.look(found);
        self.give_places(in_order);
        if self.room.is_short() {
            let placed = self.programs.all().filter(|thread| !thread.has_ended);
            let placed =
                placed.map(|thread| (thread.tid(), thread.totals(AttachedTime::Dispatch)[0]));
            let leaving = self.room.leaving(placed, now_ns);
            leaving.iter().for_each(|tid| self.programs.end(*tid));
        }
    }

    /// The threads that match and have no place.
    fn find(&self) -> Vec<FoundTask> {
        let mut found = match (&self.target, &self.command) {
            (AttachTarget::Command(_), Some(command)) => {
                command.pid().map(|pid| scan_children(&self.root, pid)).unwrap_or_default()
            }
            (target, _) => target.scan(&self.root),
        };
        found.retain(|task| !self.programs.has(task.tid) && self.room.may_have(task.tid));
        found
    }

    fn give_places(&mut self, tasks: Vec<FoundTask>) {
        for task in tasks {
            match self.programs.add(task.tid, task.pid, cut_name(&task.comm)) {
                // It may have ended before it had a place, and another one may have its number.
                Ok(()) if !is_there(&self.root, &task) => self.programs.end(task.tid),
                Err(SlotError::Full) => self.room.full(task.tid),
                Ok(()) | Err(SlotError::AlreadyAttached) => self.room.placed(task.tid),
                Err(SlotError::Number) => {}
            }
        }
    }

    /// Gives away the places that were taken from threads which are less active.
    fn fill(&mut self, now_ns: i64) {
        self.read(now_ns);
        self.room.filled();
        let found = self.find();
        let in_order = self.room.in_order(found);
        self.give_places(in_order);
    }

    /// Reads all threads.
    fn read(&mut self, now_ns: i64) {
        let mut ended = Vec::new();
        let cycles = self.programs.cycles();
        // One that comes back continues what it was, which must be over by then.
        let mut all: Vec<_> = self.programs.all().collect();
        all.sort_by_key(|thread| !thread.has_ended);
        for thread in all {
            let place = thread.place;
            if self.followed.get(&place).is_some_and(|known| !known.is(&thread)) {
                self.followed.remove(&place);
            }
            let followed = self.followed.entry(place).or_insert_with(|| {
                let cycles = |whose: (&str, u32)| of_thread(&self.deadlines, cycles, whose);
                let fresh = Followed::new(&thread, cycles, now_ns);
                self.threads.resume(fresh, thread.prio())
            });
            match self.phase {
                Phase::WarmUp => followed.skip(&thread),
                Phase::Measuring | Phase::Over => self.threads.take(followed, &thread, now_ns),
            }
            if thread.has_ended && self.room.may_release(thread.tid(), now_ns) {
                let gone = self.followed.remove(&place);
                gone.into_iter().for_each(|gone| self.threads.end(gone, now_ns));
                ended.push(place);
            }
        }
        let threads = i64::try_from(self.followed.len()).unwrap_or(i64::MAX);
        // What has a deadline by its name has none before it is known.
        let often_ns = if self.deadlines.of_threads.is_empty() { READ_NS } else { READ_NAMED_NS };
        self.next_read_ns = now_ns + often_ns.max(threads.saturating_mul(READ_EACH_NS));
        ended.into_iter().for_each(|place| self.programs.release(place));
    }

    /// Late wake-ups and cycles go to the threads that explain and profile them.
    fn hand_over(&mut self) {
        self.programs.watch_waits();
        hand_over(&self.programs, &mut self.followed, self.late_cycles.as_ref());
    }

    fn end_slice(&mut self) {
        self.threads.pools().for_each(|(name, sums)| self.means.take(name, sums));
        for followed in self.followed.values() {
            self.means.take(&followed.series(), &followed.sums);
        }
    }

    /// Whether threads may match now that no program saw come.
    fn rescans(&self) -> bool {
        let moves = matches!(self.target, AttachTarget::Group(_));
        moves || self.room.is_short() || self.programs.refused() > self.refused
    }

    /// Whether places are to be given back at once: ended threads have a quarter of the room.
    fn has_many_ended(&self) -> bool {
        let ended = self.programs.all().filter(|thread| thread.has_ended);
        ended.count() > self.programs.room() / 4
    }

    /// Whether what was to be looked at has ended for good.
    fn is_gone(&mut self) -> bool {
        match (&self.target, &mut self.command) {
            (_, Some(command)) => command.has_ended(),
            (AttachTarget::Process(_) | AttachTarget::Thread(_), None) => {
                self.programs.all().all(|thread| thread.has_ended)
                    && self.target.scan(&self.root).is_empty()
            }
            _ => false,
        }
    }

    fn begin_measuring(&mut self, schedule: &Schedule, now_ns: i64) {
        self.read(now_ns);
        self.refused = self.programs.refused();
        self.room.begin();
        self.phase = Phase::Measuring;
        let length_ns = schedule.end_ns.saturating_sub(schedule.start_ns);
        if schedule.end_ns < i64::MAX {
            self.next_slice_ns = schedule.start_ns + length_ns / SLICES;
        }
    }

    /// Counting is over.
    fn end(&mut self, now_ns: i64) {
        if self.phase == Phase::Over {
            return;
        }
        self.programs.detach();
        if self.phase == Phase::Measuring {
            self.hand_over();
            self.read(now_ns);
            self.end_slice();
        }
        self.phase = Phase::Over;
        self.ended_ns = Some(now_ns);
    }

    /// Everything is added up.
    fn sum_up(&mut self) -> FinishedAttach {
        let ended_ns = self.ended_ns.unwrap_or_else(self.clock);
        let start_ns = self.schedule.map_or(ended_ns, |schedule| schedule.start_ns);
        for (_, followed) in std::mem::take(&mut self.followed) {
            self.threads.end_of_run(followed);
        }
        self.threads.finish();
        let names: Vec<String> = self.threads.pools().map(|(name, _)| name.to_owned()).collect();
        // What came of one that ended since the end of its last slice.
        self.threads.own().for_each(|(name, sums)| self.means.take(name, sums));
        let mut figures = Vec::new();
        names.iter().for_each(|name| figures.extend(self.means.records(name)));
        let (threads, pooled_only, rows) = self.threads.rows();
        let of_threads = rows.iter().filter(|row| row.tid.is_some());
        of_threads.for_each(|row| figures.extend(self.means.records(&row.series)));
        let begun = self.programs.refused().saturating_sub(self.refused);
        let record = AttachRecord {
            threads,
            pooled_only,
            no_room: self.room.never(begun),
            gave_way: self.room.gave_way(),
            ended_ns: self.gone_ns.map(|ns| (ns - start_ns).max(0)),
            command: self.command.take().map(StartedCommand::finish),
            never_slept: self.threads.never_slept((ended_ns - start_ns).max(0).cast_unsigned()),
            wait_calls: wait_calls(&self.programs),
            room: self.programs.room() as u64,
            rows,
        };
        FinishedAttach { record, figures, ended_ns }
    }
}

impl SeriesSource for AttachSource {
    fn start(&mut self, schedule: Schedule) {
        self.schedule = Some(schedule);
        self.next_read_ns = schedule.warmup_ns;
        self.next_scan_ns = (self.clock)() + SCAN_NS;
        if self.command.is_some() && schedule.warmup_ns == schedule.start_ns {
            // Nothing of it is there yet that would be of a warm-up.
            self.begin_measuring(&schedule, (self.clock)());
        }
        if let Some(command) = &mut self.command {
            self.programs.adopt_children(true);
            command.start(self.to_stderr);
            self.programs.adopt_children(false);
        }
    }

    fn is_polled(&self) -> bool {
        true
    }

    fn poll(&mut self) {
        let Some(schedule) = self.schedule.filter(|_| self.phase != Phase::Over) else { return };
        let now_ns = (self.clock)();
        if self.phase == Phase::WarmUp && now_ns >= schedule.start_ns {
            self.begin_measuring(&schedule, now_ns);
        }
        if self.is_gone() {
            self.gone_ns = Some(now_ns);
        }
        if self.gone_ns.is_some() || self.stop.is_set() || now_ns >= schedule.end_ns {
            return self.end(now_ns);
        }
        self.hand_over();
        if self.room.is_to_fill(now_ns) {
            self.fill(now_ns);
        } else if now_ns >= self.next_scan_ns {
            self.next_scan_ns = now_ns + SCAN_NS;
            if self.rescans() {
                self.scan(now_ns);
            }
        }
        if now_ns >= self.next_slice_ns {
            self.next_slice_ns += (schedule.end_ns - schedule.start_ns) / SLICES;
            self.read(now_ns);
            self.end_slice();
        } else if now_ns >= self.next_read_ns || self.has_many_ended() {
            self.read(now_ns);
        }
        if self.phase == Phase::Measuring && self.threads.worst_ns() > schedule.stop_over_ns {
            self.stop.set_over(self.threads.worst_ns());
        }
    }

    fn is_done(&mut self) -> bool {
        self.phase == Phase::Over
    }

    fn stop(&mut self) {
        self.end((self.clock)());
    }

    fn finish(&mut self) -> Vec<ThreadReport> {
        self.end((self.clock)());
        self.finished = Some(self.sum_up());
        Vec::new()
    }

    fn attached(&mut self) -> Option<FinishedAttach> {
        self.finished.take()
    }
}
