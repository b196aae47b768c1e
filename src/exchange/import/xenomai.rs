//! The output of Xenomai's and EVL's `latency` (`latmus` prints the same lines).
//!
//! ```text
//! RTH|----lat min|----lat avg|----lat max|-overrun|---msw|---lat best|--lat worst
//! RTD|      1.615|      1.923|      9.630|       0|     0|      1.615|      9.630
//! ---|--param|----range-|--samples
//! HSD|    avg|   1 -  2 |   98721
//! HSH|--param|--samples-|--average--|---stddev--
//! HSS|    avg|     99993|      1.480|      0.610
//! RTS|      1.615|      2.010|     12.410|       0|     0|    00:00:10/00:00:10
//! ```
//!
//! A line `RTD` is one second, in us, or in ns where numbers are whole (of 2005); `lat best` and
//! `lat worst` are those of the run so far. `RTS` is all of the run, also where lines `RTD` were
//! left out of a report. With `-h` the rows `HSD|avg|` count every sample by its absolute value, in
//! cells of 1 us unless `-B` says another size, which nothing prints; the last cell has all that is
//! longer, too. Rows `min` and `max` are of the extremes of each second. Without `-h` and `-s` no
//! line says how many samples there are: the period is in the head.

use std::collections::BTreeMap;

use super::{
    ImportOptions,
    imported_data::ImportedData,
    source::{ImportError, Source},
    stated::Stated,
    times::decimal,
};
use crate::{
    limits::import::MOST_COLUMNS,
    plain::cut,
    run::{FileLoss, ImportCaveat},
    units::many,
};

/// The size of a cell of the histogram where `-B` does not say another, ns.
const CELL_NS: i64 = 1_000;

/// Whether it begins as such a file does. With `-q` it has a line `RTS` alone.
pub(super) fn matches_format(head: &str) -> bool {
    head.lines().any(|line| {
        let is_heading = line.starts_with("RTH|") && line.contains("lat max");
        is_heading || (line.starts_with("RTS|") && line.split('|').count() >= 6)
    })
}

/// Smallest, mean and largest, ns, and what is counted beside them.
#[derive(Debug, Clone, Copy)]
struct Latencies {
    values: [i64; 3],
    overruns: u64,
    switches: u64,
}

/// The line `RTS`.
#[derive(Debug, Clone, Copy)]
struct WholeRun {
    latencies: Latencies,
    seconds: u64,
}

/// What is read of a file.
#[derive(Debug, Default)]
struct Found {
    period_us: Option<u64>,
    /// Whether it says that it is in us.
    are_us: bool,
    /// Lines `RTD`, their smallest and largest, and the sum of their means, ns.
    seconds: u64,
    ends: Option<(i64, i64)>,
    sum: i64,
    overruns: u64,
    switches: u64,
    last_since: String,
    is_over: bool,
    whole: Option<WholeRun>,
    /// Samples of each cell of the histogram of all of them.
    cells: BTreeMap<i64, u64>,
    last_cell_line: u64,
    /// How many samples its statistics say there are.
    counted: Option<u64>,
}

/// Reads it.
pub(super) fn read(
    source: &mut Source<'_>,
    _options: &ImportOptions,
) -> Result<ImportedData, ImportError> {
    let mut sheet = ImportedData::new("latency (Xenomai)", Some("timer"));
    let series = sheet.series("all", None)?;
    let mut found = Found::default();
    while let Some((number, line)) = source.text()? {
        found.take(number, &line).map_err(|what| ImportError::at(number, what))?;
    }
    found.put(&mut sheet, series)?;
    Ok(sheet)
}

impl Found {
    fn take(&mut self, number: u64, line: &str) -> Result<(), String> {
        self.period_us = self.period_us.or_else(|| period(line));
        self.are_us |= line.contains("results in microseconds");
        let mut fields = line.split('|').map(str::trim);
        let kind = fields.next().unwrap_or_default();
        let fields: Vec<&str> = fields.take(MOST_COLUMNS).collect();
        match (kind, &fields[..]) {
            ("RTT", [since, ..]) => {
                // Since its start: `00:00:21`.
                let since = since.split_whitespace().next().unwrap_or_default().to_owned();
                self.is_over |= since < self.last_since;
                self.last_since = since;
            }
            ("RTH", [_, mean, largest, ..])
                if !mean.contains("avg") || !largest.contains("max") =>
            {
                return Err("columns lat min, lat avg and lat max were expected, one after the \
                            other"
                    .into());
            }
            ("RTD", _) => self.second(&fields)?,
            ("RTS", _) => self.whole_run(&fields)?,
            ("HSD", ["avg", range, count]) => self.cell(number, range, count)?,
            ("HSS", ["avg", count, ..]) => self.counted = count.parse().ok(),
            _ => (),
        }
        Ok(())
    }

    fn latencies(&self, fields: &[&str]) -> Option<Latencies> {
        let ns = |field: &&str| match field.contains('.') || self.are_us {
            true => decimal(field, 3),
            false => decimal(field, 0),
        };
        let values = [ns(fields.first()?)?, ns(fields.get(1)?)?, ns(fields.get(2)?)?];
        let count = |at: usize| fields.get(at).and_then(|field| field.parse().ok()).unwrap_or(0);
        // Files of 2005 have no mode switches; then a latency or the length is there.
        Some(Latencies { values, overruns: count(3), switches: count(4) })
    }

    fn second(&mut self, fields: &[&str]) -> Result<(), String> {
        let what = "a line RTD has smallest, mean and largest, us";
        // Overruns are those of the run so far.
        let before = |overruns: u64| overruns < self.overruns;
        let own = fields.get(3).and_then(|field| field.parse().ok());
        if self.is_over || own.is_some_and(before) {
            return Err(SECOND.into());
        }
        let own = self.latencies(fields).ok_or(what)?;
        let [mut low, mean, mut high] = own.values;
        if let [_, _, _, _, .., best, worst] = fields
            && let Some(so_far) = self.latencies(&[best, "0", worst])
        {
            (low, high) = (low.min(so_far.values[0]), high.max(so_far.values[2]));
        }
        let (min, max) = self.ends.unwrap_or((low, high));
        self.ends = Some((min.min(low), max.max(high)));
        self.sum = self.sum.saturating_add(mean);
        self.overruns = self.overruns.max(own.overruns);
        if fields.len() >= 7 {
            self.switches = self.switches.max(own.switches);
        }
        self.seconds += 1;
        Ok(())
    }

    fn whole_run(&mut self, fields: &[&str]) -> Result<(), String> {
        if self.whole.is_some() {
            return Err(SECOND.into());
        }
        let what = "a line RTS has smallest, mean and largest, us, and the length of the run";
        let latencies = self.latencies(fields).ok_or(what)?;
        let seconds = fields.last().and_then(|length| seconds(length)).ok_or(what)?;
        let us = |ns: i64| ns as f64 / 1e3;
        let values = latencies.values.map(|ns| Some(us(ns)));
        let stated = Stated { of: "RTS", names: ["lat min", "lat avg", "lat max"], values };
        stated.ordered()?;
        let [min, _, max] = latencies.values;
        if let Some((low, high)) = self.ends.filter(|(low, high)| min > *low || max < *high) {
            let (name, own, than, other) = match max < high {
                true => ("lat max", max, "below", high),
                false => ("lat min", min, "above", low),
            };
            let (own, other) = (us(own), us(other));
            return Err(format!(
                "RTS: {name} {own:.3} is {than} {other:.3}, which a line RTD has: the file \
                 contradicts itself"
            ));
        }
        self.whole = Some(WholeRun { latencies, seconds });
        self.is_over = true;
        Ok(())
    }

    fn cell(&mut self, number: u64, range: &str, count: &str) -> Result<(), String> {
        let cell = range.split_once('-').and_then(|(from, _)| from.trim().parse().ok());
        let cell = cell.filter(|cell| (0..1 << 40).contains(cell)).zip(count.parse().ok());
        let (cell, count) = cell.ok_or_else(|| {
            let (range, count) = (cut(range, 40), cut(count, 40));
            format!("\"{range}| {count}\" is not a row of its histogram (1 - 2 | 98721)")
        })?;
        self.last_cell_line = number;
        match self.cells.insert(cell, count) {
            Some(_) => Err(format!("the histogram has a second row {cell}")),
            None => Ok(()),
        }
    }

    fn put(&self, sheet: &mut ImportedData, series: usize) -> Result<(), ImportError> {
        let seconds = self.whole.map_or(0, |whole| whole.seconds).max(self.seconds);
        let values = self.values();
        let (Some(period_us), Some(values)) = (self.period_us, values.filter(|_| seconds > 0))
        else {
            let what = "a line with its period (\"Sampling period: 100 us\", \"RTT| ... 1000 us \
                        period\") and lines RTD or RTS were expected, and one of these is missing";
            return Err(ImportError::new(what));
        };
        if self.cells.is_empty() {
            let estimated = seconds.saturating_mul(1_000_000 / period_us).max(1);
            sheet.summary(series, self.counted.unwrap_or(estimated), values);
            if self.counted.is_none() {
                sheet.caveats.push(ImportCaveat::CountsEstimated { samples: estimated });
            }
        } else {
            let put = self.histogram(sheet, series, values);
            put.map_err(|what| ImportError::at(self.last_cell_line, what))?;
        }
        sheet.parameter("interval_ns", period_us.saturating_mul(1_000));
        sheet.duration_ns = seconds.checked_mul(1_000_000_000);
        let whole = self.whole.map(|whole| whole.latencies);
        let switches = whole.map_or(0, |whole| whole.switches).max(self.switches);
        if switches > 0 {
            sheet.parameter("mode_switches", switches);
        }
        let overruns = whole.map_or(0, |whole| whole.overruns).max(self.overruns);
        if overruns > 0 {
            let what = many(overruns, "overrun");
            sheet.caveats.push(ImportCaveat::Loss(FileLoss::Stated { what }));
        }
        Ok(())
    }

    /// Smallest, mean and largest of the run: those of `RTS`, else of the lines `RTD`.
    fn values(&self) -> Option<[i64; 3]> {
        let of_lines = || {
            let (min, max) = self.ends?;
            Some([min, self.sum / i64::try_from(self.seconds).ok()?, max])
        };
        self.whole.map(|whole| whole.latencies.values).or_else(of_lines)
    }

    /// Adds the samples of the histogram, whose extremes and mean are known.
    fn histogram(
        &self,
        sheet: &mut ImportedData,
        series: usize,
        [min, mean, max]: [i64; 3],
    ) -> Result<(), String> {
        let Some((last, in_last)) = self.cells.last_key_value() else { return Ok(()) };
        let largest = min.saturating_abs().max(max.saturating_abs());
        let is_last_full = largest / CELL_NS > *last;
        if largest / CELL_NS < *last || !self.fits(mean, largest, min) {
            return Err(format!(
                "cells of 1 us do not go with smallest, mean and largest ({:.3}, {:.3} and {:.3} \
                 us): latency -B used another size, which the file does not state; without its \
                 lines HSD the rest can be imported",
                min as f64 / 1e3,
                mean as f64 / 1e3,
                max as f64 / 1e3
            ));
        }
        for (cell, count) in self.cells.iter().filter(|(cell, _)| !is_last_full || *cell != last) {
            // What is larger than the largest is before its time by as much.
            let sign = if *cell > max / CELL_NS { -1 } else { 1 };
            sheet.add(series, sign * cell.saturating_mul(CELL_NS), *count);
        }
        if is_last_full {
            sheet.hidden(series, *in_last, last.saturating_mul(CELL_NS), largest);
        }
        if let Some(own) = sheet.series.get_mut(series).filter(|own| own.totals.count > 0) {
            (own.totals.min_ns, own.totals.max_ns) = (min, max);
            sheet.set_mean(series, mean);
        }
        if let Some(counted) = self.counted {
            sheet.check_count(series, counted);
        }
        if min <= -CELL_NS {
            let kinds = "wake-ups before their time and after it, by absolute value";
            sheet.caveats.push(ImportCaveat::KindsPooled { kinds });
        }
        sheet.caveats.push(ImportCaveat::LatenciesRounded { step_ns: CELL_NS, down: true });
        Ok(())
    }

    /// Whether the mean of the whole run, if it is known, can be that of cells of this size. The
    /// mean is one of means of seconds, so that a cell is the tolerance.
    fn fits(&self, mean: i64, largest: i64, min: i64) -> bool {
        let Some((last, _)) = self.cells.last_key_value() else { return true };
        if self.whole.is_none() {
            return true;
        }
        let (mut count, mut lower, mut upper) = (0_i128, 0_i128, 0_i128);
        for (cell, own) in &self.cells {
            let (own, from) = (i128::from(*own), i128::from(*cell) * i128::from(CELL_NS));
            let next = from + i128::from(CELL_NS);
            let to = if cell == last { next.max(i128::from(largest)) } else { next };
            (count, lower, upper) = (count + own, lower + own * from, upper + own * to);
        }
        // Samples below 0 count by their absolute value.
        let folded = 2 * i128::from(min.min(0).saturating_neg());
        let (mean, room) = (i128::from(mean) * count, i128::from(CELL_NS) * count);
        mean >= lower - room - folded * count && mean <= upper + room
    }
}

const SECOND: &str = "a second run begins before this line: import one file for each";

/// `00:01:30/00:02:00`, of which the first is how long it ran.
fn seconds(text: &str) -> Option<u64> {
    let mut seconds = 0_u64;
    let mut parts = 0;
    for part in text.split('/').next()?.trim().split(':') {
        seconds = seconds.checked_mul(60)?.checked_add(part.trim().parse().ok()?)?;
        parts += 1;
    }
    (parts == 3 && seconds < 1 << 33).then_some(seconds)
}

/// `== Sampling period: 100 us`, or `RTT|  00:00:01  (user, 1000 us period, priority 90, CPU1)`.
fn period(line: &str) -> Option<u64> {
    let number = match line.split_once("Sampling period:") {
        Some((_, rest)) => {
            let mut words = rest.split_whitespace();
            words.next().filter(|_| words.next() == Some("us"))?
        }
        None => line.split_once(" us period")?.0.rsplit([' ', ',', '(']).next()?,
    };
    number.parse().ok().filter(|us| (1..=1_000_000).contains(us))
}

#[cfg(test)]
mod tests {
    use crate::exchange::import::tests::{caveats, series, text};

    const LATENCY: &str = "== Sampling period: 100 us\n== Test mode: periodic user-mode task\n\
        == All results in microseconds\nwarming up...\n\
        RTT|  00:00:01  (periodic user-mode task, 100 us period, priority 99)\n\
        RTH|----lat min|----lat avg|----lat max|-overrun|---msw|---lat best|--lat worst\n\
        RTD|      1.615|      1.923|      9.630|       0|     0|      1.615|      9.630\n\
        RTD|     -0.302|      2.077|     12.410|       0|     0|     -0.302|     12.410\n\
        ---|-----------|-----------|-----------|--------|------|-------------------------\n\
        RTS|     -0.302|      2.000|     12.410|       0|     0|    00:00:02/00:00:02\n";

    #[test]
    fn the_seconds_make_a_summary_whose_count_is_an_estimate() {
        let sheet = text(LATENCY).unwrap();
        assert_eq!(series(&sheet), [("all", 20_000, -302, 12_410)]);
        assert_eq!(sheet.series[0].totals.sum_ns, 2_000 * 20_000);
        let said = caveats(&sheet);
        assert!(said.contains("counts_estimated") && said.contains("no_distribution"), "{said}");
    }

    fn mean_ns(sheet: &crate::exchange::import::ImportedData) -> i64 {
        let totals = &sheet.series[0].totals;
        totals.sum_ns / i64::try_from(totals.count).unwrap()
    }

    /// Without its second line RTD, as in reports that show a part of the lines.
    fn shortened() -> String {
        let lines = LATENCY.lines().filter(|line| !line.starts_with("RTD|     -0.302"));
        lines.map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn the_line_of_the_whole_run_counts_where_seconds_were_left_out() {
        let sheet = text(&shortened()).unwrap();
        assert_eq!(series(&sheet), [("all", 20_000, -302, 12_410)]);
        assert_eq!((mean_ns(&sheet), sheet.duration_ns), (2_000, Some(2_000_000_000)));
        let counted =
            shortened().replace("12.410|       0|     0|    00", "12.410|       3|     2|    00");
        let sheet = text(&counted).unwrap();
        assert!(caveats(&sheet).contains("3 overruns"), "{}", caveats(&sheet));
        assert_eq!(sheet.parameters["mode_switches"], 2);
        let quiet: String = LATENCY
            .lines()
            .filter(|line| !line.starts_with("RTD|") && !line.starts_with("RTH|"))
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(series(&text(&quiet).unwrap()), [("all", 20_000, -302, 12_410)], "-q");
        let killed = shortened().replace("     1.615|      9.630\n", "    -7.000|     88.250\n");
        let killed = &killed[..killed.find("---|").unwrap()];
        assert_eq!(series(&text(killed).unwrap()), [("all", 10_000, -7_000, 88_250)]);
    }

    #[test]
    fn a_whole_run_that_its_seconds_contradict_is_refused_by_line() {
        for (from, to, said) in [
            ("2.000|     12.410", "2.000|      9.000", "lat max 9.000 is below 12.410, which a"),
            ("RTS|     -0.302", "RTS|      0.302", "lat min 0.302 is above -0.302, which a line"),
            ("2.000|     12.410", "99.000|     12.410", "lat avg 99 is above lat max 12.41: the"),
        ] {
            let error = text(&LATENCY.replace(from, to)).unwrap_err().to_string();
            assert!(error.starts_with(&format!("line 10: RTS: {said}")), "{error}");
        }
        let twice = format!("{LATENCY}{}", LATENCY.lines().last().unwrap());
        let error = text(&twice).unwrap_err().to_string();
        assert!(error.starts_with("line 11: a second run"), "{error}");
    }

    #[test]
    fn whole_numbers_of_the_first_versions_are_nanoseconds() {
        let old = "== Sampling period: 100 us\nRTT|  00:00:01\n\
            RTH|-----lat min|-----lat avg|-----lat max|-overrun|----lat best|---lat worst\n\
            RTD|        1615|        1923|        9630|       0|        1615|        9630\n\
            RTS|        1600|        1923|       10630|       0|    00:00:02/00:00:02\n";
        let sheet = text(old).unwrap();
        assert_eq!(series(&sheet), [("all", 20_000, 1_600, 10_630)]);
        assert!(!sheet.parameters.contains_key("mode_switches"));
        let rtai = "RTH|    lat min|    ovl min|    lat avg|    lat max|    ovl max|   overruns\n";
        let error = text(rtai).unwrap_err().to_string();
        assert!(error.starts_with("line 1: columns lat min, lat avg and lat max"), "{error}");
    }

    /// With `-h`: the histogram of all samples, whose last cell has those that are longer.
    const CELLS: &str = "---|--param|----range-|--samples\nHSD|    min|   0 -  1 |        2\n\
        HSD|    avg|   0 -  1 |      100\nHSD|    avg|   1 -  2 |    15000\n\
        HSD|    avg|   2 -  3 |     4000\nHSD|    avg|  12 - 13 |      893\n\
        HSD|    max|  12 - 13 |        1\nHSH|--param|--samples-|--average--|---stddev--\n\
        HSS|    min|         2|      0.000|      0.000\nHSS|    avg|     19993|      1.690|  0.3\n";

    fn with_cells(cells: &str) -> String {
        LATENCY.replacen("---|-----------|", &format!("{cells}---|-----------|"), 1)
    }

    #[test]
    fn the_histogram_of_all_samples_is_read_and_no_count_estimated() {
        let sheet = text(&with_cells(CELLS)).unwrap();
        assert_eq!(series(&sheet), [("all", 19_993, -302, 12_410)]);
        assert_eq!(mean_ns(&sheet), 2_000);
        let counts = sheet.counts(0);
        let middle = [0.5, 0.9, 0.99].map(|quantile| counts.value_at_quantile(quantile));
        assert_eq!(middle.map(|ns| ns / 100), [10, 20, 120]);
        let said = caveats(&sheet);
        for code in ["no_distribution", "counts_estimated", "counts_differ", "latencies_hidden"] {
            assert!(!said.contains(code), "{said}");
        }
        assert!(said.contains("latencies_rounded"), "{said}");
        // `-s` prints how many there are, and not the rows.
        let statistics: String = CELLS
            .lines()
            .filter(|line| line.starts_with("HS") && !line.starts_with("HSD"))
            .map(|line| format!("{line}\n"))
            .collect();
        let sheet = text(&with_cells(&statistics)).unwrap();
        assert_eq!(series(&sheet), [("all", 19_993, -302, 12_410)]);
        let said = caveats(&sheet);
        assert!(said.contains("no_distribution") && !said.contains("counts_estimated"), "{said}");
    }

    #[test]
    fn the_last_cell_has_what_is_longer_and_cells_of_another_size_are_refused() {
        let short = CELLS.replace("|  12 - 13 |", "|   7 -  8 |");
        let sheet = text(&with_cells(&short)).unwrap();
        assert_eq!(series(&sheet), [("all", 19_993, -302, 12_410)]);
        let said = caveats(&sheet);
        assert!(
            said.contains("893 of 19,993 samples on all lie beyond the last bin, at 7.00 us"),
            "{said}"
        );
        let narrow = CELLS.replace("|  12 - 13 |", "|  24 - 25 |");
        let error = text(&with_cells(&narrow)).unwrap_err().to_string();
        assert!(error.contains("latency -B used another size"), "{error}");
        let odd = CELLS.replace("1 -  2 |    15000", "1 -  2 |    x");
        let error = text(&with_cells(&odd)).unwrap_err().to_string();
        assert!(error.starts_with("line 12: \"1 -  2| x\" is not a row"), "{error}");
        let early = with_cells(CELLS).replace("-0.302", "-1.571");
        assert!(caveats(&text(&early).unwrap()).contains("kinds_pooled"));
        let before = early.replace("-1.571", "-12.410").replace(" 12.410", "  2.900");
        let sheet =
            text(&before.replace("9.630", "2.900").replace("2.000|  ", "1.000|  ")).unwrap();
        assert_eq!(series(&sheet), [("all", 19_993, -12_410, 2_900)]);
        assert_eq!(sheet.series[0].totals.early, 893);
        let more = CELLS.replace("|     19993|", "|     19994|");
        assert!(caveats(&text(&with_cells(&more)).unwrap()).contains("states 19,994 samples"));
    }

    #[test]
    fn a_cut_or_odd_line_is_refused() {
        let odd = LATENCY.replace("12.410|       0|     0|     -0.302", "x|0|0|0");
        let error = text(&odd).unwrap_err().to_string();
        assert!(error.starts_with("line 8: a line RTD"), "{error}");
        let without = LATENCY.replace("eriod", "erio");
        assert!(text(&without).unwrap_err().to_string().contains("with its period"));
    }
}
