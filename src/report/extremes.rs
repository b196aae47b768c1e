//! Records with figures that no run has: nothing that is shown of them panics.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    causes::cells,
    collect,
    finding::of_lab,
    html,
    intervals::RunIntervals,
    lab::{MatrixView, show},
    matrix_page,
    plot::{self, PictureKind, PlotOptions, Size},
    terminal::{self, Asked},
    why,
};
use crate::{
    analysis::matrix::{NameOrder, matrix},
    run::{
        Document, KnownCost, Run, TraceCost, TraceMode,
        facts::LabFacts,
        messages::ClockRecord,
        names,
        peaks::{Blame, Peak},
    },
};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1").join(name)
}

/// The places of all numbers.
fn numbers(value: &Value, place: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(place.to_owned()),
        Value::Array(values) => {
            let each = values.iter().enumerate();
            each.for_each(|(at, value)| numbers(value, &format!("{place}/{at}"), found));
        }
        Value::Object(members) => members.iter().for_each(|(key, value)| {
            let key = key.replace('~', "~0").replace('/', "~1");
            numbers(value, &format!("{place}/{key}"), found);
        }),
        _ => {}
    }
}

/// Figures that no run has.
fn figures() -> [Value; 7] {
    [
        json!(u64::MAX),
        json!(i64::MAX),
        json!(u32::MAX),
        json!(i64::MIN),
        json!(-1),
        json!(0),
        json!(1),
    ]
}

/// What is put in place of numbers, in turn: the first of these figures that its type takes.
const SETS: [&[&[usize]]; 8] = [
    &[&[0, 1, 2]],
    &[&[3, 5]],
    &[&[1, 2]],
    &[&[0, 1, 2], &[3, 5]],
    &[&[3, 5], &[0, 1, 2]],
    &[&[3, 5], &[1, 2], &[0, 1, 2]],
    &[&[5]],
    &[&[6], &[4, 5]],
];

/// Something that was read, and for each of its numbers the figures that its type takes.
struct Numbers<T> {
    whole: T,
    takes: Vec<(String, Vec<usize>)>,
}

impl<T: Serialize + DeserializeOwned> Numbers<T> {
    fn of(whole: T) -> Self {
        let value = serde_json::to_value(&whole).unwrap();
        let mut places = Vec::new();
        numbers(&value, "", &mut places);
        let takes = |place: String| {
            let fits = |(_, figure): &(usize, Value)| {
                let mut value = value.clone();
                *value.pointer_mut(&place).unwrap() = figure.clone();
                serde_json::from_value::<T>(value).is_ok()
            };
            let fitting = figures().into_iter().enumerate().filter(fits).map(|(at, _)| at);
            let fitting: Vec<usize> = fitting.collect();
            (place, fitting)
        };
        Self { takes: places.into_iter().map(takes).collect(), whole }
    }

    fn with(&self, set: &[&[usize]]) -> T {
        let mut value = serde_json::to_value(&self.whole).unwrap();
        for ((place, takes), wanted) in self.takes.iter().zip(set.iter().cycle()) {
            if let Some(figure) = wanted.iter().find(|figure| takes.contains(figure)) {
                *value.pointer_mut(place).unwrap() = figures()[*figure].clone();
            }
        }
        serde_json::from_value(value).unwrap()
    }
}

/// A record that has all its parts.
fn record(name: &str) -> Document {
    let mut document = Run::open(&fixture(name)).unwrap().document;
    let cost = TraceCost {
        pairs: 4,
        slice_ns: 1,
        median_without_ns: 1,
        median_with_ns: 1,
        added_median_ns: 1,
        added_range_ns: (1, 1),
        cpu_per_wakeup_ns: (1, 1),
        added_cpu_percent: 1.0,
    };
    document.trace.found = TraceMode::Peaks;
    document.trace.cost = Some(cost);
    let (run, name, loads) = ("r".to_owned(), "n".to_owned(), Vec::new());
    document.trace.known_cost = Some(KnownCost { run, name, loads, cost });
    if let Some(messages) = &mut document.messages {
        messages.clock = Some(ClockRecord {
            offset_ns: 1,
            uncertainty_ns: 1,
            drift_ppb: 1.0,
            exchanges: 1,
            shortest_round_trip_ns: 1,
        });
        // Two that are lost, so that they are summed.
        let flows = messages.flows.clone();
        messages.flows.extend(flows);
        messages.flows.iter_mut().for_each(|flow| flow.lost = 1);
    }
    if let Some(conditions) = &mut document.conditions {
        conditions.counted_ns = None;
    }
    document.facts.lab = Some(LabFacts { mode: "kvm".into(), ..LabFacts::default() });
    document
}

/// Everything that shows a run, which has the files of `place`.
fn look(place: &Path, document: &Document) {
    let run = Run::of(place.into(), document.clone());
    let moved = collect::interrupts(&run, &mut Vec::new());
    for width in [None, Some(40)] {
        let intervals = RunIntervals::of(&run);
        let asked = Asked { interrupts: &moved, intervals: Some(&intervals), ..Asked::default() };
        let _ = terminal::show(document, "place", asked, width);
    }
    let (report, shown) = why::document(&run).unwrap();
    let _ = why::text(&report, &shown, "place", why::PeakView::Timelines(3));
    let _ = why::text(&report, &shown, "place", why::PeakView::List);
    let page = collect::page(vec![run.clone(), run.clone()]);
    let _ = html::render(&page).unwrap();
    for kind in [
        PictureKind::Scatter,
        PictureKind::Percentile,
        PictureKind::Heatmap,
        PictureKind::Histogram,
    ] {
        let _ = plot::svg(&page, &PlotOptions::new(kind, Size { width: 300, height: 200 }));
    }
    let runs = [run.clone(), run];
    let documents = [document.clone(), document.clone()];
    let mut matrix = matrix(&documents, NameOrder::default()).unwrap();
    cells::fill(&mut matrix, &runs);
    let (title, finding) = ("t".to_owned(), String::new());
    let mut sheet =
        MatrixView { title, finding, matrix, failed: Vec::new(), undone: 0, config: None };
    sheet.finding = of_lab(&sheet, None);
    let _ = (show(&sheet), matrix_page::matrix(&sheet, &runs));
}

#[test]
fn no_figure_of_a_record_panics_whoever_shows_it() {
    for name in ["timer", "pingpong", "stream", "receive"] {
        let numbers = Numbers::of(record(name));
        assert!(numbers.takes.len() > 100, "{name}: {}", numbers.takes.len());
        SETS.iter().for_each(|set| look(&fixture(name), &numbers.with(set)));
    }
}

#[test]
fn no_figure_of_the_peaks_panics_whoever_shows_them() {
    let place = tempfile::tempdir().unwrap();
    let (from, to) = (fixture("timer"), place.path());
    fs::copy(from.join(names::SERIES), to.join(names::SERIES)).unwrap();
    let lines = fs::read_to_string(from.join(names::PEAKS)).unwrap();
    let peak = |line: &str| {
        let mut peak: Peak = serde_json::from_str(line).unwrap();
        peak.timeline.truncate(8);
        Numbers::of(peak)
    };
    let peaks: Vec<Numbers<Peak>> = lines.lines().take(4).map(peak).collect();
    let blame = fs::read_to_string(from.join(names::BLAME)).unwrap();
    let mut blame = Numbers::of(serde_json::from_str::<Blame>(&blame).unwrap());
    // Places among the causes stay what they were, or the whole file is refused.
    blame.takes.retain(|(place, _)| !(place.contains("/parts/") && place.ends_with("/0")));
    let record = record("timer");
    for set in SETS {
        let line = |peak: &Numbers<Peak>| serde_json::to_string(&peak.with(set)).unwrap() + "\n";
        fs::write(to.join(names::PEAKS), peaks.iter().map(line).collect::<String>()).unwrap();
        fs::write(to.join(names::BLAME), serde_json::to_vec(&blame.with(set)).unwrap()).unwrap();
        look(to, &record);
    }
}
