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
#[derive(Default)]
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

/// Counts the times that the firmware took the machine away (SMI), as one CPU counts them: an SMI
/// stops all CPUs.
#[derive(Debug)]
pub struct SmiCount(File);

impl SmiCount {
    /// Begins to count on the first of `cpus`; absent where the CPU has no such counter (only Intel
    /// has one, and few virtual machines) or without the right (`CAP_PERFMON`).
    #[must_use]
    pub fn begin(root: &Root, cpus: &Cpus) -> Option<Self> {
        let kind = root.value(format!("{DEVICE}/type"))?;
        let config = event(&root.read(format!("{DEVICE}/events/smi"))?)?;
        let cpu = i32::try_from(cpus.iter().next()?).ok()?;
        let attributes = Attributes {
            kind,
            config,
            size: u32::try_from(size_of::<Attributes>()).ok()?,
            ..Attributes::default()
        };
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
        Some(Self(unsafe { File::from_raw_fd(descriptor) }))
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

    #[test]
    fn a_machine_without_the_counter_has_none_and_one_with_it_counts() {
        let cpus = Cpus::allowed().unwrap();
        assert!(SmiCount::begin(&Root::at("/nowhere"), &cpus).is_none());
        if let Some(smis) = SmiCount::begin(&Root::default(), &cpus) {
            assert!(smis.read() <= smis.read());
        }
    }
}
