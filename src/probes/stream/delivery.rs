//! Delivery of the packets of one flow: arrived, late, duplicated, out of order. Pure.

/// Numbers of packets that arrived lately; whatever is older counts as having been there.
const WINDOW: u64 = 1 << 20;

/// What a packet that arrived is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    /// Here for the first time.
    First,
    /// Duplicate.
    Again,
}

/// Counts of one flow. Numbers below the first recorded one belong to the warm-up: they are known,
/// and not counted.
#[derive(Debug)]
pub(super) struct DeliveryCounts {
    recorded_from: u64,
    late_over_ns: i64,
    /// One bit a number, of the [`WINDOW`] numbers up to the highest.
    seen: Box<[u64]>,
    highest: Option<u64>,
    /// Packets that arrived, each once, those of the warm-up too.
    pub known: u64,
    /// Of these, the recorded ones.
    pub received: u64,
    /// Of the recorded ones, how many came later than the limit.
    pub late: u64,
    /// Of the recorded ones, how many were duplicates.
    pub duplicated: u64,
    /// Of the recorded ones, how many came after a later one.
    pub reordered: u64,
}

impl DeliveryCounts {
    /// Nothing has arrived; what takes longer than `late_over_ns` will be late.
    #[must_use]
    pub(super) fn new(recorded_from: u64, late_over_ns: i64) -> Self {
        Self {
            recorded_from,
            late_over_ns,
            seen: vec![0; (WINDOW / 64) as usize].into_boxed_slice(),
            highest: None,
            known: 0,
            received: 0,
            late: 0,
            duplicated: 0,
            reordered: 0,
        }
    }

    /// Whether a number belongs to the measured time.
    #[must_use]
    pub(super) const fn is_recorded(&self, number: u64) -> bool {
        number >= self.recorded_from
    }

    /// Highest number that arrived, plus one.
    #[must_use]
    pub(super) fn numbers_seen(&self) -> u64 {
        self.highest.map_or(0, |highest| highest.saturating_add(1))
    }

    /// Takes note of a packet that took `latency_ns`.
    pub(super) fn arrived(&mut self, number: u64, latency_ns: i64) -> Delivery {
        let is_recorded = u64::from(self.is_recorded(number));
        let next = self.numbers_seen();
        if number >= next {
            self.forget(next, number);
            self.highest = Some(number);
        } else if next - number > WINDOW || self.has(number) {
            self.duplicated += is_recorded;
            return Delivery::Again;
        } else {
            self.reordered += is_recorded;
        }
        self.set(number);
        self.known += 1;
        self.received += is_recorded;
        self.late += is_recorded * u64::from(latency_ns > self.late_over_ns);
        Delivery::First
    }

    /// The places of these numbers have been others'.
    fn forget(&mut self, from: u64, to: u64) {
        if to - from >= WINDOW {
            self.seen.fill(0);
            return;
        }
        for number in from..=to {
            let (word, bit) = place(number);
            if let Some(word) = self.seen.get_mut(word) {
                *word &= !bit;
            }
        }
    }

    fn has(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        self.seen.get(word).is_some_and(|word| word & bit != 0)
    }

    fn set(&mut self, number: u64) {
        let (word, bit) = place(number);
        if let Some(word) = self.seen.get_mut(word) {
            *word |= bit;
        }
    }
}

const fn place(number: u64) -> (usize, u64) {
    let number = number % WINDOW;
    ((number / 64) as usize, 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn counts(account: &DeliveryCounts) -> [u64; 4] {
        [account.received, account.late, account.duplicated, account.reordered]
    }

    fn of(numbers: &[(u64, i64)]) -> DeliveryCounts {
        let mut account = DeliveryCounts::new(2, 1_000);
        for (number, latency_ns) in numbers {
            account.arrived(*number, *latency_ns);
        }
        account
    }

    #[test]
    fn each_packet_counts_once_whatever_else_it_is() {
        // 4 is lost; 3 comes late and after 5; 5 comes twice, the second time very late.
        let account = of(&[(2, 10), (5, 10), (3, 2_000), (5, 9_000), (6, 1_000)]);
        assert_eq!(counts(&account), [4, 1, 1, 1]);
        assert_eq!(account.numbers_seen(), 7);
    }

    #[test]
    fn the_warm_up_is_known_and_not_counted() {
        let account = of(&[(1, 5_000), (0, 5_000), (1, 5_000), (2, 0)]);
        assert_eq!((counts(&account), account.known), ([1, 0, 0, 0], 3));
    }

    #[test]
    fn what_is_older_than_the_window_is_taken_for_a_second_one() {
        let mut account = DeliveryCounts::new(0, 0);
        account.arrived(0, 0);
        account.arrived(WINDOW + 9, 0);
        assert_eq!(account.arrived(9, 0), Delivery::Again);
        assert_eq!(account.arrived(10, 0), Delivery::First);
        // Far ahead: nothing that was seen has its place any more.
        account.arrived(u64::MAX, 0);
        assert_eq!(account.arrived(u64::MAX - 1, 0), Delivery::First);
        assert_eq!(account.numbers_seen(), u64::MAX);
    }

    proptest! {
        #[test]
        fn counts_are_those_of_a_set(numbers in prop::collection::vec(0_u64..200, 0..400)) {
            let (mut account, mut seen) = (DeliveryCounts::new(0, 0), BTreeSet::new());
            let (mut again, mut after) = (0, 0);
            for number in numbers {
                let is_after = seen.last().is_some_and(|last| number < *last);
                let delivery = account.arrived(number, 0);
                let is_first = seen.insert(number);
                prop_assert_eq!(delivery == Delivery::First, is_first);
                again += u64::from(!is_first);
                after += u64::from(is_first && is_after);
            }
            prop_assert_eq!(counts(&account), [seen.len() as u64, 0, again, after]);
        }
    }
}
