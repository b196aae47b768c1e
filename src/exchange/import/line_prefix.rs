//! What other programs put before each line of a text that is pasted or logged: stamps of the
//! kernel's log, of the journal and of test labs, and marks of quotes.
//!
//! ```text
//! [   65.123456] T: 0 ( 1234) P:98 ...
//! Nov 28 12:00:01 rig cyclictest[1234]: T: 0 ...
//! 2026-11-28T12:00:01.123456Z T: 0 ...
//! - {"dt": "2026-11-28T12:00:01", "lvl": "target", "msg": "T: 0 ..."}
//! <13>1 2026-11-28T12:00:01.123456Z rig cyclictest 1234 - - T: 0 ...
//! 2026-11-28T12:00:01.123456789Z stdout F T: 0 ...
//! rig.log:12:T: 0 ...
//! > T: 0 ...
//! ```

use std::borrow::Cow;

use serde::Deserialize;

/// Prefixes before each other: a quoted line of a log of the journal.
const MOST_PREFIXES: usize = 4;

/// A line of a log in JSON: of LAVA, and of Docker's json-file driver.
#[derive(Deserialize)]
struct LoggedLine {
    #[serde(alias = "log")]
    msg: String,
}

/// Each returns what is behind its prefix; `None` if the line has another beginning.
const PREFIXES: [fn(&str) -> Option<&str>; 16] = [
    quote,
    priority,
    kernel_stamp,
    rfc_5424,
    journal,
    lab_time,
    syslog_time,
    workflow,
    python_log,
    container,
    compose,
    program,
    epoch,
    file_and_line,
    line_number,
    comment,
];

/// The line without what stands before it.
pub(super) fn without_prefix(line: &str) -> Cow<'_, str> {
    let trimmed = line.trim_start();
    let logged = trimmed.strip_prefix("- ").unwrap_or(trimmed);
    if logged.starts_with('{')
        && let Ok(LoggedLine { msg }) = serde_json::from_str(logged)
    {
        return Cow::Owned(without_prefix(msg.trim_end_matches('\n')).into_owned());
    }
    let mut rest = in_quotes(line).unwrap_or(line);
    for _ in 0..MOST_PREFIXES {
        match PREFIXES.iter().find_map(|behind| behind(rest)) {
            Some(behind) => rest = behind,
            None => break,
        }
    }
    Cow::Borrowed(rest)
}

/// `    "T: 0 ...",`, of a list that Ansible prints.
fn in_quotes(line: &str) -> Option<&str> {
    let line = line.trim();
    let line = line.strip_suffix(',').unwrap_or(line);
    line.strip_prefix('"')?.strip_suffix('"').filter(|own| !own.contains('"'))
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
    let (host, rest) = behind_time.strip_prefix(' ')?.split_once(' ')?;
    let (program, rest) = rest.split_once(": ")?;
    let has_number = program.strip_suffix(']').is_some_and(|own| own.contains('['));
    // Without a number it may be a word of the output: `# Total: 12`, `Simple syscall: 0.1`.
    let is_program = !program.contains(' ') && (has_number || LOGGERS.contains(&program));
    (is_host(host) && is_program).then_some(rest)
}

/// What the journal and syslog call who logs without the number of a process.
const LOGGERS: [&str; 8] =
    ["kernel", "root", "cyclictest", "oslat", "rtla", "latency", "latmus", "tardy"];

fn is_host(word: &str) -> bool {
    let may_be = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    word.starts_with(|c: char| c.is_ascii_alphanumeric()) && word.chars().all(may_be)
}

/// `1 2026-11-28T12:00:01.123Z host program 12 - - `, of RFC 5424 behind its priority.
fn rfc_5424(line: &str) -> Option<&str> {
    let time = behind_date(line.strip_prefix("1 ")?)?.strip_prefix('T')?;
    let mut rest = behind_clock(time)?.strip_prefix(' ')?;
    // Host, program, process and kind of message.
    for _ in 0..4 {
        rest = rest.split_once(' ')?.1;
    }
    let rest = match rest.strip_prefix('-') {
        Some(rest) => rest,
        // Values in quotes may have brackets; what the field writes has none.
        None => rest.strip_prefix('[')?.split_once("] ").map(|(_, rest)| rest)?,
    };
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    Some(rest.strip_prefix('\u{feff}').unwrap_or(rest))
}

/// `Nov 28 12:00:01 ` alone, as `ts` of moreutils has it.
fn syslog_time(line: &str) -> Option<&str> {
    behind_clock(syslog_date(line)?)?.strip_prefix(' ')
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

/// `job\tstep\t` before a time, as `gh run view --log` has it.
fn workflow(line: &str) -> Option<&str> {
    let rest = line.split_once('\t')?.1.split_once('\t')?.1;
    let rest = rest.strip_prefix('\u{feff}').unwrap_or(rest);
    behind_date(rest).map(|_| rest)
}

/// `INFO:name:`, `INFO `, `- name - INFO - ` and the like, of Python's logging behind its time.
fn python_log(line: &str) -> Option<&str> {
    const LEVELS: [&str; 6] = ["DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL"];
    let behind_level =
        |text| LEVELS.iter().find_map(|level| str::strip_prefix(text, level).map(str::trim_start));
    if let Some(rest) = line.strip_prefix("- ").and_then(|rest| rest.split_once(" - ")) {
        return behind_level(rest.1)?.strip_prefix("- ");
    }
    let rest = behind_level(line.strip_prefix(": ").unwrap_or(line))?;
    for mark in [": ", "| ", "- "] {
        if let Some(rest) = rest.strip_prefix(mark) {
            return Some(rest);
        }
    }
    if let Some(named) = rest.strip_prefix(':') {
        return named.split_once(':').filter(|(name, _)| is_host(name)).map(|(_, rest)| rest);
    }
    // With pytest `name:file.py:12 `.
    let place = rest.split_once(' ').filter(|(place, _)| is_place(place));
    Some(place.map_or(rest, |(_, rest)| rest))
}

/// `file.py:12`.
fn is_place(word: &str) -> bool {
    word.rsplit_once(':').is_some_and(|(_, number)| are_digits(number))
}

/// `stdout F `, of Kubernetes behind its time, and `[stdout] `.
fn container(line: &str) -> Option<&str> {
    const STREAMS: [&str; 6] =
        ["stdout F ", "stderr F ", "stdout P ", "stderr P ", "[stdout] ", "[stderr] "];
    STREAMS.iter().find_map(|stream| line.strip_prefix(stream))
}

/// `cyclictest-1  | `, of Docker Compose.
fn compose(line: &str) -> Option<&str> {
    let (name, rest) = line.split_once("| ")?;
    let word = name.trim_end_matches(' ');
    (word.len() < name.len() && is_host(word) && !are_digits(word)).then_some(rest)
}

/// `rig.log:12:` or `rig.log:`, of grep.
fn file_and_line(line: &str) -> Option<&str> {
    let (file, rest) = line.split_once(':')?;
    let is_file = file.contains(['.', '/']) && !file.contains(' ') && !file.starts_with('.');
    // A number with decimals names no file.
    let is_file = is_file && file.contains(|c: char| c.is_ascii_alphabetic());
    is_file.then(|| line_number(rest).unwrap_or(rest))
}

/// `12:` of `grep -n`, or `    12\t` of `cat -n`.
fn line_number(line: &str) -> Option<&str> {
    if let Some((number, rest)) = line.split_once('\t')
        && are_digits(number.trim_start())
        && line.starts_with(' ')
    {
        return Some(rest);
    }
    let (number, rest) = line.split_once(':')?;
    // Not a clock, and not a stream of cyclictest -v.
    let is_other = behind(rest, "00:").is_some() || rest.starts_with(' ');
    (are_digits(number) && !is_other).then_some(rest)
}

/// `# ` before what belongs to the output, of KTAP.
fn comment(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("# ")?;
    let is_row =
        || rest.split_whitespace().count() > 1 && rest.split_whitespace().all(is_row_number);
    (rest.starts_with("T:") || rest.starts_with("# ") || is_row()).then_some(rest)
}

/// One of at least six digits, as the rows of cyclictest's histogram have them.
fn is_row_number(word: &str) -> bool {
    word.len() >= 6 && are_digits(word)
}

/// Behind `Nov 28 `.
fn syslog_date(line: &str) -> Option<&str> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let rest = MONTHS.iter().find_map(|month| line.strip_prefix(month))?.trim_start();
    let (day, rest) = rest.split_once(' ')?;
    day.parse::<u8>().ok().map(|_| rest)
}

/// Behind `2026-11-28` or `20261128`.
fn behind_date(line: &str) -> Option<&str> {
    behind(line, "0000-00-00").or_else(|| behind(line, "00000000"))
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
            "Nov 28 12:00:01 ",
            "<13>1 2026-11-28T12:00:01.123456+00:00 rig cyclictest 1234 - - ",
            "<13>1 2026-11-28T12:00:01Z rig cyclictest 12 ID1 [a@1 b=\"c\"] ",
            "2026-11-28T12:00:01.123 INFO:teuthology.orchestra.run.rig001.stdout:",
            "2026-11-28 12:00:01,123 INFO ",
            "2026-11-28 12:00:01,123 - runner - DEBUG - ",
            "2026-11-28 12:00:01,123 INFO | ",
            "20261128 12:00:01.123 : INFO : ",
            "INFO     root:x.py:12 ",
            "INFO:root:",
            "build\tRun cyclictest\t2026-11-28T12:00:01.1234567Z ",
            "2026-11-28T12:00:01.123456789Z stdout F ",
            "cyclictest-1  | ",
            "12:",
            "rig.log:12:",
            "logs/rig:",
            "     7\t",
            "# ",
        ] {
            assert_eq!(without_prefix(&format!("{before}{line}")), line, "{before}");
        }
        let lava =
            format!(r#"- {{"dt": "2026-11-28T12:00:01", "lvl": "target", "msg": "{line}"}}"#);
        assert_eq!(without_prefix(&lava), line);
        let docker = format!(r#"{{"log": "{line}\n", "stream": "stdout", "time": "x"}}"#);
        assert_eq!(without_prefix(&docker), line);
        assert_eq!(without_prefix(&format!("        \"{line}\",")), line, "of Ansible");
        for own in [
            "RTD|  1.2|",
            "RTH|----lat min|",
            "000003 000012",
            "0.5;0;12",
            "[LOST 2 EVENTS]",
            "<idle>-0 [000]",
            "# Total: 000000100",
            "# Min Latencies: 00003",
            "CPU Freq: 2100",
            "  0 #12          |   1",
            "0:       1:      12",
            "count:        12",
            "20261128 000012",
        ] {
            for before in ["", "2026-11-28T12:00:01.1234567Z ", "2026-11-28 12:00:01 ", "> "] {
                assert_eq!(without_prefix(&format!("{before}{own}")), own, "{before}");
            }
        }
    }
}
