//! From the blocks so far to the rows of the record.

use crate::{
    analysis::ab::{
        comparison::{FigureComparison, compare},
        figure::ComparedFigure,
        looks::LookPlan,
        measured::{MeasuredAs, MeasuredBlock, MeasuredFigure},
        order::Quad,
        power::pairs_to_decide,
        verdict::AbVerdict,
    },
    run::{AbCaveat, AbRecord, Caveat, ComparedFigureRow, ComparedUnit, SideName},
};

/// What a look said.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Judgement {
    /// Each figure.
    pub rows: Vec<ComparedFigureRow>,
    /// Over all of them.
    pub verdict: AbVerdict,
    /// Whether more blocks would not change it.
    pub is_decided: bool,
    /// The standard deviation of a pair's log ratio, for each figure.
    pub sds: Vec<f64>,
}

/// What the blocks so far say at the last look that they are enough for; nothing before the first.
pub(super) fn judge(
    looks: &LookPlan,
    order: &[Quad],
    blocks: &[MeasuredBlock],
    figures: &[ComparedFigure],
    margin: Option<f64>,
) -> Option<Judgement> {
    let first = looks.pairs().first().map_or(0, |pairs| *pairs as usize * 2);
    if blocks.len() < first {
        return None;
    }
    let of = |figure: &ComparedFigure| MeasuredFigure::of(*figure, blocks, first);
    let measured: Vec<MeasuredFigure> = figures.iter().map(of).collect();
    let found = compare(looks, order, &measured, margin)?;
    Some(Judgement {
        rows: found.figures.iter().map(|figure| row(figure, looks.figures())).collect(),
        verdict: found.verdict,
        is_decided: found.is_decided,
        sds: found.figures.iter().map(|figure| figure.result.sd).collect(),
    })
}

pub(super) fn row(found: &FigureComparison, figures: usize) -> ComparedFigureRow {
    let (unit, above_ns) = match found.measured_as {
        MeasuredAs::Latency => (ComparedUnit::Ns, None),
        MeasuredAs::ShareAbove(ns) => (ComparedUnit::Share, Some(ns)),
        MeasuredAs::ShareMissed => (ComparedUnit::Share, None),
    };
    let result = &found.result;
    let needed = || {
        let needed = pairs_to_decide(result.mean, result.sd, found.margin.ln_1p(), figures);
        needed.ok().flatten()
    };
    // Of a difference that changed on the way no number of pairs is known to tell.
    let is_open = !result.is_decided() && !result.contradictory;
    ComparedFigureRow {
        series: None,
        figure: found.figure.name().into(),
        unit,
        above_ns,
        lower_is_better: true,
        a: found.a,
        b: found.b,
        ratio: found.ratio,
        low: Some(found.low),
        high: Some(found.high),
        margin: found.margin,
        floor: Some(found.floor),
        pairs: result.pairs,
        pairs_needed: if is_open { needed() } else { None },
        verdict: result.verdict,
    }
}

/// Notes what a look said, also in the list of looks.
pub(super) fn note(record: &mut AbRecord, judgement: &Judgement) {
    record.figures.clone_from(&judgement.rows);
    record.verdict = judgement.verdict;
    record.floor = judgement.rows.iter().filter_map(|row| row.floor).reduce(f64::max);
    let pairs = judgement.rows.first().map_or(0, |row| row.pairs);
    if let Some(look) = record.looks.iter_mut().find(|look| look.pairs == pairs) {
        look.verdict = Some(judgement.verdict);
    }
}

/// Adds the caveats of a block to those of all blocks, each once a block.
pub(super) fn add_caveats(caveats: &mut Vec<AbCaveat>, side: SideName, found: &[Caveat]) {
    for (number, caveat) in found.iter().enumerate() {
        let is_it = |other: &Caveat| other.code == caveat.code;
        if found.iter().take(number).any(is_it) {
            continue;
        }
        let known = caveats.iter_mut().find(|known| known.code == caveat.code);
        let (a, b) = match side {
            SideName::A => (1, 0),
            SideName::B => (0, 1),
        };
        if let Some(known) = known {
            known.blocks_a += a;
            known.blocks_b += b;
            known.effect = known.effect.max(caveat.effect);
            continue;
        }
        caveats.push(AbCaveat {
            code: caveat.code.clone(),
            effect: caveat.effect,
            blocks_a: a,
            blocks_b: b,
            text: caveat.text.clone(),
            remedy: caveat.remedy.clone(),
        });
    }
    // Worst first; in the order in which they came.
    caveats.sort_by_key(|caveat| std::cmp::Reverse(caveat.effect));
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{
        analysis::ab::{
            ALPHA,
            order::{AbSide, quads},
        },
        run::hlog,
    };

    /// Blocks in the order of `order`, of 2,000 samples from 10 us on; those of B by `shift`
    /// percent higher. No two blocks are quite alike.
    fn blocks(order: &[Quad], shift: u64) -> Vec<MeasuredBlock> {
        let block = |(number, side): (usize, AbSide)| {
            let mut counts = hlog::empty();
            let percent = if side == AbSide::B { 100 + shift } else { 100 };
            let own = [0, 3, 1, 4, 2][number % 5];
            for n in 0..2_000 {
                counts.record((10_000 + 20 * own + 5 * n) * percent / 100).unwrap();
            }
            let max_ns = i64::try_from(counts.max()).unwrap();
            MeasuredBlock { counts, max_ns, periods: 2_000, missed: 0 }
        };
        order.iter().flat_map(|quad| quad.sides()).enumerate().map(block).collect()
    }

    /// Blocks in the order of `order`, of 2,000 samples 1 ms apart. In those of one side a thread
    /// keeps the CPU for 4 ms of each 20 ms, which delays a fifth of the samples.
    pub(in crate::campaign) fn stalled(
        order: &[Quad],
        stalled: Option<AbSide>,
    ) -> Vec<MeasuredBlock> {
        let mut all = blocks(order, 0);
        let sides = order.iter().flat_map(|quad| quad.sides());
        for (block, _) in all.iter_mut().zip(sides).filter(|(_, side)| Some(*side) == stalled) {
            for n in 0..2_000_u64 {
                let left_ms = 4_u64.saturating_sub(n % 20);
                if left_ms > 0 {
                    block.counts.record(left_ms * 1_000_000 - n).unwrap();
                }
            }
            block.max_ns = i64::try_from(block.counts.max()).unwrap();
            block.periods = block.counts.len();
        }
        all
    }

    fn judged(shift: u64) -> Judgement {
        judged_of(|order| blocks(order, shift))
    }

    fn judged_of(blocks: impl Fn(&[Quad]) -> Vec<MeasuredBlock>) -> Judgement {
        let (looks, order) = (LookPlan::new(20, 3, ALPHA).unwrap(), quads(7, 10));
        let figures = crate::analysis::ab::figure::JUDGED_BY_DEFAULT;
        judge(&looks, &order, &blocks(&order), &figures, None).unwrap()
    }

    #[test]
    fn stalls_of_a_that_b_has_not_make_b_better() {
        let verdict = |side| judged_of(|order| stalled(order, side)).verdict;
        assert_eq!(verdict(Some(AbSide::A)), AbVerdict::Better);
        assert_eq!(verdict(Some(AbSide::B)), AbVerdict::Worse);
        assert!(![AbVerdict::Better, AbVerdict::Worse].contains(&verdict(None)));
    }

    #[test]
    fn a_b_that_is_slower_by_a_quarter_is_worse_with_its_rows() {
        let found = judged(25);
        assert_eq!((found.verdict, found.is_decided), (AbVerdict::Worse, true));
        let row = &found.rows[0];
        assert_eq!((row.figure.as_str(), row.unit, row.pairs), ("p50", ComparedUnit::Ns, 20));
        assert!((1.24..1.26).contains(&row.ratio) && row.low > Some(1.2), "{row:?}");
        assert_eq!(row.pairs_needed, None, "it is decided");
        // 2 of 2,000 samples are beyond p99.9.
        let row = &found.rows[2];
        assert_eq!((row.figure.as_str(), row.unit), ("p99.9", ComparedUnit::Share));
        assert!(row.above_ns.is_some_and(|ns| ns > 20_000) && row.ratio > 1.0, "{row:?}");
    }

    #[test]
    fn equal_sides_are_the_same() {
        let found = judged(0);
        assert!(found.rows[..2].iter().all(|row| row.verdict == AbVerdict::Same), "{found:?}");
        assert!(!matches!(found.verdict, AbVerdict::Worse | AbVerdict::Better), "{found:?}");
    }

    #[test]
    fn before_the_first_look_nothing_is_said() {
        let (looks, order) = (LookPlan::new(20, 1, ALPHA).unwrap(), quads(7, 10));
        let few = &blocks(&order, 0)[..7];
        assert_eq!(judge(&looks, &order, few, &[ComparedFigure::P50], None), None);
    }

    #[test]
    fn caveats_are_counted_by_side_and_the_worst_comes_first() {
        use crate::run::Effect;
        let caveat = |code: &str, effect| Caveat {
            code: code.into(),
            effect,
            text: format!("{code} was found"),
            remedy: String::new(),
            values: serde_json::Map::new(),
        };
        let twice = vec![caveat("steal", Effect::Informs); 2];
        let mut all = Vec::new();
        add_caveats(&mut all, SideName::A, &twice);
        let both = [caveat("steal", Effect::Informs), caveat("late", Effect::Weakens)];
        add_caveats(&mut all, SideName::B, &both);
        let found: Vec<_> = all.iter().map(|c| (c.code.as_str(), c.blocks_a, c.blocks_b)).collect();
        assert_eq!(found, [("late", 0, 1), ("steal", 1, 1)]);
    }
}
