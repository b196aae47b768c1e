//! Remote endpoints: what answers, receives or sends at the other end of a transport, on this
//! machine.
//!
//! A remote endpoint is its own process, `tardy __far ORDER`, so that what passes between two
//! programs is measured and not what passes between two threads; or, where a transport reaches no
//! other process, a thread. Either way its work is a [`FarEndWork`]: opened on its terms, started,
//! stopped, and asked for its report.
//!
//! A process holds nothing that outlives it. The kernel kills it when the thread of tardy that
//! started it ends in any way; if that is refused, the end of its standard input ends it.

mod spec;
mod remote;
mod serve;
mod worker;

use std::{os::fd::OwnedFd, sync::Arc};

use serde_json::Value;
use tardy_hot::{clock::now_ns, stop::Stop, wakeup::Ended};

use self::{
    remote::Remote,
    worker::{FarEndThread, WorkOutcome},
};
pub use self::{
    serve::serve,
    spec::{FarEndJob, FarEndSpec, SUBCOMMAND},
};
use super::{ArmError, Schedule, ThreadReport};
use crate::setup::threads::{Found, ThreadConfig};

/// What a remote endpoint is there for. It is opened and run in one dedicated thread.
pub trait FarEndWork: Send {
    /// How what it records while it runs gets out; asked for once, before [`FarEndWork::open`].
    fn outlet(&mut self) -> Option<Outlet> {
        None
    }

    /// Whether what it records must get out within some milliseconds: it is compared with what
    /// the kernel keeps for some 50 ms.
    fn is_hurried(&self) -> bool {
        false
    }

    /// Opens what it needs and touches all memory that it will use. The thread runs on its terms
    /// already.
    ///
    /// # Errors
    /// What is not available, for the user.
    fn open(self: Box<Self>) -> Result<Box<dyn Opened>, String>;
}

/// Work that can begin.
pub trait Opened {
    /// What is known of it now that it is open: sizes of buffers as read back, say.
    fn facts(&self) -> Value {
        Value::Null
    }

    /// What ends a wait of it where a signal does not; called by another thread after the flag of
    /// [`Opened::run`] is set.
    fn nudger(&self) -> Option<WakeFn> {
        None
    }

    /// Works until its part of the schedule is over or `stop` is set. A signal that ends a system
    /// call with `EINTR` follows the flag, again and again until this returns.
    fn run(&mut self, schedule: Schedule, stop: &Stop) -> Ended;

    /// What it has to say at the end, beside the report of its thread.
    fn value(&self) -> Value {
        Value::Null
    }
}

/// Ends a wait.
pub type WakeFn = Box<dyn Fn() + Send>;

/// Appends what has been recorded since the last call; called about every 20 ms (5 ms where it is
/// hurried) by a thread that does not measure, and once more at the end.
pub type Outlet = Box<dyn FnMut(&mut Vec<u8>) + Send>;

/// A remote endpoint that has been started, as the local one holds it.
#[derive(Debug)]
pub struct RunningFarEnd {
    name: String,
    found: Found,
    facts: Value,
    place: FarEndHandle,
}

#[derive(Debug)]
enum FarEndHandle {
    Process(Remote),
    Thread(FarEndThread),
}

/// How a remote endpoint fared.
#[derive(Debug)]
pub struct FarEndResult {
    /// The report of its thread; `None` if it ended without one.
    pub report: Option<ThreadReport>,
    /// What its work had to say; null where it had nothing, or went away.
    pub value: Value,
    /// What its outlet let out since the last [`RunningFarEnd::fresh`].
    pub fresh: Vec<u8>,
}

/// A remote endpoint that is on its way.
///
/// Starting a process makes every page of this one fault once more, so that it comes before the
/// memory that measuring threads use; opening some ends takes both sides, so that being ready comes
/// after.
#[derive(Debug)]
pub struct Launched {
    name: String,
    on_its_way: PendingRemote,
}

enum PendingRemote {
    Process(Remote),
    Thread(Box<dyn FarEndWork>, ThreadConfig),
}

impl std::fmt::Debug for PendingRemote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Process(_) => "Process",
            Self::Thread(..) => "Thread",
        })
    }
}

impl Launched {
    /// Starts a process. It inherits the CPUs of the calling thread and, in the order of the job,
    /// these descriptors. The calling thread must stay until the remote endpoint is finished.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn process(order: FarEndSpec, descriptors: Vec<OwnedFd>) -> Result<Self, ArmError> {
        let name = order.name.clone();
        match Remote::start(order, descriptors) {
            Ok(remote) => Ok(Self { name, on_its_way: PendingRemote::Process(remote) }),
            Err(why) => Err(ArmError::Far { name, why }),
        }
    }

    /// A thread of this process instead, for what reaches no other; it begins when it is waited
    /// for.
    #[must_use]
    pub fn thread(name: &str, work: Box<dyn FarEndWork>, terms: ThreadConfig) -> Self {
        Self { name: name.into(), on_its_way: PendingRemote::Thread(work, terms) }
    }

    /// Waits until it is ready to begin.
    ///
    /// # Errors
    /// What it cannot have.
    pub fn ready(self) -> Result<RunningFarEnd, ArmError> {
        let Self { name, on_its_way } = self;
        let cannot = |why| ArmError::Far { name: name.clone(), why };
        let (place, ready) = match on_its_way {
            PendingRemote::Process(mut remote) => {
                let ready = remote.ready().map_err(cannot)?;
                (FarEndHandle::Process(remote), ready)
            }
            PendingRemote::Thread(work, terms) => {
                let stop = Arc::new(Stop::new());
                let (worker, ready) =
                    FarEndThread::start(&name, work, terms, stop).map_err(cannot)?;
                (FarEndHandle::Thread(worker), ready)
            }
        };
        Ok(RunningFarEnd { name, found: ready.found, facts: ready.facts, place })
    }
}

impl RunningFarEnd {
    /// What its thread runs as, under its name, as `Armed::found` wants it.
    #[must_use]
    pub fn found(&self) -> (String, Found) {
        (self.name.clone(), self.found.clone())
    }

    /// What [`Opened::facts`] said.
    #[must_use]
    pub const fn facts(&self) -> &Value {
        &self.facts
    }

    /// `process` or `thread`.
    #[must_use]
    pub const fn place(&self) -> &'static str {
        match self.place {
            FarEndHandle::Process(_) => "process",
            FarEndHandle::Thread(_) => "thread",
        }
    }

    /// Lets it begin.
    pub fn go(&mut self, schedule: Schedule) {
        match &mut self.place {
            FarEndHandle::Process(remote) => remote.go(schedule),
            FarEndHandle::Thread(worker) => worker.go(schedule),
        }
    }

    /// How it ended, if it has; to be asked before [`RunningFarEnd::finish`], where that would be
    /// too soon. Never waits.
    pub fn poll(&mut self) -> Option<String> {
        let how = match &mut self.place {
            FarEndHandle::Process(remote) => remote.ended(),
            FarEndHandle::Thread(worker) if !worker.is_done() => {
                worker.poll(now_ns());
                None
            }
            FarEndHandle::Thread(_) => Some("its thread ended".into()),
        };
        how.map(|how| format!("{} ({}): {how}", self.name, self.place()))
    }

    /// Takes what its outlet has let out. Never waits.
    pub fn fresh(&mut self, into: &mut Vec<u8>) {
        match &mut self.place {
            FarEndHandle::Process(remote) => remote.fresh(into),
            FarEndHandle::Thread(worker) => worker.fresh(into),
        }
    }

    /// Kills a process at once, without a report; a thread cannot be ended so.
    pub fn kill(&mut self) {
        if let FarEndHandle::Process(remote) = &mut self.place {
            remote.kill();
        }
    }

    /// Stops it, waits until it has ended, and returns its report.
    #[must_use]
    pub fn finish(self) -> FarEndResult {
        match self.place {
            FarEndHandle::Process(remote) => remote.finish(),
            FarEndHandle::Thread(mut worker) => {
                worker.stop();
                let mut fresh = Vec::new();
                let WorkOutcome { report, value, .. } = worker.finish(&mut fresh);
                FarEndResult { report: Some(report), value, fresh }
            }
        }
    }
}
