//! Doubts that come of arranging the machine.

use crate::run::caveat::Effect;

/// A doubt about what tardy arranged, could not arrange, or could not put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetupDoubt {
    /// Interrupts that the kernel does not let go of shielded CPUs.
    InterruptsStay {
        /// Their numbers and names.
        what: String,
        /// The shielded CPUs.
        cpus: String,
    },
    /// What a shield that is put up at run time cannot do.
    ShieldLimits {
        /// What, and what could.
        what: String,
    },
    /// irqbalance works against the shield.
    Irqbalance,
    /// A killed tardy left settings changed.
    LeftChanged {
        /// Which, and why they were not put back.
        what: String,
    },
    /// Another tardy holds settings changed.
    HeldByOther {
        /// Its process and command.
        who: String,
    },
    /// At the end something could not be put back.
    NotPutBack {
        /// What, and why.
        what: String,
    },
    /// Measured threads kept every CPU for themselves.
    WatchdogEnded {
        /// How long, and what was done.
        what: String,
    },
}

impl SetupDoubt {
    /// Code, effect, text and remedy.
    pub(super) fn words(self) -> (&'static str, Effect, String, &'static str) {
        use Effect::{Informs, Weakens};
        match self {
            Self::InterruptsStay { what, cpus } => (
                "interrupts_stay",
                Informs,
                format!("The kernel keeps these interrupts on the shielded CPUs {cpus}: {what}."),
                "Add isolcpus=managed_irq to the kernel command line, or shield other CPUs; \
                 interrupts.csv tells how often they came.",
            ),
            Self::ShieldLimits { what } => (
                "shield_limits",
                Informs,
                format!("What the shield does not do: {what}."),
                "Add these to the kernel command line and boot again, if the tail matters more \
                 than that.",
            ),
            Self::Irqbalance => (
                "irqbalance_runs",
                Informs,
                "irqbalance runs and may move interrupts back onto the shielded CPUs.".into(),
                "Stop it while you measure, or give it IRQBALANCE_BANNED_CPULIST.",
            ),
            Self::LeftChanged { what } => (
                "left_changed",
                Weakens,
                format!("A tardy that was killed left settings changed: {what}."),
                "Run `tardy restore` as root; docs/setup.md tells how to do it by hand.",
            ),
            Self::HeldByOther { who } => (
                "held_by_other",
                Informs,
                format!("Another tardy holds settings of this machine changed: {who}."),
                "Wait for its end if this run shall see the machine as it is.",
            ),
            Self::NotPutBack { what } => (
                "not_put_back",
                Informs,
                format!("After the run this could not be put back: {what}."),
                "Run `tardy restore` as root; docs/setup.md tells how to do it by hand.",
            ),
            Self::WatchdogEnded { what } => (
                "watchdog_ended",
                Weakens,
                format!("The measured threads kept every CPU for themselves: {what}."),
                "Use a longer --interval or fewer --threads, or leave a CPU that is not measured \
                 (--cpus).",
            ),
        }
    }
}
