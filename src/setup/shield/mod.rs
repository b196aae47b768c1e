//! The shield: keeps tasks, interrupts and kernel work off some CPUs.

pub mod cpuset;
pub mod interrupts;

use serde_json::{Value, json};

use super::{
    SetupError,
    journal::{Journal, JournalError},
};
use crate::{
    run::SetupDoubt,
    sys::{cpus::Cpus, root::Root, tasks},
};
use cpuset::{Backend, Group};
use interrupts::Moved;

/// A shield that stands.
#[derive(Debug)]
pub struct Shield {
    cpus: Cpus,
    rest: Cpus,
    /// Who enters is shielded.
    pub group: Group,
    moved: Moved,
    doubts: Vec<SetupDoubt>,
}

impl Shield {
    /// Puts it up around `cpus`.
    ///
    /// # Errors
    /// It cannot be had; what was changed by then is in the journal.
    pub fn raise(journal: &mut Journal, root: &Root, cpus: &Cpus) -> Result<Self, SetupError> {
        let rest = rest(root, cpus)?;
        let backend = Backend::find(root).map_err(|why| SetupError::Shield { why })?;
        let moved = interrupts::move_off(journal, root, cpus, &rest)?;
        let group = Group::make(journal, root, backend, cpus, &rest)?;
        let doubts = doubts(root, cpus, &moved.stay, group.holds_helpers());
        Ok(Self { cpus: cpus.clone(), rest, group, moved, doubts })
    }

    /// What it found to be doubtful.
    #[must_use]
    pub fn doubts(&self) -> &[SetupDoubt] {
        &self.doubts
    }

    /// The CPUs that are left for everything else.
    #[must_use]
    pub fn rest(&self) -> &Cpus {
        &self.rest
    }

    /// For `run.json`.
    #[must_use]
    pub fn found(&self) -> Value {
        json!({
            "cpus": self.cpus.to_string(),
            "backend": self.group.backend(),
            "interrupts_moved": self.moved.moved,
            "interrupts_stay": self.moved.stay,
            "kernel_tasks_stay": self.group.kernel_tasks,
        })
    }
}

/// The CPUs that are online and not shielded.
fn rest(root: &Root, cpus: &Cpus) -> Result<Cpus, SetupError> {
    let online = root.read("/sys/devices/system/cpu/online").unwrap_or_default();
    let online: Cpus = online.parse().unwrap_or_default();
    let offline = cpus.without(&online);
    if !offline.is_empty() {
        let why = format!("CPU {offline} is not online");
        let remedy = "Name CPUs that /sys/devices/system/cpu/online has.";
        return Err(SetupError::Wish { flag: format!("a shield of CPUs {cpus}"), why, remedy });
    }
    let rest = online.without(cpus);
    if rest.is_empty() {
        return Err(SetupError::Wish {
            flag: format!("a shield of CPUs {cpus}"),
            why: "no CPU would be left for everything else".into(),
            remedy: "Shield fewer; with `tardy run --shield`, measure fewer: --cpus.",
        });
    }
    Ok(rest)
}

/// What this shield does not keep off `cpus`; `stay` are the interrupts that the kernel keeps.
fn doubts(root: &Root, cpus: &Cpus, stay: &[String], holds_helpers: bool) -> Vec<SetupDoubt> {
    let interrupts = (!stay.is_empty())
        .then(|| SetupDoubt::InterruptsStay { what: stay.join(", "), cpus: cpus.to_string() });
    let balance = irqbalance(root).then_some(SetupDoubt::Irqbalance);
    let limits = limits(root, cpus, holds_helpers);
    interrupts.into_iter().chain(limits).chain(balance).collect()
}

/// What only the kernel's command line can add, where it does not have it.
fn limits(root: &Root, cpus: &Cpus, holds_helpers: bool) -> Option<SetupDoubt> {
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
    let mut missing = Vec::new();
    for (option, gain) in [
        ("nohz_full=", "no tick while one task runs"),
        ("rcu_nocbs=", "RCU callbacks elsewhere"),
        ("isolcpus=", "managed interrupts and new kernel threads elsewhere"),
    ] {
        if !covered(option) {
            let flags = if option == "isolcpus=" { "managed_irq,domain," } else { "" };
            missing.push(format!("{option}{flags}{cpus} ({gain})"));
        }
    }
    let helpers = holds_helpers.then(|| {
        "the threads that record run on the same CPUs, below the measured ones: a cgroup v2 \
         partition takes whole processes"
            .to_owned()
    });
    let missing = (!missing.is_empty())
        .then(|| format!("the kernel command line would add {}", missing.join(", ")));
    let what: Vec<String> = missing.into_iter().chain(helpers).collect();
    (!what.is_empty()).then(|| SetupDoubt::ShieldLimits { what: what.join("; ") })
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
    use crate::run::{Caveat, Doubt};

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
        assert!(error.contains("CPU 4 is not online"), "{error}");
    }

    #[test]
    fn what_the_command_line_lacks_for_these_cpus_is_told() {
        let told = |line: &str| {
            let (_directory, root) = machine(&[("proc/cmdline", line)]);
            limits(&root, &cpus("2-3"), false).map(|doubt| format!("{doubt:?}"))
        };
        let all = told("quiet").unwrap();
        for option in ["nohz_full=2-3", "rcu_nocbs=2-3", "isolcpus=managed_irq,domain,2-3"] {
            assert!(all.contains(option), "{all}");
        }
        let some = told("nohz_full=2 isolcpus=managed_irq,domain,2-5 rcu_nocbs=1-7").unwrap();
        assert!(some.contains("nohz_full") && !some.contains("isolcpus"), "{some}");
        assert_eq!(told("nohz_full=2,3 isolcpus=2-3 rcu_nocbs=2-3"), None);
    }

    #[test]
    fn what_a_shield_cannot_keep_off_is_told() {
        let codes = |files: &[(&str, &str)], stay: &[String]| -> Vec<String> {
            let (_directory, root) = machine(files);
            let doubts = doubts(&root, &cpus("2-3"), stay, false).into_iter().map(Doubt::from);
            doubts.map(|doubt| Caveat::from(doubt).code).collect()
        };
        let all = "nohz_full=2-3 isolcpus=2-3 rcu_nocbs=2-3";
        assert_eq!(codes(&[("proc/cmdline", all), ("proc/7/comm", "sh\n")], &[]), [""; 0]);
        assert_eq!(codes(&[("proc/cmdline", "quiet")], &[]), ["shield_limits"]);
        let busy = [("proc/cmdline", all), ("proc/7/comm", "irqbalance\n")];
        assert_eq!(
            codes(&busy, &["36 (virtio1-req.0)".into()]),
            ["interrupts_stay", "irqbalance_runs"]
        );
    }
}
