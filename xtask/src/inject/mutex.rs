//! A mutex with priority inheritance that a measured thread wants when it is asked to.
//!
//! tardy takes no lock on the way from its timer to its clock read. A program that does, in a
//! handler of a signal, is this one with `TARDY_INJECT_MUTEX` set: it is tardy, and its threads
//! want the mutex in that file when they get the signal. The injector, which has the mutex then,
//! is the owner.

use std::{
    ffi::c_int,
    fs::OpenOptions,
    os::fd::AsRawFd,
    path::Path,
    process::ExitCode,
    ptr,
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use anyhow::{Context, Result, ensure};
use rustix::thread::futex::{Flags, lock_pi, unlock_pi};

/// The variable that names the file.
pub(crate) const ASKED_FOR: &str = "TARDY_INJECT_MUTEX";
/// Asks a thread; tardy has no use for it, and who does not handle it does not get it.
const SIGNAL: c_int = libc::SIGURG;

/// What the handler wants.
static WANTED: OnceLock<&'static PiMutex> = OnceLock::new();

/// The mutex, in memory that two processes share.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct PiMutex(AtomicU32);

/// Had by the thread that made it.
pub(super) struct Held(&'static PiMutex);

impl PiMutex {
    /// The mutex in a file, which is made where it is missing. It stays mapped.
    pub(super) fn map(file: &Path) -> Result<&'static Self> {
        let place = || format!("cannot map {}", file.display());
        let mut options = OpenOptions::new();
        let opened = options.read(true).write(true).create(true).truncate(false).open(file);
        let opened = opened.with_context(place)?;
        opened.set_len(size_of::<Self>() as u64).with_context(place)?;
        let (both, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping, of a file that is as long, at an address that the kernel chooses.
        let at = unsafe {
            libc::mmap(ptr::null_mut(), size_of::<Self>(), both, shared, opened.as_raw_fd(), 0)
        };
        if at == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error()).with_context(place);
        }
        // SAFETY: it begins a page, is never unmapped, and all bits are an atomic number.
        Ok(unsafe { &*at.cast::<Self>() })
    }

    /// Takes it; the kernel gives it to one thread at a time.
    pub(super) fn lock(&'static self) -> Result<Held> {
        lock_pi(&self.0, Flags::empty(), None).context("the kernel refuses the mutex")?;
        Ok(Held(self))
    }
}

impl Held {
    /// Asks a thread of another process to take it too. That one runs first, and waits.
    pub(super) fn ask_of(&self, process: i32, thread: i32) -> Result<()> {
        // SAFETY: three numbers.
        let sent = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, SIGNAL) };
        ensure!(sent == 0, "no signal to {thread}: {}", std::io::Error::last_os_error());
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Only its owner is refused nothing.
        let _ = unlock_pi(&self.0.0, Flags::empty());
    }
}

/// Nothing in it may allocate or lock: the thread may be anywhere.
extern "C" fn take(_: c_int) {
    if let Some(mutex) = WANTED.get()
        && lock_pi(&mutex.0, Flags::empty(), None).is_ok()
    {
        let _ = unlock_pi(&mutex.0, Flags::empty());
    }
}

/// tardy with these words, whose threads want the mutex in `file` when they are asked to.
pub(crate) fn run_measured(file: &Path) -> ExitCode {
    match install(file) {
        Ok(()) => tardy::cli::main(),
        Err(error) => {
            crate::bench::say(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn install(file: &Path) -> Result<()> {
    let mutex = PiMutex::map(file)?;
    mutex.0.store(0, Ordering::Relaxed);
    ensure!(WANTED.set(mutex).is_ok(), "one mutex is enough");
    // SAFETY: all zero is an action without flags.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = take as extern "C" fn(c_int) as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the action is whole, and the handler calls nothing but the kernel.
    let set = unsafe { libc::sigaction(SIGNAL, &raw const action, ptr::null_mut()) };
    ensure!(set == 0, "no handler: {}", std::io::Error::last_os_error());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{sync::atomic::AtomicBool, thread, time::Duration};

    use super::*;

    #[test]
    fn who_wants_it_waits_until_its_owner_lets_go() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("mutex");
        let (one, other) = (PiMutex::map(&file).unwrap(), PiMutex::map(&file).unwrap());
        assert!(!ptr::eq(one, other), "two mappings of one file");
        let (held, is_over) = (one.lock().unwrap(), AtomicBool::new(false));
        thread::scope(|scope| {
            let wants = scope.spawn(|| {
                drop(other.lock().unwrap());
                is_over.load(Ordering::SeqCst)
            });
            thread::sleep(Duration::from_millis(20));
            is_over.store(true, Ordering::SeqCst);
            drop(held);
            assert!(wants.join().unwrap(), "it had it before it was free");
        });
        assert_eq!(one.0.load(Ordering::SeqCst), 0, "nobody has it");
    }
}
