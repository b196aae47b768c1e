//! What other programs put before each line of a text that is pasted or logged: stamps of the
//! kernel's log, of the journal and of test labs, and marks of quotes.
//!
//! ```text
//! [   65.123456] T: 0 ( 1234) P:98 ...
//! Nov 28 12:00:01 rig cyclictest[1234]: T: 0 ...
//! 2026-11-28T12:00:01.123456Z T: 0 ...
//! - {"dt": "2026-11-28T12:00:01", "lvl": "target", "msg": "T: 0 ..."}
//! > T: 0 ...
//! ```

use std::borrow::Cow;

use serde::Deserialize;

/// Prefixes before each other: a quoted line of a log of the journal.
const MOST_PREFIXES: usize = 4;

/// A line of LAVA's log.
#[derive(Deserialize)]
struct LavaLine {
    msg: String,
}

/// The line without what stands before it.
pub(super) fn without_prefix(line: &str) -> Cow<'_, str> {
    let lava = line.trim_start().strip_prefix("- ").filter(|rest| rest.starts_with('{'));
    if let Some(LavaLine { msg }) = lava.and_then(|rest| serde_json::from_str(rest).ok()) {
        return Cow::Owned(without_prefix(&msg).into_owned());
    }
    let mut rest = line;
    for _ in 0..MOST_PREFIXES {
        let prefixes = [quote, priority, kernel_stamp, journal, lab_time, program, epoch];
        match prefixes.iter().find_map(|behind| behind(rest)) {
            Some(behind) => rest = behind,
            None => break,
        }
    }
    Cow::Borrowed(rest)
}

/// `> `, of mail.
fn quote(line: &str) -> Option<&str> {
    let rest = line.strip_prefix('>')?;
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

/// `<6>`, of `/dev/kmsg` and serial consoles.
fn priority(line: &str) -> Option<&str> {
    let (number, rest) = line.strip_prefix('<')?.split_once('>')?;
    number.parse::<u8>().ok().map(|_| rest)
}

/// `[   65.123456] ` or `[Sat Nov 28 12:00:00 2026] `, of the kernel's log; `[  T123] ` of a caller
/// may follow.
fn kernel_stamp(line: &str) -> Option<&str> {
    let (stamp, rest) = line.strip_prefix('[')?.split_once(']')?;
    let stamp = stamp.trim_start();
    let is_seconds =
        stamp.split_once('.').is_some_and(|(s, part)| are_digits(s) && are_digits(part));
    let caller = stamp.strip_prefix(['T', 'C']).is_some_and(are_digits);
    // As `dmesg -T` has it.
    let is_date = || {
        let (_, date) = stamp.split_once(' ')?;
        behind_clock(syslog_date(date)?.trim_start())?
            .strip_prefix(' ')
            .filter(|own| are_digits(own))
    };
    let is_stamp = is_seconds || caller || is_date().is_some();
    is_stamp.then(|| rest.strip_prefix(' ').unwrap_or(rest))
}

fn are_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit())
}

/// `cyclictest[1234]: `, behind a stamp, with or without the host before it.
fn program(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("]: ")?;
    let (name, number) = before.rsplit_once('[')?;
    let is_name = name.split(' ').count() <= 2 && !name.contains([':', '(']);
    (is_name && are_digits(number)).then_some(rest)
}

/// `1764331200.123 `, s since the epoch.
fn epoch(line: &str) -> Option<&str> {
    let (stamp, rest) = line.split_once(' ')?;
    let (seconds, part) = stamp.split_once('.')?;
    (seconds.len() == 10 && are_digits(seconds) && are_digits(part)).then_some(rest)
}

/// `Nov 28 12:00:01 host program[12]: ` or `2026-11-28T12:00:01+0000 host program[12]: `.
fn journal(line: &str) -> Option<&str> {
    let behind_time = match syslog_date(line) {
        Some(rest) => behind_clock(rest)?,
        None => behind_date(line).and_then(|rest| behind_clock(rest.strip_prefix(['T', ' '])?))?,
    };
    let (_host, rest) = behind_time.strip_prefix(' ')?.split_once(' ')?;
    let (program, rest) = rest.split_once(": ")?;
    // `T: 0` of cyclictest is not a program.
    let is_program = !program.contains(' ') && program.len() > 1;
    is_program.then_some(rest)
}

/// `2026-11-28 12:00:01.123 ` or `12:00:01.123 `, with or without brackets around.
fn lab_time(line: &str) -> Option<&str> {
    let (line, is_bracketed) = match line.strip_prefix('[') {
        Some(rest) => (rest, true),
        None => (line, false),
    };
    let clock = behind_date(line).and_then(|rest| rest.strip_prefix(['T', ' ', '_']));
    let rest = behind_clock(clock.unwrap_or(line))?;
    let rest = if is_bracketed { rest.strip_prefix(']')? } else { rest };
    let rest = rest.strip_prefix([' ', '\t'])?;
    // The number of a section of GitLab.
    Some(behind(rest, "00O ").or_else(|| behind(rest, "00E ")).unwrap_or(rest))
}

/// Behind `Nov 28 `.
fn syslog_date(line: &str) -> Option<&str> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let rest = MONTHS.iter().find_map(|month| line.strip_prefix(month))?.trim_start();
    let (day, rest) = rest.split_once(' ')?;
    day.parse::<u8>().ok().map(|_| rest)
}

/// Behind `2026-11-28`.
fn behind_date(line: &str) -> Option<&str> {
    behind(line, "0000-00-00")
}

/// Behind `12:00:01`, its fraction and its zone.
fn behind_clock(line: &str) -> Option<&str> {
    let rest = behind(line, "00:00:00")?;
    let fraction = rest.strip_prefix(['.', ',']);
    let rest = fraction.map_or(rest, |rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    let zone = |rest| {
        let rest: &str = rest;
        let own = rest.strip_prefix(['+', '-'])?;
        behind(own, "00:00").or_else(|| behind(own, "0000"))
    };
    Some(rest.strip_prefix('Z').or_else(|| zone(rest)).unwrap_or(rest))
}

/// Behind a text that has a digit where `pattern` has one, and else is the same.
fn behind<'a>(line: &'a str, pattern: &str) -> Option<&'a str> {
    let (own, rest) = line.split_at_checked(pattern.len())?;
    let fits = |(own, of): (u8, u8)| if of == b'0' { own.is_ascii_digit() } else { own == of };
    own.bytes().zip(pattern.bytes()).all(fits).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_and_quotes_are_taken_away_and_nothing_else() {
        let line = "T: 0 ( 1234) P:98";
        for before in [
            "",
            "[   65.123456] ",
            "<6>[   65.123456] ",
            "> ",
            "> > [65.1] ",
            "Nov 28 12:00:01 rig cyclictest[1234]: ",
            "Nov  8 12:00:01 rig kernel: [   65.123456] ",
            "2026-11-28T12:00:01+0000 rig cyclictest[12]: ",
            "2026-11-28T12:00:01.123456Z ",
            "2026-11-28 12:00:01,123 ",
            "[2026-11-28 12:00:01.123] ",
            "12:00:01.123 ",
            "[Sat Nov 28 12:00:00 2026] ",
            "<6>[    1.2][  T123] ",
            "[    1.2][    C3] ",
            "[  123.45] rig cyclictest[99]: ",
            "2026-11-28T12:00:00.123456Z 01O ",
            "1764331200.123 ",
        ] {
            assert_eq!(without_prefix(&format!("{before}{line}")), line, "{before}");
        }
        let lava =
            format!(r#"- {{"dt": "2026-11-28T12:00:01", "lvl": "target", "msg": "{line}"}}"#);
        assert_eq!(without_prefix(&lava), line);
        for own in ["RTD|  1.2|", "000003 000012", "0.5;0;12", "[LOST 2 EVENTS]", "<idle>-0 [000]"]
        {
            assert_eq!(without_prefix(own), own);
        }
    }
}
