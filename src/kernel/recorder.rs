//! Reads what the programs recorded, out of memory that they continue writing.

use std::{
    fs, io,
    ops::Range,
    os::fd::{AsRawFd, BorrowedFd, OwnedFd},
    sync::{
        Arc,
        atomic::{
            AtomicU64,
            Ordering::{Acquire, Relaxed},
        },
    },
};

use crate::sys::mapped::MappedWords;

use super::{event::Event, frequencies::SetFrequency, memory::RecorderMemory, window::Window};

/// Words of an event.
const EVENT: usize = 4;
/// The newest events, among which one may be claimed by a program but not written yet.
const IN_FLIGHT: u64 = 16;
/// Events next to each other are out of order by less: one program interrupts the other.
const OUT_OF_ORDER_NS: u64 = 1_000_000;
/// The divisor of the part of a ring that counts as overwritten already: it may be, before it is
/// read.
const MARGIN: u64 = 16;

/// The events of all CPUs and the stacks: read while they are written. Cheap to clone.
#[derive(Debug, Clone)]
pub struct EventReader {
    memory: Arc<RecorderMemory>,
    events: Option<Arc<Events>>,
    programs: Arc<Vec<OwnedFd>>,
    lost: Arc<AtomicU64>,
    counts_steal: bool,
}

/// A ring of events for each CPU.
#[derive(Debug)]
pub(super) struct Events {
    mapped: MappedWords,
    slots: u64,
    cpus: u32,
}

impl Events {
    pub(super) fn map(descriptor: BorrowedFd<'_>, slots: u32, cpus: u32) -> io::Result<Self> {
        let words = slots as usize * cpus as usize * EVENT;
        Ok(Self { mapped: MappedWords::new(descriptor, words)?, slots: slots.into(), cpus })
    }

    fn words(&self, cpu: u32, index: u64) -> Option<&[AtomicU64]> {
        let slot = u64::from(cpu) * self.slots + index % self.slots;
        let at = usize::try_from(slot).ok()? * EVENT;
        self.mapped.words().get(at..at + EVENT)
    }

    /// When an event happened, ns; that of the one before it in its slot while it is not written.
    fn time(&self, cpu: u32, index: u64) -> u64 {
        self.words(cpu, index).map_or(0, |words| words[0].load(Relaxed))
    }

    /// Number of an event, from `oldest` to `head`, from which on none happened at `to_ns` or
    /// before.
    fn after(&self, cpu: u32, to_ns: u64, oldest: u64, head: u64) -> u64 {
        let later_ns = to_ns.saturating_add(OUT_OF_ORDER_NS);
        let (mut low, mut high) = (oldest, head);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.time(cpu, middle) > later_ns {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        low
    }

    fn read(&self, cpu: u32, index: u64) -> Option<[u64; EVENT]> {
        let words = self.words(cpu, index)?;
        // The second word is written last.
        let head = words[1].load(Acquire);
        Some([words[0].load(Relaxed), head, words[2].load(Relaxed), words[3].load(Relaxed)])
    }
}

impl EventReader {
    pub(super) fn new(
        memory: Arc<RecorderMemory>,
        events: Option<Events>,
        programs: Vec<OwnedFd>,
    ) -> Self {
        let (events, lost) = (events.map(Arc::new), Arc::default());
        Self { memory, events, programs: programs.into(), lost, counts_steal: false }
    }

    /// The same with or without events of stolen time.
    pub(super) fn with_steal(self, counts_steal: bool) -> Self {
        Self { counts_steal, ..self }
    }

    /// Whether the time that the hypervisor takes is among the events.
    #[must_use]
    pub const fn counts_steal(&self) -> bool {
        self.counts_steal
    }

    /// What was lost so far: events that were overwritten while they were read, stacks that could
    /// not be walked or were overwritten before they were asked for, and runs of programs that the
    /// kernel left out because the same program was interrupted.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let left_out: u64 = self.programs.iter().map(misses).sum();
        self.lost.load(Relaxed) + self.memory.stacks_lost() + left_out
    }

    /// Instructions that the verifier followed in each of the loaded programs. Kernels before 5.16
    /// do not state it.
    #[cfg(test)]
    pub(super) fn verified_instructions(&self) -> Vec<Option<u64>> {
        self.programs.iter().map(|program| stated(program, "verified_insns:")).collect()
    }

    /// Numbers of CPUs are below this; those that are offline have no events. 0 where nothing is
    /// recorded.
    #[must_use]
    pub fn cpus(&self) -> u32 {
        self.events.as_ref().map_or(0, |events| events.cpus)
    }

    /// The time of which all events of `cpu` are still there, `CLOCK_MONOTONIC` ns: from 0 while
    /// none was overwritten, up to the newest one. Empty where nothing is recorded.
    #[must_use]
    pub fn recorded(&self, cpu: u32) -> Range<u64> {
        let Some(events) = self.events.as_ref().filter(|events| cpu < events.cpus) else {
            return 0..0;
        };
        let head = self.memory.head(cpu);
        let last = (1..=IN_FLIGHT.min(head)).map(|back| events.time(cpu, head - back));
        let to_ns = last.max().unwrap_or(0);
        let oldest = head.saturating_sub(events.slots);
        let kept = oldest + events.slots / MARGIN;
        if oldest == 0 { 0..to_ns } else { events.time(cpu, kept)..to_ns }
    }

    /// Appends the events of `cpu` from `from_ns` to `to_ns` (`CLOCK_MONOTONIC`) by time, preceded
    /// by what defines the context at `from_ns`: the last switch, and after it the last idle state
    /// and the entries still open. False where the record does not, or no longer, reach back so
    /// far; what there is has been appended then.
    #[must_use]
    pub fn events(&self, cpu: u32, from_ns: u64, to_ns: u64, into: &mut Vec<Event>) -> bool {
        let Some(events) = self.events.as_ref().filter(|events| cpu < events.cpus) else {
            return false;
        };
        let head = self.memory.head(cpu);
        let mut window = Window::new(from_ns, to_ns);
        let oldest = head.saturating_sub(events.slots);
        let mut index = events.after(cpu, to_ns, oldest, head);
        // Where it was overwritten meanwhile, the search went astray.
        if index <= self.memory.head(cpu).saturating_sub(events.slots) {
            index = head;
        }
        while index > oldest && !window.is_complete() {
            index -= 1;
            let Some(words) = events.read(cpu, index) else { continue };
            let Some(event) = Event::decode(cpu, words) else { continue };
            let fresh = head - index > IN_FLIGHT || !events.is_stale(index, &event);
            if fresh {
                window.take(index, event);
                if let Some(entry) = Event::decode_entry(cpu, words) {
                    window.take(index, entry);
                }
            }
        }
        // What has been overwritten since may be torn.
        let torn = self.memory.head(cpu).saturating_sub(events.slots);
        let lost = window.drop_before(torn);
        self.lost.fetch_add(lost, Relaxed);
        let reaches = window.reaches_back() || (head <= events.slots && head > 0);
        window.into_order(into);
        reaches && lost == 0
    }

    /// The frequencies that the kernel set `cpu` to from `from_ns` to `to_ns`
    /// (`CLOCK_MONOTONIC`), and the last one before that, by time; none where it set none, or does
    /// not tell.
    #[must_use]
    pub fn frequencies(&self, cpu: u32, from_ns: u64, to_ns: u64) -> Vec<SetFrequency> {
        self.memory.frequencies(cpu, &(from_ns..=to_ns))
    }

    /// The functions of a stack, innermost first; `None` if it was overwritten since.
    #[must_use]
    pub fn stack(&self, number: u64) -> Option<Vec<u64>> {
        let stack = self.memory.stack(number);
        if stack.is_none() {
            self.lost.fetch_add(1, Relaxed);
        }
        stack
    }
}

impl Events {
    /// Whether an event is left over from the ring's last round: much older than one before it.
    fn is_stale(&self, index: u64, event: &Event) -> bool {
        (1..=IN_FLIGHT.min(index))
            .any(|back| self.time(event.cpu, index - back) > event.at_ns + OUT_OF_ORDER_NS)
    }
}

/// Runs of a program that were left out, as the kernel counts them.
fn misses(program: &OwnedFd) -> u64 {
    stated(program, "recursion_misses:").unwrap_or(0)
}

/// A number that the kernel states about a loaded program; `None` if it does not.
fn stated(program: &OwnedFd, field: &str) -> Option<u64> {
    let path = format!("/proc/self/fdinfo/{}", program.as_raw_fd());
    stated_in(&fs::read_to_string(path).ok()?, field)
}

fn stated_in(text: &str, field: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(field))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::{
        kernel::{event::EventKind, memory::WORDS},
        sys::mapped::sealed_memory,
    };

    const SLOTS: u32 = 64;

    fn file(words: usize) -> std::os::fd::OwnedFd {
        sealed_memory(c"tardy-test", words as u64 * 8).unwrap()
    }

    /// Memory of two CPUs in which the test plays the programs.
    fn recorder() -> EventReader {
        let memory = RecorderMemory::map(file(WORDS).as_fd()).unwrap();
        let words = SLOTS as usize * 2 * EVENT;
        let events = Events::map(file(words).as_fd(), SLOTS, 2).unwrap();
        EventReader::new(memory.into(), Some(events), Vec::new())
    }

    /// As a program writes it; kinds are those of the header.
    fn write(recorder: &EventReader, cpu: u32, at_ns: u64, kind: u64, a: u64) {
        let index = recorder.memory.head(cpu);
        let slot = u64::from(cpu * SLOTS) + index % u64::from(SLOTS);
        let at = usize::try_from(slot).unwrap() * EVENT;
        let words = recorder.events.as_ref().unwrap().mapped.words();
        for (word, value) in words[at..at + EVENT].iter().zip([at_ns, kind, a, 0]) {
            word.store(value, Relaxed);
        }
        recorder.memory.set_head(cpu, index + 1);
    }

    fn times(recorder: &EventReader, cpu: u32, from_ns: u64, to_ns: u64) -> (bool, Vec<u64>) {
        let mut events = Vec::new();
        let reaches = recorder.events(cpu, from_ns, to_ns, &mut events);
        (reaches, events.iter().map(|event| event.at_ns).collect())
    }

    #[test]
    fn a_window_is_read_in_order_from_the_cpu_that_is_asked_for() {
        let recorder = recorder();
        for at_ns in [10, 20, 40, 30, 50] {
            write(&recorder, 1, at_ns, 17, 0);
        }
        write(&recorder, 0, 35, 17, 0);
        assert_eq!(times(&recorder, 1, 20, 45), (true, vec![20, 30, 40]));
        assert_eq!(times(&recorder, 0, 20, 45), (true, vec![35]));
        assert!(!times(&recorder, 2, 20, 45).0, "no such CPU");
    }

    #[test]
    fn what_was_overwritten_is_not_passed_off_as_all() {
        let recorder = recorder();
        for at_ns in 1..=200 {
            write(&recorder, 0, at_ns, 17, 0);
        }
        assert!(times(&recorder, 0, 195, 200).0);
        let (reaches, times) = times(&recorder, 0, 100, 200);
        assert_eq!((reaches, times.len(), times[0]), (false, 64, 137));
    }

    #[test]
    fn an_event_that_is_claimed_and_not_written_yet_is_passed_over() {
        let recorder = recorder();
        for at_ns in 1..=70 {
            write(&recorder, 0, at_ns * 10_000_000, 17, 0);
        }
        recorder.memory.set_head(0, 71);
        let (reaches, times) = times(&recorder, 0, 690_000_000, 700_000_000);
        assert_eq!((reaches, times), (true, vec![690_000_000, 700_000_000]));
    }

    #[test]
    fn the_context_comes_before_the_window() {
        let recorder = recorder();
        let irq = |line: u64| 4 | line << 32;
        let before = [
            (5, 11, 1),
            (6, irq(23), 0),
            (10, 1, 0),
            (11, irq(24), 0),
            (12, 5, 24),
            (13, irq(25), 0),
        ];
        for (at_ns, kind, a) in before.into_iter().chain([(14, 11, 2)]) {
            write(&recorder, 0, at_ns, kind, a);
        }
        write(&recorder, 0, 30, 5, 25);
        let mut events = Vec::new();
        assert!(recorder.events(0, 20, 40, &mut events));
        let kinds: Vec<EventKind> = events.iter().map(|event| event.kind).collect();
        let expected = [
            EventKind::Switch { comm: [0; 16], ahead: None },
            EventKind::IrqEntry { line: 25, action: [0; 16] },
            EventKind::Idle { state: 2 },
            EventKind::IrqExit { line: 25 },
        ];
        assert_eq!(kinds, expected, "what was before the last switch has ended with it");
    }

    #[test]
    fn an_interrupt_of_the_timer_is_an_entry_and_an_exit_in_order() {
        let recorder = recorder();
        write(&recorder, 0, 10, 1, 0);
        write(&recorder, 0, 35, 17, 0);
        write(&recorder, 0, 40, 23, 10);
        write(&recorder, 0, 70, 23, 15);
        assert_eq!(times(&recorder, 0, 20, 60), (true, vec![10, 30, 35, 40, 55]));
        let (_, within) = times(&recorder, 0, 34, 38);
        assert_eq!(within, [10, 30, 35], "it is still in it at the end");
    }

    #[test]
    fn an_interrupt_or_a_switch_ends_an_idle_state() {
        let recorder = recorder();
        let after_switch = [(1, 10, 0), (11, 15, 2), (23, 30, 10), (11, 32, 1), (1, 45, 0)];
        for (kind, at_ns, a) in after_switch {
            write(&recorder, 0, at_ns, kind, a);
        }
        let idle = |from_ns| {
            let mut events = Vec::new();
            assert!(recorder.events(0, from_ns, 60, &mut events));
            let state = |event: &Event| match event.kind {
                EventKind::Idle { state } => Some((event.at_ns, state)),
                _ => None,
            };
            events.iter().filter_map(state).collect::<Vec<_>>()
        };
        let none = Event::NOT_IDLE;
        assert_eq!(idle(11), [(15, 2), (20, none), (32, 1), (45, none)]);
        assert_eq!(idle(18), [(15, 2), (20, none), (32, 1), (45, none)]);
        assert_eq!(idle(25), [(32, 1), (45, none)], "an interrupt has come by then");
        assert_eq!(idle(40), [(32, 1), (45, none)]);
    }

    #[test]
    fn what_is_still_there_begins_a_little_behind_what_is_overwritten_next() {
        let recorder = recorder();
        assert_eq!((recorder.recorded(0), recorder.recorded(9)), (0..0, 0..0));
        assert_eq!(recorder.cpus(), 2);
        (1..=64).for_each(|n| write(&recorder, 0, n * 10, 17, 0));
        assert_eq!(recorder.recorded(0), 0..640);
        (65..=100).for_each(|n| write(&recorder, 0, n * 10, 17, 0));
        assert_eq!(recorder.recorded(0), 410..1000, "37 is the oldest, and four are the margin");
    }

    #[test]
    fn an_old_window_is_found_where_the_newer_events_are_not_read() {
        let recorder = recorder();
        for n in 1..=200 {
            write(&recorder, 0, n * 10_000_000, if n % 5 == 0 { 1 } else { 17 }, 0);
        }
        let (reaches, found) = times(&recorder, 0, 1_500_000_000, 1_520_000_000);
        assert_eq!((reaches, found.len()), (true, 4), "{found:?}");
        let events = recorder.events.as_ref().unwrap();
        assert_eq!(events.after(0, 1_520_000_000, 136, 200), 152);
        let (reaches, found) = times(&recorder, 0, 100_000_000, 200_000_000);
        assert_eq!((reaches, found), (false, vec![]), "that was overwritten");
    }

    #[test]
    fn a_stack_is_there_until_its_place_is_taken_and_then_counts_as_lost() {
        let recorder = recorder();
        recorder.memory.set_stack(7, &[3, 2, 1]);
        assert_eq!(recorder.stack(7), Some(vec![3, 2, 1]));
        assert_eq!((recorder.stack(7 + 1024), recorder.lost()), (None, 1));
    }

    #[test]
    fn runs_that_the_kernel_left_out_are_read_from_fdinfo() {
        let text = "pos:\t0\nprog_type:\t26\nrecursion_misses:\t12\nverified_insns:\t9\n";
        let found = |text| stated_in(text, "recursion_misses:");
        assert_eq!((found(text), found("pos:\t0\n")), (Some(12), None));
    }
}
