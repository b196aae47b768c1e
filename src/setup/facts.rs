//! Reads what the machine is. Reads only; what cannot be read is left out.

use std::{collections::BTreeMap, fs, path::Path};

use super::machine;
use crate::{
    run::facts::{CpuPlace, Facts, IdleState, Preemption},
    sys::{cpus::Cpus, kernel_config::ConfigOptions, kmsg, root::Root, text},
};

/// The facts of this machine; idle states are those of `first_cpu`.
#[must_use]
pub fn read(first_cpu: u32) -> Facts {
    let root = Root::default();
    let name = rustix::system::uname();
    let own = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let online = text::read("/sys/devices/system/cpu/online").unwrap_or_default();
    let cpus: Cpus = online.parse().unwrap_or_default();
    Facts {
        hostname: own(name.nodename()),
        machine_id: machine::id(&root),
        labels: BTreeMap::new(),
        kernel: own(name.release()),
        kernel_version: own(name.version()),
        architecture: own(name.machine()),
        distribution: distribution(),
        kernel_cmdline: text::read("/proc/cmdline"),
        preemption: preemption(&root, &ConfigOptions::read(&root)),
        cpu_model: cpuinfo(&root, "model name").or_else(|| cpuinfo(&root, "Model")),
        microcode: cpuinfo(&root, "microcode"),
        cpus_online: online,
        cpus_allowed: Cpus::allowed().unwrap_or_default().to_string(),
        topology: cpus.iter().filter_map(place).collect(),
        clock_source: text::read(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        ),
        virtualisation: virtualisation(&root),
        governors: governors(&cpus),
        idle_states: idle_states(first_cpu),
        memory_bytes: memory_bytes(),
        load_average: load_average(),
        rt_throttling_percent: rt_throttling_percent(),
        boot_id: text::read("/proc/sys/kernel/random/boot_id"),
        tardy_version: env!("CARGO_PKG_VERSION").into(),
        lab: None,
    }
}

fn distribution() -> Option<String> {
    let release = text::read("/etc/os-release")?;
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

fn cpuinfo(root: &Root, field: &str) -> Option<String> {
    let text = root.read("/proc/cpuinfo")?;
    let line = text.lines().find(|line| line.starts_with(field))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// How far the kernel of the machine below `root` lets itself be preempted.
///
/// Reads the sources in the order of their reliability: a kernel with PREEMPT_RT says so itself;
/// debugfs has what a PREEMPT_DYNAMIC kernel does now; its log what it started with; its command
/// line what was requested; its configuration what it was built for.
#[must_use]
pub fn preemption(root: &Root, config: &ConfigOptions) -> Preemption {
    let found =
        |model: &str, source: &str| Preemption { model: model.into(), source: source.into() };
    let version = root.read("/proc/sys/kernel/version").unwrap_or_default();
    if root.value::<u32>("/sys/kernel/realtime") == Some(1) || version.contains("PREEMPT_RT") {
        return found("rt", "kernel version");
    }
    // "none voluntary (full) lazy"
    let modes = root.read("/sys/kernel/debug/sched/preempt");
    if let Some(now) = modes.as_deref().and_then(|modes| modes.split(['(', ')']).nth(1)) {
        return found(now, "debugfs");
    }
    let log = kmsg::search(root, "Dynamic Preempt: ").and_then(|log| log.found);
    if let Some(began) = log.as_deref().and_then(|line| line.split("Dynamic Preempt: ").nth(1)) {
        return found(began.trim(), "kernel log");
    }
    let cmdline = root.read("/proc/cmdline").unwrap_or_default();
    if let Some(model) = cmdline.split_whitespace().rev().find_map(|w| w.strip_prefix("preempt=")) {
        return found(model, "kernel command line");
    }
    for (option, model) in [
        ("PREEMPT_RT", "rt"),
        ("PREEMPT_LAZY", "lazy"),
        ("PREEMPT", "full"),
        ("PREEMPT_VOLUNTARY", "voluntary"),
        ("PREEMPT_NONE", "none"),
    ] {
        if config.is_on(option) == Some(true) {
            return found(model, "kernel configuration");
        }
    }
    Preemption::default()
}

fn place(cpu: u32) -> Option<CpuPlace> {
    let topology = format!("/sys/devices/system/cpu/cpu{cpu}/topology");
    let package = text::value(format!("{topology}/physical_package_id"))?;
    let core = text::value(format!("{topology}/core_id"))?;
    Some(CpuPlace { cpu, package, core })
}

/// What kind of virtual machine lies below `root`; absent for bare metal and where unknown.
#[must_use]
pub fn virtualisation(root: &Root) -> Option<String> {
    if let Some(kind) = root.read("/sys/hypervisor/type") {
        return Some(kind);
    }
    let flags = cpuinfo(root, "flags").unwrap_or_default();
    if !flags.split(' ').any(|flag| flag == "hypervisor") {
        return None;
    }
    let product = root.read("/sys/class/dmi/id/product_name");
    let vendor = root.read("/sys/class/dmi/id/sys_vendor");
    Some(vendor.or(product).unwrap_or_else(|| "hypervisor of unknown make".into()))
}

fn governors(cpus: &Cpus) -> Vec<String> {
    let mut found: Vec<(String, Vec<u32>)> = Vec::new();
    for cpu in cpus.iter() {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        let Some(governor) = text::read(path) else { continue };
        match found.iter_mut().find(|(known, _)| *known == governor) {
            Some((_, cpus)) => cpus.push(cpu),
            None => found.push((governor, vec![cpu])),
        }
    }
    let line = |(governor, cpus): (String, Vec<u32>)| {
        format!("{governor}: {}", cpus.into_iter().collect::<Cpus>())
    };
    found.into_iter().map(line).collect()
}

fn idle_states(cpu: u32) -> Vec<IdleState> {
    let directory = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle");
    let mut states: Vec<_> = fs::read_dir(directory).into_iter().flatten().flatten().collect();
    states.sort_by_key(fs::DirEntry::file_name);
    let read = |state: &Path| {
        let name = text::read(state.join("name"))?;
        Some(IdleState { name, exit_latency_us: text::value(state.join("latency"))? })
    };
    states.iter().filter_map(|state| read(&state.path())).collect()
}

fn memory_bytes() -> Option<u64> {
    let text = text::read("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

fn load_average() -> Option<[f64; 3]> {
    let text = text::read("/proc/loadavg")?;
    let mut parts = text.split(' ').map_while(|part| part.parse().ok());
    Some([parts.next()?, parts.next()?, parts.next()?])
}

fn rt_throttling_percent() -> Option<f64> {
    let runtime: i64 = text::value("/proc/sys/kernel/sched_rt_runtime_us")?;
    let period: i64 = text::value("/proc/sys/kernel/sched_rt_period_us")?;
    (runtime >= 0 && runtime < period).then(|| runtime as f64 * 100.0 / period as f64)
}
