//! `tardy report` and `tardy plot`: pages and pictures of one run or several.

mod matrix;
mod run_pages;

pub(in crate::cli) use matrix::Campaign;

use std::{
    panic,
    path::{Path, PathBuf},
    thread,
};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};

use super::{
    Exit,
    chosen::{Chosen, ChosenNames, FilesFromFlags},
    flags::WithoutFlags,
    output,
};
use crate::{
    analysis::ab::figure::JUDGED_BY_DEFAULT,
    draft,
    limits::selection::MOST_ON_A_PAGE,
    plain::{plain, plain_path},
    report::{
        collect,
        compare::{CompareError, CompareOptions, compare_runs, of_report},
        comparison_page::PageComparison,
        html,
        page::{Page, PageRun},
        plot::{self, LatencyRange, PictureKind, PlotOptions, Size, View},
        time_range::TimeRange,
    },
    run::Run,
    store::{Candidates, PlaceKind, Store},
    sys::memory,
};

/// Make a self-contained HTML page of one run, or of several side by side.
///
/// With several runs the page begins with their comparison: each beside the first, without a
/// verdict; or B against A with a verdict, if you give --vs and three or more runs per side.
///
/// For a plan the page has the matrix of its cells; for several plans, all matrices side by side,
/// each judged row by row against the first. For `tardy ab` it has the answer, the interim analyses
/// and the blocks. Each run has its own page, in a directory beside the first page: for x.html in
/// x.pages. These pages share one viewer, a script in that directory.
#[derive(Debug, Args)]
pub(super) struct ReportFlags {
    /// Paths, names, starts of ids, `last` or `last~1`; or plans, or one `tardy ab`
    ///
    /// A directory stands for the runs, or the plans, that lie below it. What cannot be read is
    /// left out, and counted on standard error.
    #[arg(value_name = "RUN", required_unless_present = "files_from")]
    runs: Vec<String>,
    #[command(flatten)]
    files: FilesFromFlags,
    /// Runs of B; the runs before --vs are those of A
    #[arg(long, value_name = "RUN", num_args = 1..)]
    vs: Vec<String>,
    /// File to write; an existing one is replaced
    ///
    /// Its name ends in .html.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// For a plan or `tardy ab`: largest number of pages of single runs [default: 100]
    ///
    /// Each has about 100 kB. All of them share one viewer of 0.8 MB, in the same directory. Pages
    /// are made in the order of measurement. 0 makes none.
    #[arg(long, value_name = "N")]
    pages: Option<u32>,
    #[command(flatten)]
    without: WithoutFlags,
}

/// Draw one run, or several for comparison, as SVG, PNG or PDF.
///
/// For papers, readmes and mails. Percentiles and histograms of several runs are overlaid: one
/// color per run, one dash pattern per series. Scatters and heat maps are drawn side by side on the
/// same scales.
#[derive(Debug, Args)]
pub(super) struct PlotFlags {
    /// Paths, names, beginnings of ids, `last` or `last~1`
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
    /// File to write; an existing one is replaced
    ///
    /// Its extension selects the format: .svg, .png or .pdf.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// What the picture shows
    #[arg(long, value_enum, default_value = "percentile", value_name = "KIND")]
    kind: PlotKind,
    /// Width and height in pixels; text scales with them
    #[arg(long, value_name = "SIZE", default_value = "900x560")]
    size: Size,
    /// A line above the names of the runs
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Series to show, e.g. cpu0,cpu3 [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    series: Vec<String>,
    /// What percentiles and histograms count [default: periods where more than 0.1% was missed]
    #[arg(long, value_enum, value_name = "VIEW")]
    view: Option<PlotView>,
    /// Range of the latency axis, e.g. 10us..1ms, ..1ms or 10us.. [default: that of the data]
    ///
    /// Values outside are drawn at the edge. A range below a factor of six is widened to six.
    #[arg(long, value_name = "RANGE")]
    latency_range: Option<LatencyRange>,
    /// Time range of scatters and heat maps: 5s..10s, ..10s, 5s.. [default: all]
    ///
    /// Counted from the start of the run. A short range has finer points and cells. If the largest
    /// latency of the run is outside, the picture says so.
    #[arg(long, value_name = "RANGE")]
    time_range: Option<TimeRange>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PlotView {
    /// Each wake-up once
    WakeUp,
    /// Each scheduled period: a wake-up late by L at interval T counts as L, L-T, ..., L-kT
    Scheduled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PlotKind {
    /// Latency over time, one point per sample
    Scatter,
    /// Latency by percentile, from 50% to as many nines as the samples support
    Percentile,
    /// Number of samples by time and latency, as colors
    Heatmap,
    /// Number of samples by latency, both scales logarithmic
    Histogram,
    /// Ratio of each run to the first, percentile by percentile, with intervals
    Shift,
}

/// Writes the picture.
pub(super) fn plot(flags: &PlotFlags, store: &Store) -> Result<Exit> {
    let kind = match flags.kind {
        PlotKind::Scatter => PictureKind::Scatter,
        PlotKind::Percentile => PictureKind::Percentile,
        PlotKind::Heatmap => PictureKind::Heatmap,
        PlotKind::Histogram => PictureKind::Histogram,
        PlotKind::Shift => PictureKind::Shift,
    };
    let format = PictureFormat::of(&flags.output)?;
    let time = flags.time_range.unwrap_or_default();
    let options = PlotOptions {
        title: flags.title.clone(),
        series: flags.series.clone(),
        view: flags.view.map(|view| match view {
            PlotView::WakeUp => View::WakeUp,
            PlotView::Scheduled => View::Scheduled,
        }),
        latency: flags.latency_range.unwrap_or_default(),
        time,
        ..PlotOptions::new(kind, flags.size)
    };
    let runs = find(&flags.runs, store)?;
    if let Some(empty) = runs.iter().find(|run| run.document.series.is_empty()) {
        let remedy = match empty.document.figures.is_empty() {
            true => "",
            false => "; its figures are in `tardy show` and on the page of `tardy report`",
        };
        bail!("{} has no series: there is nothing to draw{remedy}", empty.path.display());
    }
    let mut page = page_of(runs, time);
    if time == TimeRange::ALL {
        page.runs.iter().try_for_each(has_distribution)?;
    }
    if kind == PictureKind::Shift {
        page.comparisons = compared(find(&flags.runs, store)?, Vec::new())?;
    }
    let bytes = match format {
        PictureFormat::Svg => plot::svg(&page, &options)?.into_bytes(),
        PictureFormat::Png => plot::png(&page, &options)?,
        PictureFormat::Pdf => plot::pdf(&page, &options)?,
    };
    write(&flags.output, &bytes)?;
    Ok(Exit::Done)
}

/// Refuses a run of which a picture would be empty: only its summary is known, or nothing.
fn has_distribution(run: &PageRun) -> Result<()> {
    let is_known = run.series.iter().any(|series| !series.histogram.is_empty());
    let why = match run.record.wakeups().any(|series| series.count > 0) {
        _ if is_known => return Ok(()),
        true => "has a summary of its latencies and not their distribution",
        false => "has no samples",
    };
    let name = plain(&run.record.name);
    bail!("{name} {why}: there is nothing to draw; what is known of it is in `tardy show`")
}

/// What kind of file a picture becomes.
#[derive(Debug, Clone, Copy)]
enum PictureFormat {
    Svg,
    Png,
    Pdf,
}

impl PictureFormat {
    /// By the end of its name.
    fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|kind| kind.to_str()) {
            Some("svg") => Ok(Self::Svg),
            Some("png") => Ok(Self::Png),
            Some("pdf") => Ok(Self::Pdf),
            _ => bail!(
                "-o {}: a picture is an SVG, a PNG or a PDF; name a file that ends in .svg, .png \
                 or .pdf",
                path.display()
            ),
        }
    }
}

/// Writes the page of a plan, with those of its runs, and says nothing of it.
pub(super) fn plan_page(directory: &Path, file: &Path, most: Option<u32>) -> Result<()> {
    matrix::Campaign::of_plan(directory).write(file, most).map(drop)
}

/// Writes the page.
pub(super) fn report(flags: &ReportFlags, store: &Store) -> Result<Exit> {
    is_page("-o", &flags.output)?;
    let names = flags.files.names(flags.runs.clone())?;
    let among = match flags.vs.is_empty() {
        true => matrix::company(&names.all(), store),
        false => Candidates::Runs,
    };
    let chosen = names.choose(store, among)?.without_damaged();
    if chosen.places.is_empty() {
        chosen.skipped.tell(0)?;
    }
    ensure!(
        chosen.places.len() <= MOST_ON_A_PAGE,
        "{} runs or plans are named, and a page shows at most {MOST_ON_A_PAGE}; name fewer, or \
         summarize them with `tardy trend`",
        chosen.places.len()
    );
    if let Some(campaign) = matrix::Campaign::of(&chosen.places, chosen.places.len())? {
        let place = campaign.shown();
        ensure!(flags.vs.is_empty(), "--vs takes runs, and {place} holds many");
        ensure!(
            !flags.without.is_given(),
            "--without host is for runs, and {place} holds many: name one of them, or several"
        );
        return campaign.report(&flags.output, flags.pages, chosen.skipped);
    }
    ensure!(
        flags.pages.is_none(),
        "--pages: only a plan or a comparison of `tardy ab` has pages of single runs beside its own"
    );
    let page = whole_page(flags, chosen, store)?;
    let text = html::render(&page).context("cannot write the data of the page")?;
    write(&flags.output, text.as_bytes())?;
    Ok(Exit::Done)
}

/// Refuses a file name that does not end in .html, before anything is measured or read.
pub(super) fn is_page(flag: &str, path: &Path) -> Result<()> {
    let kind = path.extension().and_then(|kind| kind.to_str());
    ensure!(
        matches!(kind, Some("html" | "htm")),
        "{flag} {}: a report is an HTML page; name a file that ends in .html",
        path.display()
    );
    Ok(())
}

/// The page of all runs, with their comparison. Both read the logs, at the same time.
fn whole_page(flags: &ReportFlags, chosen: Chosen, store: &Store) -> Result<Page> {
    let vs = ChosenNames::of(flags.vs.clone()).choose(store, Candidates::Runs)?;
    let a = open(chosen)?;
    let b = if flags.vs.is_empty() { Vec::new() } else { open(vs)? };
    let (a, b) = match a.len() + b.len() {
        1 => (a.into_iter().map(|run| flags.without.of(run)).collect::<Result<_>>()?, b),
        _ => (flags.without.of_all(a)?, flags.without.of_all(b)?),
    };
    let is_empty = |run: &&Run| run.document.series.is_empty() && run.document.figures.is_empty();
    if let Some(empty) = a.iter().chain(&b).find(is_empty) {
        bail!("{} has neither series nor figures: nothing to show", empty.path.display());
    }
    if a.len() + b.len() == 1 {
        return Ok(page_of(a, TimeRange::ALL));
    }
    let all: Vec<Run> = a.iter().chain(&b).cloned().collect();
    let (mut page, found) = thread::scope(|scope| {
        let comparing = scope.spawn(move || compared(a, b));
        let page = page_of(all, TimeRange::ALL);
        (page, comparing.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked)))
    });
    match found {
        Ok(found) => page.comparisons = found,
        Err(error) => output::notice(&format!("the page has no comparison: {error}")),
    }
    Ok(page)
}

fn compared(a: Vec<Run>, b: Vec<Run>) -> Result<Vec<PageComparison>, CompareError> {
    let options = CompareOptions { judged: JUDGED_BY_DEFAULT.to_vec(), margin: None };
    Ok(of_report(&compare_runs(a, b, &options)?))
}

/// The runs of a page, opened. Those that cannot be read are left out.
fn open(chosen: Chosen) -> Result<Vec<Run>> {
    memory::keep_heap();
    if let Some(many) = chosen.places.iter().find(|place| place.kind != PlaceKind::Run) {
        let (place, what) = (plain_path(&many.path), many.called());
        let hint = match many.kind {
            PlaceKind::Lab => format!("`tardy lab compare {place} -o FILE` makes its page"),
            _ => "make a page of it alone, or name runs only".into(),
        };
        bail!("{place} is {what} and no run: {hint}");
    }
    let mut runs = chosen.into_runs();
    let found = std::iter::from_fn(|| runs.next_run()).collect();
    runs.tell()?;
    Ok(found)
}

fn find(names: &[String], store: &Store) -> Result<Vec<Run>> {
    // A day has thousands of histograms; malloc keeps blocks of this size instead of freeing them.
    memory::keep_heap();
    Ok(names.iter().map(|name| store.find(name)).collect::<Result<Vec<_>, _>>()?)
}

fn page_of(runs: Vec<Run>, within: TimeRange) -> Page {
    collect::page_within(runs, within)
}

/// Replaces the file atomically.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    write_quietly(path, bytes)?;
    output::notice(&wrote(path));
    Ok(())
}

/// The same, and says nothing of it.
///
/// # Errors
/// As [`write`].
pub(super) fn write_quietly(path: &Path, bytes: &[u8]) -> Result<()> {
    draft::replace(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

fn wrote(path: &Path) -> String {
    format!("wrote {}", plain_path(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_that_was_written_stays_on_its_line_and_has_no_colour() {
        let text = wrote(Path::new("a\nb\u{1b}[8m.html"));
        assert_eq!(text, "wrote a\\u{a}b\\u{1b}[8m.html");
    }
}
