//! `tardy why` for a terminal: the verdict, causes per band, stages, periodic causes, worst peaks.

use std::collections::{HashMap, HashSet};

use anstyle::{AnsiColor, Style};

use super::{
    WhyReport, between, causes, own_time,
    selection::PeakView,
    terminal_text::{DIM, TerminalText},
    timeline,
    verdict::every,
};
use crate::{
    analysis::bands::LATE,
    plain::{cut, plain},
    report::{
        causes::{
            responses::sentence,
            words::{percent, phrase},
        },
        sample_name,
        table::{Table, us},
        without_host,
    },
    run::{Document, JudgedCycles, RESPONSE, SeriesSummary, Validity, probes::SampleName},
    units::{Nanos, count, grouped, many, span, times},
};

const BOLD: Style = Style::new().bold();

/// Names are cut after this number of characters.
const NAME: usize = 28;
/// Series whose stages are shown, the latest of them.
const MOST_SERIES: usize = 5;
/// More stages than any probe has.
const MOST_STAGES: usize = 30;
/// Rows and columns of the matrix.
const MOST_TASKS: usize = 8;
const MOST_COLUMNS: usize = 6;
/// Maximum number of periodic causes shown.
const MOST_BEATS: usize = 5;
/// Maximum number of damaged lines shown.
const MOST_DAMAGED: usize = 5;

/// All of it, with the peaks that `why` has in this view.
#[must_use]
pub fn text(why: &WhyReport, document: &Document, place: &str, view: PeakView) -> String {
    let mut sheet = TerminalText::default();
    head(&mut sheet, why, document);
    // With late cycles, wake-ups answer a question that was not asked: `--json` has them.
    match why.bands.iter().find(|band| band.name == LATE) {
        Some(late) => causes::push(&mut sheet, std::slice::from_ref(late), why.sample),
        None => causes::push(&mut sheet, &why.bands, why.sample),
    }
    responses(&mut sheet, why);
    own_time::push(&mut sheet, why);
    between::push(&mut sheet, why);
    stages(&mut sheet, document);
    periodic(&mut sheet, why);
    if !has_late_cycles(why) {
        matrix(&mut sheet, why);
    }
    timeline::peaks(&mut sheet, why, document, view);
    sheet.line(DIM, &format!("run {place}"));
    sheet.done()
}

/// The run, its verdict of itself, and the sentence.
fn head(sheet: &mut TerminalText, why: &WhyReport, document: &Document) {
    let validity = match document.validity {
        Validity::Valid => AnsiColor::Green.on_default(),
        Validity::Weakened => AnsiColor::Yellow.on_default(),
        Validity::Invalid => AnsiColor::Red.on_default(),
    };
    let status = crate::report::words::status(document.status);
    let status = if status.is_empty() { String::new() } else { format!(", {status}") };
    let name = plain(&document.name);
    sheet.styled(&format!(
        "{BOLD}{name}{BOLD:#}: {validity}{}{validity:#}{status}",
        document.validity.displayed()
    ));
    if document.validity != Validity::Valid {
        sheet.line(DIM, "`tardy show` says why");
    }
    for damage in why.damaged.iter().take(MOST_DAMAGED) {
        sheet.wrapped(AnsiColor::Yellow.on_default(), &format!("not read: {damage}"));
    }
    if why.damaged.len() > MOST_DAMAGED {
        let more = why.damaged.len() - MOST_DAMAGED;
        sheet.line(AnsiColor::Yellow.on_default(), &format!("not read: {more} more"));
    }
    sheet.gap();
    without_host(sheet, document);
    sheet.wrapped(BOLD, &why.verdict);
    sheet.gap();
    let counted = if has_late_cycles(why) { late_cycles(why, document) } else { counted(why) };
    sheet.wrapped(DIM, &counted);
    for missing in &document.trace.missing {
        let text = format!(
            "{} is missing here, so that nothing is known of: {}",
            missing.tracepoint, missing.switches_off
        );
        sheet.wrapped(DIM, &text);
    }
    sheet.gap();
}

/// What was removed, where it is a run without the time of its hypervisor.
fn without_host(sheet: &mut TerminalText, document: &Document) {
    let said = without_host::sentences(document);
    said.iter().for_each(|sentence| sheet.wrapped(Style::new(), sentence));
    if !said.is_empty() {
        let peaks = "Peaks were kept by their whole latency, and their timelines show the host: \
                     among those that were not kept there may be later ones than these.";
        sheet.wrapped(Style::new(), peaks);
        sheet.gap();
    }
}

fn has_late_cycles(why: &WhyReport) -> bool {
    why.bands.iter().any(|band| band.name == LATE)
}

/// How many of the late cycles were analyzed.
fn late_cycles(why: &WhyReport, document: &Document) -> String {
    let (analysed, skipped) = (why.responses_analysed, why.responses_passed_over);
    let judged = document.judged_cycles();
    let over = |own: &JudgedCycles<'_>| own.row.over.map_or(0, |over| over.cycles);
    // The last cycle of a thread that ends is counted, but the record ends before it.
    let all = analysed.saturating_add(skipped).max(judged.iter().map(over).sum());
    let mut text = match (analysed, all) {
        (1, 1) => "The only late cycle was analyzed".to_owned(),
        (1, _) => format!("1 of {} was analyzed", many(all, "late cycle")),
        _ if analysed == all => format!("All {} were analyzed", many(all, "late cycle")),
        _ => format!("{} of {} were analyzed", count(analysed), many(all, "late cycle")),
    };
    text.push_str(if skipped > 0 { ", the latest first" } else { "" });
    text.push_str(&reach(why));
    let without: u64 = judged.iter().map(|own| own.missed.saturating_sub(over(own))).sum();
    if without > 0 {
        let periods = many(without, "more period");
        text.push_str(&format!("; {periods} passed without a cycle"));
    }
    if why.lost_events > 0 {
        text.push_str(&format!("; {} lost", many(why.lost_events, "event")));
    }
    text + "."
}

/// How much was analyzed. The count is of all above the lowest threshold there was.
fn counted(why: &WhyReport) -> String {
    let (lowest_ns, last_ns) = (why.lowest_threshold_ns, why.threshold_ns);
    let has_risen = lowest_ns > 0 && lowest_ns < last_ns;
    let mut text = match why.blamed {
        0 if why.summed_ns == Some(0) => format!(
            "No sums of all late {} yet: they are written after the first second of a \
             run, and every few seconds from then on; peaks so far: {}",
            why.sample.many(),
            count(why.peaks_found)
        ),
        0 => format!("No sums of all late wake-ups; peaks: {}", count(why.peaks_found)),
        blamed => {
            let (were, samples) = match blamed {
                1 => ("was", why.sample.one()),
                _ => ("were", why.sample.many()),
            };
            let late = why.sample.late();
            let over = Nanos(if has_risen { lowest_ns } else { last_ns });
            format!("{} {samples} that {were} {late} than {over} {were} analyzed", count(blamed))
        }
    };
    if why.blamed > 0 && has_risen {
        let late = why.sample.late();
        text.push_str(&format!(", at the end only those {late} than {}", Nanos(last_ns)));
    }
    text.push_str(&reach(why));
    let unmatched = match why.sample {
        SampleName::RoundTrip => "had an end that had not gone to sleep",
        SampleName::Packet => "found a reader that had not gone to sleep",
        _ => "could not be matched to trace events",
    };
    let mut but = Vec::new();
    for (n, one, many) in [
        (why.passed_over, "late one was skipped", "late ones were skipped"),
        (why.unmatched, unmatched, unmatched),
        (why.lost_events, "event was lost", "events were lost"),
        (why.peaks_left_out, "peak had no room", "peaks had no room"),
    ] {
        if n > 0 {
            but.push(format!("{} {}", count(n), if n == 1 { one } else { many }));
        }
    }
    if !but.is_empty() {
        text.push_str(&format!("; {}", but.join(", ")));
    }
    text + "."
}

/// How much of a run that did not end in order this is.
fn reach(why: &WhyReport) -> String {
    let summed_ns = why.summed_ns.filter(|summed_ns| *summed_ns > 0);
    summed_ns.map_or_else(String::new, |summed_ns| {
        let first = span(summed_ns as f64 / 1e9);
        format!(", in the first {first} of the run, which its sums reach so far")
    })
}

/// What late responses were spent on, in one sentence.
fn responses(sheet: &mut TerminalText, why: &WhyReport) {
    // The first lines say it of late cycles.
    let skipped = if has_late_cycles(why) { 0 } else { why.responses_passed_over };
    if let Some(text) = sentence(&why.responses, (why.responses_analysed, skipped)) {
        sheet.wrapped(Style::new(), &plain(&text));
        sheet.gap();
    }
}

/// The stages of a run, each once, and each by the series that it is a stage of. What comes after a
/// wake-up is not one of its parts, and comes last.
type Stages<'a> = (Vec<&'a str>, HashMap<(&'a str, &'a str), &'a SeriesSummary>);

fn stages_of(document: &Document) -> Stages<'_> {
    let mut names: Vec<&str> = Vec::new();
    let mut known: HashSet<&str> = HashSet::new();
    let mut of: HashMap<(&str, &str), &SeriesSummary> = HashMap::new();
    for series in &document.series {
        let Some(stage) = series.stage.as_deref() else { continue };
        if known.insert(stage) {
            names.push(stage);
        }
        if let Some(total) = series.stage_of.as_deref() {
            of.entry((total, stage)).or_insert(series);
        }
    }
    names.sort_by_key(|stage| *stage == RESPONSE);
    (names, of)
}

/// Median and p99 of each stage of the run, in the rows; the latest series in the columns.
fn stages(sheet: &mut TerminalText, document: &Document) {
    let (names, of) = stages_of(document);
    if names.is_empty() {
        return;
    }
    let mut totals: Vec<&SeriesSummary> = document.wakeups().collect();
    let hidden = totals.len().saturating_sub(MOST_SERIES);
    let p99 = |series: &&SeriesSummary| series.percentiles.get("99").copied();
    totals.sort_by_key(|series| std::cmp::Reverse(p99(series)));
    totals.truncate(MOST_SERIES);
    totals.sort_by_key(|series| series.cpu);
    let mut headings = vec!["us: median / p99".to_owned()];
    headings.extend(totals.iter().map(|series| shown(&series.name)));
    let mut table = Table::new(1, &headings.iter().map(String::as_str).collect::<Vec<_>>());
    let row = |stage: &str| {
        let cells = totals.iter().map(|total| of.get(&(&*total.name, stage)).copied());
        let cells = cells.map(|series| series.map(pair).unwrap_or_default());
        std::iter::once(cut(stage, 18)).chain(cells).collect()
    };
    let parts = names.iter().take_while(|stage| **stage != RESPONSE);
    parts.take(MOST_STAGES).for_each(|stage| table.row(row(stage)));
    let whole = totals.iter().map(|series| pair(series));
    table.row(std::iter::once("total".to_owned()).chain(whole).collect());
    if names.last() == Some(&RESPONSE) {
        table.row(row(RESPONSE));
    }
    sheet.table(&table, "");
    let more = names.len().saturating_sub(MOST_STAGES);
    if more > 0 {
        sheet.line(DIM, &format!("and {more} more stages: `tardy show --json` has all"));
    }
    if hidden > 0 {
        sheet.line(DIM, &format!("and {hidden} series that were less late: `tardy show` has all"));
    }
    sheet.gap();
}

/// Median and p99.
fn pair(series: &SeriesSummary) -> String {
    let at = |name: &str| {
        us(series.percentiles.get(name).map(|ns| i64::try_from(*ns).unwrap_or(i64::MAX)))
    };
    format!("{} /{:>5}", at("50"), at("99"))
}

/// What comes at a beat, and what hits several CPUs at once.
fn periodic(sheet: &mut TerminalText, why: &WhyReport) {
    for beat in why.periodic.iter().take(MOST_BEATS) {
        let text = format!(
            "every {}: {}, {} of {} peaks within {} of the period, on {}",
            every(beat.period.period_ns),
            phrase(beat.cause, &beat.name),
            percent(beat.period.share),
            count(beat.period.events),
            Nanos((beat.period.period_ns / 10.0) as i64),
            few(&beat.series),
        );
        sheet.wrapped(Style::new(), &text);
    }
    if let Some(together) = &why.together {
        let text = format!(
            "several CPUs at once for one cause: {}, up to {} CPUs, {} of all {} peaks; mostly {}",
            times(together.times),
            together.most_cpus,
            percent(together.share),
            count(why.peaks_found),
            phrase(together.cause, &together.name),
        );
        sheet.wrapped(Style::new(), &text);
    }
    if !why.periodic.is_empty() || why.together.is_some() {
        sheet.gap();
    }
}

fn shown(name: &str) -> String {
    cut(&sample_name::series(name), 12)
}

/// The first names of a list.
fn few(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(6).map(|name| shown(name)).collect();
    let more = names.len().saturating_sub(shown.len());
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}

/// What the table of tasks counts: by far not all that was late, where the threshold has risen.
fn of_how_many(why: &WhyReport) -> String {
    let mut text =
        format!("Tasks that ran first in the {} {} analyzed", count(why.blamed), why.sample.many());
    // The sums of a run in progress reach less far than its histograms.
    if why.late > why.blamed && why.summed_ns.is_none() {
        let (late, lowest) = (why.sample.late(), Nanos(why.lowest_threshold_ns));
        text.push_str(&format!(", of {} that were {late} than {lowest}", count(why.late)));
    }
    if why.responses_analysed > 0 {
        text.push_str("; late responses are not in it");
    }
    text + ":"
}

/// Who went before whom.
fn matrix(sheet: &mut TerminalText, why: &WhyReport) {
    let matrix = &why.preempted;
    if matrix.rows.is_empty() {
        return;
    }
    sheet.wrapped(DIM, &of_how_many(why));
    let columns = matrix.series.len().min(MOST_COLUMNS);
    let mut headings = vec!["times / ms".to_owned(), "all".to_owned()];
    headings.extend(matrix.series.iter().take(columns).map(|series| shown(series)));
    let mut table = Table::new(1, &headings.iter().map(String::as_str).collect::<Vec<_>>());
    for row in matrix.rows.iter().take(MOST_TASKS) {
        let all = row.all();
        let cells = std::iter::once(&all).chain(row.cells.iter().take(columns));
        let cells = cells.map(|cell| match cell.times {
            0 => String::new(),
            times => format!("{} /{:>5}", count(times), milliseconds(cell.ns)),
        });
        table.row(std::iter::once(cut(&row.task, NAME)).chain(cells).collect());
    }
    sheet.table(&table, "");
    let more = matrix.rows.len().saturating_sub(MOST_TASKS);
    if more > 0 {
        let more = many(more as u64, "task");
        sheet.line(DIM, &format!("and {more} that took less: --json has all"));
    }
    sheet.gap();
}

fn milliseconds(ns: u64) -> String {
    let ms = ns as f64 / 1e6;
    if ms < 99.95 { format!("{ms:.1}") } else { grouped(&format!("{ms:.0}")) }
}

#[cfg(test)]
mod tests;
