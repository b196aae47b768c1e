//! Caveats about the shield: what it cannot do, and that it did not stay.

use serde::Serialize;

use super::values::{list, moment};
use crate::{run::caveat::Effect, units};

/// A caveat about what keeps tasks and interrupts off the measured CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ShieldCaveat {
    /// Interrupts that the kernel does not let go of shielded CPUs.
    InterruptsStay {
        /// Their numbers and names, `36 (virtio1-req.0)`.
        interrupts: Vec<String>,
        /// The shielded CPUs, `2-3`.
        cpus: String,
    },
    /// What a shield that is put up at run time cannot do.
    Limits {
        /// The shielded CPUs, `2-3`.
        cpus: String,
        /// What the kernel's command line could add.
        options: Vec<BootOption>,
        /// The threads that record cannot leave the shielded CPUs: a cgroup v2 partition takes
        /// whole processes.
        helpers_inside: bool,
    },
    /// irqbalance works against the shield.
    Irqbalance,
    /// Its cgroup went away or was changed during the run.
    Lost {
        /// The shielded CPUs, `2-3`.
        cpus: String,
        /// The file that was found otherwise.
        path: String,
        /// What was in it when the shield stood.
        was: String,
        /// What was found; `None` if the file was gone.
        now: Option<String>,
        /// When that was seen, ns from the start of the run; absent at its end.
        at_ns: Option<i64>,
    },
    /// What had been moved off could reach the shielded CPUs again.
    InterruptsBack {
        /// Numbers and names, `36 (virtio1-req.0)`.
        interrupts: Vec<String>,
        /// The shielded CPUs, `2-3`.
        cpus: String,
    },
}

/// What a parameter of the kernel's command line does that a shield at run time does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BootOption {
    /// `nohz_full=`
    NohzFull,
    /// `rcu_nocbs=`
    RcuNocbs,
    /// `isolcpus=`
    Isolcpus,
}

impl BootOption {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::NohzFull, Self::RcuNocbs, Self::Isolcpus];

    /// As it begins on the command line.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::NohzFull => "nohz_full=",
            Self::RcuNocbs => "rcu_nocbs=",
            Self::Isolcpus => "isolcpus=",
        }
    }

    /// "nohz_full=2-3 (no tick while one task runs)"
    fn text(self, cpus: &str) -> String {
        let (flags, gain) = match self {
            Self::NohzFull => ("", "no tick while one task runs"),
            Self::RcuNocbs => ("", "RCU callbacks elsewhere"),
            Self::Isolcpus => {
                ("managed_irq,domain,", "managed interrupts and new kernel threads elsewhere")
            }
        };
        format!("{}{flags}{cpus} ({gain})", self.key())
    }
}

/// "the kernel command line would add nohz_full=2-3 (no tick while one task runs)"
fn limits(cpus: &str, options: &[BootOption], helpers_inside: bool) -> String {
    let options = (!options.is_empty()).then(|| {
        let options = list(options, ", ", |option| option.text(cpus));
        format!("the kernel command line would add {options}")
    });
    let helpers = helpers_inside.then(|| {
        "the threads that record run on the same CPUs, below the measured ones: a cgroup v2 \
         partition takes whole processes"
            .to_owned()
    });
    options.into_iter().chain(helpers).collect::<Vec<_>>().join("; ")
}

/// "at 1.2 s /sys/fs/cgroup/tardy-shield/cpuset.cpus was gone"
fn loss(path: &str, was: &str, now: Option<&str>, at_ns: Option<i64>) -> String {
    let when = at_ns.map_or_else(|| "its end".to_owned(), moment);
    let found =
        now.map_or_else(|| "was gone".to_owned(), |now| format!("held {now:?} instead of {was:?}"));
    format!("at {when} {path} {found}")
}

impl ShieldCaveat {
    /// Code, effect, text and remedy.
    pub(super) fn words(&self) -> (&'static str, Effect, String, &'static str) {
        use Effect::{Informs, Invalidates, Weakens};
        match self {
            Self::InterruptsStay { interrupts, cpus } => (
                "interrupts_stay",
                Informs,
                format!(
                    "The kernel keeps these interrupts on the shielded {}: {}.",
                    units::cpus(cpus),
                    interrupts.join(", ")
                ),
                "Add isolcpus=managed_irq to the kernel command line, or shield other CPUs; \
                 interrupts.csv shows how often they occurred.",
            ),
            Self::Limits { cpus, options, helpers_inside } => (
                "shield_limits",
                Informs,
                format!("What the shield does not do: {}.", limits(cpus, options, *helpers_inside)),
                "Add these to the kernel command line and reboot if the tail latency \
                 matters.",
            ),
            Self::Irqbalance => (
                "irqbalance_runs",
                Informs,
                "irqbalance runs and may move interrupts back onto the shielded CPUs.".into(),
                "Stop it while you measure, or give it IRQBALANCE_BANNED_CPULIST.",
            ),
            Self::Lost { cpus, path, was, now, at_ns } => (
                "shield_lost",
                Invalidates,
                format!(
                    "The shield of {} did not last for the run: {}.",
                    units::cpus(cpus),
                    loss(path, was, now.as_deref(), *at_ns)
                ),
                "Find what changes cpusets (a container manager, a service manager, a tardy of \
                 another version), and repeat the run.",
            ),
            Self::InterruptsBack { interrupts, cpus } => (
                "interrupts_back",
                Weakens,
                format!(
                    "At the end of the run these could reach the shielded {} again: {}.",
                    units::cpus(cpus),
                    interrupts.join(", ")
                ),
                "Find what sets them (irqbalance, a driver that was reset), and repeat the run; \
                 interrupts.csv shows which occurred there.",
            ),
        }
    }
}
