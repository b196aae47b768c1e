//! In which order the blocks of both sides are measured: quads ABBA or BAAB, drawn by a seed.
//!
//! Both orders have each side first and last equally often, so that a drift that is straight over
//! a quad cancels; the draw keeps the order from going with anything periodic. (Box, Hunter and
//! Hunter, Statistics for Experimenters: block what you can, randomize what you cannot.)

use crate::analysis::random::SplitMix64;

/// Blocks of a quad.
pub const QUAD: usize = 4;

/// Which of both is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbSide {
    /// What is compared with.
    A,
    /// What is judged.
    B,
}

/// The order of one quad.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quad {
    /// A, B, B, A
    Abba,
    /// B, A, A, B
    Baab,
}

impl Quad {
    /// Its blocks in the order of time.
    #[must_use]
    pub const fn sides(self) -> [AbSide; QUAD] {
        match self {
            Self::Abba => [AbSide::A, AbSide::B, AbSide::B, AbSide::A],
            Self::Baab => [AbSide::B, AbSide::A, AbSide::A, AbSide::B],
        }
    }

    /// The values of its blocks as two pairs of neighbours, each A and B.
    #[must_use]
    pub const fn pairs<T: Copy>(self, values: [T; QUAD]) -> [(T, T); 2] {
        let [first, second, third, last] = values;
        match self {
            Self::Abba => [(first, second), (last, third)],
            Self::Baab => [(second, first), (third, last)],
        }
    }

    /// The values of the two blocks in its middle, which are of the same side: a pair of equals,
    /// as near to each other as those that are compared.
    #[must_use]
    pub const fn equals<T: Copy>(self, values: [T; QUAD]) -> (T, T) {
        (values[1], values[2])
    }
}

/// The first quads of the order that a seed gives; more of them begin with the same ones.
#[must_use]
pub fn quads(seed: u64, count: usize) -> Vec<Quad> {
    let mut random = SplitMix64::new(seed);
    // The highest bit, a fair coin.
    let mut drawn = || if random.bits() >> 63 == 0 { Quad::Abba } else { Quad::Baab };
    (0..count).map(|_| drawn()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_order_always() {
        // From the first numbers of the seed, whose highest bits are 0, 0, 1: see `random`.
        let order = quads(1_234_567, 3);
        assert_eq!(order, [Quad::Abba, Quad::Abba, Quad::Baab]);
        assert_eq!(quads(1_234_567, 40)[..3], order);
        assert_ne!(quads(1, 40), quads(2, 40));
    }

    #[test]
    fn both_orders_come_about_equally_often() {
        let baab = quads(3, 1_000).iter().filter(|quad| **quad == Quad::Baab).count();
        // Three and a half standard deviations of 15.8; the seed is fixed.
        assert!((445..=555).contains(&baab), "{baab}");
    }

    #[test]
    fn pairs_are_neighbours_of_both_sides_and_equals_of_one() {
        for quad in [Quad::Abba, Quad::Baab] {
            let numbered: Vec<(AbSide, i32)> = quad.sides().into_iter().zip(0..).collect();
            let values = [numbered[0], numbered[1], numbered[2], numbered[3]];
            for (a, b) in quad.pairs(values) {
                assert_eq!((a.0, b.0, (a.1 - b.1).abs()), (AbSide::A, AbSide::B, 1), "{quad:?}");
            }
            let (early, late) = quad.equals(values);
            assert_eq!((early.0, late.1 - early.1), (late.0, 1));
        }
    }

    #[test]
    fn a_straight_drift_cancels_over_a_quad() {
        for quad in [Quad::Abba, Quad::Baab] {
            let pairs = quad.pairs([10, 11, 12, 13]);
            assert_eq!(pairs.iter().map(|(a, b)| b - a).sum::<i32>(), 0, "{quad:?}");
        }
    }
}
