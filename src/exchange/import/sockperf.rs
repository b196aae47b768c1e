//! sockperf's `--full-log`: its summary, then a line a message.
//!
//! ```text
//! sockperf: [Valid Duration] RunTime=0.550 sec; SentMessages=46069; ReceivedMessages=46069
//! ------------------------------
//! packet, txTime(sec), rxTime(sec), latency(usec)
//! 0, 2.415236267, 2.415247333, 5.533
//! ```
//!
//! Its latency is half of the round trip, and with `--full-rtt` the last column is `rtt(usec)`; the
//! round trip is taken from both times. Those are of a clock that begins anywhere.

use super::{
    ImportOptions,
    imported_data::ImportedData,
    source::{ImportError, Source},
    times::seconds_ns,
};
use crate::{
    run::{FileLoss, ImportCaveat},
    units::many,
};

const HEADINGS: [&str; 2] = [
    "packet, txTime(sec), rxTime(sec), latency(usec)",
    "packet, txTime(sec), rxTime(sec), rtt(usec)",
];

/// Of a log without its end.
const CUT: &str = "the log ends here, without its last line of dashes; write it again";

/// Whether it begins as such a file does.
pub(super) fn matches_format(head: &str) -> bool {
    head.lines().any(|line| HEADINGS.contains(&line.trim()))
}

/// Reads it.
pub(super) fn read(
    source: &mut Source<'_>,
    _options: &ImportOptions,
) -> Result<ImportedData, ImportError> {
    let mut sheet = ImportedData::new("sockperf", Some("pingpong"));
    let series = sheet.series("rtt", None)?;
    let (mut is_table, mut is_whole, mut stated, mut last) = (false, false, None, 1);
    while let Some((number, line)) = source.text()? {
        let line = line.trim();
        if !is_table {
            is_table = HEADINGS.contains(&line);
            stated = stated.or_else(|| received(line));
            if let Some(what) = losses(line) {
                sheet.caveats.push(ImportCaveat::Loss(FileLoss::Stated { what }));
            }
        } else if line.starts_with("---") {
            is_whole = true;
            break;
        } else if source.is_whole() {
            let (sent, received) = message(line).ok_or_else(|| {
                ImportError::at(number, "a message is number, sent, received, latency")
            })?;
            if received < sent {
                let what = "rxTime is before txTime, and no message comes before it is sent";
                return Err(ImportError::at(number, what));
            }
            sheet.sample(series, sent, received.saturating_sub(sent))?;
            last = number;
        } else {
            return Err(ImportError::at(number, CUT));
        }
    }
    while let Some((number, line)) = source.text()? {
        if HEADINGS.contains(&line.trim()) {
            let what = "a second log begins here: import one file for each";
            return Err(ImportError::at(number, what));
        }
    }
    let found = sheet.series.get(series).map_or(0, |series| series.totals.count);
    if !is_whole && stated != Some(found) {
        return Err(ImportError::at(last, CUT));
    }
    if let Some(stated) = stated {
        sheet.check_count(series, stated);
    }
    Ok(sheet)
}

/// How many messages the summary says came.
fn received(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once("[Valid Duration]")?;
    let (_, count) = rest.split_once("ReceivedMessages=")?;
    let end = count.find(|c: char| !c.is_ascii_digit()).unwrap_or(count.len());
    count.get(..end)?.parse().ok()
}

/// `# dropped messages = 1; # duplicated messages = 2; # out-of-order messages = 1`, without what
/// is 0.
fn losses(line: &str) -> Option<String> {
    line.contains("# dropped messages").then_some(())?;
    let one = |part: &str| {
        let (what, number) = part.split_once('#')?.1.split_once('=')?;
        let number: u64 = number.trim().parse().ok().filter(|number| *number > 0)?;
        let what = what.trim().trim_end_matches('s');
        let (kind, noun) = what.rsplit_once(' ')?;
        Some(many(number, &format!("{kind} {noun}")))
    };
    let all: Vec<String> = line.split(';').filter_map(one).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

fn message(line: &str) -> Option<(i64, i64)> {
    let mut fields = line.split(',');
    fields.next()?.trim().parse::<u64>().ok()?;
    let times = (seconds_ns(fields.next()?)?, seconds_ns(fields.next()?)?);
    fields.next()?;
    fields.next().is_none().then_some(times)
}

#[cfg(test)]
mod tests {
    use crate::exchange::import::tests::{caveats, series, text};

    /// As sockperf 3.7 wrote it.
    const LOG: &str = "------------------------------\n\
        sockperf: [Valid Duration] RunTime=0.550 sec; SentMessages=3; ReceivedMessages=3\n\
        sockperf: \u{1b}[2;35m====> avg-latency=5.964 (std-dev=1.305)\u{1b}[0m\n\
        ------------------------------\n\
        packet, txTime(sec), rxTime(sec), latency(usec)\n\
        0, 2.415236267, 2.415247333, 5.533\n1, 2.415247343, 2.415258420, 5.539\n\
        2, 2.415258440, 2.415270027, 5.793\n------------------------------\n";

    #[test]
    fn the_round_trip_is_from_the_times_and_exact() {
        let sheet = text(LOG).unwrap();
        assert_eq!(series(&sheet), [("rtt", 3, 11_066, 11_587)]);
        assert_eq!(sheet.times_ns(), Some((2_415_236_267, 2_415_258_440)));
        assert!(caveats(&sheet).is_empty());
    }

    #[test]
    fn messages_that_are_missing_are_doubted_and_odd_lines_refused() {
        let fewer = LOG.replace("2, 2.415258440, 2.415270027, 5.793\n", "");
        assert!(caveats(&text(&fewer).unwrap()).contains("states 3 samples of rtt, and has 2"));
        let error = text(&LOG.replace("2.415247343", "2,415247343")).unwrap_err().to_string();
        assert!(error.starts_with("line 7: a message is"), "{error}");
    }

    #[test]
    fn what_came_before_it_was_sent_and_a_log_that_was_cut_are_refused() {
        let before = LOG.replace("2.415258420", "2.415247342");
        let error = text(&before).unwrap_err().to_string();
        assert!(error.starts_with("line 7: rxTime is before txTime"), "{error}");
        let error = text(&LOG[..LOG.find("027, 5.793").unwrap()]).unwrap_err().to_string();
        assert!(error.starts_with("line 8: the log ends here"), "{error}");
        let error = text(&LOG[..LOG.find("2, 2.4152").unwrap()]).unwrap_err().to_string();
        assert!(error.starts_with("line 7: the log ends here"), "fewer than stated: {error}");
    }

    #[test]
    fn with_full_rtt_the_column_has_another_name_and_the_round_trip_is_the_same() {
        let full = LOG.replace("latency(usec)", "rtt(usec)");
        assert_eq!(series(&text(&full).unwrap()), [("rtt", 3, 11_066, 11_587)]);
    }
}
