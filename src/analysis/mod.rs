//! What needs an interval estimate or more than one run. Pure: numbers in, numbers out.

pub mod matrix;
pub mod kernel_config;
pub mod ratio;

pub use matrix::{Matrix, matrix};
pub use ratio::{Estimate, EstimateError, median, paired};
