//! The shield: keeps tasks, interrupts and kernel work off some CPUs.

pub mod cpuset;
pub mod interrupts;
mod watch;

use super::{
    SetupError,
    journal::{Journal, JournalError},
};
use crate::{
    run::{BootOption, FoundShield},
    sys::{cpus::Cpus, root::Root, tasks},
    units,
};
use cpuset::{Backend, Group};
use interrupts::Moved;
pub use watch::{ShieldLoss, ShieldWatch};

/// A shield that stands.
#[derive(Debug)]
pub struct Shield {
    cpus: Cpus,
    rest: Cpus,
    /// The group whose members are shielded.
    pub group: Group,
    moved: Moved,
    gaps: ShieldGaps,
    watch: ShieldWatch,
}

/// What a shield does not keep off its CPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShieldGaps {
    /// The shielded CPUs.
    pub cpus: String,
    /// Interrupts that the kernel keeps there, by number and name.
    pub interrupts: Vec<String>,
    /// What the kernel's command line could add and does not.
    pub options: Vec<BootOption>,
    /// The threads that record cannot leave these CPUs.
    pub helpers_inside: bool,
    /// irqbalance runs, and moves interrupts back every few seconds.
    pub irqbalance: bool,
}

impl Shield {
    /// Puts it up around `cpus`.
    ///
    /// # Errors
    /// It is not available; what was changed by then is in the journal.
    pub fn raise(journal: &mut Journal, root: &Root, cpus: &Cpus) -> Result<Self, SetupError> {
        let rest = rest(root, cpus)?;
        let backend = Backend::find(root).map_err(|why| SetupError::Shield { why })?;
        let moved = interrupts::move_off(journal, root, cpus, &rest)?;
        let group = Group::make(journal, root, backend, cpus, &rest)?;
        let gaps = gaps(root, cpus, &moved.stay, group.holds_helpers());
        let watch = ShieldWatch::begin(root, cpus, group.settings(), moved.settings.clone());
        Ok(Self { cpus: cpus.clone(), rest, group, moved, gaps, watch })
    }

    /// What it does not keep off its CPUs.
    #[must_use]
    pub const fn gaps(&self) -> &ShieldGaps {
        &self.gaps
    }

    /// Whether it still stands.
    #[must_use]
    pub const fn watch(&self) -> &ShieldWatch {
        &self.watch
    }

    /// The CPUs that are left for everything else.
    #[must_use]
    pub fn rest(&self) -> &Cpus {
        &self.rest
    }

    /// For `run.json`.
    #[must_use]
    pub fn found(&self) -> FoundShield {
        FoundShield {
            cpus: self.cpus.to_string(),
            backend: self.group.backend().to_owned(),
            interrupts_moved: self.moved.moved,
            interrupts_stay: self.moved.stay.clone(),
            kernel_tasks_stay: self.group.kernel_tasks,
        }
    }
}

/// What was asked for, in an error.
fn flag(cpus: &Cpus) -> String {
    format!("a shield of {}", units::cpus(cpus))
}

/// The CPUs that are online and not shielded.
fn rest(root: &Root, cpus: &Cpus) -> Result<Cpus, SetupError> {
    let online = root.read("/sys/devices/system/cpu/online").unwrap_or_default();
    let online: Cpus = online.parse().unwrap_or_default();
    let offline = cpus.without(&online);
    if !offline.is_empty() {
        let why = format!("not online: {}", units::cpus(&offline));
        let remedy = "Name CPUs that /sys/devices/system/cpu/online has.";
        return Err(SetupError::Choice { flag: flag(cpus), why, remedy });
    }
    let rest = online.without(cpus);
    if rest.is_empty() {
        return Err(SetupError::Choice {
            flag: flag(cpus),
            why: "no CPU would be left for everything else".into(),
            remedy: "Shield fewer; with `tardy run --shield`, measure fewer: --cpus.",
        });
    }
    Ok(rest)
}

/// What this shield does not keep off `cpus`; `stay` are the interrupts that the kernel keeps.
fn gaps(root: &Root, cpus: &Cpus, stay: &[String], helpers_inside: bool) -> ShieldGaps {
    ShieldGaps {
        cpus: cpus.to_string(),
        interrupts: stay.to_vec(),
        options: missing_options(root, cpus),
        helpers_inside,
        irqbalance: irqbalance(root),
    }
}

/// What only the kernel's command line can add, where it does not have it for these CPUs.
fn missing_options(root: &Root, cpus: &Cpus) -> Vec<BootOption> {
    let line = root.read("/proc/cmdline").unwrap_or_default();
    let covered = |option: &str| {
        let values = line.split_whitespace().filter_map(|word| word.strip_prefix(option));
        let lists = values.map(|value| {
            let numbers = |part: &&str| part.starts_with(|c: char| c.is_ascii_digit());
            value.split(',').filter(numbers).collect::<Vec<_>>().join(",")
        });
        let holds = |list: String| match list.parse::<Cpus>() {
            Ok(list) => cpus.without(&list).is_empty(),
            Err(_) => false,
        };
        lists.into_iter().any(holds)
    };
    BootOption::ALL.into_iter().filter(|option| !covered(option.key())).collect()
}

/// Whether irqbalance runs; it moves interrupts back every few seconds.
fn irqbalance(root: &Root) -> bool {
    let is = |pid: i32| tasks::name(root, pid).is_some_and(|name| name == "irqbalance");
    tasks::numbers(&root.path("/proc")).into_iter().any(is)
}

impl From<JournalError> for SetupError {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = Root::at(directory.path());
        (directory, root)
    }

    fn cpus(list: &str) -> Cpus {
        list.parse().unwrap()
    }

    #[test]
    fn a_shield_leaves_a_cpu_and_takes_only_what_is_online() {
        let (_directory, root) = machine(&[("sys/devices/system/cpu/online", "0-3\n")]);
        assert_eq!(rest(&root, &cpus("2-3")), Ok(cpus("0-1")));
        let error = rest(&root, &cpus("0-3")).unwrap_err().to_string();
        assert!(error.contains("no CPU would be left"), "{error}");
        let error = rest(&root, &cpus("3-4")).unwrap_err().to_string();
        assert!(error.contains("not online: CPU 4"), "{error}");
    }

    #[test]
    fn what_the_command_line_lacks_for_these_cpus_is_reported() {
        let missing = |line: &str| {
            let (_directory, root) = machine(&[("proc/cmdline", line)]);
            missing_options(&root, &cpus("2-3"))
        };
        assert_eq!(missing("quiet"), BootOption::ALL);
        let some = missing("nohz_full=2 isolcpus=managed_irq,domain,2-5 rcu_nocbs=1-7");
        assert_eq!(some, [BootOption::NohzFull]);
        assert_eq!(missing("nohz_full=2,3 isolcpus=2-3 rcu_nocbs=2-3"), []);
    }

    #[test]
    fn irqbalance_is_found_by_its_name() {
        let runs = |name: &str| irqbalance(&machine(&[("proc/7/comm", name)]).1);
        assert_eq!((runs("irqbalance\n"), runs("sh\n")), (true, false));
    }
}
