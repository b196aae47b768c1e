//! Moves interrupts and kernel work off CPUs: each interrupt, those to come, and unbound
//! workqueues.

use std::fs;

use crate::{
    setup::journal::{Change, Journal, JournalError},
    sys::{cpus::Cpus, root::Root, tasks},
};

const INTERRUPTS: &str = "/proc/irq";
const DEFAULT: &str = "/proc/irq/default_smp_affinity";
const WORKQUEUES: &str = "/sys/devices/virtual/workqueue/cpumask";

/// Its result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Moved {
    /// Interrupts that were moved.
    pub moved: u32,
    /// What the kernel refused to move, by name: interrupts that it manages itself.
    pub stay: Vec<String>,
    /// The settings that keep the rest off.
    pub settings: Vec<MovedSetting>,
}

/// A setting that keeps something off shielded CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedSetting {
    path: String,
    name: String,
    /// A mask, not a list.
    is_mask: bool,
}

impl MovedSetting {
    /// What it is to a user.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its file.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether it allows one of `cpus` now; nothing where that cannot be read. An interrupt that is
    /// gone allows none.
    #[must_use]
    pub fn meets(&self, root: &Root, cpus: &Cpus) -> Option<bool> {
        let Some(now) = root.read(&self.path) else {
            return self.is_gone(root).then_some(false);
        };
        let now: Cpus =
            if self.is_mask { Cpus::from_mask(&now).ok()? } else { now.parse().ok()? };
        Some(now.meets(cpus))
    }

    /// Whether the kernel has no such interrupt any more, and shows those that it has.
    fn is_gone(&self, root: &Root) -> bool {
        let file = root.path(&self.path);
        let is_absent = file.parent().is_some_and(|own| matches!(own.try_exists(), Ok(false)));
        !self.is_mask && is_absent && root.path(INTERRUPTS).is_dir()
    }
}

/// A value to write.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    path: String,
    value: String,
    /// What it is to a user.
    name: String,
    /// The interrupt, where it is one.
    irq: Option<i32>,
}

/// Takes interrupts, new interrupts and unbound work from `shielded` and leaves them `rest`.
///
/// # Errors
/// The journal cannot be written; then nothing was changed here.
pub fn move_off(
    journal: &mut Journal,
    root: &Root,
    shielded: &Cpus,
    rest: &Cpus,
) -> Result<Moved, JournalError> {
    let wanted = wanted(root, shielded, rest);
    let change = |wanted: &Wanted| Change::of_file(root, &wanted.path);
    journal.note(wanted.iter().filter_map(change).collect())?;
    let mut result = Moved::default();
    for Wanted { path, value, name, irq } in wanted {
        let written = fs::write(root.path(&path), value);
        let setting = MovedSetting { path, name, is_mask: irq.is_none() };
        match (written, irq) {
            (Ok(()), _) if setting.meets(root, shielded) == Some(false) => {
                result.moved += u32::from(irq.is_some());
                result.settings.push(setting);
            }
            (Err(_), Some(irq)) if !fires_on(root, irq, shielded) => {}
            _ => result.stay.push(setting.name),
        }
    }
    Ok(result)
}

/// Settings of all interrupts, as changes: what a CPU that goes offline makes the kernel forget.
#[must_use]
pub fn all_settings(root: &Root) -> Vec<Change> {
    let paths = interrupts(root).into_iter().map(affinity).chain([DEFAULT.into()]);
    paths.filter_map(|path| Change::of_file(root, &path)).collect()
}

fn interrupts(root: &Root) -> Vec<i32> {
    tasks::numbers(&root.path(INTERRUPTS))
}

fn affinity(irq: i32) -> String {
    format!("/proc/irq/{irq}/smp_affinity_list")
}

fn wanted(root: &Root, shielded: &Cpus, rest: &Cpus) -> Vec<Wanted> {
    // Off the shielded ones; where nothing would remain, on all others.
    let off = |cpus: &Cpus| {
        let left = cpus.without(shielded).common(rest);
        let left = if left.is_empty() { rest.clone() } else { left };
        cpus.meets(shielded).then_some(left)
    };
    let mut all = Vec::new();
    for irq in interrupts(root) {
        let path = affinity(irq);
        let now = root.read(&path).and_then(|text| text.parse::<Cpus>().ok());
        if let Some(left) = now.and_then(|now| off(&now)) {
            let value = left.to_string();
            all.push(Wanted { path, value, name: name(root, irq), irq: Some(irq) });
        }
    }
    for (path, name) in [(DEFAULT, "new interrupts"), (WORKQUEUES, "unbound workqueues")] {
        let now = root.read(path).and_then(|text| Cpus::from_mask(&text).ok());
        if let Some(left) = now.and_then(|now| off(&now)) {
            let value = left.to_mask();
            all.push(Wanted { path: path.into(), value, name: name.into(), irq: None });
        }
    }
    all
}

/// Whether an interrupt reaches one of `cpus`, as far as the kernel says.
fn fires_on(root: &Root, irq: i32, cpus: &Cpus) -> bool {
    let path = format!("/proc/irq/{irq}/effective_affinity_list");
    let effective = root.read(path).and_then(|text| text.parse::<Cpus>().ok());
    effective.is_none_or(|effective| effective.meets(cpus))
}

/// `36 (virtio1-req.0)`: its handlers are directories.
fn name(root: &Root, irq: i32) -> String {
    let entries = fs::read_dir(root.path(format!("/proc/irq/{irq}"))).into_iter().flatten();
    let handlers = entries.flatten().filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> =
        handlers.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    if names.is_empty() { irq.to_string() } else { format!("{irq} ({})", names.join(", ")) }
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
        write("proc/irq/7/smp_affinity_list", "0-3\n");
        write("proc/irq/8/smp_affinity_list", "2\n");
        write("proc/irq/9/smp_affinity_list", "0\n");
        write("proc/irq/default_smp_affinity", "f\n");
        write("sys/devices/virtual/workqueue/cpumask", "4\n");
        let root = Root::at(directory.path());
        let journal = journal_in(directory.path());
        (directory, root, journal)
    }

    fn cpus(list: &str) -> Cpus {
        list.parse().unwrap()
    }

    #[test]
    fn everything_leaves_the_shielded_cpus_and_comes_back() {
        let (_directory, root, mut journal) = machine();
        let moved = move_off(&mut journal, &root, &cpus("2-3"), &cpus("0-1")).unwrap();
        assert_eq!((moved.moved, moved.stay.as_slice()), (2, &[][..]));
        let names: Vec<&str> = moved.settings.iter().map(MovedSetting::name).collect();
        assert_eq!(names, ["7", "8", "new interrupts", "unbound workqueues"]);
        let back = |list: &str| {
            let meets =
                moved.settings.iter().filter(|one| one.meets(&root, &cpus(list)) != Some(false));
            meets.map(MovedSetting::name).collect::<Vec<_>>()
        };
        assert_eq!((back("2-3"), back("1").len()), (Vec::new(), 4));
        let value = |path: &str| root.read(path).unwrap();
        assert_eq!(value("/proc/irq/7/smp_affinity_list"), "0-1");
        assert_eq!(value("/proc/irq/8/smp_affinity_list"), "0-1", "its only CPU is shielded");
        assert_eq!(value("/proc/irq/9/smp_affinity_list"), "0");
        assert_eq!((value(DEFAULT), value(WORKQUEUES)), ("3".into(), "3".into()));
        assert_eq!(journal.undo().failed, [""; 0]);
        assert_eq!(value("/proc/irq/7/smp_affinity_list"), "0-3");
        assert_eq!(value("/proc/irq/8/smp_affinity_list"), "2");
        assert_eq!((value(DEFAULT), value(WORKQUEUES)), ("f".into(), "4".into()));
    }

    #[test]
    fn an_interrupt_that_refuses_is_named_where_it_fires_there() {
        let (directory, root, mut journal) = machine();
        let own = directory.path().join("proc/irq/7");
        fs::create_dir(own.join("nvme0q1")).unwrap();
        fs::write(own.join("effective_affinity_list"), "3\n").unwrap();
        // A list of CPUs that can be read and cannot be written.
        let list = own.join("smp_affinity_list");
        fs::remove_file(&list).unwrap();
        std::os::unix::fs::symlink("/sys/devices/system/cpu/possible", &list).unwrap();
        let off_cpu_0 =
            |journal: &mut Journal| move_off(journal, &root, &cpus("0"), &cpus("1-3")).unwrap();
        assert_eq!(off_cpu_0(&mut journal).stay, [""; 0], "it fires on CPU 3 alone");
        fs::write(own.join("effective_affinity_list"), "0\n").unwrap();
        assert_eq!(off_cpu_0(&mut journal).stay, ["7 (nvme0q1)"]);
        let failed = journal.undo().failed;
        let is_link = |why: &String| why.contains("irq/7") && why.contains("symbolic links");
        assert!(failed.len() == 2 && failed.iter().all(is_link), "{failed:?}");
        fs::write(own.join("effective_affinity_list"), "3\n").unwrap();
        assert!(fires_on(&root, 7, &cpus("3")) && !fires_on(&root, 7, &cpus("0-2")));
        assert!(fires_on(&root, 8, &cpus("0")), "what the kernel does not say may be");
        assert_eq!(name(&root, 7), "7 (nvme0q1)");
    }
}
