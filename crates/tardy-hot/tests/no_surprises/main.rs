//! Counted, not timed: between its first and its last turn a loop allocates nothing, takes no page
//! fault, and makes one system call per turn; an exchange of messages makes those of its port.
//!
//! Every kind of wait is tried with every kind of sink, and every port (in `exchange.rs`). Packets
//! have `receive.rs` and `stream.rs`, the `noise` probe `gaps.rs`, the `interactive` probe
//! `frames.rs`. Allocations are counted by this program's own allocator, page faults by the kernel,
//! system calls by a tracer (`traced.rs`).

#![cfg(not(loom))]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a traced child tells its parent by its output, and a test fails by panicking"
)]

mod alloc;
mod exchange;
mod faults;
mod frames;
mod gaps;
mod receive;
mod stream;
mod traced;

use core::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use faults::{page_faults, undisturbed};
use tardy_hot::{
    clock::now_ns,
    ring::ring,
    stages::ThreadRecord,
    stop::Stop,
    timeouts::{EpollCall, PpollCall, PselectCall, TimeOut, TimerSignal},
    traced::{TraceControl, Traced},
    uring::TimeOutRing,
    wakeup::{Absolute, Counted, Ended, Kept, Periodic, Relative, Series, Sink, Until, Wake, run},
};

const PERIOD_NS: i64 = 200_000;

/// Turns before anything is counted, as the warm-up of a run.
const WARMUP: u64 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waits {
    Absolute,
    Relative,
    Periodic,
    Ppoll,
    Pselect,
    Epoll,
    Signal,
    Uring,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sinks {
    Counted,
    Kept,
    /// With every sample kept, every stage recorded and every wake-up late.
    Traced,
}

/// A loop to be looked at.
#[derive(Debug, Clone, Copy)]
struct Case(Waits, Sinks);

const CASES: [Case; 14] = [
    Case(Waits::Absolute, Sinks::Counted),
    Case(Waits::Absolute, Sinks::Kept),
    Case(Waits::Absolute, Sinks::Traced),
    Case(Waits::Relative, Sinks::Counted),
    Case(Waits::Relative, Sinks::Kept),
    Case(Waits::Relative, Sinks::Traced),
    Case(Waits::Periodic, Sinks::Counted),
    Case(Waits::Periodic, Sinks::Kept),
    Case(Waits::Periodic, Sinks::Traced),
    Case(Waits::Ppoll, Sinks::Counted),
    Case(Waits::Pselect, Sinks::Counted),
    Case(Waits::Epoll, Sinks::Counted),
    Case(Waits::Signal, Sinks::Counted),
    Case(Waits::Uring, Sinks::Counted),
];

impl Case {
    /// Warms up, then has `turns` turns between `begin` and `end`, whose difference it returns.
    fn between<T>(self, turns: u64, begin: impl FnOnce() -> T, end: impl FnOnce(T) -> u64) -> u64 {
        self.with_series(&Arc::default(), turns, begin, end)
    }

    /// The same into a series of the caller's.
    fn with_series<T>(
        self,
        series: &Arc<Series>,
        turns: u64,
        begin: impl FnOnce() -> T,
        end: impl FnOnce(T) -> u64,
    ) -> u64 {
        match self.1 {
            Sinks::Counted => self.with(&mut Counted(Arc::clone(series)), turns, begin, end),
            Sinks::Kept => {
                let (writer, mut reader) = ring(usize::try_from(turns + WARMUP).unwrap());
                let found = self.with(&mut Kept(Arc::clone(series), writer), turns, begin, end);
                assert_eq!(reader.drain(|_| {}) as u64, turns + WARMUP, "{self:?}: samples");
                found
            }
            Sinks::Traced => self.traced(series, turns, begin, end),
        }
    }

    fn traced<T>(
        self,
        series: &Arc<Series>,
        turns: u64,
        begin: impl FnOnce() -> T,
        end: impl FnOnce(T) -> u64,
    ) -> u64 {
        let room = usize::try_from(turns + WARMUP).unwrap();
        let ((writer, mut reader), (late, mut late_reader)) = (ring(room), ring(room));
        let control = Arc::new(TraceControl::default());
        control.late_over_ns.store(i64::MIN, Ordering::Relaxed);
        let mut sink = Traced {
            inner: Kept(Arc::clone(series), writer),
            record: &ThreadRecord::default(),
            // Any record matches, so that stages are recorded.
            within_ns: u64::MAX,
            stages: Default::default(),
            softirq: Arc::new(Series::default()),
            control,
            late,
        };
        let found = self.with(&mut sink, turns, begin, end);
        assert_eq!(reader.drain(|_| {}) as u64, turns + WARMUP, "{self:?}: samples");
        assert_eq!(late_reader.drain(|_| {}) as u64, turns + WARMUP, "{self:?}: late ones");
        assert_eq!(sink.stages.user.tally.totals().count, turns + WARMUP, "{self:?}: stages");
        found
    }

    fn with<T>(
        self,
        sink: &mut impl Sink,
        turns: u64,
        begin: impl FnOnce() -> T,
        end: impl FnOnce(T) -> u64,
    ) -> u64 {
        let instance = Timer::of_epoll();
        let first_ns = now_ns() + PERIOD_NS;
        match self.0 {
            Waits::Absolute => {
                looked_at(&mut Absolute::new(first_ns, PERIOD_NS), sink, turns, begin, end)
            }
            Waits::Relative => looked_at(&mut Relative::new(PERIOD_NS), sink, turns, begin, end),
            Waits::Periodic => {
                let timer = Timer::new(first_ns);
                let mut wake = Periodic::new(timer.0, first_ns, PERIOD_NS);
                looked_at(&mut wake, sink, turns, begin, end)
            }
            Waits::Ppoll => looked_at(
                &mut TimeOut::new(PpollCall, first_ns, PERIOD_NS),
                sink,
                turns,
                begin,
                end,
            ),
            Waits::Pselect => looked_at(
                &mut TimeOut::new(PselectCall, first_ns, PERIOD_NS),
                sink,
                turns,
                begin,
                end,
            ),
            Waits::Epoll => {
                let epoll = EpollCall(instance.0);
                looked_at(&mut TimeOut::new(epoll, first_ns, PERIOD_NS), sink, turns, begin, end)
            }
            Waits::Signal => {
                let _timer = SignalTimer::new(first_ns);
                let mut wake = TimerSignal::new(libc::SIGRTMIN(), first_ns, PERIOD_NS);
                looked_at(&mut wake, sink, turns, begin, end)
            }
            Waits::Uring => {
                let ring = TimeOutRing::new().unwrap();
                let mut wake = TimeOut::new(ring, first_ns, PERIOD_NS);
                looked_at(&mut wake, sink, turns, begin, end)
            }
        }
    }

    /// Whether this machine allows it.
    fn is_possible(self) -> bool {
        let is_uring = matches!(self.0, Waits::Uring);
        let refused = is_uring.then(|| TimeOutRing::new().err()).flatten();
        if let Some(errno) = refused {
            println!("skipped: {self:?}: io_uring is refused here (errno {errno})");
        }
        refused.is_none()
    }
}

fn looked_at<T>(
    wake: &mut impl Wake,
    sink: &mut impl Sink,
    turns: u64,
    begin: impl FnOnce() -> T,
    end: impl FnOnce(T) -> u64,
) -> u64 {
    let stop = Stop::new();
    let until = |samples| Until { end_ns: i64::MAX, samples, stop_over_ns: i64::MAX };
    assert_eq!(run(wake, sink, until(WARMUP), &stop), Ended::Done);
    let before = begin();
    let ended = run(wake, sink, until(turns), &stop);
    let found = end(before);
    assert_eq!(ended, Ended::Done);
    found
}

/// A POSIX timer that signals this thread, and is deleted when this goes.
struct SignalTimer(libc::timer_t);

impl SignalTimer {
    fn new(first_ns: i64) -> Self {
        // SAFETY: sets of zeros are valid, and the next two calls fill them.
        let mut set: libc::sigset_t = unsafe { core::mem::zeroed() };
        // SAFETY: a live set, and a signal that there is.
        unsafe { libc::sigaddset(&raw mut set, libc::SIGRTMIN()) };
        // SAFETY: a live set; no old one is asked for.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, core::ptr::null_mut()) };
        // SAFETY: a sigevent of zeros is valid.
        let mut event: libc::sigevent = unsafe { core::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGRTMIN();
        // SAFETY: has no preconditions.
        event.sigev_notify_thread_id = unsafe { libc::gettid() };
        let mut timer: libc::timer_t = core::ptr::null_mut();
        let clock = libc::CLOCK_MONOTONIC;
        // SAFETY: a valid event, and room for the timer.
        let failed = unsafe { libc::timer_create(clock, &raw mut event, &raw mut timer) };
        assert_eq!(failed, 0);
        let at = tardy_hot::clock::to_timespec;
        let setting = libc::itimerspec { it_interval: at(PERIOD_NS), it_value: at(first_ns) };
        let absolute = libc::TIMER_ABSTIME;
        // SAFETY: a timer of this process and a valid setting.
        let failed = unsafe {
            libc::timer_settime(timer, absolute, &raw const setting, core::ptr::null_mut())
        };
        assert_eq!(failed, 0);
        Self(timer)
    }
}

impl Drop for SignalTimer {
    fn drop(&mut self) {
        // SAFETY: the timer is this one's own.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// A timerfd, or an epoll instance, that is closed when this goes.
struct Timer(i32);

impl Timer {
    fn of_epoll() -> Self {
        // SAFETY: takes a number.
        Self(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })
    }

    fn new(first_ns: i64) -> Self {
        let at = tardy_hot::clock::to_timespec;
        let setting = libc::itimerspec { it_interval: at(PERIOD_NS), it_value: at(first_ns) };
        // SAFETY: takes two numbers.
        let timer = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) };
        assert!(timer >= 0);
        let absolute = libc::TFD_TIMER_ABSTIME;
        // SAFETY: `setting` is a valid itimerspec, and no old one is asked for.
        let failed = unsafe {
            libc::timerfd_settime(timer, absolute, &raw const setting, core::ptr::null_mut())
        };
        assert_eq!(failed, 0);
        Self(timer)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this one's own.
        unsafe { libc::close(self.0) };
    }
}

/// Memory is locked for the whole process, so one of these tests at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn faults_in(case: Case) -> u64 {
    // The first call of anything may itself fault.
    page_faults();
    let count = || case.between(1_000, page_faults, |before| page_faults() - before);
    undisturbed(count, |found| *found == 0)
}

#[test]
fn no_loop_allocates() {
    for case in CASES {
        let found = case.between(1_000, || alloc::arm(3), |()| alloc::disarm());
        assert_eq!(found, 0, "{case:?}: allocations (their backtraces stand above)");
    }
}

#[test]
fn an_allocation_would_be_noticed() {
    alloc::arm(0);
    drop(std::hint::black_box(Box::new(7_u64)));
    assert!(alloc::disarm() > 0);
}

#[test]
fn no_loop_takes_a_page_fault_even_where_memory_is_merely_touched() {
    let _alone = alone();
    for case in CASES {
        assert_eq!(faults_in(case), 0, "{case:?}: page faults");
    }
}

#[test]
fn no_loop_takes_a_page_fault_where_memory_is_locked() {
    let _alone = alone();
    // SAFETY: takes a number.
    if unsafe { libc::mlockall(libc::MCL_CURRENT) } != 0 {
        let why = std::io::Error::last_os_error();
        println!("skipped: memory cannot be locked here: {why}");
        return;
    }
    for case in CASES {
        assert_eq!(faults_in(case), 0, "{case:?}: page faults");
    }
    // SAFETY: has no preconditions.
    unsafe { libc::munlockall() };
}

#[test]
fn a_page_fault_would_be_noticed() {
    let before = page_faults();
    let fresh = vec![1_u8; 64 << 20];
    std::hint::black_box(&fresh);
    assert!(page_faults() > before);
}

fn order() -> impl Iterator<Item = (Case, u64)> {
    let possible = CASES.into_iter().filter(|case| case.is_possible());
    possible.flat_map(|case| traced::TURNS.map(|turns| (case, turns)))
}

/// Every case between marks.
fn all_marked() {
    for (case, turns) in order() {
        let series: Arc<Series> = Arc::default();
        case.with_series(&series, turns, traced::mark, |()| {
            // The tracer shall know what a read of a timerfd may have had to make good.
            for _ in 0..series.tally.totals().missed {
                // SAFETY: asks for a number.
                unsafe { libc::getuid() };
            }
            traced::mark();
            0
        });
    }
}

/// Holds one case to one system call per turn that no period was missed in.
fn check(mut calls: traced::Calls, case: Case, turns: u64) {
    let missed = calls.remove(&libc::SYS_getuid).unwrap_or(0);
    let wait = match case.0 {
        Waits::Absolute | Waits::Relative => libc::SYS_clock_nanosleep,
        Waits::Periodic => {
            // Expiries between a read and the look at the clock take their own read.
            let reads = calls.get(&libc::SYS_read).copied().unwrap_or(0);
            calls.insert(libc::SYS_read, reads - reads.saturating_sub(turns).min(missed));
            libc::SYS_read
        }
        Waits::Ppoll => libc::SYS_ppoll,
        Waits::Pselect => libc::SYS_pselect6,
        Waits::Epoll => libc::SYS_epoll_pwait2,
        Waits::Signal => {
            let signals = calls.get(&libc::SYS_rt_sigtimedwait).copied().unwrap_or(0);
            let counted = signals - signals.saturating_sub(turns).min(missed);
            calls.insert(libc::SYS_rt_sigtimedwait, counted);
            libc::SYS_rt_sigtimedwait
        }
        Waits::Uring => libc::SYS_io_uring_enter,
    };
    let known = traced::Calls::from([(wait, turns)]);
    assert_eq!(calls, known, "{case:?}, {turns} turns, call: count");
}

/// Says so where the tracer cannot tell that clock reads are not system calls.
fn say_where_clock_reads_are_calls(found: &traced::Found) {
    if found.clock_reads_in_kernel() {
        let source = std::fs::read_to_string(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        );
        let source = source.unwrap_or_else(|_| "unknown".into());
        println!(
            "skipped: that clock reads make no system calls: the clock source {} has no vDSO",
            source.trim()
        );
    }
}

#[test]
fn each_turn_is_one_system_call_and_no_other() {
    if traced::is_child() {
        return traced::child(all_marked);
    }
    let name = "each_turn_is_one_system_call_and_no_other";
    let found = match traced::count(name, order().count()) {
        Ok(found) => found,
        Err(why) => return println!("skipped: {why}"),
    };
    say_where_clock_reads_are_calls(&found);
    for (at, (case, turns)) in order().enumerate() {
        check(found.calls(at), case, turns);
    }
}
