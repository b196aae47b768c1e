//! The bare exchange: the least that can be called a measurement of round trips, to compare with.
//!
//! What a C programmer writes first: two processes, and in a loop read the clock, send, wait for
//! the answer, read the clock, put the difference into an array that was touched before.

use std::{
    fs,
    os::fd::{AsRawFd, OwnedFd, RawFd},
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use rustix::event::{EventfdFlags, eventfd};
use tardy::sys::{
    cpus::Cpus,
    memory,
    sched::{self, Policy},
    shared::SharedSlots,
};
use tardy_hot::clock::now_ns;

/// Two processes at FIFO 90
#[derive(Debug, Args)]
pub(crate) struct ExchangeFlags {
    transport: BareTransport,
    near_cpu: u32,
    far_cpu: u32,
    duration_ns: i64,
    /// Takes the round trips (i64, native order)
    file: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum BareTransport {
    Pipe,
    Eventfd,
    Futex,
}

/// No round trip is shorter.
const SHORTEST_NS: i64 = 500;

/// Measures, and writes what it measured.
pub(crate) fn run(flags: &ExchangeFlags) -> Result<()> {
    let frame = Frame { cpus: (flags.near_cpu, flags.far_cpu), duration_ns: flags.duration_ns };
    let taken = match flags.transport {
        BareTransport::Pipe => {
            let [there, back] = [std::io::pipe()?, std::io::pipe()?];
            let ends = |to: OwnedFd, from: OwnedFd| (to, from);
            let near = ends(there.1.into(), back.0.into());
            let far = ends(back.1.into(), there.0.into());
            frame.exchange(bytes::<1>(&near, false), bytes::<1>(&far, true))?
        }
        BareTransport::Eventfd => {
            let [there, back] = [(); 2].map(|()| eventfd(0, EventfdFlags::CLOEXEC));
            let (there, back) = (there?, back?);
            let near = (there.try_clone()?, back.try_clone()?);
            frame.exchange(bytes::<8>(&near, false), bytes::<8>(&(back, there), true))?
        }
        BareTransport::Futex => {
            let slots = SharedSlots::new(2)?;
            let [there, back] = slots.slots() else { bail!("no memory") };
            frame.exchange(
                words_near(&there.barrier, &back.barrier),
                words_far(&there.barrier, &back.barrier),
            )?
        }
    };
    let bytes: Vec<u8> = taken.iter().flat_map(|taken| taken.to_ne_bytes()).collect();
    fs::write(&flags.file, bytes).context("cannot write round trips")
}

/// Where and how long.
struct Frame {
    cpus: (u32, u32),
    duration_ns: i64,
}

impl Frame {
    /// Forks the remote endpoint, measures, ends it. `near` is one round trip, `far` one answer.
    fn exchange(&self, mut near: impl FnMut(), mut far: impl FnMut()) -> Result<Vec<i64>> {
        // SAFETY: this process has one thread, so the child may continue as any program.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: asks the kernel to end this process with its parent.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            if settle(self.cpus.1).is_ok() {
                loop {
                    far();
                }
            }
            // SAFETY: ends the child without running what the parent has registered.
            unsafe { libc::_exit(1) };
        }
        ensure!(child > 0, "cannot fork: {}", std::io::Error::last_os_error());
        let taken = settle(self.cpus.0).and_then(|()| self.measure(&mut near));
        // SAFETY: the child is this process's own and was not waited for.
        unsafe { libc::kill(child, libc::SIGKILL) };
        // SAFETY: as above; its status is not asked for.
        unsafe { libc::waitpid(child, core::ptr::null_mut(), 0) };
        taken
    }

    #[inline(always)]
    fn measure(&self, near: &mut impl FnMut()) -> Result<Vec<i64>> {
        let room = usize::try_from(self.duration_ns / SHORTEST_NS)?;
        let mut taken = vec![-1; room];
        memory::lock_all(true)?;
        let (mut at, mut sent_ns) = (0, now_ns());
        let end_ns = sent_ns + self.duration_ns;
        while sent_ns < end_ns {
            sent_ns = now_ns();
            near();
            if let Some(place) = taken.get_mut(at) {
                *place = now_ns() - sent_ns;
                at += 1;
            }
        }
        taken.truncate(at);
        Ok(taken)
    }
}

fn settle(cpu: u32) -> Result<()> {
    [cpu].into_iter().collect::<Cpus>().pin_this_thread()?;
    memory::lock_all(true)?;
    sched::set_this_thread(Policy::Fifo, 90).context("FIFO 90 is not available")
}

/// One turn with descriptors to write to and to read from: N bytes, of which the first is 1.
fn bytes<const N: usize>(ends: &(OwnedFd, OwnedFd), answers: bool) -> impl FnMut() {
    let (to, from): (RawFd, RawFd) = (ends.0.as_raw_fd(), ends.1.as_raw_fd());
    let mut buffer = [0_u8; N];
    move || {
        if answers {
            // SAFETY: the kernel writes at most as much as the buffer holds.
            unsafe { libc::read(from, buffer.as_mut_ptr().cast(), N) };
        } else {
            buffer[0] = 1;
        }
        // SAFETY: the kernel reads the buffer.
        unsafe { libc::write(to, buffer.as_ptr().cast(), N) };
        if !answers {
            // SAFETY: as above.
            unsafe { libc::read(from, buffer.as_mut_ptr().cast(), N) };
        }
    }
}

fn words_near(there: &AtomicU32, back: &AtomicU32) -> impl FnMut() {
    let mut number = 0;
    move || {
        number += 1;
        there.store(number, Ordering::Release);
        futex(there, libc::FUTEX_WAKE, 1);
        while back.load(Ordering::Acquire) != number {
            futex(back, libc::FUTEX_WAIT, number - 1);
        }
    }
}

fn words_far(there: &AtomicU32, back: &AtomicU32) -> impl FnMut() {
    let mut seen = 0;
    move || {
        while there.load(Ordering::Acquire) == seen {
            futex(there, libc::FUTEX_WAIT, seen);
        }
        seen += 1;
        back.store(seen, Ordering::Release);
        futex(back, libc::FUTEX_WAKE, 1);
    }
}

#[inline(always)]
fn futex(word: &AtomicU32, what: i32, value: u32) {
    let forever = core::ptr::null::<libc::timespec>();
    // SAFETY: the word is borrowed, and a null time means no limit.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), what, value, forever) };
}
