//! Measurement order of the cells of a plan.
//!
//! Every row is measured once before any is measured again, so that a drift of the machine affects
//! all of them alike. Within such a round the order is drawn anew by the plan's seed, so that
//! no row always follows the same other one. (Box, Hunter and Hunter, Statistics for
//! Experimenters: block what you can, randomize what you cannot.)

use crate::analysis::random::SplitMix64;

/// How a round is ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellOrder {
    /// Drawn anew for each round.
    Random,
    /// As in the file, each round the same.
    Listed,
}

impl CellOrder {
    /// As in a plan.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Listed => "listed",
        }
    }
}

/// The order of `rounds` rounds of `rows` rows: pairs of round and row, both from 0. Fewer rounds
/// are the beginning of more.
#[must_use]
pub fn sequence(order: CellOrder, seed: u64, rows: usize, rounds: u32) -> Vec<(u32, usize)> {
    let mut random = SplitMix64::new(seed);
    let mut all = Vec::new();
    for round in 0..rounds {
        let mut own: Vec<usize> = (0..rows).collect();
        if order == CellOrder::Random {
            shuffle(&mut own, &mut random);
        }
        all.extend(own.into_iter().map(|row| (round, row)));
    }
    all
}

/// Fisher and Yates, as Durstenfeld has it (Algorithm 235, CACM 7, 1964).
fn shuffle(all: &mut [usize], random: &mut SplitMix64) {
    for last in (1..all.len()).rev() {
        // Below 2^52 of them: the product is no more than `last`.
        let other = (random.uniform() * (last + 1) as f64) as usize;
        all.swap(last, other.min(last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_every_row_once_and_a_seed_gives_the_same_order_always() {
        let all = sequence(CellOrder::Random, 7, 5, 40);
        for (number, round) in all.chunks(5).enumerate() {
            assert!(round.iter().all(|(own, _)| *own as usize == number));
            let mut rows: Vec<usize> = round.iter().map(|(_, row)| *row).collect();
            rows.sort_unstable();
            assert_eq!(rows, [0, 1, 2, 3, 4]);
        }
        assert_eq!(sequence(CellOrder::Random, 7, 5, 3), all[..15]);
        assert_ne!(sequence(CellOrder::Random, 8, 5, 40), all);
        assert!(all.chunks(5).any(|round| round[0].1 != all[0].1), "each round its own order");
    }

    #[test]
    fn every_row_comes_first_about_equally_often() {
        let all = sequence(CellOrder::Random, 1, 4, 4_000);
        for row in 0..4 {
            let first = all.chunks(4).filter(|round| round[0].1 == row).count();
            // Four standard deviations of 27.4; the seed is fixed.
            assert!((890..=1_110).contains(&first), "{row}: {first}");
        }
    }

    #[test]
    fn a_listed_order_is_that_of_the_file_in_every_round() {
        let all = sequence(CellOrder::Listed, 7, 2, 2);
        assert_eq!(all, [(0, 0), (0, 1), (1, 0), (1, 1)]);
    }
}
