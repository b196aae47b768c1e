//! Runs in the formats of other programs.

pub(crate) mod bundle;
pub(crate) mod export;
pub mod import;
