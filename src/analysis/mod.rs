//! What needs an interval estimate, more than one run, or all late wake-ups of one. Pure: numbers
//! in, numbers out.

pub mod ab;
pub mod bands;
pub mod baseline;
pub mod between;
pub mod bisection;
pub mod change_points;
pub mod deadline;
pub mod distributions;
pub mod how_long;
pub mod kernel_config;
pub mod matrix;
pub mod nights;
pub mod percentile;
pub mod phases;
pub mod period;
pub mod preempted;
pub mod random;
pub mod ratio;
pub mod replicates;
pub mod shift;
pub mod stationarity;
pub mod steadiness;
pub mod tail;
pub mod together;
pub mod trend;

pub use matrix::{Matrix, matrix};
pub use ratio::{Estimate, EstimateError, median, paired};
