//! `tardy shield`: keep tasks and interrupts off CPUs while a command runs, or until Ctrl-C.

use std::{
    os::unix::process::ExitStatusExt,
    process::{Child, Command, ExitStatus},
    thread::sleep,
    time::Duration,
};

use anyhow::{Context, Result};
use clap::Args;

use super::{Exit, output};
use crate::{
    report::terminal,
    run::UnreadSource,
    session,
    setup::{
        journal::{Journal, JournalPath},
        shield::Shield,
    },
    sys::{
        cpus::Cpus,
        process::{Pid, terminate},
        root::Root,
        signals::Quit,
    },
};

/// Keep tasks and interrupts off CPUs while a command runs on them.
///
/// Without COMMAND the shield stays until Ctrl-C, and tardy prints how to move a task onto it.
/// tardy restores everything at the end; after a kill, `tardy restore` does.
#[derive(Debug, Args)]
pub(super) struct ShieldFlags {
    /// CPUs to shield, e.g. 2-3
    #[arg(value_name = "CPUS")]
    cpus: Cpus,
    /// Command to run on them; its exit code becomes that of tardy
    #[arg(value_name = "COMMAND", last = true)]
    command: Vec<String>,
    /// Print only the result: no progress, no hints
    #[arg(long)]
    quiet: bool,
}

/// Sets the shield up, waits, and removes it.
pub(super) fn shield(flags: &ShieldFlags, argv: &[String]) -> Result<Exit> {
    let quit = Quit::listen().context("cannot set a signal handler")?;
    let mut journal = Journal::claim(&JournalPath::usual(), &Root::default(), &argv.join(" "))?;
    let shield = Shield::raise(&mut journal, &Root::default(), &flags.cpus)?;
    if !flags.quiet {
        output::notice(&summary(&shield, &flags.cpus, flags.command.is_empty()));
    }
    let exit = match flags.command.split_first() {
        None => {
            while quit.seen().is_none() {
                sleep(Duration::from_millis(20));
            }
            Exit::Done
        }
        Some((program, arguments)) => {
            shield.group.enter()?;
            let child = Command::new(program).args(arguments).spawn();
            shield.group.leave()?;
            let child = child.with_context(|| format!("cannot run {program}"))?;
            Exit::Passed(code_of(wait(child, &quit)?))
        }
    };
    if let Some(loss) = shield.watch().loss() {
        output::notice(&format!("The shield did not last: {loss}."));
    }
    for UnreadSource { what, source } in shield.watch().unread() {
        output::notice(&format!("It is not known {what}: {source} cannot be read."));
    }
    let undone = journal.undo();
    undone.failed.iter().for_each(|what| output::notice(&format!("not restored: {what}")));
    match (undone.failed.is_empty(), exit) {
        (false, Exit::Done) => Ok(Exit::Failed),
        (_, exit) => Ok(exit),
    }
}

fn summary(shield: &Shield, cpus: &Cpus, is_open: bool) -> String {
    let mut text = format!(
        "{} shielded ({}); everything else runs on {}.\n",
        match cpus.len() {
            1 => format!("CPU {cpus} is"),
            _ => format!("CPUs {cpus} are"),
        },
        shield.group.backend(),
        shield.rest()
    );
    if is_open {
        let tasks = shield.group.tasks_file();
        text.push_str(&format!("Add a task with: echo PID > {tasks}\nCtrl-C ends the shield.\n"));
    }
    for caveat in session::shield_gaps(shield.gaps()) {
        terminal::push_caveat(&mut text, &caveat);
    }
    text.trim_end().into()
}

/// Waits for the command. The terminal sends Ctrl-C to the command too, as to every foreground
/// process; other signals to end are forwarded.
fn wait(mut child: Child, quit: &Quit) -> Result<ExitStatus> {
    let interrupt = usize::try_from(libc::SIGINT).unwrap_or(0);
    let mut passed_on = false;
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for the command")? {
            return Ok(status);
        }
        if !passed_on && quit.seen().is_some_and(|signal| signal != interrupt) {
            terminate(Pid::from_child(&child));
            passed_on = true;
        }
        sleep(Duration::from_millis(10));
    }
}

/// As in a shell: 128 plus the signal number for a command that a signal ended.
fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(255)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_that_a_shell_would_give() {
        assert_eq!(code_of(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(code_of(ExitStatus::from_raw(15)), 143);
    }
}
