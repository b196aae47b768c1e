//! What settings of the machine are worth, as text: a table, best first, and what was not tried.

use anstyle::{AnsiColor, Style};

use super::{change::with_interval, table::Table, terminal::fold};
use crate::{
    plain::plain,
    run::{AbVerdict, SettingsRecord, TriedFigure, TriedSetting, UntriedSetting},
    units::{cpus, percent, span},
};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// What is said of a verdict.
const fn word(verdict: AbVerdict) -> &'static str {
    match verdict {
        AbVerdict::Better => "helps",
        AbVerdict::Worse => "worse",
        AbVerdict::Same => "no difference",
        AbVerdict::Inconclusive => "inconclusive",
    }
}

/// `-12% (-18% to -5%)`, marked where it is a share of samples.
fn cell(figure: Option<&TriedFigure>) -> String {
    let Some(TriedFigure { row, .. }) = figure else { return "-".into() };
    let mark = if row.above_ns.is_some() { "*" } else { "" };
    format!("{}{mark}", with_interval(row.ratio, row.low, row.high))
}

/// All of it.
#[must_use]
pub fn settings_text(record: &SettingsRecord, place: &str, width: Option<usize>) -> String {
    let mut out = head(record);
    let judged = |setting: &&TriedSetting| setting.verdict.is_some();
    if record.settings.iter().any(|setting| setting.verdict.is_some()) {
        push_table(&mut out, record.settings.iter().filter(judged), width);
        push_legend(&mut out, record);
    }
    push_unjudged(&mut out, &record.settings);
    push_untried(&mut out, &record.not_tried);
    out.push_str(&format!("{DIM}comparisons {}{DIM:#}\n", plain(place)));
    out.push_str(&answer(record));
    fold(&out, width)
}

fn head(record: &SettingsRecord) -> String {
    let block = span(record.block_ns as f64 / 1e9);
    let ended = if record.interrupted { ", ended early" } else { "" };
    let common = plain(&record.common.join(" "));
    format!(
        "{BOLD}What settings are worth on {}{BOLD:#}{ended}\n{} pairs of {block} each, with \
         {common}; order by --seed {}.\n\n",
        plain(&cpus(&record.cpus)),
        record.pairs,
        record.seed
    )
}

fn push_table<'a>(
    out: &mut String,
    settings: impl Iterator<Item = &'a TriedSetting>,
    width: Option<usize>,
) {
    let headings = ["setting", "now", "tried", "p50", "p99", "p99.9", "verdict"];
    let mut table = Table::new(3, &headings);
    for setting in settings {
        let figure = |name: &str| setting.figures.iter().find(|own| own.row.figure == name);
        table.row(vec![
            setting.name.clone(),
            setting.now.clone(),
            setting.tried.clone(),
            cell(figure("p50")),
            cell(figure("p99")),
            cell(figure("p99.9")),
            setting.verdict.map_or("-", word).into(),
        ]);
    }
    let (lines, _) = table.fitted(width, &["now", "tried"]);
    for (number, line) in lines.iter().enumerate() {
        let style = if number == 0 { DIM } else { Style::new() };
        out.push_str(&format!("{style}{line}{style:#}\n"));
    }
}

fn push_legend(out: &mut String, record: &SettingsRecord) {
    let all = record.settings.iter().flat_map(|setting| &setting.figures);
    out.push_str(&format!(
        "{DIM}Change from now to the tried value, 95% interval. On average at most {} of the \
         verdicts helps and worse are false (Benjamini-Hochberg).{DIM:#}\n",
        percent(record.false_discovery_rate, 0)
    ));
    if all.into_iter().any(|figure| figure.row.above_ns.is_some()) {
        out.push_str(&format!(
            "{DIM}* Share of samples above a common threshold, as blocks are too short for the \
             percentile.{DIM:#}\n"
        ));
    }
}

fn push_unjudged(out: &mut String, settings: &[TriedSetting]) {
    for setting in settings {
        if let Some(why) = &setting.not_judged {
            out.push_str(&format!("not judged: {}: {}\n", setting.name, plain(why)));
        }
    }
}

fn push_untried(out: &mut String, settings: &[UntriedSetting]) {
    let (so, others): (Vec<_>, Vec<_>) = settings.iter().partition(|setting| setting.is_so);
    for setting in others {
        out.push_str(&format!("cannot be tried here: {}: {}\n", setting.name, plain(&setting.why)));
    }
    if !so.is_empty() {
        let own = |setting: &&UntriedSetting| format!("{} ({})", setting.name, plain(&setting.why));
        let names: Vec<String> = so.iter().map(own).collect();
        out.push_str(&format!("already so: {}\n", names.join(", ")));
    }
}

/// What helps, in a line.
fn answer(record: &SettingsRecord) -> String {
    let of = |verdict: AbVerdict| -> Vec<String> {
        let own = record.settings.iter().filter(|setting| setting.verdict == Some(verdict));
        own.map(|setting| format!("{}={}", setting.name, setting.tried)).collect()
    };
    let (good, helps) = (AnsiColor::Green.on_default().bold(), of(AbVerdict::Better));
    match helps.as_slice() {
        [] => "\nNo setting was shown to help under this load.\n".into(),
        _ => format!("\n{good}helps{good:#}: {}\n", helps.join(", ")),
    }
}

/// What would be tried, and what not.
#[must_use]
pub fn settings_plan(record: &SettingsRecord, width: Option<usize>) -> String {
    let mut table = Table::new(4, &["setting", "now", "would try", "may break"]);
    for setting in &record.settings {
        table.row(vec![
            setting.name.clone(),
            setting.now.clone(),
            setting.tried.clone(),
            setting.may_break.clone(),
        ]);
    }
    let mut out = String::new();
    if !record.settings.is_empty() {
        table.lines().iter().for_each(|line| out.push_str(&format!("{line}\n")));
    }
    push_untried(&mut out, &record.not_tried);
    fold(&out, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(name: &str, verdict: Option<AbVerdict>) -> TriedSetting {
        let figures = verdict.map(|verdict| {
            let mut figure = TriedFigure::example("p99", 0.5, verdict);
            figure.row.above_ns = Some(1_000);
            figure
        });
        TriedSetting {
            name: name.into(),
            what: "a setting".into(),
            now: "1".into(),
            tried: "0".into(),
            may_break: "something".into(),
            verdict,
            not_judged: verdict.is_none().then(|| "it \u{1b}[2J did not stay".into()),
            comparison: None,
            figures: figures.into_iter().collect(),
        }
    }

    fn record(settings: Vec<TriedSetting>) -> SettingsRecord {
        SettingsRecord {
            schema_version: 1,
            id: "1".into(),
            argv: Vec::new(),
            started_at: String::new(),
            cpus: "1".into(),
            common: vec!["--load=burn".into()],
            pairs: 6,
            block_ns: 2_000_000_000,
            seed: 7,
            false_discovery_rate: 0.05,
            interrupted: false,
            settings,
            not_tried: vec![
                UntriedSetting { name: "preempt".into(), why: "no such".into(), is_so: false },
                UntriedSetting { name: "thp".into(), why: "never".into(), is_so: true },
            ],
        }
    }

    fn text(record: &SettingsRecord) -> String {
        anstream::adapter::strip_str(&settings_text(record, "/x", None)).to_string()
    }

    #[test]
    fn a_ranked_table_says_what_helps_and_what_was_not_tried_or_judged() {
        let helps = setting("timer_migration", Some(AbVerdict::Better));
        let said = text(&record(vec![helps, setting("governor", None)]));
        for part in [
            "timer_migration  1    0",
            "x0.50 (x0.45 to x0.55)*",
            "cannot be tried here: preempt: no such\n",
            "already so: thp (never)\n",
            "not judged: governor: it ",
            "* Share of samples above a common threshold",
            "\nhelps: timer_migration=0\n",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!said.contains('\u{1b}'), "{said}");
    }

    #[test]
    fn without_a_discovery_nothing_is_called_a_help() {
        let open = setting("timer_migration", Some(AbVerdict::Inconclusive));
        let said = text(&record(vec![open]));
        assert!(said.contains("inconclusive\n") && !said.contains("helps:"), "{said}");
        assert!(said.ends_with("No setting was shown to help under this load.\n"), "{said}");
        assert!(settings_plan(&record(Vec::new()), None).starts_with("cannot be tried here"));
    }
}
