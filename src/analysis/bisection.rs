//! Where in a row of kernels (or of anything) something changed, found by halving.
//!
//! It is taken for granted that there is one change: all before it are like the first, and all from
//! it on like the last. What can be told from neither is skipped, as `git bisect skip` does, and
//! the answer is then a range.

/// What is said of one of the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BisectSide {
    /// As the first is.
    Good,
    /// As the last is.
    Bad,
    /// Neither can be said.
    Open,
}

/// A search in a row whose first is good and whose last is bad.
#[derive(Debug, Clone)]
pub struct Bisection {
    found: Vec<Option<BisectSide>>,
}

impl Bisection {
    /// In a row of `count`, at least 2.
    #[must_use]
    pub fn new(count: usize) -> Self {
        let mut found = vec![None; count.max(2)];
        found[0] = Some(BisectSide::Good);
        if let Some(last) = found.last_mut() {
            *last = Some(BisectSide::Bad);
        }
        Self { found }
    }

    /// The last good one, and the first bad one after it.
    #[must_use]
    pub fn ends(&self) -> (usize, usize) {
        let is = |side: BisectSide| move |own: &Option<BisectSide>| *own == Some(side);
        let good = self.found.iter().rposition(is(BisectSide::Good)).unwrap_or(0);
        let after = self.found.iter().skip(good + 1).position(is(BisectSide::Bad));
        (good, after.map_or(self.found.len() - 1, |at| good + 1 + at))
    }

    /// The one to look at next: of those that nothing is known of, the nearest to the middle. None
    /// where all is said.
    #[must_use]
    pub fn next(&self) -> Option<usize> {
        let (good, bad) = self.ends();
        let unknown = (good + 1..bad).filter(|at| self.found.get(*at) == Some(&None));
        // Twice the distance, so that halves count.
        unknown.min_by_key(|at| (2 * at).abs_diff(good + bad))
    }

    /// What was found of one.
    pub fn note(&mut self, at: usize, side: BisectSide) {
        if let Some(found) = self.found.get_mut(at) {
            *found = Some(side);
        }
    }

    /// Those between the last good and the first bad one, which could be told from neither.
    #[must_use]
    pub fn open(&self) -> std::ops::Range<usize> {
        let (good, bad) = self.ends();
        good + 1..bad
    }

    /// How many are looked at in a row of this length where each can be told, at most.
    #[must_use]
    pub fn steps(count: usize) -> u32 {
        count.saturating_sub(1).max(1).next_power_of_two().ilog2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches a row in which all from `first_bad` on are bad; those of `open` cannot be told.
    fn search(count: usize, first_bad: usize, open: &[usize]) -> (Bisection, u32) {
        let mut search = Bisection::new(count);
        let mut steps = 0;
        while let Some(at) = search.next() {
            steps += 1;
            let side = if at < first_bad { BisectSide::Good } else { BisectSide::Bad };
            search.note(at, if open.contains(&at) { BisectSide::Open } else { side });
        }
        (search, steps)
    }

    #[test]
    fn every_place_of_the_change_is_found_in_the_steps_that_were_said() {
        for count in 2..40 {
            for first_bad in 1..count {
                let (search, steps) = search(count, first_bad, &[]);
                assert_eq!(search.ends(), (first_bad - 1, first_bad), "{first_bad} of {count}");
                assert!(search.open().is_empty());
                assert!(steps <= Bisection::steps(count), "{steps} of {count}");
            }
        }
    }

    #[test]
    fn what_cannot_be_told_leaves_a_range_and_never_a_wrong_answer() {
        for open in 1..9 {
            for first_bad in 1..10 {
                let (search, _) = search(10, first_bad, &[open, open + 1]);
                let (good, bad) = search.ends();
                assert!(good < first_bad && first_bad <= bad, "{open} {first_bad}");
                assert!(search.open().all(|at| at == open || at == open + 1));
            }
        }
        let (search, _) = search(6, 3, &[1, 2, 3, 4]);
        assert_eq!((search.ends(), search.open()), ((0, 5), 1..5));
    }

    #[test]
    fn of_two_nothing_is_left_to_look_at() {
        assert_eq!((Bisection::new(2).next(), Bisection::new(2).ends()), (None, (0, 1)));
        assert_eq!((Bisection::steps(2), Bisection::steps(3), Bisection::steps(9)), (0, 1, 3));
    }
}
