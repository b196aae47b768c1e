//! A comparison in progress on standard error: its plan, its looks, and between them a line with
//! the time left and the estimates of the last look.

use std::{io::IsTerminal as _, time::Duration};

use crate::{
    campaign::{AbEvent, AbProgress},
    cli::{
        output,
        progress::{Heartbeat, StatusLine},
    },
    plain::plain,
    report::ab as text,
    units::span,
};

/// What is said while it is in progress.
#[derive(Debug)]
pub(in crate::cli) enum AbStatusView {
    /// Nothing.
    Silent,
    /// The line of a terminal.
    Line(StatusLine),
    /// A line of a log now and then.
    Log(Heartbeat),
}

impl AbStatusView {
    /// What suits standard error.
    pub(in crate::cli) fn new(quiet: bool) -> Self {
        match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Self::Silent,
            (false, true) => Self::Line(StatusLine::new(true)),
            (false, false) => Self::Log(Heartbeat::default()),
        }
    }

    /// How often it wants to be shown during a block; absent for never.
    pub(in crate::cli) const fn pace(&self) -> Option<Duration> {
        match self {
            Self::Silent => None,
            Self::Line(_) => Some(Duration::from_millis(500)),
            Self::Log(_) => Some(Duration::from_secs(5)),
        }
    }

    /// Shows what happens.
    pub(in crate::cli) fn show(&mut self, event: &AbEvent<'_>) {
        if matches!(self, Self::Silent) {
            return;
        }
        let width = output::error_width();
        match event {
            AbEvent::Planned(record) => self.say(&text::planned(record, width)),
            AbEvent::Looked(record, sds) => self.say(&text::looked(record, sds, width)),
            AbEvent::Goes(progress) => self.pass(progress),
        }
    }

    fn say(&mut self, text: &str) {
        self.clear();
        output::notice(text.trim_end());
    }

    fn pass(&mut self, progress: &AbProgress<'_>) {
        match self {
            Self::Silent => {}
            Self::Line(line) => line.write(|| passing(progress)),
            Self::Log(heartbeat) => {
                let elapsed_ns = i64::try_from(progress.elapsed.as_nanos()).unwrap_or(i64::MAX);
                if heartbeat.is_due(elapsed_ns) {
                    output::notice(&plain(&passing(progress)));
                }
            }
        }
    }

    /// Erases what was only for the time of the comparison.
    pub(in crate::cli) fn clear(&mut self) {
        if let Self::Line(line) = self {
            line.clear();
        }
    }
}

/// `3 min left | block 14 of 48, B | p50 +19.6% (+18.1% to +21.2%)`
fn passing(progress: &AbProgress<'_>) -> String {
    let record = progress.record;
    let left_s = record.budget_ns as f64 / 1e9 - progress.elapsed.as_secs_f64();
    let side = progress.side.letter();
    let mut parts = vec![format!("{} left", span(left_s.max(0.0)))];
    let blocks = record.looks.last().map_or(0, |look| look.pairs * 2);
    parts.push(match progress.block {
        0 => format!("first, can {side} be measured, and what does it take"),
        block => format!("block {block} of {blocks}, {side}"),
    });
    if record.figures.is_empty() {
        let first =
            record.looks.first().map(|look| format!("judged after block {}", look.pairs * 2));
        parts.extend(first);
    }
    parts.extend(record.figures.iter().map(text::estimate));
    parts.join(" | ")
}
