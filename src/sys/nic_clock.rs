//! The clock of a NIC that stamps packets itself, compared with `CLOCK_REALTIME`.

use std::{
    fs::File,
    io,
    os::fd::{AsRawFd, OwnedFd},
};

use super::interface::{ask, open, request};

/// One comparison of both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compared {
    /// What the NIC's clock showed, ns.
    pub nic_ns: i64,
    /// What `CLOCK_REALTIME` showed then, ns.
    pub realtime_ns: i64,
    /// The largest error of the comparison, ns: half the time that it took.
    pub uncertainty_ns: i64,
}

impl Compared {
    /// The tightest of readings of the NIC's clock between two of `CLOCK_REALTIME`: before, the
    /// NIC's, after; all in ns.
    #[must_use]
    pub fn tightest(readings: &[[i64; 3]]) -> Option<Self> {
        let fair = readings.iter().filter(|[before, _, after]| after >= before);
        let [before, nic_ns, after] = fair.min_by_key(|[before, _, after]| after - before)?;
        let uncertainty_ns = (after - before + 1) / 2;
        Some(Self { nic_ns: *nic_ns, realtime_ns: before + (after - before) / 2, uncertainty_ns })
    }
}

/// A NIC's clock that can be read.
#[derive(Debug)]
pub struct NicClock(File);

impl NicClock {
    /// The clock by which the interface stamps what it receives; `None` if it does not do so now.
    /// Nothing is switched on.
    ///
    /// # Errors
    /// It stamps, but its clock cannot be read.
    pub fn of(interface: &str) -> io::Result<Option<Self>> {
        let Ok(socket) = open(libc::AF_INET, libc::SOCK_DGRAM, 0) else { return Ok(None) };
        if !stamps_now(&socket, interface) {
            return Ok(None);
        }
        match number_of(&socket, interface) {
            Some(number) => Ok(Some(Self(File::open(format!("/dev/ptp{number}"))?))),
            None => Ok(None),
        }
    }

    /// Compares both clocks.
    ///
    /// # Errors
    /// What the driver says.
    pub fn compare(&self) -> io::Result<Compared> {
        let mut offsets = Offsets::new();
        // SAFETY: the structure is that of the request, live and writable as long as the call.
        let failed =
            unsafe { libc::ioctl(self.0.as_raw_fd(), PTP_SYS_OFFSET_EXTENDED, &raw mut offsets) };
        if failed != 0 {
            return Err(io::Error::last_os_error());
        }
        let readings = offsets.times.map(|times| times.map(|time| time.ns()));
        let taken = readings.get(..SAMPLES as usize).unwrap_or_default();
        Compared::tightest(taken).ok_or_else(|| io::Error::other("a clock that runs backwards"))
    }
}

/// Readings of one comparison.
const SAMPLES: u32 = 5;

/// `_IOWR('=', 9, struct ptp_sys_offset_extended)`.
const PTP_SYS_OFFSET_EXTENDED: libc::Ioctl =
    (3 << 30) | ((size_of::<Offsets>() as libc::Ioctl) << 16) | (0x3d << 8) | 9;

/// `struct ptp_clock_time` of the kernel.
#[repr(C)]
#[derive(Clone, Copy)]
struct Time {
    s: i64,
    ns: u32,
    reserved: u32,
}

impl Time {
    fn ns(self) -> i64 {
        self.s.saturating_mul(1_000_000_000).saturating_add(i64::from(self.ns))
    }
}

/// `struct ptp_sys_offset_extended` of the kernel.
#[repr(C)]
struct Offsets {
    samples: u32,
    reserved: [u32; 3],
    times: [[Time; 3]; 25],
}

impl Offsets {
    const fn new() -> Self {
        let time = Time { s: 0, ns: 0, reserved: 0 };
        Self { samples: SAMPLES, reserved: [0; 3], times: [[time; 3]; 25] }
    }
}

/// `struct hwtstamp_config` of the kernel.
#[repr(C)]
#[derive(Default)]
struct Stamping {
    flags: libc::c_int,
    sent: libc::c_int,
    /// Which received packets are stamped; 0 for none.
    received: libc::c_int,
}

fn stamps_now(socket: &OwnedFd, interface: &str) -> bool {
    let mut stamping = Stamping::default();
    let Ok(mut request) = request(interface) else { return false };
    request.ifr_ifru.ifru_data = (&raw mut stamping).cast();
    ask(socket, libc::SIOCGHWTSTAMP, &mut request).is_ok() && stamping.received != 0
}

/// `struct ethtool_ts_info` of the kernel.
#[repr(C)]
#[derive(Default)]
struct StampInfo {
    command: u32,
    flags: u32,
    clock: i32,
    sent: [u32; 4],
    received: [u32; 4],
}

/// `ETHTOOL_GET_TS_INFO` of the kernel.
const GET_STAMP_INFO: u32 = 0x41;

/// The number of the interface's clock.
fn number_of(socket: &OwnedFd, interface: &str) -> Option<i32> {
    let mut info = StampInfo { command: GET_STAMP_INFO, ..StampInfo::default() };
    let mut request = request(interface).ok()?;
    request.ifr_ifru.ifru_data = (&raw mut info).cast();
    ask(socket, libc::SIOCETHTOOL as libc::Ioctl, &mut request).ok()?;
    (info.clock >= 0).then_some(info.clock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_as_long_as_the_kernels() {
        assert_eq!((size_of::<Offsets>(), size_of::<StampInfo>()), (1_216, 44));
        assert_eq!(PTP_SYS_OFFSET_EXTENDED, 0xc4c0_3d09);
    }

    #[test]
    fn the_reading_that_was_interrupted_least_counts() {
        let readings = [[0, 1_000, 900], [5_000, 6_100, 5_201], [9_000, 9_999, 8_000]];
        let tightest = Compared { nic_ns: 6_100, realtime_ns: 5_100, uncertainty_ns: 101 };
        assert_eq!(Compared::tightest(&readings), Some(tightest));
        assert_eq!(Compared::tightest(&[[2, 0, 1]]), None, "a step between");
        assert_eq!(Compared::tightest(&[]), None);
    }

    #[test]
    fn loopback_stamps_nothing_itself() {
        assert!(NicClock::of("lo").unwrap().is_none());
        assert!(NicClock::of("no-such-one").unwrap().is_none());
    }
}
