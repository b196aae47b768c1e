//! `.hlog`: an HdrHistogram interval log, of tardy, jHiccup, cassandra-stress and others.
//!
//! ```text
//! #[StartTime: 1441812279.474 (seconds since epoch), Wed Sep 09 08:24:39 PDT 2015]
//! "StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"
//! 0.127,1.007,2.769,HISTFAAAA...
//! Tag=A,0.127,1.007,2.769,HISTFAAAA...
//! ```
//!
//! Times are s, since `BaseTime`, or `StartTime`, or the epoch where they are that large. The
//! legend says whether the second column is a length or an end. The maximum is the largest value of
//! the histogram, divided by a power of ten. A tag is a series, whose intervals ascend. Format:
//! HistogramLogWriter and HistogramLogReader of HdrHistogram, versions 1.0 to 1.3.

mod max_ratio;

use jiff::Timestamp;

use super::{
    ImportOptions, hdr_counts,
    imported_data::{ImportedData, LatencyUnit},
    source::{ImportError, Source},
};
use crate::{
    plain::cut,
    run::{ImportCaveat, hlog::SAMPLES_OF, probes::ProbeInfo},
};

use max_ratio::MaxRatio;

/// Times that are larger are since the epoch, s: ten years.
const SINCE_EPOCH_S: f64 = 3.2e8;

/// The series of lines without a tag.
const UNTAGGED: &str = "all";

/// For text that is not base64 or zlib, or is shorter than it says.
const DAMAGED: &str = "its histogram cannot be unpacked (base64, zlib and counts were expected)";

/// Of a last line without its end.
const CUT: &str = ": the last line has no end; without it the rest can be imported";

/// Whether it begins as such a file does.
pub(super) fn matches_format(head: &str) -> bool {
    let mut lines = head.lines().take(100);
    lines.any(|line| {
        line.starts_with("#[Histogram log format version")
            || line.starts_with("\"StartTimestamp\",")
            || line.rsplit(',').next().is_some_and(|last| last.starts_with("HIST"))
    })
}

/// Where nothing is recorded for longer than this after its start, s, and for more than ten
/// intervals, its stamps are of another clock (monotonic), and it begins with its first interval.
const LONGEST_WAIT_S: f64 = 60.0;

/// What the second column of an interval is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum SecondColumn {
    #[default]
    Length,
    End,
}

impl SecondColumn {
    /// As a legend calls it.
    fn of_legend(line: &str) -> Result<Self, ImportError> {
        let mut names = line.split(',').map(|name| name.trim().trim_matches('"'));
        // Some legends name the tag first, as some lines have it.
        let is_start = |name: &str| name.to_ascii_lowercase().contains("start");
        let Some(name) = names.by_ref().find(|name| is_start(name)).and_then(|_| names.next())
        else {
            return Ok(Self::Length);
        };
        let plain = name.to_ascii_lowercase();
        if plain.contains("length") || plain.contains("duration") {
            return Ok(Self::Length);
        }
        if plain.starts_with("end") || plain.ends_with("end") || plain.contains("endtime") {
            return Ok(Self::End);
        }
        Err(ImportError::new(format!(
            "its legend calls the second column \"{}\"; Interval_Length or EndTimestamp was \
             expected",
            cut(name, 40)
        )))
    }

    /// The length of an interval, s.
    fn length_s(self, start_s: f64, second_s: f64) -> Result<f64, ImportError> {
        match self {
            Self::Length => Ok(second_s),
            Self::End if second_s < start_s => Err(ImportError::new(format!(
                "this interval ends at {second_s} s, before it begins, at {start_s} s"
            ))),
            // Without the digits beyond a microsecond, which the subtraction makes.
            Self::End => Ok(((second_s - start_s) * 1e6).round() / 1e6),
        }
    }
}

#[derive(Debug, Default)]
struct Times {
    second: SecondColumn,
    /// The unit that a comment states.
    unit: Option<LatencyUnit>,
    /// The line that is read.
    line: u64,
    ratio: MaxRatio,
    start_s: Option<f64>,
    base_s: Option<f64>,
    end_s: f64,
    /// The stamp at which the log begins, where stamps are neither since its start nor the epoch.
    origin_s: Option<f64>,
    /// Of the first interval, where nothing else says when it began.
    first_s: Option<f64>,
    /// When the last interval of each series began, as the file writes it.
    begun_s: Vec<Option<f64>>,
}

/// Reads it.
pub(super) fn read(
    source: &mut Source<'_>,
    options: &ImportOptions,
) -> Result<ImportedData, ImportError> {
    let mut sheet = ImportedData::new("HdrHistogram log", None);
    let mut times = Times::default();
    while let Some((number, line)) = source.text()? {
        if let Some(comment) = line.strip_prefix('#') {
            times.comment(comment, &mut sheet);
        } else if line.starts_with('"') {
            let second = SecondColumn::of_legend(&line);
            times.second = second.map_err(|error| ImportError { line: Some(number), ..error })?;
        } else if !line.trim().is_empty() {
            times.line = number;
            let unit = options.unit_beside(times.unit);
            let unit = unit.map_err(|what| ImportError::at(number, what))?;
            let unit = unit.unwrap_or(LatencyUnit::Nanoseconds);
            let read = interval(&line, &mut sheet, &mut times, unit);
            read.map_err(|error| match source.is_whole() {
                true => ImportError { line: Some(number), ..error },
                // What a killed writer leaves.
                false => ImportError::at(number, format!("{}{CUT}", error.what)),
            })?;
        }
    }
    times.put(&mut sheet);
    times.ratio.check()?;
    let is_known = times.unit.is_some()
        || (sheet.program != "HdrHistogram log"
            && times.ratio.may_be_nanoseconds().unwrap_or(true));
    if options.unit.is_none() && !is_known {
        sheet.caveats.push(ImportCaveat::UnitAssumed { unit: LatencyUnit::Nanoseconds.name() });
    }
    Ok(sheet)
}

impl Times {
    fn comment(&mut self, comment: &str, sheet: &mut ImportedData) {
        let seconds = |name: &str| -> Option<f64> {
            // Go's library writes `Basetime`.
            let at = comment.to_ascii_lowercase().find(name)?;
            let rest = comment.get(at + name.len()..)?;
            rest.split_whitespace().next()?.parse().ok().filter(|s: &f64| s.is_finite())
        };
        self.start_s = seconds("[starttime:").or(self.start_s);
        self.base_s = seconds("[basetime:").or(self.base_s);
        self.unit = stated_unit(comment).or(self.unit);
        if let Some((_, samples)) = comment.split_once(SAMPLES_OF) {
            let mut words = samples.trim_end().trim_end_matches(']').split_whitespace();
            sheet.same_as = words.next().and_then(ProbeInfo::find).map(|probe| probe.name);
            let interval = words.find_map(|word| word.strip_prefix("interval_ns="));
            if let Some(ns) = interval.and_then(|ns| ns.parse::<i64>().ok()) {
                sheet.parameter("interval_ns", ns);
            }
        }
        if let Some((_, made)) = comment.split_once("[Logged with ") {
            let made = made.trim_end().trim_end_matches(']');
            let (program, version) = made.split_once(' ').unwrap_or((made, ""));
            sheet.program = cut(program, 40);
            let version = version.strip_prefix("version ").unwrap_or(version);
            sheet.version = cut(version.split(',').next().unwrap_or(version), 40);
        }
    }

    /// The begin of an interval of this length as seconds since the start of the log.
    fn since_start(&mut self, stamp_s: f64, length_s: f64) -> f64 {
        let absolute = match self.base_s {
            Some(base_s) => base_s + stamp_s,
            None if stamp_s < SINCE_EPOCH_S => {
                let is_late = stamp_s > LONGEST_WAIT_S.max(10.0 * length_s);
                let origin_s = self.origin_s.get_or_insert(if is_late { stamp_s } else { 0.0 });
                return (stamp_s - *origin_s).max(0.0);
            }
            None => stamp_s,
        };
        let first_s = *self.first_s.get_or_insert(absolute);
        (absolute - self.began_s().unwrap_or(first_s)).max(0.0)
    }

    /// When the log began, s since the epoch: not after its first interval.
    fn began_s(&self) -> Option<f64> {
        match (self.start_s.or(self.base_s), self.first_s) {
            (Some(start_s), Some(first_s)) => Some(start_s.min(first_s)),
            (start_s, first_s) => start_s.or(first_s),
        }
    }

    /// Refuses an interval of a series that begins no later than the one before it.
    fn ascends(&mut self, tag: &str, series: usize, stamp_s: f64) -> Result<(), ImportError> {
        if self.begun_s.len() <= series {
            self.begun_s.resize(series.saturating_add(1), None);
        }
        let Some(begun) = self.begun_s.get_mut(series) else { return Ok(()) };
        let of = if tag == UNTAGGED { String::new() } else { format!(" of the tag {tag}") };
        match *begun {
            Some(before_s) if before_s == stamp_s => Err(ImportError::new(format!(
                "a second interval{of} that begins at {stamp_s} s: it would count twice; take one \
                 of them out"
            ))),
            Some(before_s) if before_s > stamp_s => Err(ImportError::new(format!(
                "this interval{of} begins at {stamp_s} s, before the one before it, at {before_s} \
                 s: two logs in one file, or one twice; import one file for each"
            ))),
            _ => {
                *begun = Some(stamp_s);
                Ok(())
            }
        }
    }

    fn put(&self, sheet: &mut ImportedData) {
        let ms = self.began_s().map(|start_s| (start_s * 1e3).round() as i64);
        sheet.started_at = ms.and_then(|ms| Timestamp::from_millisecond(ms).ok());
        sheet.duration_ns = (self.end_s > 0.0).then_some((self.end_s * 1e6).round() as u64 * 1_000);
    }
}

/// `Hiccup measures are in micro seconds`, as node-hiccup writes it.
fn stated_unit(comment: &str) -> Option<LatencyUnit> {
    let plain: String = comment.to_ascii_lowercase().split_whitespace().collect();
    match plain.split_once("measuresarein")?.1 {
        "nanoseconds" => Some(LatencyUnit::Nanoseconds),
        "microseconds" => Some(LatencyUnit::Microseconds),
        "milliseconds" => Some(LatencyUnit::Milliseconds),
        "seconds" => Some(LatencyUnit::Seconds),
        _ => None,
    }
}

fn interval(
    line: &str,
    sheet: &mut ImportedData,
    times: &mut Times,
    unit: LatencyUnit,
) -> Result<(), ImportError> {
    let bad = |what: &str| ImportError::new(what);
    let (tag, rest) = match line.strip_prefix("Tag=") {
        Some(tagged) => tagged.split_once(',').ok_or_else(|| bad("its tag has no end"))?,
        None => (UNTAGGED, line),
    };
    let mut fields = rest.splitn(4, ',');
    let mut seconds = || {
        let text = fields.next().unwrap_or_default().trim();
        // Some locales write a comma, which then is its own field.
        text.parse::<f64>().ok().filter(|s| s.is_finite() && *s >= 0.0)
    };
    let wanted = "an interval is start, length, maximum and histogram, with a comma between";
    let (Some(stamp_s), Some(second_s)) = (seconds(), seconds()) else { return Err(bad(wanted)) };
    let length_s = times.second.length_s(stamp_s, second_s)?;
    let max = fields.next().unwrap_or_default();
    let packed = fields.next().ok_or_else(|| bad(wanted))?;
    let counts = hdr_counts::unpack(packed).ok_or_else(|| bad(DAMAGED))?;
    let unit_ns = scaled(unit, counts.ratio)?;
    if counts.ratio == 1.0 {
        times.ratio.take(times.line, max, &counts.buckets);
    }
    let start_s = times.since_start(stamp_s, length_s);
    times.end_s = times.end_s.max(start_s + length_s);
    let tag = cut(tag, 100);
    let number = sheet.series(&tag, None)?;
    times.ascends(&tag, number, stamp_s)?;
    sheet.interval(number, (start_s, length_s), &counts.buckets, unit_ns)
}

/// What a value of 1 is, ns.
fn scaled(unit: LatencyUnit, ratio: f64) -> Result<i64, ImportError> {
    let exact = unit.ns() as f64 * ratio;
    let ns = exact.round();
    if (1.0..=1e15).contains(&ns) && (exact - ns).abs() <= ns * 1e-9 {
        return Ok(ns as i64);
    }
    Err(ImportError::new(format!(
        "its histogram has integerToDoubleValueConversionRatio {ratio}: in {} its values are not \
         whole nanoseconds; give the unit of its values with --unit",
        unit.name()
    )))
}

#[cfg(test)]
mod tests {
    use crate::exchange::import::{
        ImportOptions, LatencyUnit,
        tests::{caveats, read_as, series, text},
    };

    const LOG: &str = "#[Logged with jHiccup version 2.0.7-SNAPSHOT]\n\
        #[Histogram log format version 1.2]\n\
        #[StartTime: 1441812279.474 (seconds since epoch), Wed Sep 09 08:24:39 PDT 2015]\n\
        \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n\
        0.127,1.007,2.769,HISTFAAAAEV42pNpmSzMwMCgyAABTBDKT4GBgdnNYMcCBvsPEBEJISEuATEZMQ4uASkhIR4\
        nrxg9v2lMaxhvMekILGZkKmcCAEf2CsI=\n\
        Tag=A,0.127,1.007,2.769,HISTFAAAAEV42pNpmSzMwMCgyAABTBDKT4GBgdnNYMcCBvsPEBEJISEuATEZMQ4uA\
        SkhIR4nrxg9v2lMaxhvMekILGZkKmcCAEf2CsI=\n\
        1.134,0.999,0.442,HISTFAAAAEJ42pNpmSzMwMAgxwABTBDKT4GBgdnNYMcCBvsPEBEWLj45FTExAT4pBSEBKa6\
        UkAgBi1uM7xjfMMlwMDABAC0CCjM=\n";

    #[test]
    fn tags_are_series_and_intervals_keep_their_times() {
        let sheet = text(LOG).unwrap();
        let names: Vec<&str> = series(&sheet).into_iter().map(|series| series.0).collect();
        assert_eq!(names, ["all", "A"]);
        assert_eq!((sheet.program.as_str(), sheet.version.as_str()), ("jHiccup", "2.0.7-SNAPSHOT"));
        assert_eq!(sheet.started_at.unwrap().as_millisecond(), 1_441_812_279_474);
        assert_eq!(sheet.duration_ns, Some(2_133_000_000));
        let max = series(&sheet)[0].3;
        assert!((2_769_000 - max).abs() < 2_769 * 2, "{max}");
        assert!(!caveats(&sheet).contains("unit_assumed"), "its program is known to write ns");
    }

    /// The two intervals of the lines without a tag, with another legend and other times.
    fn with_legend(second: &str, times: [&str; 2]) -> String {
        let log = LOG.replace("Interval_Length", second).replace("1.134,0.999", times[1]);
        let lines = log.lines().filter(|line| !line.starts_with("Tag="));
        let log: String = lines.map(|line| format!("{line}\n")).collect();
        log.replace("0.127,1.007", times[0])
    }

    #[test]
    fn the_legend_says_whether_the_second_column_is_a_length_or_an_end() {
        let lengths = |text: &str| {
            let mut sheet = read_as(text, &ImportOptions::default()).unwrap();
            let mut lengths = Vec::new();
            let read = sheet.intervals.read(|own| {
                lengths.push((own.span.start_s, own.span.length_s));
                Ok(())
            });
            read.unwrap();
            (sheet.duration_ns.take().unwrap(), lengths)
        };
        let expected = (2_133_000_000, vec![(0.127, 1.007), (1.134, 0.999)]);
        let times = ["0.127,1.007", "1.134,0.999"];
        assert_eq!(lengths(&with_legend("Interval_Length", times)), expected);
        assert_eq!(lengths(&with_legend("Interval_Duration", times)), expected);
        let tag = "\"Tag\",\"StartTimestamp\"";
        let tagged = with_legend("Interval_Length", times).replace("\"StartTimestamp\"", tag);
        assert_eq!(lengths(&tagged), expected);
        let ends = ["0.127,1.134", "1.134,2.133"];
        for second in ["EndTimestamp", "End_Timestamp", "end", "Interval_End"] {
            assert_eq!(lengths(&with_legend(second, ends)), expected, "{second}");
        }
        // Stamps of a monotonic clock: nothing was recorded in the 2.5 hours before them.
        let late = with_legend("EndTimestamp", ["9226.157,9236.662", "9236.662,9246.662"]);
        assert_eq!(lengths(&late), (20_505_000_000, vec![(0.0, 10.505), (10.505, 10.0)]));
        let wrong = text(&with_legend("EndTimestamp", ["0.127,0.1", ends[1]])).unwrap_err();
        let said = "line 5: this interval ends at 0.1 s, before it begins, at 0.127 s";
        assert_eq!(wrong.to_string(), said);
        let odd = text(&with_legend("Interval_Middle", times)).unwrap_err().to_string();
        assert!(odd.starts_with("line 4: its legend calls the second column"), "{odd}");
    }

    #[test]
    fn a_log_that_tardy_exported_says_what_it_is_of_and_no_other_probe_is_believed() {
        let of = |probe: &str| {
            let log = LOG.replace("jHiccup version 2.0.7-SNAPSHOT", "tardy 0.2.0");
            let sheet = text(&format!("#[Samples of tardy: {probe}]\n{log}")).unwrap();
            assert_eq!((sheet.program.as_str(), sheet.version.as_str()), ("tardy", "0.2.0"));
            (sheet.same_as, sheet.parameters.get("interval_ns").and_then(serde_json::Value::as_i64))
        };
        assert_eq!(of("timer interval_ns=250000"), (Some("timer"), Some(250_000)));
        assert_eq!(of("pingpong"), (Some("pingpong"), None));
        assert_eq!(of("nonsense interval_ns=x"), (None, None));
        assert_eq!(of(""), (None, None));
    }

    #[test]
    fn a_maximum_of_another_unit_leaves_the_unit_open_and_an_odd_one_is_refused() {
        let anonymous = LOG.replace("#[Logged with jHiccup version 2.0.7-SNAPSHOT]\n", "");
        assert!(caveats(&text(&anonymous).unwrap()).contains("unit_assumed"));
        let raw = LOG.replace(",2.769,", ",2768895.0,").replace(",0.442,", ",442367,");
        let said = caveats(&text(&raw).unwrap());
        assert!(said.contains("unit_assumed"), "the same number: {said}");
        let stated = format!("#Hiccup measures are in micro seconds\n{anonymous}");
        let sheet = text(&stated).unwrap();
        assert!(!caveats(&sheet).contains("unit_assumed"));
        assert_eq!(series(&sheet)[0].3, 2_768_895_000);
        let wrong = LOG.replace(",0.442,", ",0.777,");
        let error = text(&wrong).unwrap_err().to_string();
        assert!(error.starts_with("line 7: its maximum 0.777 is not the largest value"), "{error}");
        let same = LOG.replace(",2.769,", ",999.000,").replace(",0.442,", ",999.000,");
        assert_eq!(series(&text(&same).unwrap()), series(&text(LOG).unwrap()));
    }

    #[test]
    fn histograms_without_digits_and_samples_are_read_and_other_ratios_are_exact_or_refused() {
        // nosqlbench logs such ones of metrics that had nothing.
        let empty = "2.5,0.6,0.000,HISTFAAAABl42pNpmSzMwMDAyIAKYHwm+w9QFgA8ewJ6\n";
        let sheet = text(&format!("{LOG}{empty}")).unwrap();
        assert_eq!(series(&sheet), series(&text(LOG).unwrap()));
        assert_eq!(sheet.duration_ns, Some(3_100_000_000));
        let alone = text(&format!("#[Histogram log format version 1.3]\n{empty}")).unwrap_err();
        assert_eq!(alone.to_string(), "it has no sample");
        // Ten values of 100 and one of 500, with a ratio of 0.001.
        let ratio = "#[Histogram log format version 1.3]\n\
            0.0,1.0,1.5,HISTFAAAACt4nJNpmSzMwMDAxgABzFCaEURcm7yEwT4gyffSx5V/jjOKzGVjAgCQcgmF\n";
        let as_unit = |unit| read_as(ratio, &ImportOptions { unit, ..ImportOptions::default() });
        let error = as_unit(None).unwrap_err().to_string();
        let said = "line 2: its histogram has integerToDoubleValueConversionRatio 0.001: in nanos";
        assert!(error.starts_with(said), "{error}");
        let sheet = as_unit(Some(LatencyUnit::Microseconds)).unwrap();
        assert_eq!(series(&sheet), [("all", 11, 100, 500)]);
    }

    #[test]
    fn a_line_that_is_damaged_or_was_cut_is_named() {
        let damaged = LOG.replace("BDKT4GBgdnNYMcCBvsPEBEWLj", "BDKT4GBgdn");
        let error = text(&damaged).unwrap_err().to_string();
        assert_eq!(
            error,
            "line 7: its histogram cannot be unpacked (base64, zlib and counts were expected)"
        );
        // A whole number of groups of base64, within the file and at its end.
        let within = LOG.replace("7xjfMMlwMDABAC0CCjM=", "");
        assert_eq!(text(&within).err().and_then(|error| error.line), Some(7));
        let last = text(&LOG[..LOG.len() - 21]).unwrap_err().to_string();
        assert!(
            last.starts_with("line 7: ") && last.contains("the last line has no end"),
            "{last}"
        );
        let whole = text(&LOG[..LOG.len() - 1]).unwrap();
        assert_eq!(series(&whole), series(&text(LOG).unwrap()), "its end alone is missing");
        let comma = LOG.replace("1.134,0.999", "1,134,0,999");
        assert!(text(&comma).unwrap_err().to_string().starts_with("line 7: "));
    }

    #[test]
    fn an_interval_that_is_there_twice_is_refused_and_does_not_count_twice() {
        let lines: Vec<&str> = LOG.lines().collect();
        let again = |at: usize| format!("{LOG}{}\n", lines[at]);
        let error = text(&again(6)).unwrap_err().to_string();
        assert!(error.starts_with("line 8: a second interval that begins at 1.134 s"), "{error}");
        let error = text(&again(5)).unwrap_err().to_string();
        assert!(error.starts_with("line 8: a second interval of the tag A that"), "{error}");
        let error = text(&again(4)).unwrap_err().to_string();
        assert!(error.starts_with("line 8: this interval begins at 0.127 s, before"), "{error}");
    }
}
