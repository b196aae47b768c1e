//! The worst peaks as text: how late, why, and what happened meanwhile.

use anstyle::Style;

use super::{
    WhyReport,
    phrases::lane,
    selection::{PeakView, into_ns, main_cause, moment},
    terminal_text::TerminalText,
};
use crate::{
    plain::cut,
    report::{
        causes::words::{figure, head as label},
        sample_name,
        table::{Table, us},
        words::beyond_tracepoint,
    },
    run::{
        Document, Status,
        peaks::{MessageStages, Moment, PACING, Part, Peak, StagesOf},
        probes::{LatencyFrom, SampleName},
    },
    units::{Nanos, count},
};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Entries of one timeline, and functions of the stack of a part and of an entry.
const MOST_MOMENTS: usize = 30;
const MOST_FRAMES: usize = 8;
const FEW_FRAMES: usize = 3;
/// Parts of one latency.
const MOST_PARTS: usize = 6;
/// What belongs to a part stands below its kind.
const PART_INDENT: &str = "                      ";
/// How long before the expiry a timeline begins, ns.
const BEFORE_NS: i64 = 50_000;

/// The peaks, worst first.
pub(super) fn peaks(
    sheet: &mut TerminalText,
    why: &WhyReport,
    document: &Document,
    view: PeakView,
) {
    let most = match view {
        PeakView::Timelines(most) => most,
        PeakView::List => return list(sheet, why, document),
        PeakView::NoneFits(filter, kept) => {
            sheet.line(Style::new(), &filter.none_fits(kept));
            return sheet.gap();
        }
    };
    for (rank, peak) in why.peaks.iter().take(most).enumerate() {
        one(sheet, rank + 1, peak, document);
    }
    let more = why.peaks.len().saturating_sub(most);
    if more > 0 {
        let text =
            format!("and {} more: --peaks N or all, --oneline for a line each", count(more as u64));
        sheet.line(DIM, &text);
    }
}

/// One peak as [`super::text()`] shows it.
#[must_use]
pub fn peak_text(peak: &Peak, document: &Document) -> String {
    let mut sheet = TerminalText::default();
    one(&mut sheet, 1, peak, document);
    sheet.done()
}

/// A line each.
fn list(sheet: &mut TerminalText, why: &WhyReport, document: &Document) {
    if why.peaks.is_empty() {
        sheet.line(DIM, "no peak was kept");
        return sheet.gap();
    }
    let headings = ["main cause", "series", "when", "us", "of it, %"];
    let mut table = Table::new(3, &headings);
    for peak in &why.peaks {
        let (cause, share) = main_cause(peak);
        table.row(vec![
            cut(&cause, 40),
            cut(&sample_name::series(&peak.series), 20),
            moment(peak, document),
            us(Some(peak.latency_ns)),
            figure(share),
        ]);
    }
    sheet.table(&table, "");
    sheet.gap();
}

fn one(sheet: &mut TerminalText, rank: usize, peak: &Peak, document: &Document) {
    let what = match SampleName::of(document) {
        SampleName::RoundTrip => format!("round trip of {}", Nanos(peak.latency_ns)),
        SampleName::Gap => {
            format!(
                "gap of {} on {}",
                Nanos(peak.latency_ns),
                cut(&sample_name::series(&peak.series), 20)
            )
        }
        _ => {
            let tid = peak.tid.map_or_else(String::new, |tid| format!(", thread {tid}"));
            format!(
                "{} late on {}{tid}",
                Nanos(peak.latency_ns),
                cut(&sample_name::series(&peak.series), 20)
            )
        }
    };
    sheet.line(BOLD, &format!("{rank}. {what}{}", when(peak, document)));
    for way in &peak.ways {
        let (name, took) = (cut(&way.way, 12), Nanos(way.ns));
        match &way.stages {
            Some(stages) => {
                let text = format!("   {name:<5} {took}: {}", stages_of_message(stages));
                sheet.line(Style::new(), &text);
            }
            None if way.way == PACING => {
                sheet.line(Style::new(), &format!("   {name} {took}: until it was sent"));
            }
            None => {
                let text = format!("   {name:<5} {took}, not split: the receiver was still awake");
                sheet.line(DIM, &text);
            }
        }
    }
    match &peak.stages {
        Some(stages) => sheet.line(Style::new(), &format!("   {}", stages_of(stages))),
        None if peak.is_cycle() => {}
        None if document.status == Status::Imported => {
            sheet.line(DIM, "   its stages are not in the file");
        }
        None if peak.ways.is_empty() && SampleName::of(document) != SampleName::Gap => {
            sheet.line(DIM, "   its stages are not known: the kernel's record did not match");
        }
        None => {}
    }
    let parts = peak.parts_by_name();
    // A line that says that there is one more takes as much room as that one.
    let shown = if parts.len() == MOST_PARTS + 1 { parts.len() } else { MOST_PARTS };
    for part in parts.iter().take(shown) {
        blamed(sheet, part, peak.latency_ns);
    }
    let rest = parts.get(shown..).unwrap_or_default();
    if !rest.is_empty() {
        let ns = rest.iter().fold(0_u64, |sum, part| sum.saturating_add(part.ns));
        let ns = Nanos(i64::try_from(ns).unwrap_or(i64::MAX));
        sheet.line(DIM, &format!("   and {} smaller parts, together {ns}", rest.len()));
    }
    happened(sheet, peak, since(document, peak));
    sheet.gap();
}

/// When it was due, as the end of a line; nothing where nobody knows.
fn when(peak: &Peak, document: &Document) -> String {
    let Some(into_ns) = into_ns(peak, document) else { return String::new() };
    let at = moment(peak, document);
    let at = if at.is_empty() { at } else { format!(" ({at})") };
    format!(", {:.3} s into the run{at}", into_ns as f64 / 1e9)
}

fn stages_of(stages: &StagesOf) -> String {
    let StagesOf { irq, softirq, handler, dispatch, user } = *stages;
    let named = [
        ("irq", irq),
        ("softirq", softirq),
        ("handler", handler),
        ("dispatch", dispatch),
        ("user", user),
    ];
    // Most timers do not expire in a softirq.
    let shown = named.iter().filter(|(name, ns)| *name != "softirq" || *ns != 0);
    shown.map(|(name, ns)| format!("{name} {}", Nanos(*ns))).collect::<Vec<_>>().join(", ")
}

fn stages_of_message(stages: &MessageStages) -> String {
    let MessageStages { send, stack, wake_up, dispatch, receive } = *stages;
    let named = [
        ("send", send),
        ("stack", stack),
        ("wake-up", wake_up),
        ("dispatch", dispatch),
        ("receive", receive),
    ];
    // Not every sender is measured, not all transports have a stack, not all wake-ups cross CPUs.
    let may_lack = ["send", "stack", "wake-up"];
    let shown = named.iter().filter(|(name, ns)| !may_lack.contains(name) || *ns != 0);
    shown.map(|(name, ns)| format!("{name} {}", Nanos(*ns))).collect::<Vec<_>>().join(", ")
}

/// A part with its stack.
fn blamed(sheet: &mut TerminalText, part: &Part, latency_ns: i64) {
    let share = part.ns as f64 / latency_ns.max(1) as f64;
    let ns = Nanos(i64::try_from(part.ns).unwrap_or(i64::MAX));
    let kind = label(part.cause);
    let name = if part.name == kind { String::new() } else { cut(&part.name, 32) };
    let task = part.task.as_deref().filter(|task| *task != part.name);
    let task = task.map_or_else(String::new, |task| format!("  {}", cut(task, 24)));
    let ns = ns.to_string();
    let line = format!("   {:>4}%  {ns:>8}  {kind:<15}  {name}{task}", figure(share));
    sheet.line(Style::new(), line.trim_end());
    if let Some(evidence) = &part.evidence {
        sheet.line(DIM, &format!("{PART_INDENT}inferred: {}", cut(evidence, 90)));
    }
    stack(sheet, &part.stack, MOST_FRAMES, PART_INDENT);
}

/// Whether two stacks are the same but for their innermost functions.
fn ends_as(one: &[String], other: &[String]) -> bool {
    let same = one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other);
    same.count() + 3 >= one.len().max(other.len()) && !one.is_empty()
}

/// The first functions of a stack; those of the tracepoint itself say nothing.
fn stack(sheet: &mut TerminalText, frames: &[String], most: usize, indent: &str) {
    let frames = beyond_tracepoint(frames);
    for frame in frames.iter().take(most) {
        sheet.line(DIM, &format!("{indent}{}", cut(frame, 60)));
    }
    let more = frames.len().saturating_sub(most);
    if more > 0 {
        sheet.line(DIM, &format!("{indent}and {more} more"));
    }
}

/// From when its times count.
fn since(document: &Document, peak: &Peak) -> &'static str {
    let from = document.probe.info().map(|probe| probe.latency_from);
    match (SampleName::of(document), from) {
        (_, Some(LatencyFrom::Sending)) => "us after sending",
        (_, Some(LatencyFrom::Stamp)) => "us after stamp",
        // The wake-up of an attached thread by others has no stage before its dispatch.
        (_, Some(LatencyFrom::WakeUp))
            if peak.stages.is_some_and(|of| of.irq + of.softirq + of.handler == 0) =>
        {
            "us after wake-up"
        }
        (SampleName::Packet, _) => "us past schedule",
        (SampleName::Gap, _) => "us into the gap",
        _ => "us after expiry",
    }
}

/// The timeline.
fn happened(sheet: &mut TerminalText, peak: &Peak, since: &str) {
    let shown = most_important(peak);
    if shown.is_empty() {
        return;
    }
    let mut table = Table::new(0, &[since, "took", "where    ", "what"]);
    for moment in &shown {
        table.row(vec![
            us(Some(moment.at)),
            moment.ns.map_or_else(String::new, |ns| us(i64::try_from(ns).ok())),
            format!("{:<9}", lane(moment.lane)),
            // The last column: it begins where its heading does.
            String::new(),
        ]);
    }
    let texts: Vec<String> = shown.iter().map(|moment| describe(moment, peak.cpu)).collect();
    let mut lines = table.lines().into_iter();
    let heading = lines.next().unwrap_or_default();
    sheet.line(DIM, &format!("   {}", heading.replace("   what", " what")));
    for ((line, text), moment) in lines.zip(texts).zip(&shown) {
        sheet.line(Style::new(), &format!("   {line:<35}{text}"));
        let is_shown = peak.blame.iter().any(|part| ends_as(&part.stack, &moment.stack));
        if !is_shown {
            stack(sheet, &moment.stack, FEW_FRAMES, "                                      ");
        }
    }
    let hidden = (peak.timeline.len() - shown.len()) as u64;
    let hidden = hidden.saturating_add(peak.left_out);
    if hidden > 0 {
        let entries = if hidden == 1 { "entry that was" } else { "entries that were" };
        let text = format!("   and {} {entries} shorter or earlier", count(hidden));
        sheet.line(DIM, &text);
    }
}

/// The entries worth a line, by time: those that were on while the wake-up was late or shortly
/// before it, and of these the longest.
fn most_important(peak: &Peak) -> Vec<&Moment> {
    let is_near = |moment: &&Moment| {
        let end = moment.at.saturating_add_unsigned(moment.ns.unwrap_or(0));
        end >= -BEFORE_NS && moment.at <= peak.latency_ns
    };
    let mut shown: Vec<&Moment> = peak.timeline.iter().filter(is_near).collect();
    if shown.len() > MOST_MOMENTS {
        let weight = |moment: &&Moment| {
            let is_late = moment.at >= 0 && moment.at <= peak.latency_ns;
            let own = ["expiry", "woke", "sent", "received", "waking", "stack", "sibling"];
            let is_own = own.contains(&moment.what.as_str());
            std::cmp::Reverse((is_own && is_late, moment.ns.unwrap_or(0), is_late))
        };
        shown.sort_by_key(weight);
        shown.truncate(MOST_MOMENTS);
    }
    shown.sort_by_key(|moment| moment.at);
    shown
}

/// What an entry is, in words.
fn describe(moment: &Moment, cpu: u32) -> String {
    let mut name = cut(moment.name.trim_end_matches("+0x0"), 32);
    if let Some(pid) = moment.pid.filter(|_| moment.what != "stack") {
        let number = format!("/{pid}");
        if !name.ends_with(&number) && name != format!("task {pid}") {
            name.push_str(&number);
        }
    }
    // What the lane or the name shows already is not repeated.
    let what = moment.what.as_str();
    let kinds = ["task", "irq", "softirq", "vector", "idle", "expiry", "woke", "sent", "received"];
    let is_said = kinds.contains(&what) || name.starts_with(what) || name.ends_with(what);
    let mut text = match what {
        "ipi" => match moment.pid {
            Some(pid) => format!("interrupt sent {}, by task {pid}", cut(&moment.name, 32)),
            None => format!("interrupt sent {name}"),
        },
        _ if name.is_empty() => cut(what, 20),
        "stack" => "stack walked".into(),
        _ if is_said => name,
        "waking" => format!("wakes {name}"),
        what => format!("{} {name}", cut(what, 20)),
    };
    if let Some(priority) = &moment.priority {
        text.push_str(&format!(" ({})", cut(priority, 16)));
    }
    if let Some(detail) = &moment.detail {
        text.push_str(&format!(", {}", cut(detail, 48)));
    }
    if moment.cpu != cpu {
        text.push_str(&format!(", on CPU {}", moment.cpu));
    }
    cut(&text, 62)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        report::{fixture, why::PeakFilter},
        run::peaks::{Basis, Cause, Lane},
    };

    fn moment(at: i64, ns: Option<u64>, what: &str) -> Moment {
        Moment {
            at,
            ns,
            cpu: 0,
            lane: Lane::Others,
            what: what.into(),
            name: "n".into(),
            pid: None,
            priority: None,
            detail: None,
            stack: Vec::new(),
        }
    }

    #[test]
    fn of_a_long_timeline_the_late_and_the_long_entries_are_reported() {
        let mut timeline: Vec<Moment> = (0..500).map(|k| moment(k * 10, Some(5), "task")).collect();
        timeline.push(moment(-1_000_000, Some(10), "task"));
        timeline.push(moment(4_000, Some(900), "task"));
        timeline.push(moment(5_000, None, "woke"));
        timeline.push(moment(9_000, Some(9_000), "task"));
        let peak = Peak {
            at_ns: Some(0),
            series: "cpu0".into(),
            cpu: 0,
            latency_ns: 5_000,
            stages: None,
            ways: Vec::new(),
            blame: Vec::new(),
            timeline,
            tid: None,
            left_out: 0,
        };
        let shown = most_important(&peak);
        assert_eq!(shown.len(), MOST_MOMENTS);
        assert!(shown.iter().any(|moment| moment.what == "woke"));
        assert!(shown.iter().any(|moment| moment.ns == Some(900)));
        assert!(shown.iter().all(|moment| moment.at >= 0 && moment.at <= 5_000));
        assert!(shown.is_sorted_by_key(|moment| moment.at));
    }

    fn text_of(parts: u64, left_out: u64) -> String {
        let part = |n: u64| Part {
            cause: Cause::Thread,
            name: format!("task{n}"),
            task: None,
            ns: 100 - n,
            basis: Basis::Measured,
            evidence: None,
            stack: Vec::new(),
        };
        let peak = Peak {
            at_ns: Some(0),
            series: "cpu0".into(),
            cpu: 0,
            latency_ns: 1_000,
            stages: None,
            ways: Vec::new(),
            blame: (0..parts).map(part).collect(),
            timeline: vec![moment(0, Some(5), "task")],
            tid: None,
            left_out,
        };
        let mut sheet = TerminalText::default();
        one(&mut sheet, 1, &peak, &fixture::of("timer", &["cpu0"]));
        sheet.done()
    }

    #[test]
    fn what_is_left_out_of_a_peak_is_more_than_a_line_and_is_counted() {
        let seven = text_of(7, 1);
        assert!(seven.contains("task6") && !seven.contains("smaller part"), "{seven}");
        assert!(seven.contains("and 1 entry that was shorter or earlier"), "{seven}");
        let eight = text_of(8, 2);
        assert!(!eight.contains("task6"), "{eight}");
        assert!(eight.contains("and 2 smaller parts, together 187 ns"), "{eight}");
        assert!(eight.contains("and 2 entries that were shorter or earlier"), "{eight}");
    }

    #[test]
    fn a_message_is_reported_with_the_stages_of_each_way() {
        let stages = MessageStages { send: 4_000, receive: 5_000, ..MessageStages::default() };
        assert_eq!(stages_of_message(&stages), "send 4.00 us, dispatch 0 ns, receive 5.00 us");
        let whole = MessageStages { stack: 2_000, wake_up: 1_000, dispatch: 3_000, ..stages };
        let text =
            "send 4.00 us, stack 2.00 us, wake-up 1.00 us, dispatch 3.00 us, receive 5.00 us";
        assert_eq!(stages_of_message(&whole), text);
    }

    #[test]
    fn an_entry_is_reported_with_what_is_known_of_it() {
        let mut one = moment(0, None, "task");
        one.pid = Some(7);
        one.priority = Some("nice 0".into());
        one.detail = Some("preempted".into());
        assert_eq!(describe(&one, 0), "n/7 (nice 0), preempted");
        assert_eq!(describe(&moment(0, None, "ipi"), 3), "interrupt sent n, on CPU 0");
        let mut woken = moment(0, None, "waking");
        (woken.name, woken.pid) = ("n/8".into(), Some(8));
        assert_eq!(describe(&woken, 0), "wakes n/8");
    }

    #[test]
    fn where_there_is_no_peak_to_show_there_is_no_empty_table() {
        let shown = |view: PeakView| {
            let mut sheet = TerminalText::default();
            let why = WhyReport::default();
            peaks(&mut sheet, &why, &fixture::of("timer", &["cpu0"]), view);
            anstream::adapter::strip_str(&sheet.done()).to_string()
        };
        let filter = PeakFilter { cpu: Some(7), ..PeakFilter::default() };
        let text = shown(PeakView::NoneFits(filter, 5));
        assert!(text.starts_with("None of the 5 peaks that were kept fits --cpu 7"), "{text}");
        assert_eq!(shown(PeakView::List), "no peak was kept\n\n");
        assert_eq!(shown(PeakView::Timelines(3)), "");
    }
}
