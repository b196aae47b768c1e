//! A against B in blocks of one session: does the change help?
//!
//! The unit of replication is a pair of neighbouring blocks, one of each side, so that what drifts
//! slowly hits both. Pairs come in quads, ABBA or BAAB, drawn by a stored seed (`order`). Each
//! figure of a block becomes one logarithm (`measured`), each pair a difference of two. Their mean
//! is tested at looks that are fixed beforehand (`looks`), for all figures together (`verdict`,
//! `comparison`). What equal sides differ by is seen within the quads (`floor`); what a budget can
//! find is known beforehand (`power`).
//!
//! Such pairs speak of this boot and this set-up: what differs from boot to boot is not in them.
//! `docs/explanation/statistics.md` has the methods, their sources and the simulations.

pub mod comparison;
pub mod discoveries;
pub mod figure;
pub mod floor;
pub mod looks;
pub mod measured;
pub mod order;
pub mod power;
pub mod verdict;

/// The probability, over all looks and figures, of calling equal sides different.
pub const ALPHA: f64 = 0.05;
