//! The kernel's own tracer, as somebody else uses it meanwhile (`Documentation/trace/ftrace.rst`).

use std::{
    fs::{File, OpenOptions},
    io,
    os::fd::AsRawFd as _,
    path::Path,
};

use tardy_hot::stop::Alarm;

/// Where tracefs is mounted.
pub const TRACEFS: &str = "/sys/kernel/tracing";

/// A trace that can be marked and stopped.
#[derive(Debug)]
pub struct ForeignTrace {
    marker: File,
    switch: File,
}

impl ForeignTrace {
    /// Opens that in `directory`: tracefs itself, or an instance of it.
    ///
    /// # Errors
    /// Which file cannot be opened, and why.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let open = |name: &str| {
            let path = directory.join(name);
            let opened = OpenOptions::new().write(true).open(&path);
            opened.map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
        };
        Ok(Self { marker: open("trace_marker")?, switch: open("tracing_on")? })
    }

    /// What marks and stops it, for as long as this is there.
    #[must_use]
    pub fn alarm(&self) -> Alarm {
        Alarm { marker: self.marker.as_raw_fd(), switch: self.switch.as_raw_fd() }
    }
}
