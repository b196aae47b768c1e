//! Known tails.

use super::*;

fn drawn(seed: u64, count: usize, of: impl Fn(&mut SplitMix64) -> f64) -> Vec<f64> {
    let mut random = SplitMix64::new(seed);
    (0..count).map(|_| of(&mut random)).collect()
}

const fn pieces(maxima_ns: &[f64]) -> TailPieces<'_> {
    TailPieces { maxima_ns, length_s: 60.0, highest_share: 0.15 }
}

const TIMES: [f64; 3] = [60.0, 3_600.0, 86_400.0];

#[test]
fn levels_of_an_exponential_tail_are_near_the_true_ones() {
    let maxima = drawn(1, 1_000, |random| 20_000.0 - 5_000.0 * random.uniform().ln());
    let model = model(pieces(&maxima), &TIMES, true).unwrap();
    assert!(model.clusters >= FEWEST_CLUSTERS);
    assert!(model.shape.low < 0.0 && 0.0 < model.shape.high, "{model:?}");
    for level in &model.levels {
        // One in n is exceeded by 5 us times ln(n).
        let truth = 20_000.0 + 5_000.0 * (1_000.0 / 60.0 * level.period_s).ln();
        assert!(level.level_ns.low < truth && truth < level.level_ns.high, "{level:?} {truth}");
    }
    let marks: Vec<bool> = model.levels.iter().map(|level| level.is_extrapolation).collect();
    assert_eq!(marks, [false, true, true]);
}

#[test]
fn the_same_values_have_the_same_answer() {
    let maxima = drawn(2, 1_000, |random| 20_000.0 - 5_000.0 * random.uniform().ln());
    let answers = [(); 2].map(|()| model(pieces(&maxima), &TIMES, true));
    assert_eq!(answers[0], answers[1]);
}

#[test]
fn a_heavy_tail_is_refused() {
    let maxima = drawn(3, 1_000, |random| 5_000.0 / random.uniform());
    let found = model(pieces(&maxima), &TIMES, true);
    assert!(matches!(found, Err(Refusal::Heavy(_))), "{found:?}");
}

#[test]
fn few_values_and_unsteady_ones_are_refused() {
    let maxima = drawn(4, 100, |random| 20_000.0 - 5_000.0 * random.uniform().ln());
    let found = model(pieces(&maxima), &TIMES, true);
    assert!(matches!(found, Err(Refusal::FewClusters(_))), "{found:?}");
    assert_eq!(model(pieces(&[]), &TIMES, true), Err(Refusal::FewClusters(0)));
    assert_eq!(model(pieces(&maxima), &TIMES, false), Err(Refusal::Unsteady));
    let same = model(pieces(&[7.0; 900]), &TIMES, true);
    assert!(matches!(same, Err(Refusal::FewClusters(0))), "{same:?}");
}

#[test]
fn a_second_half_that_nobody_foresaw_is_refused() {
    let maxima = drawn(5, 600, |random| 20_000.0 - 5_000.0 * random.uniform().ln());
    let mut outlier = maxima.clone();
    outlier[450] = 900_000.0;
    let clusters = cluster_maxima(&maxima, 24_000.0);
    let candidate = Candidate { threshold: 24_000.0, clusters };
    assert_eq!(candidate.predicts_second_half(pieces(&maxima)), Ok(()));
    let found = candidate.predicts_second_half(pieces(&outlier));
    assert!(matches!(found, Err(Refusal::Unforeseen { max_ns: 900_000.0, .. })), "{found:?}");
    assert!(model(pieces(&outlier), &TIMES, true).is_err());
}
