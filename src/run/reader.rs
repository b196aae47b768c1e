//! The reader's side of a run directory. Never writes; takes what a crash left.

use std::{
    collections::{BTreeSet, HashMap},
    io::{BufReader, ErrorKind},
    path::{Path, PathBuf},
    sync::Arc,
};

use hdrhistogram::Histogram;
use tardy_hot::{ring::Sample, tally::Totals};

use super::{
    author::{Author, Distrust},
    caveat::{self, Caveat},
    caveat_kind::CaveatKind,
    counts::SeriesCounts,
    document::{Document, Status},
    figures::{FigureRow, summarize_figure},
    files::{self, LONGEST_DAMAGE},
    hlog::{self, HlogError, IntervalSpan, LogLine},
    host_moves::HostMoves,
    peaks::{Blame, Peak},
    peaks_file::{self, Damage, Peaks},
    probes::ProbeRecord,
    profile::{self, Profile},
    record_file::{OpenError, RecordFile, read_record},
    samples::{self, SampleReader},
    summary::{SeriesHead, summarize},
    tracks::from_csv,
    writer::names,
};
use crate::limits::record::MOST_FOUND;
use crate::plain::{cut, plain_path};

/// Peaks that are read of a run that does not say how many it was to keep.
const DEFAULT_PEAKS: usize = 100;

/// Files of samples whose damage is listed one by one.
const MOST_DAMAGED: usize = 5;

/// A run, open for reading.
#[derive(Debug, Clone)]
pub struct Run {
    /// Its directory.
    pub path: PathBuf,
    /// Its record; of a run that did not end in order, what could be recovered.
    pub document: Document,
    /// What is moved in its log, where it is read without the time of its hypervisor.
    pub(super) moves: Option<Arc<HostMoves>>,
    /// Who can have written its record; `None` if it was not read from a file.
    author: Option<Author>,
}

impl Run {
    /// That of this record in `path`, as it is there.
    #[must_use]
    pub const fn of(path: PathBuf, document: Document) -> Self {
        Self { path, document, moves: None, author: None }
    }

    /// Opens the run in `path`.
    ///
    /// # Errors
    /// See [`OpenError`]. A run that is damaged elsewhere opens, with a caveat.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let mut read = read_record::<Document>(path)?;
        if read.record.status == Status::Running && !read.is_alive {
            // The maker may have put its last record in place since that one was opened.
            read = read_record(path)?;
        }
        let RecordFile { record: mut document, is_alive: alive, author } = read;
        // What one reader removed is not in the files.
        document.without_host = None;
        let author = Some(author.of_received(document.provenance.received));
        let mut run = Self { author, ..Self::of(path.into(), document) };
        if run.document.status != Status::Running {
            return Ok(run);
        }
        run.recover();
        if !alive {
            run.document.status = Status::Crashed;
            run.add_caveat(CaveatKind::Crashed.into());
        }
        Ok(run)
    }

    /// Who can have written its record; `None` if it was not read from a file.
    #[must_use]
    pub const fn author(&self) -> Option<Author> {
        self.author
    }

    /// What to do about a record that others can have written, if you trust it.
    #[must_use]
    pub fn remedy(&self, distrust: Distrust) -> String {
        let place = match distrust {
            Distrust::OtherOwner(_) => self.path.clone(),
            Distrust::Writable(_) | Distrust::Received => self.path.join(names::RUN),
        };
        distrust.remedy(&plain_path(&place))
    }

    /// Hands over every interval of every series with the number of its series, oldest first; also
    /// the one that was in progress where the maker did not end in order.
    ///
    /// # Errors
    /// At the first damaged line of `series.hlog`; what came before was handed over.
    pub fn intervals(
        &self,
        mut take: impl FnMut(usize, IntervalSpan, Histogram<u64>),
    ) -> Result<(), HlogError> {
        let numbers = self.numbers();
        let mut pass = self.moves.as_ref().map(|moves| moves.pass());
        self.lines(&numbers, |line| {
            if let LogLine::Interval(span, counts) = line
                && let Some(number) = numbers.get(span.tag.as_str()).copied()
            {
                let counts = match &mut pass {
                    Some(pass) => pass.apply(number, &span, counts),
                    None => counts,
                };
                take(number, span, counts);
            }
        })
    }

    /// Hands over every sample with the number of its series, oldest file first; none of a run
    /// without the time of its hypervisor.
    ///
    /// # Errors
    /// The file that is damaged, and how; the samples of the others were handed over.
    pub fn samples(&self, mut take: impl FnMut(usize, Sample)) -> Result<(), String> {
        if self.moves.is_some() {
            return Ok(());
        }
        let series: Vec<String> =
            self.document.series.iter().map(|series| series.name.clone()).collect();
        let counts = self.document.wakeups().map(|series| series.count);
        let mut reader = SampleReader::new(&series, counts.fold(0, u64::saturating_add));
        let (mut damage, mut damaged) = (Vec::new(), 0);
        for file in samples::files(&self.path.join(names::SAMPLES)) {
            let Err(error) = reader.read(&file, &mut take) else { continue };
            damaged += 1;
            if damaged <= MOST_DAMAGED {
                let what = cut(&error.to_string(), LONGEST_DAMAGE);
                damage.push(format!("{} is damaged: {what}", file.display()));
            }
            if reader.is_full() {
                break;
            }
        }
        if damaged == 0 {
            return Ok(());
        }
        if damaged > MOST_DAMAGED {
            damage.push(format!("{} more are damaged", damaged - MOST_DAMAGED));
        }
        Err(damage.join("; "))
    }

    /// Whether single samples were kept.
    #[must_use]
    pub fn has_samples(&self) -> bool {
        self.moves.is_none() && !samples::files(&self.path.join(names::SAMPLES)).is_empty()
    }

    /// The late wake-ups that were kept whole.
    #[must_use]
    pub fn peaks(&self) -> Peaks {
        let ended = !matches!(self.document.status, Status::Running | Status::Crashed);
        let change =
            if self.moves.is_some() { Peak::without_stolen } else { std::convert::identity };
        peaks_file::read_peaks_as(&self.path, self.most_peaks(), ended, change)
    }

    /// What all late wake-ups were blamed on; nothing where the run was not traced.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn blame(&self) -> Result<Option<Blame>, Damage> {
        let mut blame = peaks_file::read_blame(&self.path)?;
        if let Some(blame) = blame.as_mut().filter(|_| self.moves.is_some())
            && !blame.without_host.is_empty()
        {
            blame.buckets = std::mem::take(&mut blame.without_host);
        }
        Ok(blame)
    }

    /// Who used the CPUs; nothing where the run was not profiled.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn profile(&self) -> Result<Option<Profile>, Damage> {
        profile::read_profile(&self.path)
    }

    /// How many peaks were asked for; all where it was by a threshold.
    fn most_peaks(&self) -> usize {
        let parameters = &self.document.parameters;
        match (parameters.peak_over_ns, parameters.peaks) {
            (Some(_), _) => usize::MAX,
            (None, Some(most)) => usize::try_from(most).unwrap_or(usize::MAX),
            (None, None) => DEFAULT_PEAKS,
        }
    }

    /// The record, with what reading the files beside it gave reason to doubt.
    #[must_use]
    pub fn record_with(&self, caveats: impl IntoIterator<Item = CaveatKind>) -> Document {
        let mut run = self.clone();
        caveats.into_iter().for_each(|caveat| run.add_caveat(caveat.into()));
        run.document
    }

    /// Adds a caveat to the record, and updates the verdict.
    pub fn add_caveat(&mut self, caveat: Caveat) {
        self.document.caveats.push(caveat);
        caveat::sort(&mut self.document.caveats);
        self.document.validity = caveat::verdict(&self.document.caveats);
    }

    /// The number of each series by its name; the first of two of one name.
    pub(super) fn numbers(&self) -> HashMap<&str, usize> {
        // From the end, so that the first stays.
        let series = self.document.series.iter().enumerate().rev();
        series.map(|(number, series)| (series.name.as_str(), number)).collect()
    }

    /// The lines of `series.hlog`, then those of `live.hlog` that are younger.
    pub(super) fn lines(
        &self,
        numbers: &HashMap<&str, usize>,
        mut take: impl FnMut(LogLine),
    ) -> Result<(), HlogError> {
        let number_of = |tag: &str| numbers.get(tag).copied();
        let mut end_s = vec![0.0_f64; self.document.series.len()];
        let file = files::open(&self.path.join(names::SERIES))?;
        hlog::read(BufReader::new(file), |line| {
            if let LogLine::Interval(span, _) = &line
                && let Some(end) = number_of(&span.tag).and_then(|at| end_s.get_mut(at))
            {
                *end = span.start_s + span.length_s;
            }
            take(line);
        })?;
        let live = match files::open(&self.path.join(names::LIVE)) {
            Ok(live) => live,
            Err(error) if error.kind() == ErrorKind::InvalidData => return Err(error.into()),
            Err(_) => return Ok(()),
        };
        let mut younger = vec![false; end_s.len()];
        hlog::read(BufReader::new(live), |line| {
            let at = match &line {
                LogLine::Interval(span, _) => {
                    let at = number_of(&span.tag);
                    if let Some(at) = at
                        && let (Some(younger), Some(end)) = (younger.get_mut(at), end_s.get(at))
                    {
                        // Times in the log are rounded to 1 ms.
                        *younger = span.start_s > end - 0.002;
                    }
                    at
                }
                LogLine::Totals(tag, _) => number_of(tag),
            };
            if at.and_then(|at| younger.get(at)).copied().unwrap_or(false) {
                take(line);
            }
        })
    }

    /// Fills in the values of figures, as far as they were written; the end of the last, s.
    fn recover_figures(&mut self) -> f64 {
        if self.document.figures.is_empty() {
            return 0.0;
        }
        let rows = match from_csv::<FigureRow>(&self.path.join(names::FIGURES)) {
            Ok(rows) => rows,
            Err(error) => {
                if error.kind() != ErrorKind::NotFound {
                    let what = format!("{} is damaged: {error}", names::FIGURES);
                    self.add_caveat(CaveatKind::TrackDamaged { what }.into());
                }
                return 0.0;
            }
        };
        let end_s = rows.iter().map(|row| row.t_s).fold(0.0, f64::max);
        let mut values: HashMap<String, Vec<f64>> = HashMap::new();
        for FigureRow { name, value, .. } in rows {
            values.entry(name).or_default().push(value);
        }
        for figure in &mut self.document.figures {
            let own = values.get(&figure.name).map(Vec::as_slice).unwrap_or_default();
            *figure = summarize_figure(&figure.head(), own);
        }
        end_s
    }

    /// Adds the series that were found while it measured: they are in the log alone.
    fn recover_found(&mut self) {
        let mut found = BTreeSet::new();
        // What is damaged shows again when the log is read for its counts.
        let _ = self.lines(&HashMap::new(), |line| {
            if let LogLine::Interval(span, _) = line
                && found.len() < MOST_FOUND
            {
                found.insert(span.tag);
            }
        });
        let known = |name: &String| self.document.series.iter().any(|own| own.name == *name);
        let fresh: Vec<String> = found.into_iter().filter(|name| !known(name)).collect();
        let empty = |name: String| {
            let head = SeriesHead { name, cpu: None, period_ns: None };
            summarize(&head, &hlog::empty(), &Totals::NONE)
        };
        self.document.series.extend(fresh.into_iter().map(empty));
    }

    /// Fills in from the log what `run.json` does not say of a run that has not ended.
    fn recover(&mut self) {
        if matches!(self.document.probe, ProbeRecord::Attach(_)) {
            self.recover_found();
        }
        let series = self.document.series.len();
        let numbers = self.numbers();
        let mut counts = SeriesCounts::new(series);
        let mut totals = vec![Totals::NONE; series];
        let mut end_s = 0.0_f64;
        let damage = self.lines(&numbers, |line| match line {
            LogLine::Interval(span, interval) => {
                end_s = end_s.max(span.start_s + span.length_s);
                if let Some(number) = numbers.get(span.tag.as_str()) {
                    counts.add(*number, &interval);
                }
            }
            LogLine::Totals(tag, now) => {
                let own = numbers.get(tag.as_str());
                if let Some(totals) = own.and_then(|number| totals.get_mut(*number)) {
                    *totals = now;
                }
            }
        });
        let damage = damage.err().map(|error| error.to_string()).or_else(|| counts.refusal());
        let series = self.document.series.iter_mut().zip(&mut totals);
        for (number, (series, totals)) in series.enumerate() {
            let counts = counts.of(number);
            // Totals may run one sample ahead of the counts they stand beside.
            let outside = totals.early.saturating_add(totals.above);
            totals.count = counts.len().saturating_add(outside);
            *series = summarize(&series.head(), &counts, totals);
        }
        end_s = end_s.max(self.recover_figures());
        self.document.duration_ns = (end_s * 1e9) as u64;
        if let Some(what) = damage {
            self.add_caveat(CaveatKind::SeriesDamaged { what }.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{FigureHead, FigureUnit, RunWriter, tracks::to_csv};

    #[test]
    fn of_a_run_that_was_killed_the_figures_have_the_repeats_that_were_written() {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1/timer");
        let mut document = Run::open(&fixture).unwrap().document;
        let head = FigureHead { name: "fork".into(), unit: FigureUnit::Microseconds };
        (document.status, document.series) = (Status::Running, Vec::new());
        document.figures = vec![summarize_figure(&head, &[])];
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("run");
        let mut maker = RunWriter::create(&path, &document, false).unwrap();
        maker.begin(&document).unwrap();
        let row = |t_s, name: &str, value| FigureRow { t_s, name: name.into(), value };
        let rows = [row(0.5, "fork", 80.0), row(0.75, "other", 1.0), row(1.5, "fork", 84.0)];
        maker.append(names::FIGURES, &to_csv(&rows, true)).unwrap();
        maker.append(names::FIGURES, b"2.5,fork,8").unwrap();
        drop(maker);
        let run = Run::open(&path).unwrap();
        assert_eq!(run.document.status, Status::Crashed);
        assert_eq!(run.document.figures[0], summarize_figure(&head, &[80.0, 84.0]));
        assert_eq!(run.document.duration_ns, 1_500_000_000);
        assert!(run.document.has_values());
        let codes = |run: &Run| -> Vec<String> {
            run.document.caveats.iter().map(|caveat| caveat.code.clone()).collect()
        };
        assert!(!codes(&run).contains(&"track_damaged".to_owned()));
        std::fs::write(path.join(names::FIGURES), "t_s,name,value\n0.5,fork,x\n").unwrap();
        let run = Run::open(&path).unwrap();
        assert!(codes(&run).contains(&"track_damaged".to_owned()) && !run.document.has_values());
    }
}
