//! Real-time signals, queued with the number to the other end's thread, which waits for them with
//! `sigwaitinfo`: no handler runs.

use core::{ffi::c_int, ops::Deref, sync::atomic::Ordering};

use super::{
    errno,
    page::{SharedPage, Side},
};
use crate::exchange::Port;

/// The argument of `rt_tgsigqueueinfo`, as the kernel lays it out.
#[repr(C)]
#[derive(Debug)]
struct Info {
    signal: c_int,
    errno: c_int,
    code: c_int,
    #[cfg(target_pointer_width = "64")]
    apart: c_int,
    process: c_int,
    user: u32,
    value: usize,
    rest: [u32; 24],
}

const _: () = assert!(size_of::<Info>() >= size_of::<libc::siginfo_t>());

/// One end. Belongs to the thread that made it, for that one is sent the signals.
#[derive(Debug)]
pub struct Signal<M: Deref<Target = SharedPage>> {
    memory: M,
    side: Side,
    info: Info,
    waits_for: libc::sigset_t,
}

/// The signal that is sent to an end.
fn to(side: Side) -> c_int {
    libc::SIGRTMIN() + c_int::from(side == Side::Far)
}

impl<M: Deref<Target = SharedPage>> Signal<M> {
    /// The end `side`. From now on the calling thread holds its signal back, for good. Both ends
    /// must have been made before either is used.
    ///
    /// # Errors
    /// The `errno` of a mask that the kernel refuses; nothing is known to happen.
    pub fn new(memory: M, side: Side) -> Result<Self, c_int> {
        // SAFETY: a signal set is an array of integers, of which zeros are values.
        let mut waits_for: libc::sigset_t = unsafe { core::mem::zeroed() };
        // SAFETY: writes to the set, which lives longer.
        unsafe { libc::sigemptyset(&raw mut waits_for) };
        // SAFETY: as above; the number is that of a signal.
        unsafe { libc::sigaddset(&raw mut waits_for, to(side)) };
        let former = core::ptr::null_mut();
        // SAFETY: the set is valid, and the former one is not asked for.
        let failed =
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const waits_for, former) };
        if failed != 0 {
            return Err(failed);
        }
        // SAFETY: asks for a number.
        let process = unsafe { libc::getpid() };
        // SAFETY: asks for a number.
        let (thread, user) = (unsafe { libc::gettid() }, user());
        let own = memory.lane_to(side);
        own.thread.store(thread, Ordering::Relaxed);
        // Only now can the signal no longer kill anybody.
        own.process.store(process, Ordering::Release);
        let info = Info {
            signal: to(side.other()),
            errno: 0,
            code: libc::SI_QUEUE,
            #[cfg(target_pointer_width = "64")]
            apart: 0,
            process,
            user,
            value: 0,
            rest: [0; 24],
        };
        Ok(Self { memory, side, info, waits_for })
    }
}

impl<M: Deref<Target = SharedPage>> Port for Signal<M> {
    #[inline(always)]
    fn send(&mut self, number: u8) -> Result<(), c_int> {
        self.info.value = usize::from(number);
        let lane = self.memory.lane_to(self.side.other());
        let process = lane.process.load(Ordering::Acquire);
        if process == 0 {
            return Err(libc::ECONNRESET);
        }
        let thread = lane.thread.load(Ordering::Relaxed);
        let (call, info) = (libc::SYS_rt_tgsigqueueinfo, &raw const self.info);
        // SAFETY: the kernel reads a description that is as large as its own.
        let sent = unsafe { libc::syscall(call, process, thread, self.info.signal, info) };
        if sent < 0 { Err(errno()) } else { Ok(()) }
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, c_int> {
        // SAFETY: a description consists of integers, of which zeros are values.
        let mut info: libc::siginfo_t = unsafe { core::mem::zeroed() };
        // SAFETY: the set is valid, and the description is writable.
        if unsafe { libc::sigwaitinfo(&raw const self.waits_for, &raw mut info) } < 0 {
            return Err(errno());
        }
        // SAFETY: a queued signal has a value; any other is read as some bytes of an integer.
        let value = unsafe { info.si_value() };
        Ok(value.sival_ptr.addr() as u8)
    }
}

impl<M: Deref<Target = SharedPage>> Drop for Signal<M> {
    fn drop(&mut self) {
        self.memory.lane_to(self.side).process.store(0, Ordering::Release);
    }
}

fn user() -> u32 {
    // SAFETY: asks for a number.
    unsafe { libc::getuid() }
}
