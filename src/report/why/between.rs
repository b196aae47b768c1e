//! The table of what the threads of one program do to each other.

use super::{
    WhyReport,
    terminal_text::{DIM, TerminalText},
};
use crate::{
    analysis::between::{BetweenThreads, HolderPreempted},
    plain::cut,
    report::table::Table,
    units::{count, many},
};

/// Rows that are shown.
const MOST: usize = 10;
/// Names are cut after this number of characters.
const NAME: usize = 24;

/// The longest waits; nothing without any.
pub(super) fn push(sheet: &mut TerminalText, why: &WhyReport) {
    if why.between.is_empty() {
        return;
    }
    let of = match why.responses_analysed {
        0 => many(why.blamed, "late wake-up"),
        // A wait that made several cycles late is in each of them.
        cycles => many(cycles, "late cycle") + " (a wait counts in each that it made late)",
    };
    sheet.line(DIM, &format!("Between the threads, in the analyzed {of}:"));
    let mut table =
        Table::new(3, &["who", "waited for", "on", "times", "ms", "which was preempted by"]);
    for row in why.between.iter().take(MOST) {
        table.row(cells(row));
    }
    sheet.table(&table, "");
    let more = why.between.len().saturating_sub(MOST);
    if more > 0 {
        sheet
            .line(DIM, &format!("and {} that took less: --json has all", many(more as u64, "row")));
    }
    sheet.gap();
}

fn cells(row: &BetweenThreads) -> Vec<String> {
    vec![
        cut(&row.who, NAME),
        cut(&row.whom, NAME),
        cut(&row.on, NAME),
        count(row.times),
        milliseconds(row.ns),
        preempted_by(&row.preempted_by),
    ]
}

/// `vision (fifo 50) 2.3 ms, log (nice 0) 0.1`.
fn preempted_by(tasks: &[HolderPreempted]) -> String {
    let named = tasks.iter().enumerate().map(|(number, own)| {
        let unit = if number == 0 { " ms" } else { "" };
        format!("{} {}{unit}", cut(&own.task, NAME), milliseconds(own.ns))
    });
    named.collect::<Vec<_>>().join(", ")
}

fn milliseconds(ns: u64) -> String {
    let ms = ns as f64 / 1e6;
    if ms < 99.95 { format!("{ms:.1}") } else { format!("{ms:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_who_waited_for_whom_and_who_kept_that_one_from_the_cpu() {
        let by = |task: &str, ns| HolderPreempted { task: task.into(), ns, is_inversion: true };
        let row = BetweenThreads {
            who: "ctl".into(),
            whom: "worker".into(),
            on: "lock 0x7f00".into(),
            times: 1_411,
            ns: 2_414_708,
            preempted_by: vec![by("vision (fifo 50)", 2_300_000), by("log (nice 0)", 90_000)],
        };
        let why =
            WhyReport { between: vec![row], responses_analysed: 1_521, ..WhyReport::default() };
        let mut sheet = TerminalText::default();
        push(&mut sheet, &why);
        let text = anstream::adapter::strip_str(&sheet.done()).to_string();
        assert!(text.contains("in the analyzed 1,521 late cycles (a wait"), "{text}");
        let line = text.lines().find(|line| line.starts_with("ctl")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let told = "ctl worker lock 0x7f00 1,411 2.4 vision (fifo 50) 2.3 ms, log (nice 0) 0.1";
        assert_eq!(words.join(" "), told);
        let mut none = TerminalText::default();
        push(&mut none, &WhyReport::default());
        assert_eq!(none.done(), TerminalText::default().done());
    }
}
