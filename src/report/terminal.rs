//! One run as text for a terminal or a log: verdict and caveats first, then the tables; last, where
//! the eye is, verdict and headline.
//!
//! On a terminal no line is wider than it. Text breaks between words; of a table whole columns go,
//! those that say least, and a line names them.

mod deadline;
mod fold;
mod intervals;
mod messages;
mod stages;
mod tail;

use anstyle::{AnsiColor, Style};

use super::{
    attached,
    deadline::SeriesDeadline,
    figures,
    headline::{MissedInAll, headline},
    how_long::StatementCost,
    interrupts,
    intervals::RunIntervals,
    page::InterruptRow,
    sample_name::{self, SampleName},
    table::{Table, us},
    tail::RunTail,
    tasks, without_host, words,
};
use crate::{
    plain::plain,
    run::{
        Caveat, Document, Effect, LoadRecord, Percentiles, SeriesSummary, Status, Validity,
        conditions::MachineRecord,
        summary::{ENOUGH_BEYOND, PERCENTILES},
    },
    units::{byte_rate, count, many, rate},
};

pub use fold::fold;
pub use intervals::interval;

/// Columns of latencies that fit on a narrow terminal, the first of them first. Never how many
/// there were, how many were missed, and the maximum.
const LEAST: [&str; 7] = ["mean", "p90", "p99.999", "min", "p99.99", "p50", "p99.9"];

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

/// What is shown of a run only where somebody asks for it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked<'a> {
    /// The interrupts that moved.
    pub interrupts: &'a [InterruptRow],
    /// The intervals of its percentiles.
    pub intervals: Option<&'a RunIntervals>,
    /// Whether it was long enough.
    pub tail: Option<&'a RunTail>,
    /// How long to run for a statement.
    pub how_long: &'a [StatementCost],
    /// What a deadline is to each series.
    pub deadlines: &'a [SeriesDeadline],
}

/// The whole of `tardy show`, in lines of at most `width` characters where that is given.
#[must_use]
pub fn show(document: &Document, place: &str, asked: Asked<'_>, width: Option<usize>) -> String {
    let document = &harmless(document);
    let mut out = first_line(document);
    out.push_str(&format!("{}\n\n", words::line(document)));
    if !document.caveats.is_empty() {
        document.caveats.iter().for_each(|caveat| push_caveat(&mut out, caveat));
        out.push('\n');
    }
    push_without_host(&mut out, document);
    push_figures(&mut out, document, width);
    asked.intervals.iter().for_each(|known| intervals::push(&mut out, known, width));
    asked.tail.iter().for_each(|known| tail::push(&mut out, known));
    tail::push_how_long(&mut out, asked.how_long);
    let has_raw = document.attached.is_none();
    deadline::push(&mut out, asked.deadlines, document.duration_ns as f64 / 1e9, has_raw);
    push_interrupts(&mut out, document, asked.interrupts, width);
    out.push_str(&format!("{DIM}run {}{DIM:#}\n", plain(place)));
    if has_figures(document) {
        let (verdict, good) = (document.validity.displayed(), colour(document.validity));
        let headline = headline(document);
        out.push_str(&format!("\n{good}{verdict}{good:#}: {BOLD}{headline}{BOLD:#}\n"));
    }
    fold(&out, width)
}

/// Two lines for a script's log: the verdict and the headline.
#[must_use]
pub fn verdict(document: &Document, width: Option<usize>) -> String {
    let document = &harmless(document);
    let mut out = first_line(document);
    if has_figures(document) {
        out.push_str(&format!("{BOLD}{}{BOLD:#}\n", headline(document)));
    }
    fold(&out, width)
}

/// What was removed, where the figures are without the time of the hypervisor.
fn push_without_host(out: &mut String, document: &Document) {
    let said = without_host::sentences(document);
    said.iter().for_each(|sentence| out.push_str(&format!("{sentence}\n")));
    out.push_str(if said.is_empty() { "" } else { "\n" });
}

/// What cannot steer a terminal.
fn harmless(document: &Document) -> Document {
    // A record that was read has no text that could not be written back.
    document.with_texts(&plain).unwrap_or_else(|_| document.clone())
}

fn first_line(document: &Document) -> String {
    let (name, verdict) = (&document.name, document.validity.displayed());
    let good = colour(document.validity);
    let status = words::status(document.status);
    let status = if status.is_empty() { String::new() } else { format!(", {status}") };
    format!("{BOLD}{name}{BOLD:#}: {good}{verdict}{good:#}{status}\n")
}

/// Whether there is something to be said of it yet.
fn has_figures(document: &Document) -> bool {
    document.status != Status::Running || document.has_values()
}

/// The tables, and what the loads and the machine did.
fn push_figures(out: &mut String, document: &Document, width: Option<usize>) {
    if let Some(table) = tasks::table(document) {
        push_table(out, &table, &tasks::LEAST, width);
        out.push('\n');
    }
    let leads = !document.judged_cycles().is_empty();
    if leads {
        push_responses(out, document, width);
        out.push('\n');
    }
    let mut views = Vec::new();
    views.extend((!document.series.is_empty()).then(|| wakeups(document)));
    views.extend(scheduled(document));
    // What flatters comes last.
    if MissedInAll::of(document).come_first() {
        views.reverse();
    }
    for (number, view) in views.iter().enumerate() {
        out.push_str(if number > 0 { "\n" } else { "" });
        push_table(out, view, &LEAST, width);
    }
    if let Some(table) = figures::table(document) {
        out.push_str(if views.is_empty() { "" } else { "\n" });
        push_table(out, &table, &figures::LEAST, width);
    }
    if let Some(table) = attached::table(document) {
        out.push('\n');
        push_table(out, &table, &attached::LEAST, width);
        for remark in attached::remarks(document) {
            out.push_str(&format!("{DIM}{remark}{DIM:#}\n"));
        }
    }
    if !leads && attached::responses(document).is_some() {
        out.push('\n');
        push_responses(out, document, width);
    }
    messages::push(out, document, width);
    stages::push(out, document, width);
    if document.wakeups().any(|series| !series.uncertain.is_empty()) {
        out.push_str(&format!(
            "{DIM}~ fewer than {ENOUGH_BEYOND} samples beyond it: little more than the \
             maximum{DIM:#}\n"
        ));
    }
    document.loads.iter().for_each(|load| push_load(out, load));
    document.machine.iter().for_each(|machine| push_machine(out, machine));
    stages::push_cost(out, document);
}

/// How long attached threads worked from one expiry of their timers to the next.
fn push_responses(out: &mut String, document: &Document, width: Option<usize>) {
    let Some(table) = attached::responses(document) else { return };
    push_table(out, &table, &attached::LEAST_RESPONSES, width);
    for note in attached::notes_on_responses(document) {
        out.push_str(&format!("{DIM}{note}{DIM:#}\n"));
    }
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
    out.push_str(&format!("{colour}{} {code}:{colour:#} {text}\n", effect.displayed()));
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
    for series in attached::whole(document) {
        table.row(whole(series, scheduled));
        if sample_name == SampleName::RoundTrip {
            table.row(whole(&messages::halved(series), scheduled));
        }
    }
    for series in attached::below_wakeups(document) {
        table.row(whole(series, scheduled));
    }
    table
}

fn whole(series: &SeriesSummary, scheduled: bool) -> Vec<String> {
    let mut row = vec![sample_name::series(&series.name).into_owned(), count(series.count)];
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
    let has_it = |series: &&SeriesSummary| series.scheduled.is_some();
    let differs = document.wakeups().any(|series| series.missed.unwrap_or(0) > 0)
        && attached::whole(document).iter().any(has_it);
    if !differs {
        return None;
    }
    let mut headings = vec!["us, per scheduled period", "count", "mean"];
    headings.extend(PERCENTILE_HEADINGS);
    headings.push("max");
    let mut table = Table::new(1, &headings);
    for series in attached::whole(document) {
        let Some(scheduled) = &series.scheduled else { continue };
        let name = sample_name::series(&series.name).into_owned();
        let mut row = vec![name, count(scheduled.count), us(scheduled.mean)];
        row.extend(percentile_cells(&scheduled.percentiles, &scheduled.uncertain));
        row.push(us(scheduled.max));
        table.row(row);
    }
    Some(table)
}

/// A table, without those columns of `least` that a narrow terminal has no room for.
fn push_table(out: &mut String, table: &Table, least: &[&str], width: Option<usize>) {
    let (lines, gone) = table.fitted(width, least);
    push_lines(out, &lines);
    if !gone.is_empty() {
        let gone = gone.join(", ");
        out.push_str(&format!("{DIM}no room for {gone}: --json has all{DIM:#}\n"));
    }
}

fn push_lines(out: &mut String, lines: &[String]) {
    for (number, line) in lines.iter().enumerate() {
        let style = if number == 0 { DIM } else { Style::new() };
        out.push_str(&format!("{style}{line}{style:#}\n"));
    }
}

fn push_load(out: &mut String, load: &LoadRecord) {
    let Some(proof) = &load.proof else { return };
    out.push_str(&format!(
        "load {}: {} {}/s, {} context switches/s, {:.2} CPUs, {}\n",
        words::load(load),
        rate(proof.operations_per_s),
        proof.unit,
        rate(proof.context_switches_per_s),
        proof.cpu_share,
        many(proof.tasks, "task"),
    ));
}

/// The whole machine beside the loads; what hardly moved is left out.
fn push_machine(out: &mut String, machine: &MachineRecord) {
    let mut parts = Vec::new();
    // None are known where nothing of the run's time was left to look at them.
    if !machine.cpus.is_empty() {
        let busy = machine.cpus.iter().map(|cpu| cpu.busy).sum::<f64>();
        parts.push(format!("{busy:.2} CPUs busy of {}", machine.cpus.len()));
    }
    for (per_s, what) in [
        (machine.context_switches_per_s, "context switches/s"),
        (machine.interrupts_per_s, "interrupts/s"),
        (machine.softirqs_per_s, "softirqs/s"),
        (machine.forks_per_s, "forks/s"),
        (machine.page_faults_per_s, "page faults/s"),
    ] {
        if per_s >= 1.5 {
            parts.push(format!("{} {what}", rate(per_s)));
        }
    }
    for (per_s, what) in [
        (machine.disk_read_bytes_per_s, "from disks"),
        (machine.disk_written_bytes_per_s, "to disks"),
        (machine.network_received_bytes_per_s, "from the network"),
        (machine.network_sent_bytes_per_s, "to the network"),
        (machine.loopback_bytes_per_s, "over loopback"),
    ] {
        if per_s >= 1.5 {
            parts.push(format!("{} {what}", byte_rate(per_s)));
        }
    }
    if !parts.is_empty() {
        out.push_str(&format!("machine: {}\n", parts.join(", ")));
    }
}

/// What interrupted each CPU, beside how late it was.
fn push_interrupts(
    out: &mut String,
    document: &Document,
    moved: &[InterruptRow],
    width: Option<usize>,
) {
    let lines = interrupts::lines(document, moved, width);
    if lines.is_empty() {
        return;
    }
    out.push('\n');
    push_lines(out, &lines);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    fn text(styled: &str) -> String {
        anstream::adapter::strip_str(styled).to_string()
    }

    /// A run with every percentile, on a machine with a long name, with a caveat.
    fn document() -> Document {
        let mut document = fixture::of("timer", &["cpu0", "cpu1"]);
        document.facts.hostname = "a-machine-of-mine.example.org".into();
        for series in &mut document.series {
            let all = ["50", "90", "99", "99.9", "99.99", "99.999"];
            series.percentiles =
                all.map(|name| (name.to_owned(), 81_234_000)).into_iter().collect();
            series.missed = Some(1_234);
        }
        document.caveats.push(crate::run::CaveatKind::Crashed.into());
        document
    }

    #[test]
    fn on_a_narrow_terminal_no_line_is_wider_and_no_word_is_broken() {
        let document = document();
        let wide = text(&show(&document, "/a/run", Asked::default(), None));
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for width in [40, 60, 80, 100] {
            let narrow = text(&show(&document, "/a/run", Asked::default(), Some(width)));
            assert!(narrow.lines().all(|line| line.chars().count() <= width), "{narrow}");
            let (wide, narrow) = (words(&wide), words(&narrow));
            let known = |word: &&String| wide.contains(word) || is_of_the_note(word);
            assert_eq!(narrow.iter().find(|word| !known(word)), None, "at {width}");
        }
        let narrow = text(&show(&document, "/a/run", Asked::default(), Some(60)));
        assert!(narrow.contains("no room for mean, p90"), "{narrow}");
        assert!(narrow.contains("missed") && narrow.contains("max"), "{narrow}");
        assert!(!wide.contains("no room for"), "{wide}");
    }

    fn is_of_the_note(word: &str) -> bool {
        let bare = word.trim_end_matches([',', ':']);
        ["no", "room", "for", "--json", "has", "all"].contains(&bare) || LEAST.contains(&bare)
    }

    #[test]
    fn the_verdict_is_first_and_the_headline_last() {
        let document = document();
        let shown = text(&show(&document, "/a/run", Asked::default(), None));
        assert_eq!(shown.lines().next(), Some("n: valid"));
        let last = shown.lines().last().unwrap();
        assert_eq!(last, format!("valid: {}", headline(&document)));
        assert_eq!(shown.matches(&headline(&document)).count(), 1, "{shown}");
    }

    #[test]
    fn the_verdict_alone_is_two_lines() {
        let mut document = document();
        let short = text(&verdict(&document, None));
        assert_eq!(short, format!("n: valid\n{}\n", headline(&document)));
        document.status = Status::Interrupted;
        assert!(text(&verdict(&document, None)).starts_with("n: valid, interrupted\n"));
        (document.status, document.series) = (Status::Running, Vec::new());
        assert_eq!(text(&verdict(&document, None)), "n: valid, still running\n");
    }
}
