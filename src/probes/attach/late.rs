//! A late wake-up of an attached thread, or a long cycle, as who explains it takes it.

use tardy_hot::stages::{Late, Stages};

use crate::kernel::AttachedLate;

/// With its stages: from the expiry, or where its dispatch was late from the wake-up on.
pub(super) fn late_of(late: &AttachedLate) -> Late {
    let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    let (waking_ns, switch_ns) = (signed(late.waking_ns), signed(late.switch_ns));
    let t_ns = late.hard_ns.map_or(waking_ns, signed);
    // A cycle may have begun within the slack.
    let switch_ns = switch_ns.max(t_ns);
    let waking_ns = waking_ns.clamp(t_ns, switch_ns);
    let end_ns = late.done_ns.map_or(switch_ns, signed);
    let entry_ns = match late.hard_ns {
        Some(_) => signed(late.entry_ns).clamp(t_ns, waking_ns),
        None => t_ns,
    };
    let softirq_ns = match late.hard_ns {
        Some(_) => signed(late.entry_ns + u64::from(late.softirq_ns)).clamp(entry_ns, waking_ns),
        None => entry_ns,
    };
    Late {
        t_ns,
        latency_ns: end_ns - t_ns,
        expires_ns: if late.hard_ns.is_some() { t_ns } else { 0 },
        stages: Stages {
            irq_ns: entry_ns - t_ns,
            softirq_ns: softirq_ns - entry_ns,
            handler_ns: waking_ns - softirq_ns,
            dispatch_ns: switch_ns - waking_ns,
            user_ns: end_ns - switch_ns,
        },
        matched: true,
        cpus: late.cpus,
        stopped_ns: (0, 0),
    }
}
