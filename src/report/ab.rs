//! A comparison of two sides as text: what its budget can find, its looks, and its result.

mod ahead;

use anstream::adapter::strip_str;
use anstyle::{AnsiColor, Style};

use super::{change::Change, compare, table::Table, terminal::fold};
use crate::{
    plain::plain,
    run::{
        AbCaveat, AbRecord, AbStatus, AbVerdict, ComparedFigureRow, ComparedUnit, Effect, SideName,
    },
    units::{Nanos, many, share, span},
};

pub use self::ahead::{looked, planned};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// By how much B is more or less than A.
fn change(row: &ComparedFigureRow) -> String {
    change_of(row).text(row.ratio)
}

fn change_of(row: &ComparedFigureRow) -> Change {
    Change::of(row.ratio, row.low, row.high)
}

/// `+18.1% to +21.2%`.
fn interval(row: &ComparedFigureRow) -> String {
    match (row.low, row.high) {
        (Some(low), Some(high)) => {
            let change = change_of(row);
            format!("{} to {}", change.text(low), change.text(high))
        }
        _ => "-".into(),
    }
}

/// A time as it is typed, rounded up: `45s`, `12m`.
fn typed(ns: f64) -> String {
    // Not one more for the last bit of a sum.
    let seconds = (ns / 1e9 - 1e-6).ceil();
    if seconds <= 120.0 {
        format!("{seconds:.0}s")
    } else {
        format!("{:.0}m", seconds / 60.0 + 0.5)
    }
}

/// One figure in a line that continues: `p50 +19.6% (+18.1% to +21.2%)`.
#[must_use]
pub fn estimate(row: &ComparedFigureRow) -> String {
    format!("{} {} ({})", row.figure, change(row), interval(row))
}

/// All of it: the sides, the table, how it was decided, caveats, and the answer last.
#[must_use]
pub fn show(record: &AbRecord, place: &str, width: Option<usize>) -> String {
    let mut out = first_line(record);
    push_sides(&mut out, record);
    push_table(&mut out, record, width);
    push_causes(&mut out, record);
    push_how(&mut out, record);
    push_caveats(&mut out, record);
    out.push_str(&format!("{DIM}comparison {}{DIM:#}\n\n", plain(place)));
    out.push_str(&answer(record));
    fold(&out, width)
}

/// Two lines for a script's log: the verdict, and the figures.
#[must_use]
pub fn verdict(record: &AbRecord, width: Option<usize>) -> String {
    fold(&format!("{}{}", first_line(record), answer(record)), width)
}

/// What is said first and last: of invalid blocks that alone.
const fn said(record: &AbRecord) -> &'static str {
    match record.status {
        AbStatus::Invalid => "invalid",
        _ => record.verdict.as_str(),
    }
}

fn colour(record: &AbRecord) -> Style {
    let colour = match (record.status, record.verdict) {
        (AbStatus::Invalid, _) | (_, AbVerdict::Worse) => AnsiColor::Red,
        (_, AbVerdict::Better | AbVerdict::Same) => AnsiColor::Green,
        (_, AbVerdict::Inconclusive) => AnsiColor::Yellow,
    };
    colour.on_default().bold()
}

fn first_line(record: &AbRecord) -> String {
    let (good, name) = (colour(record), plain(&record.name));
    let status = if record.status == AbStatus::Interrupted { ", interrupted" } else { "" };
    let what = if record.status == AbStatus::Invalid { "" } else { "B against A " };
    format!("{BOLD}{name}{BOLD:#}: {what}{good}{}{good:#}{status}\n", said(record))
}

fn push_sides(out: &mut String, record: &AbRecord) {
    for side in [SideName::A, SideName::B] {
        let own = record.side(side);
        let options = match own.options.trim() {
            "" => "no options".into(),
            options => plain(options),
        };
        out.push_str(&format!("{}: {options}", side.letter()));
        if let Some(prepare) = &own.prepare {
            out.push_str(&format!(", after `{}`", plain(prepare)));
        }
        out.push('\n');
    }
    out.push('\n');
}

fn push_table(out: &mut String, record: &AbRecord, width: Option<usize>) {
    if record.figures.is_empty() {
        return;
    }
    let headings = ["metric", "A", "B", "B to A", "95% interval", "margin", "verdict"];
    let mut table = Table::new(1, &headings);
    for row in &record.figures {
        table.row(vec![
            if row.above_ns.is_some() { format!("{}*", row.figure) } else { row.figure.clone() },
            value(row, row.a),
            value(row, row.b),
            change(row),
            interval(row),
            share(row.margin),
            row.verdict.as_str().into(),
        ]);
    }
    let (lines, _) = table.fitted(width, &["margin"]);
    for (number, line) in lines.iter().enumerate() {
        let style = if number == 0 { DIM } else { Style::new() };
        out.push_str(&format!("{style}{line}{style:#}\n"));
    }
    for row in &record.figures {
        if let Some(above_ns) = row.above_ns {
            let above = Nanos(i64::try_from(above_ns).unwrap_or(i64::MAX));
            out.push_str(&format!(
                "{DIM}* {}: the share of samples above {above}, as blocks are too short for the \
                 percentile{DIM:#}\n",
                row.figure
            ));
        }
    }
}

/// What the slowest samples of both sides were blamed on.
fn push_causes(out: &mut String, record: &AbRecord) {
    let band = record.causes.iter().flatten().next();
    if let Some(band) = band {
        compare::push_causes(out, band, "samples");
    }
    if band.is_some() || !record.figures.is_empty() {
        out.push('\n');
    }
}

fn value(row: &ComparedFigureRow, value: f64) -> String {
    match row.unit {
        ComparedUnit::Ns => Nanos(value.round() as i64).to_string(),
        ComparedUnit::Share => share(value),
    }
}

/// How many blocks there were, what equal sides differ by, and what it would take.
fn push_how(out: &mut String, record: &AbRecord) {
    let compared = record.blocks.iter().filter(|block| block.compared).count();
    let taken_ns: u64 = record.blocks.iter().map(|block| block.taken_ns).sum();
    let taken = span(taken_ns as f64 / 1e9);
    let Some(last) = record.looks.last() else {
        out.push_str(&format!("Nothing was compared: it ended after {taken}.\n"));
        return;
    };
    let block = span(record.block_ns.unwrap_or(0) as f64 / 1e9);
    out.push_str(&format!(
        "{compared} blocks of {block} in {taken}, of {} planned; order by --seed {}.\n",
        last.pairs * 2,
        record.seed
    ));
    match record.looks.iter().rev().find(|look| look.verdict.is_some()) {
        None => {
            let first = record.looks.first().map_or(0, |look| look.pairs);
            out.push_str(&format!("It ended before the first look, after {first} pairs.\n"));
        }
        Some(look) => {
            let floor = record
                .floor
                .map_or_else(String::new, |floor| format!("; noise floor: {}", share(floor)));
            out.push_str(&format!("Judged after {} pairs{floor}.\n", look.pairs));
        }
    }
    record.figures.iter().for_each(|row| push_needed(out, record, row));
}

fn push_needed(out: &mut String, record: &AbRecord, row: &ComparedFigureRow) {
    if row.verdict != AbVerdict::Inconclusive {
        return;
    }
    let figure = &row.figure;
    if row.margin > 1.0 {
        let floor = share(row.margin);
        out.push_str(&format!(
            "{figure}: the noise floor is {floor}, which is too high for the verdict \"same\".\n"
        ));
        return;
    }
    let Some(pairs) = row.pairs_needed else {
        out.push_str(&format!("{figure}: no number of pairs is known that would decide it.\n"));
        return;
    };
    out.push_str(&format!(
        "{figure}: needs about {} if the spread holds: --budget {}.\n",
        many(u64::from(pairs), "pair"),
        typed(time_for(record, pairs))
    ));
}

/// The time that `pairs` pairs take, ns: as long as the blocks of this session took. More than its
/// budget, in which they were not measured.
fn time_for(record: &AbRecord, pairs: u32) -> f64 {
    let taken = |compared: bool| -> Vec<u64> {
        let own = record.blocks.iter().filter(|block| block.compared == compared);
        own.map(|block| block.taken_ns).collect()
    };
    let (trials, blocks) = (taken(false), taken(true));
    let planned = record.pair_ns.unwrap_or(0) as f64;
    let measured = 2.0 * blocks.iter().sum::<u64>() as f64 / blocks.len().max(1) as f64;
    let all_ns = trials.iter().sum::<u64>() as f64 + f64::from(pairs) * planned.max(measured);
    match record.looks.last().is_some_and(|look| look.pairs < pairs) {
        true => all_ns.max(1.25 * record.budget_ns as f64),
        false => all_ns,
    }
}

/// What weakens or invalidates blocks in full, the rest by name: `tardy show` of a block has it.
fn push_caveats(out: &mut String, record: &AbRecord) {
    let of = |side| record.blocks.iter().filter(|block| block.side == side).count();
    let (a, b) = (of(SideName::A), of(SideName::B));
    let (informing, others): (Vec<&AbCaveat>, Vec<&AbCaveat>) =
        record.caveats.iter().partition(|caveat| caveat.effect == Effect::Informs);
    for caveat in others {
        let [code, text, remedy] =
            [&caveat.code, &caveat.text, &caveat.remedy].map(|text| plain(text));
        let (effect, in_a, in_b) = (caveat.effect.displayed(), caveat.blocks_a, caveat.blocks_b);
        out.push_str(&format!(
            "{effect} {code} ({in_a} of {a} blocks of A, {in_b} of {b} of B), first: {text}\n  \
             {remedy}\n",
        ));
    }
    let name = |caveat: &&AbCaveat| {
        format!("{} ({}, {})", plain(&caveat.code), caveat.blocks_a, caveat.blocks_b)
    };
    let names: Vec<String> = informing.iter().map(name).collect();
    if !names.is_empty() {
        let names = names.join(", ");
        out.push_str(&format!("{DIM}info (blocks of A, of B): {names}{DIM:#}\n"));
    }
}

/// What the figures came to, without colours.
pub(super) fn answer_text(record: &AbRecord) -> String {
    strip_str(&answer(record)).to_string().trim_end().to_owned()
}

/// How many blocks there were, what equal sides differ by, and what it would take: sentences.
pub(super) fn how_lines(record: &AbRecord) -> Vec<String> {
    let mut text = String::new();
    push_how(&mut text, record);
    strip_str(&text).to_string().lines().map(str::to_owned).collect()
}

/// `worse: p50 +19.6%; better: p99.9 -12.0%`.
fn answer(record: &AbRecord) -> String {
    let good = colour(record);
    if record.status == AbStatus::Invalid {
        let block = record.blocks.last().map_or("", |block| block.path.as_str());
        return format!(
            "{good}invalid{good:#}: {BOLD}the run {block} is invalid, and so the comparison \
             ended{BOLD:#}\n"
        );
    }
    if record.figures.is_empty() {
        return format!("{good}inconclusive{good:#}: {BOLD}nothing was judged{BOLD:#}\n");
    }
    let order = [AbVerdict::Worse, AbVerdict::Better, AbVerdict::Same, AbVerdict::Inconclusive];
    let first = record.verdict;
    let rest = order.into_iter().filter(|verdict| *verdict != first);
    let parts: Vec<String> = std::iter::once(first)
        .chain(rest)
        .filter_map(|verdict| {
            let own = record.figures.iter().filter(|row| row.verdict == verdict);
            let own: Vec<String> = own
                .map(|row| match verdict {
                    AbVerdict::Same => {
                        format!("{} (within {})", row.figure, share(row.margin))
                    }
                    AbVerdict::Inconclusive => format!("{} ({})", row.figure, interval(row)),
                    _ => format!("{} {}", row.figure, change(row)),
                })
                .collect();
            let style = if verdict == first { good } else { Style::new() };
            (!own.is_empty())
                .then(|| format!("{style}{}{style:#}: {}", verdict.as_str(), own.join(", ")))
        })
        .collect();
    format!("{}\n", parts.join("; "))
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    pub(in crate::report) fn row(figure: &str, ratio: f64, verdict: &str) -> serde_json::Value {
        json!({
            "series": null, "figure": figure, "unit": "ns", "above_ns": null,
            "lower_is_better": true, "a": 55_200.0, "b": 55_200.0 * ratio, "ratio": ratio,
            "low": ratio * 0.95, "high": ratio * 1.04, "margin": 0.05, "floor": 0.02, "pairs": 16,
            "pairs_needed": if verdict == "inconclusive" { Some(120) } else { None },
            "verdict": verdict,
        })
    }

    fn block(side: &str, compared: bool) -> serde_json::Value {
        json!({
            "path": "blocks/0007-b", "side": side, "compared": compared, "validity": "valid",
            "samples": 2_000, "measured_ns": 1_000_000_000, "taken_ns": 2_000_000_000,
        })
    }

    pub(in crate::report) fn record(
        status: &str,
        verdict: &str,
        figures: &[serde_json::Value],
    ) -> AbRecord {
        let judged: Vec<_> = figures.iter().map(|row| row["figure"].clone()).collect();
        let look =
            |pairs: u32, said: bool| json!({"pairs": pairs, "verdict": said.then_some(verdict)});
        serde_json::from_value(json!({
            "schema_version": 1, "id": "i", "name": "n\u{1b}", "argv": [], "status": status,
            "started_at": "", "ended_at": null, "verdict": verdict, "judged": judged,
            "figures": figures, "floor": 0.02, "causes": null,
            "looks": [look(8, false), look(16, !figures.is_empty()), look(40, false)], "seed": 7,
            "a": {"options": "--policy other", "prepare": null},
            "b": {"options": "--policy fifo", "prepare": "sysctl x"}, "undo": null,
            "budget_ns": 300_000_000_000_u64, "block_ns": 1_000_000_000,
            "pair_ns": 5_000_000_000_u64,
            "blocks": [block("a", false), block("b", false), block("a", true), block("b", true)],
            "commands": [], "error": null,
            "caveats": [
                {"code": "late", "effect": "weakens", "blocks_a": 1, "blocks_b": 0,
                 "text": "it was late", "remedy": "be early"},
                {"code": "vm", "effect": "informs", "blocks_a": 2, "blocks_b": 2,
                 "text": "a machine", "remedy": "none"},
            ],
        }))
        .unwrap()
    }

    #[test]
    fn the_answer_is_last_with_every_figure_under_what_is_said_of_it() {
        let rows = [
            row("p50", 1.196, "worse"),
            row("p90", 0.8, "better"),
            row("p99", 1.0, "same"),
            row("p99.9", 1.01, "inconclusive"),
        ];
        let text =
            anstream::adapter::strip_str(&show(&record("complete", "worse", &rows), "p", None))
                .to_string();
        assert!(text.starts_with("n\\u{1b}: B against A worse\nA: --policy other\n"), "{text}");
        assert!(text.contains("B: --policy fifo, after `sysctl x`\n"), "{text}");
        let answer = "worse: p50 +19.6%; better: p90 -20.0%; same: p99 (within 5.0%); \
                      inconclusive: p99.9 (-4.1% to +5.0%)\n";
        assert!(text.ends_with(answer), "{text}");
        // Two trials of 2 s, and 120 pairs of 5 s.
        assert!(text.contains("p99.9: needs about 120 pairs if the spread holds"), "{text}");
        assert!(text.contains("--budget 11m."), "{text}");
        assert!(
            text.contains("warning late (1 of 2 blocks of A, 0 of 2 of B), first: it was late")
        );
        assert!(text.contains("info (blocks of A, of B): vm (2, 2)\n"), "{text}");
    }

    #[test]
    fn every_line_fits_80_columns_and_all_columns_are_there() {
        let rows = [row("p99.99", 3.1, "worse"), row("p99.9", 0.8, "inconclusive")];
        let text = show(&record("complete", "worse", &rows), "place", Some(80));
        let text = anstream::adapter::strip_str(&text).to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("95% interval  margin") && text.contains("verdict\n"), "{text}");
    }

    #[test]
    fn an_invalid_or_an_early_end_has_no_figures_to_speak_of() {
        let invalid = verdict(&record("invalid", "inconclusive", &[]), None);
        let invalid = anstream::adapter::strip_str(&invalid).to_string();
        assert!(invalid.contains(": invalid\n") && invalid.contains("blocks/0007-b is invalid"));
        let early = show(&record("interrupted", "inconclusive", &[]), "p", None);
        let early = anstream::adapter::strip_str(&early).to_string();
        assert!(early.contains("inconclusive, interrupted\n"), "{early}");
        assert!(early.contains("before the first look, after 8 pairs"), "{early}");
        assert!(early.ends_with("inconclusive: nothing was judged\n"), "{early}");
    }

    #[test]
    fn changes_are_percentages_and_in_a_row_with_large_ones_factors() {
        let found = [1.196, 0.9999, 1.0, 0.5].map(|ratio| Change::Percent.text(ratio));
        assert_eq!(found, ["+19.6%", "+0.0%", "+0.0%", "-50.0%"]);
        let found =
            [314.2, 2.54, 0.304, 0.0331, 0.0034, 1e-9].map(|ratio| Change::Factor.text(ratio));
        assert_eq!(found, ["x314", "x2.5", "x0.30", "x0.033", "x0.0034", "x<0.0001"]);
        // Of a few pairs that scatter much the interval has no end that anybody needs.
        assert_eq!(Change::Factor.text(2.4e65), "x>100,000");
        let of = |ratio| {
            let row: ComparedFigureRow = serde_json::from_value(row("p50", ratio, "same")).unwrap();
            estimate(&row)
        };
        assert_eq!(of(1.2), "p50 +20.0% (+14.0% to +24.8%)");
        // The lower end is less than half.
        assert_eq!(of(0.51), "p50 x0.51 (x0.48 to x0.53)");
    }
}
