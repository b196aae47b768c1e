//! The data of the page of a comparison by `tardy ab`, beside its figures and its blocks.

use serde::{Deserialize, Serialize};

use crate::run::{AbCaveat, AbLook, AbSideRecord, AbStatus};

/// What a comparison in blocks has beside its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageAb {
    /// How far it came.
    pub status: AbStatus,
    /// How A is measured.
    pub a: AbSideRecord,
    /// How B is measured.
    pub b: AbSideRecord,
    /// How many blocks there were, what equal sides differ by, and what it would take: sentences.
    pub how: Vec<String>,
    /// The looks that were fixed beforehand.
    pub looks: Vec<AbLook>,
    /// Caveats of the blocks, each once, worst first.
    pub caveats: Vec<AbCaveat>,
    /// Why it ended, if it could not continue; null elsewhere.
    pub error: Option<String>,
}
