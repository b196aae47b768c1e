//! The progress line on a terminal during a run: time left, the worst so far, loads alive.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use crate::{
    plain,
    session::{LoadProgress, RunProgress},
    units::{Nanos, span},
};

/// A line of standard error that is overwritten once a second.
#[derive(Debug)]
pub(super) struct StatusLine {
    on: bool,
    next: Instant,
}

impl StatusLine {
    /// Writes only where `on`.
    #[must_use]
    pub(super) fn new(on: bool) -> Self {
        Self { on, next: Instant::now() }
    }

    /// Whether it writes anything.
    pub(super) const fn is_on(&self) -> bool {
        self.on
    }

    /// Shows `progress`, if the last update is old enough.
    pub(super) fn show(&mut self, progress: &RunProgress) {
        self.write(|| text(progress));
    }

    /// Shows any text on the line.
    pub(super) fn write(&mut self, text: impl FnOnce() -> String) {
        if !self.on || Instant::now() < self.next {
            return;
        }
        // A little less than half a second, in which it comes from a run.
        self.next = Instant::now() + Duration::from_millis(450);
        let shown = shown(&text(), width());
        let mut err = std::io::stderr().lock();
        // A closed terminal is no error.
        let _ = err.write_all(shown.as_bytes()).and_then(|()| err.flush());
    }

    /// Erases the line.
    pub(super) fn clear(&mut self) {
        if self.on {
            let mut err = std::io::stderr().lock();
            let _ = write!(err, "\r\x1b[K").and_then(|()| err.flush());
        }
    }
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

fn load(load: &LoadProgress) -> String {
    match (&load.died, load.operations) {
        (Some(how), _) => format!("{} DIED: {how}", load.name),
        (None, Some(0)) => format!("{} does nothing", load.name),
        (None, _) => format!("{} alive", load.name),
    }
}

fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    // A terminal that does not know its size reports 0.
    size.map(|size| usize::from(size.ws_col)).ok().filter(|&width| width > 0).unwrap_or(80).max(20)
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
