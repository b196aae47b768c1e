//! Which test runs next, and which tests must run alone.

use std::collections::BTreeMap;

use super::listing::TestCase;

/// How full names of tests begin beside which nothing else may run.
const ALONE: &[&str] = &[
    // They plant values that all of the machine has, and restore them.
    "outside::root_cures::",
    "outside::root_settings::",
    "outside::root_shield::",
    // One tardy at a time has tracefs.
    "outside::root_tracefs::",
    // A real-time thread takes almost half of a CPU.
    "outside::work::a_response_over_the_deadline_names_",
];

/// Whether nothing else may run beside the test.
pub(crate) fn is_alone(full_name: &str) -> bool {
    ALONE.iter().any(|begin| full_name.starts_with(begin))
}

/// A test that is to run.
#[derive(Debug)]
pub(crate) struct Task {
    pub case: TestCase,
    is_alone: bool,
}

/// Tests that wait, and what is known of those that run.
#[derive(Debug)]
pub(crate) struct Schedule {
    waiting: Vec<Task>,
    running: usize,
    /// Whether the test that runs is alone.
    is_alone: bool,
}

impl Schedule {
    /// Those that run alone come first, since nobody has to wait for others to end then. After
    /// them the longest first, so that the end is not spent on one test.
    pub(crate) fn new(cases: Vec<TestCase>, seconds: &BTreeMap<String, f64>) -> Self {
        let rank = |case: &TestCase| {
            let name = case.full_name();
            let seconds = seconds.get(&name).copied().unwrap_or_else(|| guess(case));
            (!is_alone(&name), -seconds, name)
        };
        let mut ranked: Vec<_> = cases.into_iter().map(|case| (rank(&case), case)).collect();
        ranked.sort_by(|(one, _), (other, _)| {
            one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)).then_with(|| one.2.cmp(&other.2))
        });
        let task = |(rank, case): ((bool, f64, String), TestCase)| {
            let (is_beside, ..) = rank;
            Task { is_alone: !is_beside, case }
        };
        let waiting = ranked.into_iter().map(task).collect();
        Self { waiting, running: 0, is_alone: false }
    }

    /// How many tests have not started.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// A test that may start now, if there is one.
    pub(crate) fn next(&mut self) -> Option<Task> {
        if self.is_alone {
            return None;
        }
        // One that waits to be alone is not passed by others: it would wait for ever.
        let first_alone = self.waiting.iter().position(|task| task.is_alone);
        let end = first_alone.map_or(self.waiting.len(), |at| at + 1);
        let may_start = |task: &Task| !task.is_alone || self.running == 0;
        let at = self.waiting[..end].iter().position(may_start)?;
        let task = self.waiting.remove(at);
        self.running += 1;
        self.is_alone = task.is_alone;
        Some(task)
    }

    /// A test has ended.
    pub(crate) fn end(&mut self, task: &Task) {
        self.running -= 1;
        self.is_alone &= !task.is_alone;
    }
}

/// For a test that has never run here: tests of the built programs take longer than unit tests.
fn guess(case: &TestCase) -> f64 {
    if ["outside", "loads", "guests", "truth"].contains(&case.program.name.as_str()) {
        3.0
    } else {
        0.1
    }
}

#[cfg(test)]
mod tests {
    use super::{super::listing::tests::cases, *};

    fn names(schedule: &mut Schedule) -> Vec<String> {
        let mut started = Vec::new();
        while let Some(task) = schedule.next() {
            started.push(task.case.name.clone());
            schedule.end(&task);
        }
        started
    }

    #[test]
    fn the_longest_come_first_after_those_that_are_alone() {
        let seconds = [("outside::a::long", 9.0), ("outside::a::short", 0.5)];
        let seconds = seconds.map(|(name, seconds)| (name.to_owned(), seconds)).into();
        let all = [
            cases("tardy", &["unit::new"]),
            cases("outside", &["a::short", "a::new", "a::long", "root_shield::x"]),
        ];
        let mut schedule = Schedule::new(all.concat(), &seconds);
        let expected = ["root_shield::x", "a::long", "a::new", "a::short", "unit::new"];
        assert_eq!(names(&mut schedule), expected);
    }

    #[test]
    fn nothing_runs_beside_a_test_that_is_alone() {
        let all = cases("outside", &["a::x", "a::y", "root_shield::x", "root_cures::x"]);
        let mut schedule = Schedule::new(all, &BTreeMap::new());
        let first = schedule.next().unwrap();
        assert_eq!(first.case.name, "root_cures::x");
        assert!(schedule.next().is_none());
        schedule.end(&first);
        let second = schedule.next().unwrap();
        assert_eq!(second.case.name, "root_shield::x");
        assert!(schedule.next().is_none());
        schedule.end(&second);
        let (third, fourth) = (schedule.next().unwrap(), schedule.next().unwrap());
        assert_eq!((third.case.name.as_str(), fourth.case.name.as_str()), ("a::x", "a::y"));
        assert_eq!(schedule.len(), 0);
    }

    #[test]
    fn a_test_is_alone_by_how_its_full_name_begins() {
        assert!(is_alone("outside::root_shield::a_test"));
        assert!(!is_alone("tardy::root_shield::a_test"));
    }
}
