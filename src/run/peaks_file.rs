//! Reads `peaks.jsonl` and `blame.json` back: what is damaged is named, and the rest is read.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, BufRead, BufReader, Read},
    path::Path,
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{
    caveat_kind::CaveatKind,
    files::{self, LONGEST_DAMAGE},
    kept_peaks,
    peaks::{Blame, Cause, Peak},
    series_name::is_response,
    writer::names,
};
use crate::limits::peaks::{
    BLAME_JSON, LARGEST_BLAME, LARGEST_HELD, LINE_JSON, LONGEST_LINE, MOST_BUCKETS, MOST_LINES,
    MOST_MOVES,
};
use crate::plain::cut;

/// The number of damaged lines that are listed one by one.
const MOST_LISTED: usize = 20;

/// What `peaks.jsonl` holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Peaks {
    /// The worst, worst first.
    pub worst: Vec<Peak>,
    /// Every wake-up of the file, by time: more than were asked for, and the early ones more
    /// completely than the late, because the threshold rises during a run.
    pub all: Vec<Brief>,
    /// What could not be read: the first of it.
    pub damaged: Vec<Damage>,
    /// How many lines could not be read.
    pub damaged_lines: u64,
}

impl Peaks {
    /// What could not be read, as a caveat of the run; nothing where all could.
    #[must_use]
    pub fn caveat(&self) -> Option<CaveatKind> {
        let first = self.damaged.first()?;
        let more = match self.damaged_lines {
            1 => String::new(),
            lines => format!(", and {} more lines", lines - 1),
        };
        Some(CaveatKind::TrackDamaged { what: format!("{first}{more}") })
    }
}

/// A late wake-up in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brief {
    /// The programmed expiry, `CLOCK_MONOTONIC` ns; absent as in [`Peak::at_ns`].
    pub at_ns: Option<i64>,
    /// How late, ns.
    pub latency_ns: i64,
    /// Whose.
    pub series: Arc<str>,
    /// The CPU on which the thread ran when it woke up.
    pub cpu: u32,
    /// The cause of its largest part, the tasks of one name together.
    pub cause: Cause,
    /// The name of that.
    pub name: Arc<str>,
}

/// What is wrong with a file of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Damage {
    /// The file's name in the run directory.
    pub file: String,
    /// The line, counted from 1; absent if it is about the whole file.
    pub line: Option<u64>,
    /// What is wrong.
    pub what: String,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}: line {line} {}", self.file, self.what),
            None => write!(f, "{} {}", self.file, self.what),
        }
    }
}

/// Reads the peaks in `directory`, and keeps `most` whole: the worst, and the worst of each series
/// ([`kept_peaks`]). A last line without its end is what a killed writer leaves; of a run that
/// `ended` in order, it is damage. A missing file gives an empty result.
#[must_use]
pub fn read_peaks(directory: &Path, most: usize, ended: bool) -> Peaks {
    read_peaks_as(directory, most, ended, std::convert::identity)
}

/// The same of peaks that are changed before the worst are chosen.
pub(super) fn read_peaks_as(
    directory: &Path,
    most: usize,
    ended: bool,
    change: fn(Peak) -> Peak,
) -> Peaks {
    let mut reading = Reading { change, ..Reading::new(most, ended) };
    match files::open(&directory.join(names::PEAKS)) {
        Ok(file) => reading.lines(BufReader::new(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => reading.damage(None, format!("cannot be read: {error}")),
    }
    reading.finish()
}

/// Reads the sums in `directory`; `None` without sums.
///
/// # Errors
/// What is wrong with the file.
pub fn read_blame(directory: &Path) -> Result<Option<Blame>, Damage> {
    let damaged = |what: String| Damage { file: names::BLAME.into(), line: None, what };
    let text = match files::read(&directory.join(names::BLAME), LARGEST_BLAME) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(damaged(format!("cannot be read: {error}"))),
    };
    BLAME_JSON.check(&text).map_err(|what| damaged(format!("is damaged: {what}")))?;
    let blame: Blame = serde_json::from_slice(&text)
        .map_err(|error| damaged(format!("is damaged: {}", plain(&error))))?;
    let buckets = || [&blame.buckets, &blame.responses, &blame.without_host].into_iter();
    if buckets().any(|buckets| buckets.len() > MOST_BUCKETS) {
        return Err(damaged(format!("is damaged: it has more than {MOST_BUCKETS} buckets")));
    }
    let stolen = blame.stolen.iter().flat_map(|stolen| &stolen.series);
    if stolen.map(|own| own.moves.len()).fold(0, usize::saturating_add) > MOST_MOVES {
        let what = format!("is damaged: it has more than {MOST_MOVES} moves of stolen time");
        return Err(damaged(what));
    }
    let known = blame.causes.len();
    let unknown = {
        let mut parts = buckets().flatten().flat_map(|bucket| &bucket.parts);
        parts.find(|(cause, ..)| *cause as usize >= known).map(|(cause, ..)| *cause)
    };
    if let Some(cause) = unknown {
        return Err(damaged(format!("is damaged: it names cause {cause}, of {known}")));
    }
    Ok(Some(blame))
}

/// An error of serde without its line, which is always 1 here.
fn plain(error: &serde_json::Error) -> String {
    let text = cut(&error.to_string(), LONGEST_DAMAGE);
    text.replace(" at line 1 column", " at column")
}

/// The worst of some peaks, and of each series.
#[derive(Default)]
struct Held {
    /// By latency, the earlier first, with the bytes that each has in the file.
    peaks: BTreeMap<(i64, std::cmp::Reverse<u64>), (u64, Peak)>,
    bytes: u64,
}

impl Held {
    fn take(&mut self, number: u64, bytes: u64, peak: Peak, most: usize) {
        self.peaks.insert((peak.latency_ns, std::cmp::Reverse(number)), (bytes, peak));
        self.bytes += bytes;
        while self.peaks.len() > most || self.bytes > LARGEST_HELD {
            self.drop_one();
        }
    }

    fn drop_one(&mut self) {
        let series: Vec<&str> =
            self.peaks.values().rev().map(|(_, peak)| peak.series.as_str()).collect();
        let chosen = kept_peaks::choose(&series, series.len().saturating_sub(1));
        let mut worst_first = chosen.into_iter().rev();
        let mut dropped = 0;
        self.peaks.retain(|_, (bytes, _)| {
            let is_chosen = worst_first.next().unwrap_or(false);
            dropped += if is_chosen { 0 } else { *bytes };
            is_chosen
        });
        self.bytes -= dropped;
    }
}

/// A reading in progress.
struct Reading {
    peaks: Peaks,
    most: usize,
    ended: bool,
    change: fn(Peak) -> Peak,
    /// The worst wake-ups so far, and the worst responses, which are longer.
    held: [Held; 2],
    /// Each name once.
    names: BTreeSet<Arc<str>>,
}

impl Reading {
    fn new(most: usize, ended: bool) -> Self {
        Self {
            peaks: Peaks::default(),
            most,
            ended,
            change: std::convert::identity,
            held: Default::default(),
            names: BTreeSet::new(),
        }
    }

    fn lines(&mut self, mut file: impl BufRead) {
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            match (&mut file).take(LONGEST_LINE).read_until(b'\n', &mut line) {
                Ok(0) => break,
                Ok(_) if number > MOST_LINES => {
                    let what = format!("and what follows was not read: over {MOST_LINES} lines");
                    return self.damage(Some(number), what);
                }
                Ok(_) if line.last() == Some(&b'\n') => self.line(number, &line),
                Ok(_) if line.len() as u64 == LONGEST_LINE => {
                    let what = "and what follows was not read: it is longer than 4 MiB".into();
                    return self.damage(Some(number), what);
                }
                Ok(_) if self.ended => return self.damage(Some(number), "has no end".into()),
                Ok(_) => break,
                Err(error) => return self.damage(Some(number), format!("cannot be read: {error}")),
            }
        }
    }

    fn line(&mut self, number: u64, line: &[u8]) {
        if let Err(what) = LINE_JSON.check(line) {
            return self.damage(Some(number), format!("is damaged: {what}"));
        }
        match serde_json::from_slice::<Peak>(line) {
            Ok(peak) => self.take(number, line.len() as u64, (self.change)(peak)),
            Err(error) => self.damage(Some(number), format!("is damaged: {}", plain(&error))),
        }
    }

    fn take(&mut self, number: u64, bytes: u64, peak: Peak) {
        let parts = peak.parts_by_name();
        let main = parts.first();
        let brief = Brief {
            at_ns: peak.at_ns,
            latency_ns: peak.latency_ns,
            series: self.name(&peak.series),
            cpu: peak.cpu,
            cause: main.map_or(Cause::Unexplained, |part| part.cause),
            name: self.name(main.map_or("", |part| &part.name)),
        };
        self.peaks.all.push(brief);
        self.held[usize::from(is_response(&peak.series))].take(number, bytes, peak, self.most);
    }

    fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return Arc::clone(known);
        }
        let name: Arc<str> = name.into();
        self.names.insert(Arc::clone(&name));
        name
    }

    fn damage(&mut self, line: Option<u64>, what: String) {
        self.peaks.damaged_lines += 1;
        if self.peaks.damaged.len() < MOST_LISTED {
            self.peaks.damaged.push(Damage { file: names::PEAKS.into(), line, what });
        }
    }

    fn finish(mut self) -> Peaks {
        let [wake_ups, responses] = self.held.map(|held| held.peaks);
        let both = wake_ups.into_iter().chain(responses).collect::<BTreeMap<_, _>>();
        self.peaks.worst = both.into_values().rev().map(|(_, peak)| peak).collect();
        self.peaks.all.sort_by_key(|brief| (brief.at_ns, brief.cpu));
        self.peaks
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::run::{
        peaks::{Basis, LatencyBucket, Part},
        stolen::{StolenMove, StolenOf, StolenRecord},
    };

    fn peak(at_ns: i64, latency_ns: i64) -> String {
        let part = Part {
            cause: Cause::Softirq,
            name: "NET_RX".into(),
            task: None,
            ns: latency_ns.unsigned_abs(),
            basis: Basis::Measured,
            evidence: None,
            stack: Vec::new(),
        };
        let peak = Peak {
            at_ns: Some(at_ns),
            series: "cpu0".into(),
            cpu: 0,
            latency_ns,
            stages: None,
            ways: Vec::new(),
            blame: vec![part],
            timeline: Vec::new(),
            tid: None,
            left_out: 0,
        };
        serde_json::to_string(&peak).unwrap() + "\n"
    }

    fn read(text: &str, most: usize, ended: bool) -> Peaks {
        let mut reading = Reading::new(most, ended);
        reading.lines(text.as_bytes());
        reading.finish()
    }

    fn latencies(peaks: &Peaks) -> Vec<i64> {
        peaks.worst.iter().map(|peak| peak.latency_ns).collect()
    }

    #[test]
    fn the_worst_are_kept_worst_first_and_all_are_reported_in_short() {
        let text = [peak(3, 50), peak(1, 90), peak(2, 70), peak(4, 90)].concat();
        let peaks = read(&text, 2, true);
        assert_eq!(latencies(&peaks), [90, 90]);
        assert_eq!(peaks.worst[0].at_ns, Some(1), "of two that are equally late, the earlier");
        assert_eq!(
            peaks.all.iter().filter_map(|brief| brief.at_ns).collect::<Vec<_>>(),
            [1, 2, 3, 4]
        );
        assert_eq!((peaks.all[0].cause, &*peaks.all[0].name), (Cause::Softirq, "NET_RX"));
    }

    #[test]
    fn a_series_with_few_late_samples_has_its_worst_whole_beside_one_with_many() {
        let of = |series: &str, at_ns, latency_ns| {
            peak(at_ns, latency_ns).replace("\"cpu0\"", &format!("\"{series}\""))
        };
        let mut text = of("few", 1, 10) + &of("few", 2, 12);
        (0..500).for_each(|at| text += &of("many", 10 + at, 1_000 + at));
        (0..400).for_each(|at| text += &of(&format!("n{at}"), 1_000 + at, 20 + at));
        let peaks = read(&text, 100, true);
        let held = |series: &str| peaks.worst.iter().filter(|peak| peak.series == series).count();
        assert_eq!((peaks.worst.len(), peaks.all.len()), (100, 902));
        // Half are the worst of each series; "few" is not among them.
        assert_eq!((held("many"), held("n399"), held("n351"), held("few")), (51, 1, 1, 0));
        let without: String = text.lines().take(502).map(|line| format!("{line}\n")).collect();
        let peaks = read(&without, 100, true);
        let few =
            peaks.worst.iter().filter(|peak| peak.series == "few").map(|peak| peak.at_ns.unwrap());
        assert_eq!((peaks.worst.len(), few.collect::<Vec<_>>()), (100, vec![2, 1]));
        assert_eq!(peaks.worst[0].latency_ns, 1_499);
    }

    #[test]
    fn a_damaged_line_is_named_and_the_rest_is_read() {
        let text = [peak(1, 50), "{\"at_ns\": 5}\n".into(), peak(2, 60), "\u{7}\n".into()].concat();
        let peaks = read(&text, 9, true);
        assert_eq!(latencies(&peaks), [60, 50]);
        assert_eq!(peaks.damaged_lines, 2);
        let texts: Vec<_> = peaks.damaged.iter().map(ToString::to_string).collect();
        assert_eq!(texts[0], "peaks.jsonl: line 2 is damaged: missing field `series` at column 12");
        assert!(texts[1].starts_with("peaks.jsonl: line 4 is damaged"), "{texts:?}");
    }

    #[test]
    fn an_unfinished_last_line_is_damage_only_of_a_run_that_ended() {
        let text = peak(1, 50) + &peak(2, 60);
        let cut = &text[..text.len() - 1];
        assert_eq!(read(cut, 9, false).damaged, []);
        assert_eq!(latencies(&read(cut, 9, false)), [50]);
        assert_eq!(read(cut, 9, true).damaged[0].to_string(), "peaks.jsonl: line 2 has no end");
    }

    #[test]
    fn what_has_no_end_is_refused_before_it_fills_the_memory() {
        let mut reading = Reading::new(9, false);
        reading.lines(BufReader::new(File::open("/dev/zero").unwrap()));
        let peaks = reading.finish();
        assert!(peaks.damaged[0].to_string().contains("longer than 4 MiB"), "{peaks:?}");
        let mut reading = Reading::new(9, false);
        reading.lines(BufReader::new(io::repeat(b'\n')));
        let peaks = reading.finish();
        assert_eq!((peaks.damaged.len(), peaks.damaged_lines), (MOST_LISTED, MOST_LINES + 1));
    }

    #[test]
    fn sums_that_speak_of_no_cause_are_refused_and_none_are_none() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(read_blame(directory.path()), Ok(None));
        let write =
            |text: &[u8]| std::fs::write(directory.path().join(names::BLAME), text).unwrap();
        let bucket = LatencyBucket { low_ns: 1, wakeups: 1, ns: 1, parts: vec![(3, 1, 1)] };
        let blame = Blame { buckets: vec![bucket], ..Blame::default() };
        write(&serde_json::to_vec(&blame).unwrap());
        let error = read_blame(directory.path()).unwrap_err();
        assert_eq!(error.to_string(), "blame.json is damaged: it names cause 3, of 0");
        let bucket = |low_ns| LatencyBucket { low_ns, wakeups: 1, ns: 1, parts: Vec::new() };
        let buckets = (0..=MOST_BUCKETS as i64).map(bucket).collect();
        write(&serde_json::to_vec(&Blame { buckets, ..Blame::default() }).unwrap());
        let error = read_blame(directory.path()).unwrap_err();
        assert_eq!(error.to_string(), "blame.json is damaged: it has more than 2048 buckets");
        let it = StolenMove { slot: 0, from_ns: 1, to_ns: 0, count: 1 };
        let own = StolenOf { moves: vec![it; MOST_MOVES + 1], ..StolenOf::default() };
        let stolen = Some(StolenRecord { series: vec![own], ..StolenRecord::default() });
        write(&serde_json::to_vec(&Blame { stolen, ..Blame::default() }).unwrap());
        let error = read_blame(directory.path()).unwrap_err();
        assert!(error.what.contains("more than 65536 moves of stolen time"), "{error}");
        write(b"{");
        assert!(read_blame(directory.path()).unwrap_err().what.contains("is damaged: EOF"));
    }
}
