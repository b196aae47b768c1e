//! Many runs in an order: does a change help (`ab`), and the cells of a plan (`plan_run`).
//!
//! Each block of a comparison is its own run, measured by a child: `tardy run` as a user would type
//! it, with its own directory. So each block arms, starts its loads and puts the machine back as
//! any run does, a crash of one is an error and not the end of the record, and who doubts a block
//! finds its run, with its caveats and its command line. What is paid is the start of a process,
//! some milliseconds beside the warm-up. Here the order is drawn, the commands that the user gave
//! are run between the blocks, the run directories are read, and it is decided whether to continue;
//! nothing is printed.
//!
//! Changes on the machine: those of its children, which put them back, and those of the user's own
//! commands, which `--undo` restores.

mod ab;
mod ab_plan;
mod blocks;
mod child_result;
mod child_run;
mod commands;
mod judge;
mod lock;
mod plan_request;
mod plan_run;
mod process;
mod settings;

pub(crate) use ab::{Ab, AbEvent, AbProgress, run};
pub(crate) use ab_plan::{AbRequest, SideRequest};
pub(crate) use child_result::{cell_run, take_up};
pub(crate) use plan_request::{PlanProgress, PlanRequest, PlanSource, PlanView};
pub(crate) use plan_run::run_plan;
pub(crate) use settings::{SettingsProgress, SettingsRequest, try_settings};
