//! Takes the siblings of measured CPUs offline: hardware threads that share a core with them.

use std::fs;

use super::{
    SetupError,
    journal::{Change, Journal},
    shield::{cpuset::Backend, interrupts},
    threads::plain,
};
use crate::sys::{cpus::Cpus, root::Root};

const FLAG: &str = "--no-smt-sibling";

/// Takes them offline and says which they were; none where cores have one hardware thread.
///
/// # Errors
/// A sibling is measured itself, the journal cannot be written, or the kernel refuses.
pub fn offline(journal: &mut Journal, root: &Root, cpus: &Cpus) -> Result<Cpus, SetupError> {
    let siblings = siblings(root, cpus)?;
    if siblings.is_empty() {
        return Ok(siblings);
    }
    // What the kernel forgets when a CPU goes: it comes back by itself with none of these.
    let mut changes = vec![Change::of_affinities(root)];
    changes.extend(interrupts::all_settings(root));
    changes.extend(cpusets(root));
    changes.extend(siblings.iter().filter_map(|cpu| Change::of_file(root, &path(cpu))));
    journal.note(changes)?;
    for cpu in siblings.iter() {
        let path = path(cpu);
        let written = fs::write(root.path(&path), "0");
        if let Err(error) = written {
            return Err(refused(format!("{path}: {}", plain(&error))));
        }
        if root.read(&path).as_deref() != Some("0") {
            return Err(refused(format!("CPU {cpu} stays online")));
        }
    }
    Ok(siblings)
}

fn refused(why: String) -> SetupError {
    let remedy = "Run as root; where a CPU must stay online, measure others or switch SMT off in \
                  the firmware.";
    SetupError::Choice { flag: FLAG.into(), why, remedy }
}

fn path(cpu: u32) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/online")
}

/// The other hardware threads of the core of `cpu`; none if that is not known.
#[must_use]
pub fn siblings_of(root: &Root, cpu: u32) -> Cpus {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    let list = root.read(path).and_then(|text| text.parse::<Cpus>().ok()).unwrap_or_default();
    list.iter().filter(|sibling| *sibling != cpu).collect()
}

fn siblings(root: &Root, cpus: &Cpus) -> Result<Cpus, SetupError> {
    let mut all = Vec::new();
    for cpu in cpus.iter() {
        all.extend(siblings_of(root, cpu).iter());
    }
    let all: Cpus = all.into_iter().collect();
    let both = all.common(cpus);
    if both.is_empty() {
        return Ok(all);
    }
    Err(SetupError::Choice {
        flag: FLAG.into(),
        why: format!("CPUs {both} share cores with each other and are all measured"),
        remedy: "Name one CPU of each core with --cpus.",
    })
}

/// The CPUs of every cpuset of version 1, which shrink with a CPU that goes; children first, so
/// that parents are restored before them.
fn cpusets(root: &Root) -> Vec<Change> {
    fn below(root: &Root, directory: &str, found: &mut Vec<Change>) {
        let entries = fs::read_dir(root.path(directory)).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.path().is_dir()) {
            let child = format!("{directory}/{}", entry.file_name().to_string_lossy());
            below(root, &child, found);
            found.extend(Change::of_file(root, &format!("{child}/cpuset.cpus")));
        }
    }
    let mut found = Vec::new();
    if let Ok(Backend::V1(mount)) = Backend::find(root) {
        below(root, &mount, &mut found);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::journal::tests::journal_in;

    fn machine() -> (tempfile::TempDir, Root, Journal) {
        let directory = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (cpu, list) in [(0, "0,2\n"), (1, "1,3\n"), (2, "0,2\n"), (3, "1,3\n")] {
            let cpu = format!("sys/devices/system/cpu/cpu{cpu}");
            write(&format!("{cpu}/topology/thread_siblings_list"), list);
            write(&format!("{cpu}/online"), "1\n");
        }
        write("proc/irq/7/smp_affinity_list", "2\n");
        write("proc/mounts", "cgroup /cg cgroup rw,cpuset 0 0\n");
        write("cg/a/cpuset.cpus", "1-2\n");
        write("cg/a/b/cpuset.cpus", "2\n");
        let root = Root::at(directory.path());
        let journal = journal_in(directory.path());
        (directory, root, journal)
    }

    #[test]
    fn siblings_go_and_come_back_with_what_the_kernel_forgot() {
        let (_directory, root, mut journal) = machine();
        let gone = offline(&mut journal, &root, &"0-1".parse().unwrap()).unwrap();
        assert_eq!(gone.to_string(), "2-3");
        assert_eq!(root.read(path(2)).unwrap(), "0");
        // As a kernel does when CPU 2 goes.
        for (file, left) in [
            ("/proc/irq/7/smp_affinity_list", "0-1"),
            ("/cg/a/cpuset.cpus", "1"),
            ("/cg/a/b/cpuset.cpus", ""),
        ] {
            fs::write(root.path(file), left).unwrap();
        }
        let undone = journal.undo();
        assert_eq!(undone.failed, [""; 0]);
        let at = |what: &str| undone.put_back.iter().position(|words| words.contains(what));
        assert!(at("cpu2/online") < at("irq/7"), "the CPU must be there first: {undone:?}");
        assert!(at("/cg/a/cpuset.cpus") < at("/cg/a/b/cpuset.cpus"), "{undone:?}");
        assert_eq!(root.read("/proc/irq/7/smp_affinity_list").unwrap(), "2");
        assert_eq!(root.read(path(3)).unwrap(), "1");
    }

    #[test]
    fn siblings_that_are_all_measured_are_an_error() {
        let (_directory, root, mut journal) = machine();
        let error = offline(&mut journal, &root, &"0,2".parse().unwrap()).unwrap_err();
        assert!(error.to_string().contains("CPUs 0,2 share cores"), "{error}");
    }

    #[test]
    fn a_core_with_one_thread_has_none() {
        let (_directory, root, mut journal) = machine();
        let list = "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list";
        fs::write(root.path(list), "0\n").unwrap();
        assert!(offline(&mut journal, &root, &"0".parse().unwrap()).unwrap().is_empty());
    }
}
