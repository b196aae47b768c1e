//! The cells of a matrix: which there are, in what order they are measured, and what came of them.
//!
//! - [`rows`]: what is measured, from a plan
//! - [`scheduler`]: runs all cells; [`results`]: known outcomes
//! - [`cell_runner`]: measures a cell in a guest; [`host`]: on this machine

pub mod cell_runner;
pub mod host;
pub mod rows;
pub mod results;
pub mod scheduler;
