//! The progress line on a terminal during a run: time left, the worst so far, loads alive.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use crate::{
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
        let text = cut(&text(), width());
        let mut err = std::io::stderr().lock();
        // Erase after writing, so that the line does not flicker. A closed terminal is no error.
        let _ = write!(err, "\r{text}\x1b[K").and_then(|()| err.flush());
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

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() < width {
        return text.into();
    }
    text.chars().take(width.saturating_sub(4)).chain("...".chars()).collect()
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
    fn it_fits_the_terminal() {
        assert_eq!(cut(&"x".repeat(300), 80).len(), 79);
    }
}
