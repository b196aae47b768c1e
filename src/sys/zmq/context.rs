//! A context: the library's own threads, which carry what its sockets send.

use std::{
    ffi::{c_int, c_void},
    io,
    ptr::NonNull,
    sync::Arc,
};

use super::{Library, ZmqError, failed};
use crate::sys::sched;

const IO_THREADS: c_int = 1;
const MAX_SOCKETS: c_int = 2;
const THREAD_PRIORITY: c_int = 3;
const THREAD_POLICY: c_int = 4;

/// The greatest number of sockets, those of monitors included; each costs memory when the first is
/// made.
const SOCKETS: c_int = 16;

/// A context; ended when the last socket of it is dropped.
#[derive(Debug)]
pub struct Context {
    pub(super) library: &'static Library,
    pub(super) raw: NonNull<c_void>,
}

// SAFETY: libzmq's contexts may be used by any thread at any time.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// A context whose threads run as the calling one does: one that moves bytes where `does_io`
    /// (`inproc` needs none), and one that clears away.
    ///
    /// They are made with the first socket. From the thread that makes it they inherit CPUs and
    /// timer slack, but no real-time policy (tardy's threads reset it on fork), so that and its
    /// priority are asked for by name. Those of `deadline` stay ordinary: the kernel gives each
    /// thread its own budget or none.
    ///
    /// # Errors
    /// The library is absent, or has no memory or descriptors left.
    pub fn like_this_thread(does_io: bool) -> Result<Arc<Self>, ZmqError> {
        let library = Library::get()?;
        // SAFETY: has no preconditions.
        let raw = unsafe { (library.api.zmq_ctx_new)() };
        let raw = NonNull::new(raw)
            .ok_or_else(|| failed(library, "cannot make a ZeroMQ context".into()))?;
        let context = Self { library, raw };
        context.set(IO_THREADS, c_int::from(does_io))?;
        context.set(MAX_SOCKETS, SOCKETS)?;
        let scheduling = sched::of_this_thread().map_err(own_terms)?;
        let policy = match scheduling.policy.as_str() {
            "fifo" => libc::SCHED_FIFO,
            "rr" => libc::SCHED_RR,
            _ => return Ok(Arc::new(context)),
        };
        context.set(THREAD_POLICY, policy)?;
        context.set(THREAD_PRIORITY, c_int::try_from(scheduling.priority).unwrap_or(1))?;
        Ok(Arc::new(context))
    }

    /// Begins the names of its threads with a number, so that a test can recognise them.
    #[cfg(test)]
    pub(super) fn set_thread_prefix(&self, number: c_int) -> Result<(), ZmqError> {
        self.set(9, number)
    }

    fn set(&self, option: c_int, value: c_int) -> Result<(), ZmqError> {
        // SAFETY: the context lives as long as `self`.
        match unsafe { (self.library.api.zmq_ctx_set)(self.raw.as_ptr(), option, value) } {
            0 => Ok(()),
            _ => Err(failed(
                self.library,
                format!("cannot set option {option} of a ZeroMQ context to {value}"),
            )),
        }
    }
}

fn own_terms(source: io::Error) -> ZmqError {
    ZmqError::Call { what: "cannot read what this thread runs as".into(), source }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: no socket is left, because each holds its context; ended once. A signal may end
        // the wait, which is then repeated.
        while unsafe { (self.library.api.zmq_ctx_term)(self.raw.as_ptr()) } != 0
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
    }
}
