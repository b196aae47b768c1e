//! ZeroMQ requests of foreign programs, answered by one thread for all of them.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
};

use tardy_hot::stop::Stop;

use super::{
    EchoError, EchoOptions, PeerSummary, Summary,
    guard::{GuardedThread, SleepGuard},
    peer_thread::CALMED,
};
use crate::{
    setup::threads::{ThreadConfig, describe_found, plain},
    sys::{sched, tasks::OwnTasks, zmq::ZmqError},
    transports::zmq::{Answered, Answerer, ReplyLimits},
};

/// What the thread says when it listens: how it runs, and where.
type Ready = Result<(String, String), ZmqError>;

/// The thread that answers.
#[derive(Debug)]
pub(super) struct ReplyThread {
    thread: JoinHandle<Result<Answered, ZmqError>>,
    stop: Arc<Stop>,
    ran: String,
    /// On which its threads run, the library's as well.
    cpu: u32,
    tasks: OwnTasks,
    size_max: u32,
    /// Where it listens.
    pub address: SocketAddr,
}

impl ReplyThread {
    /// Listens as `plan` says. The library's threads run as this one's.
    ///
    /// # Errors
    /// The library is absent, or the address is not available.
    pub(super) fn open(plan: &EchoOptions) -> Result<Self, EchoError> {
        let (tasks, cpu) = (OwnTasks::open()?, cpu(plan));
        let (sender, ready) = mpsc::channel::<Ready>();
        let stop = Arc::new(Stop::new());
        let (own_stop, plan_of_thread) = (Arc::clone(&stop), plan.clone());
        let thread = thread::Builder::new().name("answers".into()).spawn(move || {
            let (ran, answerer) = match listen(&plan_of_thread) {
                Ok(listening) => listening,
                Err(error) => {
                    let _ = sender.send(Err(error));
                    return Ok(Answered::default());
                }
            };
            let _ = sender.send(Ok((ran, answerer.endpoint().to_owned())));
            answerer.serve(&own_stop)
        })?;
        let gone = |_| EchoError::Io(io::Error::other("the thread that answers has failed"));
        let refused = |error| EchoError::Zmq { at: plan.listen, why: error };
        let (ran, endpoint) = ready.recv().map_err(gone)?.map_err(refused)?;
        // As `tcp://127.0.0.1:5555`.
        let address = endpoint.rsplit('/').next().and_then(|address| address.parse().ok());
        let address = address.unwrap_or(plan.listen);
        Ok(Self { thread, stop, ran, cpu, tasks, size_max: plan.size_max, address })
    }

    /// Whether it still runs.
    #[must_use]
    pub(super) fn goes_on(&self) -> bool {
        !self.thread.is_finished()
    }

    /// Makes ordinary tasks of its threads where they leave their CPU no rest: all of them, as they
    /// pass each other their work, and the library's next ones run as the one that answers.
    pub(super) fn calm(&mut self, guard: &mut SleepGuard) {
        let (own, cpu) = (sched::thread_id(), self.cpu);
        let is_real_time = |tid| sched::of_thread(tid).is_ok_and(|found| found.priority > 0);
        let others = self.tasks.list().into_iter().filter(|tid| *tid != own && is_real_time(*tid));
        let threads: Vec<_> = others.map(|tid| GuardedThread { tid, cpu }).collect();
        if guard.calm(&threads).is_empty() {
            return;
        }
        threads.iter().for_each(|thread| drop(sched::make_last(thread.tid)));
        if !self.ran.ends_with(CALMED) {
            self.ran.push_str(CALMED);
        }
    }

    /// Ends it, and says what it did.
    ///
    /// # Errors
    /// What has ended it before its time.
    pub(super) fn finish(self) -> Result<Summary, EchoError> {
        self.stop.set();
        let failed = |_| EchoError::Io(io::Error::other("the thread that answers has failed"));
        let refused = |why| EchoError::Zmq { at: self.address, why };
        let done = self.thread.join().map_err(failed)?.map_err(refused)?;
        let peer = PeerSummary {
            transport: "zmq-tcp",
            address: None,
            mode: "foreign",
            size: Some(self.size_max),
            answered: done.requests,
            bytes: done.bytes,
            over_rate: done.slowed,
            foreign: done.refused,
            failed: done.closed,
            ran: self.ran,
            ended: "the echo ended".into(),
        };
        Ok(Summary {
            answered: done.requests,
            bytes: done.bytes,
            over_rate: done.slowed,
            foreign: done.refused,
            last_peers: vec![peer],
            ..Summary::default()
        })
    }
}

fn cpu(plan: &EchoOptions) -> u32 {
    plan.terms.cpus.first().copied().unwrap_or(0)
}

fn listen(plan: &EchoOptions) -> Result<(String, Answerer), ZmqError> {
    let (policy, priority) = (plan.terms.policy, plan.terms.priority);
    let ran = match (ThreadConfig { policy, priority, cpu: cpu(plan), slack_ns: 1 }).apply() {
        Ok(found) => describe_found(&found),
        Err(error) => format!("unchanged from its start: {}", plain(&error)),
    };
    let limits = ReplyLimits {
        longest_bytes: plan.size_max as usize,
        per_s: Some(plan.rate_max),
        ..ReplyLimits::default()
    };
    Ok((ran, Answerer::bind(&plan.listen.to_string(), limits)?))
}
