//! Programs that follow threads of others: `attach.bpf.c`, and the memory that it fills.
//!
//! Each attached thread has a place with its histograms, which only grow; whoever reads takes the
//! difference from the last time. A program gives a place to a thread that begins, and takes it
//! away at its end; user space empties it then and gives it back.

use std::{
    fmt, io,
    os::fd::AsFd,
    sync::atomic::{
        AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
    sync::{Arc, Mutex, PoisonError},
};

use libbpf_rs::{Link, MapCore as _, Object, RingBuffer};

use crate::sys::mapped::MappedWords;

use super::{
    attach_config::{AttachedCycles, AttachedTo, greatest_number},
    attach_load::{CODE, load},
    attach_ring::ring,
    attach_unavailable::{AttachUnavailable, system},
    attach_waits::{WaitPrograms, WatchedWait},
    attached_thread::{
        AttachedLate, AttachedThread, COMM, DEADLINE, START, STATE_PRIO, THREAD, TID_PID,
    },
    bootstrap, header, log,
};

pub(super) const PLACES: usize = header::TARDY_ATTACH_PLACES as usize;
pub(super) const BLOCK: usize = header::TARDY_ATTACH_BLOCK as usize;
// The same of `struct tardy_attach_settings`.
const HEAD: usize = 0;
const TAIL: usize = 1;
const REFUSED: usize = 2;
const DROPPED: usize = 4;
const OWN_PID: usize = 5;
const NAME: usize = 6;
const ON: usize = 8;
const FREE: usize = 9;
pub(super) const SETTINGS: usize = FREE + PLACES / 2;

/// Why a thread has no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotError {
    /// It has one.
    AlreadyAttached,
    /// All are taken.
    Full,
    /// No thread has such a number.
    Number,
}

/// The programs, loaded. They go when it is dropped, and with the process.
pub struct AttachPrograms {
    /// `None` if a replay stands for the kernel.
    loaded: Option<Loaded>,
    /// The late wake-ups that the ring has given so far.
    late: Arc<Mutex<Vec<AttachedLate>>>,
    memory: MappedWords,
    threads: MappedWords,
    places: MappedWords,
    /// How many there are; the first is nobody's.
    count: usize,
    cycles: AttachedCycles,
}

/// What belongs to the kernel.
struct Loaded {
    // Before the object whose programs they run.
    links: Vec<Link>,
    waits: WaitPrograms,
    ring: RingBuffer<'static>,
    object: Object,
}

impl fmt::Debug for AttachPrograms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let links = self.loaded.as_ref().map(|loaded| loaded.links.len());
        f.debug_struct("AttachPrograms").field("links", &links).finish_non_exhaustive()
    }
}

impl AttachPrograms {
    /// Most threads at one time.
    pub const MOST: usize = PLACES - 1;

    /// Loads them, with room for `room` threads at one time, up to [`AttachPrograms::MOST`]; none
    /// runs yet. The kernel takes 17 us to make room for one, in which this CPU does nothing else
    /// if the kernel cannot be preempted.
    ///
    /// # Errors
    /// What is missing, with the remedy.
    pub fn load(
        to: &AttachedTo,
        cycles: AttachedCycles,
        room: usize,
    ) -> Result<Self, AttachUnavailable> {
        bootstrap::may_load()?;
        let blocks = greatest_number().div_ceil(BLOCK).max(1);
        let count = room.clamp(1, Self::MOST) + 1;
        let object = load(to, cycles, (blocks, count))?;
        let map = |ending: &str, words: usize| {
            let found = object.maps().find(|map| map.name().to_string_lossy().ends_with(ending));
            let found = found.ok_or_else(|| io::Error::other("the object has no such map"));
            found
                .and_then(|map| MappedWords::new(map.as_fd(), words))
                .map_err(|error| system("map the memory of attached threads", &error))
        };
        let memory = map(".bss", SETTINGS)?;
        let threads = map("attach_threads", count * THREAD)?;
        let places = map("attach_places", blocks * BLOCK / 4)?;
        let late = Arc::<Mutex<Vec<AttachedLate>>>::default();
        let ring = ring(&object, Arc::clone(&late))?;
        let loaded =
            Some(Loaded { links: Vec::new(), waits: WaitPrograms::default(), ring, object });
        Ok(Self { loaded, late, memory, threads, places, count, cycles }.prepared(to))
    }

    /// Without the kernel: what the programs write comes from a replay, which shares this memory.
    #[cfg(test)]
    pub(super) fn replayed(
        to: &AttachedTo,
        cycles: AttachedCycles,
        [memory, threads, places]: [MappedWords; 3],
        late: Arc<Mutex<Vec<AttachedLate>>>,
    ) -> Self {
        Self { loaded: None, late, memory, threads, places, count: PLACES, cycles }.prepared(to)
    }

    fn prepared(self, to: &AttachedTo) -> Self {
        let words = self.memory.words();
        for place in 1..self.count {
            self.push_free(place);
        }
        if let AttachedTo::Name(name) = to {
            let mut padded = [0_u8; 16];
            padded.iter_mut().zip(name.iter().take(15)).for_each(|(to, from)| *to = *from);
            for (word, bytes) in padded.chunks_exact(8).enumerate() {
                let bytes = bytes.try_into().unwrap_or_default();
                words[NAME + word].store(u64::from_ne_bytes(bytes), Relaxed);
            }
        }
        self
    }

    /// Lets the programs run: from now on threads that begin are given places.
    ///
    /// # Errors
    /// [`AttachUnavailable::System`] with the kernel's reason; none of them runs then.
    pub fn attach(&mut self) -> Result<(), AttachUnavailable> {
        log::listen();
        self.memory.words()[ON].store(1, Release);
        let Some(loaded) = &mut self.loaded else { return Ok(()) };
        let mut links = Vec::new();
        // Those that follow threads as they come first: of one that is found afterwards nothing is
        // missed.
        let mut programs: Vec<_> =
            loaded.object.progs_mut().filter(|program| program.autoload()).collect();
        programs.sort_by_key(|program| {
            let name = program.name().to_string_lossy().into_owned();
            !(name.starts_with("on_sched_process") || name == "on_task_rename")
        });
        for program in &mut programs {
            links.push(program.attach().map_err(|error| {
                let name = program.name().to_string_lossy();
                system(&format!("let the program `{name}` run"), &error)
            })?);
        }
        loaded.links = links;
        Ok(())
    }

    /// Lets none of them run any more; what they counted stays.
    pub fn detach(&mut self) {
        if let Some(loaded) = &mut self.loaded {
            loaded.links.clear();
            loaded.waits.detach();
        }
    }

    /// Lets programs run at the calls in which event loops among the threads wait, so that returns
    /// are seen that do not sleep. Each call costs every process that makes it a little from then
    /// on.
    pub fn watch_waits(&mut self) {
        if self.cycles == AttachedCycles::Unmeasured {
            return;
        }
        let calls: Vec<u32> = self.all().filter_map(|thread| thread.waits_in()).collect();
        let Some(loaded) = &mut self.loaded else { return };
        calls.into_iter().for_each(|call| loaded.waits.watch(call, &CODE.0, &loaded.object));
    }

    /// The calls in which event loops were seen to wait.
    #[must_use]
    pub fn watched_waits(&self) -> &[WatchedWait] {
        self.loaded.as_ref().map_or(&[], |loaded| loaded.waits.calls())
    }

    /// Whatever this process starts from now on is attached, with what that starts.
    pub fn adopt_children(&self, adopt: bool) {
        let pid = if adopt { std::process::id() } else { 0 };
        self.memory.words()[OWN_PID].store(pid.into(), Release);
    }

    /// Gives a thread that is there already a place. It is the caller's to see afterwards that it
    /// still is the thread that was meant, and to call [`AttachPrograms::end`] if it is not.
    ///
    /// # Errors
    /// Why not.
    pub fn add(&self, tid: u32, pid: u32, comm: &[u8]) -> Result<(), SlotError> {
        match self.place_of(tid) {
            None => return Err(SlotError::Number),
            Some(0) => {}
            Some(_) => return Err(SlotError::AlreadyAttached),
        }
        let place = self.pop_free().ok_or(SlotError::Full)?;
        let words = self.thread(place);
        words[TID_PID].store(u64::from(tid) | u64::from(pid) << 32, Relaxed);
        words[START].store(0, Relaxed);
        let mut padded = [0_u8; 16];
        padded.iter_mut().zip(comm.iter().take(15)).for_each(|(to, from)| *to = *from);
        for (word, bytes) in padded.chunks_exact(8).enumerate() {
            let bytes = bytes.try_into().unwrap_or_default();
            words[COMM + word].store(u64::from_ne_bytes(bytes), Relaxed);
        }
        if let AttachedCycles::Measured(Some(deadline_ns)) = self.cycles {
            words[DEADLINE].store(deadline_ns, Relaxed);
        }
        words[STATE_PRIO].store(header::TARDY_ATTACH_LIVE.into(), Release);
        self.set_place(tid, place);
        Ok(())
    }

    /// Takes a thread's place away; [`AttachPrograms::all`] shows it as one that has ended.
    pub fn end(&self, tid: u32) {
        if let Some(place) = self.place_of(tid).filter(|place| *place > 0) {
            self.set_place(tid, 0);
            self.thread(place)[STATE_PRIO].store(header::TARDY_ATTACH_ENDED.into(), Release);
        }
    }

    /// Whether the work of threads is measured, from one expiry of their timers to the next.
    #[must_use]
    pub fn cycles(&self) -> AttachedCycles {
        self.cycles
    }

    /// How often a thread that began found no place.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.memory.words()[REFUSED].load(Relaxed)
    }

    /// The late wake-ups that were handed over since the last time.
    #[must_use]
    pub fn take_late(&self) -> Vec<AttachedLate> {
        if let Some(loaded) = &self.loaded {
            loaded.ring.consume_raw();
        }
        std::mem::take(&mut *self.late.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Late wake-ups for which there was no room.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.memory.words()[DROPPED].load(Relaxed)
    }

    /// For how many threads there is room at one time.
    #[must_use]
    pub fn room(&self) -> usize {
        self.count - 1
    }

    /// Whether this thread has a place.
    #[must_use]
    pub fn has(&self, tid: u32) -> bool {
        self.place_of(tid).is_some_and(|place| place > 0)
    }

    /// Every thread that has a place, also of those that have ended and were not released yet.
    pub fn all(&self) -> impl Iterator<Item = AttachedThread<'_>> {
        (1..self.count).filter_map(|place| {
            let words = self.thread(place);
            let state = words[STATE_PRIO].load(Acquire) as u32;
            if state == header::TARDY_ATTACH_FREE {
                return None;
            }
            let tid = words[TID_PID].load(Relaxed) as u32;
            // Two gave it a place at the same time: the other one is in force.
            let is_lost = self.place_of(tid) != Some(place);
            let has_ended = state == header::TARDY_ATTACH_ENDED || is_lost;
            Some(AttachedThread { place, has_ended, words })
        })
    }

    /// Empties the place of a thread that has ended, for another one.
    pub fn release(&self, place: usize) {
        let words = self.thread(place);
        words[STATE_PRIO].store(header::TARDY_ATTACH_FREE.into(), Release);
        words.iter().for_each(|word| word.store(0, Relaxed));
        self.push_free(place);
    }

    fn thread(&self, place: usize) -> &[AtomicU64] {
        self.threads.words().get(place * THREAD..(place + 1) * THREAD).unwrap_or_default()
    }

    fn place_of(&self, tid: u32) -> Option<usize> {
        let word = self.places.words().get(tid as usize / 4)?.load(Acquire);
        usize::try_from(word >> (tid % 4 * 16) & 0xffff).ok()
    }

    fn set_place(&self, tid: u32, place: usize) {
        let Some(word) = self.places.words().get(tid as usize / 4) else { return };
        let shift = tid % 4 * 16;
        let set = |old: u64| Some(old & !(0xffff << shift) | (place as u64 & 0xffff) << shift);
        let _ = word.fetch_update(AcqRel, Acquire, set);
    }

    fn push_free(&self, place: usize) {
        let words = self.memory.words();
        let tail = words[TAIL].load(Relaxed);
        let at = tail as usize % PLACES;
        let shift = at % 2 * 32;
        let word = &words[FREE + at / 2];
        let old = word.load(Relaxed);
        word.store(old & !(0xffff_ffff << shift) | (place as u64) << shift, Relaxed);
        words[TAIL].store(tail + 1, Release);
    }

    fn pop_free(&self) -> Option<usize> {
        let words = self.memory.words();
        loop {
            let head = words[HEAD].load(Acquire);
            if head >= words[TAIL].load(Acquire) {
                return None;
            }
            if words[HEAD].compare_exchange(head, head + 1, AcqRel, Acquire).is_ok() {
                let at = head as usize % PLACES;
                let word = words[FREE + at / 2].load(Relaxed);
                return usize::try_from(word >> (at % 2 * 32) & 0xffff_ffff).ok();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::layout::Layout;

    fn layout(name: &str) -> Layout {
        Layout::in_object(concat!(env!("OUT_DIR"), "/attach.bpf.o"), name)
    }

    #[test]
    fn settings_are_where_they_are_looked_for() {
        let settings = layout("tardy_attach_settings");
        assert_eq!(settings.size, SETTINGS * 8);
        for (field, at) in [
            ("head", HEAD),
            ("tail", TAIL),
            ("refused", REFUSED),
            ("dropped", DROPPED),
            ("own_pid", OWN_PID),
            ("name", NAME),
            ("on", ON),
            ("free", FREE),
        ] {
            assert_eq!(settings.field(field).0, at * 8, "{field}");
        }
        let names: Vec<String> =
            layout("tardy_attach_config").fields.into_iter().map(|(name, ..)| name).collect();
        let words = ["mode", "target", "switch_has_state", "preempt_count", "pcpu_hot", "response"];
        let more = ["expire_has_time", "soft_timers", "deadline_ns"];
        assert_eq!(names, [&words[..], &more].concat());
    }
}
