//! Standard output and standard error, so that a closed pipe or a full disk is no panic.

use std::io::{ErrorKind, Write};

use anstyle::{AnsiColor, Style};
use anyhow::{Context, Result};

/// Writes a result. Colour goes where a terminal is, and nowhere else. A reader that goes away, as
/// in `tardy list | head -1`, has what it wanted.
///
/// # Errors
/// Standard output does not take it.
pub fn put(text: &str) -> Result<()> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write the result"),
    }
}

/// Writes a word beside the result to standard error; lost where nobody listens.
pub fn notice(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Writes an error with its causes, each said once: some errors name their cause themselves.
pub fn complain(error: &anyhow::Error) {
    const RED: Style = AnsiColor::Red.on_default().bold();
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(&format!(": {cause}"));
        }
    }
    notice(&format!("{RED}error:{RED:#} {text}"));
}
