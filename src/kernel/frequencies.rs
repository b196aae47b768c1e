//! The frequencies that the kernel set CPUs to; `struct tardy_frequency` of `recorder.h`.

use std::{
    ops::RangeInclusive,
    sync::atomic::{
        AtomicU64,
        Ordering::{Acquire, Relaxed},
        fence,
    },
};

use super::header;

/// How many are kept, of all CPUs together.
pub(super) const KEPT: usize = header::TARDY_FREQUENCIES as usize;

/// The words of each.
pub(super) const WORDS: usize = 2;

/// The kernel set a CPU to a frequency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetFrequency {
    /// `CLOCK_MONOTONIC` ns.
    pub at_ns: u64,
    /// What it asked for; what the processor makes of it is its own affair.
    pub khz: u32,
}

/// Those of `cpu` within `span` (`CLOCK_MONOTONIC` ns) and the one before it, by time, of `count`
/// that were ever written to these `words`. One that was overwritten is left out.
pub(super) fn read(
    words: &[AtomicU64],
    count: u64,
    cpu: u32,
    span: &RangeInclusive<u64>,
) -> Vec<SetFrequency> {
    let oldest = count.saturating_sub(KEPT as u64);
    let mut found = Vec::new();
    for index in (oldest..count).rev() {
        let Some(set) = one(words, index, cpu).filter(|set| set.at_ns <= *span.end()) else {
            continue;
        };
        found.push(set);
        if set.at_ns <= *span.start() {
            break;
        }
    }
    found.reverse();
    found
}

/// One of `cpu`; `None` if it is of another CPU, or is just being written.
#[expect(clippy::cast_possible_truncation, reason = "the upper half is the frequency")]
fn one(words: &[AtomicU64], index: u64, cpu: u32) -> Option<SetFrequency> {
    let at = usize::try_from(index).ok()? % KEPT * WORDS;
    let at_ns = words[at].load(Acquire);
    let word = words[at + 1].load(Relaxed);
    fence(Acquire);
    let is_whole = at_ns != 0 && words[at].load(Relaxed) == at_ns;
    (is_whole && word as u32 == cpu).then_some(SetFrequency { at_ns, khz: (word >> 32) as u32 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::layout::Layout;

    fn written(sets: &[(u64, u32, u32)]) -> Vec<AtomicU64> {
        let words: Vec<AtomicU64> = (0..KEPT * WORDS).map(|_| AtomicU64::new(0)).collect();
        for (index, (at_ns, cpu, khz)) in sets.iter().enumerate() {
            let at = index % KEPT * WORDS;
            words[at].store(*at_ns, Relaxed);
            words[at + 1].store(u64::from(*cpu) | u64::from(*khz) << 32, Relaxed);
        }
        words
    }

    fn khz(words: &[AtomicU64], count: u64, cpu: u32, span: RangeInclusive<u64>) -> Vec<u32> {
        read(words, count, cpu, &span).iter().map(|set| set.khz).collect()
    }

    #[test]
    fn those_of_a_cpu_come_with_the_one_before_and_without_those_of_others() {
        let words =
            written(&[(10, 1, 800), (20, 1, 900), (30, 0, 700), (40, 1, 1_000), (90, 1, 1)]);
        assert_eq!(khz(&words, 5, 1, 30..=50), [900, 1_000]);
        assert_eq!(khz(&words, 5, 1, 40..=50), [1_000], "it is set at the beginning");
        assert_eq!(khz(&words, 5, 0, 0..=50), [700]);
        assert_eq!(khz(&words, 5, 1, 0..=5), [0_u32; 0], "nothing is known of before");
        assert_eq!(khz(&words, 0, 1, 0..=99), [0_u32; 0]);
    }

    #[test]
    fn what_is_overwritten_or_half_written_is_not_known() {
        let many: Vec<_> = (1..=KEPT as u64 + 1).map(|at_ns| (at_ns, 1, at_ns as u32)).collect();
        let words = written(&many);
        let count = many.len() as u64;
        assert_eq!(khz(&words, count, 1, 1..=1), [0_u32; 0], "the first is gone");
        assert_eq!(khz(&words, count, 1, 2..=3), [2, 3]);
        words[2].store(0, Relaxed);
        assert_eq!(khz(&words, count, 1, 2..=3), [3]);
    }

    #[test]
    fn an_entry_is_laid_out_as_the_compiler_of_the_programs_does_it() {
        let layout = Layout::of("tardy_frequency");
        assert_eq!(layout.size, WORDS * 8);
        let (at, cpu, khz) = (layout.field("at_ns"), layout.field("cpu"), layout.field("khz"));
        assert_eq!((at, cpu, khz), ((0, 8), (8, 4), (12, 4)));
    }
}
