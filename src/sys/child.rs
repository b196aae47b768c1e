//! Programs that must not outlive who started them, and what they are given.

use std::{
    collections::HashSet,
    io,
    os::{
        fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
        unix::process::CommandExt,
    },
    process::{Child, Command},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::{
    io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd},
    process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal},
};

/// Children of this process that some thread waits for: no orphans.
static KEPT: Mutex<Option<HashSet<Pid>>> = Mutex::new(None);

/// Lets the kernel kill the program when the thread that starts it ends in any way, also by
/// SIGKILL. That thread has to stay until the program may end.
pub fn end_with_this_thread(command: &mut Command) {
    leash(command, Signal::KILL);
}

/// The same by SIGTERM, for a program that must put something back before it ends.
pub fn ask_to_end_with_this_thread(command: &mut Command) {
    leash(command, Signal::TERM);
}

fn leash(command: &mut Command, signal: Signal) {
    let own = getpid();
    let leash = move || {
        set_parent_process_death_signal(Some(signal))?;
        // Only after the signal is set can no end of the parent be missed any more.
        if getppid() == Some(own) { Ok(()) } else { Err(io::Error::from(Errno::SRCH)) }
    };
    // SAFETY: between fork and exec this makes two system calls and allocates nothing.
    unsafe { command.pre_exec(leash) };
}

/// Leaves these descriptors open in the program, under the numbers that they have here, and closes
/// them here when `command` is dropped.
pub fn hand_over(command: &mut Command, descriptors: Vec<OwnedFd>) {
    let keep_open = move || {
        for descriptor in &descriptors {
            fcntl_setfd(descriptor, FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec this makes one system call a descriptor and allocates nothing.
    unsafe { command.pre_exec(keep_open) };
}

/// Takes a descriptor that the parent has left open for this process. Each number only once.
///
/// # Errors
/// `EBADF` if nothing is open under this number; `EINVAL` for standard input, output and error.
pub fn take_over(number: RawFd) -> io::Result<OwnedFd> {
    if number <= libc::STDERR_FILENO {
        return Err(Errno::INVAL.into());
    }
    // SAFETY: the borrow ends below; a number that is not open is an error of the call.
    let there = unsafe { BorrowedFd::borrow_raw(number) };
    // Those that this program opened itself are closed by exec; the parent's are not.
    if fcntl_getfd(there)?.contains(FdFlags::CLOEXEC) {
        return Err(Errno::BADF.into());
    }
    fcntl_setfd(there, FdFlags::CLOEXEC)?;
    // SAFETY: it is open, nothing here has opened it, and from now on this process owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// The numbers that [`take_over`] wants at the other side, in order.
#[must_use]
pub fn numbers(descriptors: &[OwnedFd]) -> Vec<RawFd> {
    descriptors.iter().map(AsRawFd::as_raw_fd).collect()
}

/// Starts a program that never becomes an orphan, however long it lives; call [`forget`] when it
/// has been waited for.
///
/// # Errors
/// It cannot be started.
pub fn start(command: &mut Command) -> io::Result<Child> {
    // Held over the start, so that it is not taken for an orphan before it is registered.
    let mut kept = kept();
    let child = command.spawn()?;
    kept.get_or_insert_default().insert(pid_of(&child));
    Ok(child)
}

/// It has been waited for.
pub fn forget(child: &Child) {
    if let Some(kept) = kept().as_mut() {
        kept.remove(&pid_of(child));
    }
}

/// Whether some thread will wait for this child.
#[must_use]
pub fn is_kept(pid: Pid) -> bool {
    kept().as_ref().is_some_and(|kept| kept.contains(&pid))
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// A thread that panicked has left the set whole.
fn kept() -> MutexGuard<'static, Option<HashSet<Pid>>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, pipe},
        process::Stdio,
        thread,
    };

    use super::*;

    #[test]
    fn a_program_ends_with_the_thread_that_started_it() {
        let start = || {
            let mut command = Command::new("sleep");
            end_with_this_thread(command.arg("600").stdin(Stdio::null()));
            command.spawn().unwrap()
        };
        let mut child = thread::spawn(start).join().unwrap();
        // It would sleep longer than any test may take.
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_descriptor_handed_over_is_open_there_and_closed_here() {
        let (mut reader, writer) = pipe().unwrap();
        let descriptors = vec![OwnedFd::from(writer)];
        let number = numbers(&descriptors)[0];
        let mut command = Command::new("sh");
        command.args(["-c", &format!("echo here >/proc/self/fd/{number}")]);
        hand_over(&mut command, descriptors);
        let mut child = start(&mut command).unwrap();
        assert!(is_kept(pid_of(&child)));
        drop(command);
        let mut said = String::new();
        // Comes to its end only if no writer is left.
        reader.read_to_string(&mut said).unwrap();
        assert!(child.wait().unwrap().success());
        forget(&child);
        assert_eq!((said.as_str(), is_kept(pid_of(&child))), ("here\n", false));
    }

    #[test]
    fn what_the_parent_did_not_leave_open_is_not_taken() {
        let (reader, _writer) = pipe().unwrap();
        assert!(take_over(reader.as_raw_fd()).is_err(), "it is this program's own");
        assert!(take_over(0).is_err() && take_over(1_000_000).is_err());
    }
}
