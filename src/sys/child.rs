//! Programs that must not outlive who started them.

use std::{io, os::unix::process::CommandExt, process::Command};

use rustix::{
    io::Errno,
    process::{Signal, getpid, getppid, set_parent_process_death_signal},
};

/// Lets the kernel kill the program when the thread that starts it ends in any way, also by
/// SIGKILL. That thread has to stay until the program may end.
pub fn end_with_this_thread(command: &mut Command) {
    let own = getpid();
    let leash = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // Only after the signal is set can no end of the parent be missed any more.
        if getppid() == Some(own) { Ok(()) } else { Err(io::Error::from(Errno::SRCH)) }
    };
    // SAFETY: between fork and exec this makes two system calls and allocates nothing.
    unsafe { command.pre_exec(leash) };
}

#[cfg(test)]
mod tests {
    use std::{process::Stdio, thread};

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
}
