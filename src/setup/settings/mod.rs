//! Settings of the machine one by one: which there are, what each is now, set for a time and
//! restore.
//!
//! A table of them, one file a family: `scheduler.rs`, `power.rs`, `memory.rs`, `interrupts.rs`.
//! `run --set NAME=VALUE` sets one, `check --measure` tries each, and `why --fix` names those that
//! cure a cause. Beside the table there are names with a number: `irq:N`, `task:TID:cpus`,
//! `task:TID:policy`.
//!
//! Changes on the machine: those of the table, each through the journal.

mod choice;
mod drop_ins;
mod held;
mod interrupts;
mod memory;
mod places;
mod power;
mod scheduler;
mod target;
mod tried;

pub use choice::SettingChoice;
pub use drop_ins::{DropInFile, HelpfulSetting, drop_ins};
pub use held::{HeldSettings, SettingLoss};
use places::SettingPlace;
pub use target::SettingTarget;
pub use tried::{TrialRefusal, trials};

/// As a value: leave it as it is, and see that it stays so.
pub const NOW: &str = "now";

/// As a value: the CPUs that are not measured.
pub(crate) const AWAY: &str = "away";

/// A setting of the table: a line of its family's file.
#[derive(Debug)]
pub struct Setting {
    /// As it is typed.
    pub name: &'static str,
    /// What it is about, to follow "NAME: ".
    pub what: &'static str,
    /// Where it lives.
    place: SettingPlace,
    /// What may be written.
    values: SettingValues,
    /// What is tried.
    pub better: &'static str,
    /// What setting it so may break.
    pub may_break: &'static str,
    /// The words of the kernel's command line that set it so at boot; `CPUS` stands for the
    /// measured ones. May be empty.
    boot: &'static str,
}

/// What may be written into a setting.
#[derive(Debug, Clone, Copy)]
enum SettingValues {
    /// Whole numbers of this range.
    Number(i64, i64),
    /// One of these words.
    Words(&'static [&'static str]),
    /// The name of something that the kernel lists: letters, digits, `_` and `-`.
    Name,
    /// A list of CPUs, or `away` for those that are not measured.
    Cpus,
}

/// The table.
pub fn table() -> impl Iterator<Item = &'static Setting> {
    let families = [power::SETTINGS, scheduler::SETTINGS, memory::SETTINGS, interrupts::SETTINGS];
    families.into_iter().flatten()
}

impl Setting {
    /// The one of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        table().find(|setting| setting.name == name)
    }
}

#[cfg(test)]
mod tests;
