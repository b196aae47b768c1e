//! A run in progress on standard error: on a terminal a line with the time left, the worst so far
//! and loads alive; in a log such a line now and then.

use std::{
    io::{IsTerminal as _, Write},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use super::{live::LiveChild, output};
use crate::{
    plain, run,
    session::{LoadProgress, RunProgress, ShowPace},
    sys::timeout_writer::TimeoutWriter,
    units::{Nanos, many, span},
};

/// What is said of a run while it is in progress.
#[derive(Debug)]
pub(super) enum RunStatus {
    /// Nothing.
    Silent,
    /// The line of a terminal.
    Line(StatusLine),
    /// A line of a log now and then.
    Log(Heartbeat),
    /// The full-screen view; once it has gone, a line.
    Live(LiveChild, StatusLine),
    /// One of these, and all series whenever this says that somebody asks.
    Answering(Arc<AtomicBool>, Box<Self>),
}

impl RunStatus {
    /// What suits standard error.
    #[must_use]
    pub(super) fn new(quiet: bool) -> Self {
        match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Self::Silent,
            (false, true) => Self::Line(StatusLine::new(true)),
            (false, false) => Self::Log(Heartbeat::default()),
        }
    }

    /// The same, and all series whenever `asked` is set; that is cleared.
    #[must_use]
    pub(super) fn answering(self, asked: Option<Arc<AtomicBool>>) -> Self {
        match asked {
            Some(asked) => Self::Answering(asked, Box::new(self)),
            None => self,
        }
    }

    /// The full-screen view of the run that will be in `directory`, where there is a terminal for
    /// it: else what suits standard error, and a word about that.
    #[must_use]
    pub(super) fn live(directory: &Path) -> Self {
        match LiveChild::start(directory) {
            Ok(child) => Self::Live(child, StatusLine::new(true)),
            Err(why) => {
                let instead = Self::new(false);
                let lines = match &instead {
                    Self::Log(_) => "a line after 10 s, and then each minute",
                    _ => "the usual line",
                };
                output::notice(&format!("--live: {}; progress is {lines}.", plain::plain(&why)));
                instead
            }
        }
    }

    /// How often it is to be shown; absent for never.
    #[must_use]
    pub(super) fn pace(&self) -> Option<ShowPace> {
        match self {
            Self::Answering(_, own) => own.pace().or(Some(ShowPace::Seldom)),
            Self::Silent => None,
            Self::Line(_) | Self::Live(..) => Some(ShowPace::Live),
            Self::Log(_) => Some(ShowPace::Seldom),
        }
    }

    /// Shows the run, `elapsed_ns` after its start, if the last time is long enough ago.
    pub(super) fn show(&mut self, elapsed_ns: i64, progress: &dyn Fn() -> RunProgress) {
        match self {
            Self::Silent => {}
            Self::Answering(asked, own) => {
                if asked.swap(false, Ordering::Relaxed) {
                    output::notice(&plain::plain_lines(&status_text(&progress())));
                }
                own.show(elapsed_ns, progress);
            }
            Self::Line(line) => line.write(|| text(&progress())),
            Self::Live(child, line) => {
                if child.has_gone() {
                    line.write(|| text(&progress()));
                }
            }
            Self::Log(heartbeat) => {
                if heartbeat.is_due(elapsed_ns) {
                    output::notice(&plain::plain(&heartbeat_text(&progress())));
                }
            }
        }
    }

    /// Erases what was only for the time of the run.
    pub(super) fn clear(&mut self) {
        match std::mem::replace(self, Self::Silent) {
            Self::Line(mut line) => line.clear(),
            Self::Live(mut child, mut line) => {
                let has_line = child.has_gone();
                // The terminal is free once it has gone.
                drop(child);
                if has_line {
                    line.clear();
                }
            }
            Self::Answering(_, mut own) => own.clear(),
            Self::Silent | Self::Log(_) => {}
        }
    }
}

/// When a log gets a line: soon enough that a person sees the run continue, and so seldom that the
/// log of a night stays short.
#[derive(Debug)]
pub(super) struct Heartbeat {
    next_ns: i64,
}

const FIRST_BEAT_NS: i64 = 10_000_000_000;
const MINUTE_NS: i64 = 60_000_000_000;

impl Default for Heartbeat {
    fn default() -> Self {
        Self { next_ns: FIRST_BEAT_NS }
    }
}

impl Heartbeat {
    /// Whether a line is due this long after the start: after 10 s, and then each minute.
    pub(super) const fn is_due(&mut self, elapsed_ns: i64) -> bool {
        if elapsed_ns < self.next_ns {
            return false;
        }
        self.next_ns = (elapsed_ns / MINUTE_NS + 1) * MINUTE_NS;
        true
    }
}

/// Whether a write that has waited for this time is given up.
type WriteDeadline = fn(Duration) -> bool;

/// A line of standard error that is overwritten once a second. Where nobody reads the terminal, it
/// stays as it is: what measures or waits for the end of a run must not wait for that.
#[derive(Debug)]
pub(super) struct StatusLine {
    /// `None` if nothing is shown.
    terminal: Option<TimeoutWriter<WriteDeadline>>,
    next: Instant,
}

impl StatusLine {
    /// Writes only where `on`.
    #[must_use]
    pub(super) fn new(on: bool) -> Self {
        let gives_up: WriteDeadline = |_| true;
        let terminal = on.then(|| TimeoutWriter::new(std::io::stderr(), gives_up).ok()).flatten();
        Self { terminal, next: Instant::now() }
    }

    /// Shows any text on the line, if the last one is old enough.
    pub(super) fn write(&mut self, text: impl FnOnce() -> String) {
        let Some(terminal) = &mut self.terminal else { return };
        if Instant::now() < self.next {
            return;
        }
        // A little less than half a second, in which it comes from a run.
        self.next = Instant::now() + Duration::from_millis(450);
        let shown = shown(&text(), output::columns(std::io::stderr()));
        // Nor is it an error where it is closed.
        let _ = terminal.write_all(shown.as_bytes());
    }

    /// Erases the line.
    pub(super) fn clear(&mut self) {
        if let Some(terminal) = &mut self.terminal {
            let _ = terminal.write_all(b"\r\x1b[K");
        }
    }
}

/// A signal that ends a run, as a user knows it.
pub(super) fn signal_name(number: usize) -> String {
    if i32::try_from(number) == Ok(libc::SIGINT) {
        return "Ctrl-C".into();
    }
    let known = u32::try_from(number).ok().and_then(run::signal_name);
    known.map_or_else(|| format!("signal {number}"), Into::into)
}

fn text(progress: &RunProgress) -> String {
    if progress.elapsed_ns < 0 {
        return format!("warm-up, {} left", span(-progress.elapsed_ns as f64 / 1e9));
    }
    let left = progress.left_ns.map_or_else(
        || span(progress.elapsed_ns as f64 / 1e9),
        |left| format!("{} left", span(left.max(0) as f64 / 1e9)),
    );
    let mut parts = vec![left];
    parts.extend(progress.loads.iter().map(load));
    let worst = |(name, _, worst): &(String, u64, Option<i64>)| {
        Some(format!("{name} {}", Nanos((*worst)?)))
    };
    let worst: Vec<String> = progress.series.iter().filter_map(worst).collect();
    if !worst.is_empty() {
        parts.push(format!("worst {}", worst.join(", ")));
    }
    parts.join(" | ")
}

/// `10 s, 50 s left | 20,000 samples | worst 123 us, cpu1`, and loads that do not work.
/// A line for the run, and one for each series.
fn status_text(progress: &RunProgress) -> String {
    let mut out = format!("# status after {}", span(progress.elapsed_ns.max(0) as f64 / 1e9));
    for (name, samples, worst_ns) in &progress.series {
        let worst = worst_ns.map_or_else(|| "-".to_owned(), |ns| Nanos(ns).to_string());
        out.push_str(&format!("\n# {name}: {}, worst {worst}", many(*samples, "sample")));
    }
    out
}

fn heartbeat_text(progress: &RunProgress) -> String {
    let mut time = span(progress.elapsed_ns as f64 / 1e9);
    if let Some(left_ns) = progress.left_ns {
        time.push_str(&format!(", {} left", span(left_ns.max(0) as f64 / 1e9)));
    }
    let samples = progress.series.iter().fold(0_u64, |sum, (_, own, _)| sum.saturating_add(*own));
    let mut parts = vec![time, many(samples, "sample")];
    let worst = progress.series.iter().filter_map(|(name, _, worst)| Some(((*worst)?, name)));
    if let Some((worst_ns, name)) = worst.max_by_key(|(worst_ns, _)| *worst_ns) {
        parts.push(format!("worst {}, {name}", Nanos(worst_ns)));
    }
    let fails = |load: &&LoadProgress| load.died.is_some() || load.operations == Some(0);
    parts.extend(progress.loads.iter().filter(fails).map(load));
    parts.join(" | ")
}

fn load(load: &LoadProgress) -> String {
    match (&load.died, load.operations) {
        (Some(how), _) => format!("{} DIED: {how}", load.name),
        (None, Some(0)) => format!("{} does nothing", load.name),
        (None, _) => format!("{} alive", load.name),
    }
}

/// What replaces the line. Names of loads and how they died come from elsewhere: nothing of the
/// text steers the terminal. It erases after writing, so that the line does not flicker.
fn shown(text: &str, width: usize) -> String {
    format!("\r{}\x1b[K", plain::cut(text, width.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(elapsed_ns: i64) -> RunProgress {
        RunProgress {
            elapsed_ns,
            left_ns: Some(41_000_000_000),
            series: vec![("cpu0".into(), 5, Some(123_000)), ("cpu1".into(), 0, None)],
            loads: vec![LoadProgress {
                name: "hackbench".into(),
                unit: "messages",
                operations: Some(7),
                died: None,
            }],
        }
    }

    #[test]
    fn it_tells_time_loads_and_the_worst() {
        assert_eq!(text(&progress(1)), "41 s left | hackbench alive | worst cpu0 123 us");
        assert_eq!(text(&progress(-500_000_000)), "warm-up, 500 ms left");
    }

    #[test]
    fn a_log_gets_a_line_after_10_s_and_then_each_minute() {
        let mut heartbeat = Heartbeat::default();
        let due = (-10..7_300).filter(|half_s| heartbeat.is_due(half_s * 500_000_000));
        let due: Vec<i64> = due.map(|half_s| half_s / 2).collect();
        assert_eq!(due[..4], [10, 60, 120, 180]);
        assert_eq!(due.len(), 61, "in an hour and a bit");
        let mut stalled = Heartbeat::default();
        assert!(stalled.is_due(3_599_000_000_000), "one for all that were not written");
        assert!(!stalled.is_due(3_599_500_000_000) && stalled.is_due(3_600_000_000_000));
    }

    #[test]
    fn the_line_of_a_log_has_time_samples_the_worst_and_what_fails() {
        let mut now = progress(10_000_000_000);
        now.series =
            vec![("cpu0".into(), 9_990, Some(5_000)), ("cpu1".into(), 10_010, Some(9_000))];
        let text = "10 s, 41 s left | 20,000 samples | worst 9.00 us, cpu1";
        assert_eq!(heartbeat_text(&now), text);
        (now.left_ns, now.loads[0].died) = (None, Some("signal 9".into()));
        let text = "10 s | 20,000 samples | worst 9.00 us, cpu1 | hackbench DIED: signal 9";
        assert_eq!(heartbeat_text(&now), text);
        now.series.clear();
        assert_eq!(heartbeat_text(&now), "10 s | 0 samples | hackbench DIED: signal 9");
    }

    #[test]
    fn it_fits_the_terminal_and_only_replaces_itself() {
        assert_eq!(shown("idle alive", 80), "\ridle alive\x1b[K");
        let body = |text: &str| {
            let shown = shown(text, 80);
            shown.strip_prefix('\r').unwrap().strip_suffix("\x1b[K").unwrap().to_owned()
        };
        assert_eq!(body(&"x".repeat(300)).len(), 79);
        assert_eq!(body("a\x1b[8m\r\nb"), "a\\u{1b}[8m\\u{d}\\u{a}b");
    }
}
