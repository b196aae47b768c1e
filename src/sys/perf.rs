//! Events by `perf_event_open`: the count of system management interrupts, and samples of what a
//! CPU does.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::{FromRawFd, OwnedFd, RawFd},
};

use super::{cpus::Cpus, root::Root};

const DEVICE: &str = "/sys/bus/event_source/devices/msr";

/// The first version of the kernel's `perf_event_attr`, which every kernel takes.
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

/// `PERF_TYPE_RAW`: an event by the processor's own number (<linux/perf_event.h>).
const RAW: u32 = 4;

/// `pinned`, the third flag: reading fails where the event was not counted all the time.
const PINNED: u64 = 1 << 2;

/// `disabled`, the first flag: nothing is counted until it is enabled.
const DISABLED: u64 = 1;

/// `freq`, the eleventh flag: what stands for the period is a rate a second.
const FREQUENCY: u64 = 1 << 10;

/// What samples are taken by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SamplingEvent {
    /// Cycles of the CPU, by its own counter. A halted CPU has none.
    Cycles,
    /// The kernel's timer, on every CPU at any time.
    CpuClock,
}

impl SamplingEvent {
    /// Cycles where this CPU counts them for us, else the clock.
    #[must_use]
    pub fn best(cpu: u32) -> Self {
        let is_there = Self::Cycles.open(cpu, 1).is_ok();
        if is_there { Self::Cycles } else { Self::CpuClock }
    }

    /// Prepares `hz` samples a second of whatever one CPU does. Who attaches a program to it
    /// enables it.
    ///
    /// # Errors
    /// `EACCES` or `EPERM` without the right (`CAP_PERFMON`, or `kernel.perf_event_paranoid` below
    /// 1), `EINVAL` above `kernel.perf_event_max_sample_rate`, `ENOENT` without the event, `ENODEV`
    /// for a CPU that is offline.
    pub fn open(self, cpu: u32, hz: u32) -> io::Result<OwnedFd> {
        // PERF_TYPE_HARDWARE with PERF_COUNT_HW_CPU_CYCLES, PERF_TYPE_SOFTWARE with
        // PERF_COUNT_SW_CPU_CLOCK.
        let kind = match self {
            Self::Cycles => 0,
            Self::CpuClock => 1,
        };
        let (sample_period, flags) = (u64::from(hz), DISABLED | FREQUENCY);
        let event = Attributes { kind, sample_period, flags, ..Attributes::default() };
        let cpu = i32::try_from(cpu).map_err(|_| io::ErrorKind::InvalidInput)?;
        open_on(&event, cpu).map(OwnedFd::from)
    }
}

/// AMD's event "SMIs received", PMCx02B of the Processor Programming References of these families;
/// `ls_smi_rx` in tools/perf/pmu-events/arch/x86/amdzen1 to amdzen5 of the kernel.
const AMD_SMIS: u64 = 0x2b;

/// The first family that has it: Zen.
const AMD_FAMILY: u32 = 0x17;

/// Counts the times that the firmware took the machine away (SMI), as one CPU counts them: an SMI
/// stops all CPUs.
#[derive(Debug)]
pub struct SmiCount(File);

impl SmiCount {
    /// Begins to count on the first of `cpus`; `None` if the CPU has no such counter (Intel's have
    /// one, and AMD's since family 17h; few virtual machines) or without the right (`CAP_PERFMON`).
    #[must_use]
    pub fn begin(root: &Root, cpus: &Cpus) -> Option<Self> {
        let cpu = i32::try_from(cpus.iter().next()?).ok()?;
        open_on(&smis_of_msr(root).or_else(|| smis_of_amd(root))?, cpu).ok().map(Self)
    }

    /// SMIs since [`SmiCount::begin`]. Interrupts that CPU, and so belongs before or after a
    /// measurement.
    #[must_use]
    pub fn read(&self) -> Option<u64> {
        let mut count = [0; 8];
        (&self.0).read_exact(&mut count).ok()?;
        Some(u64::from_ne_bytes(count))
    }
}

/// The count that Intel's CPUs keep themselves (MSR_SMI_COUNT).
fn smis_of_msr(root: &Root) -> Option<Attributes> {
    let kind = root.value(format!("{DEVICE}/type"))?;
    let config = event(&root.read(format!("{DEVICE}/events/smi"))?)?;
    Some(Attributes { kind, config, ..Attributes::default() })
}

/// The event of AMD's CPUs; not in a virtual machine, where the hypervisor answers for the counter.
fn smis_of_amd(root: &Root) -> Option<Attributes> {
    let cpuinfo = root.read("/proc/cpuinfo")?;
    let of = |key: &str| {
        let value = |line: &'_ str| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == key).then(|| value.trim().to_owned())
        };
        cpuinfo.lines().find_map(value)
    };
    let is_virtual = of("flags")?.split_whitespace().any(|flag| flag == "hypervisor");
    let family: u32 = of("cpu family")?.parse().ok()?;
    let counts = of("vendor_id")? == "AuthenticAMD" && family >= AMD_FAMILY && !is_virtual;
    counts.then(|| Attributes {
        kind: RAW,
        config: AMD_SMIS,
        flags: PINNED,
        ..Attributes::default()
    })
}

/// Opens an event of all processes on one CPU.
fn open_on(event: &Attributes, cpu: i32) -> io::Result<File> {
    let size = u32::try_from(size_of::<Attributes>()).unwrap_or(0);
    let attributes = Attributes { size, ..*event };
    let (any_process, no_group, close_on_exec) = (-1, -1, 8_u64);
    // SAFETY: `attributes` is a valid perf_event_attr of the size that it names.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            any_process,
            cpu,
            no_group,
            close_on_exec,
        )
    };
    let descriptor = RawFd::try_from(descriptor).ok().filter(|descriptor| *descriptor >= 0);
    let descriptor = descriptor.ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the kernel has just given this descriptor, which nothing else owns.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

/// "event=0x04"
fn event(description: &str) -> Option<u64> {
    let number = description.split(',').find_map(|term| term.trim().strip_prefix("event="))?;
    number.strip_prefix("0x").map_or_else(
        || number.parse().ok(),
        |hexadecimal| u64::from_str_radix(hexadecimal, 16).ok(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_as_sysfs_describes_them() {
        assert_eq!(event("event=0x04"), Some(4));
        assert_eq!(event("umask=1,event=12"), Some(12));
        assert_eq!(event("config=1"), None);
    }

    /// What would be counted on a machine with this /proc/cpuinfo, and this event of its MSRs.
    fn counted(vendor: &str, family: &str, flags: &str, msr: Option<&str>) -> Option<(u32, u64)> {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        let write = |path: String, text: &str| {
            let path = root.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let cpu = format!(
            "processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nflags\t\t: {flags}\n\n"
        );
        write("/proc/cpuinfo".into(), &cpu.repeat(2));
        if let Some(smi) = msr {
            write(format!("{DEVICE}/type"), "9\n");
            write(format!("{DEVICE}/events/smi"), smi);
        }
        let found = smis_of_msr(&root).or_else(|| smis_of_amd(&root))?;
        assert_eq!(found.flags == PINNED, found.kind == RAW);
        Some((found.kind, found.config))
    }

    #[test]
    fn the_count_is_intels_own_or_the_event_of_amds_processors_since_family_17h() {
        assert_eq!(counted("GenuineIntel", "6", "fpu vme", Some("event=0x04")), Some((9, 4)));
        for family in ["23", "25", "26"] {
            assert_eq!(counted("AuthenticAMD", family, "fpu vme", None), Some((RAW, 0x2b)));
        }
        let none = [
            counted("AuthenticAMD", "21", "fpu vme", None),
            counted("AuthenticAMD", "25", "fpu vme hypervisor", None),
            counted("GenuineIntel", "6", "fpu vme", None),
            counted("AuthenticAMD", "unknown", "fpu vme", None),
        ];
        assert_eq!(none, [None; 4]);
    }

    #[test]
    fn the_clock_samples_where_it_may_and_no_cpu_that_is_not_there() {
        assert!(SamplingEvent::CpuClock.open(1 << 20, 99).is_err());
        let cpu = Cpus::allowed().unwrap().iter().next().unwrap();
        match SamplingEvent::CpuClock.open(cpu, 99) {
            Ok(_) => assert!(SamplingEvent::best(cpu).open(cpu, 99).is_ok()),
            Err(error) => {
                let refused = [Some(libc::EACCES), Some(libc::EPERM)];
                assert!(refused.contains(&error.raw_os_error()), "{error}");
            }
        }
    }

    #[test]
    fn a_machine_without_the_counter_has_none_and_one_with_it_counts() {
        let cpus = Cpus::allowed().unwrap();
        assert!(SmiCount::begin(&Root::at("/nowhere"), &cpus).is_none());
        if let Some(smis) = SmiCount::begin(&Root::default(), &cpus) {
            assert!(smis.read() <= smis.read());
        }
    }
}
