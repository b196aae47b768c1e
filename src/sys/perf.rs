//! Hardware counters by `perf_event_open`: so far the count of system management interrupts.

use std::{
    fs::File,
    io::Read,
    os::fd::{FromRawFd, RawFd},
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
    /// Begins to count on the first of `cpus`; absent where the CPU has no such counter (Intel's
    /// have one, and AMD's since family 17h; few virtual machines) or without the right
    /// (`CAP_PERFMON`).
    #[must_use]
    pub fn begin(root: &Root, cpus: &Cpus) -> Option<Self> {
        let cpu = i32::try_from(cpus.iter().next()?).ok()?;
        open(&smis_of_msr(root).or_else(|| smis_of_amd(root))?, cpu).map(Self)
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

/// Begins to count an event of all processes on one CPU.
fn open(event: &Attributes, cpu: i32) -> Option<File> {
    let size = u32::try_from(size_of::<Attributes>()).ok()?;
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
    let descriptor = RawFd::try_from(descriptor).ok().filter(|descriptor| *descriptor >= 0)?;
    // SAFETY: the kernel has just given this descriptor, which nothing else owns.
    Some(unsafe { File::from_raw_fd(descriptor) })
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
    fn a_machine_without_the_counter_has_none_and_one_with_it_counts() {
        let cpus = Cpus::allowed().unwrap();
        assert!(SmiCount::begin(&Root::at("/nowhere"), &cpus).is_none());
        if let Some(smis) = SmiCount::begin(&Root::default(), &cpus) {
            assert!(smis.read() <= smis.read());
        }
    }
}
