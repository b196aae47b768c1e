//! Two sets of numbers by their ranks: does one tend to be larger, and by how much?
//!
//! Mann and Whitney's test (Annals of Mathematical Statistics 18, 1947, p. 50), exact: over all
//! ways to divide the numbers into two such sets, with equal numbers sharing their mean rank. The
//! interval is that of Hodges and Lehmann (Annals of Mathematical Statistics 34, 1963, p. 598):
//! shifts that the test would not reject. From `EXACT` numbers on the normal distribution stands
//! for the exact one, with its variance reduced by equal numbers (Lehmann, Nonparametrics, 1975,
//! section 1.4).

use crate::analysis::distributions::{normal_tail, normal_upper};

/// Sets with more numbers together are tested by the normal distribution.
const EXACT: usize = 60;

/// The probability of ranks at least as far apart, if both sets come from one distribution.
#[must_use]
pub fn probability(a: &[f64], b: &[f64]) -> f64 {
    let ranks = doubled_ranks(a, b);
    let own: usize = ranks.iter().take(a.len()).sum();
    if ranks.len() > EXACT {
        return by_normal(&ranks, a.len(), own);
    }
    let ways = ways(&ranks, a.len());
    let all: f64 = ways.iter().sum();
    let share = |part: &[f64]| part.iter().sum::<f64>() / all;
    let below = ways.get(..=own).map_or(1.0, share);
    let above = ways.get(own..).map_or(1.0, share);
    (2.0 * below.min(above)).min(1.0)
}

/// The smallest probability that sets of `a` and `b` numbers can have.
#[must_use]
pub fn smallest_probability(a: usize, b: usize) -> f64 {
    let ways: f64 = (1..=a).map(|own| (b + own) as f64 / own as f64).product();
    (2.0 / ways).min(1.0)
}

/// The median of all differences b - a, and between which of them the shift lies with this error
/// probability; without ends where so few numbers cannot say.
#[must_use]
pub fn shift(a: &[f64], b: &[f64], alpha: f64) -> (f64, Option<(f64, f64)>) {
    let mut differences: Vec<f64> = a.iter().flat_map(|a| b.iter().map(move |b| b - a)).collect();
    differences.sort_by(f64::total_cmp);
    let at = |place: usize| differences.get(place).copied().unwrap_or(f64::NAN);
    let last = differences.len().saturating_sub(1);
    let middle = f64::midpoint(at(last / 2), at(differences.len() / 2));
    let ends = outer(a.len(), b.len(), alpha).map(|outer| (at(outer), at(last - outer)));
    (middle, ends)
}

/// How many differences lie outside at either end; none where even all are not enough.
fn outer(a: usize, b: usize, alpha: f64) -> Option<usize> {
    if a + b > EXACT {
        let (count, ranks) = ((a * b) as f64, (a + b + 1) as f64);
        let half = normal_upper(alpha / 2.0) * (count * ranks / 12.0).sqrt();
        let outer = (count / 2.0 - half).floor();
        return (outer >= 1.0).then_some(outer as usize - 1);
    }
    // Without equal numbers: the rank sum less its least is the number of differences below zero.
    let ranks: Vec<usize> = (1..=a + b).map(|rank| 2 * rank).collect();
    let ways = ways(&ranks, a);
    let all: f64 = ways.iter().sum();
    let least = a * (a + 1);
    let mut below = 0.0;
    let mut outer = None;
    for differences in 0..a * b {
        below += ways.get(least + 2 * differences).copied().unwrap_or(0.0) / all;
        if below > alpha / 2.0 {
            break;
        }
        outer = Some(differences);
    }
    outer
}

/// The ranks of all, doubled so that mean ranks are whole: those of `a` first.
fn doubled_ranks(a: &[f64], b: &[f64]) -> Vec<usize> {
    let mut sorted: Vec<f64> = a.iter().chain(b).copied().collect();
    sorted.sort_by(f64::total_cmp);
    let rank = |value: &f64| {
        let below = sorted.partition_point(|other| other.total_cmp(value).is_lt());
        let up_to = sorted.partition_point(|other| other.total_cmp(value).is_le());
        below + 1 + up_to
    };
    a.iter().chain(b).map(rank).collect()
}

/// In how many ways `chosen` of these ranks have each sum.
fn ways(ranks: &[usize], chosen: usize) -> Vec<f64> {
    let most: usize = ranks.iter().sum();
    let mut ways = vec![vec![0.0; most + 1]; chosen + 1];
    if let Some(none) = ways.first_mut().and_then(|none| none.first_mut()) {
        *none = 1.0;
    }
    for rank in ranks {
        for count in (1..=chosen).rev() {
            let (fewer, own) = ways.split_at_mut(count);
            let (Some(fewer), Some(own)) = (fewer.last(), own.first_mut()) else { continue };
            for (one, without) in own.iter_mut().skip(*rank).zip(fewer) {
                *one += without;
            }
        }
    }
    ways.pop().unwrap_or_default()
}

fn by_normal(ranks: &[usize], chosen: usize, own: usize) -> f64 {
    let (count, chosen) = (ranks.len() as f64, chosen as f64);
    let mean = ranks.iter().sum::<usize>() as f64 / count;
    let squares: f64 = ranks.iter().map(|rank| (*rank as f64 - mean).powi(2)).sum();
    let variance = chosen * (count - chosen) / (count * (count - 1.0)) * squares;
    // All alike.
    if variance <= 0.0 {
        return 1.0;
    }
    // Doubled ranks have steps of 2 if none are equal: half a step toward the mean.
    let distance = ((own as f64 - chosen * mean).abs() - 1.0).max(0.0);
    (2.0 * normal_tail(distance / variance.sqrt())).min(1.0)
}

/// How the ranks of pairs go together, -1 to 1 (Spearman, 1904); 0 where one side is all alike.
#[must_use]
pub fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let side = |of: fn(&(f64, f64)) -> f64| {
        let values: Vec<f64> = pairs.iter().map(of).collect();
        let ranks = doubled_ranks(&values, &[]);
        let mean = ranks.iter().sum::<usize>() as f64 / ranks.len().max(1) as f64;
        ranks.into_iter().map(|rank| rank as f64 - mean).collect::<Vec<f64>>()
    };
    let (a, b) = (side(|pair| pair.0), side(|pair| pair.1));
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let scale = (product(&a, &a) * product(&b, &b)).sqrt();
    if scale > 0.0 { product(&a, &b) / scale } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, wanted: f64) {
        assert!((found - wanted).abs() < 1e-9, "{found} for {wanted}");
    }

    #[test]
    fn disjoint_sets_have_the_smallest_probability() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0]);
        near(probability(&a, &b), 2.0 / 252.0);
        near(smallest_probability(5, 5), 2.0 / 252.0);
        near(smallest_probability(7, 7), 2.0 / 3432.0);
        near(probability(&b, &a), probability(&a, &b));
    }

    #[test]
    fn the_probability_is_that_of_published_tables_and_of_counting_by_hand() {
        // Ranks 1, 2, 4 of 6: sums of at most 7 are those of 123 and 124, 2 of 20.
        near(probability(&[1.0, 2.0, 4.0], &[3.0, 5.0, 6.0]), 0.2);
        // Of 1, 2, 2 | 3: the one can be any of four; 3 is alone at its end.
        near(probability(&[3.0], &[1.0, 2.0, 2.0]), 0.5);
        near(probability(&[1.0; 4], &[1.0; 4]), 1.0);
    }

    #[test]
    fn the_interval_leaves_out_what_the_tables_say() {
        // 5 and 5 at 5%: U of 2 or less (Mann and Whitney's table), so differences 3 to 23 of 25.
        assert_eq!(outer(5, 5, 0.05), Some(2));
        assert_eq!(outer(3, 3, 0.05), None, "2 in 20 is too likely");
        let a: Vec<f64> = (0..5).map(f64::from).collect();
        let b: Vec<f64> = (0..5).map(|at| 10.0 + f64::from(at)).collect();
        let (middle, ends) = shift(&a, &b, 0.05);
        near(middle, 10.0);
        // Differences 6, 7 twice, 8 thrice, ...
        assert_eq!(ends, Some((7.0, 13.0)));
    }

    #[test]
    fn many_numbers_have_nearly_the_exact_probability() {
        let a: Vec<f64> = (0..30).map(f64::from).collect();
        let b: Vec<f64> = (0..30).map(|at| f64::from(at) + 8.25).collect();
        let exact = probability(&a, &b);
        let ranks = doubled_ranks(&a, &b);
        let normal = by_normal(&ranks, 30, ranks[..30].iter().sum());
        // In the tail the normal one errs to the safe side.
        assert!(exact < normal && normal < 1.5 * exact, "{exact} {normal}");
        let more: Vec<f64> = (0..31).map(f64::from).collect();
        assert!(shift(&more, &b, 0.05).1.is_some());
        near(probability(&[1.0; 40], &[1.0; 40]), 1.0);
    }

    #[test]
    fn pairs_go_together_in_ranks_whatever_their_size() {
        near(correlation(&[(1.0, 10.0), (2.0, 1e3), (3.0, 1e9)]), 1.0);
        near(correlation(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]), -1.0);
        near(correlation(&[(1.0, 3.0), (1.0, 2.0)]), 0.0);
        near(correlation(&[]), 0.0);
    }
}
