//! Whether a kernel came with a change.

use std::collections::BTreeSet;

use serde::Serialize;

use super::TrendPoint;

/// A change is found this many values beside its place at most, nearly always.
const NEAR: usize = 2;

/// Values to either side in which kernels that take turns are looked for.
const AROUND: usize = 10;

/// What the kernel did around a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum KernelThere {
    /// It stayed.
    Same,
    /// It was replaced within two values of the change.
    Changed {
        /// The first day under the later one, UTC.
        day: String,
        /// The earlier one.
        before: String,
        /// The later one.
        after: String,
    },
    /// Several were measured in turns before and after: none of them came with the change.
    InTurn,
}

/// What it did around the change whose first value is `place`.
pub(super) fn kernel_there(points: &[TrendPoint], place: usize) -> KernelThere {
    let distances = (0..=NEAR).flat_map(|far| [place.checked_sub(far), place.checked_add(far)]);
    let mut places = distances.flatten();
    if let Some(at) = places.find(|at| is_replaced(points, *at))
        && let (Some(later), Some(earlier)) = (points.get(at), points.get(at - 1))
    {
        return KernelThere::Changed {
            day: later.day.clone(),
            before: earlier.kernel.clone(),
            after: later.kernel.clone(),
        };
    }
    let near = points.get(place.saturating_sub(NEAR + 1)..).unwrap_or_default();
    let several = kernels(near.get(..2 * NEAR + 1).unwrap_or(near)).len() > 1;
    if several { KernelThere::InTurn } else { KernelThere::Same }
}

/// Whether the kernels before this value and those from it on are others. As far is looked as those
/// that take turns need for a round.
fn is_replaced(points: &[TrendPoint], at: usize) -> bool {
    if at == 0 || at >= points.len() {
        return false;
    }
    let (before, after) = points.split_at(at);
    let last = |count: usize| before.get(before.len().saturating_sub(count)..).unwrap_or(before);
    let first = |count: usize| after.get(..count).unwrap_or(after);
    let round = kernels(last(AROUND)).union(&kernels(first(AROUND))).count() + 2;
    kernels(last(round)).is_disjoint(&kernels(first(round)))
}

fn kernels(points: &[TrendPoint]) -> BTreeSet<&str> {
    points.iter().map(|point| point.kernel.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there(kernels: &str, place: usize) -> KernelThere {
        let point = |(night, kernel): (usize, char)| TrendPoint {
            day: night.to_string(),
            kernel: kernel.into(),
            runs: 1,
            ns: 1,
            first: jiff::Timestamp::UNIX_EPOCH,
        };
        kernel_there(&kernels.chars().enumerate().map(point).collect::<Vec<_>>(), place)
    }

    fn changed(day: &str, before: &str, after: &str) -> KernelThere {
        KernelThere::Changed { day: day.into(), before: before.into(), after: after.into() }
    }

    #[test]
    fn a_kernel_that_came_within_two_values_is_named_with_its_day() {
        assert_eq!(there("aaaaaaaabbbbbbbb", 8), changed("8", "a", "b"));
        assert_eq!(there("aaaaaaaabbbbbbbb", 10), changed("8", "a", "b"));
        assert_eq!(there("aaaaaaaabbbbbbbb", 6), changed("8", "a", "b"));
        assert_eq!(there("aaaaaaaabbbbbbbb", 11), KernelThere::Same);
        assert_eq!(there("aaaaaaaabbbbbbbb", 4), KernelThere::Same);
        assert_eq!(there("aaaaaaaabbbbaaaa", 12), changed("12", "b", "a"), "taken back");
        assert_eq!(there("aabbccddeeffgghh", 8), changed("8", "d", "e"));
    }

    #[test]
    fn of_kernels_that_take_turns_none_came_with_the_change() {
        assert_eq!(there("abababababababab", 8), KernelThere::InTurn);
        assert_eq!(there("abcdeabcdeabcdeabcde", 10), KernelThere::InTurn);
        assert_eq!(there("aaaaaaaaaaaaaaaa", 8), KernelThere::Same);
    }
}
