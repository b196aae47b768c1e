//! Pictures of runs for papers and readmes: SVG or PNG, from the data of a page.
//!
//! `sheet` puts the words around, `frame` and `axis` make a panel, each kind of picture draws into
//! it, and `paint` makes the file. A picture never clips, smooths or hides the largest latency.

mod axis;
mod frame;
mod heatmap;
mod histogram;
mod paint;
mod palette;
mod percentile;
mod picture;
mod scatter;
mod sheet;
mod subject;
mod text;

use std::{fmt, str::FromStr};

use thiserror::Error;

use super::{page::Page, sample_name};
use palette::DASHES;
use picture::Picture;
use sheet::{Canvas, Entry, Mark};
use subject::RunLabel;

/// Maximum number of runs in a picture: nobody can distinguish more.
pub const MOST_RUNS: usize = DASHES.len();

/// What a picture shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureKind {
    /// Latencies over time, a point each.
    Scatter,
    /// Latency by percentile, in nines.
    Percentile,
    /// Counts by time and latency.
    Heatmap,
    /// Counts by latency.
    Histogram,
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
                    "\"{text}\" is no size; write width x height in pixels, each from {} to {}, as \
                     in 900x560",
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

/// Why there is no picture.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlotError {
    /// No run has a sample that could be drawn.
    #[error("there is nothing to draw: {0}")]
    Nothing(&'static str),
    /// Too many runs.
    #[error("{0} runs in one picture; more than {MOST_RUNS} cannot be distinguished")]
    ManyRuns(usize),
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
pub fn svg(page: &Page, kind: PictureKind, size: Size) -> Result<String, PlotError> {
    let picture = draw(page, kind, size)?;
    let names: Vec<String> = page.runs.iter().map(|run| RunLabel::of(run).name).collect();
    let labelled = page.runs.iter().zip(&names);
    let lines: Vec<String> =
        labelled.map(|(run, name)| format!("{name}: {} {}", run.line, run.headline)).collect();
    let title = format!("{}: {}", kind.title(), names.join(", "));
    paint::svg(&picture, size, &title, &lines.join("\n"))
}

/// The picture as a PNG file.
///
/// # Errors
/// See [`PlotError`].
pub fn png(page: &Page, kind: PictureKind, size: Size) -> Result<Vec<u8>, PlotError> {
    paint::png(&draw(page, kind, size)?, size)
}

impl PictureKind {
    const fn title(self) -> &'static str {
        match self {
            Self::Scatter => "Latencies over time",
            Self::Percentile => "Latency by percentile",
            Self::Heatmap => "Samples by time and latency",
            Self::Histogram => "Samples by latency",
        }
    }

    /// Whether runs lie over each other, rather than side by side.
    const fn is_overlaid(self) -> bool {
        matches!(self, Self::Percentile | Self::Histogram)
    }
}

fn draw(page: &Page, kind: PictureKind, size: Size) -> Result<Picture, PlotError> {
    let subjects: Vec<RunLabel> = page.runs.iter().map(RunLabel::of).collect();
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
    let mut sheet = Canvas::new(size);
    for (subject, dash) in subjects.iter().zip(DASHES) {
        let dash = (kind.is_overlaid() && subjects.len() > 1).then_some(dash);
        sheet.head(subject, dash, subjects.len() == 1);
    }
    let mut notes = counts(&subjects);
    let own = match kind {
        PictureKind::Scatter => scatter::notes(page, &subjects),
        PictureKind::Percentile => percentile::notes(),
        PictureKind::Heatmap => heatmap::notes(page),
        PictureKind::Histogram => histogram::notes(),
    };
    notes.extend(own);
    sheet.foot(&notes);
    match kind {
        PictureKind::Scatter => scatter::draw(page, &subjects, &mut sheet)?,
        PictureKind::Percentile => percentile::draw(page, &subjects, &mut sheet)?,
        PictureKind::Heatmap => heatmap::draw(page, &subjects, &mut sheet)?,
        PictureKind::Histogram => histogram::draw(page, &subjects, &mut sheet)?,
    }
    Ok(sheet.picture)
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
