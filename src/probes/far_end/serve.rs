//! The far process itself: it executes its order, reports its state, and ends on request
//! or when its input ends.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::AsFd as _,
    sync::Arc,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    stdio::dup2_stdout,
};
use tardy_hot::{clock::now_ns, stop::Stop};

use super::{
    spec::{FarEndCommand, FarEndJob, FarEndReply, FarEndSpec, InheritedFds},
    worker::{FarEndThread, WorkOutcome},
};
use crate::{
    setup::{
        memory::Locked,
        threads::{become_helper, plain},
    },
    sys::{child, cpus::Cpus, memory, signals},
};

/// How often recorded samples are written out.
const OUTLET_TICK: Duration = Duration::from_millis(20);

/// The same where that is compared with what the kernel keeps for a short time.
const HURRIED_TICK: Duration = Duration::from_millis(5);

/// How often it checks whether the work has ended by itself.
const TICK: Duration = Duration::from_millis(100);

/// Exit codes, for logs.
const ENDED: u8 = 0;
const ABANDONED: u8 = 1;
const FAILED: u8 = 2;

/// A remote endpoint that waits for its start, what keeps its memory locked, and its outlet.
type ReadyFarEnd = (FarEndThread, Option<Locked>, File);

/// Does what the order says, which is one of `jobs`; the exit code.
#[must_use]
pub fn serve(order_json: &str, jobs: &[FarEndJob]) -> u8 {
    let Ok(mut replies) = Replies::take() else { return FAILED };
    match ready(order_json, jobs, &mut replies) {
        Ok(ready) => follow(ready, replies),
        Err(why) => {
            replies.say(&FarEndReply::Failed(why));
            FAILED
        }
    }
}

/// Where replies go: the standard output that the process began with.
struct Replies(File);

impl Replies {
    /// Takes standard output for replies alone; a library that prints gets standard error. OpenPGM
    /// writes a line in two parts: a reply between them would not be understood.
    fn take() -> io::Result<Self> {
        let own = io::stdout().as_fd().try_clone_to_owned()?;
        dup2_stdout(io::stderr())?;
        Ok(Self(own.into()))
    }

    /// A reply that is no longer read is not an error here: the input ends then, too.
    fn say(&mut self, said: &FarEndReply) {
        if let Ok(mut line) = serde_json::to_vec(said) {
            line.push(b'\n');
            let _ = self.0.write_all(&line);
        }
    }
}

fn ready(
    order_json: &str,
    jobs: &[FarEndJob],
    replies: &mut Replies,
) -> Result<ReadyFarEnd, String> {
    let unread = |error| format!("its order cannot be read: {error}");
    let passed: InheritedFds = serde_json::from_str(order_json).map_err(unread)?;
    let FarEndSpec { name, job, arguments, terms, locks_memory } = passed.order;
    let job = jobs.iter().find(|known| known.name == job);
    let job = job.ok_or("its order names an unknown job")?;
    let take = |number: i32| {
        child::take_over(number).map_err(|error| format!("descriptor {number}: {}", plain(&error)))
    };
    let descriptors = passed.descriptors.into_iter().map(take).collect::<Result<Vec<_>, _>>()?;
    let outlet = File::from(take(passed.outlet)?);
    memory::keep_heap();
    signals::accept_nudges().map_err(|error| format!("no signal handler: {}", plain(&error)))?;
    // The name is shown by `ps`.
    let _ = rustix::thread::set_name(c"tardy-far");
    let mut locked = locks_memory.then(Locked::before_arming);
    let (cpu, priority) = (terms.cpu, terms.priority);
    let work = (job.work)(arguments, descriptors).map_err(unread)?;
    let (worker, ready) = FarEndThread::start(&name, work, terms, Arc::new(Stop::new()))?;
    locked.iter_mut().for_each(Locked::after_arming);
    // Never in the way of the thread that works, and never kept waiting by a load.
    let own: Cpus = [cpu].into_iter().collect();
    let free = Cpus::allowed().unwrap_or_default().without(&own);
    // A single one left is the local endpoint's, which may never leave it.
    let free = if free.iter().count() < 2 { Cpus::default() } else { free };
    let _ = become_helper(priority, &free);
    replies.say(&FarEndReply::Armed(ready));
    Ok((worker, locked, outlet))
}

/// From being ready to the end; memory stays locked for as long.
fn follow((mut worker, locked, mut outlet): ReadyFarEnd, mut replies: Replies) -> u8 {
    let tick = match (worker.has_outlet(), worker.is_hurried()) {
        (true, true) => HURRIED_TICK,
        (true, false) => OUTLET_TICK,
        (false, _) => TICK,
    };
    let mut fresh = Vec::new();
    while !worker.is_done() {
        let left_ns = u64::try_from(worker.poll(now_ns())).unwrap_or(0);
        match heard(tick.min(Duration::from_nanos(left_ns))) {
            Heard::Nothing => {}
            Heard::Go(schedule) => worker.go(schedule),
            Heard::Stop => worker.stop(),
            // The process that measured is gone: a report would not be read.
            Heard::End => return ABANDONED,
        }
        worker.fresh(&mut fresh);
        if let_out(&mut outlet, &mut fresh).is_err() {
            return ABANDONED;
        }
    }
    let WorkOutcome { report, value, .. } = worker.finish(&mut fresh);
    let _ = let_out(&mut outlet, &mut fresh);
    drop(outlet);
    replies.say(&FarEndReply::Ended(Box::new(report), value));
    drop(locked);
    ENDED
}

/// Waits for room: the reader reads until the end.
fn let_out(outlet: &mut File, fresh: &mut Vec<u8>) -> io::Result<()> {
    let written = outlet.write_all(fresh);
    fresh.clear();
    written
}

enum Heard {
    Nothing,
    Go(crate::probes::Schedule),
    Stop,
    End,
}

/// Waits up to `pause` for a word. Each is one line, written at once and shorter than a pipe, so
/// that one `read` has whole lines; the last of them counts.
fn heard(pause: Duration) -> Heard {
    let control = io::stdin();
    let mut control = [PollFd::new(&control, PollFlags::IN)];
    let timeout = Timespec::try_from(pause).unwrap_or_default();
    match poll(&mut control, Some(&timeout)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => return Heard::Nothing,
        Ok(_) => {}
        Err(_) => return Heard::End,
    }
    let mut said = [0; 4096];
    match io::stdin().lock().read(&mut said) {
        Ok(0) => Heard::End,
        Ok(length) => said.get(..length).map_or(Heard::Nothing, last_of),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Heard::Nothing,
        Err(_) => Heard::End,
    }
}

fn last_of(lines: &[u8]) -> Heard {
    let line = lines.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty());
    match line.map(serde_json::from_slice) {
        Some(Ok(FarEndCommand::Go(schedule))) => Heard::Go(schedule),
        Some(Ok(FarEndCommand::Stop)) => Heard::Stop,
        Some(Err(_)) => Heard::End,
        None => Heard::Nothing,
    }
}
