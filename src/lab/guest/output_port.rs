//! Where the standard output of a guest's command goes: a port that QEMU writes to a file
//! (`isa-debugcon`), as [`super::result_port`]. A serial port has a driver that waits for
//! interrupts: on a busy host a guest continued without one line of output, until it was ended.

use std::{
    fs,
    io::{self, PipeReader, Read as _, Write as _},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use anyhow::{Context, Result, anyhow};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::sys::ports::IoPort;

/// The port that QEMU listens on.
pub const PORT: u16 = 0xe8;

/// The serial port in its place, where the kernel permits no ports.
const SERIAL: &str = "/dev/ttyS1";

/// How long the relay waits for output before it looks whether the command has ended, ns.
const PAUSE_NS: i64 = 20_000_000;

/// The guest's side of it.
#[derive(Debug)]
pub enum OutputPort {
    /// Bytes to QEMU, at once.
    Port(IoPort),
    /// Bytes to a driver.
    Serial(fs::File),
}

impl OutputPort {
    /// Opens the port, else the serial one.
    ///
    /// # Errors
    /// Neither can be opened.
    pub fn open() -> Result<Self> {
        if let Ok(port) = IoPort::open(PORT) {
            return Ok(Self::Port(port));
        }
        let serial = fs::OpenOptions::new().write(true).open(SERIAL);
        let serial = serial.with_context(|| format!("no port {PORT:#x}, and no {SERIAL}"))?;
        Ok(Self::Serial(serial))
    }

    /// Writes its own line.
    ///
    /// # Errors
    /// Those of the serial port.
    pub fn line(&mut self, line: &str) -> io::Result<()> {
        self.write(format!("\n{line}\n").as_bytes())
    }

    /// Waits until everything has gone out: at power-off the rest would be lost.
    pub fn drain(&self) {
        if let Self::Serial(serial) = self {
            let _ = rustix::termios::tcdrain(serial);
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Port(port) => {
                port.write(bytes);
                Ok(())
            }
            Self::Serial(serial) => serial.write_all(bytes),
        }
    }
}

/// Passes on what a command writes to a pipe, meanwhile.
pub struct Relay {
    has_ended: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<OutputPort>>,
}

impl Relay {
    /// Begins to read.
    pub fn start(pipe: PipeReader, output: OutputPort) -> Self {
        let has_ended = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&has_ended);
        Self { has_ended, thread: thread::spawn(move || relay(pipe, output, &seen)) }
    }

    /// Passes on what is left of a command that has ended, and gives back the port. What it started
    /// may hold the pipe open for ever, and is not waited for.
    ///
    /// # Errors
    /// The pipe or the serial port failed.
    pub fn end(self) -> Result<OutputPort> {
        self.has_ended.store(true, Ordering::Release);
        let ended = self.thread.join().map_err(|_| anyhow!("the relay of the output broke"))?;
        ended.context("cannot pass on the command's output")
    }
}

fn relay(
    mut pipe: PipeReader,
    mut output: OutputPort,
    has_ended: &AtomicBool,
) -> io::Result<OutputPort> {
    let mut bytes = [0; 4096];
    loop {
        // Before it waits: what was written before the end is there by then.
        let is_last = has_ended.load(Ordering::Acquire);
        let timeout = Timespec { tv_sec: 0, tv_nsec: if is_last { 0 } else { PAUSE_NS } };
        let ready = poll(&mut [PollFd::new(&pipe, PollFlags::IN)], Some(&timeout))?;
        if ready == 0 && is_last {
            return Ok(output);
        }
        if ready == 0 {
            continue;
        }
        match pipe.read(&mut bytes)? {
            0 => return Ok(output),
            count => output.write(&bytes[..count])?,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn all_that_was_written_before_the_end_comes_through_though_the_pipe_stays_open() {
        let (reader, mut writer) = io::pipe().unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let relay = Relay::start(reader, OutputPort::Serial(file.reopen().unwrap()));
        let much = "x".repeat(100_000);
        writer.write_all(much.as_bytes()).unwrap();
        thread::sleep(Duration::from_millis(1));
        writer.write_all(b"\nlast\n").unwrap();
        let mut output = relay.end().unwrap();
        output.line("guest-end 0").unwrap();
        output.drain();
        let text = fs::read_to_string(file.path()).unwrap();
        assert_eq!(text, format!("{much}\nlast\n\nguest-end 0\n"));
        drop(writer);
    }
}
