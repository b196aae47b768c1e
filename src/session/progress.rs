//! A run or a load while it is in progress, at a progress.

/// How often somebody looks at a run in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShowPace {
    /// Twice a second: a person at a terminal.
    Live,
    /// When the conductor is awake anyway, about once a second: no thread wakes for it alone.
    Seldom,
}

/// What can be shown during a run.
#[derive(Debug)]
pub(crate) struct RunProgress {
    /// Since the start, ns; negative in the warm-up.
    pub elapsed_ns: i64,
    /// Until the planned end, ns, where there is one.
    pub left_ns: Option<i64>,
    /// Per series: name, samples so far, worst so far in ns.
    pub series: Vec<(String, u64, Option<i64>)>,
    /// Per load: name, unit, operations so far; why it is gone, if it is.
    pub loads: Vec<LoadProgress>,
}

/// A load at a progress.
#[derive(Debug)]
pub(crate) struct LoadProgress {
    /// Its name.
    pub name: String,
    /// What one operation is.
    pub unit: &'static str,
    /// Operations so far.
    pub operations: Option<u64>,
    /// Why it is gone, if it is.
    pub died: Option<String>,
}
