//! One run as text for a terminal or a log: verdict and caveats first, then the tables.

mod messages;
mod stages;

use anstyle::{AnsiColor, Style};

use super::{
    headline::{MissedInAll, headline},
    interrupts,
    page::InterruptRow,
    sample_name::{self, SampleName},
    table::{Table, us},
    words,
};
use crate::{
    plain::plain,
    run::{
        Caveat, Document, Effect, LoadRecord, Percentiles, SeriesSummary, Status, Validity,
        conditions::MachineRecord,
        summary::{ENOUGH_BEYOND, PERCENTILES},
    },
    units::{count, rate},
};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// The colour of something good, doubtful or bad.
const fn colour(validity: Validity) -> Style {
    match validity {
        Validity::Valid => AnsiColor::Green.on_default(),
        Validity::Weakened => AnsiColor::Yellow.on_default(),
        Validity::Invalid => AnsiColor::Red.on_default(),
    }
}

/// The whole of `tardy show`; `moved` are the interrupts that moved.
#[must_use]
pub fn show(document: &Document, place: &str, moved: &[InterruptRow]) -> String {
    // A record that was read has no text that could not be written back.
    let document = &document.with_texts(&plain).unwrap_or_else(|_| document.clone());
    let mut out = String::new();
    let verdict = document.validity;
    let good = colour(verdict);
    let status = words::status(document.status);
    let status = if status.is_empty() { String::new() } else { format!(", {status}") };
    let verdict = verdict.as_str();
    let name = &document.name;
    out.push_str(&format!("{BOLD}{name}{BOLD:#}: {good}{verdict}{good:#}{status}\n"));
    out.push_str(&format!("{}\n\n", words::line(document)));
    if !document.caveats.is_empty() {
        document.caveats.iter().for_each(|caveat| push_caveat(&mut out, caveat));
        out.push('\n');
    }
    if document.status != Status::Running || document.wakeups().any(|series| series.count > 0) {
        out.push_str(&format!("{BOLD}{}{BOLD:#}\n\n", headline(document)));
    }
    let mut views = vec![wakeups(document)];
    views.extend(scheduled(document));
    // What flatters comes last.
    if MissedInAll::of(document).are_material() {
        views.reverse();
    }
    for (number, view) in views.iter().enumerate() {
        out.push_str(if number > 0 { "\n" } else { "" });
        push_lines(&mut out, view);
    }
    messages::push(&mut out, document);
    stages::push(&mut out, document);
    if document.wakeups().any(|series| !series.uncertain.is_empty()) {
        out.push_str(&format!(
            "{DIM}~ fewer than {ENOUGH_BEYOND} samples beyond it: little more than the \
             maximum{DIM:#}\n"
        ));
    }
    document.loads.iter().for_each(|load| push_load(&mut out, load));
    document.machine.iter().for_each(|machine| push_machine(&mut out, machine));
    stages::push_cost(&mut out, document);
    push_interrupts(&mut out, document, moved);
    out.push_str(&format!("{DIM}run {}{DIM:#}\n", plain(place)));
    out
}

/// One caveat: what, why, and what to do.
pub fn push_caveat(out: &mut String, caveat: &Caveat) {
    let colour = colour(match caveat.effect {
        Effect::Informs => Validity::Valid,
        Effect::Weakens => Validity::Weakened,
        Effect::Invalidates => Validity::Invalid,
    });
    let [code, text, remedy] = [&caveat.code, &caveat.text, &caveat.remedy].map(|text| plain(text));
    let effect = caveat.effect;
    out.push_str(&format!("{colour}{} {code}:{colour:#} {text}\n", effect.as_str()));
    out.push_str(&format!("  {DIM}{remedy}{DIM:#}\n"));
}

/// A row per series; below a round trip one of its half.
fn wakeups(document: &Document) -> Table {
    let sample_name = SampleName::of(document);
    let scheduled = sample_name == SampleName::WakeUp;
    let mut headings = vec!["us", "count"];
    headings.extend(scheduled.then_some("missed"));
    headings.extend(["min", "mean"]);
    headings.extend(PERCENTILE_HEADINGS);
    headings.push("max");
    let mut table = Table::new(1, &headings);
    for series in document.wakeups() {
        table.row(whole(series, scheduled));
        if sample_name == SampleName::RoundTrip {
            table.row(whole(&messages::halved(series), scheduled));
        }
    }
    table
}

fn whole(series: &SeriesSummary, scheduled: bool) -> Vec<String> {
    let mut row = vec![sample_name::series(&series.name).to_owned(), count(series.count)];
    row.extend(scheduled.then(|| series.missed.map_or_else(|| "-".into(), count)));
    row.extend([us(series.min), us(series.mean)]);
    row.extend(percentile_cells(&series.percentiles, &series.uncertain));
    row.push(us(series.max));
    row
}

const PERCENTILE_HEADINGS: [&str; 6] = ["p50", "p90", "p99", "p99.9", "p99.99", "p99.999"];

fn percentile_cells(percentiles: &Percentiles, uncertain: &[String]) -> Vec<String> {
    let cell = |(name, _): &(&str, f64)| {
        let value = percentiles.get(*name).map(|ns| i64::try_from(*ns).unwrap_or(i64::MAX));
        let mark =
            if uncertain.iter().any(|few| few == name) && value.is_some() { "~" } else { "" };
        format!("{mark}{}", us(value))
    };
    PERCENTILES.iter().map(cell).collect()
}

/// The second view, where it differs from the first.
fn scheduled(document: &Document) -> Option<Table> {
    let differs = document.wakeups().any(|series| series.missed.unwrap_or(0) > 0);
    if !differs {
        return None;
    }
    let mut headings = vec!["us, per scheduled period", "count", "mean"];
    headings.extend(PERCENTILE_HEADINGS);
    headings.push("max");
    let mut table = Table::new(1, &headings);
    for series in document.wakeups() {
        let Some(scheduled) = &series.scheduled else { continue };
        let mut row = vec![series.name.clone(), count(scheduled.count), us(scheduled.mean)];
        row.extend(percentile_cells(&scheduled.percentiles, &scheduled.uncertain));
        row.push(us(scheduled.max));
        table.row(row);
    }
    Some(table)
}

fn push_lines(out: &mut String, table: &Table) {
    for (number, line) in table.lines().into_iter().enumerate() {
        let style = if number == 0 { DIM } else { Style::new() };
        out.push_str(&format!("{style}{line}{style:#}\n"));
    }
}

fn push_load(out: &mut String, load: &LoadRecord) {
    let Some(proof) = &load.proof else { return };
    out.push_str(&format!(
        "load {}: {} {}/s, {} context switches/s, {:.2} CPUs, {} tasks\n",
        words::load(load),
        rate(proof.operations_per_s),
        proof.unit,
        rate(proof.context_switches_per_s),
        proof.cpu_share,
        proof.tasks,
    ));
}

/// The whole machine beside the loads; what did not move is left out.
fn push_machine(out: &mut String, machine: &MachineRecord) {
    let busy = machine.cpus.iter().map(|cpu| cpu.busy).sum::<f64>();
    let mut parts = vec![format!("{busy:.2} CPUs busy of {}", machine.cpus.len())];
    for (per_s, what) in [
        (machine.context_switches_per_s, " context switches/s"),
        (machine.interrupts_per_s, " interrupts/s"),
        (machine.softirqs_per_s, " softirqs/s"),
        (machine.forks_per_s, " forks/s"),
        (machine.page_faults_per_s, " page faults/s"),
        (machine.disk_read_bytes_per_s, "B/s from disks"),
        (machine.disk_written_bytes_per_s, "B/s to disks"),
        (machine.network_received_bytes_per_s, "B/s from the network"),
        (machine.network_sent_bytes_per_s, "B/s to the network"),
        (machine.loopback_bytes_per_s, "B/s over loopback"),
    ] {
        if per_s >= 1.0 {
            let gap = if what.starts_with('B') && per_s < 9999.5 { " " } else { "" };
            parts.push(format!("{}{gap}{what}", rate(per_s)));
        }
    }
    out.push_str(&format!("machine: {}\n", parts.join(", ")));
}

/// What interrupted each CPU, beside how late it was.
fn push_interrupts(out: &mut String, document: &Document, moved: &[InterruptRow]) {
    let lines = interrupts::lines(document, moved);
    if lines.is_empty() {
        return;
    }
    out.push('\n');
    for (number, line) in lines.iter().enumerate() {
        let style = if number == 0 { DIM } else { Style::new() };
        out.push_str(&format!("{style}{line}{style:#}\n"));
    }
    out.push('\n');
}
