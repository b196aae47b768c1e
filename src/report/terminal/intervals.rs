//! The intervals of percentiles, a row a series.

use super::{DIM, LEAST, PERCENTILE_HEADINGS, push_table};
use crate::{
    report::{
        intervals::{NamedInterval, RunIntervals},
        sample_name,
        table::{Table, us},
    },
    run::{LatencyView, summary::PERCENTILES},
    units::{count, span},
};

/// Blocks that are longer than this hide how late samples group within them, s.
const LONG_BLOCK_S: f64 = 1.0;

/// Of fewer late samples it cannot be told whether they come in groups.
const FEWEST: f64 = 19.5;

/// A note is made of samples that say less than independent ones by this factor.
const MUCH_LESS: f64 = 2.0;

/// Pushes the table, what its marks mean, and how far samples depend on each other.
pub(super) fn push(out: &mut String, known: &RunIntervals, width: Option<usize>) {
    if known.series.is_empty() {
        return;
    }
    let mut headings = vec!["us, 95% interval"];
    headings.extend(PERCENTILE_HEADINGS);
    let mut table = Table::new(1, &headings);
    for series in &known.series {
        let mut row = vec![sample_name::series(&series.name).into_owned()];
        let of = |name: &str| series.percentiles.iter().find(|own| own.percentile == name);
        row.extend(PERCENTILES.map(|(name, _)| of(name).map_or_else(|| "-".into(), interval)));
        table.row(row);
    }
    out.push('\n');
    push_table(out, &table, &LEAST, width);
    notes(known).iter().for_each(|note| out.push_str(&format!("{DIM}{note}{DIM:#}\n")));
    out.push('\n');
}

/// `81.2..84.0`, marked if few samples carry it; `>= 410` without an upper end.
pub fn interval(of: &NamedInterval) -> String {
    let ns = |ns: u64| us(Some(i64::try_from(ns).unwrap_or(i64::MAX)));
    match (of.low_ns, of.high_ns) {
        (Some(low), Some(high)) => {
            format!("{}{}..{}", if of.backing == "few" { "~" } else { "" }, ns(low), ns(high))
        }
        (Some(low), None) => format!(">= {}", ns(low)),
        (None, Some(high)) => format!("<= {}", ns(high)),
        (None, None) => "-".into(),
    }
}

fn notes(known: &RunIntervals) -> Vec<String> {
    let all = || known.series.iter().flat_map(|series| &series.percentiles);
    let mut notes = Vec::new();
    if known.counted == LatencyView::PerPeriod {
        notes.push("per scheduled period, since many were missed".into());
    }
    if all().any(|own| own.backing == "few") {
        notes.push("~ 10 to 19 independent late samples beyond it: uncertain".into());
    }
    if all().any(|own| own.backing == "too_few") {
        notes.push(">= at least: fewer than 10 independent late samples, no upper end".into());
    }
    notes.extend(groups(known));
    if known.block_s > LONG_BLOCK_S {
        let block = span(known.block_s);
        notes.push(format!("how late samples group within {block} is not in the log"));
    }
    notes
}

/// The late samples that say least beside their number.
fn groups(known: &RunIntervals) -> Option<String> {
    let of = |series: &'_ str, own: &NamedInterval| {
        let percent: f64 = own.percentile.parse().ok()?;
        let beyond = own.samples as f64 * (1.0 - percent / 100.0);
        let effective = own.effective_beyond.filter(|_| percent > 50.0 && beyond >= FEWEST)?;
        Some((beyond / effective.max(1e-9), beyond, effective, series.to_owned(), percent))
    };
    let each = known
        .series
        .iter()
        .flat_map(|series| series.percentiles.iter().filter_map(|own| of(&series.name, own)));
    let (_, beyond, effective, series, percent) =
        each.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|most| most.0 > MUCH_LESS)?;
    let effective =
        if effective < 9.95 { format!("{effective:.1}") } else { count(effective as u64) };
    Some(format!(
        "late samples come in groups: on {} the {} beyond p{percent} say as much as \
         {effective} independent ones",
        sample_name::series(&series),
        count(beyond.round() as u64),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::intervals::SeriesIntervals;

    fn named(percentile: &str, ends: (Option<u64>, Option<u64>), beyond: f64) -> NamedInterval {
        NamedInterval {
            percentile: percentile.into(),
            value_ns: 0,
            low_ns: ends.0,
            high_ns: ends.1,
            samples: 20_000,
            effective_beyond: Some(beyond),
            backing: match beyond {
                20.0.. => "sound",
                10.0.. => "few",
                _ => "too_few",
            },
        }
    }

    fn text(percentiles: Vec<NamedInterval>, block_s: f64) -> Vec<String> {
        let series =
            vec![SeriesIntervals { name: "cpu0".into(), percentiles, is_unordered: false }];
        let known = RunIntervals {
            confidence: 0.95,
            block_s,
            counted: LatencyView::PerSample,
            series,
            pooled: None,
            damage: None,
        };
        let mut out = String::new();
        push(&mut out, &known, None);
        let plain = anstream::adapter::strip_str(&out).to_string();
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        plain.lines().map(words).filter(|line| !line.is_empty()).collect()
    }

    #[test]
    fn what_carries_no_upper_end_says_at_least_and_few_samples_are_marked() {
        let lines = text(
            vec![
                named("50", (Some(33_000), Some(35_000)), 9_000.0),
                named("99", (Some(80_000), Some(90_500)), 150.0),
                named("99.9", (Some(160_000), Some(240_000)), 15.0),
                named("99.99", (Some(410_000), None), 1.5),
                named("99.999", (None, None), 0.1),
            ],
            0.1,
        );
        assert_eq!(lines[0], "us, 95% interval p50 p90 p99 p99.9 p99.99 p99.999");
        assert_eq!(lines[1], "cpu0 33.0..35.0 - 80.0..90.5 ~160..240 >= 410 -");
        assert_eq!(
            &lines[2..],
            [
                "~ 10 to 19 independent late samples beyond it: uncertain",
                ">= at least: fewer than 10 independent late samples, no upper end",
            ]
        );
    }

    #[test]
    fn samples_in_groups_and_long_blocks_are_remarked_on() {
        let lines = text(vec![named("99.9", (Some(160_000), None), 2.5)], 86.4);
        assert_eq!(
            &lines[3..],
            [
                "late samples come in groups: on cpu0 the 20 beyond p99.9 say as much as 2.5 \
                 independent ones",
                "how late samples group within 86 s is not in the log",
            ]
        );
        let sound = text(vec![named("99", (Some(1_000), Some(2_000)), 199.0)], 0.1);
        assert_eq!(sound.len(), 2, "{sound:?}");
    }
}
