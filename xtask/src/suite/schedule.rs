//! Which test runs next, and which tests must not run beside which.

use std::collections::{BTreeMap, BTreeSet};

use super::listing::TestCase;

/// Whom a test may run beside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    /// Nothing else runs.
    Alone,
    /// No other test of the group with this name runs.
    #[cfg_attr(not(test), expect(dead_code, reason = "no two tests need it so far"))]
    Named(&'static str),
}

/// Exclusive groups: how full names begin, and the group of these tests. A test is in the first
/// group that matches; one that is in none runs beside all but those that are alone.
const GROUPS: &[(&str, Group)] = &[
    // They plant values that all of the machine has, and restore them.
    ("outside::root_cures::", Group::Alone),
    ("outside::root_settings::", Group::Alone),
    ("outside::root_shield::", Group::Alone),
    // One tardy at a time has tracefs.
    ("outside::root_tracefs::", Group::Alone),
    // A real-time thread takes almost half of a CPU.
    ("outside::work::a_response_over_the_deadline_names_", Group::Alone),
];

/// The group of a test.
pub(crate) fn group(full_name: &str) -> Option<Group> {
    let found = GROUPS.iter().find(|(begin, _)| full_name.starts_with(begin));
    found.map(|(_, group)| *group)
}

/// A test that is to run.
#[derive(Debug)]
pub(crate) struct Task {
    pub case: TestCase,
    group: Option<Group>,
}

/// Tests that wait, and the groups of those that run.
#[derive(Debug)]
pub(crate) struct Schedule {
    waiting: Vec<Task>,
    running: usize,
    busy: BTreeSet<Group>,
}

impl Schedule {
    /// Those that run alone come first, since nobody has to wait for others to end then. After
    /// them the longest first, so that the end is not spent on one test.
    pub(crate) fn new(cases: Vec<TestCase>, seconds: &BTreeMap<String, f64>) -> Self {
        let rank = |case: &TestCase| {
            let name = case.full_name();
            let seconds = seconds.get(&name).copied().unwrap_or_else(|| guess(case));
            (group(&name) != Some(Group::Alone), -seconds, name)
        };
        let mut ranked: Vec<_> = cases.into_iter().map(|case| (rank(&case), case)).collect();
        ranked.sort_by(|(one, _), (other, _)| {
            one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)).then_with(|| one.2.cmp(&other.2))
        });
        let task =
            |(rank, case): ((bool, f64, String), TestCase)| Task { group: group(&rank.2), case };
        Self { waiting: ranked.into_iter().map(task).collect(), running: 0, busy: BTreeSet::new() }
    }

    /// How many tests have not started.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// A test that may start now, if there is one.
    pub(crate) fn next(&mut self) -> Option<Task> {
        if self.busy.contains(&Group::Alone) {
            return None;
        }
        let may_start = |task: &Task| match task.group {
            None => true,
            Some(Group::Alone) => self.running == 0,
            Some(group) => !self.busy.contains(&group),
        };
        // One that waits to be alone is not passed by others: it would wait for ever.
        let first_alone = self.waiting.iter().position(|task| task.group == Some(Group::Alone));
        let end = first_alone.map_or(self.waiting.len(), |at| at + 1);
        let at = self.waiting[..end].iter().position(may_start)?;
        let task = self.waiting.remove(at);
        self.running += 1;
        self.busy.extend(task.group);
        Some(task)
    }

    /// A test has ended.
    pub(crate) fn end(&mut self, task: &Task) {
        self.running -= 1;
        if let Some(group) = task.group {
            self.busy.remove(&group);
        }
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
    fn of_a_named_group_one_runs_at_a_time() {
        let mut schedule = Schedule::new(cases("x", &["a", "b", "c"]), &BTreeMap::new());
        for task in &mut schedule.waiting[..2] {
            task.group = Some(Group::Named("port"));
        }
        let first = schedule.next().unwrap();
        let beside = schedule.next().unwrap();
        assert_eq!((first.case.name.as_str(), beside.case.name.as_str()), ("a", "c"));
        assert!(schedule.next().is_none());
        schedule.end(&first);
        assert_eq!(schedule.next().unwrap().case.name, "b");
    }

    #[test]
    fn a_group_is_found_by_how_a_name_begins() {
        assert_eq!(group("outside::root_shield::a_test"), Some(Group::Alone));
        assert_eq!(group("tardy::root_shield::a_test"), None);
    }
}
