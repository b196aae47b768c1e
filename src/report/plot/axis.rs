//! Axes: where a value stands, and which values are named. Ticks are 1-2-5 or whole decades, with
//! the names of real units.

use crate::units::count;

/// A value that an axis marks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    /// Where, as a share of the axis.
    pub share: f64,
    /// Its name; empty for a mark between two named ones.
    pub label: String,
}

/// One axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    /// What it shows, with the unit.
    pub title: String,
    /// Smallest value.
    low: f64,
    /// Largest value.
    high: f64,
    is_log: bool,
    /// Its marks, ascending.
    pub ticks: Vec<Tick>,
}

impl Axis {
    /// Latencies in ns on a log scale that is `length` long, each name `each`.
    #[must_use]
    pub(super) fn latency(title: &str, low_ns: f64, high_ns: f64, length: f64, each: f64) -> Self {
        // A factor of six holds two names of 1-2-5 wherever it lies.
        let spread = (6.0 / (high_ns / low_ns)).sqrt().max(1.0);
        let mut axis = Self::log(title, low_ns / spread, high_ns * spread);
        axis.mark_decades(length, each, time_name);
        axis
    }

    /// Counts from 1 on a log scale.
    #[must_use]
    pub(super) fn counts(title: &str, most: u64, length: f64) -> Self {
        let mut axis = Self::log(title, 0.7, (most as f64 * 1.3).max(10.0));
        axis.mark_decades(length, 22.0, |value| {
            if value < 0.9 { String::new() } else { count(value.round() as u64) }
        });
        axis
    }

    /// Counts as the colours of a heat map count them: decades, and the largest of all.
    #[must_use]
    pub(super) fn shares(title: &str, most: u64) -> Self {
        let high = most.max(1) as f64;
        let mut axis = Self::log(title, 1.0, high.max(1.0 + 1e-9));
        let decades =
            (0..=18).map(|power| 10_f64.powi(power)).take_while(|value| value * 1.3 < high);
        let mut values: Vec<f64> = decades.collect();
        values.push(high);
        axis.ticks =
            axis.ticks_at(values.into_iter().map(|value| (value, count(value as u64))).collect());
        axis
    }

    /// Ratios on a log scale, with 1 in their middle.
    #[must_use]
    pub(super) fn ratios(title: &str, reach: f64, length: f64) -> Self {
        let mut axis = Self::log(title, 1.0 / reach, reach);
        // Names in even steps of the ratio, unless it goes over many.
        if reach > 3.0 {
            axis.mark_decades(length, 22.0, |value| format!("{}", (value * 1e6).round() / 1e6));
            return axis;
        }
        let step = round_step((reach - 1.0 / reach) * 26.0 / length);
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let (first, last) = ((1.0 / reach / step).ceil() as u32, (reach / step).floor() as u32);
        let value = |number: u32| f64::from(number) * step;
        let tick = |number| (value(number), format!("{:.decimals$}", value(number)));
        axis.ticks = axis.ticks_at((first..=last).map(tick).collect());
        axis
    }

    /// Percentiles in "nines": from 50% to `most` nines.
    #[must_use]
    pub(super) fn nines(title: &str, most: f64, length: f64) -> Self {
        let mut axis = Self {
            title: title.into(),
            low: NINES_FROM,
            high: most.max(1.0),
            is_log: false,
            ticks: Vec::new(),
        };
        let median = 2_f64.log10();
        let every = (60.0 * (axis.high - axis.low) / length).ceil().max(1.0) as u32;
        let mut values = vec![(median, "50%".to_owned())];
        for nines in 1..=axis.high as u32 {
            let is_named = (nines - 1).is_multiple_of(every);
            values
                .push((f64::from(nines), if is_named { nines_name(nines) } else { String::new() }));
        }
        axis.ticks = axis.ticks_at(values);
        axis
    }

    /// Seconds since the start, from one moment to another, in the unit that fits.
    #[must_use]
    pub(super) fn time(from_s: f64, to_s: f64, length: f64) -> Self {
        let to_s = to_s.max(from_s + 1e-3);
        let span_s = to_s - from_s;
        let (unit_s, unit) = match span_s {
            _ if span_s >= 7200.0 => (3600.0, "h"),
            _ if span_s >= 120.0 => (60.0, "min"),
            _ if to_s >= 2.0 => (1.0, "s"),
            _ => (1e-3, "ms"),
        };
        // Names of more than three digits need more room.
        let each = 62.0 + 6.0 * ((to_s / unit_s).log10() - 3.0).max(0.0);
        let step = round_step(span_s / unit_s * each / length);
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let title = format!("time since the start ({unit})");
        let mut axis = Self { title, low: from_s, high: to_s, is_log: false, ticks: Vec::new() };
        let first = (from_s / unit_s / step - 1e-9).ceil();
        let steps = (to_s / unit_s / step + 1e-9).floor() - first;
        let value = |number: u32| (first + f64::from(number)) * step;
        let tick = |number| (value(number) * unit_s, format!("{:.decimals$}", value(number)));
        axis.ticks = axis.ticks_at((0..=steps.max(0.0) as u32).map(tick).collect());
        axis
    }

    /// Where a value stands, as a share of the axis; nothing is outside.
    #[must_use]
    pub(super) fn share(&self, value: f64) -> f64 {
        // A ratio may be smaller than the smallest latency that is drawn, 0.001 ns.
        let least = if self.low > 0.0 { self.low.min(1e-3) } else { 1e-3 };
        let place = |value: f64| if self.is_log { value.max(least).log10() } else { value };
        let (low, high) = (place(self.low), place(self.high));
        ((place(value) - low) / (high - low)).clamp(0.0, 1.0)
    }

    fn log(title: &str, low: f64, high: f64) -> Self {
        Self { title: title.into(), low, high, is_log: true, ticks: Vec::new() }
    }

    fn decades(&self) -> f64 {
        (self.high / self.low).log10()
    }

    fn mark_decades(&mut self, length: f64, each: f64, name: fn(f64) -> String) {
        let decade = length / self.decades();
        // Between 1, 2 and 5 the narrowest step is log10(2) of a decade.
        let named: &[u32] = if decade * 0.3 >= each { &[1, 2, 5] } else { &[1] };
        let every = (each / decade).ceil().max(1.0) as i32;
        let marked = if decade >= 30.0 { 1..=9 } else { 1..=1 };
        let mut values = Vec::new();
        for power in self.low.log10().floor() as i32..=self.high.log10().ceil() as i32 {
            for digit in marked.clone() {
                let value = f64::from(digit) * 10_f64.powi(power);
                let is_named = named.contains(&digit) && power.rem_euclid(every) == 0;
                values.push((value, if is_named { name(value) } else { String::new() }));
            }
        }
        self.ticks = self.ticks_at(values);
    }

    fn ticks_at(&self, values: Vec<(f64, String)>) -> Vec<Tick> {
        let slack = 1e-9;
        let inside =
            |value: f64| value >= self.low * (1.0 - slack) && value <= self.high * (1.0 + slack);
        let inside = values.into_iter().filter(|(value, _)| inside(*value));
        inside.map(|(value, label)| Tick { share: self.share(value), label }).collect()
    }
}

/// Where a percentile axis begins: just below the median, in nines.
pub(super) const NINES_FROM: f64 = 0.3;

/// 1, 2 or 5 of a power of ten, at least `least`.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.max(1e-9).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    steps.into_iter().find(|step| *step >= least * (1.0 - 1e-9)).unwrap_or(power * 10.0)
}

/// `10 us`: a tick of a time in ns.
fn time_name(ns: f64) -> String {
    let (unit_ns, unit) = match ns {
        _ if ns >= 0.99e9 => (1e9, "s"),
        _ if ns >= 0.99e6 => (1e6, "ms"),
        _ if ns >= 0.99e3 => (1e3, "us"),
        _ => (1.0, "ns"),
    };
    let value = ns / unit_ns;
    if value < 0.99 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}

/// `99.9%` for three nines.
fn nines_name(nines: u32) -> String {
    match nines {
        0 => "0%".into(),
        1 => "90%".into(),
        2 => "99%".into(),
        _ => format!("99.{}%", "9".repeat(nines as usize - 2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|tick| tick.label.as_str()).filter(|name| !name.is_empty()).collect()
    }

    #[test]
    fn latencies_are_named_by_decades_or_1_2_5_with_real_units() {
        let long = Axis::latency("", 900.0, 1.2e9, 400.0, 22.0);
        assert_eq!(names(&long), ["1 us", "10 us", "100 us", "1 ms", "10 ms", "100 ms", "1 s"]);
        let short = Axis::latency("", 1.9e4, 1.1e5, 400.0, 22.0);
        assert_eq!(names(&short), ["20 us", "50 us", "100 us"]);
        let one_value = Axis::latency("", 4.0e3, 4.0e3, 400.0, 22.0);
        assert_eq!(names(&one_value), ["2 us", "5 us"]);
        let narrow = Axis::latency("", 1.0, 3.6e12, 120.0, 60.0);
        assert!(names(&narrow).len() <= 3, "{:?}", names(&narrow));
    }

    #[test]
    fn nines_counts_and_times_have_plain_names() {
        let nines = Axis::nines("", 5.0, 700.0);
        assert_eq!(names(&nines), ["50%", "90%", "99%", "99.9%", "99.99%", "99.999%"]);
        assert_eq!(names(&Axis::counts("", 12_000, 200.0)), ["1", "10", "100", "1,000", "10,000"]);
        let ten = Axis::time(0.0, 10.0, 700.0);
        assert_eq!(names(&ten), ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]);
        assert_eq!(names(&Axis::time(0.0, 0.9, 300.0)), ["0", "200", "400", "600", "800"]);
        assert_eq!(names(&Axis::time(0.0, 86_400.0, 500.0)), ["0", "5", "10", "15", "20"]);
        assert_eq!(names(&Axis::time(0.0, 0.0, 500.0)).first(), Some(&"0.0"));
    }

    #[test]
    fn a_ratio_far_below_one_stands_at_its_place_and_one_in_the_middle() {
        let axis = Axis::ratios("", 10_000.0, 400.0);
        let near = |ratio: f64, share: f64| (axis.share(ratio) - share).abs() < 1e-9;
        assert!(near(1.0, 0.5) && near(0.01, 0.25) && near(0.0001, 0.0) && near(10_000.0, 1.0));
    }

    #[test]
    fn an_axis_that_begins_late_names_round_moments_within_it() {
        let late = Axis::time(5.5, 9.0, 300.0);
        assert_eq!(names(&late), ["6", "7", "8", "9"]);
        assert_eq!((late.share(5.5), late.share(9.0)), (0.0, 1.0));
        let deep = Axis::time(3_605.0, 3_605.4, 500.0);
        assert_eq!(names(&deep), ["3605.0", "3605.1", "3605.2", "3605.3", "3605.4"]);
        assert!(deep.title.ends_with("(s)"), "{}", deep.title);
    }

    #[test]
    fn what_lies_outside_is_at_the_edge() {
        let axis = Axis::latency("", 1e3, 1e6, 400.0, 22.0);
        assert_eq!((axis.share(0.0), axis.share(1e12)), (0.0, 1.0));
        assert!((axis.share(31_622.8) - 0.5).abs() < 1e-4);
    }
}
