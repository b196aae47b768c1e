//! Late values that come together are one incident: a cluster.
//!
//! By intervals between exceedances (Ferro and Segers, Journal of the Royal Statistical Society B
//! 65, 2003, p. 545): the extremal index says how many of those separate clusters, and the longest
//! ones do.

/// The largest value of each cluster of values above a threshold, in the order of time.
#[must_use]
pub fn cluster_maxima(values: &[f64], threshold: f64) -> Vec<(usize, f64)> {
    let over: Vec<(usize, f64)> =
        values.iter().copied().enumerate().filter(|(_, value)| *value > threshold).collect();
    let gaps: Vec<usize> =
        over.iter().zip(over.iter().skip(1)).map(|(early, late)| late.0 - early.0).collect();
    let shortest = separating_gap(&gaps);
    let mut maxima: Vec<(usize, f64)> = Vec::new();
    let mut before: Option<usize> = None;
    for (place, value) in over {
        let is_new = before.is_none_or(|before| place - before >= shortest);
        match maxima.last_mut() {
            Some(last) if !is_new => {
                if value > last.1 {
                    *last = (place, value);
                }
            }
            _ => maxima.push((place, value)),
        }
        before = Some(place);
    }
    maxima
}

/// The extremal index: what share of exceedances begins a cluster; 1 where there are fewer than
/// two gaps.
#[must_use]
pub fn extremal_index(gaps: &[usize]) -> f64 {
    if gaps.len() < 2 {
        return 1.0;
    }
    let count = gaps.len() as f64;
    let sum = |of: fn(f64) -> f64| gaps.iter().map(|gap| of(*gap as f64)).sum::<f64>();
    let estimate = if gaps.iter().all(|gap| *gap <= 2) {
        2.0 * sum(|gap| gap).powi(2) / (count * sum(|gap| gap * gap))
    } else {
        let product = sum(|gap| (gap - 1.0) * (gap - 2.0));
        2.0 * sum(|gap| gap - 1.0).powi(2) / (count * product)
    };
    estimate.clamp(1.0 / count, 1.0)
}

/// From how many places on a gap separates clusters.
fn separating_gap(gaps: &[usize]) -> usize {
    let separating = (extremal_index(gaps) * gaps.len() as f64).floor() as usize;
    let mut sorted = gaps.to_vec();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    // Where gaps are equal to the shortest one that separates, none of these does.
    let Some(shortest) = separating.checked_sub(1).and_then(|last| sorted.get(last)) else {
        return usize::MAX;
    };
    match sorted.get(separating) {
        Some(next) if next == shortest => shortest + 1,
        _ => *shortest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceedances_that_come_together_are_one_cluster() {
        let mut values = vec![0.0; 2_000];
        let bursts = [100, 420, 777, 1_300, 1_650, 1_900];
        for (number, start) in bursts.into_iter().enumerate() {
            for step in 0..5 {
                values[start + step] = 10.0 + (number + step) as f64;
            }
        }
        let found = cluster_maxima(&values, 5.0);
        let expected: Vec<(usize, f64)> =
            bursts.iter().enumerate().map(|(n, start)| (start + 4, 14.0 + n as f64)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn single_exceedances_are_a_cluster_each() {
        let mut values = vec![0.0; 1_000];
        let places = [13, 130, 171, 395, 400, 612, 700, 915];
        places.iter().for_each(|place| values[*place] = 1.0);
        let found: Vec<usize> = cluster_maxima(&values, 0.5).iter().map(|own| own.0).collect();
        assert!(found.len() >= 7, "{found:?}");
        assert!(cluster_maxima(&values, 1.0).is_empty());
        assert_eq!(cluster_maxima(&[0.0, 2.0], 1.0), [(1, 2.0)]);
    }

    #[test]
    fn the_index_is_the_one_computed_by_hand() {
        // Gaps 1, 1, 10: sums of T - 1: 9; of (T - 1)(T - 2): 72. 2 * 81 / (3 * 72).
        assert!((extremal_index(&[1, 1, 10]) - 0.75).abs() < 1e-12);
        // All at most 2: 2 * 16 / (3 * 6) is above 1.
        assert_eq!(extremal_index(&[1, 1, 2]), 1.0);
    }
}
