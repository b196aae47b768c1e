//! Nights of one level against the nights before them: how many pass, and how many are called
//! worse.

use tardy::analysis::nights::{NightFinding, NightLevel, NightQuestion, NightSpread};

use super::{
    processes::normal,
    table::{Effort, markdown, percent},
};

/// By how much nights of one level differ: the standard deviation of the logarithm.
const SPREADS: [f64; 5] = [0.005, 0.01, 0.0125, 0.015, 0.0175];

/// Correlations of neighbouring nights.
const CORRELATIONS: [f64; 3] = [0.0, 0.3, 0.5];

/// Nights before the one that is judged.
const NIGHTS: [usize; 6] = [8, 12, 16, 20, 30, 60];

const FIVE: NightQuestion = NightQuestion { share: 0.05, series: 1 };

/// Shares that pass, by spread and number of nights; and errors at any spread.
pub(super) fn tables(effort: Effort) -> String {
    passing(effort) + &errors(effort)
}

/// A history, and what is said of its last night, which is worse by a share.
fn found(
    (before, sd, correlation): (usize, f64, f64),
    worse: f64,
    effort: Effort,
) -> Vec<NightFinding> {
    let row = format!("nights {before} {sd} {correlation} {worse}");
    effort.repeat(&row, |random| {
        let mut last = normal(random);
        let rest = (1.0 - correlation * correlation).sqrt();
        let mut next = |more: f64| {
            last = correlation * last + rest * normal(random);
            // In ps, so that rounding adds nothing.
            NightLevel::of(&[((sd * last + more).exp() * 5e7) as i64])
        };
        let past: Vec<NightLevel> = (0..before).filter_map(|_| next(0.0)).collect();
        let now: Vec<NightLevel> = next(worse.ln_1p()).into_iter().collect();
        let result = NightSpread::of(&past).and_then(|spread| spread.judge(&now, FIVE));
        result.map_or(NightFinding::Open, |result| result.finding)
    })
}

fn share(found: &[NightFinding], is_it: NightFinding) -> String {
    percent(found.iter().filter(|own| **own == is_it).count(), found.len())
}

fn passing(effort: Effort) -> String {
    let mut rows = Vec::new();
    for sd in SPREADS {
        for correlation in CORRELATIONS {
            let mut row = vec![format!("{}%", 100.0 * sd), correlation.to_string()];
            for nights in NIGHTS {
                let all = found((nights, sd, correlation), 0.0, effort);
                row.push(share(&all, NightFinding::Within));
            }
            rows.push(row);
        }
    }
    let title = format!("Unchanged nights that pass worse<5%, {} histories", effort.repeats);
    let nights = NIGHTS.map(|nights| format!("{nights} nights"));
    let nights = nights.iter().map(String::as_str);
    let head: Vec<&str> = ["nights differ by", "correlation"].into_iter().chain(nights).collect();
    markdown(&title, &head, &rows)
}

fn errors(effort: Effort) -> String {
    let mut rows = Vec::new();
    for sd in [0.01, 0.03, 0.1, 0.5] {
        for correlation in CORRELATIONS {
            for nights in [8, 20, 60] {
                let of = |worse| found((nights, sd, correlation), worse, effort);
                rows.push(vec![
                    format!("{}%", 100.0 * sd),
                    correlation.to_string(),
                    nights.to_string(),
                    share(&of(0.0), NightFinding::Above),
                    share(&of(0.05), NightFinding::Within),
                    share(&of(0.2), NightFinding::Above),
                ]);
            }
        }
    }
    let title = format!("Errors of worse<5%, {} histories", effort.repeats);
    let head = [
        "nights differ by",
        "correlation",
        "nights",
        "unchanged, worse (false)",
        "worse by 5%, passed (false)",
        "worse by 20%, worse",
    ];
    markdown(&title, &head, &rows)
}
