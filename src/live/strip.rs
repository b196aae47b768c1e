//! The heat strip: the largest latency of each second of the last minute, by height on a
//! logarithmic scale that all series share.

use ratatui::style::Style;

use super::{ink::Ink, view::SeriesRow};
use crate::units::Nanos;

/// Steps of the scale.
const LEVELS: usize = 8;
const BLOCKS: [char; LEVELS] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const DIGITS: [char; LEVELS] = ['1', '2', '3', '4', '5', '6', '7', '8'];

/// Lengths of a cell, s: divisors of a minute.
const STEPS: [usize; 6] = [1, 2, 3, 4, 5, 6];

/// The title of the strip; left out if it does not fit.
const PREFIX: &str = "last min, ";

/// From which latency to which the steps go, and how long a cell is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scale {
    low_ns: i64,
    high_ns: i64,
    /// Seconds in a cell.
    step: usize,
    /// Cells of a strip.
    pub cells: usize,
}

impl Scale {
    /// For these series in a column so wide.
    pub(super) fn of<'a>(rows: impl Iterator<Item = &'a SeriesRow>, width: usize) -> Self {
        let values = rows.flat_map(|row| row.minute.iter().flatten().copied().map(|ns| ns.max(1)));
        let (low_ns, high_ns) =
            values.fold((i64::MAX, 1), |(low, high), ns| (low.min(ns), high.max(ns)));
        let step = STEPS.into_iter().find(|step| 60 / step <= width).unwrap_or(6);
        Self { low_ns: low_ns.min(high_ns), high_ns, step, cells: 60 / step }
    }

    /// What the heights mean.
    pub(super) fn legend(self, width: usize, ink: Ink) -> String {
        let whole = self.all(ink);
        match whole.strip_prefix(PREFIX) {
            Some(rest) if whole.chars().count() > width => rest.to_owned(),
            _ => whole,
        }
    }

    fn all(self, ink: Ink) -> String {
        let signs = signs(ink);
        let each = if self.step == 1 { "1 s".into() } else { format!("{} s", self.step) };
        if self.high_ns <= 1 {
            return format!("{PREFIX}{each}");
        }
        let (low, high) = (Nanos(self.low_ns), Nanos(self.high_ns));
        format!("{PREFIX}{each} {}{low} {}{high}", signs[0], signs[LEVELS - 1])
    }

    /// The cells of a series, oldest first, each with how it looks; a gap has no samples.
    pub(super) fn cells(self, row: &SeriesRow, ink: Ink) -> Vec<(char, Style)> {
        let signs = signs(ink);
        let largest = row.minute.chunks(self.step).map(|chunk| chunk.iter().flatten().max());
        let cell = |largest: Option<&i64>| match largest {
            None => (' ', Style::new()),
            Some(ns) => {
                let level = self.level(*ns);
                let style = match level {
                    0..=2 => ink.good(),
                    3..=5 => ink.doubtful(),
                    _ => ink.bad(),
                };
                (signs.get(level).copied().unwrap_or(' '), style)
            }
        };
        largest.map(cell).collect()
    }

    /// From 0 to 7.
    fn level(self, ns: i64) -> usize {
        if self.high_ns <= self.low_ns {
            return 0;
        }
        let of = |ns: i64| (ns.max(1) as f64 / self.low_ns as f64).ln();
        let share = of(ns) / of(self.high_ns);
        ((share * LEVELS as f64) as usize).min(LEVELS - 1)
    }
}

const fn signs(ink: Ink) -> [char; LEVELS] {
    if ink.has_blocks { BLOCKS } else { DIGITS }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(minute: Vec<Option<i64>>) -> SeriesRow {
        SeriesRow { minute, ..SeriesRow::default() }
    }

    fn text(scale: Scale, row: &SeriesRow, ink: Ink) -> String {
        scale.cells(row, ink).into_iter().map(|(sign, _)| sign).collect()
    }

    #[test]
    fn heights_are_logarithmic_and_a_second_without_samples_is_a_gap() {
        let mut minute = vec![None; 60];
        (minute[0], minute[1], minute[59]) = (Some(1_000), Some(10_000), Some(100_000));
        let row = row(minute);
        let scale = Scale::of([&row].into_iter(), 60);
        assert_eq!((scale.cells, scale.step), (60, 1));
        let shown = text(scale, &row, Ink::PLAIN);
        assert_eq!((shown.chars().next(), shown.chars().nth(1)), (Some('▁'), Some('▅')));
        assert_eq!((shown.chars().nth(2), shown.chars().last()), (Some(' '), Some('█')));
        assert_eq!(scale.legend(60, Ink::PLAIN), "last min, 1 s ▁1.00 us █100 us");
        assert_eq!(scale.legend(25, Ink::PLAIN), "1 s ▁1.00 us █100 us");
        let digits = Ink { has_blocks: false, ..Ink::PLAIN };
        assert!(text(scale, &row, digits).starts_with("15 "));
    }

    #[test]
    fn a_narrow_strip_has_the_largest_of_several_seconds() {
        let mut minute = vec![Some(1_000); 60];
        minute[3] = Some(64_000);
        let row = row(minute);
        let scale = Scale::of([&row].into_iter(), 33);
        assert_eq!((scale.cells, scale.step), (30, 2));
        assert!(text(scale, &row, Ink::PLAIN).starts_with("▁█▁"));
        assert_eq!(Scale::of([&row].into_iter(), 3).cells, 10);
    }

    #[test]
    fn without_samples_or_with_one_value_there_is_a_strip_all_the_same() {
        let none = row(vec![None; 60]);
        let scale = Scale::of([&none].into_iter(), 60);
        assert_eq!(text(scale, &none, Ink::PLAIN).trim(), "");
        assert_eq!(scale.legend(60, Ink::PLAIN), "last min, 1 s");
        let odd = row(vec![Some(0), Some(-5), Some(0)]);
        assert_eq!(text(Scale::of([&odd].into_iter(), 60), &odd, Ink::PLAIN), "▁▁▁");
    }
}
