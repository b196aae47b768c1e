//! Caveats about a run that did not stay the same while it was measured, and their texts. They are
//! found in its log at its end, or on reading where the record is of an earlier version.

use serde::Serialize;

use super::values::list;
use crate::{
    run::{caveat::Effect, series_name::shown_name},
    units::Nanos,
};

/// The code of [`SteadinessCaveat::LevelChanged`].
pub const LEVEL_CHANGED: &str = "level_changed";

/// The code of [`SteadinessCaveat::LatePeriodically`].
pub const LATE_PERIODICALLY: &str = "late_periodically";

/// The number of series that are named in a text; the values have all.
const NAMED: usize = 3;

/// A caveat about change over time. One variant a code, as in [`super::CaveatKind`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SteadinessCaveat {
    /// The level of some series moved.
    LevelChanged {
        /// Each change.
        changes: Vec<LevelChange>,
    },
    /// High latencies come regularly.
    LatePeriodically {
        /// The series concerned.
        periods: Vec<SeriesPeriod>,
    },
}

/// How the level of a series moved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelChange {
    /// The series.
    pub series: String,
    /// Of what of each interval of the log: `median` or `maximum`.
    pub of: &'static str,
    /// `step` or `drift`.
    pub kind: &'static str,
    /// When a step came, or the middle of a drift; from the start of the run.
    pub at_ns: i64,
    /// The stretch of the run in which it was found.
    pub from_ns: i64,
    /// Its end.
    pub to_ns: i64,
    /// This share of the intervals lies at or below the values that follow: 0.5 or 0.9.
    pub share: f64,
    /// Before the step, or in the first third of the drift.
    pub before_ns: i64,
    /// After it, or in the last third.
    pub after_ns: i64,
}

/// The period of the high latencies of a series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SeriesPeriod {
    /// The series.
    pub series: String,
    /// The period.
    pub period_ns: i64,
    /// High stretches that were looked at.
    pub events: u64,
    /// Share of them within a tenth of a period of the beat, 0 to 1.
    pub share: f64,
}

impl LevelChange {
    /// "on cpu0 the maximum of an interval rose from 20.0 us to 31.0 us at 40.0 s"
    fn text(&self) -> String {
        let Self { of, before_ns, after_ns, .. } = self;
        let series = shown_name(&self.series);
        let moved = if after_ns > before_ns { "rose" } else { "fell" };
        let s = |ns: i64| format!("{:.1} s", ns as f64 / 1e9);
        let when = match self.kind {
            "step" => format!("at {}", s(self.at_ns)),
            _ => format!("little by little between {} and {}", s(self.from_ns), s(self.to_ns)),
        };
        let of_what = match self.share > 0.5 {
            true => format!("the {of} that nine in ten intervals keep"),
            false => format!("the {of} of an interval"),
        };
        let (before, after) = (Nanos(*before_ns), Nanos(*after_ns));
        format!("on {series} {of_what} {moved} from {before} to {after} {when}")
    }
}

impl SeriesPeriod {
    /// "every 1.00 s on cpu0"
    fn text(&self) -> String {
        format!("every {} on {}", Nanos(self.period_ns), shown_name(&self.series))
    }
}

impl SteadinessCaveat {
    /// Code, effect, text and remedy.
    pub(super) fn words(&self) -> (&'static str, Effect, String, &'static str) {
        use Effect::{Informs, Weakens};
        match self {
            Self::LevelChanged { changes } => (
                LEVEL_CHANGED,
                Weakens,
                format!(
                    "Latency shifted during the run; its percentiles mix different conditions: {}.",
                    first(changes, "; ", LevelChange::text)
                ),
                "Look on the page at what changed then, and repeat the run with a longer --warmup \
                 or a steadier load.",
            ),
            Self::LatePeriodically { periods } => (
                LATE_PERIODICALLY,
                Informs,
                format!(
                    "High latencies come regularly: {}.",
                    first(periods, ", ", SeriesPeriod::text)
                ),
                "Look for a timer, a daemon or a load with that period; `tardy why` names causes \
                 that have one.",
            ),
        }
    }
}

/// The first ones as text, and how many more there are.
fn first<T>(items: &[T], between: &str, text: impl Fn(&T) -> String) -> String {
    let named = list(items.get(..NAMED).unwrap_or(items), between, text);
    match items.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named}{between}and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(kind: &'static str, share: f64, after_ns: i64) -> LevelChange {
        LevelChange {
            series: "cpu0".into(),
            of: "maximum",
            kind,
            at_ns: 40_000_000_000,
            from_ns: 0,
            to_ns: 60_000_000_000,
            share,
            before_ns: 20_000,
            after_ns,
        }
    }

    #[test]
    fn changes_are_told_with_their_size_and_time() {
        assert_eq!(
            change("step", 0.5, 31_000).text(),
            "on cpu0 the maximum of an interval rose from 20.0 us to 31.0 us at 40.0 s"
        );
        assert_eq!(
            change("drift", 0.9, 11_000).text(),
            "on cpu0 the maximum that nine in ten intervals keep fell from 20.0 us to 11.0 us \
             little by little between 0.0 s and 60.0 s"
        );
    }

    #[test]
    fn many_series_are_counted_and_not_named() {
        let period = |number: i64| SeriesPeriod {
            series: format!("cpu{number}"),
            period_ns: 1_000_000_000,
            events: 60,
            share: 0.98,
        };
        let caveat = SteadinessCaveat::LatePeriodically { periods: (0..5).map(period).collect() };
        let (code, _, text, _) = caveat.words();
        assert_eq!(code, "late_periodically");
        assert!(text.ends_with("every 1.00 s on cpu2, and 2 more."), "{text}");
    }
}
