//! The record of a run (versions 1 and 2) and the files beside it, up to the page and `why`.
//! The input has up to six files, with a byte 0xff between them.
#![no_main]

use std::{fs, path::Path};

use libfuzzer_sys::fuzz_target;
use tardy::{
    analysis::ab::figure::ComparedFigure,
    report::{
        collect,
        compare::{CompareOptions, CompareReport, LoggedRun, RunInComparison, compare, text},
        deadline::deadlines,
        html,
        intervals::{RunIntervals, RunLog},
        profile::{MOST_SHOWN, ProfileReport, text as profile_text},
        tail::RunTail,
        terminal::{self, Asked},
        why,
    },
    run::{Deadlines, Document, LatencyView, Run, RunEntry, RunHead, names},
};

thread_local! {
    static PLACE: tempfile::TempDir = tempfile::tempdir_in("/dev/shm").expect("a place in memory");
}

const FILES: [&str; 6] =
    [names::RUN, names::SERIES, names::PEAKS, names::BLAME, names::LIVE, names::PROFILE];

fn look(place: &Path) {
    let _ = (RunHead::read(place), RunEntry::read(place));
    let Ok(run) = Run::open(place) else { return };
    let intervals = RunIntervals::of(&run);
    let tail = RunLog::read(&run).ok().map(|log| RunTail::of(&run, log.blocks()));
    let deadlines = deadlines(&run, &Deadlines::of_all(Some(500_000))).unwrap_or_default();
    let asked = Asked {
        intervals: Some(&intervals),
        tail: tail.as_ref(),
        deadlines: &deadlines,
        ..Asked::default()
    };
    let _ = terminal::show(&run.document, "place", asked, None);
    let _ = terminal::show(&run.document, "place", asked, Some(40));
    side_by_side(&run);
    let _ = (run.peaks(), run.blame());
    if let Ok((report, document)) = why::document(&run) {
        let _ = why::text(&report, &document, "place", why::PeakView::Timelines(3));
    }
    if let Ok(Some(profile)) = run.profile() {
        let _ = profile_text(&ProfileReport::of(&profile, Some(2), MOST_SHOWN), "place", 15);
    }
    let _ = html::render(&collect::page(vec![run]));
}

/// The run beside a copy of itself.
fn side_by_side(run: &Run) {
    let mut copy = run.clone();
    copy.document.id.push('x');
    let read = |run| LoggedRun::read(run, LatencyView::PerPeriod, true);
    let (Ok(a), Ok(b)) = (read(run.clone()), read(copy)) else { return };
    let options = CompareOptions { judged: vec![ComparedFigure::P99], margin: None };
    if let Ok(found) = compare(&[&a], &[&b], &options) {
        let (verdict, runs) = (found.verdict, vec![RunInComparison::of(&a)]);
        let report = CompareReport { verdict, comparisons: vec![found], runs };
        let _ = text(&report, Some(40));
    }
}

fuzz_target!(|data: &[u8]| {
    if let Ok(value) = serde_json::from_slice(data) {
        let _ = Document::from_json(value);
    }
    PLACE.with(|place| {
        let mut parts = data.splitn(FILES.len(), |byte| *byte == 0xff);
        for name in FILES {
            let path = place.path().join(name);
            match parts.next() {
                Some(part) => fs::write(path, part).expect("room in memory"),
                None => drop(fs::remove_file(path)),
            }
        }
        look(place.path());
    });
});
