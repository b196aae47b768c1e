//! Processes, and the CPU time that each has used: what other programs do beside a run.

pub use rustix::param::clock_ticks_per_second;

use super::{cpus::Cpus, root::Root, tasks};

/// A process as `/proc/PID/stat` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// That of its parent.
    pub parent: i32,
    /// Clock ticks from boot to its start.
    pub start: u64,
    /// Its name.
    pub name: String,
    /// Its CPU time, clock ticks.
    pub ticks: u64,
    /// That of its children that have ended, clock ticks.
    pub children_ticks: u64,
}

/// All that are there, but for tasks of the kernel.
#[must_use]
pub fn all(root: &Root) -> Vec<Process> {
    let of = |pid: i32| parse(pid, &root.read(format!("/proc/{pid}/stat"))?);
    let numbers = tasks::numbers(&root.path("/proc")).into_iter();
    numbers.filter_map(of).filter(|process| !is_of_kernel(process)).collect()
}

/// Whether a process may run on one of these CPUs; true if the kernel does not tell.
#[must_use]
pub fn may_use_any(root: &Root, pid: i32, cpus: &Cpus) -> bool {
    tasks::cpus(root, pid).is_none_or(|own| !own.common(cpus).is_empty())
}

/// `kthreadd` and its children.
const fn is_of_kernel(process: &Process) -> bool {
    process.pid == 2 || process.parent == 2
}

/// The name may hold spaces and brackets.
fn parse(pid: i32, stat: &str) -> Option<Process> {
    let (head, rest) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        start: number(19)?,
        name,
        ticks: number(11)? + number(12)?,
        children_ticks: number(13)? + number(14)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        let stat = "7 (a) b (c)) S 3 7 7 0 -1 4194560 9 0 0 0 11 22 33 44 20 0 1 0 555 0";
        let process = parse(7, stat).unwrap();
        assert_eq!((process.parent, process.start, process.name.as_str()), (3, 555, "a) b (c)"));
        assert_eq!((process.ticks, process.children_ticks), (33, 77));
        assert_eq!(parse(7, "7 (a) S 3"), None);
    }

    #[test]
    fn this_process_is_among_all_and_no_task_of_the_kernel_is() {
        let all = all(&Root::default());
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(all.iter().any(|process| process.pid == own));
        assert!(all.iter().all(|process| !is_of_kernel(process)));
    }
}
