//! Counts the system calls of loops in a child: this test once more, with its measuring thread
//! traced by the parent.
//!
//! Linux only, on architectures where `clock_nanosleep` has one number (all 64-bit ones).

use core::ffi::{c_int, c_long};
use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Lines},
    process::{ChildStdout, Command, Stdio},
};

use tardy_hot::clock::now_ns;

/// The turns of each case, one after the other: a call once a loop would show as the same number in
/// both, a call once a turn as twice that.
pub(crate) const TURNS: [u64; 2] = [300, 600];

const CHILD: &str = "TARDY_HOT_TRACED";
const TID: &str = "traced thread ";
const CLOCK_READS: u64 = 10;

/// System calls by number.
pub(crate) type Calls = BTreeMap<i64, u64>;

/// What the parent saw: some clock reads and one call that must show, then each segment between
/// two marks.
pub(crate) struct Found(Vec<Calls>);

impl Found {
    /// Whether reading the clock is a system call on this machine.
    pub(crate) fn clock_reads_in_kernel(&self) -> bool {
        let mut calls = self.0[0].clone();
        assert_eq!(calls.remove(&libc::SYS_getuid), Some(1), "the tracer overlooks calls");
        let reads = calls.remove(&libc::SYS_clock_gettime);
        assert!(calls.is_empty() && matches!(reads, None | Some(CLOCK_READS)), "{calls:?}");
        reads.is_some()
    }

    /// What was called in the segment `at`, without clock reads where those are calls.
    pub(crate) fn calls(&self, at: usize) -> Calls {
        let mut calls = self.0[at + 1].clone();
        if self.clock_reads_in_kernel() {
            calls.remove(&libc::SYS_clock_gettime);
        }
        calls
    }
}

/// Whether this process is the one to be traced.
pub(crate) fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// A system call that no loop makes, to tell the tracer where something begins and ends.
pub(crate) fn mark() {
    // SAFETY: asks for a number.
    unsafe { libc::syscall(libc::SYS_getppid) };
}

/// What the child does: asks to be traced, then runs `everything`, each segment between two marks.
pub(crate) fn child(everything: impl FnOnce()) {
    // SAFETY: TRACEME takes no arguments.
    if unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) } != 0 {
        return println!("\nrefused: {}", std::io::Error::last_os_error());
    }
    // SAFETY: asks for a number.
    let tid = unsafe { libc::syscall(libc::SYS_gettid) };
    println!("\n{TID}{tid}");
    let own = std::process::id();
    // SAFETY: stops this thread until its tracer lets it continue.
    unsafe { libc::syscall(libc::SYS_tgkill, own, tid, libc::SIGSTOP) };
    mark();
    // SAFETY: asks for a number.
    unsafe { libc::getuid() };
    for _ in 0..CLOCK_READS {
        std::hint::black_box(now_ns());
    }
    mark();
    everything();
}

/// Runs the test called `name` as a child and counts the system calls between its marks, of which
/// there are two for each of `segments`.
pub(crate) fn count(name: &str, segments: usize) -> Result<Found, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(own)
        .args([name, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let found = follow(&mut lines, segments);
    if found.is_err() {
        let _ = child.kill();
    }
    // To its end, so that the child does not write into a closed pipe.
    lines.for_each(drop);
    let _ = child.wait();
    found
}

fn follow(lines: &mut Lines<BufReader<ChildStdout>>, count: usize) -> Result<Found, String> {
    let mut tid: Option<c_int> = None;
    for line in lines.map_while(Result::ok) {
        if let Some(why) = line.strip_prefix("refused: ") {
            return Err(format!("tracing is refused here: {why}"));
        }
        tid = line.strip_prefix(TID).and_then(|tid| tid.parse().ok());
        if tid.is_some() {
            break;
        }
    }
    let tid = tid.ok_or("the child said nothing")?;
    let stop = wait(tid)?;
    assert!(libc::WIFSTOPPED(stop), "the child did not stop: {stop:#x}");
    ask(libc::PTRACE_SETOPTIONS, tid, 0, c_long::from(libc::PTRACE_O_TRACESYSGOOD) as usize)?;
    let mut segments = Vec::new();
    let mut inside: Option<Calls> = None;
    while segments.len() < 1 + count {
        match (next_call(tid)?, &mut inside) {
            (libc::SYS_getppid, calls) => match calls.take() {
                Some(calls) => segments.push(calls),
                None => inside = Some(Calls::new()),
            },
            (call, Some(calls)) => *calls.entry(call).or_default() += 1,
            _ => {}
        }
    }
    ask(libc::PTRACE_DETACH, tid, 0, 0)?;
    Ok(Found(segments))
}

/// Lets the thread continue to its next system call, and returns that call's number.
fn next_call(tid: c_int) -> Result<i64, String> {
    let mut signal = 0;
    loop {
        ask(libc::PTRACE_SYSCALL, tid, 0, signal)?;
        let stop = wait(tid)?;
        if !libc::WIFSTOPPED(stop) {
            return Err(format!("the child ended early: {stop:#x}"));
        }
        if libc::WSTOPSIG(stop) != libc::SIGTRAP | 0x80 {
            signal = usize::try_from(libc::WSTOPSIG(stop)).unwrap_or(0);
            continue;
        }
        signal = 0;
        // SAFETY: a description of zeros is a valid value; the kernel fills it in.
        let mut call: libc::ptrace_syscall_info = unsafe { core::mem::zeroed() };
        ask(
            libc::PTRACE_GET_SYSCALL_INFO,
            tid,
            size_of_val(&call),
            (&raw mut call).expose_provenance(),
        )?;
        if call.op == libc::PTRACE_SYSCALL_INFO_ENTRY {
            // SAFETY: `op` says that `entry` is the part that was filled in.
            let number = unsafe { call.u.entry.nr };
            return i64::try_from(number).map_err(|error| error.to_string());
        }
    }
}

fn ask(request: libc::c_uint, tid: c_int, address: usize, data: usize) -> Result<(), String> {
    // SAFETY: the callers pass what their request asks for: numbers, or the size and place of a
    // writable description.
    if unsafe { libc::ptrace(request, tid, address, data) } < 0 {
        return Err(format!("ptrace request {request:#x}: {}", std::io::Error::last_os_error()));
    }
    Ok(())
}

fn wait(tid: c_int) -> Result<c_int, String> {
    let mut status = 0;
    // SAFETY: `status` is writable.
    if unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL) } != tid {
        return Err(format!("waitpid: {}", std::io::Error::last_os_error()));
    }
    Ok(status)
}
