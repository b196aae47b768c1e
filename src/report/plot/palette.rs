//! Colours that survive colour blindness and grey print, and the dashes that tell runs apart.
//!
//! Series: Okabe and Ito's palette (<https://jfly.uni-koeln.de/color/>) without its yellow, which
//! white paper swallows, ordered so that neighbours differ in grey too. Counts: viridis without its
//! lightest end, for the same reason; a cell of one sample is dark.

use std::collections::HashMap;

use super::picture::Colour;
use crate::report::page::Page;

/// What covers all.
const fn solid(r: u8, g: u8, b: u8) -> Colour {
    Colour { rgb: (r, g, b), alpha: 1.0 }
}

/// Names, axes and marks.
pub(super) const INK: Colour = solid(0x22, 0x22, 0x22);
/// Words that are not read first.
pub(super) const PALE_INK: Colour = solid(0x55, 0x55, 0x55);
/// Lines behind the data.
pub(super) const GRID: Colour = solid(0xdd, 0xdd, 0xdd);
/// Series beyond those that have their own colour.
pub(super) const OTHERS: Colour = solid(0xb0, 0xb0, 0xb0);

const SERIES: [Colour; 7] = [
    solid(0x00, 0x72, 0xb2),
    solid(0xe6, 0x9f, 0x00),
    solid(0x00, 0x00, 0x00),
    solid(0x00, 0x9e, 0x73),
    solid(0xd5, 0x5e, 0x00),
    solid(0x56, 0xb4, 0xe9),
    solid(0xcc, 0x79, 0xa7),
];

/// One for each run that lies over others: black and red first, as differences are drawn.
const RUNS: [Colour; 6] = [
    solid(0x00, 0x00, 0x00),
    solid(0xd5, 0x5e, 0x00),
    solid(0x00, 0x72, 0xb2),
    solid(0xe6, 0x9f, 0x00),
    solid(0x00, 0x9e, 0x73),
    solid(0xcc, 0x79, 0xa7),
];

/// One for each series of runs that lie over each other; those beyond have lines without gaps.
const DASHES: [&[f64]; 6] = [
    &[],
    &[7.0, 4.0],
    &[2.0, 3.0],
    &[9.0, 3.0, 2.0, 3.0],
    &[14.0, 5.0],
    &[9.0, 3.0, 2.0, 3.0, 2.0, 3.0],
];

const VIRIDIS: [(u8, u8, u8); 9] = [
    (0x44, 0x01, 0x54),
    (0x48, 0x28, 0x78),
    (0x3e, 0x4a, 0x89),
    (0x31, 0x68, 0x8e),
    (0x26, 0x82, 0x8e),
    (0x1f, 0x9e, 0x89),
    (0x35, 0xb7, 0x79),
    (0x6d, 0xcd, 0x59),
    (0xb4, 0xde, 0x2c),
];

/// The colour at `share` (0 to 1) of the scale of counts.
#[must_use]
pub(super) fn heat(share: f64) -> Colour {
    let place = share.clamp(0.0, 1.0) * (VIRIDIS.len() - 1) as f64;
    let at = |index: usize| VIRIDIS.get(index.min(VIRIDIS.len() - 1)).copied().unwrap_or_default();
    let (low, high, part) = (at(place as usize), at(place as usize + 1), place.fract());
    let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * part).round() as u8;
    solid(mix(low.0, high.0), mix(low.1, high.1), mix(low.2, high.2))
}

/// Which series has which colour: the same in every run.
#[derive(Debug, Clone)]
pub(super) struct SeriesColours {
    /// In the order of the runs' series.
    named: Vec<(String, Colour)>,
    /// How many share the colour of others.
    pub others: usize,
}

impl SeriesColours {
    /// A colour for each series; where there are too many, for those with the largest latencies.
    #[must_use]
    pub(super) fn of(page: &Page) -> Self {
        let mut names: Vec<(String, i64)> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for series in page.runs.iter().flat_map(|run| run.record.wakeups()) {
            let max = series.max.unwrap_or(i64::MIN);
            let place = *places.entry(&series.name).or_insert(names.len());
            match names.get_mut(place) {
                Some((_, most)) => *most = max.max(*most),
                None => names.push((series.name.clone(), max)),
            }
        }
        let all = names.len();
        if all > SERIES.len() {
            let mut by_max: Vec<i64> = names.iter().map(|(_, max)| *max).collect();
            by_max.sort_unstable_by(|a, b| b.cmp(a));
            let least = by_max.get(SERIES.len() - 1).copied().unwrap_or(i64::MIN);
            names.retain(|(_, max)| *max >= least);
        }
        let named: Vec<_> = names.into_iter().map(|(name, _)| name).zip(SERIES).collect();
        Self { others: all - named.len(), named }
    }

    /// Names with their colours.
    #[must_use]
    pub(super) fn named(&self) -> &[(String, Colour)] {
        &self.named
    }

    /// The colour of a series.
    #[must_use]
    pub(super) fn colour(&self, name: &str) -> Colour {
        let known = self.named.iter().find(|(known, _)| known == name);
        known.map_or(OTHERS, |(_, colour)| *colour)
    }
}

/// Maximum number of runs in a picture: nobody can distinguish more.
pub(super) const MOST_RUNS: usize = RUNS.len();

/// How the lines of runs that lie over each other are drawn: of one run by a colour a series, of
/// several by a colour a run and a dash a series.
#[derive(Debug, Clone)]
pub(super) struct LineStyles {
    /// The series of all runs.
    pub series: SeriesColours,
    several: bool,
}

impl LineStyles {
    /// Those of the series of a page.
    #[must_use]
    pub(super) fn of(page: &Page) -> Self {
        Self { series: SeriesColours::of(page), several: page.runs.len() > 1 }
    }

    /// The colour of a run; nothing where it is alone, for then its series have colours.
    #[must_use]
    pub(super) fn run(&self, run: usize) -> Option<Colour> {
        RUNS.get(run).copied().filter(|_| self.several)
    }

    /// The colour and the dash of a series.
    #[must_use]
    pub(super) fn line(&self, run: usize, name: &str) -> (Colour, &'static [f64]) {
        let Some(colour) = self.run(run) else { return (self.series.colour(name), &[]) };
        if self.is_other(name) {
            return (Colour { alpha: 0.35, ..colour }, &[]);
        }
        (colour, self.dash(name))
    }

    /// What tells a series from others of its run, where runs have the colours.
    #[must_use]
    pub(super) fn dash(&self, name: &str) -> &'static [f64] {
        let at = self.series.named.iter().position(|(known, _)| known == name);
        at.filter(|_| self.several).and_then(|at| DASHES.get(at)).copied().unwrap_or(&[])
    }

    /// Whether a series has neither a colour nor its own dash.
    #[must_use]
    pub(super) fn is_other(&self, name: &str) -> bool {
        self.series.colour(name) == OTHERS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        report::{collect, fixture},
        run::Run,
        testing::{cpu_ns, eventually},
    };

    #[test]
    fn more_samples_are_lighter_in_grey_print_too() {
        let grey = |share| {
            let (r, g, b) = heat(share).rgb;
            0.2126 * f64::from(r) + 0.7152 * f64::from(g) + 0.0722 * f64::from(b)
        };
        let greys: Vec<f64> = (0..=100).map(|step| grey(f64::from(step) / 100.0)).collect();
        assert!(greys.windows(2).all(|pair| pair[0] < pair[1]), "{greys:?}");
    }

    #[test]
    fn the_time_grows_with_the_number_of_series_and_not_with_its_square() {
        let of = |count: usize| {
            let names: Vec<String> = (0..count).map(|at| format!("s{at}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let run = Run::of("/nonexistent".into(), fixture::of("timer", &[]));
            let mut page = collect::page(vec![run]);
            page.runs[0].record = fixture::of("timer", &names);
            assert_eq!(SeriesColours::of(&page).others, count - SERIES.len());
            cpu_ns(|| SeriesColours::of(&page))
        };
        let is_fast = || of(16_000) < 80 * of(1_000);
        assert!(eventually(is_fast), "16000 series take 80 times as long as 1000");
    }
}
