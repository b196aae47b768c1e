//! Which peaks of many are kept: the worst of all, and the worst of each series too, or a series
//! with few late samples would have none beside one with many.

use std::collections::HashMap;

/// The number of peaks of each series that are kept before worse ones of another series.
pub const OF_EACH: usize = 3;

/// Which of these peaks, given as their series with the worst first, are the `most` to keep: at
/// most half of them the worst of their series, then the second of each, up to [`OF_EACH`], and
/// the worst of the others.
#[must_use]
pub fn choose(series: &[&str], most: usize) -> Vec<bool> {
    let mut chosen = vec![series.len() <= most; series.len()];
    if series.len() <= most {
        return chosen;
    }
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut by_rank: [Vec<usize>; OF_EACH] = Default::default();
    for (at, name) in series.iter().enumerate() {
        let rank = seen.entry(name).or_default();
        if let Some(of_rank) = by_rank.get_mut(*rank) {
            of_rank.push(at);
        }
        *rank += 1;
    }
    let own: Vec<usize> = by_rank.concat().into_iter().take(most / 2).collect();
    let others = (0..series.len()).filter(|at| !own.contains(at));
    let kept = own.iter().copied().chain(others).take(most);
    kept.for_each(|at| chosen[at] = true);
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(series: &str, most: usize) -> Vec<usize> {
        let names: Vec<&str> = series.split_terminator("").skip(1).collect();
        let chosen = choose(&names, most).into_iter().enumerate();
        chosen.filter_map(|(at, is)| is.then_some(at)).collect()
    }

    #[test]
    fn each_series_keeps_its_worst_and_what_is_left_goes_to_the_worst_of_all() {
        assert_eq!(kept("aab", 3), [0, 1, 2]);
        assert_eq!(kept("aaaaaaaabaa", 4), [0, 1, 2, 8], "the worst of b, though seven are worse");
        assert_eq!(kept("aaaaaaaabab", 8), [0, 1, 2, 3, 4, 5, 8, 10]);
    }

    #[test]
    fn of_more_series_than_there_is_room_for_the_worst_have_theirs() {
        assert_eq!(kept("aaaaaabcdefgh", 6), [0, 1, 2, 3, 6, 7]);
        assert_eq!(kept("aab", 1), [0]);
        assert_eq!(kept("aab", 0), [0; 0]);
    }
}
