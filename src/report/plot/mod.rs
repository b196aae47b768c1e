//! Pictures of runs for papers and readmes: SVG, PNG or PDF, from the data of a page.
//!
//! `sheet` puts the words around, `frame` and `axis` make a panel, each kind of picture draws into
//! it, and `paint` or `pdf` makes the file. A picture never clips, smooths or hides the largest
//! latency of the time that it shows.

mod axis;
mod choice;
mod frame;
mod heatmap;
mod histogram;
mod paint;
mod palette;
mod pdf;
mod percentile;
mod picture;
mod range;
mod raster;
mod scatter;
mod shift;
mod sheet;
mod stretch;
mod subject;
mod text;

use std::{fmt, str::FromStr};

use thiserror::Error;

use super::{page::Page, sample_name, time_range::TimeRange};
use choice::Chosen;
use palette::LineStyles;
use picture::Picture;
pub use range::LatencyRange;
use sheet::{Canvas, Entry, Mark};
use subject::RunLabel;

/// Maximum number of runs in a picture: nobody can distinguish more.
pub const MOST_RUNS: usize = palette::MOST_RUNS;

/// What a picture shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureKind {
    /// Latency over time, one point per sample.
    Scatter,
    /// Latency by percentile, in nines.
    Percentile,
    /// Counts by time and latency.
    Heatmap,
    /// Counts by latency.
    Histogram,
    /// Ratios to the first run by percentile, with intervals.
    Shift,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Each wake-up once.
    WakeUp,
    /// Each period of the schedule: a wake-up late by L at period T counts as L, L-T, ..., L-kT.
    Scheduled,
}

/// What a picture shows, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlotOptions {
    /// What it shows.
    pub kind: PictureKind,
    /// How large it is.
    pub size: Size,
    /// A line above all others.
    pub title: Option<String>,
    /// The series that it shows, by name; all if none is named.
    pub series: Vec<String>,
    /// What it counts; where nothing is chosen, periods where more than one in a thousand was
    /// missed.
    pub view: Option<View>,
    /// The range of the latency axis.
    pub latency: LatencyRange,
    /// The stretch of time that is shown, for pictures over time. A page that was collected for it
    /// has finer points and cells than one of whole runs.
    pub time: TimeRange,
}

impl PlotOptions {
    /// A picture of all series.
    #[must_use]
    pub const fn new(kind: PictureKind, size: Size) -> Self {
        Self {
            kind,
            size,
            title: None,
            series: Vec::new(),
            view: None,
            latency: LatencyRange::ALL,
            time: TimeRange::ALL,
        }
    }
}

/// Width and height in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Pixels from left to right.
    pub width: u32,
    /// Pixels from top to bottom.
    pub height: u32,
}

/// Smaller, and nothing can be read; larger, and a PNG needs gigabytes to be made.
const SIZES: std::ops::RangeInclusive<u32> = 200..=8000;

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once(['x', 'X']);
        let number = |part: &str| part.parse().ok().filter(|pixels| SIZES.contains(pixels));
        parts
            .and_then(|(width, height)| {
                Some(Self { width: number(width)?, height: number(height)? })
            })
            .ok_or_else(|| {
                format!(
                    "\"{text}\" is not a size; use width x height in pixels, each from {} to {}, \
                     as in 900x560",
                    SIZES.start(),
                    SIZES.end()
                )
            })
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// Why a picture is missing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlotError {
    /// No run has a sample that could be drawn.
    #[error("there is nothing to draw: {0}")]
    Nothing(&'static str),
    /// Too many runs.
    #[error("{0} runs in one picture; more than {MOST_RUNS} cannot be distinguished")]
    ManyRuns(usize),
    /// A view that this picture cannot show.
    #[error("--view: {0}")]
    View(&'static str),
    /// A stretch of time that this picture cannot show.
    #[error("--time-range: {0}")]
    Time(String),
    /// No run has a series of this name.
    #[error("--series: no run has a series \"{wanted}\"; there are {known}")]
    Series {
        /// As asked.
        wanted: String,
        /// Names that there are.
        known: String,
    },
    /// An axis that this picture does not have.
    #[error("--latency-range: a shift has no latency axis; choose another --kind")]
    Latency,
    /// Of many series only the sum is kept over time.
    #[error(
        "--series: a run of more than 16 series has no heat map of each; choose another --kind"
    )]
    SeriesHeat,
    /// The words need more room than there is.
    #[error("--size {size} leaves no room for the data beside the words; use a larger one")]
    Small {
        /// As asked.
        size: Size,
    },
    /// The drawing library failed.
    #[error("cannot draw: {0}")]
    Draw(String),
}

/// The picture as an SVG document.
///
/// # Errors
/// See [`PlotError`].
pub fn svg(page: &Page, options: &PlotOptions) -> Result<String, PlotError> {
    let picture = draw(page, options)?;
    let label = |run| RunLabel::of(run, false).name;
    let labelled = page.runs.iter().map(|run| (run, label(run)));
    let lines: Vec<String> =
        labelled.map(|(run, name)| format!("{name}: {} {}", run.line, run.headline)).collect();
    paint::svg(&picture, options.size, &title(page, options), &lines.join("\n"))
}

/// What the file says of itself: as asked, or what it shows of which runs.
fn title(page: &Page, options: &PlotOptions) -> String {
    let names = page.runs.iter().map(|run| RunLabel::of(run, false).name);
    let about = || format!("{}: {}", options.kind.title(), names.collect::<Vec<_>>().join(", "));
    options.title.clone().unwrap_or_else(about)
}

/// The picture as a PDF file of one page.
///
/// # Errors
/// See [`PlotError`].
pub fn pdf(page: &Page, options: &PlotOptions) -> Result<Vec<u8>, PlotError> {
    pdf::pdf(&draw(page, options)?, options.size, &title(page, options))
}

/// The picture as a PNG file.
///
/// # Errors
/// See [`PlotError`].
pub fn png(page: &Page, options: &PlotOptions) -> Result<Vec<u8>, PlotError> {
    paint::png(&draw(page, options)?, options.size)
}

impl PictureKind {
    const fn title(self) -> &'static str {
        match self {
            Self::Scatter => "Latencies over time",
            Self::Percentile => "Latency by percentile",
            Self::Heatmap => "Samples by time and latency",
            Self::Histogram => "Samples by latency",
            Self::Shift => "Ratio by percentile",
        }
    }

    /// Whether runs lie over each other, rather than side by side.
    const fn is_overlaid(self) -> bool {
        matches!(self, Self::Percentile | Self::Histogram | Self::Shift)
    }
}

fn draw(page: &Page, options: &PlotOptions) -> Result<Picture, PlotError> {
    let kind = options.kind;
    let Chosen { page, per_period, outside } = choice::chosen(page, options)?;
    let page = page.as_ref();
    let subjects: Vec<RunLabel> =
        page.runs.iter().map(|run| RunLabel::of(run, per_period)).collect();
    check(&subjects)?;
    let mut sheet = heading(page, &subjects, options);
    let mut notes = counts(&subjects);
    notes.extend(outside);
    if kind == PictureKind::Shift {
        return shift::draw(page, options, &notes, sheet);
    }
    if per_period {
        notes.push("A wake-up late by L at interval T counts as L, L-T, ..., L-kT.".into());
    }
    let own = match kind {
        PictureKind::Scatter => scatter::notes(page, &subjects),
        PictureKind::Percentile => percentile::notes(),
        PictureKind::Heatmap => heatmap::notes(page),
        PictureKind::Histogram | PictureKind::Shift => histogram::notes(),
    };
    notes.extend(own);
    notes.extend(options.latency.note(page));
    sheet.foot(&notes);
    match kind {
        PictureKind::Scatter => scatter::draw(page, &subjects, &mut sheet)?,
        PictureKind::Percentile => percentile::draw(page, &subjects, &mut sheet)?,
        PictureKind::Heatmap => heatmap::draw(page, &subjects, &mut sheet)?,
        PictureKind::Histogram | PictureKind::Shift => {
            histogram::draw(page, &subjects, &mut sheet)?;
        }
    }
    Ok(sheet.picture)
}

/// Refuses what would be an empty picture, or one that nobody can read.
fn check(subjects: &[RunLabel]) -> Result<(), PlotError> {
    if subjects.len() > MOST_RUNS {
        return Err(PlotError::ManyRuns(subjects.len()));
    }
    if subjects.iter().all(|subject| subject.samples == 0) {
        return Err(PlotError::Nothing("no run has a sample"));
    }
    if subjects.iter().all(|subject| subject.largest.is_none()) {
        return Err(PlotError::Nothing(
            "all samples were early, and a log axis has no place for them",
        ));
    }
    Ok(())
}

/// A sheet with the title and the runs' names on it.
fn heading(page: &Page, subjects: &[RunLabel], options: &PlotOptions) -> Canvas {
    let mut sheet = Canvas::new(options.size);
    (sheet.latency, sheet.time) = (options.latency, options.time);
    if let Some(title) = &options.title {
        sheet.title(title);
    }
    let styles = LineStyles::of(page);
    for (run, subject) in subjects.iter().enumerate() {
        let colour = styles.run(run).filter(|_| options.kind.is_overlaid());
        sheet.head(subject, colour, subjects.len() == 1);
    }
    sheet
}

/// How many samples there are, and how many of them have no place.
fn counts(subjects: &[RunLabel]) -> Vec<String> {
    let one = |subject: &RunLabel| {
        let mut words = format!("{}{}.", subject.before(subjects.len() == 1), subject.count());
        for more in [subject::not_drawn(subject), subject::above(subject)] {
            if !more.is_empty() {
                words.push(' ');
                words.push_str(&more);
            }
        }
        words
    };
    subjects.iter().map(one).collect()
}

/// An entry for each series of runs that lie over each other: in its colour, or with its dash where
/// runs have the colours.
fn lines_legend(page: &Page, styles: &LineStyles) -> Vec<Entry> {
    let mut entries = legend(page, &styles.series, Mark::Line(&[]));
    if page.runs.len() > 1 {
        let named = entries.iter_mut().zip(styles.series.named());
        for (entry, (name, _)) in named {
            (entry.colour, entry.mark) = (palette::INK, Mark::Line(styles.dash(name)));
        }
    }
    entries
}

/// An entry for each colour, with the largest latency of its series in each run.
fn legend(page: &Page, colours: &palette::SeriesColours, mark: Mark) -> Vec<Entry> {
    let max = |run: &super::page::PageRun, name: &str| {
        let of = run.record.series.iter().find(|series| series.name == name)?;
        of.max.map(|max| crate::units::Nanos(max).to_string())
    };
    let entry = |(name, colour): &(String, picture::Colour)| {
        let maxima = page.runs.iter().map(|run| max(run, name).unwrap_or_else(|| "-".into()));
        let name = sample_name::series(name);
        let words = format!("{name}  max {}", maxima.collect::<Vec<_>>().join(" / "));
        Entry { mark, colour: *colour, words }
    };
    let mut entries: Vec<Entry> = colours.named().iter().map(entry).collect();
    if colours.others > 0 {
        let words = format!("{} others, none with a larger max", colours.others);
        entries.push(Entry { mark, colour: palette::OTHERS, words });
    }
    entries
}
