//! In what order numbered packets came, in one word: which of the last 64 arrived.

/// What a number is to those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SequencePosition {
    /// After all others.
    Next,
    /// After a later one.
    Behind,
    /// Duplicate. Known only for the last 64 numbers.
    Again,
}

/// Which numbers came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SequenceTracker {
    /// The lowest, and one more than the highest; absent before the first.
    pub span: Option<(u64, u64)>,
    /// Numbers, each counted once.
    pub received: u64,
    /// Those that came after a later one.
    pub reordered: u64,
    /// Duplicates.
    pub duplicated: u64,
    /// The n-th bit: the number n + 1 below the next was here.
    seen: u64,
}

impl SequenceTracker {
    /// Takes note of a number.
    #[inline(always)]
    pub fn note(&mut self, number: u64) -> SequencePosition {
        let (lowest, next) = self.span.unwrap_or((number, number));
        if number >= next {
            let ahead = (number - next).saturating_add(1);
            self.seen = if ahead < 64 { self.seen << ahead } else { 0 } | 1;
            self.span = Some((lowest, number.saturating_add(1)));
            self.received += 1;
            return SequencePosition::Next;
        }
        let behind = next - 1 - number;
        let bit = if behind < 64 { 1 << behind } else { 0 };
        if self.seen & bit != 0 {
            self.duplicated += 1;
            return SequencePosition::Again;
        }
        self.seen |= bit;
        self.span = Some((lowest.min(number), next));
        self.received += 1;
        self.reordered += 1;
        SequencePosition::Behind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(numbers: &[u64]) -> (u64, u64, u64, Option<(u64, u64)>) {
        let mut order = SequenceTracker::default();
        numbers.iter().for_each(|number| {
            order.note(*number);
        });
        (order.received, order.reordered, order.duplicated, order.span)
    }

    #[test]
    fn each_number_counts_once_wherever_it_comes() {
        assert_eq!(noted(&[5, 6, 7]), (3, 0, 0, Some((5, 8))));
        assert_eq!(noted(&[5, 7, 6, 6, 8, 5]), (4, 1, 2, Some((5, 9))));
        assert_eq!(noted(&[9, 4]), (2, 1, 0, Some((4, 10))));
    }

    #[test]
    fn gaps_of_any_length_are_forgotten_in_time() {
        assert_eq!(noted(&[0, 63, 0]), (2, 0, 1, Some((0, 64))));
        assert_eq!(noted(&[0, 64, 0]), (3, 1, 0, Some((0, 65))), "too long ago to tell");
        assert_eq!(noted(&[0, u64::MAX, 0]), (3, 1, 0, Some((0, u64::MAX))));
    }
}
