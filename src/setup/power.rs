//! Keeps idle CPUs out of deep states: holds `/dev/cpu_dma_latency`, at 0 us unless the user allows
//! more, during a run.
//!
//! The kernel drops the request when the file is closed, however the process ends.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Seek, Write},
    path::Path,
};

use super::SetupError;
use crate::run::OsError;

const DEVICE: &str = "/dev/cpu_dma_latency";

/// A request to the kernel's idle governor, until dropped.
#[derive(Debug)]
pub struct DmaLatency {
    /// Open as long as the request is to hold.
    _device: File,
    /// What the kernel holds now, us, as read back: the smallest of all requests.
    pub found_us: Option<i32>,
}

impl DmaLatency {
    /// Asks for 0 us and reads back what the kernel holds.
    ///
    /// # Errors
    /// The device is missing or not writable.
    pub fn hold() -> Result<Self, OsError> {
        Self::hold_at(Path::new(DEVICE), 0)
    }

    /// Asks for `longest_us`, which the user said.
    ///
    /// # Errors
    /// It is not available.
    pub fn hold_asked(longest_us: i32) -> Result<Self, SetupError> {
        let refused = |why: String| SetupError::Choice {
            flag: format!("--max-idle-latency {longest_us}us"),
            why: format!("{DEVICE}: {why}"),
            remedy: "Run as root, or make the device writable for your group.",
        };
        let held = Self::hold_at(Path::new(DEVICE), longest_us);
        let held = held.map_err(|error| refused(error.text))?;
        match held.found_us {
            Some(found) if found <= longest_us => Ok(held),
            found => Err(refused(format!("the kernel accepted it but holds {found:?}"))),
        }
    }

    fn hold_at(device: &Path, longest_us: i32) -> Result<Self, OsError> {
        let refused = |error: std::io::Error| OsError::from(&error);
        let mut device = OpenOptions::new().read(true).write(true).open(device).map_err(refused)?;
        device.write_all(&longest_us.to_ne_bytes()).map_err(refused)?;
        let mut found = [0; 4];
        let read = device.rewind().and_then(|()| device.read_exact(&mut found));
        let found_us = read.is_ok().then(|| i32::from_ne_bytes(found));
        Ok(Self { _device: device, found_us })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_device_is_reported_with_its_reason() {
        let why = DmaLatency::hold_at(Path::new("/nonexistent/device"), 0).unwrap_err();
        assert_eq!((why.errno, why.text.as_str()), (Some(2), "No such file or directory"));
    }
}
