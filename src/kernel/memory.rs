//! The memory that the programs share with this process; `struct tardy_memory` of `recorder.h`.

use std::{
    io,
    ops::RangeInclusive,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc,
        atomic::{
            AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
            fence,
        },
    },
};

use tardy_hot::stages::{self, ThreadRecord};

use crate::sys::mapped::MappedWords;

use super::{
    TracingUnavailable,
    frequencies::{self, SetFrequency},
    header,
};

// Sizes and offsets are in words of 8 bytes.
const SETTINGS: usize = 16;
const CPUS: usize = header::TARDY_CPUS as usize;
const CPU: usize = 16;
const THREADS: usize = header::TARDY_THREADS as usize;
const THREAD: usize = 16;
const STACKS: usize = header::TARDY_STACKS as usize;
const FRAMES: usize = header::TARDY_FRAMES as usize;
const STACK: usize = 2 + FRAMES;
const HASH_SLOTS: usize = header::TARDY_HASH_SLOTS as usize;

const CPUS_AT: usize = SETTINGS;
const THREADS_AT: usize = CPUS_AT + CPUS * CPU;
const STACKS_AT: usize = THREADS_AT + THREADS * THREAD;
const HASH_AT: usize = STACKS_AT + STACKS * STACK;
const FREQUENCIES_AT: usize = HASH_AT + HASH_SLOTS / 4;
/// All of it.
pub(super) const WORDS: usize = FREQUENCIES_AT + frequencies::KEPT * frequencies::WORDS;

const _: () = assert!(size_of::<ThreadRecord>() == THREAD * 8);

/// The words of `struct tardy_settings`.
const LATE_NS: usize = 0;
const MAX_PRIO_AND_FACTOR: usize = 1;
const MIN_COUNT: usize = 2;
const STACKS_LOST: usize = 4;
const FREQUENCIES: usize = 6;

/// Words of `struct tardy_cpu`.
#[cfg(test)]
const STEAL_NS: usize = 11;
#[cfg(test)]
const STEAL_READ_NS: usize = 12;

/// No thread is measured: no priority is that small.
const NO_THREAD: i32 = -2;

/// Multipliers that are tried for the hash table of threads.
const ATTEMPTS: u32 = 10_000;

/// The mapping.
#[derive(Debug)]
pub(super) struct RecorderMemory {
    mapped: MappedWords,
    /// For other processes, which map it too.
    descriptor: OwnedFd,
}

impl RecorderMemory {
    pub(super) fn map(descriptor: BorrowedFd<'_>) -> io::Result<Self> {
        let mapped = MappedWords::new(descriptor, WORDS)?;
        let memory = Self { mapped, descriptor: descriptor.try_clone_to_owned()? };
        // The smallest preempt count is still to be found.
        memory.word(MIN_COUNT).store(u64::from(u32::MAX), Relaxed);
        memory.watch(NO_THREAD, ThreadHash { factor: 0 });
        memory.set_late_ns(u64::MAX);
        Ok(memory)
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        &self.mapped.words()[at]
    }

    pub(super) fn set_late_ns(&self, ns: u64) {
        self.word(LATE_NS).store(ns, Relaxed);
    }

    fn watch(&self, max_prio: i32, hash: ThreadHash) {
        let prio = u64::from(max_prio.cast_unsigned());
        self.word(MAX_PRIO_AND_FACTOR).store(prio | u64::from(hash.factor) << 32, Release);
    }

    /// Sets the threads that the programs trace, instead of those before: the n-th of `tids` gets
    /// the n-th record, emptied.
    pub(super) fn follow(&self, tids: &[(i32, i32)]) -> Result<(), TracingUnavailable> {
        let numbers: Vec<u32> = tids.iter().map(|&(tid, _)| tid.cast_unsigned()).collect();
        let too_many = || TracingUnavailable::TooManyThreads { threads: tids.len() };
        let (hash, slots) = thread_hash(&numbers).ok_or_else(too_many)?;
        self.watch(NO_THREAD, hash);
        for (at, &tid) in numbers.iter().enumerate() {
            let record = THREADS_AT + at * THREAD;
            for word in &self.mapped.words()[record..record + THREAD] {
                word.store(0, Relaxed);
            }
            self.records()[at].tid.store(tid, Relaxed);
        }
        for (word, four) in
            self.mapped.words()[HASH_AT..FREQUENCIES_AT].iter().zip(slots.chunks_exact(4))
        {
            let packed = four.iter().rev().fold(0, |sum, &entry| sum << 16 | u64::from(entry));
            word.store(packed, Relaxed);
        }
        self.watch(tids.iter().map(|&(_, prio)| prio).max().unwrap_or(NO_THREAD), hash);
        Ok(())
    }

    /// Events that were ever written on a CPU.
    pub(super) fn head(&self, cpu: u32) -> u64 {
        let cpu = (cpu as usize).min(CPUS - 1);
        self.word(CPUS_AT + cpu * CPU).load(Acquire)
    }

    /// Stacks that could not be walked.
    pub(super) fn stacks_lost(&self) -> u64 {
        self.word(STACKS_LOST).load(Relaxed)
    }

    /// The frequencies that `cpu` was set to within `span`, and the last one before it.
    pub(super) fn frequencies(&self, cpu: u32, span: &RangeInclusive<u64>) -> Vec<SetFrequency> {
        let count = self.word(FREQUENCIES).load(Acquire);
        frequencies::read(&self.mapped.words()[FREQUENCIES_AT..], count, cpu, span)
    }

    /// The functions of a stack, innermost first; `None` if another one took its place.
    pub(super) fn stack(&self, number: u64) -> Option<Vec<u64>> {
        let words = self.stack_words(number);
        if number == 0 || words[0].load(Acquire) != number {
            return None;
        }
        let frames = usize::try_from(words[1].load(Relaxed) >> 32).ok()?.min(FRAMES);
        let functions = words[2..2 + frames].iter().map(|word| word.load(Relaxed)).collect();
        fence(Acquire);
        (words[0].load(Relaxed) == number).then_some(functions)
    }

    fn stack_words(&self, number: u64) -> &[AtomicU64] {
        let start = STACKS_AT + usize::try_from(number).unwrap_or(0) % STACKS * STACK;
        &self.mapped.words()[start..start + STACK]
    }

    #[cfg(test)]
    pub(super) fn set_head(&self, cpu: u32, head: u64) {
        self.word(CPUS_AT + cpu as usize * CPU).store(head, Release);
    }

    /// What the hypervisor has taken from a CPU by now, ns, and when that was read.
    #[cfg(test)]
    pub(super) fn set_steal(&self, cpu: u32, steal_ns: u64, read_ns: u64) {
        let cpu = CPUS_AT + cpu as usize * CPU;
        self.word(cpu + STEAL_READ_NS).store(read_ns, Relaxed);
        self.word(cpu + STEAL_NS).store(steal_ns, Release);
    }

    #[cfg(test)]
    pub(super) fn set_stack(&self, number: u64, functions: &[u64]) {
        let words = self.stack_words(number);
        words[1].store((functions.len() as u64) << 32, Relaxed);
        for (word, &function) in words[2..].iter().zip(functions) {
            word.store(function, Relaxed);
        }
        words[0].store(number, Release);
    }

    fn records(&self) -> &[ThreadRecord] {
        stages::records(&self.mapped.words()[THREADS_AT..STACKS_AT])
    }
}

/// How a thread's number becomes its slot.
#[derive(Debug, Clone, Copy)]
struct ThreadHash {
    factor: u32,
}

impl ThreadHash {
    fn slot(self, tid: u32) -> usize {
        (tid.wrapping_mul(self.factor) >> header::TARDY_HASH_SHIFT) as usize
    }
}

/// A hash without collisions, so that one lookup decides whether a thread is measured, and its
/// table; `None` if there are too many threads, or none is found.
fn thread_hash(tids: &[u32]) -> Option<(ThreadHash, Vec<u16>)> {
    if tids.len() > THREADS {
        return None;
    }
    // Threads that were started one after the other differ in their last bits, which this leaves.
    let plain = ThreadHash { factor: 1 << header::TARDY_HASH_SHIFT };
    let mixed = (0..ATTEMPTS).map(|attempt| ThreadHash {
        factor: 0x9e37_79b1_u32.wrapping_add(attempt.wrapping_mul(0x6a09_e668)) | 1,
    });
    std::iter::once(plain).chain(mixed).find_map(|hash| Some((hash, slots(tids, hash)?)))
}

fn slots(tids: &[u32], hash: ThreadHash) -> Option<Vec<u16>> {
    let mut slots = vec![0_u16; HASH_SLOTS];
    for (entry, &tid) in (1_u16..).zip(tids) {
        let slot = &mut slots[hash.slot(tid)];
        if *slot != 0 {
            return None;
        }
        *slot = entry;
    }
    Some(slots)
}

/// The records of the measured threads, in memory that the BPF programs write.
#[derive(Debug, Clone)]
pub struct ThreadRecords {
    memory: Arc<RecorderMemory>,
}

impl ThreadRecords {
    pub(super) fn of(memory: Arc<RecorderMemory>) -> Self {
        Self { memory }
    }

    /// The record of the n-th thread that was followed; absent beyond what there is room for.
    #[must_use]
    pub fn get(&self, n: usize) -> Option<&ThreadRecord> {
        self.memory.records().get(n)
    }

    /// Where another process finds that record: memory to map, and how many words of 8 bytes lie
    /// before it.
    #[must_use]
    pub fn place(&self, n: usize) -> Option<(BorrowedFd<'_>, usize)> {
        (n < THREADS).then(|| (self.memory.descriptor.as_fd(), THREADS_AT + n * THREAD))
    }
}

#[cfg(test)]
mod tests {
    use std::{mem::offset_of, sync::atomic::AtomicU32};

    use super::*;
    use crate::kernel::layout::Layout;

    fn memory() -> RecorderMemory {
        let file = crate::sys::mapped::sealed_memory(c"tardy-test", WORDS as u64 * 8).unwrap();
        RecorderMemory::map(file.as_fd()).unwrap()
    }

    #[test]
    fn the_memory_is_laid_out_as_the_compiler_of_the_programs_does_it() {
        let layout = Layout::of("tardy_memory");
        let words = [
            ("settings", 0, SETTINGS),
            ("cpus", CPUS_AT, CPUS * CPU),
            ("threads", THREADS_AT, THREADS * THREAD),
            ("stacks", STACKS_AT, STACKS * STACK),
            ("thread_hash", HASH_AT, HASH_SLOTS / 4),
            ("frequencies", FREQUENCIES_AT, WORDS - FREQUENCIES_AT),
        ];
        assert_eq!(layout.fields, words.map(|(name, at, n)| (name.to_owned(), at * 8, n * 8)));
        assert_eq!(layout.size, WORDS * 8);
        for (name, words) in [("tardy_cpu", CPU), ("tardy_stack", STACK)] {
            assert_eq!(Layout::of(name).size, words * 8, "{name}");
        }
    }

    #[test]
    fn settings_heads_and_stacks_are_where_they_are_looked_for() {
        let settings = Layout::of("tardy_settings");
        for (field, at, bytes) in [
            ("late_ns", LATE_NS * 8, 8),
            ("max_prio", MAX_PRIO_AND_FACTOR * 8, 4),
            ("hash_factor", MAX_PRIO_AND_FACTOR * 8 + 4, 4),
            ("min_preempt_count", MIN_COUNT * 8, 4),
            ("stacks_lost", STACKS_LOST * 8, 8),
        ] {
            assert_eq!(settings.field(field), (at, bytes), "{field}");
        }
        let cpu = Layout::of("tardy_cpu");
        let fields = ["head", "steal_ns", "steal_read_ns"].map(|field| cpu.field(field));
        assert_eq!(fields, [(0, 8), (STEAL_NS * 8, 8), (STEAL_READ_NS * 8, 8)]);
        let stack = Layout::of("tardy_stack");
        let fields = ["number", "frames", "frame"].map(|field| stack.field(field));
        assert_eq!(fields, [(0, 8), (12, 4), (16, FRAMES * 8)]);
    }

    #[test]
    fn a_thread_has_the_fields_of_the_header_in_their_places() {
        let layout = Layout::of("tardy_thread");
        macro_rules! field {
            ($name:ident: $type:ty) => {
                let at = (offset_of!(ThreadRecord, $name), size_of::<$type>());
                assert_eq!(layout.field(stringify!($name)), at, stringify!($name));
            };
        }
        field!(expires_ns: AtomicU64);
        field!(entry_ns: AtomicU64);
        field!(callback_ns: AtomicU64);
        field!(waking_ns: AtomicU64);
        field!(switch_ns: AtomicU64);
        field!(cpu: AtomicU32);
        field!(switch_cpu: AtomicU32);
        field!(in_softirq: AtomicU32);
        field!(tid: AtomicU32);
        field!(stopped_from_ns: AtomicU64);
        field!(stopped_until_ns: AtomicU64);
        field!(pending: AtomicU64);
        assert_eq!(layout.size, size_of::<ThreadRecord>());
    }

    #[test]
    fn every_followed_thread_finds_its_record_and_no_other_does() {
        let memory = memory();
        let tids: Vec<(i32, i32)> = (0..64).map(|n| (1000 + 70_000 * n, 9)).collect();
        memory.follow(&tids).unwrap();
        let found = |tid: i32| {
            let words = memory.mapped.words();
            let word = words[MAX_PRIO_AND_FACTOR].load(Relaxed);
            let hash = ThreadHash { factor: (word >> 32) as u32 };
            let slot = hash.slot(tid.cast_unsigned());
            let entry = words[HASH_AT + slot / 4].load(Relaxed) >> (slot % 4 * 16) & 0xffff;
            let record = memory.records().get(usize::try_from(entry).unwrap().checked_sub(1)?)?;
            (record.tid.load(Relaxed) == tid.cast_unsigned()).then_some(entry - 1)
        };
        for (n, &(tid, _)) in (0..).zip(&tids) {
            assert_eq!(found(tid), Some(n), "{tid}");
            assert_eq!(found(tid + 1), None);
        }
    }

    #[test]
    fn another_process_finds_a_record_by_its_place() {
        let records = ThreadRecords::of(memory().into());
        let (descriptor, at) = records.place(3).unwrap();
        let other = MappedWords::new(descriptor, at + THREAD).unwrap();
        records.get(3).unwrap().waking_ns.store(7, Relaxed);
        let [record] = stages::records(&other.words()[at..]) else { panic!("one record") };
        assert_eq!(record.waking_ns.load(Relaxed), 7);
        assert!(records.place(THREADS).is_none());
    }

    #[test]
    fn as_many_threads_as_there_are_records_have_slots_when_started_in_a_row() {
        let row: Vec<u32> = (3_000_000..3_000_000 + 4096).collect();
        assert!(thread_hash(&row).is_some());
        let spread: Vec<u32> = (0..500_u32).map(|n| n * 8191 + n * n).collect();
        assert!(thread_hash(&spread).is_some());
        let more: Vec<u32> = (0..4097).collect();
        assert!(thread_hash(&more).is_none());
    }

    #[test]
    fn no_thread_is_traced_before_the_first_one_is_followed() {
        let memory = memory();
        let prio = |memory: &RecorderMemory| {
            (memory.word(MAX_PRIO_AND_FACTOR).load(Relaxed) as u32).cast_signed()
        };
        assert_eq!(prio(&memory), NO_THREAD);
        memory.follow(&[(5, 9), (6, 120)]).unwrap();
        assert_eq!(prio(&memory), 120, "the lowest priority decides");
        memory.follow(&[]).unwrap();
        assert_eq!(prio(&memory), NO_THREAD);
    }
}
