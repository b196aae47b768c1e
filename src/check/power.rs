//! Power: frequency, idle states, hardware threads, heat, ACPI and firmware interrupts (SMI).

use super::{CheckedMachine, Finding, Look, Severity, some_of};
use crate::{sys::cpus::Cpus, units};

/// The group, worst cost first.
pub(super) const LOOKS: &[Look] =
    &[idle_states, governor, thermal, smi_sources, battery, acpi_interrupts, smt];

/// Leaving a state below this costs no more than a cache miss or two, us.
const DEEP_US: u64 = 10;

fn cpu_file(cpu: u32, name: &str) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/{name}")
}

fn governor(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "governor";
    let of = |cpu: u32| subject.root.read(cpu_file(cpu, "cpufreq/scaling_governor"));
    let found: Vec<(u32, String)> =
        subject.cpus.iter().filter_map(|cpu| Some((cpu, of(cpu)?))).collect();
    let slow: Cpus = found
        .iter()
        .filter(|(_, governor)| governor != "performance")
        .map(|(cpu, _)| *cpu)
        .collect();
    let Some((_, first)) = found.iter().find(|(_, governor)| governor != "performance") else {
        let what = if found.is_empty() { "no frequency scaling here" } else { "performance" };
        return Finding::ok(CODE, what);
    };
    Finding::costs(
        CODE,
        Severity::Matters,
        format!("{first} on {}: a CPU starts slowly after idling", units::cpus(&slow)),
        "`cpupower frequency-set -g performance`, and stop services that reset it \
         (power-profiles-daemon, tuned, TLP)",
    )
}

fn idle_states(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "idle_states";
    let mut deepest: Option<(u64, String, u32)> = None;
    for cpu in subject.cpus.iter() {
        let directory = cpu_file(cpu, "cpuidle");
        for state in subject.root.names(&directory) {
            let file = |name: &str| format!("{directory}/{state}/{name}");
            let is_off = subject.root.read(file("disable")).is_some_and(|off| off != "0");
            let exit_us: u64 = subject.root.value(file("latency")).unwrap_or(0);
            if !is_off && exit_us > deepest.as_ref().map_or(0, |(deepest, ..)| *deepest) {
                deepest = Some((exit_us, subject.root.read(file("name")).unwrap_or(state), cpu));
            }
        }
    }
    match deepest {
        Some((exit_us, name, cpu)) if exit_us > DEEP_US => Finding::costs(
            CODE,
            Severity::Matters,
            format!("idle CPUs enter {name}, and need {exit_us} us to leave it (CPU {cpu})"),
            format!(
                "`cpupower idle-set -D {DEEP_US}`, or kernel options `intel_idle.max_cstate=1 \
                 processor.max_cstate=1`; `tardy run` holds /dev/cpu_dma_latency while it measures"
            ),
        ),
        Some((exit_us, name, _)) => {
            Finding::ok(CODE, format!("the deepest is {name}, with {exit_us} us to leave it"))
        }
        None => Finding::ok(CODE, "no idle state with an exit latency"),
    }
}

fn smt(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "smt";
    if subject.root.read("/sys/devices/system/cpu/smt/active").as_deref() != Some("1") {
        return Finding::ok(CODE, "no two CPUs share a core");
    }
    let sibling = |cpu: u32| {
        let list = subject.root.read(cpu_file(cpu, "topology/thread_siblings_list"))?;
        list.parse::<Cpus>().ok().filter(|siblings| siblings.len() > 1)
    };
    let Some(first) = subject.cpus.iter().find_map(sibling) else {
        return Finding::ok(CODE, "the checked CPUs share no core");
    };
    Finding::costs(
        CODE,
        Severity::Matters,
        format!("CPUs {first} are one core: work on one slows the other"),
        "`echo off > /sys/devices/system/cpu/smt/control`, or kernel option `nosmt`; or leave the \
         second CPU of each core idle",
    )
}

fn thermal(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "thermal";
    let count = |cpu: u32| {
        let value = |of: &str| {
            subject
                .root
                .value::<u64>(cpu_file(cpu, &format!("thermal_throttle/{of}_throttle_count")))
        };
        Some((cpu, value("core")?.max(value("package").unwrap_or(0))))
    };
    let counts: Vec<(u32, u64)> = subject.cpus.iter().filter_map(count).collect();
    let hot = counts.iter().max_by_key(|(_, times)| *times).filter(|(_, times)| *times > 0);
    match hot {
        Some((cpu, times)) => Finding::costs(
            CODE,
            Severity::Matters,
            format!("CPU {cpu} was throttled because of heat {} since boot", units::times(*times)),
            "improve the cooling (fans, dust, a hard flat surface), and monitor it: `turbostat` or \
             `sensors`",
        ),
        None if counts.is_empty() => Finding::ok(CODE, "no throttling counters here"),
        None => Finding::ok(CODE, "never throttled since boot"),
    }
}

fn battery(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "battery";
    let directory = "/sys/class/power_supply";
    let is = |name: &String, file: &str, wanted: &str| {
        subject.root.read(format!("{directory}/{name}/{file}")).as_deref() == Some(wanted)
    };
    let supplies = subject.root.names(directory);
    if supplies.iter().any(|name| is(name, "status", "Discharging")) {
        return Finding::costs(
            CODE,
            Severity::Matters,
            "the machine runs on battery, and saves power",
            "plug it in",
        );
    }
    let profile = subject.root.read("/sys/firmware/acpi/platform_profile");
    match profile.as_deref() {
        Some(profile) if profile != "performance" => Finding::costs(
            CODE,
            Severity::Little,
            format!("the firmware's power profile is {profile}"),
            "`echo performance > /sys/firmware/acpi/platform_profile`",
        ),
        _ => Finding::ok(CODE, "the machine does not run on battery"),
    }
}

/// More ACPI interrupts per second than this are not normal.
const ACPI_PER_S: f64 = 5.0;

fn acpi_interrupts(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "acpi_interrupts";
    let directory = "/sys/firmware/acpi/interrupts";
    let count = |name: &str| {
        let text = subject.root.read(format!("{directory}/{name}"))?;
        text.split_ascii_whitespace().next()?.parse::<u64>().ok()
    };
    let uptime = subject.root.read("/proc/uptime");
    let uptime_s: f64 = uptime
        .and_then(|text| text.split(' ').next()?.parse().ok())
        .filter(|seconds| *seconds > 1.0)
        .unwrap_or(f64::INFINITY);
    let per_s = count("sci").unwrap_or(0) as f64 / uptime_s;
    if per_s <= ACPI_PER_S {
        return Finding::ok(CODE, "ACPI interrupts are rare or absent");
    }
    let names = subject.root.names(directory);
    let gpes = names.iter().filter(|name| name.starts_with("gpe") && *name != "gpe_all");
    let busiest = gpes.max_by_key(|name| count(name)).cloned().unwrap_or_else(|| "gpe??".into());
    Finding::costs(
        CODE,
        Severity::Matters,
        format!("{per_s:.0} ACPI interrupts a second since boot, most of them {busiest}"),
        format!("`echo disable > {directory}/{busiest}`, then check which devices stop working"),
    )
}

/// Modules that trigger system management interrupts (SMI) of the firmware, or wait for it.
const SMI_MODULES: [&str; 6] =
    ["dell_smm_hwmon", "i8k", "iTCO_wdt", "ipmi_si", "hpwdt", "acpi_pad"];

fn smi_sources(subject: &CheckedMachine) -> Finding {
    const CODE: &str = "smi_sources";
    let modules = subject.root.read("/proc/modules").unwrap_or_default();
    let loaded: Vec<String> = modules
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|name| SMI_MODULES.contains(name))
        .map(str::to_owned)
        .collect();
    if loaded.is_empty() {
        return Finding::ok(CODE, "no driver is loaded that is known to cause SMIs");
    }
    let first = loaded.first().cloned().unwrap_or_default();
    Finding::costs(
        CODE,
        Severity::Matters,
        format!("drivers that make the firmware stop all CPUs (SMI): {}", some_of(&loaded)),
        format!(
            "`modprobe -r {first}`, and a line `blacklist {first}` in /etc/modprobe.d; count them: \
             `perf stat -a -e msr/smi/ sleep 10`"
        ),
    )
}
