//! Which tasks the scheduler runs before the measured thread.

use super::{contexts::CurrentTask, names};

/// Whether a task may run before the measured thread.
pub(super) fn goes_first(real_time: bool, prio: i16, task: &CurrentTask) -> bool {
    !real_time || task.prio <= prio || is_stopper(task)
}

/// The stopper of a CPU (`migration/N`) runs before every class, including deadline. Its priority,
/// 0, does not show that (`kernel/sched/stop_task.c`).
pub(super) fn is_stopper(task: &CurrentTask) -> bool {
    task.prio == 0 && names::comm(&task.comm).starts_with("migration/")
}
