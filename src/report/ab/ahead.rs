//! What a comparison can still find: said before it begins, and after each look.

use super::{estimate, typed};
use crate::{
    analysis::ab::{
        ALPHA,
        figure::ComparedFigure,
        looks::{FEWEST_PAIRS, LookPlan},
        power::smallest_difference,
    },
    report::terminal::fold,
    run::{AbRecord, AbVerdict, ComparedFigureRow, summary::ENOUGH_BEYOND},
    units::{many, share, span},
};

/// Standard deviations of a pair's log ratio, before it is known.
const ASSUMED: [f64; 2] = [0.1, 0.3];

/// The factor by which planned blocks exceed the samples that are needed.
const ROOM: f64 = 1.3;

/// What is planned, and which differences it can find.
#[must_use]
pub fn planned(record: &AbRecord, width: Option<usize>) -> String {
    let looks: Vec<String> = record.looks.iter().map(|look| look.pairs.to_string()).collect();
    let pairs = record.looks.last().map_or(0, |look| look.pairs);
    let block = span(record.block_ns.unwrap_or(0) as f64 / 1e9);
    let mut out = format!(
        "Up to {} of blocks of {block} in {}, judged after {} pairs; order by --seed {}.\n",
        many(u64::from(pairs), "pair"),
        span(record.budget_ns as f64 / 1e9),
        looks.join(", "),
        record.seed,
    );
    let found: Vec<String> = ASSUMED.iter().filter_map(|sd| findable(record, *sd)).collect();
    if let [little, much] = found.as_slice() {
        let [low, high] = ASSUMED.map(share);
        out.push_str(&format!(
            "If pairs have a spread of {low} (standard deviation), a difference of {little} is \
             found in 4 of 5 cases; with {high}, one of {much}. The first interim analysis tells \
             the spread.\n"
        ));
    }
    record.judged.iter().filter_map(|figure| too_short(record, figure)).for_each(|text| {
        out.push_str(&text);
    });
    fold(&out, width)
}

/// The smallest difference that is found in 4 of 5 cases, where pairs scatter so much.
fn findable(record: &AbRecord, sd: f64) -> Option<String> {
    let pairs = record.looks.last()?.pairs;
    let plan = LookPlan::new(pairs, record.judged.len(), ALPHA).ok()?;
    smallest_difference(&plan, record.judged.len(), sd).map(share)
}

/// Says of a percentile that blocks are too short for it, and which budget is enough.
fn too_short(record: &AbRecord, figure: &str) -> Option<String> {
    let share = 1.0 - figure.parse::<ComparedFigure>().ok()?.percent()? / 100.0;
    let trials = record.blocks.iter().filter(|block| !block.compared);
    let per_s = trials.map(|block| block.samples as f64 / (block.measured_ns.max(1) as f64 / 1e9));
    let per_s = per_s.reduce(f64::min)?;
    let (block_ns, pair_ns) = (record.block_ns? as f64, record.pair_ns? as f64);
    if per_s * block_ns / 1e9 * share >= ENOUGH_BEYOND as f64 {
        return None;
    }
    let needed_ns = ENOUGH_BEYOND as f64 * ROOM / share / per_s * 1e9;
    let trials_ns: u64 = record.blocks.iter().map(|block| block.taken_ns).sum();
    let all_ns =
        trials_ns as f64 + f64::from(FEWEST_PAIRS) * (pair_ns - 2.0 * block_ns + 2.0 * needed_ns);
    Some(format!(
        "Blocks are too short for {figure}: shares of samples above one threshold are compared \
         instead. From --budget {} on they are long enough.\n",
        typed(all_ns)
    ))
}

/// What a look said; of the first also what the rest of the budget can find.
#[must_use]
pub fn looked(record: &AbRecord, sds: &[f64], width: Option<usize>) -> String {
    let pairs = record.figures.first().map_or(0, |row| row.pairs);
    let all = record.looks.last().map_or(0, |look| look.pairs);
    let of = |row: &ComparedFigureRow| format!("{} {}", estimate(row), row.verdict.as_str());
    let rows: Vec<String> = record.figures.iter().map(of).collect();
    let mut out = format!("After {pairs} of {all} pairs: {}.\n", rows.join("; "));
    let is_open = |row: &ComparedFigureRow| row.verdict == AbVerdict::Inconclusive;
    let is_first = record.looks.iter().filter(|look| look.verdict.is_some()).count() == 1;
    if is_first && record.figures.iter().any(is_open) {
        let found = record.figures.iter().zip(sds).filter_map(|(row, sd)| {
            Some(format!(
                "{} from {} on (spread of pairs {})",
                row.figure,
                findable(record, *sd)?,
                share(*sd)
            ))
        });
        let found: Vec<String> = found.collect();
        out.push_str(&format!("This budget finds differences of {}.\n", found.join(", ")));
    }
    fold(&out, width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::ab::tests::{record, row};

    #[test]
    fn a_plan_says_what_it_can_find_and_for_what_its_blocks_are_too_short() {
        let rows = [row("p50", 1.0, "same"), row("p99.9", 1.0, "inconclusive")];
        let text = planned(&record("running", "inconclusive", &rows), None);
        assert!(text.contains("Up to 40 pairs of blocks of 1 s in 5 min"), "{text}");
        assert!(text.contains("a spread of 10%"), "{text}");
        // 2 of 10 samples beyond p99.9; 6.5 s have 13. All blocks 8 s, 6 pairs of 3 s and 13 s.
        assert!(text.contains("too short for p99.9") && text.contains("--budget 104s"), "{text}");
        assert!(!text.contains("too short for p50"), "{text}");
        let looked = looked(&record("running", "inconclusive", &rows), &[0.1, 0.3], None);
        assert!(looked.starts_with("After 16 of 40 pairs: p50 +0.0% ("), "{looked}");
        assert!(looked.contains("p99.9 from"), "{looked}");
        assert!(looked.contains("spread of pairs 30%"), "{looked}");
    }
}
