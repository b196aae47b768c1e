//! Names of parts of a latency that are not a task, function or device.

/// Name of what every wake-up goes through: interrupt, scheduler, switch, return to user space.
pub const WAKE_UP_PATH: &str = "wake-up path";

/// Name of what every message goes through: the call that sends, the receiver's wake-up and switch,
/// the call that receives.
pub const MESSAGE_PATH: &str = "message path";

/// What is said of a peak whose events were overwritten before it was analyzed.
pub const EVENTS_LOST: &str = "events overwritten before they were read";

/// What is said of one that still waited when the run was over.
pub const NOT_ANALYSED: &str = "not analyzed, as too many were late";

/// Name of the way of a thread in user mode into the kernel and back, around what the kernel did.
pub const KERNEL_ENTRY: &str = "kernel entry and exit";

/// Name of what a thread did for other packets of its stream that came before one.
pub const EARLIER_PACKETS: &str = "earlier packets";

/// The way of a packet with a schedule before it was sent.
pub const PACING: &str = "pacing";

/// What begins the name of a lock whose holder is kept from the CPU by a task that ranks below the
/// thread that waits.
pub const INVERSION: &str = "priority inversion: ";

/// What stands in the name of a lock of a program between it and the thread that has it.
pub const HELD_BY: &str = " held by ";

/// What begins the name of work of a thread that was not over when its timer expired.
pub const EARLIER_WORK: &str = "earlier own work";

/// The name of the part of a ready real-time thread that the kernel held back, as it and others had
/// used up the time of real-time tasks.
pub const REAL_TIME_THROTTLING: &str = "real-time throttling";

/// The same, where the kernel's fair server ran an ordinary task.
pub const FAIR_SERVER: &str = "fair server";

/// The same of a deadline thread, whose own budget was used up.
pub const OUT_OF_BUDGET: &str = "deadline budget used up";
