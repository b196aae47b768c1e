//! `series.hlog`: an HdrHistogram interval log, one tag per series, values in ns.
//!
//! Any HdrHistogram reader opens it. What a histogram cannot hold (early and above, exact sum,
//! minimum and maximum, missed periods) stands in a comment behind each interval, cumulative, so
//! that a run is whole up to its last complete line however it ended:
//!
//! ```text
//! Tag=cpu0,12.000,0.100,0.041,HISTFAAAA...
//! #[Totals: tag=cpu0 count=12100 early=0 above=0 missed=3 sum_ns=... min_ns=... max_ns=...]
//! ```
//!
//! Format: HistogramLogWriter of HdrHistogram, log format 1.3; times in s relative to `BaseTime`,
//! the maximum in ms.

use std::{
    fmt::Write as _,
    io::{BufRead, Read},
};

use crate::limits::log::{LONGEST_LINE, MOST_SAMPLES};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use hdrhistogram::{
    Histogram,
    serialization::{
        Deserializer, Serializer, V2DeflateSerializer,
        interval_log::{IntervalLogIterator, LogEntry},
    },
};
use tardy_hot::{
    histogram::{HIGHEST_NS, LEN},
    tally::Totals,
};
use thiserror::Error;

/// An empty histogram with the bounds that every series has: 1 ns to 1 hour, three digits.
#[must_use]
pub fn empty() -> Histogram<u64> {
    match Histogram::new_with_bounds(1, HIGHEST_NS as u64, 3) {
        Ok(histogram) => histogram,
        Err(_) => unreachable!("the bounds are constants that HdrHistogram takes"),
    }
}

/// What stands before the name of a probe of tardy in a comment of an exported log.
pub const SAMPLES_OF: &str = "Samples of tardy: ";

/// What stands at the head of a log that began at `start_s` (seconds since the epoch).
#[must_use]
pub fn header(start_s: f64, start_text: &str) -> String {
    format!(
        "#[Logged with tardy {}]\n\
         #[Histogram log format version 1.3]\n\
         #[StartTime: {start_s:.3} (seconds since epoch), {start_text}]\n\
         #[BaseTime: {start_s:.3} (seconds since epoch)]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// One interval of one series, without its counts.
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalSpan {
    /// Name of the series.
    pub tag: String,
    /// Seconds since the start of the run.
    pub start_s: f64,
    /// Length in seconds.
    pub length_s: f64,
}

impl IntervalSpan {
    /// The moment that stands for all of it, in seconds since the start of the run.
    #[must_use]
    pub fn middle_s(&self) -> f64 {
        self.start_s + self.length_s / 2.0
    }
}

/// One interval of one series, ready to be appended.
#[derive(Debug)]
pub struct IntervalOf {
    /// Series, start and length.
    pub span: IntervalSpan,
    /// Counts within the interval.
    pub counts: Histogram<u64>,
    /// Totals since the start.
    pub totals: Totals,
}

/// Appends intervals to `out`, with a `pause` after each: a histogram is a page of work.
pub(super) fn append_all(
    out: &mut String,
    intervals: &mut dyn Iterator<Item = IntervalOf>,
    pause: &mut dyn FnMut(),
) {
    for interval in intervals {
        append_one(out, &interval);
        pause();
    }
}

/// Appends one interval to `out`.
pub(super) fn append_one(out: &mut String, interval: &IntervalOf) {
    let IntervalOf { span, counts, totals } = interval;
    append(out, span, counts, totals);
}

/// Appends an interval and the totals so far to `out`, two lines.
pub fn append(out: &mut String, span: &IntervalSpan, counts: &Histogram<u64>, totals: &Totals) {
    let mut packed = Vec::new();
    if V2DeflateSerializer::new().serialize(counts, &mut packed).is_err() {
        unreachable!("a histogram of u64 always serializes into memory");
    }
    // Not the bucket's upper edge where that lies above everything measured.
    let max_ns = counts.max().min(u64::try_from(totals.max_ns).unwrap_or(0));
    let IntervalSpan { tag, start_s, length_s } = span;
    let max_ms = max_ns as f64 / 1e6;
    let _ = write!(out, "Tag={tag},{start_s:.3},{length_s:.3},{max_ms:.6},");
    STANDARD.encode_string(&packed, out);
    let Totals { count, early, above, missed, sum_ns, min_ns, max_ns } = totals;
    let _ = writeln!(
        out,
        "\n#[Totals: tag={tag} count={count} early={early} above={above} missed={missed} \
         sum_ns={sum_ns} min_ns={min_ns} max_ns={max_ns}]"
    );
}

/// What a line of a log says.
#[derive(Debug)]
pub enum LogLine {
    /// Counts of one interval.
    Interval(IntervalSpan, Histogram<u64>),
    /// Totals of one series since the start.
    Totals(String, Totals),
}

/// Why a log could not be read to its end.
#[derive(Debug, Error)]
pub enum HlogError {
    /// The file itself.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// A complete line that makes no sense.
    #[error("line {line} is damaged: {what}")]
    Damaged {
        /// Counted from 1.
        line: usize,
        /// What was wrong with it.
        what: &'static str,
    },
}

/// Reads a log line by line and hands over what each says. A last line without its end is what a
/// killed writer leaves, and is skipped.
///
/// # Errors
/// At the first damaged line; what came before was handed over.
pub fn read(mut log: impl BufRead, mut take: impl FnMut(LogLine)) -> Result<(), HlogError> {
    let mut text = Vec::new();
    let mut samples = 0_u64;
    for line in 1.. {
        text.clear();
        if (&mut log).take(LONGEST_LINE).read_until(b'\n', &mut text)? == 0 {
            break;
        }
        if text.last() != Some(&b'\n') {
            if text.len() as u64 == LONGEST_LINE {
                return Err(HlogError::Damaged { line, what: "it has no end" });
            }
            break;
        }
        let damaged = |what| HlogError::Damaged { line, what };
        let text = std::str::from_utf8(&text).map_err(|_| damaged("it is not text"))?;
        if let Some((tag, totals)) = totals_of(text).map_err(damaged)? {
            take(LogLine::Totals(tag, totals));
        } else if let Some((span, counts)) = read_interval(text).map_err(damaged)? {
            samples = samples.saturating_add(counts.len());
            if samples > MOST_SAMPLES {
                return Err(damaged(TOO_MANY));
            }
            take(LogLine::Interval(span, counts));
        }
    }
    Ok(())
}

/// Reads a log line by line and hands over the series, the middle in s and the maximum in ns of
/// each interval, without unpacking its counts.
///
/// # Errors
/// As [`read`].
pub fn read_maxima(
    mut log: impl BufRead,
    mut take: impl FnMut(&str, f64, i64),
) -> Result<(), HlogError> {
    let mut text = Vec::new();
    for line in 1.. {
        text.clear();
        if (&mut log).take(LONGEST_LINE).read_until(b'\n', &mut text)? == 0 {
            break;
        }
        if text.last() != Some(&b'\n') {
            break;
        }
        if let Some(rest) = text.strip_prefix(b"Tag=") {
            let parts = maximum(rest);
            let (tag, middle_s, max_ns) =
                parts.ok_or(HlogError::Damaged { line, what: "an interval expected" })?;
            take(tag, middle_s, max_ns);
        }
    }
    Ok(())
}

/// Series, middle and maximum of an interval.
fn maximum(line: &[u8]) -> Option<(&str, f64, i64)> {
    let mut fields = line.splitn(5, |byte| *byte == b',');
    let mut field = || std::str::from_utf8(fields.next()?).ok();
    let tag = field()?;
    let mut number = || field()?.parse::<f64>().ok().filter(|number| number.is_finite());
    let (start_s, length_s, max_ms) = (number()?, number()?, number()?);
    Some((tag, start_s + length_s / 2.0, (max_ms * 1e6).round() as i64))
}

/// Why an interval is not read: no machine counts that many samples.
const TOO_MANY: &str = "it counts more samples than 2^53";

/// Why an interval is not read.
pub(super) const NO_HISTOGRAM: &str = "its histogram is damaged";

fn read_interval(line: &str) -> Result<Option<(IntervalSpan, Histogram<u64>)>, &'static str> {
    let Some((span, packed)) = interval_of(line)? else { return Ok(None) };
    let plain = unpacked(packed).ok_or(NO_HISTOGRAM)?;
    Ok(Some((span, histogram_of(&plain).ok_or(NO_HISTOGRAM)?)))
}

/// The interval on a line, with its packed histogram; `None` for any other line.
pub(super) fn interval_of(line: &str) -> Result<Option<(IntervalSpan, &str)>, &'static str> {
    for entry in IntervalLogIterator::new(line.as_bytes()) {
        if let LogEntry::Interval(interval) = entry.map_err(|_| "no interval, no comment")? {
            let span = IntervalSpan {
                tag: interval.tag().map(|tag| tag.as_str().to_owned()).unwrap_or_default(),
                start_s: interval.start_timestamp().as_secs_f64(),
                length_s: interval.duration().as_secs_f64(),
            };
            return Ok(Some((span, interval.encoded_histogram())));
        }
    }
    Ok(None)
}

/// The totals that a line states; nothing where it states none.
pub(super) fn totals_of(line: &str) -> Result<Option<(String, Totals)>, &'static str> {
    let Some(totals) = line.strip_prefix("#[Totals: ") else { return Ok(None) };
    read_totals(totals).ok_or("totals expected").map(Some)
}

/// Length of the header of an encoded histogram, bytes.
pub(super) const HEADER: usize = 40;

/// Inflates a packed histogram: its header and its counts, of a length that is bounded before it
/// is believed.
pub(super) fn unpacked(text: &str) -> Option<Vec<u8>> {
    // The cookie of the deflated V2 encoding, with 1 byte as its word size.
    const PACKED: [u8; 4] = 0x1c84_9314_u32.to_be_bytes();
    let packed = STANDARD.decode(text).ok()?;
    let body = packed.strip_prefix(&PACKED)?.get(4..)?;
    let mut plain = Vec::new();
    // A count takes at most 9 bytes.
    let limit = (HEADER + 9 * LEN) as u64;
    flate2::read::ZlibDecoder::new(body).take(limit).read_to_end(&mut plain).ok()?;
    let length = u32::from_be_bytes(plain.get(4..8)?.try_into().ok()?);
    let digits = u32::from_be_bytes(plain.get(12..16)?.try_into().ok()?);
    (length as usize <= plain.len() && digits == 3).then_some(plain)
}

/// Decodes what [`unpacked`] gave.
pub(super) fn histogram_of(mut plain: &[u8]) -> Option<Histogram<u64>> {
    let read: Histogram<u64> = Deserializer::new().deserialize(&mut plain).ok()?;
    // The sum stops at the largest integer.
    (read.len() <= MOST_SAMPLES).then_some(())?;
    if (read.low(), read.high()) == (1, HIGHEST_NS as u64) {
        return Some(read);
    }
    // Somebody else's bounds.
    let mut counts = empty();
    counts.add(&read).ok()?;
    Some(counts)
}

fn read_totals(text: &str) -> Option<(String, Totals)> {
    let mut tag = None;
    let mut totals = Totals::NONE;
    for pair in text.trim_end().strip_suffix(']')?.split(' ') {
        let (key, value) = pair.split_once('=')?;
        match key {
            "tag" => tag = Some(value.to_owned()),
            "count" => totals.count = value.parse().ok()?,
            "early" => totals.early = value.parse().ok()?,
            "above" => totals.above = value.parse().ok()?,
            "missed" => totals.missed = value.parse().ok()?,
            "sum_ns" => totals.sum_ns = value.parse().ok()?,
            "min_ns" => totals.min_ns = value.parse().ok()?,
            "max_ns" => totals.max_ns = value.parse().ok()?,
            _ => {}
        }
    }
    let Totals { count, early, above, missed, .. } = totals;
    let is_possible = [count, early, above, missed].iter().all(|count| *count <= MOST_SAMPLES);
    is_possible.then_some((tag?, totals))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn log(values: &[u64]) -> String {
        let mut counts = empty();
        for value in values {
            counts.record(*value).unwrap();
        }
        let totals = Totals {
            count: values.len() as u64,
            max_ns: values.iter().max().copied().unwrap_or(0) as i64,
            ..Totals::NONE
        };
        let mut text = header(1_441_812_279.474, "then");
        let span = IntervalSpan { tag: "cpu0".into(), start_s: 0.5, length_s: 0.1 };
        append(&mut text, &span, &counts, &totals);
        text
    }

    fn count_in(text: &[u8]) -> Result<(u64, usize), HlogError> {
        let (mut samples, mut totals) = (0, 0);
        read(text, |line| match line {
            LogLine::Interval(_, counts) => samples += counts.len(),
            LogLine::Totals(..) => totals += 1,
        })?;
        Ok((samples, totals))
    }

    #[test]
    fn what_was_written_is_read_back() {
        let text = log(&[1, 2_000, 2_000, 3_600_000_000_000]);
        read(text.as_bytes(), |line| match line {
            LogLine::Interval(span, counts) => {
                assert_eq!(span, IntervalSpan { tag: "cpu0".into(), start_s: 0.5, length_s: 0.1 });
                assert_eq!((counts.len(), counts.count_at(2_000)), (4, 2));
            }
            LogLine::Totals(tag, totals) => {
                assert_eq!((tag.as_str(), totals.count), ("cpu0", 4));
            }
        })
        .unwrap();
    }

    #[test]
    fn a_last_line_without_its_end_is_passed_over() {
        let text = log(&[5_000]);
        for cut in 1..text.len() {
            let (samples, _) = count_in(&text.as_bytes()[..cut]).unwrap();
            assert!(samples <= 1);
        }
    }

    #[test]
    fn a_damaged_line_is_named() {
        let text = log(&[5_000]).replace("HISTF", "HISTG");
        let error = count_in(text.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "line 6 is damaged: its histogram is damaged");
    }

    #[test]
    fn counts_that_no_machine_makes_are_damage() {
        let with = |counts: &[u64], totals: &Totals| {
            let mut text = header(0.0, "now");
            for count in counts {
                let mut histogram = empty();
                histogram.record_n(1_000, *count).unwrap();
                let span = IntervalSpan { tag: "cpu0".into(), start_s: 0.0, length_s: 0.1 };
                append(&mut text, &span, &histogram, totals);
            }
            read(text.as_bytes(), |_| ()).map_err(|error| error.to_string())
        };
        let half = MOST_SAMPLES / 2;
        assert_eq!(with(&[half, half], &Totals::NONE), Ok(()));
        let too_many = with(&[half, half, 1], &Totals::NONE).unwrap_err();
        assert!(too_many.contains("2^53"), "{too_many}");
        assert!(with(&[u64::MAX >> 1], &Totals::NONE).unwrap_err().contains(NO_HISTOGRAM));
        let missed = Totals { missed: MOST_SAMPLES + 1, ..Totals::NONE };
        assert!(with(&[1], &missed).unwrap_err().contains("totals expected"));
    }

    proptest! {
        #[test]
        fn damage_is_an_error_or_harmless_and_never_a_panic(
            at in 0usize..600,
            byte in any::<u8>(),
            values in prop::collection::vec(1u64..1_000_000, 1..50),
        ) {
            let mut text = log(&values).into_bytes();
            let at = at % text.len();
            text[at] = byte;
            let _ = count_in(&text);
        }
    }
}
