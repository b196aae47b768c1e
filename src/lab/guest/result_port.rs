//! The guest's channel for results: a port that QEMU writes to a file (`isa-debugcon`), which
//! needs no driver and has no speed; the second serial port where the kernel permits no ports.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use anyhow::{Context, Result};
use rustix::termios::{OptionalActions, tcdrain, tcgetattr, tcsetattr};

use super::transfer::{FAILED, HELLO, TransferWriter};
use crate::sys::ports::IoPort;

/// The port that QEMU listens on.
pub const PORT: u16 = 0xe9;

/// The serial port in its place.
const SERIAL: &str = "/dev/ttyS1";

/// How much of the end of a command's output is sent.
const MOST_SAID: usize = 16 << 10;

/// Where bytes go. It is one or the other from the beginning.
pub struct ResultPort {
    port: Option<IoPort>,
    used: bool,
}

impl ResultPort {
    /// Opens the port, and sends the hello.
    #[must_use]
    pub fn open() -> Self {
        let mut port = IoPort::open(PORT).ok();
        if let Some(port) = &mut port {
            port.write(HELLO);
        }
        Self { port, used: false }
    }

    /// Whether anything was handed out.
    #[must_use]
    pub const fn is_used(&self) -> bool {
        self.used
    }

    /// Sends how the command ended, its output, and the files in `directory`.
    ///
    /// # Errors
    /// A file that cannot be read; no usable port.
    pub fn hand(&mut self, ended: &Result<i32>, directory: &Path, said: &Path) -> Result<()> {
        self.used = true;
        match &mut self.port {
            Some(port) => {
                let mut greeted = false;
                let mut sink = |bytes: &[u8]| {
                    // The hello was sent at the start.
                    if std::mem::replace(&mut greeted, true) {
                        port.write(bytes);
                    }
                    Ok(())
                };
                send(TransferWriter::begin(&mut sink)?, ended, directory, said)
            }
            None => by_serial(ended, directory, said),
        }
    }
}

fn by_serial(ended: &Result<i32>, directory: &Path, said: &Path) -> Result<()> {
    let unusable = || format!("no port {PORT:#x}, and {SERIAL} cannot be used");
    let mut serial = fs::OpenOptions::new().write(true).open(SERIAL).with_context(unusable)?;
    let mut terminal = tcgetattr(&serial).with_context(unusable)?;
    // The terminal must not translate any byte.
    terminal.make_raw();
    tcsetattr(&serial, OptionalActions::Now, &terminal).with_context(unusable)?;
    let mut sink = |bytes: &[u8]| serial.write_all(bytes);
    send(TransferWriter::begin(&mut sink)?, ended, directory, said)?;
    tcdrain(&serial).map_err(io::Error::from).with_context(unusable)
}

fn send(
    mut sender: TransferWriter,
    ended: &Result<i32>,
    directory: &Path,
    said: &Path,
) -> Result<()> {
    let words = match ended {
        Ok(_) => fs::read(said).unwrap_or_default(),
        Err(error) => format!("the guest's first process: {error:#}").into_bytes(),
    };
    let last = &words[words.len().saturating_sub(MOST_SAID)..];
    sender.said(&String::from_utf8_lossy(last))?;
    if directory.exists() {
        sender.tree(directory)?;
    }
    // A guest that did not come so far lacks an exit code.
    sender.end(*ended.as_ref().unwrap_or(&FAILED))
}
