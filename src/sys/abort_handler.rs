//! Restores system settings after abort(3), which Rust calls if an allocation fails and libraries
//! call on internal errors.
//!
//! An aborting process cannot restore settings itself: it may hold any lock, and may have no
//! memory. So the handler of `SIGABRT` calls execve with this program and [`AFTER_ABORT`]. The new
//! image has memory and no locks. It keeps the PID, so a parent's wait returns after the restore.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    ffi::CStr,
    io,
    sync::atomic::{AtomicI32, AtomicUsize, Ordering},
};

/// The word by which the program is started anew to restore what it has changed.
pub const AFTER_ABORT: &str = "__restore";

/// The same for execve(2).
const WORD: &CStr = c"__restore";

/// How a process ends that could not do what it was asked to do.
const FAILED: i32 = 2;

/// Signals of faults in the process itself. Rust's own handler of SIGSEGV and SIGBUS ends an
/// overflow of the stack by an abort.
const FATAL: [i32; 5] = [libc::SIGABRT, libc::SIGILL, libc::SIGTRAP, libc::SIGFPE, libc::SIGSYS];

/// The process that has changed the machine; 0 for none. A forked child is another process.
static CHANGER: AtomicI32 = AtomicI32::new(0);

/// The size of the last allocation that was refused, bytes; 0 for none.
static REFUSED: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, which also remembers how large an allocation was that it refused.
#[derive(Debug, Clone, Copy, Default)]
pub struct Heap;

/// Notes a refusal.
fn noted(allocated: *mut u8, bytes: usize) -> *mut u8 {
    if allocated.is_null() {
        REFUSED.store(bytes.max(1), Ordering::Relaxed);
    }
    allocated
}

// SAFETY: each method is that of the system's allocator, whose result is not changed.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as promised by the caller.
        noted(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as promised by the caller.
        noted(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as promised by the caller.
        noted(unsafe { System.realloc(block, layout, size) }, size)
    }
}

/// Notes whether this process holds the machine changed.
pub fn hold_changes(holds: bool) {
    let own = if holds { rustix::process::getpid().as_raw_nonzero().get() } else { 0 };
    CHANGER.store(own, Ordering::SeqCst);
}

/// Lets an abort of this process restore the machine, and end with an error if memory ran out.
/// Other aborts end it as usual.
///
/// # Errors
/// What the kernel says to a signal handler.
pub fn listen() -> io::Result<()> {
    // SAFETY: a sigaction of zeros is valid: an empty mask.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = at_abort as *const () as usize;
    // A second abort within the handler ends the process at once.
    action.sa_flags = libc::SA_RESETHAND;
    for signal in FATAL {
        // SAFETY: the handler makes only calls that signal-safety(7) allows.
        let failed = unsafe { libc::sigaction(signal, &raw const action, core::ptr::null_mut()) };
        if failed != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Whoever aborts gets no return from this, unless it may abort as usual.
extern "C" fn at_abort(signal: i32) {
    let is_abort = signal == libc::SIGABRT;
    let refused = if is_abort { REFUSED.load(Ordering::Relaxed) } else { 0 };
    if refused > 0 {
        say(b"error: out of memory: ");
        say_number(refused);
        say(b" more bytes were refused; raise the limit (ulimit -v, or memory.max of the control \
              group), or give it less to read or to measure\n");
    }
    // SAFETY: getpid(2) has no conditions.
    let own = unsafe { libc::getpid() };
    if CHANGER.swap(0, Ordering::SeqCst) == own {
        restore_anew();
        say(b"error: settings of the machine stay changed: run `tardy restore`\n");
    } else if refused == 0 {
        if !is_abort {
            // Its default action is in place again; the signal waits for the end of this function.
            // SAFETY: raise(3) has no conditions.
            unsafe { libc::raise(signal) };
        }
        return;
    }
    // SAFETY: ends the process without destructors, which could not run.
    unsafe { libc::_exit(FAILED) }
}

/// Becomes this program anew, to restore what was changed. Returns only if that fails.
fn restore_anew() {
    unsafe extern "C" {
        static environ: *const *const libc::c_char;
    }
    // SAFETY: a signal set is an array of integers, of which zeros are values: an empty set. What
    // this thread has blocked would stay blocked in the new program.
    let none: libc::sigset_t = unsafe { core::mem::zeroed() };
    // SAFETY: the set is valid, and the former one is not asked for.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const none, core::ptr::null_mut()) };
    let words = [c"tardy".as_ptr(), WORD.as_ptr(), core::ptr::null()];
    // SAFETY: nothing changes the environment while there are several threads.
    let environment = unsafe { environ };
    // SAFETY: path, words and environment are strings and lists with an end, which live until then.
    unsafe { libc::execve(c"/proc/self/exe".as_ptr(), words.as_ptr(), environment) };
}

/// Writes to standard error; what is not written is lost.
fn say(text: &[u8]) {
    // SAFETY: the text is readable for its length.
    let _ = unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}

/// A number, without memory for its text.
fn say_number(mut number: usize) {
    let mut digits = [0_u8; 20];
    let mut first = digits.len();
    while let Some(digit) = first.checked_sub(1).and_then(|at| digits.get_mut(at)) {
        *digit = b'0' + u8::try_from(number % 10).unwrap_or(0);
        (first, number) = (first - 1, number / 10);
        if number == 0 {
            break;
        }
    }
    say(digits.get(first..).unwrap_or_default());
}
