//! I/O ports of the CPU: bytes to a device that needs no driver.

use std::io;

/// A port that this thread may write to.
#[derive(Debug)]
pub struct IoPort {
    number: u16,
}

impl IoPort {
    /// Asks the kernel for `number`, for the calling thread and those that it starts afterwards.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_RAWIO` or where the kernel is locked down; `Unsupported` on CPUs
    /// without such ports.
    pub fn open(number: u16) -> io::Result<Self> {
        permit(number)?;
        Ok(Self { number })
    }

    /// Writes the bytes one after the other.
    pub fn write(&mut self, bytes: &[u8]) {
        put(self.number, bytes);
    }
}

#[cfg(target_arch = "x86_64")]
fn permit(number: u16) -> io::Result<()> {
    // SAFETY: takes integers; the kernel checks the right to it.
    match unsafe { libc::ioperm(number.into(), 1, 1) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn permit(_number: u16) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(target_arch = "x86_64")]
fn put(number: u16, bytes: &[u8]) {
    // SAFETY: reads as many bytes as the slice has, and the port is one that `open` was permitted;
    // the direction flag is clear by the rules of the ABI.
    unsafe {
        std::arch::asm!(
            "rep outsb",
            in("dx") number,
            inout("rsi") bytes.as_ptr() => _,
            inout("rcx") bytes.len() => _,
            options(readonly, nostack, preserves_flags),
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn put(_number: u16, _bytes: &[u8]) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_permitted_or_refused_with_a_reason() {
        // Where firmware leaves its progress; it is not written to.
        if let Err(error) = IoPort::open(0x80) {
            let has_number = error.raw_os_error().is_some();
            assert!(has_number || error.kind() == io::ErrorKind::Unsupported, "{error}");
        }
    }
}
