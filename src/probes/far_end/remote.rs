//! The handle of a far process in the local one: starts it, reads its messages, and ends it.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
    os::{
        fd::OwnedFd,
        unix::process::{CommandExt, ExitStatusExt},
    },
    process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread::{Builder, JoinHandle},
    time::{Duration, Instant},
};

use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use serde_json::Value;

use super::{
    FarEndResult,
    spec::{FarEndCommand, FarEndReply, FarEndSpec, InheritedFds, Ready, SUBCOMMAND},
};
use crate::{
    probes::{STACK_BYTES, Schedule},
    setup::threads::plain,
    sys::child,
};

/// How long it may take until it is ready. Slow machines under a load take seconds.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// How long it may take to end before it is killed.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// The longest message. A longer line is cut, and then cannot be parsed.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Capacity of its outlet while it is not read.
const OUTLET_BYTES: usize = 1 << 20;

/// A far process.
#[derive(Debug)]
pub(super) struct Remote {
    child: Child,
    control: Option<ChildStdin>,
    said: Receiver<FarEndReply>,
    reader: Option<JoinHandle<()>>,
    outlet: File,
    /// What it said at its end.
    report: Option<Box<(crate::probes::ThreadReport, Value)>>,
    /// How its process ended.
    status: Option<ExitStatus>,
}

impl Remote {
    /// Starts it.
    pub(super) fn start(order: FarEndSpec, mut descriptors: Vec<OwnedFd>) -> Result<Self, String> {
        let cannot = |what: &str, error: &io::Error| format!("{what}: {}", plain(error));
        let (outlet, far_outlet) = pipe_with(PipeFlags::CLOEXEC)
            .map_err(|error| cannot("cannot create a pipe", &error.into()))?;
        // Only the local side never waits; a smaller pipe is emptied as often.
        let _ = rustix::fs::fcntl_setfl(&outlet, rustix::fs::OFlags::NONBLOCK);
        let _ = fcntl_setpipe_size(&outlet, OUTLET_BYTES);
        let numbers = child::numbers(&descriptors);
        let outlet_number = child::numbers(std::slice::from_ref(&far_outlet));
        descriptors.push(far_outlet);
        let passed = InheritedFds {
            order,
            descriptors: numbers,
            outlet: outlet_number.first().copied().unwrap_or(-1),
        };
        let order = serde_json::to_string(&passed).map_err(|error| error.to_string())?;
        let child = spawn(&order, descriptors)
            .map_err(|error| cannot("its process cannot be started", &error))?;
        Ok(Self::of(child, File::from(outlet)))
    }

    fn of(mut child: Child, outlet: File) -> Self {
        let (replies, said) = channel();
        let control = child.stdin.take();
        let reader = child.stdout.take().and_then(|out| {
            let read = move || read_replies(out, |word| replies.send(word).is_ok());
            let thread = Builder::new().name("tardy/far-words".into()).stack_size(STACK_BYTES);
            thread.spawn(read).ok()
        });
        Self { child, control, said, reader, outlet, report: None, status: None }
    }

    /// Waits until it is ready to begin.
    pub(super) fn ready(&mut self) -> Result<Ready, String> {
        match self.said.recv_timeout(START_PATIENCE) {
            Ok(FarEndReply::Armed(ready)) => Ok(ready),
            Ok(FarEndReply::Failed(why)) => Err(why),
            Ok(FarEndReply::Ended(..)) => Err("it ended before it was ready".into()),
            Err(RecvTimeoutError::Timeout) => {
                Err(format!("it is not ready after {} s", START_PATIENCE.as_secs()))
            }
            Err(RecvTimeoutError::Disconnected) => {
                Err(self.wait().map_or_else(|| "its process ended".into(), describe))
            }
        }
    }

    /// Lets it begin. One that is gone shows when it is tended.
    pub(super) fn go(&mut self, schedule: Schedule) {
        self.send(&FarEndCommand::Go(schedule));
    }

    fn send(&mut self, word: &FarEndCommand) {
        if let (Some(control), Ok(mut line)) = (&mut self.control, serde_json::to_vec(word)) {
            line.push(b'\n');
            let _ = control.write_all(&line);
        }
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Option<String> {
        self.listen();
        if let Some(report) = &self.report {
            return Some(describe_end(&report.0));
        }
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status.map(describe)
    }

    fn listen(&mut self) {
        while let Ok(word) = self.said.try_recv() {
            self.take(word);
        }
    }

    fn take(&mut self, word: FarEndReply) {
        if let FarEndReply::Ended(report, value) = word {
            self.report = Some(Box::new((*report, value)));
        }
    }

    /// Takes what its outlet has let out; never waits.
    pub(super) fn fresh(&mut self, into: &mut Vec<u8>) {
        let mut chunk = [0; 64 * 1024];
        // A pipe with nothing in it, and one whose writer is gone, both end this.
        while let Ok(length @ 1..) = self.outlet.read(&mut chunk) {
            into.extend_from_slice(chunk.get(..length).unwrap_or_default());
        }
    }

    /// Ends it at once. One that is gone already has ended.
    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
    }

    /// Asks it to end, reads its remaining messages, and ensures that it has exited.
    pub(super) fn finish(mut self) -> FarEndResult {
        self.send(&FarEndCommand::Stop);
        let mut fresh = Vec::new();
        let deadline = Instant::now() + END_PATIENCE;
        while self.report.is_none() && Instant::now() < deadline {
            // Its last word comes after its outlet is empty, and that must not be full for long.
            self.fresh(&mut fresh);
            match self.said.recv_timeout(Duration::from_millis(5)) {
                Ok(word) => self.take(word),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.fresh(&mut fresh);
        let report = self.report.take();
        let (report, value) = report.map_or((None, Value::Null), |said| (Some(said.0), said.1));
        FarEndResult { report, value, fresh }
    }

    /// Waits for a process whose output has ended.
    fn wait(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.wait().ok();
        }
        self.status
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        drop(self.control.take());
        if self.report.is_none() && self.status.is_none() {
            // It was silent for too long, or was never started.
            let _ = self.child.kill();
        }
        self.wait();
        child::forget(&self.child);
        // Its output is closed now.
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

fn spawn(order: &str, descriptors: Vec<OwnedFd>) -> io::Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg(SUBCOMMAND)
        .arg(order)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // The user must see its error messages.
        .stderr(Stdio::inherit())
        // Ctrl-C goes to tardy's process group, and tardy ends its remote endpoints in good order.
        .process_group(0);
    child::end_with_this_thread(&mut command);
    child::hand_over(&mut command, descriptors);
    child::start(&mut command)
}

/// Forwards one message per line until the input ends or the receiver is dropped.
fn read_replies(out: ChildStdout, mut take: impl FnMut(FarEndReply) -> bool) {
    let mut out = BufReader::new(out);
    let mut line = Vec::new();
    loop {
        line.clear();
        match out.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if let Ok(word) = serde_json::from_slice(&line)
            && !take(word)
        {
            return;
        }
    }
}

/// `signal 9`, `exit 2`.
fn describe(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(number), _) => format!("signal {number}"),
        (None, code) => format!("exit {}", code.unwrap_or_default()),
    }
}

fn describe_end(report: &crate::probes::ThreadReport) -> String {
    use tardy_hot::wakeup::Ended;
    match report.ended {
        Ended::Failed(errno) => plain(&io::Error::from_raw_os_error(errno)),
        Ended::Done | Ended::Stopped => "its work ended".into(),
    }
}
