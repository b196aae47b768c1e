//! What the tests of a report are called: by what was measured, in words that every reader takes.

use std::collections::HashMap;

use crate::{
    report::words,
    run::{Document, PlanCell, PlanRecord, alike::IDLE, lab::LabRecord},
};

/// Comparisons in the name of a gate, in words.
const SIGNS: [(&str, &str); 5] =
    [("<=", "_le_"), (">=", "_ge_"), ("<", "_lt_"), (">", "_gt_"), ("=", "_eq_")];

/// A name of letters, digits, `-`, `_` and dots alone.
pub(super) fn plain(name: &str) -> String {
    let name = SIGNS.iter().fold(name.to_owned(), |name, (sign, word)| name.replace(sign, word));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
}

/// Probe and loads.
pub(super) fn measured(document: &Document) -> String {
    let loads: Vec<String> = document.loads.iter().map(words::load).collect();
    let loads = if loads.is_empty() { IDLE.into() } else { loads.join("+") };
    format!("{}.{}", word(document.probe.measured_as()), word(&loads))
}

/// A cell of the lab.
pub(super) struct LabCell<'a> {
    pub(super) load: &'a str,
    pub(super) kernel: &'a str,
    pub(super) phase: u32,
}

impl LabCell<'_> {
    pub(super) fn words(&self, lab: &LabRecord, has_phases: bool) -> String {
        let phase = if has_phases { format!(".phase{}", self.phase) } else { String::new() };
        format!("{}.{}.{}{phase}", word(&lab.plan), word(self.load), word(self.kernel))
    }
}

/// Plan and cell, and the repeat if there are several.
pub(super) fn cell_words(plan: &PlanRecord, cell: &PlanCell) -> String {
    let repeat = (plan.repeat > 1).then(|| format!(".{}", cell.repeat));
    format!("{}.{}{}", word(&plan.plan), word(&cell.name), repeat.unwrap_or_default())
}

/// A word that every reader takes: a dot separates words, and shells and servers give other
/// characters a meaning.
pub(super) fn word(text: &str) -> String {
    let taken = |c: char| c.is_ascii_alphanumeric() || "-_+=,".contains(c);
    text.chars().map(|c| if taken(c) { c } else { '_' }).collect()
}

/// Series of single threads, whose numbers differ every night, by what they are called instead.
pub(super) struct SeriesWords(HashMap<String, String>);

impl SeriesWords {
    pub(super) fn of(document: &Document) -> Self {
        let mut found = HashMap::new();
        let mut threads: HashMap<&str, u32> = HashMap::new();
        for series in document.threads() {
            let Some(name) = series.thread_of.as_deref() else { continue };
            let number = threads.entry(name).or_default();
            *number += 1;
            found.insert(series.name.clone(), format!("{}-{number}", word(name)));
        }
        Self(found)
    }

    pub(super) fn word(&self, series: &str) -> String {
        let known = |name: &str| self.0.get(name).cloned();
        let stage = || {
            let (thread, stage) = series.rsplit_once('/')?;
            Some(format!("{}_{}", known(thread)?, word(stage)))
        };
        known(series).or_else(stage).unwrap_or_else(|| word(series))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn threads_are_called_by_their_turn_and_not_by_their_number() {
        let mut attached = fixture::of("attach", &["app", "app/812", "app/97"]);
        for series in &mut attached.series[1..] {
            (series.stage_of, series.stage) = (None, None);
            series.thread_of = Some("app".into());
        }
        let words = SeriesWords::of(&attached);
        let found = ["app", "app/812", "app/97", "app/97/response"].map(|name| words.word(name));
        assert_eq!(found, ["app", "app-1", "app-2", "app-2_response"]);
    }

    #[test]
    fn a_cell_of_the_lab_is_named_by_its_plan_and_by_its_phase_if_there_are_several() {
        let lab = LabRecord { plan: "night".into(), ..LabRecord::default() };
        let cell = LabCell { load: "timer idle", kernel: "rt+preempt=full", phase: 3 };
        assert_eq!(cell.words(&lab, false), "night.timer_idle.rt+preempt=full");
        assert_eq!(cell.words(&lab, true), "night.timer_idle.rt+preempt=full.phase3");
    }
}
