//! Whether another program, or version, came with a change.

use serde::Serialize;

use super::TrendRun;

/// Another program measured from then on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProgramChange {
    /// `cyclictest 2.40`
    pub before: String,
    /// `tardy 0.2.0`
    pub after: String,
}

/// Nothing where one of them is not known.
pub(super) fn program_change(
    before: Option<&TrendRun>,
    after: Option<&TrendRun>,
) -> Option<ProgramChange> {
    let (before, after) = (before?.program.clone(), after?.program.clone());
    let is_other = before != after && !before.is_empty() && !after.is_empty();
    is_other.then_some(ProgramChange { before, after })
}
