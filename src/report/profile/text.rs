//! A profile as tables for a terminal.

use super::{CpuContextShare, INTERRUPTS, ProfileReport};
use crate::{
    plain::plain,
    report::table::Table,
    run::profile::KERNEL_MODULE,
    units::{Nanos, count, many},
};

/// The tables: contexts of each CPU, tasks, functions; `most` rows of the last two.
#[must_use]
pub fn text(report: &ProfileReport, name: &str, most: usize) -> String {
    let mut out = head(report, name);
    out.push_str(&block("What each CPU did, % of its samples", cpus(report)));
    out.push_str(&block("By task, % of all samples", tasks(report, most)));
    out.push_str(&block("By function, % of all samples", symbols(report, most)));
    out.push_str(&remarks(report));
    out
}

fn block(title: &str, table: Table) -> String {
    format!("{title}\n{}\n\n", table.lines().join("\n"))
}

fn head(report: &ProfileReport, name: &str) -> String {
    let over = format!("{:.1} s", report.duration_s);
    let came = match report.due {
        Some(due) => format!("{} of the {} samples due", count(report.samples), count(due)),
        None => many(report.samples, "sample"),
    };
    format!(
        "{}: {came} by {} in {over}, {} a second on each CPU\n\n",
        plain(name),
        plain(&report.event),
        report.hz
    )
}

fn share(percent: f64) -> String {
    format!("{percent:.1}")
}

fn cpus(report: &ProfileReport) -> Table {
    let mut headings = vec!["CPU", "samples", "idle", "user", "kernel"];
    if report.tells_interrupts {
        headings.extend(["softirq", "hard interrupt"]);
    }
    let mut table = Table::new(1, &headings);
    for CpuContextShare { cpu, samples, idle, user, kernel, softirq, hardirq } in &report.cpus {
        let mut cells = vec![cpu.to_string(), count(*samples)];
        cells.extend([idle, user, kernel].map(|part| share(*part)));
        if report.tells_interrupts {
            cells.extend([softirq, hardirq].map(|part| share(*part)));
        }
        table.row(cells);
    }
    table
}

fn tasks(report: &ProfileReport, most: usize) -> Table {
    let mut table = Table::new(1, &["task", "tasks", "share", "user", "kernel", "samples"]);
    for task in report.tasks.iter().take(most) {
        let name = if task.name.is_empty() { "[other]".into() } else { task.name.clone() };
        let tasks = if name == INTERRUPTS { "-".into() } else { count(task.tasks) };
        let [all, user, kernel] = [task.share, task.user, task.kernel].map(share);
        table.row(vec![name, tasks, all, user, kernel, count(task.samples)]);
    }
    table
}

fn symbols(report: &ProfileReport, most: usize) -> Table {
    let mut table = Table::new(2, &["function", "of", "itself", "with callees", "samples"]);
    for symbol in report.symbols.iter().take(most) {
        let module = match symbol.module.rsplit('/').next() {
            Some(file) if symbol.module.starts_with('/') => file,
            _ => &symbol.module,
        };
        let [own, total] = [symbol.own, symbol.total].map(share);
        let name = short(&symbol.name);
        table.row(vec![name, module.into(), own, total, count(symbol.samples)]);
    }
    table
}

/// Characters of a function's name in the table: those of C++ and Rust have hundreds.
const LONGEST_FUNCTION: usize = 60;

fn short(name: &str) -> String {
    match name.char_indices().nth(LONGEST_FUNCTION) {
        Some((end, _)) => format!("{}...", name.get(..end).unwrap_or_default()),
        None => name.to_owned(),
    }
}

/// What the reader has to know of these figures.
fn remarks(report: &ProfileReport) -> String {
    let mut lines = Vec::new();
    let cost = report.cost;
    let each = cost.program_ns / cost.samples.max(1);
    let nanos = |ns: u64| Nanos(i64::try_from(ns).unwrap_or(i64::MAX));
    lines.push(format!(
        "The profile itself took {}, warm-up included: {} at {} each in the kernel, without the \
         interrupts around them; and {} of the thread that collects them.",
        nanos(cost.program_ns.saturating_add(cost.helper_ns)),
        many(cost.samples, "sample"),
        nanos(each),
        nanos(cost.helper_ns)
    ));
    lines.push(match report.event.as_str() {
        "cpu-clock" => "By cpu-clock, a timer: where interrupts are disabled, and so in a hard \
                        interrupt, the sample is taken when they are enabled again, and shows what \
                        comes next."
            .to_owned(),
        _ => "By cycles: a halted CPU has none, so that idle time is hardly seen.".to_owned(),
    });
    if !report.tells_interrupts {
        lines.push(format!(
            "This kernel does not show its preempt count: interrupts are in what they interrupted, \
             as functions of {KERNEL_MODULE}."
        ));
    }
    if report.lost > 0 {
        lines.push(format!("{} were lost: use a lower rate.", many(report.lost, "sample")));
    }
    if report.other > 0 {
        lines.push(format!(
            "{} had no room for their task or stack, and are in [other] or without a function.",
            many(report.other, "sample")
        ));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::super::{MOST_SHOWN, tests::sampled};
    use super::*;

    #[test]
    fn the_tables_say_who_used_the_cpus_and_what_is_not_seen() {
        let mut profile = sampled();
        let report = ProfileReport::of(&profile, Some(2), MOST_SHOWN);
        let shown = text(&report, "run", 20);
        assert!(
            shown.starts_with("run: 8 of the 396 samples due by cpu-clock in 2.0 s, 99"),
            "{shown}"
        );
        for line in [
            "CPU  samples   idle  user  kernel  softirq  hard interrupt",
            "0          4    0.0  75.0     0.0     25.0             0.0",
            "swapper           1   50.0   0.0     0.0        4",
            "spin      burn        25.0          25.0        2",
            "10 samples at 5.00 us each in the kernel",
            "2 samples were lost",
        ] {
            assert!(shown.contains(line), "{line}:\n{shown}");
        }
        profile.tells_interrupts = false;
        let shown = text(&ProfileReport::of(&profile, None, MOST_SHOWN), "run", 1);
        assert!(!shown.contains("hard interrupt\n") && shown.contains("preempt count"), "{shown}");
        assert!(!shown.contains("spin"), "one row");
        assert!(shown.starts_with("run: 8 samples by cpu-clock in 2.0 s"), "{shown}");
    }
}
