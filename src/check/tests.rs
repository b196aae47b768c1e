//! Machines that stand in directories: each finding is made to say ok, costs and unknown.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use super::*;

/// A file of a machine and its text.
type Files<'a> = &'a [(&'a str, &'a str)];

const CPU: &str = "/sys/devices/system/cpu";

/// What is found on the machine that these files make up, by code.
fn on(files: Files<'_>, cpus: Option<&str>) -> BTreeMap<&'static str, Finding> {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let cpus = cpus.map(|cpus| cpus.parse().unwrap());
    let findings = check(&CheckedMachine::new(Root::at(root.path()), cpus));
    findings.into_iter().map(|finding| (finding.code, finding)).collect()
}

/// The finding of that code, of CPU 0 of two.
fn one(code: &str, files: Files<'_>) -> Finding {
    let mut all = vec![("/sys/devices/system/cpu/online", "0-1")];
    all.extend(files);
    on(&all, Some("0")).remove(code).unwrap_or_else(|| panic!("no {code}"))
}

fn assert_ok(code: &str, files: Files<'_>) {
    let found = one(code, files);
    assert_eq!((found.status, found.severity), (FindingStatus::Ok, None), "{found:?}");
    assert_eq!(found.remedy, "", "{found:?}");
}

fn assert_costs(code: &str, severity: Severity, word: &str, files: Files<'_>) {
    let found = one(code, files);
    assert_eq!((found.status, found.severity), (FindingStatus::Costs, Some(severity)), "{found:?}");
    assert!(found.evidence.contains(word) || found.remedy.contains(word), "{word}: {found:?}");
}

fn assert_unknown(code: &str, files: Files<'_>) {
    let found = one(code, files);
    assert_eq!((found.status, found.severity), (FindingStatus::Unknown, None), "{found:?}");
}

use Severity::{Little, Matters, Serious};

#[test]
fn a_machine_that_tells_nothing_is_unknown_and_not_fine_where_it_counts() {
    let found = on(&[], None);
    for code in ["preemption", "high_resolution_timers", "debug_options", "tracer", "clock_source"]
    {
        assert_eq!(found[code].status, FindingStatus::Unknown, "{:?}", found[code]);
    }
    assert!(!found.values().any(Finding::is_serious), "{found:?}");
}

#[test]
fn every_finding_that_is_not_well_tells_what_was_read_and_what_to_do() {
    let known = on(&[("/proc/self/status", "CapEff:\t0\n"), (CPU_ONLINE, "0-3")], Some("2"));
    for found in on(&[], None).values().chain(known.values()) {
        assert!(!found.evidence.is_empty(), "{found:?}");
        assert_eq!(found.remedy.is_empty(), found.status == FindingStatus::Ok, "{found:?}");
        for text in [&found.evidence, &found.remedy] {
            assert!(!text.ends_with('.') && !text.contains("  "), "{found:?}");
        }
    }
}

const CPU_ONLINE: &str = "/sys/devices/system/cpu/online";

#[test]
fn the_worst_comes_first_and_what_is_well_last() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("proc/self")).unwrap();
    fs::write(root.path().join("proc/self/status"), "CapEff:\t0\n").unwrap();
    fs::write(root.path().join("proc/self/limits"), "Max realtime priority  0 0\n").unwrap();
    let findings = check(&CheckedMachine::new(Root::at(root.path()), None));
    let rank = |finding: &Finding| match (finding.severity, finding.status) {
        (Some(Serious), _) => 0,
        (Some(Matters), _) => 1,
        (Some(Little), _) => 2,
        (None, FindingStatus::Unknown) => 3,
        (None, _) => 4,
    };
    let ranks: Vec<u8> = findings.iter().map(rank).collect();
    assert!(
        ranks.is_sorted() && ranks.first() == Some(&0) && ranks.last() == Some(&4),
        "{ranks:?}"
    );
}

#[test]
fn every_code_is_explained_and_nothing_else_is() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/check.md");
    let text = fs::read_to_string(path).unwrap();
    let row = |line: &str| Some(line.strip_prefix("| `")?.split('`').next()?.to_owned());
    let explained: BTreeSet<String> = text.lines().filter_map(row).collect();
    let codes: BTreeSet<String> = on(&[], Some("0")).into_keys().map(str::to_owned).collect();
    assert_eq!(explained, codes);
    assert_eq!(codes.len(), looks(true).count(), "each has a separate code");
    assert!(looks(false).count() < codes.len(), "of no CPUs in particular less can be asked");
}

#[test]
fn the_kernel() {
    let version = "/proc/sys/kernel/version";
    let config =
        |text: &'static str| [("/proc/sys/kernel/osrelease", "6.1"), ("/boot/config-6.1", text)];
    assert_ok("preemption", &[(version, "#1 SMP PREEMPT_RT")]);
    assert_ok("realtime_kernel", &[(version, "#1 SMP PREEMPT_RT")]);
    assert_costs("realtime_kernel", Matters, "PREEMPT_RT", &[]);
    let modes = "/sys/kernel/debug/sched/preempt";
    assert_ok("preemption", &[(modes, "none voluntary (full) lazy")]);
    assert_costs("preemption", Serious, "debugfs", &[(modes, "none (voluntary) full")]);
    assert_costs("preemption", Serious, "rt-amd64", &config("CONFIG_PREEMPT_NONE=y\n"));
    let dynamic = "CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_DYNAMIC=y\n";
    assert_costs("preemption", Serious, "`preempt=full`", &config(dynamic));
    assert_unknown("preemption", &config("CONFIG_HZ=250\n"));
    assert_ok("high_resolution_timers", &config("CONFIG_HIGH_RES_TIMERS=y\n"));
    assert_costs("high_resolution_timers", Serious, "ticks", &config("CONFIG_HZ=250\n"));
    assert_costs(
        "high_resolution_timers",
        Serious,
        "highres=off",
        &[("/proc/cmdline", "quiet highres=off")],
    );
    assert_ok("tick_rate", &config("CONFIG_HZ=1000\n"));
    assert_costs("tick_rate", Little, "time slices of 10 ms", &config("CONFIG_HZ=100\n"));
    assert_ok("debug_options", &config("# CONFIG_KASAN is not set\n"));
    assert_costs("debug_options", Serious, "CONFIG_KASAN", &config("CONFIG_KASAN=y\n"));
    assert_costs("debug_options", Matters, "DEBUG_PREEMPT", &config("CONFIG_DEBUG_PREEMPT=y\n"));
    assert_costs("debug_options", Little, "IRQSOFF", &config("CONFIG_IRQSOFF_TRACER=y\n"));
    assert_ok("tracer", &[("/sys/kernel/tracing/current_tracer", "nop\n")]);
    assert_ok("tracer", &config("CONFIG_HZ=250\n"));
    let old = "/sys/kernel/debug/tracing/current_tracer";
    assert_costs("tracer", Serious, "irqsoff", &[(old, "irqsoff\n")]);
}

#[test]
fn clocks() {
    let now = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    assert_ok("clock_source", &[(now, "tsc\n")]);
    assert_costs("clock_source", Serious, "hpet", &[(now, "hpet\n")]);
    assert_costs("clock_source", Little, "xen", &[(now, "xen\n")]);
    let migration = "/proc/sys/kernel/timer_migration";
    assert_ok("timer_migration", &[(migration, "0\n")]);
    assert_costs("timer_migration", Little, "sysctl -w", &[(migration, "1\n")]);
}

#[test]
fn power() {
    let file = |name: &str| format!("{CPU}/cpu0/{name}");
    let governor = file("cpufreq/scaling_governor");
    assert_ok("governor", &[(&governor, "performance\n")]);
    assert_ok("governor", &[]);
    assert_costs("governor", Matters, "powersave on CPU 0", &[(&governor, "powersave\n")]);
    let (name, exit) = (file("cpuidle/state2/name"), file("cpuidle/state2/latency"));
    let off = file("cpuidle/state2/disable");
    assert_costs("idle_states", Matters, "C6, and need 133 us", &[(&name, "C6"), (&exit, "133")]);
    assert_ok("idle_states", &[(&name, "C6"), (&exit, "133"), (&off, "1")]);
    assert_ok("idle_states", &[(&name, "C1"), (&exit, "2")]);
    let (active, siblings) = (format!("{CPU}/smt/active"), file("topology/thread_siblings_list"));
    assert_costs("smt", Matters, "CPUs 0-1 are one core", &[(&active, "1"), (&siblings, "0-1")]);
    assert_ok("smt", &[(&active, "0"), (&siblings, "0-1")]);
    assert_ok("smt", &[(&active, "1"), (&siblings, "0")]);
    let hot = file("thermal_throttle/core_throttle_count");
    assert_costs("thermal", Matters, "12 times", &[(&hot, "12")]);
    assert_ok("thermal", &[(&hot, "0")]);
    let supply = "/sys/class/power_supply/BAT0/status";
    assert_costs("battery", Matters, "plug it in", &[(supply, "Discharging\n")]);
    assert_ok("battery", &[(supply, "Full\n")]);
    let profile = "/sys/firmware/acpi/platform_profile";
    assert_costs("battery", Little, "low-power", &[(profile, "low-power\n")]);
    let acpi = |sci: &'static str| {
        [
            ("/sys/firmware/acpi/interrupts/sci", sci),
            ("/sys/firmware/acpi/interrupts/gpe6F", sci),
            ("/sys/firmware/acpi/interrupts/gpe_all", sci),
            ("/proc/uptime", "100.0 50.0\n"),
        ]
    };
    assert_costs("acpi_interrupts", Matters, "gpe6F", &acpi("  90000     EN enabled\n"));
    assert_ok("acpi_interrupts", &acpi("  20\n"));
    let modules = "ext4 1 0 - Live 0\ndell_smm_hwmon 1 0 - Live 0\n";
    assert_costs(
        "smi_sources",
        Matters,
        "modprobe -r dell_smm_hwmon",
        &[("/proc/modules", modules)],
    );
    assert_ok("smi_sources", &[("/proc/modules", "ext4 1 0 - Live 0\n")]);
}

#[test]
fn the_scheduler() {
    let runtime = "/proc/sys/kernel/sched_rt_runtime_us";
    assert_ok("rt_throttling", &[(runtime, "-1\n")]);
    assert_unknown("rt_throttling", &[]);
    assert_costs("rt_throttling", Little, "50 ms", &[(runtime, "950000\n")]);
    let server = "/sys/kernel/debug/sched/fair_server/cpu0/runtime";
    let both = [(runtime, "950000\n"), (server, "50000000\n")];
    assert_costs("rt_throttling", Little, "fair_server", &both);
    let (unlimited, new) = ((runtime, "-1\n"), ("/proc/sys/kernel/osrelease", "6.12.9-amd64\n"));
    let takes = [unlimited, new, (server, "50000000\n")];
    assert_costs("rt_throttling", Little, "50 ms of each second by the fair server", &takes);
    assert_ok("rt_throttling", &[unlimited, new, (server, "0\n")]);
    assert_unknown("rt_throttling", &[unlimited, new]);
    assert_costs("rt_throttling", Little, "fair_server", &[(runtime, "950000\n"), new]);
    let (isolated, nohz) = (format!("{CPU}/isolated"), format!("{CPU}/nohz_full"));
    assert_ok("isolcpus", &[(&isolated, "0\n")]);
    assert_costs("isolcpus", Matters, "managed_irq,domain,0`", &[(&isolated, "\n")]);
    assert_ok("nohz_full", &[(&nohz, "0\n")]);
    assert_costs("nohz_full", Matters, "`nohz_full=0`", &[(&nohz, "(null)\n")]);
    let cmdline = "/proc/cmdline";
    assert_ok("rcu_nocbs", &[(cmdline, "rcu_nocbs=0-1 quiet")]);
    assert_ok("rcu_nocbs", &[(cmdline, "rcu_nocbs=all")]);
    assert_costs("rcu_nocbs", Matters, "`rcu_nocbs=0`", &[(cmdline, "rcu_nocbs=1")]);
    let all = on(&[(CPU_ONLINE, "0-1")], Some("0-1")).remove("isolcpus").unwrap();
    assert!(all.remedy.contains("fewer"), "all CPUs cannot be isolated: {all:?}");
    for (code, file) in [
        ("nmi_watchdog", "/proc/sys/kernel/nmi_watchdog"),
        ("soft_watchdog", "/proc/sys/kernel/soft_watchdog"),
    ] {
        assert_ok(code, &[(file, "0\n")]);
        assert_costs(code, Little, "watchdog", &[(file, "1\n")]);
    }
    assert_ok("vm_stat_interval", &[("/proc/sys/vm/stat_interval", "120\n")]);
    assert_costs("vm_stat_interval", Little, "1 s", &[("/proc/sys/vm/stat_interval", "1\n")]);
    let (leak, off) = (format!("{CPU}/vulnerabilities/meltdown"), (cmdline, "mitigations=off"));
    assert_costs("mitigations", Little, "meltdown", &[(&leak, "Mitigation: PTI\n")]);
    assert_ok("mitigations", &[(&leak, "Not affected\n")]);
    assert_ok("mitigations", &[(&leak, "Mitigation: PTI\n"), off]);
}

#[test]
fn interrupts() {
    let actions = [
        ("/proc/irq/24/effective_affinity_list", "0\n"),
        ("/proc/irq/24/eth0/nothing", ""),
        ("/proc/irq/25/smp_affinity_list", "0-1\n"),
        ("/proc/irq/25/nvme0q1/nothing", ""),
        ("/proc/irq/26/smp_affinity_list", "0\n"),
        ("/proc/interrupts", "     CPU0 CPU1\n 24:  5  0 x eth0\n 25:  90  1 x nvme0q1\n"),
    ];
    let words = "2 interrupts of devices may fire on CPU 0: 25 nvme0q1, 24 eth0";
    assert_costs("irq_affinity", Matters, words, &actions);
    assert_ok(
        "irq_affinity",
        &[("/proc/irq/24/smp_affinity_list", "1"), ("/proc/irq/24/eth0/x", "")],
    );
    assert_unknown("irq_affinity", &[]);
    let stat =
        |name: &str, priority: u32| format!("77 ({name}) S {}{priority} 1 0 0\n", "0 ".repeat(36));
    let process = "/proc/77/stat";
    assert_ok("irq_threads", &[(process, &stat("irq/24-eth0", 50))]);
    assert_ok("irq_threads", &[(process, &stat("bash", 99))]);
    assert_costs(
        "irq_threads",
        Matters,
        "irq/24-eth0 at 95",
        &[(process, &stat("irq/24-eth0", 95))],
    );
    assert_costs("irqbalance", Matters, "CPULIST=0", &[(process, &stat("irqbalance", 0))]);
    assert_ok("irqbalance", &[(process, &stat("bash", 0))]);
}

#[test]
fn memory() {
    let swaps =
        |used: u32| format!("Filename Type Size Used Priority\n/dev/sda2 part 9 {used} -2\n");
    assert_ok("swap", &[("/proc/swaps", "Filename Type Size Used Priority\n")]);
    assert_costs("swap", Little, "swapoff", &[("/proc/swaps", &swaps(0))]);
    assert_costs("swap", Matters, "2 MiB used", &[("/proc/swaps", &swaps(2_048))]);
    let huge = "/sys/kernel/mm/transparent_hugepage/enabled";
    assert_ok("transparent_hugepages", &[(huge, "always [madvise] never\n")]);
    assert_costs("transparent_hugepages", Matters, "always", &[(huge, "[always] madvise never\n")]);
    assert_unknown("transparent_hugepages", &[(huge, "odd\n")]);
    let (balancing, nodes) = ("/proc/sys/kernel/numa_balancing", "/sys/devices/system/node/online");
    assert_costs("numa_balancing", Matters, "nodes", &[(balancing, "1"), (nodes, "0-1")]);
    assert_ok("numa_balancing", &[(balancing, "1"), (nodes, "0")]);
    assert_ok("numa_balancing", &[(balancing, "0"), (nodes, "0-1")]);
}

#[test]
fn the_place() {
    let info = "model name\t: x\nflags\t\t: fpu hypervisor\n";
    assert_costs(
        "virtual_machine",
        Matters,
        "QEMU",
        &[("/proc/cpuinfo", info), ("/sys/class/dmi/id/sys_vendor", "QEMU\n")],
    );
    assert_ok("virtual_machine", &[("/proc/cpuinfo", "flags : fpu\n")]);
    let stat = |steal: u32| format!("cpu0 {} 0 0 0 0 0 0 {steal}\n", 1_000 - steal);
    assert_ok("steal_time", &[("/proc/stat", &stat(0))]);
    assert_costs("steal_time", Matters, "2.0%", &[("/proc/stat", &stat(20))]);
    assert_costs("steal_time", Serious, "9.0%", &[("/proc/stat", &stat(90))]);
    assert_costs("container", Little, "rtprio=99", &[("/.dockerenv", "")]);
    assert_costs("container", Little, "kubepods", &[("/proc/1/cgroup", "0::/kubepods/pod1\n")]);
    assert_ok("container", &[("/proc/1/cgroup", "0::/init.scope\n")]);
    let own = ("/proc/self/cgroup", "1:cpu,cpuacct:/a\n0::/x/y\n");
    let max = |limit: &'static str| [own, ("/sys/fs/cgroup/x/cpu.max", limit)];
    assert_costs("cpu_limit", Serious, "50000 100000", &max("50000 100000\n"));
    assert_ok("cpu_limit", &max("max 100000\n"));
    let quota = ("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "20000\n");
    assert_costs("cpu_limit", Serious, "20000", &[own, quota]);
    let runtime = "/sys/fs/cgroup/cpu/a/cpu.rt_runtime_us";
    assert_costs("real_time_group", Serious, "RT_GROUP_SCHED", &[own, (runtime, "0\n")]);
    assert_ok("real_time_group", &[own, (runtime, "950000\n")]);
    let allowed = |list: &str| format!("Name:\tx\nCpus_allowed_list:\t{list}\n");
    assert_ok("cpu_set", &[("/proc/self/status", &allowed("0-1"))]);
    assert_costs("cpu_set", Serious, "only 1", &[("/proc/self/status", &allowed("1"))]);
    assert_unknown("cpu_set", &[]);
}

#[test]
fn rights() {
    let caps = |set: &str| format!("CapEff:\t{set}\n");
    let status = "/proc/self/status";
    let limits = |rtprio: &str, memlock: &str| {
        format!("Max locked memory   {memlock} {memlock} bytes\nMax realtime priority {rtprio} 0\n")
    };
    let file = "/proc/self/limits";
    for code in ["real_time_rights", "memory_lock_rights"] {
        assert_ok(code, &[(status, &caps("000001fffeffffff"))]);
        let none = [(status, caps("0")), (file, limits("95", "unlimited"))];
        assert_ok(code, &none.each_ref().map(|(path, text)| (*path, text.as_str())));
        assert_unknown(code, &[]);
    }
    let (all, map) = (caps("000001fffeffffff"), "/proc/self/uid_map");
    let low = limits("0", "8388608");
    let inner = [(status, all.as_str()), (map, "0 65534 1\n"), (file, &low)];
    assert_costs("real_time_rights", Serious, "rtprio 95", &inner);
    let first = [(status, all.as_str()), (map, "         0          0 4294967295\n")];
    assert_ok("real_time_rights", &first);
    let poor = [(status, caps("0")), (file, limits("0", "8388608"))];
    let poor = poor.each_ref().map(|(path, text)| (*path, text.as_str()));
    assert_costs("real_time_rights", Serious, "rtprio 95", &poor);
    assert_costs("memory_lock_rights", Matters, "memlock unlimited", &poor);
    assert_ok("dma_latency", &[]);
    assert_ok("dma_latency", &[("/dev/cpu_dma_latency", "")]);
}
