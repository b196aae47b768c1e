//! The output of `hackbench`: how long all messages of a run took.
//!
//! ```text
//! Running in process mode with 10 groups using 40 file descriptors each (== 400 tasks)
//! Each sender will pass 100 messages of 100 bytes
//! Time: 0.176
//! ```
//!
//! This is not a latency, so that it becomes a figure; a file may have several runs of the same,
//! each of which is one value. Runs of other sizes are not repeats.

use super::{
    ImportOptions,
    imported_data::ImportedData,
    source::{ImportError, Source},
    times::seconds_ns,
};
use crate::{
    plain::cut,
    run::{FigureHead, FigureUnit},
};

/// Whether it begins as such a file does.
pub(super) fn matches_format(head: &str) -> bool {
    let is_first = |line: &str| line.starts_with("Running in ") && line.contains(" groups using ");
    let mut lines = head.lines();
    lines.any(is_first) && lines.any(|line| line.starts_with("Each sender will pass "))
}

/// Reads it.
pub(super) fn read(
    source: &mut Source<'_>,
    _options: &ImportOptions,
) -> Result<ImportedData, ImportError> {
    let mut sheet = ImportedData::new("hackbench", None);
    let (mut how, mut what, mut lasted_ns) = (None, None, 0_u64);
    while let Some((number, line)) = source.text()? {
        let line = line.trim();
        let whole = source.is_whole();
        let refused = |what: &str| ImportError::at(number, format!("\"{}\" {what}", cut(line, 80)));
        if line.starts_with("Running in ") {
            how = Some(mode(line).ok_or_else(|| refused("names no groups and tasks"))?);
            what = None;
        } else if let Some(rest) = line.strip_prefix("Each sender will pass ") {
            what = Some(messages(rest).ok_or_else(|| refused("names no messages and bytes"))?);
        } else if let Some(time) = line.strip_prefix("Time:") {
            let ns = seconds_ns(time).filter(|ns| *ns >= 0 && whole);
            let ns = ns.ok_or_else(|| refused("is not a time in seconds"))?;
            if ns == 0 {
                // hackbench prints ms, and this is less than half of one.
                return Err(refused(
                    "is less than the 1 ms that hackbench can tell: let each sender pass more \
                     messages (-l), or leave this run out of the file",
                ));
            }
            let (Some((mode, groups, tasks)), Some((messages, bytes))) = (how.take(), what.take())
            else {
                return Err(refused("has no lines before it that say what was run"));
            };
            let name = format!("{mode}/{groups}x{tasks}/{messages}x{bytes}B");
            let unit = FigureUnit::Other("s".into());
            sheet.figure(FigureHead { name, unit }, ns as f64 / 1e9)?;
            lasted_ns = lasted_ns.saturating_add(ns.unsigned_abs());
        }
    }
    if how.is_some() {
        return Err(ImportError::new(
            "its last run has no line Time:, which was expected at its end",
        ));
    }
    sheet.duration_ns = Some(lasted_ns).filter(|ns| *ns > 0);
    Ok(sheet)
}

/// `process`, its groups, and its tasks.
fn mode(line: &str) -> Option<(&'static str, u32, u32)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mode = match *words.get(2)? {
        "process" => "process",
        "threaded" => "threads",
        _ => return None,
    };
    let before = |word: &str| {
        let at = words.iter().position(|own| own.trim_end_matches(')') == word)?;
        words.get(at.checked_sub(1)?)?.parse::<u32>().ok()
    };
    Some((mode, before("groups")?, before("tasks")?))
}

/// `100 messages of 100 bytes`
fn messages(rest: &str) -> Option<(u64, u64)> {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let [messages, "messages", "of", bytes, "bytes"] = words[..] else { return None };
    Some((messages.parse().ok()?, bytes.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use crate::exchange::import::tests::text;

    const RUNS: &str = "Running in process mode with 10 groups using 40 file descriptors each \
        (== 400 tasks)\nEach sender will pass 100 messages of 100 bytes\nTime: 0.176\n\
        Running in process mode with 10 groups using 40 file descriptors each \
        (== 400 tasks)\nEach sender will pass 100 messages of 100 bytes\nTime: 0.204\n\
        Running in threaded mode with 2 groups using 40 file descriptors each \
        (== 80 tasks)\nEach sender will pass 50 messages of 1000 bytes\nTime: 1.5\n";

    #[test]
    fn each_run_is_a_value_of_what_was_run() {
        let sheet = text(RUNS).unwrap();
        let figures: Vec<_> =
            sheet.figures.iter().map(|(own, values)| (&*own.name, &values[..])).collect();
        let expected =
            [("process/10x400/100x100B", &[0.176, 0.204][..]), ("threads/2x80/50x1000B", &[1.5])];
        assert_eq!(figures, expected);
        assert_eq!(sheet.figures[0].0.unit.as_str(), "s");
        assert_eq!(sheet.duration_ns, Some(1_880_000_000));
    }

    #[test]
    fn a_cut_or_odd_line_is_refused() {
        for (from, to, line) in [
            ("Time: 0.204", "Time: 0,204", "line 6: "),
            ("Time: 0.204", "Time: -0.2", "line 6: "),
            ("Time: 0.204", "Time: 0.000", "line 6: \"Time: 0.000\" is less than the 1 ms"),
            ("threaded", "other", "line 7: "),
            ("50 messages", "5e1 messages", "line 8: "),
            ("Each sender will pass 50", "Each 50", "line 9: "),
        ] {
            let error = text(&RUNS.replace(from, to)).unwrap_err().to_string();
            assert!(error.starts_with(line), "{from}: {error}");
        }
        let cut = RUNS.strip_suffix("5\n").unwrap();
        assert!(text(cut).unwrap_err().to_string().starts_with("line 9: "));
        let cut = RUNS.strip_suffix("Time: 1.5\n").unwrap();
        assert!(text(cut).unwrap_err().to_string().contains("which was expected"));
    }
}
