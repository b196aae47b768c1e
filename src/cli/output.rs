//! Standard output and standard error, without a panic on a closed pipe or a full disk. The last
//! door in front of the terminal: whatever was composed, only colours and line ends steer it.

use std::{
    io::{BufWriter, ErrorKind, IsTerminal, Write},
    os::fd::AsFd,
};

use anstyle::{AnsiColor, Style};
use anyhow::{Context, Result};
use serde::Serialize;

use crate::{
    exchange::export::Output,
    limits::export::LARGEST,
    plain::{self, plain_lines},
    report::terminal::fold,
    sys::open_files::with_limit,
};

/// Writes a result, in colour only on a terminal. A reader that closes the pipe early, as in `tardy
/// list | head -1`, is not an error.
///
/// # Errors
/// Standard output cannot be written.
pub(super) fn put(text: &str) -> Result<()> {
    write(&plain::styled(text))
}

/// Writes a result whose columns tabs divide, for programs that read it.
///
/// # Errors
/// As [`put`].
pub(super) fn put_columns(text: &str) -> Result<()> {
    let columns: Vec<_> = text.split('\t').map(plain::styled).collect();
    write(&columns.join("\t"))
}

/// Writes a result as JSON.
///
/// # Errors
/// As [`put`]; or it cannot be JSON.
pub(super) fn put_json(value: &impl Serialize) -> Result<()> {
    write(&plain::json(&(serde_json::to_string_pretty(value)? + "\n")))
}

/// Writes a result that need not fit into memory, for programs that read it. A terminal is shown
/// what it is by the same door as other text.
///
/// # Errors
/// As [`put`]; or it cannot be made.
pub(super) fn stream(make: impl FnOnce(&mut dyn Output) -> std::io::Result<()>) -> Result<()> {
    if std::io::stdout().is_terminal() {
        let mut shown = Bounded(Vec::new());
        make(&mut shown).context("cannot make the result")?;
        return put_columns(&String::from_utf8_lossy(&shown.0));
    }
    let mut out = BufWriter::with_capacity(1 << 20, std::io::stdout());
    match make(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            // What is left in it has no reader either.
            let _ = out.into_parts();
            Ok(())
        }
        written => written.context("cannot write the result"),
    }
}

/// What a terminal is shown: nobody reads as much there.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > LARGEST {
            let limit = LARGEST >> 20;
            let what = format!("it is larger than {limit} MiB; write it into a file (-o FILE)");
            return Err(std::io::Error::other(what));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Characters in a line of standard output where that is a terminal; in a file or pipe lines are as
/// long as they like.
pub(super) fn width() -> Option<usize> {
    let out = std::io::stdout();
    out.is_terminal().then(|| columns(out))
}

/// The same of standard error.
pub(super) fn error_width() -> Option<usize> {
    let err = std::io::stderr();
    err.is_terminal().then(|| columns(err))
}

/// Characters in a line of this terminal.
pub(super) fn columns(terminal: impl AsFd) -> usize {
    let size = rustix::termios::tcgetwinsize(terminal);
    // A terminal that does not know its size reports 0.
    size.map(|size| usize::from(size.ws_col)).ok().filter(|&width| width > 0).unwrap_or(80).max(20)
}

fn write(text: &str) -> Result<()> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write the result"),
    }
}

/// Writes a notice to standard error, beside the result, no wider than a terminal; ignores a closed
/// standard error.
pub(super) fn notice(text: &str) {
    let text = fold(&plain::styled(text), error_width());
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Writes what the parser of the command line says: an error, help or the version, each to its
/// stream and in its colours. What it quotes must be plain already. Ignores a closed stream.
pub(super) fn explain(said: &clap::Error) {
    let text = said.render().ansi().to_string();
    let text = plain::styled(&text);
    if said.use_stderr() {
        let _ = anstream::stderr().lock().write_all(text.as_bytes());
    } else {
        let _ = write(&text);
    }
}

/// Writes what is wrong but ends nothing. Errors quote files, so none of it steers the terminal.
pub(super) fn warn(what: &str) {
    notice(&format!("warning: {}", foreign(what)));
}

/// Writes an error with its causes, each printed once: some errors include their cause already.
pub(super) fn complain(error: &anyhow::Error) {
    const RED: Style = AnsiColor::Red.on_default().bold();
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(&format!(": {cause}"));
        }
    }
    notice(&format!("{RED}error:{RED:#} {}", foreign(&with_limit(text))));
}

/// What an error says, with what it quotes: further lines are set in, so that none passes for its
/// own message.
fn foreign(text: &str) -> String {
    plain_lines(text.trim_end()).replace('\n', "\n  ")
}
