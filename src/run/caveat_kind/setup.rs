//! Caveats about setting up the machine.

use serde::Serialize;

use super::values::list;
use crate::run::caveat::Effect;

/// A caveat about what tardy set up, could not set up, or could not restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum SetupCaveat {
    /// Interrupts that the kernel does not let go of shielded CPUs.
    InterruptsStay {
        /// Their numbers and names, `36 (virtio1-req.0)`.
        interrupts: Vec<String>,
        /// The shielded CPUs, `2-3`.
        cpus: String,
    },
    /// What a shield that is put up at run time cannot do.
    ShieldLimits {
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
    /// A killed tardy left settings changed.
    LeftChanged {
        /// Which, and why they were not put back.
        failed: Vec<String>,
    },
    /// Another tardy holds settings changed.
    HeldByOther {
        /// The number of its process, in its own PID namespace.
        pid: i32,
        /// What was typed.
        command: String,
    },
    /// Whether a tardy has changed settings could not be looked at.
    JournalUnread {
        /// The journal, and why.
        why: String,
    },
    /// At the end something could not be put back.
    NotPutBack {
        /// What, and why.
        failed: Vec<String>,
    },
    /// Measured threads kept every CPU for themselves.
    WatchdogEnded {
        /// How long no other thread of tardy got to run, s.
        silent_s: u32,
        /// They did not check the stop flag, and were made ordinary tasks.
        made_ordinary: bool,
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

impl SetupCaveat {
    /// Code, effect, text and remedy.
    pub(super) fn words(&self) -> (&'static str, Effect, String, &'static str) {
        use Effect::{Informs, Weakens};
        match self {
            Self::InterruptsStay { interrupts, cpus } => (
                "interrupts_stay",
                Informs,
                format!(
                    "The kernel keeps these interrupts on the shielded CPUs {cpus}: {}.",
                    interrupts.join(", ")
                ),
                "Add isolcpus=managed_irq to the kernel command line, or shield other CPUs; \
                 interrupts.csv shows how often they occurred.",
            ),
            Self::ShieldLimits { cpus, options, helpers_inside } => (
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
            Self::LeftChanged { failed } => (
                "left_changed",
                Weakens,
                format!("A tardy that was killed left settings changed: {}.", failed.join("; ")),
                "Run `tardy restore` as root; docs/setup.md explains how to do it by hand.",
            ),
            Self::HeldByOther { pid, command } => (
                "held_by_other",
                Informs,
                format!(
                    "Another tardy holds settings of this machine changed: process {pid} \
                     ({command})."
                ),
                "Wait until that process ends, to measure with the normal settings.",
            ),
            Self::JournalUnread { why } => (
                "journal_unread",
                Informs,
                format!(
                    "Whether a tardy has changed settings of this machine is not known: {why}."
                ),
                "Run as root, or have root run `tardy restore`: it says who has changed what.",
            ),
            Self::NotPutBack { failed } => (
                "not_put_back",
                Informs,
                format!("After the run this could not be put back: {}.", failed.join("; ")),
                "Run `tardy restore` as root; docs/setup.md explains how to do it by hand.",
            ),
            Self::WatchdogEnded { silent_s, made_ordinary } => (
                "watchdog_ended",
                Weakens,
                format!(
                    "The measured threads kept every CPU for themselves: for {silent_s} s no other \
                     thread of tardy got to run; the watchdog ended the run{}.",
                    if *made_ordinary { " and made ordinary tasks of them" } else { "" }
                ),
                "Use a longer --interval or fewer --threads, or leave a CPU that is not measured \
                 (--cpus).",
            ),
        }
    }
}
