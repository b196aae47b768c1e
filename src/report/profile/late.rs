//! A profile of the late moments only: the stacks in peaks, weighted by the ns that they cost.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::own_time::{OwnTime, own_time_text};
use crate::{
    plain::plain,
    report::{causes::words::label, table::Table, words::beyond_tracepoint},
    run::peaks::Peak,
    units::{Nanos, many},
};

/// What late wake-ups and messages waited for, by function.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LateProfile {
    /// The peaks in it.
    pub peaks: u64,
    /// Their latencies together, ns.
    pub total_ns: u64,
    /// On what attached threads spent their own CPU time in late cycles, if the run was profiled
    /// too.
    pub own_time: Vec<OwnTime>,
    /// By function, those that cost most themselves first. What has no stack is there as its cause.
    pub functions: Vec<LateFunction>,
}

/// What one function cost in late moments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LateFunction {
    /// A function of the kernel; the cause in words where no stack was walked.
    pub name: String,
    /// Whether it is from a stack.
    pub from_stack: bool,
    /// Where it was the innermost function, ns.
    pub own_ns: u64,
    /// Where it was anywhere on the stack, ns.
    pub total_ns: u64,
    /// In how many peaks.
    pub peaks: u64,
}

#[derive(Default)]
struct LateSum {
    own_ns: u64,
    total_ns: u64,
    peaks: BTreeSet<usize>,
}

impl LateProfile {
    /// Of the peaks that were kept whole, with at most `most` functions.
    #[must_use]
    pub fn of(peaks: &[Peak], own_time: Vec<OwnTime>, most: usize) -> Self {
        let mut sums: BTreeMap<(bool, String), LateSum> = BTreeMap::new();
        let mut total_ns = 0_u64;
        for (number, peak) in peaks.iter().enumerate() {
            for part in &peak.blame {
                total_ns = total_ns.saturating_add(part.ns);
                let mut names: Vec<(bool, String)> = beyond_tracepoint(&part.stack)
                    .iter()
                    .map(|frame| (true, function(frame).to_owned()))
                    .collect();
                if names.is_empty() {
                    names.push((false, label(part.cause, &part.name)));
                }
                let mut seen = BTreeSet::new();
                for (depth, name) in names.into_iter().enumerate() {
                    let is_first = seen.insert(name.clone());
                    let sum = sums.entry(name).or_default();
                    sum.peaks.insert(number);
                    if depth == 0 {
                        sum.own_ns = sum.own_ns.saturating_add(part.ns);
                    }
                    if is_first {
                        sum.total_ns = sum.total_ns.saturating_add(part.ns);
                    }
                }
            }
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(_, sum)| std::cmp::Reverse((sum.own_ns, sum.total_ns)));
        let one = |((from_stack, name), sum): ((bool, String), LateSum)| LateFunction {
            name,
            from_stack,
            own_ns: sum.own_ns,
            total_ns: sum.total_ns,
            peaks: sum.peaks.len() as u64,
        };
        let functions = sums.into_iter().take(most).map(one).collect();
        Self { peaks: peaks.len() as u64, total_ns, own_time, functions }
    }
}

/// "console_unlock+0x1c5" without the offset.
pub(super) fn function(frame: &str) -> &str {
    frame.split_once("+0x").map_or(frame, |(name, _)| name)
}

/// The table, with `most` rows.
#[must_use]
pub fn late_text(late: &LateProfile, name: &str, most: usize) -> String {
    let nanos = |ns: u64| Nanos(i64::try_from(ns).unwrap_or(i64::MAX)).to_string();
    let mut table = Table::new(1, &["function, or cause", "itself", "with callees", "peaks"]);
    for of in late.functions.iter().take(most) {
        let name = if of.from_stack { of.name.clone() } else { format!("({})", of.name) };
        table.row(vec![name, nanos(of.own_ns), nanos(of.total_ns), of.peaks.to_string()]);
    }
    let own_time = own_time_text(&late.own_time, most);
    format!(
        "{own_time}{}: {} of {} together, by the kernel's functions\n\n{}\n\n\
         In brackets: the cause, where no stack was walked.\n",
        plain(name),
        many(late.peaks, "peak"),
        nanos(late.total_ns),
        table.lines().join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::peaks::{Basis, Cause, Part};

    #[test]
    fn stacks_of_late_moments_weigh_what_they_cost() {
        let part = |ns, stack: &[&str]| Part {
            cause: Cause::Softirq,
            name: "NET_RX".into(),
            task: None,
            ns,
            basis: Basis::Measured,
            evidence: None,
            stack: stack.iter().map(|frame| (*frame).to_owned()).collect(),
        };
        let peak = |blame| Peak {
            at_ns: Some(1),
            series: "cpu0".into(),
            cpu: 0,
            latency_ns: 100,
            stages: None,
            ways: Vec::new(),
            blame,
            timeline: Vec::new(),
            tid: None,
            left_out: 0,
        };
        let peaks = [
            peak(vec![part(70, &["inner+0x1", "outer+0x2", "inner+0x3"]), part(30, &[])]),
            peak(vec![part(100, &["outer+0x9"])]),
        ];
        let late = LateProfile::of(&peaks, Vec::new(), 9);
        let found: Vec<_> = late
            .functions
            .iter()
            .map(|of| (of.name.as_str(), of.own_ns, of.total_ns, of.peaks))
            .collect();
        let cause = label(Cause::Softirq, "NET_RX");
        let expected = [("outer", 100, 170, 2), ("inner", 70, 70, 1), (cause.as_str(), 30, 30, 1)];
        assert_eq!((late.peaks, late.total_ns, found), (2, 200, expected.to_vec()));
        let text = late_text(&late, "run", 9);
        assert!(text.contains("2 peaks of 200 ns together") && text.contains("outer"), "{text}");
    }
}
