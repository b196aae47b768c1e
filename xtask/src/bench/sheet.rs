//! The sheet of results: what the machine is, and rows of what was measured, limit and verdict.

use std::fmt::Write as _;

use tardy::{analysis::Estimate, setup::facts};

use super::Bench;

/// One number that tardy must reach, and the result.
#[derive(Debug)]
pub(crate) struct FigureRow {
    pub what: String,
    /// Median and interval, with units.
    pub measured: String,
    pub limit: String,
    /// `None` without a limit, or if nothing could be measured.
    pub met: Option<bool>,
}

impl FigureRow {
    pub(crate) fn new(what: impl Into<String>, measured: impl Into<String>) -> Self {
        Self { what: what.into(), measured: measured.into(), limit: String::new(), met: None }
    }

    /// Judges by a limit that `met` says is kept.
    pub(crate) fn judged(mut self, limit: impl Into<String>, met: bool) -> Self {
        self.limit = limit.into();
        self.met = Some(met);
        self
    }

    /// What has a limit and could not be measured, and why.
    pub(crate) fn not_measured(
        what: impl Into<String>,
        limit: impl Into<String>,
        why: &str,
    ) -> Self {
        let measured = format!("could not be measured: {why}");
        Self { what: what.into(), measured, limit: limit.into(), met: None }
    }

    fn verdict(&self) -> &'static str {
        match (self.met, self.limit.is_empty()) {
            (Some(true), _) => "met",
            (Some(false), _) => "NOT MET",
            (None, false) => "not measured",
            (None, true) => "",
        }
    }

    fn cells(&self) -> [&str; 4] {
        [&self.what, &self.measured, &self.limit, self.verdict()]
    }
}

/// Rows that belong together, and how they came about.
#[derive(Debug)]
pub(crate) struct Section {
    pub title: String,
    pub rows: Vec<FigureRow>,
    pub notes: Vec<String>,
}

const HEAD: [&str; 4] = ["what", "measured", "limit", "verdict"];

impl Section {
    pub(crate) fn new(title: &str) -> Self {
        Self { title: title.into(), rows: Vec::new(), notes: Vec::new() }
    }

    /// What is left where nothing could be measured: a row that says why.
    pub(crate) fn failed(title: &str, why: &anyhow::Error) -> Self {
        let mut section = Self::new(title);
        section.rows.push(FigureRow::not_measured(title, "-", &format!("{why:#}")));
        section
    }

    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// As a Markdown section.
    pub(crate) fn markdown(&self) -> String {
        let mut out =
            format!("### {}\n\n| {} |\n| --- | --- | --- | --- |\n", self.title, HEAD.join(" | "));
        for row in &self.rows {
            let _ = writeln!(
                out,
                "| {} |",
                row.cells().map(|cell| cell.replace('|', "\\|")).join(" | ")
            );
        }
        out.push('\n');
        for note in &self.notes {
            let _ = writeln!(out, "{note}\n");
        }
        out
    }

    /// As columns for a terminal.
    pub(crate) fn table(&self) -> String {
        let rows = || std::iter::once(HEAD).chain(self.rows.iter().map(FigureRow::cells));
        let width = |column: usize| {
            rows()
                .filter_map(|row| row.get(column).map(|cell| cell.chars().count()))
                .max()
                .unwrap_or(0)
        };
        let widths = [width(0), width(1), width(2)];
        let mut out = String::new();
        for [what, measured, limit, verdict] in rows() {
            let [a, b, c] = widths;
            let _ = writeln!(out, "  {what:a$}  {measured:b$}  {limit:c$}  {verdict}");
        }
        out
    }
}

/// `0.98 (0.95 to 1.02)`, with `digits` behind the point.
pub(super) fn interval(estimate: &Estimate, digits: usize) -> String {
    let Estimate { median, low, high, .. } = estimate;
    format!("{median:.digits$} ({low:.digits$} to {high:.digits$})")
}

/// What was measured where and when.
pub(super) fn head(bench: &Bench) -> String {
    let facts = facts::read(0);
    let or_unknown = |text: Option<String>| text.unwrap_or_else(|| "unknown".into());
    let smoke = if bench.quick {
        "\n**A smoke test (`--quick`): these numbers are not worth quoting.**\n"
    } else {
        ""
    };
    format!(
        "## Measured on {date}\n{smoke}\n\
         | | |\n| --- | --- |\n\
         | CPU | {cpu}, {count} used ({cpus}) |\n\
         | kernel | {kernel}, preemption {preemption}, clock source {clock} |\n\
         | virtual machine | {virt} |\n\
         | load average before | {load} |\n\
         | tardy | {version} |\n\n\
         Intervals are those of the sign test, 95% or more. A ratio is tardy to its peer, so \
         below 1 \
         tardy is ahead; its limit is met when the interval does not lie wholly above it.\n\n",
        date = jiff::Zoned::now().date(),
        cpu = or_unknown(facts.cpu_model),
        count = bench.cpus.len(),
        cpus = bench.cpus,
        kernel = facts.kernel,
        preemption = facts.preemption.model,
        clock = or_unknown(facts.clock_source),
        virt = facts.virtualisation.unwrap_or_else(|| "none found".into()),
        load = facts.load_average.map_or_else(|| "unknown".into(), |[one, ..]| format!("{one:.2}")),
        version = facts.tardy_version,
    )
}
