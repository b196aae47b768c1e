//! Whether the work of attached threads is measured.

use super::{Attach, target::FoundTask};
use crate::{
    kernel::AttachedCycles,
    sys::{root::Root, sched::budget_of},
};

/// Whether cycles are measured: where there is a deadline to judge them by.
pub(super) fn cycles(plan: &Attach, root: &Root) -> AttachedCycles {
    if let Some(deadline_ns) = plan.deadline_ns {
        return AttachedCycles::Measured(u64::try_from(deadline_ns).ok());
    }
    let has_own = |task: &FoundTask| budget_of(task.tid.cast_signed()).is_some();
    match plan.target.scan(root).iter().any(has_own) {
        true => AttachedCycles::Measured(None),
        false => AttachedCycles::Unmeasured,
    }
}
