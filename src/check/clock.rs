//! Clocks and timers.

use super::{CheckedMachine, Finding, Look, Severity};

/// The group, worst cost first.
pub(super) const LOOKS: &[Look] = &[clock_source, timer_migration];

fn clock_source(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "clock_source";
    let directory = "/sys/devices/system/clocksource/clocksource0";
    let Some(now) = subject.root.read(format!("{directory}/current_clocksource")) else {
        return Finding::unknown(
            CODE,
            format!("{directory} cannot be read"),
            "`dmesg | grep -i clocksource` shows it",
        );
    };
    let others = subject.root.read(format!("{directory}/available_clocksource"));
    let others = others.unwrap_or_default();
    match now.as_str() {
        "tsc" | "arch_sys_counter" | "kvm-clock" | "hyperv_clocksource_tsc_page" | "timebase" => {
            Finding::ok(CODE, format!("{now}: read without a system call"))
        }
        "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "pit" => Finding::costs(
            CODE,
            Severity::Serious,
            format!("{now} (available: {others}): every clock read costs a microsecond"),
            format!(
                "`dmesg | grep -i -e tsc -e clocksource` shows why; if the TSC is reliable, kernel \
                 option `tsc=reliable`, or now: `echo tsc > {directory}/current_clocksource`"
            ),
        ),
        _ => Finding::costs(
            CODE,
            Severity::Little,
            format!("{now} (available: {others}): a clock read may be a system call"),
            format!("`echo tsc > {directory}/current_clocksource`, if tsc is among them"),
        ),
    }
}

fn timer_migration(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "timer_migration";
    match subject.root.read("/proc/sys/kernel/timer_migration").as_deref() {
        Some("0") => Finding::ok(CODE, "timers stay on the CPU that set them"),
        Some(_) => Finding::costs(
            CODE,
            Severity::Little,
            "timers of idle CPUs are moved to busy ones, and fire there",
            "`sysctl -w kernel.timer_migration=0`",
        ),
        None => Finding::unknown(
            CODE,
            "/proc/sys/kernel/timer_migration cannot be read",
            "`sysctl kernel.timer_migration` shows it, if the kernel has it",
        ),
    }
}
