//! The cells of a matrix: which there are, in what order they are measured, and what came of them.
//!
//! - [`plan`]: what to measure
//! - [`scheduler`]: runs all cells; [`results`]: known outcomes
//! - [`cell_runner`]: measures a cell in a guest; [`host`]: on this machine

pub mod cell_runner;
pub mod host;
pub mod plan;
pub mod results;
pub mod scheduler;
