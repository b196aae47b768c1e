//! The kernel's own counters: /proc/stat, /proc/vmstat, /proc/diskstats, /proc/net/dev,
//! /proc/interrupts, /proc/softirqs.

use super::root::Root;

/// What the kernel counts, since boot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stat {
    /// Hard interrupts.
    pub interrupts: u64,
    /// Soft interrupts.
    pub softirqs: u64,
    /// Context switches.
    pub context_switches: u64,
    /// Tasks created.
    pub forks: u64,
    /// Page faults of every kind.
    pub page_faults: u64,
    /// Page faults that had to wait for a disk.
    pub major_faults: u64,
    /// Bytes read from and written to disks that are devices; a partition or a mapped device would
    /// count the same bytes again.
    pub disk_bytes: (u64, u64),
    /// Bytes received from and sent to the network, loopback not counted.
    pub network_bytes: (u64, u64),
    /// Bytes sent over loopback.
    pub loopback_bytes: u64,
    /// The CPUs online.
    pub cpus: Vec<CpuTicks>,
}

/// What a CPU's time went to since boot, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// Its number.
    pub cpu: u32,
    /// Not idle.
    pub busy: u64,
    /// Taken by the hypervisor; in `busy` too.
    pub steal: u64,
    /// In all.
    pub all: u64,
}

impl Stat {
    /// Reads it; what is not there counts nothing.
    #[must_use]
    pub fn read(root: &Root) -> Self {
        Self::read_in_pieces(root, &mut || {})
    }

    /// The same, with a `pause` before each system call that takes long.
    #[must_use]
    pub fn read_in_pieces(root: &Root, pause: &mut dyn FnMut()) -> Self {
        let text = |path: &str, pause: &mut dyn FnMut()| {
            root.read_in_pieces(path, pause).unwrap_or_default()
        };
        let mut stat = Self::parse(&text("/proc/stat", pause));
        stat.add_faults(&text("/proc/vmstat", pause));
        let disks = text("/proc/diskstats", pause);
        stat.add_disks(&disks, |name| {
            pause();
            root.path(format!("/sys/block/{name}/device")).exists()
        });
        stat.add_networks(&text("/proc/net/dev", pause));
        stat
    }

    fn parse(text: &str) -> Self {
        let mut stat = Self::default();
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let Some(key) = words.next() else { continue };
            let mut first = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
            match key {
                "intr" => stat.interrupts = first(),
                "softirq" => stat.softirqs = first(),
                "ctxt" => stat.context_switches = first(),
                "processes" => stat.forks = first(),
                _ => {
                    let Some(cpu) = key.strip_prefix("cpu").and_then(|cpu| cpu.parse().ok()) else {
                        continue;
                    };
                    // user nice system idle iowait irq softirq steal; guest time is in user.
                    let ticks: Vec<u64> =
                        words.take(8).filter_map(|word| word.parse().ok()).collect();
                    let all: u64 = ticks.iter().sum();
                    let idle: u64 = ticks.iter().skip(3).take(2).sum();
                    let steal = ticks.get(7).copied().unwrap_or(0);
                    stat.cpus.push(CpuTicks { cpu, busy: all - idle, steal, all });
                }
            }
        }
        stat
    }

    fn add_faults(&mut self, vmstat: &str) {
        for line in vmstat.lines() {
            match line.split_once(' ') {
                Some(("pgfault", count)) => self.page_faults = count.parse().unwrap_or(0),
                Some(("pgmajfault", count)) => self.major_faults = count.parse().unwrap_or(0),
                _ => {}
            }
        }
    }

    fn add_disks(&mut self, diskstats: &str, mut is_device: impl FnMut(&str) -> bool) {
        for line in diskstats.lines() {
            // major minor name reads merged sectors ms writes merged sectors ...
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let bytes = |at: usize| {
                // A sector is 512 bytes here, whatever the disk says.
                words.get(at).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0) * 512
            };
            let (read, written) = (bytes(5), bytes(9));
            if read + written > 0 && words.get(2).is_some_and(|name| is_device(name)) {
                self.disk_bytes.0 += read;
                self.disk_bytes.1 += written;
            }
        }
    }

    fn add_networks(&mut self, dev: &str) {
        for line in dev.lines() {
            let Some((name, counts)) = line.split_once(':') else { continue };
            let counts: Vec<u64> =
                counts.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
            let (Some(received), Some(sent)) = (counts.first(), counts.get(8)) else { continue };
            if name.trim() == "lo" {
                self.loopback_bytes += sent;
            } else {
                self.network_bytes.0 += received;
                self.network_bytes.1 += sent;
            }
        }
    }
}

/// What a CPU's time went to since boot by context, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContextTicks {
    /// Its number.
    pub cpu: u32,
    /// Programs, those with a nice value too.
    pub user: u64,
    /// The kernel for them.
    pub system: u64,
    /// Nothing to do, or only a disk to wait for.
    pub idle: u64,
    /// Hard interrupts.
    pub hardirq: u64,
    /// Softirqs.
    pub softirq: u64,
    /// Taken by the hypervisor.
    pub steal: u64,
}

/// The time of every CPU that is online, by context; none where it cannot be read.
#[must_use]
pub fn context_ticks(root: &Root) -> Vec<ContextTicks> {
    root.read("/proc/stat").map(|text| parse_contexts(&text)).unwrap_or_default()
}

fn parse_contexts(text: &str) -> Vec<ContextTicks> {
    let line = |line: &str| {
        let (cpu, rest) = line.strip_prefix("cpu")?.split_once(' ')?;
        let cpu = cpu.parse().ok()?;
        // user nice system idle iowait irq softirq steal; guest time is in user.
        let ticks: Vec<u64> =
            rest.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
        let at = |place: usize| ticks.get(place).copied().unwrap_or(0);
        Some(ContextTicks {
            cpu,
            user: at(0).saturating_add(at(1)),
            system: at(2),
            idle: at(3).saturating_add(at(4)),
            hardirq: at(5),
            softirq: at(6),
            steal: at(7),
        })
    };
    text.lines().filter_map(line).collect()
}

/// One source of interrupts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptSource {
    /// `irq` or `softirq`.
    pub kind: &'static str,
    /// `LOC`, `24`, `TIMER`, ...
    pub name: String,
    /// What the kernel calls it, for hard interrupts.
    pub description: String,
    /// Names of the handlers that share it, for lines of devices.
    pub handlers: Vec<String>,
    /// Pairs of CPU and count since boot.
    pub counts: Vec<(u32, u64)>,
}

/// Every source of hard and soft interrupts, with its counts since boot.
#[must_use]
pub fn interrupt_sources(root: &Root) -> Vec<InterruptSource> {
    let mut sources = Vec::new();
    for (path, kind) in [("/proc/interrupts", "irq"), ("/proc/softirqs", "softirq")] {
        let text = root.read_shown(path);
        sources.extend(text.map(|text| parse_sources(&text, kind)).unwrap_or_default());
    }
    sources
}

fn parse_sources(text: &str, kind: &'static str) -> Vec<InterruptSource> {
    let mut lines = text.lines();
    let cpus: Vec<u32> = lines
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .filter_map(|word| word.strip_prefix("CPU")?.parse().ok())
        .collect();
    let source = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        let mut rest = rest.trim_start();
        let mut counts = Vec::with_capacity(cpus.len());
        for cpu in &cpus {
            let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            // Sources without a count per CPU (ERR, MIS) have one number only.
            let Ok(count) = word.parse() else { break };
            counts.push((*cpu, count));
            rest = after.trim_start();
        }
        let description = rest.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        let handlers = if name.trim().parse::<u32>().is_ok() { handlers(rest) } else { Vec::new() };
        Some(InterruptSource { kind, name: name.trim().into(), description, handlers, counts })
    };
    lines.filter_map(source).collect()
}

/// The handlers come last: behind two spaces, with a comma and a space between them
/// (`show_interrupts`, kernel/irq/proc.c). A name may have spaces.
fn handlers(description: &str) -> Vec<String> {
    let named = description.trim_end().rsplit_once("  ").map_or("", |(_, handlers)| handlers);
    named.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_stat_is_read() {
        let stat = Stat::parse(
            "cpu  10 0 20 70 0 0 0 0 0 0\ncpu0 4 1 3 80 2 5 3 2 9 9\ncpu3 1 0 0 9 0 0 0 0 0 0\n\
             intr 1234 5 6\nctxt 99\nprocesses 7\nsoftirq 55 1 2\n",
        );
        let ticks = |cpu, busy, steal, all| CpuTicks { cpu, busy, steal, all };
        assert_eq!(stat.cpus, [ticks(0, 18, 2, 100), ticks(3, 1, 0, 10)]);
        assert_eq!((stat.interrupts, stat.softirqs), (1234, 55));
        assert_eq!((stat.context_switches, stat.forks), (99, 7));
    }

    #[test]
    fn faults_disks_and_networks_are_read_and_nothing_is_counted_twice() {
        let mut stat = Stat::default();
        stat.add_faults("pgfault 70\npgmajfault 7\n");
        let disks = "8 0 sda 1 0 10 0 1 0 20 0\n8 1 sda1 1 0 10 0 1 0 20 0\n\
                     253 0 dm-0 1 0 10 0 1 0 20 0\n";
        stat.add_disks(disks, |name| name == "sda");
        stat.add_networks(
            "Inter-|   Receive  |  Transmit\n face |bytes    packets|bytes\n\
             lo: 5 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\neth0: 100 1 0 0 0 0 0 0 30 1 0 0 0 0 0 0\n",
        );
        assert_eq!((stat.page_faults, stat.major_faults), (70, 7));
        assert_eq!(stat.disk_bytes, (5_120, 10_240));
        assert_eq!((stat.network_bytes, stat.loopback_bytes), ((100, 30), 5));
    }

    #[test]
    fn interrupts_with_and_without_counts_per_cpu_are_read() {
        let sources = parse_sources(
            "           CPU0       CPU2\n  1:   9   10  IO-APIC   1-edge  i8042, other\n\
             LOC:  100 200   Local timer interrupts\nERR:  0\n",
            "irq",
        );
        assert_eq!(sources[0].counts, [(0, 9), (2, 10)]);
        assert_eq!(sources[0].description, "IO-APIC 1-edge i8042, other");
        assert_eq!(sources[0].handlers, ["i8042", "other"]);
        assert!(sources[1].handlers.is_empty());
        let named = handlers("PCI-MSI 458752-edge      PCIe PME, aerdrv, pciehp");
        assert_eq!(named, ["PCIe PME", "aerdrv", "pciehp"]);
        assert!(handlers("IO-APIC").is_empty());
        assert_eq!((sources[1].name.as_str(), sources[1].counts[1]), ("LOC", (2, 200)));
        assert_eq!(sources[2].counts, [(0, 0)]);
    }

    #[test]
    fn this_machine_has_interrupts() {
        assert!(interrupt_sources(&Root::default()).iter().any(|source| source.kind == "softirq"));
        let stat = Stat::read(&Root::default());
        assert!(!stat.cpus.is_empty() && stat.page_faults > 0);
    }
}
