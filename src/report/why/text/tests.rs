//! The text of `tardy why`.

use super::*;
use crate::{
    analysis::bands::Band,
    report::fixture,
    testing::{cpu_ns, eventually},
};

#[test]
fn a_count_goes_with_the_threshold_above_which_it_was_counted() {
    let said = |lowest_threshold_ns: i64| {
        let why = WhyReport {
            threshold_ns: 242_000,
            lowest_threshold_ns,
            blamed: 245,
            ..WhyReport::default()
        };
        counted(&why)
    };
    let wanted = "245 wake-ups that were later than 50.0 us were analyzed, at the end only \
                      those later than 242 us.";
    assert_eq!(said(50_000), wanted);
    let steady = "245 wake-ups that were later than 242 us were analyzed.";
    assert_eq!([said(242_000), said(0)], [steady, steady]);
    let why = WhyReport { threshold_ns: 45_000, blamed: 1, ..WhyReport::default() };
    assert_eq!(counted(&why), "1 wake-up that was later than 45.0 us was analyzed.");
    let why = WhyReport {
        sample: SampleName::RoundTrip,
        threshold_ns: 90_000,
        blamed: 7,
        unmatched: 2,
        ..WhyReport::default()
    };
    let wanted = "7 round trips that were longer than 90.0 us were analyzed; 2 had an end that \
                      had not gone to sleep.";
    assert_eq!(counted(&why), wanted);
}

#[test]
fn with_late_cycles_the_text_is_of_these_alone() {
    let band = |name: &str| Band {
        name: name.into(),
        from: 1_000_000,
        to: 2_000_000,
        wakeups: 246,
        ns: 1,
        blamed_share: 1.0,
        causes: Vec::new(),
    };
    let mut why = WhyReport {
        blamed: 25,
        threshold_ns: 50_000,
        responses_analysed: 246,
        responses_passed_over: 108,
        bands: vec![band(LATE), band("p99")],
        ..WhyReport::default()
    };
    let of = |why: &WhyReport| {
        let text = text(why, &fixture::judged(), "/r", PeakView::List);
        anstream::adapter::strip_str(&text).to_string().replace('\n', " ")
    };
    let said = of(&why);
    let first = "246 of 354 late cycles were analyzed, the latest first; 4 more periods passed \
                     without a cycle.";
    assert!(said.contains(first), "{said}");
    assert!(!said.contains("> p99") && !said.contains("wake-ups"), "{said}");
    let document = fixture::judged();
    let over = document.judged_cycles().into_iter().map(|own| own.row.over.unwrap().cycles);
    let over: u64 = over.sum();
    (why.responses_analysed, why.responses_passed_over) = (over - 1, 0);
    let said = of(&why);
    assert!(said.contains(&format!("{} of {over} late cycles were analyzed;", over - 1)), "{said}");
    why.bands.remove(0);
    let said = of(&why);
    assert!(said.contains("25 wake-ups that were later than 50.0 us were analyzed"), "{said}");
    assert!(said.contains("> p99"), "{said}");
}

#[test]
fn the_table_of_tasks_says_of_how_many_it_is() {
    let mut why = WhyReport {
        lowest_threshold_ns: 50_000,
        threshold_ns: 11_600_000,
        blamed: 76,
        late: 1_234,
        ..WhyReport::default()
    };
    let wanted = "Tasks that ran first in the 76 wake-ups analyzed, of 1,234 that were later \
                      than 50.0 us:";
    assert_eq!(of_how_many(&why), wanted);
    (why.summed_ns, why.responses_analysed) = (Some(8_000_000_000), 3);
    let wanted = "Tasks that ran first in the 76 wake-ups analyzed; late responses are not in it:";
    assert_eq!(of_how_many(&why), wanted);
    (why.summed_ns, why.late, why.responses_analysed) = (None, 76, 0);
    assert_eq!(of_how_many(&why), "Tasks that ran first in the 76 wake-ups analyzed:");
}

#[test]
fn how_far_the_sums_of_a_run_reach_that_goes_on_is_said() {
    let mut why = WhyReport {
        threshold_ns: 242_000,
        blamed: 245,
        summed_ns: Some(8_000_000_000),
        ..WhyReport::default()
    };
    let wanted = "245 wake-ups that were later than 242 us were analyzed, in the first 8 s of \
                      the run, which its sums reach so far.";
    assert_eq!(counted(&why), wanted);
    (why.blamed, why.summed_ns, why.peaks_found) = (0, Some(0), 3);
    let wanted = "No sums of all late wake-ups yet: they are written after the first \
                      second of a run, and every few seconds from then on; peaks so far: 3.";
    assert_eq!(counted(&why), wanted);
}

#[test]
fn thousands_of_stages_take_no_time_and_are_counted() {
    let of = |count: usize| {
        let mut names = vec!["cpu0".to_owned()];
        names.extend((0..count).map(|at| format!("cpu0/stage{at}")));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let document = fixture::of("timer", &names);
        let mut sheet = TerminalText::default();
        stages(&mut sheet, &document);
        (cpu_ns(|| stages(&mut TerminalText::default(), &document)), sheet.done())
    };
    let (_, text) = of(8_000);
    assert!(text.contains("stage29") && !text.contains("stage30"), "{text}");
    assert!(text.contains("and 7970 more stages"), "{text}");
    let is_fast = || of(8_000).0 < 80 * of(500).0;
    assert!(eventually(is_fast), "8000 stages take 80 times as long as 500");
}
