//! The kernel itself: its preemption model, timers, debug options and tracers.

use super::{CheckedMachine, Finding, Look, Severity};
use crate::{run::facts::Preemption, setup::facts};

/// The group, worst cost first.
pub(super) const LOOKS: &[Look] =
    &[preemption, high_resolution_timers, debug_options, tracer, realtime_kernel, tick_rate];

fn preemption(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "preemption";
    let Preemption { model, source } = facts::preemption(&subject.root, &subject.config);
    let evidence = |what: &str| format!("{model} ({source}): {what}");
    let remedy = if subject.config.is_on("PREEMPT_DYNAMIC") == Some(true) {
        "kernel option `preempt=full`, or now: `echo full > /sys/kernel/debug/sched/preempt`"
    } else {
        "a kernel with PREEMPT_RT (Debian: `apt install linux-image-rt-amd64`), or one built with \
         CONFIG_PREEMPT"
    };
    match model.as_str() {
        "rt" => Finding::ok(CODE, evidence("nearly all kernel code can be preempted")),
        "full" => Finding::ok(CODE, evidence("system calls can be preempted")),
        "lazy" => Finding::ok(CODE, evidence("real-time threads preempt system calls")),
        "none" | "voluntary" => Finding::costs(
            CODE,
            Severity::Serious,
            evidence("a long system call of any task delays real-time threads by ms"),
            remedy,
        ),
        _ => Finding::unknown(
            CODE,
            "neither debugfs, the kernel's log, its command line nor its configuration shows it",
            "as root: `mount -t debugfs none /sys/kernel/debug; cat \
             /sys/kernel/debug/sched/preempt`",
        ),
    }
}

fn realtime_kernel(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "realtime_kernel";
    let Preemption { model, .. } = facts::preemption(&subject.root, &subject.config);
    if model == "rt" {
        return Finding::ok(CODE, "the kernel is a PREEMPT_RT one");
    }
    Finding::costs(
        CODE,
        Severity::Matters,
        "no PREEMPT_RT: interrupt handlers, softirqs and spinlocks cannot be preempted",
        "where the worst case counts, a real-time kernel (Debian: `apt install \
         linux-image-rt-amd64`, Ubuntu: `pro enable realtime-kernel`)",
    )
}

fn high_resolution_timers(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "high_resolution_timers";
    let remedy = "a kernel with CONFIG_HIGH_RES_TIMERS, and no `highres=off` on its command line";
    let serious =
        |evidence: &str| Finding::costs(CODE, Severity::Serious, evidence, remedy.to_owned());
    if subject.option("highres") == Some("off") {
        return serious("highres=off on the kernel's command line: timers only fire at ticks");
    }
    match subject.config.is_on("HIGH_RES_TIMERS") {
        Some(true) => Finding::ok(CODE, "timers fire between ticks"),
        Some(false) => serious("built without CONFIG_HIGH_RES_TIMERS: timers only fire at ticks"),
        None => config_unknown(CODE, "`grep -m1 hres_active /proc/timer_list` as root shows it"),
    }
}

fn config_unknown(code: &'static str, remedy: &str) -> Finding {
    Finding::unknown(code, "neither /proc/config.gz nor /boot/config-* can be read", remedy)
}

fn tick_rate(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "tick_rate";
    let Some(hz) = subject.config.value("HZ").and_then(|hz| hz.parse::<u32>().ok()) else {
        return config_unknown(CODE, "`getconf CLK_TCK` does not show it; ask the distribution");
    };
    if hz >= 1000 {
        return Finding::ok(CODE, format!("HZ={hz}"));
    }
    let ms = 1000 / hz.max(1);
    Finding::costs(
        CODE,
        Severity::Little,
        format!("HZ={hz}: ordinary tasks have time slices of {ms} ms or more"),
        "nothing for real-time threads; for ordinary ones a kernel with `CONFIG_HZ=1000`",
    )
}

/// Options that check the kernel at run time, and how much each costs.
const DEBUG_OPTIONS: &[(&str, Severity)] = &[
    ("KASAN", Severity::Serious),
    ("KCSAN", Severity::Serious),
    ("KMSAN", Severity::Serious),
    ("PROVE_LOCKING", Severity::Serious),
    ("LOCKDEP", Severity::Serious),
    ("DEBUG_KMEMLEAK", Severity::Serious),
    ("DEBUG_OBJECTS", Severity::Serious),
    ("SLUB_DEBUG_ON", Severity::Serious),
    ("DEBUG_PAGEALLOC_ENABLE_DEFAULT", Severity::Serious),
    ("DEBUG_PREEMPT", Severity::Matters),
    ("DEBUG_MUTEXES", Severity::Matters),
    ("DEBUG_RT_MUTEXES", Severity::Matters),
    ("DEBUG_SPINLOCK", Severity::Matters),
    ("DEBUG_ATOMIC_SLEEP", Severity::Little),
    ("IRQSOFF_TRACER", Severity::Little),
    ("PREEMPT_TRACER", Severity::Little),
];

fn debug_options(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "debug_options";
    if !subject.config.is_known() {
        return config_unknown(CODE, "`uname -v` shows whether this is a debug kernel");
    }
    let on = |(option, _): &&(&str, Severity)| subject.config.is_on(option) == Some(true);
    let found: Vec<_> = DEBUG_OPTIONS.iter().filter(on).collect();
    let names: Vec<String> = found.iter().map(|(name, _)| format!("CONFIG_{name}")).collect();
    match found.iter().map(|(_, severity)| *severity).max() {
        None => Finding::ok(CODE, "no debug option that costs latency"),
        Some(severity) => Finding::costs(
            CODE,
            severity,
            format!("the kernel was built with {}", super::some_of(&names)),
            "a kernel without them: the distribution's ordinary one, not its `-debug` or `-dbg`",
        ),
    }
}

fn tracer(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "tracer";
    let at = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let now = at.iter().find_map(|place| subject.root.read(format!("{place}/current_tracer")));
    match now.as_deref() {
        Some("nop") => Finding::ok(CODE, "no tracer runs"),
        Some(tracer) => Finding::costs(
            CODE,
            Severity::Serious,
            format!("the tracer {tracer} runs, for the whole system"),
            "`echo nop > /sys/kernel/tracing/current_tracer`",
        ),
        None if subject.config.is_on("TRACING") == Some(false) => {
            Finding::ok(CODE, "the kernel has no tracer")
        }
        None => Finding::unknown(
            CODE,
            "/sys/kernel/tracing/current_tracer cannot be read",
            "as root: `mount -t tracefs none /sys/kernel/tracing`, then check again",
        ),
    }
}
