//! Sections below the table, as lines: causes, CPU use, interrupts, loads, caveats.

use std::collections::BTreeMap;

use ratatui::style::Style;

use super::{
    columns::{left, right},
    ink::Ink,
    state::ViewState,
    view::{CauseRow, CpuShares, LiveView},
};
use crate::units::{Nanos, rate};

/// Characters that the section of CPUs needs: a name and five shares.
pub(super) const CPUS: u16 = 37;
const CPU_NAME: usize = 7;

/// The width in characters from which causes are shown with their time.
const ROOMY: usize = 48;

/// A line of styled pieces.
pub(super) type Line = Vec<(String, Style)>;

/// A heading with its lines, the most important first.
#[derive(Debug)]
pub(super) struct Section {
    /// Its heading.
    pub title: String,
    /// What stands below it.
    pub lines: Vec<Line>,
}

impl Section {
    fn of(title: impl Into<String>, lines: Vec<Line>) -> Self {
        Self { title: title.into(), lines }
    }

    /// Lines with the heading.
    pub(super) fn height(&self) -> usize {
        self.lines.len() + 1
    }
}

fn said(text: &str, style: Style) -> Line {
    vec![(crate::plain::plain(text), style)]
}

/// What late samples of the last seconds were blamed on: of all series that pass the filters, each
/// cause once.
pub(super) fn causes(view: &LiveView, state: &ViewState, width: usize, ink: Ink) -> Section {
    let mut sums: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let takes = |row: &&CauseRow| state.takes_cause(&row.series, Some(&row.kind), view);
    for row in view.causes.iter().filter(takes) {
        let sum = sums.entry(&row.cause).or_default();
        *sum = (sum.0.saturating_add(row.samples), sum.1.saturating_add(row.ns));
    }
    // Of all causes, also where one of them is looked at.
    let of_series = view.causes.iter().filter(|row| state.takes_cause(&row.series, None, view));
    let all = of_series.fold(0_u64, |sum, row| sum.saturating_add(row.ns)).max(1);
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, (_, ns))| std::cmp::Reverse(*ns));
    let line = |(cause, (samples, ns)): (&str, (u64, u64))| {
        let share = format!("{:3.0}%", ns as f64 / all as f64 * 1e2);
        let ns = Nanos(i64::try_from(ns).unwrap_or(i64::MAX)).to_string();
        let mut line = vec![(share, ink.bold())];
        if width >= ROOMY {
            line.push((right(&ns, 9), Style::new()));
        }
        line.push((right(&format!("{samples}x"), 6), ink.dim()));
        line.push((format!("  {}", crate::plain::plain(cause)), Style::new()));
        line
    };
    let mut lines: Vec<Line> = vec![said(&view.causes_are, ink.dim())];
    lines.extend(sums.into_iter().map(line));
    if lines.len() == 1 && !view.causes.is_empty() {
        lines.push(said("none that fits the filters", ink.dim()));
    }
    Section::of(format!("causes{}", view.causes_of), lines)
}

/// The time of CPUs by context: all together, then the busiest.
pub(super) fn cpus(view: &LiveView, width: usize, ink: Ink) -> Section {
    if let Some(why) = &view.no_machine {
        return Section::of("CPU", vec![said(why, ink.dim())]);
    }
    let heads = ["user", "sys", "hard", "soft", "steal"];
    let mut title = left("CPU, %", CPU_NAME);
    heads.iter().for_each(|head| title.push_str(&right(head, 6)));
    let mut rows: Vec<&CpuShares> = view.cpus.iter().collect();
    rows.sort_by(|a, b| b.busy().total_cmp(&a.busy()).then(a.cpu.cmp(&b.cpu)));
    let few = rows.len() <= 4;
    if few {
        rows.sort_by_key(|row| row.cpu);
    }
    let mean = |of: fn(&CpuShares) -> f64| {
        rows.iter().map(|row| of(row)).sum::<f64>() / rows.len().max(1) as f64
    };
    let all = CpuShares {
        cpu: 0,
        is_measured: false,
        user: mean(|row| row.user),
        system: mean(|row| row.system),
        hardirq: mean(|row| row.hardirq),
        softirq: mean(|row| row.softirq),
        steal: mean(|row| row.steal),
    };
    let mut lines = Vec::new();
    if rows.len() > 1 {
        lines.push(shares(&format!("all {}", rows.len()), &all, width, ink));
    }
    let name =
        |row: &CpuShares| format!("cpu{}{}", row.cpu, if row.is_measured { "*" } else { "" });
    lines.extend(rows.iter().map(|row| shares(&name(row), row, width, ink)));
    Section::of(title, lines)
}

fn shares(name: &str, of: &CpuShares, width: usize, ink: Ink) -> Line {
    let mut line = vec![(left(name, CPU_NAME), Style::new())];
    for share in [of.user, of.system, of.hardirq, of.softirq, of.steal] {
        let style = if share < 0.005 { ink.dim() } else { Style::new() };
        line.push((right(&format!("{:.0}", share * 1e2), 6), style));
    }
    // A bar where there is room.
    let room = width.saturating_sub(usize::from(CPUS) + 2).min(20);
    if room >= 6 {
        let filled = (of.busy() * room as f64).round() as usize;
        let bar = format!("  {}", "#".repeat(filled.min(room)));
        line.push((bar, if of.busy() > 0.9 { ink.doubtful() } else { ink.good() }));
    }
    line
}

/// Interrupts that moved.
pub(super) fn interrupts(view: &LiveView, width: usize, ink: Ink) -> Section {
    let line = |row: &super::view::MovedInterrupt| {
        let measured = match row.measured_per_s {
            none if none < 0.5 => String::new(),
            per_s => format!(" ({})", rate(per_s.round())),
        };
        let counts = format!("{}{measured}", rate(row.per_s.round()));
        let room = width.saturating_sub(counts.chars().count() + 1);
        vec![
            (left(&row.source, room), Style::new()),
            (format!(" {counts}"), if measured.is_empty() { ink.dim() } else { ink.bold() }),
        ]
    };
    let lines: Vec<Line> = view.interrupts.iter().map(line).collect();
    let lines = match (lines.is_empty(), &view.no_machine) {
        (true, None) => vec![said("none in the last second", ink.dim())],
        _ => lines,
    };
    Section::of("interrupts/s (on measured CPUs)", lines)
}

/// Each load with its proof.
pub(super) fn loads(view: &LiveView, ink: Ink) -> Section {
    let line = |load: &super::view::LoadState| {
        let style = if load.fails { ink.bad() } else { ink.good() };
        vec![
            (format!("{} ", crate::plain::plain(&load.name)), Style::new()),
            (crate::plain::plain(&load.proof), style),
        ]
    };
    let mut lines: Vec<Line> = view.loads.iter().map(line).collect();
    // What fails first.
    let fails = |line: &Line| line.iter().any(|(_, style)| *style == ink.bad());
    lines.sort_by_key(|line| !fails(line));
    if lines.is_empty() {
        lines.push(said("none: the machine as it is", ink.dim()));
    }
    Section::of("loads", lines)
}

/// What there is reason to doubt.
pub(super) fn caveats(view: &LiveView, width: usize, ink: Ink) -> Section {
    let mut lines = Vec::new();
    for reason in &view.caveats {
        let style = match reason.effect {
            "error" => ink.bad(),
            "warning" => ink.doubtful(),
            _ => ink.dim(),
        };
        let text = format!("{}: {}", reason.effect, crate::plain::plain(&reason.text));
        for (number, part) in folded(&text, width).into_iter().enumerate() {
            let head = if number == 0 { part } else { format!("  {part}") };
            lines.push(vec![(head, style)]);
        }
    }
    if lines.is_empty() {
        lines.push(said("none so far", ink.good()));
    }
    Section::of("caveats", lines)
}

/// A text in lines of at most `width` characters, those after the first two shorter.
fn folded(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let room = width.saturating_sub(if lines.len() > 1 { 2 } else { 0 });
        let last = lines.last().map_or(0, |line| line.chars().count());
        if last > 0 && last + 1 + word.chars().count() > room {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_folded_between_words() {
        assert_eq!(folded("one two three", 7), ["one two", "three"]);
        assert_eq!(folded("abcdefghij k", 4), ["abcdefghij", "k"]);
        assert_eq!(folded("", 4), [""]);
    }
}
