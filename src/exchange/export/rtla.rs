//! What rtla 6.1 prints at the end of `timerlat` and `osnoise`: its histogram, and its summary of
//! each CPU, for those who parse them. Latencies are whole units, rounded down, as there.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

use super::{counted::CountedRun, cyclictest::keep_extremes};
use crate::{limits::export::MOST_CELLS, run::SeriesSummary, units::Nanos};

/// What a column is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RtlaColumn {
    /// From the programmed expiry to the timer's interrupt.
    Irq,
    /// From there to the thread.
    Thread,
    /// Gaps of a thread that never sleeps.
    Noise,
}

impl RtlaColumn {
    const fn heading(self) -> &'static str {
        match self {
            Self::Irq => "IRQ",
            Self::Thread => "Thr",
            Self::Noise => "CPU",
        }
    }

    /// The series of it beside that of whole latencies.
    fn series(self, whole: &str) -> String {
        match self {
            Self::Irq => format!("{whole}/irq"),
            Self::Thread | Self::Noise => whole.to_owned(),
        }
    }
}

/// How rtla was told to print.
#[derive(Debug, Clone)]
pub(crate) struct RtlaStyle {
    /// The first line: `timerlat` or `osnoise`.
    pub(crate) tool: &'static str,
    /// Of each CPU, in this order.
    pub(crate) columns: Vec<RtlaColumn>,
    /// 1,000, or 1 with `-n`.
    pub(crate) unit_ns: u64,
    /// Units in a row.
    pub(crate) bucket: u64,
    /// Rows; what lies beyond them is `over`.
    pub(crate) entries: u64,
    pub(crate) has_zeros: bool,
    pub(crate) has_header: bool,
    pub(crate) has_summary: bool,
    pub(crate) has_index: bool,
}

impl RtlaStyle {
    /// What readers of a kept file must know of the threads.
    fn thread_remark(&self) -> &'static str {
        let has_threads = self.columns.contains(&RtlaColumn::Thread);
        if has_threads { ": Thr ends in user space" } else { "" }
    }
}

/// A figure of a series, ns.
type SeriesFigure = fn(&SeriesSummary) -> Option<i64>;

/// A column of one CPU.
struct Column<'a> {
    heading: String,
    series: &'a SeriesSummary,
    by_row: BTreeMap<u64, u64>,
    over: u64,
}

impl<'a> Column<'a> {
    fn of(run: &CountedRun, number: usize, series: &'a SeriesSummary, style: &RtlaStyle) -> Self {
        let row_ns = style.unit_ns.saturating_mul(style.bucket).max(1);
        let whole = |ns: Option<i64>| ns.and_then(|ns| u64::try_from(ns).ok());
        let (min_ns, max_ns) = (whole(series.min).unwrap_or(0), whole(series.max).unwrap_or(0));
        let mut by_row = BTreeMap::new();
        for bucket in run.buckets(number) {
            // Nothing in the bucket is outside of these.
            let ns = run.value_ns(&bucket).min(max_ns).max(min_ns);
            *by_row.entry(ns / row_ns).or_insert(0) += bucket.count;
        }
        for (count, row) in [(series.early, 0), (series.above, max_ns / row_ns)] {
            if count > 0 {
                *by_row.entry(row).or_insert(0) += count;
            }
        }
        if series.early == 0 && series.above == 0 {
            keep_extremes(&mut by_row, series, row_ns);
        }
        let beyond = by_row.split_off(&style.entries);
        let over = beyond.values().copied().fold(0, u64::saturating_add);
        Self { heading: String::new(), series, by_row, over }
    }

    /// A figure of all its samples, in units; nothing without one.
    fn figure(&self, of: SeriesFigure, style: &RtlaStyle) -> Option<i64> {
        let unit_ns = i64::try_from(style.unit_ns).unwrap_or(1).max(1);
        let ns = of(self.series).filter(|_| self.series.count > 0);
        // Early wake-ups have no place there.
        ns.map(|ns| ns.max(0) / unit_ns)
    }
}

fn columns<'a>(run: &'a CountedRun, style: &RtlaStyle) -> Vec<Column<'a>> {
    let mut found = Vec::new();
    for (_, whole) in run.wakeups() {
        for kind in &style.columns {
            let name = kind.series(&whole.name);
            let mut all = run.document.series.iter().enumerate();
            let Some((number, series)) = all.find(|(_, own)| own.name == name) else { continue };
            let heading = format!("{}-{:03}", kind.heading(), whole.cpu.unwrap_or(0));
            found.push(Column { heading, ..Column::of(run, number, series, style) });
        }
    }
    found
}

/// `   0 00:10:00`, as rtla prints a duration: days and a time of day.
fn duration(ns: u64) -> String {
    let s = ns / 1_000_000_000;
    format!("{:3} {:02}:{:02}:{:02}", s / 86_400, s / 3_600 % 24, s / 60 % 60, s % 60)
}

/// The histogram, as `hist` prints it.
///
/// # Errors
/// It has more cells than are written.
pub(crate) fn histogram(run: &CountedRun, style: &RtlaStyle) -> io::Result<String> {
    let columns = columns(run, style);
    let rows: BTreeSet<u64> = match style.has_zeros {
        true => (0..style.entries.min(MOST_CELLS.saturating_add(1))).collect(),
        false => columns.iter().flat_map(|own| own.by_row.keys().copied()).collect(),
    };
    if (rows.len() as u64).saturating_mul(columns.len().max(1) as u64) > MOST_CELLS {
        return Err(io::Error::other(format!(
            "the histogram of {} columns has {} rows, and at most {MOST_CELLS} cells are written; \
             use a larger -b, or leave --with-zeros out",
            columns.len(),
            rows.len()
        )));
    }
    let mut out = String::new();
    if style.has_header {
        let unit = if style.unit_ns == 1 { "nanoseconds (ns)" } else { "microseconds (us)" };
        out.push_str(&format!(
            "# RTLA {} histogram\n# Time unit is {unit}\n# Duration: {}\n\
             # Measured by tardy {}{}\n",
            style.tool,
            duration(run.document.duration_ns),
            env!("CARGO_PKG_VERSION"),
            style.thread_remark()
        ));
        let headings: String = columns.iter().map(|own| format!("   {}", own.heading)).collect();
        out.push_str(&format!("{}{headings}\n", if style.has_index { "Index" } else { "" }));
    }
    let mut line = |index: String, cells: Vec<String>| {
        let index = if style.has_index { format!("{index:<6}") } else { String::new() };
        let cells: String = cells.iter().map(|cell| format!("{cell:>9} ")).collect();
        out.push_str(&format!("{}\n", format!("{index}{cells}").trim_end()));
    };
    let each = |cell: &dyn Fn(&Column<'_>) -> String| columns.iter().map(cell).collect::<Vec<_>>();
    for row in rows {
        let count = |own: &Column<'_>| own.by_row.get(&row).copied().unwrap_or(0).to_string();
        line((row * style.bucket).to_string(), each(&count));
    }
    if style.has_summary {
        line("over:".into(), each(&|own| own.over.to_string()));
        line("count:".into(), each(&|own| own.series.count.to_string()));
        let figures: [(&str, SeriesFigure); 3] =
            [("min:", |own| own.min), ("avg:", |own| own.mean), ("max:", |own| own.max)];
        for (name, of) in figures {
            line(name.into(), each(&|own| or_dash(own.figure(of, style))));
        }
    }
    Ok(out)
}

fn or_dash(value: Option<i64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// The summary of each CPU, as `timerlat top` prints it. `cur`, the last latency, no run has.
pub(crate) fn summary(run: &CountedRun, style: &RtlaStyle) -> String {
    let unit = if style.unit_ns == 1 { "ns" } else { "us" };
    let has_irq = style.columns.contains(&RtlaColumn::Irq);
    let irq_title = format!("          IRQ Timer Latency ({unit})        |");
    let figures = "      cur       min       avg       max";
    let (irq_title, irq_figures) = match has_irq {
        true => (irq_title, format!("{figures} |")),
        false => (String::new(), String::new()),
    };
    let mut out = format!(
        "{:37}Timer Latency\n{}   |{irq_title}         Thread Timer Latency ({unit})\n\
         CPU COUNT      |{irq_figures}{figures}\n",
        "",
        duration(run.document.duration_ns)
    );
    let width = style.columns.len().max(1);
    for own in columns(run, style).chunks(width) {
        let Some(thread) = own.last() else { continue };
        out.push_str(&format!(
            "{:3} #{:<9} |",
            thread.series.cpu.unwrap_or(0),
            thread.series.count
        ));
        let cells = |column: &Column<'_>| -> String {
            let min = column.figure(|own| own.min, style);
            let avg = column.figure(|own| own.mean, style);
            let max = column.figure(|own| own.max, style);
            [None, min, avg, max].into_iter().map(|own| format!("{:>9} ", or_dash(own))).collect()
        };
        let cells: Vec<String> = own.iter().map(cells).collect();
        out.push_str(&format!("{}\n", cells.join("|").trim_end()));
    }
    out
}

/// The worst latency of a run that stopped at a limit, in a sentence.
pub(crate) fn stopped_at(run: &CountedRun) -> Option<String> {
    let worst = run.wakeups().map(|(_, series)| series).max_by_key(|series| series.max)?;
    let (cpu, max) = (worst.cpu?, worst.max?);
    Some(format!("## CPU {cpu} hit stop tracing: {} ##", Nanos(max)))
}

#[cfg(test)]
mod tests;
