//! Headlines of runs.

use super::*;
use crate::{
    report::fixture,
    run::{
        FigureHead, FigureUnit, InteractiveParameters, InteractiveTask, NoiseParameters, Scheduled,
        figures::summarize_figure,
    },
};

#[test]
fn a_round_trip_is_reported_whole_and_its_half_is_named_as_one() {
    assert_eq!(
        headline(&fixture::of("pingpong", &["rtt"])),
        "99% of round trips took at most 60.0 us (one way 30.0 us, as half of it); the worst \
             took 2.40 ms."
    );
}

#[test]
fn where_many_periods_were_missed_they_are_reported_and_not_the_wake_ups_that_came() {
    let mut timer = fixture::of("timer", &["cpu0"]);
    let own = &mut timer.series[0];
    (own.count, own.missed, own.scheduled) = (5_000, Some(5), Some(scheduled(5_005)));
    let few = "99% of wake-ups were at most 60.0 us late; the worst was 2.40 ms late, on CPU \
                   0. 5 periods were missed.";
    assert_eq!(headline(&timer), few);
    let own = &mut timer.series[0];
    (own.count, own.missed, own.scheduled) = (1_000, Some(4_000), Some(scheduled(4_900)));
    assert_eq!(
        headline(&timer),
        "99.9% of scheduled periods had their wake-up within 61.0 ms; the worst was 2.40 ms \
             late, on CPU 0. 4,000 of 5,000 periods were missed."
    );
}

#[test]
fn periods_that_passed_during_the_work_are_reported_with_those_before_it() {
    let mut timer = fixture::of("timer", &["cpu0", "cpu0/response"]);
    let [wakeups, work] = &mut timer.series[..] else { panic!("two series") };
    (wakeups.count, wakeups.missed) = (5_635, Some(7));
    (work.count, work.missed) = (5_635, Some(365));
    (work.stage_of, work.stage) = (Some("cpu0".into()), Some("response".into()));
    let said = headline(&timer);
    let all = " 365 of 6,000 periods were missed by the end of the work, 7 of them by its \
                   wake-up.";
    assert!(said.ends_with(all), "{said}");
    timer.series[0].missed = Some(0);
    let said = headline(&timer);
    assert!(said.ends_with(" 365 of 6,000 periods were missed by the end of the work."));
    // Of attached threads none are counted there.
    timer.series[0].missed = Some(7);
    timer.series[1].missed = None;
    assert!(headline(&timer).ends_with(" 7 of 5,642 periods were missed."));
}

#[test]
fn gaps_are_reported_with_the_share_of_time_that_they_took() {
    let mut noise = fixture::of("noise", &["cpu0", "cpu1"]);
    noise.messages = None;
    let unit = FigureUnit::Percent;
    let lost = |cpu: u32, share| {
        let head = FigureHead { name: format!("cpu{cpu}/lost"), unit: unit.clone() };
        summarize_figure(&head, &[share])
    };
    noise.figures = vec![lost(0, 0.25), lost(1, 2.5)];
    noise.series[1].cpu = Some(1);
    let mut without = noise.clone();
    without.series.clear();
    let parameters = NoiseParameters { gap_over_ns: 1_000, cpus: "0-1".into() };
    without.probe = ProbeRecord::Noise(parameters);
    assert!(headline(&without).starts_with("No gap above 1.00 us was found"));
    let mut starved = without.clone();
    starved.series.clone_from(&noise.series);
    starved.series.iter_mut().for_each(|series| {
        series.count = 0;
        series.max = None;
        series.percentiles.clear();
    });
    assert_eq!(
        headline(&starved),
        "No gap above 1.00 us began and ended within the run, but CPU 1 lost 2.50% of its time."
    );
    without.figures.clear();
    assert_eq!(headline(&without), "Nothing was measured.");
    assert_eq!(
        headline(&noise),
        "99% of gaps took at most 60.0 us; the worst took 2.40 ms, on CPU 1. CPU 1 lost \
             2.50% of its time."
    );
}

#[test]
fn threads_that_say_little_are_left_out_and_what_single_ones_missed_is_not() {
    let mut document = fixture::of("attach", &["app", "main"]);
    let row = |series: &str, tid, missed: u64| {
        let text = format!(
            r#"{{"series": "{series}", "tid": {tid}, "wakeups": 9, "by_timer": 9,
                "by_interrupt": 0, "by_ipi": 0, "by_task": 0, "by_own_timer": 9, "in_slack": 0,
                "missed": {missed}, "preempted": 0, "unmatched": 0, "run": {{"count": 0}},
                "ready": {{"count": 0}}, "blocked": {{"count": 0}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    };
    let rows = vec![row("app", "null", 0), row("app/7", "7", 1), row("app/8", "8", 4)];
    document.attached = Some(crate::run::AttachRecord { rows, ..Default::default() });
    // It waits for the others to end.
    let last = &mut document.series[1];
    last.count = 3;
    last.uncertain = ["90", "99", "99.9"].map(String::from).to_vec();
    let said = headline(&document);
    assert!(said.starts_with("99% of wake-ups"), "{said}");
    assert!(said.contains(" Individual threads missed 5 more periods;"), "{said}");
}

#[test]
fn frames_are_reported_with_the_task_that_was_latest_and_the_one_that_missed_most() {
    let mut document = fixture::of("timer", &["audio", "video"]);
    let task = |name: &str| InteractiveTask {
        name: name.into(),
        period_ns: Some(20_000_000),
        work_ns: Some(1_000_000),
    };
    let tasks = vec![task("audio"), task("video")];
    document.probe =
        ProbeRecord::Interactive(InteractiveParameters { tasks, cpu: 0, loops_per_ms: None });
    let met = |name: &str, percent| {
        let head = FigureHead { name: name.into(), unit: FigureUnit::Percent };
        summarize_figure(&head, &[percent])
    };
    document.figures = vec![met("audio/deadlines", 99.0), met("video/deadlines", 87.5)];
    document.series[0].max = Some(9_000_000);
    assert_eq!(
        headline(&document),
        "99% of frames were at most 60.0 us late; the worst was 9.00 ms late, of audio. video \
             met 87.5% of its deadlines."
    );
}

fn scheduled(count: u64) -> Scheduled {
    let percentiles = [("50", 9_000_000), ("99.9", 61_000_000)];
    Scheduled {
        count,
        mean: None,
        max: None,
        percentiles: percentiles.map(|(name, ns)| (name.to_owned(), ns)).into_iter().collect(),
        uncertain: Vec::new(),
    }
}

#[test]
fn packets_are_reported_against_their_time_and_with_those_that_were_lost() {
    let mut stream = fixture::of("stream", &["there", "there/pacing", "back"]);
    if let Some(messages) = &mut stream.messages {
        messages.flows[0].lost = 2;
    }
    assert_eq!(
        headline(&stream),
        "99% of packets came within 60.0 us of their scheduled time; the worst was 2.40 ms \
             late back. 2 of 1,000 there were lost."
    );
    let text = headline(&fixture::of("stream", &["rtt", "rtt/pacing"]));
    assert!(text.contains("packets were back within 60.0 us of their"), "{text}");
    let text = headline(&fixture::of("receive", &["receive"]));
    assert!(text.starts_with("99% of packets were read within 60.0 us of their"), "{text}");
}
