//! What gates come to.

use super::*;
use crate::report::fixture;

fn gate(text: &str) -> Gate {
    text.parse().unwrap()
}

fn known(low: Option<u64>, high: Option<u64>, beyond: f64) -> NamedInterval {
    NamedInterval {
        percentile: "99.9".into(),
        value_ns: 0,
        low_ns: low,
        high_ns: high,
        samples: 20_000,
        effective_beyond: Some(beyond),
        backing: "sound",
    }
}

#[test]
fn a_percentile_is_decided_by_its_interval_and_not_by_its_point() {
    use GateVerdict::{Fail, Inconclusive, Pass};
    for (limit, low, high, expected) in [
        ("90us", Some(70_000), Some(85_000), Pass),
        ("85us", Some(70_000), Some(85_000), Pass),
        ("80us", Some(70_000), Some(85_000), Inconclusive),
        ("69us", Some(70_000), Some(85_000), Fail),
        ("90us", Some(70_000), None, Inconclusive),
        ("69us", Some(70_000), None, Fail),
        ("90us", None, None, Inconclusive),
    ] {
        let found = gate(&format!("p99.9<={limit}")).of_percentile(Some(&known(low, high, 3.1)));
        assert_eq!(found.0, expected, "{limit} {low:?} {high:?}");
    }
    let strict = gate("p99.9<85us").of_percentile(Some(&known(Some(1), Some(85_000), 30.0)));
    assert_eq!(strict.0, Inconclusive, "the limit itself is too much");
    let few = gate("p99.9<=90us").of_percentile(Some(&known(Some(70_000), None, 3.1))).1;
    assert_eq!(few, "at least 70.0 us; 3.1 independent samples beyond it, of the 10 it takes");
    assert_eq!(gate("p99.9<=1s").of_percentile(None).0, Inconclusive);
}

#[test]
fn the_maximum_says_what_it_proves_and_missed_periods_are_counted() {
    let mut own = fixture::summary("cpu0");
    let (verdict, why) = gate("max<3ms").of_max(&own, None, 30.0);
    assert_eq!(verdict, GateVerdict::Pass);
    assert_eq!(
        why,
        "3ms reached by none of 1,000 in 30 s; at 95%, less than one cluster of such \
             samples in 10 s if the load stays"
    );
    let (verdict, why) = gate("max<3ms").of_max(&own, None, 0.0);
    assert_eq!(verdict, GateVerdict::Pass);
    assert!(why.contains("unknown how long") && !why.contains("0 s"), "{why}");
    assert_eq!(gate("max<=2400us").of_max(&own, None, 30.0).0, GateVerdict::Pass);
    assert_eq!(gate("max<2400us").of_max(&own, None, 30.0).0, GateVerdict::Fail);
    assert_eq!(gate("missed=0").of_missed(&own, None).0, GateVerdict::Inconclusive, "no schedule");
    own.missed = Some(2);
    let (verdict, why) = gate("missed=0").of_missed(&own, None);
    assert_eq!((verdict, why.as_str()), (GateVerdict::Fail, "2 of 1,002 periods missed"));
    assert_eq!(gate("missed<=2").of_missed(&own, None).0, GateVerdict::Pass);
    assert_eq!(gate("missed<2").of_missed(&own, None).0, GateVerdict::Fail);
}

#[test]
fn of_attached_threads_what_was_not_seen_may_have_missed_and_have_been_the_largest() {
    use GateVerdict::{Fail, Inconclusive, Pass};
    let mut document = fixture::of("attach", &["app"]);
    let row = |unmatched: u64, unsure: u64| -> AttachedRow {
        let text = format!(
            r#"{{"series": "app", "wakeups": 1000, "by_timer": 1000, "by_interrupt": 0,
                "by_ipi": 0, "by_task": 0, "by_own_timer": 1000, "in_slack": 0, "missed": 2,
                "unsure_periods": {unsure}, "preempted": 0, "unmatched": {unmatched},
                "run": {{"count": 0}}, "ready": {{"count": 0}}, "blocked": {{"count": 0}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    };
    document.series[0].missed = Some(2);
    let mut of = |text: &str, row| {
        let rows = vec![row];
        document.attached = Some(crate::run::AttachRecord { rows, ..Default::default() });
        let found = of_gate(&gate(text), &document, None).remove(0);
        (found.verdict, found.reason)
    };
    let (verdict, why) = of("missed<=5", row(3, 31));
    assert_eq!(verdict, Inconclusive);
    assert_eq!(why, "2 of 1,002 periods missed, and 31 more unsure: missed<=33 passes here");
    assert_eq!(of("missed<=33", row(3, 31)).0, Pass);
    assert_eq!(of("missed<=1", row(3, 31)).0, Fail);
    let (verdict, why) = of("max<=3ms", row(3, 31));
    assert_eq!(verdict, Inconclusive);
    let says = "3ms exceeded by none of 1,000 that were seen, but what it did was not 3 times";
    assert!(why.starts_with(says), "{why}");
    assert_eq!(of("max<=1us", row(3, 31)).0, Fail);
    // Unsure periods of a thread of which all was seen hide no latency.
    assert_eq!(of("max<=3ms", row(0, 31)).0, Pass);
    assert_eq!((of("max<=3ms", row(0, 0)).0, of("missed<=2", row(0, 0)).0), (Pass, Pass));
}

fn of_judged(document: &Document, text: &str) -> (GateVerdict, String) {
    let found = of_gate(&gate(text), document, None);
    let own = found.into_iter().find(|own| own.series.as_deref() == Some("ctl/response"));
    own.map(|own| (own.verdict, own.reason)).unwrap()
}

/// The rows of [`fixture::judged`], none of whose cycles was late.
fn none_late(change: impl Fn(&mut AttachedRow)) -> Document {
    let mut document = fixture::judged();
    document.series[1].max = Some(900_000);
    for row in document.attached.iter_mut().flat_map(|record| &mut record.rows) {
        (row.missed, row.period_ns, row.unmatched) = (None, None, 0);
        row.over.iter_mut().for_each(|over| over.cycles = 0);
        change(row);
    }
    document.series[0].missed = Some(0);
    document
}

#[test]
fn cycles_of_a_loop_that_works_long_for_others_keep_no_limit() {
    use GateVerdict::{Fail, Inconclusive, Pass};
    let gates = ["missed=0", "max<=1ms"];
    let seen = none_late(|_| {});
    assert_eq!(gates.map(|text| of_judged(&seen, text).0), [Pass, Pass]);
    let hidden = none_late(|row| row.other_work = row.lateness);
    let found = gates.map(|text| of_judged(&hidden, text));
    assert_eq!(found.each_ref().map(|own| own.0), [Inconclusive, Inconclusive]);
    let says = "its work for others took up to 5.49 ms: how late what fell due meanwhile was";
    assert!(found.iter().all(|own| own.1.starts_with(says)), "{found:?}");
    assert_eq!(of_judged(&hidden, "max<=6ms").0, Pass, "no work took as long");
    assert_eq!(of_judged(&hidden, "max<=100us").0, Fail);
}

#[test]
fn a_stage_within_the_deadline_does_not_say_that_the_work_met_it() {
    let stage = none_late(|row| row.cycle_begin = CycleBegin::WakeUp);
    let (verdict, why) = of_judged(&stage, "missed=0");
    assert_eq!(verdict, GateVerdict::Inconclusive);
    assert_eq!(
        why,
        "0 of 2,976 cycles took over 1ms, from the wake-up by another task: earlier stages are \
             not in them; ctl/response:max<=1ms judges this stage alone"
    );
    assert_eq!(of_judged(&stage, "ctl/response:max<=1ms").0, GateVerdict::Pass);
}

#[test]
fn missed_periods_without_a_series_are_also_those_that_passed_during_the_work() {
    let mut document = fixture::of("timer", &["cpu0", "cpu0/response"]);
    let [wakeups, work] = &mut document.series[..] else { panic!("two series") };
    (wakeups.missed, work.missed) = (Some(0), Some(3));
    (work.stage_of, work.stage) = (Some("cpu0".into()), Some("response".into()));
    let found = of_gate(&gate("missed=0"), &document, None);
    let found: Vec<_> =
        found.iter().map(|own| (own.series.as_deref().unwrap(), own.verdict)).collect();
    assert_eq!(found, [("cpu0", GateVerdict::Pass), ("cpu0/response", GateVerdict::Fail)]);
    document.series[1].missed = None;
    let found = of_gate(&gate("missed=0"), &document, None);
    assert_eq!(found.len(), 1, "of attached threads the work counts none");
}

#[test]
fn of_one_histogram_the_maximum_is_decided_and_a_percentile_is_not() {
    use GateVerdict::{Fail, Inconclusive, Pass};
    let place = tempfile::tempdir().unwrap();
    let block: Vec<u64> = (0..50_000).map(|n| 4_000 + n % 1_000).collect();
    let run = fixture::written(&place.path().join("r"), &[("cpu0", vec![block])]);
    let gates = ["p99<=1ms", "max<=1ms", "max<=1us"].map(gate);
    let found = decide(&run, &gates).unwrap();
    let verdicts: Vec<GateVerdict> = found.iter().map(|own| own.verdict).collect();
    assert_eq!(verdicts, [Inconclusive, Pass, Fail]);
    assert!(found[0].reason.contains("without their order in time"), "{}", found[0].reason);
}

#[test]
fn a_gate_covers_every_series_unless_it_names_one() {
    let place = tempfile::tempdir().unwrap();
    let blocks = |late: u64| vec![vec![5_000; 199].into_iter().chain([late]).collect(); 100];
    let series = [("cpu0", blocks(50_000)), ("cpu1", blocks(200_000))];
    let run = fixture::written(&place.path().join("r"), &series);
    let of = |texts: &[&str]| {
        let gates: Vec<Gate> = texts.iter().map(|text| gate(text)).collect();
        let found = decide(&run, &gates)?;
        Ok::<_, String>(found.into_iter().map(|own| (own.series.unwrap(), own.verdict)).collect())
    };
    let all: Vec<(String, GateVerdict)> = of(&["max<100us", "cpu0:p50<=10us"]).unwrap();
    use GateVerdict::{Fail, Pass};
    let expected = [("cpu0", Pass), ("cpu1", Fail), ("cpu0", Pass)];
    assert_eq!(all, expected.map(|(name, verdict)| (name.to_owned(), verdict)));
    let error = of(&["cpu7:max<1ms"]).unwrap_err();
    assert_eq!(error, "\"cpu7:max<1ms\": unknown series cpu7; there are cpu0, cpu1");
}

#[test]
fn that_no_sample_is_beyond_the_limit_is_said_with_what_would_decide_it() {
    let share = |samples, effective| ShareBeyond { samples, beyond: 0, effective };
    let says = |samples, effective| gate("p99<=5ms").none_beyond(&share(samples, effective), 99.0);
    assert_eq!(says(200, 200.0), "none of 200 exceed 5ms, and it takes 368 to decide it");
    assert_eq!(
        says(2_000, 120.7),
        "none of 2,000 exceed 5ms, but they come in groups and count as 120 independent samples, \
         of the 368 it takes"
    );
    assert!(!share(2_000, 120.7).keeps(99.0) && share(2_000, 368.0).keeps(99.0));
}
