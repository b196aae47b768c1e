//! What needs an interval estimate or more than one run. Pure: numbers in, numbers out.

pub mod ratio;

pub use ratio::{Estimate, EstimateError, median, paired};
