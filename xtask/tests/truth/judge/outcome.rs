//! What came of the delays, kind by kind.

use std::collections::BTreeMap;

/// How one kind of delay came out.
#[derive(Debug, Default)]
pub(crate) struct Row {
    /// All that were logged.
    pub injected: usize,
    /// Over an expiry, by more than 50 us by themselves, and nothing else at the same time.
    pub judged: usize,
    pub found: usize,
    /// Of those found: their events were overwritten before anybody looked.
    pub lost: usize,
    /// Of those found: next to nothing is left but what the hypervisor took, or a thread ran first
    /// that is not an injected delay.
    pub disturbed: usize,
    pub right: usize,
    pub sized: usize,
    /// Errors of the size, ns.
    pub errors_ns: Vec<i64>,
    /// What went wrong, in words.
    pub wrong: Vec<String>,
}

/// The whole outcome.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub rows: BTreeMap<String, Row>,
    /// Late wake-ups that no delay lies over, on any CPU, and whose CPU lost no time to the host.
    pub clean: usize,
    /// Those of which the steal clock has a part, and which are not judged.
    pub clean_stolen: usize,
    /// Those of them that are blamed on an injected thing.
    pub false_blame: Vec<String>,
    /// Late wake-ups that are blamed, in part at least, on the hypervisor or the firmware.
    pub machines: Vec<String>,
    /// Delays that met another one over the same expiry.
    pub mixed: usize,
}

impl Row {
    /// That share of the errors is not larger, us.
    fn error_us(&self, share: f64) -> f64 {
        let mut sorted = self.errors_ns.clone();
        sorted.sort_unstable();
        let at = (sorted.len() as f64 * share).ceil() as usize;
        sorted.get(at.saturating_sub(1)).map_or(0.0, |ns| *ns as f64 / 1e3)
    }
}

impl Outcome {
    fn sum(&self, of: fn(&Row) -> usize) -> usize {
        self.rows.values().map(of).sum()
    }

    /// All rows together: judged, found, cause right, size right.
    pub(crate) fn totals(&self) -> [usize; 4] {
        let of: [fn(&Row) -> usize; 4] =
            [|row| row.judged, |row| row.found, |row| row.right, |row| row.sized];
        of.map(|of| self.sum(of))
    }

    /// Those found of which no cause can be known: events lost, disturbed by the hypervisor.
    pub(crate) fn unknowable(&self) -> [usize; 2] {
        [self.sum(|row| row.lost), self.sum(|row| row.disturbed)]
    }

    /// The table, as Markdown.
    pub(crate) fn table(&self) -> String {
        let mut text = String::from(
            "| injected | delays | judged | found | events lost | disturbed | cause right | \
             size right | size error p50 / p99 |\n\
             | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        );
        for (kind, row) in &self.rows {
            let (p50, p99) = (row.error_us(0.5), row.error_us(0.99));
            text += &format!(
                "| {kind} | {} | {} | {} | {} | {} | {} | {} | {p50:.1} / {p99:.1} us |\n",
                row.injected, row.judged, row.found, row.lost, row.disturbed, row.right, row.sized
            );
        }
        let (clean, wrong, mixed) = (self.clean, self.false_blame.len(), self.mixed);
        let (machines, stolen) = (self.machines.len(), self.clean_stolen);
        text + &format!(
            "\nClean late wake-ups: {clean}, of which {wrong} blamed on an injected thing. \
             Others, whose CPU lost time to the host: {stolen}. \
             Not judged, for two delays met: {mixed}. \
             Blamed on the hypervisor or the firmware, in part at least: {machines}.\n"
        )
    }
}
