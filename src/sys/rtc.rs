//! The periodic interrupt of a real-time clock: /dev/rtc.

use std::{
    fs::{File, OpenOptions},
    io,
    os::fd::{AsRawFd, RawFd},
    path::Path,
};

use libc::{c_int, c_ulong};

/// Those of `include/uapi/linux/rtc.h`, as `_IO` and `_IOR` make them where a long has 64 bits.
const PIE_ON: c_ulong = 0x7005;
const PIE_OFF: c_ulong = 0x7006;
const IRQP_READ: c_ulong = 0x8008_700b;
const IRQP_SET: c_ulong = 0x4008_700c;

/// A clock that is set to a rate; set back when this is dropped.
#[derive(Debug)]
pub struct PeriodicClock {
    device: File,
    rate_before_hz: c_ulong,
}

impl PeriodicClock {
    /// Opens the clock and sets its rate; it does not interrupt yet.
    ///
    /// # Errors
    /// `EBUSY` where another process has it, `EACCES` for a rate beyond `max_user_freq` without
    /// `CAP_SYS_RESOURCE`, `EINVAL` or `ENOTTY` where it has no periodic interrupt.
    pub fn open(path: &Path, rate_hz: u32) -> io::Result<Self> {
        let device = OpenOptions::new().read(true).open(path)?;
        let mut rate_before_hz: c_ulong = 0;
        // SAFETY: the call writes one `unsigned long`, to which the pointer leads.
        done(unsafe { libc::ioctl(device.as_raw_fd(), IRQP_READ, &raw mut rate_before_hz) })?;
        let own = Self { device, rate_before_hz };
        own.set_rate(rate_hz.into())?;
        Ok(own)
    }

    /// Lets it interrupt from now on.
    ///
    /// # Errors
    /// Those of [`PeriodicClock::open`].
    pub fn start(&self) -> io::Result<()> {
        // SAFETY: takes no argument.
        done(unsafe { libc::ioctl(self.device.as_raw_fd(), PIE_ON, 0) })
    }

    /// The descriptor to read interrupts from: 8 bytes, their number above the lowest 8 bits.
    #[must_use]
    pub fn descriptor(&self) -> RawFd {
        self.device.as_raw_fd()
    }

    fn set_rate(&self, rate_hz: c_ulong) -> io::Result<()> {
        // SAFETY: takes a number.
        done(unsafe { libc::ioctl(self.device.as_raw_fd(), IRQP_SET, rate_hz) })
    }
}

impl Drop for PeriodicClock {
    fn drop(&mut self) {
        // SAFETY: takes no argument.
        unsafe { libc::ioctl(self.device.as_raw_fd(), PIE_OFF, 0) };
        // It was set to that before, and nobody else could have it meanwhile.
        let _ = self.set_rate(self.rate_before_hz);
    }
}

fn done(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
