//! Made-up runs side by side.

mod delays;
mod missed;

use std::path::Path;

use super::{causes::of_bands, *};
use crate::{
    analysis::{
        ab::figure::JUDGED_BY_DEFAULT,
        bands::{Band, CauseInBand},
        random::SplitMix64,
    },
    report::fixture::written_with,
    run::{
        CaveatKind, Document, LatencyView, LoadProof, LoadRecord, Run, Scheduled, names,
        peaks::Cause,
    },
};

/// A run of two CPUs, 100 blocks of 200 latencies each: 10 us to 20 us, one in a hundred up to ten
/// times as much, all of them `percent` of that.
fn made(place: &Path, name: &str, percent: u64, change: impl FnOnce(&mut Document)) -> Run {
    let seed = name.bytes().fold(percent, |seed, byte| seed * 131 + u64::from(byte));
    let mut random = SplitMix64::new(seed);
    let mut latency = |_: usize| {
        let body = 10_000.0 * (1.0 + random.uniform());
        let late = if random.uniform() < 0.01 { 10.0 * random.uniform() } else { 1.0 };
        (body * late.max(1.0)) as u64 * percent / 100
    };
    let mut blocks = || (0..100).map(|_| (0..200).map(&mut latency).collect()).collect();
    let series = [("cpu0", blocks()), ("cpu1", blocks())];
    written_with(&place.join(name), &series, |document| {
        (document.name, document.id) = (name.into(), name.into());
        document.facts.boot_id = Some("one".into());
        change(document);
    })
}

fn read(runs: Vec<Run>) -> Vec<LoggedRun> {
    runs.into_iter()
        .map(|run| LoggedRun::read(run, LatencyView::PerSample, true).unwrap())
        .collect()
}

fn options() -> CompareOptions {
    CompareOptions { judged: JUDGED_BY_DEFAULT.into(), margin: None }
}

fn compared(a: &[LoggedRun], b: &[LoggedRun]) -> Result<SideComparison, CompareError> {
    let (a, b): (Vec<&LoggedRun>, Vec<&LoggedRun>) = (a.iter().collect(), b.iter().collect());
    compare(&a, &b, &options())
}

/// Runs of A at 98, 100 and 102%, and of B at as much of `percent`.
fn sides(place: &Path, percent: u64) -> (Vec<LoggedRun>, Vec<LoggedRun>) {
    let side = |side: &str, percent: u64| {
        let one = |(number, own): (usize, u64)| {
            made(place, &format!("{side}{number}"), percent * own / 100, |_| ())
        };
        read([98, 100, 102].into_iter().enumerate().map(one).collect())
    };
    (side("a", 1_000), side("b", percent * 10))
}

fn row<'a>(
    rows: &'a [ComparedFigureRow],
    series: Option<&str>,
    name: &str,
) -> &'a ComparedFigureRow {
    let is_it = |row: &&ComparedFigureRow| row.series.as_deref() == series && row.figure == name;
    rows.iter().find(is_it).unwrap_or_else(|| panic!("no {series:?} {name}"))
}

fn report(comparison: SideComparison, runs: &[LoggedRun]) -> CompareReport {
    CompareReport {
        verdict: comparison.verdict,
        comparisons: vec![comparison],
        runs: runs.iter().map(RunInComparison::of).collect(),
    }
}

fn plain_text(report: &CompareReport, width: Option<usize>) -> String {
    anstream::adapter::strip_str(&text(report, width)).to_string()
}

#[test]
fn one_run_beside_one_other_is_described_and_not_judged() {
    let place = tempfile::tempdir().unwrap();
    let runs =
        read(vec![made(place.path(), "old", 100, |_| ()), made(place.path(), "new", 150, |_| ())]);
    let found = compared(&runs[..1], &runs[1..]).unwrap();
    assert_eq!((found.verdict, found.judged), (AbVerdict::Inconclusive, false));
    let p50 = row(&found.figures, None, "p50");
    assert!((1.45..1.55).contains(&p50.ratio), "{p50:?}");
    assert_eq!((p50.low, p50.high, p50.pairs, p50.pairs_needed), (None, None, 0, None));
    assert!(found.remarks[0].contains("at least 3 runs of each"), "{:?}", found.remarks);
    let text = plain_text(&report(found, &runs), None);
    let line = text.lines().find(|line| line.starts_with("p99 ")).unwrap();
    assert_eq!(line.matches("..").count(), 2, "each run's own interval: {line}");
    assert!(text.lines().last().unwrap().starts_with("inconclusive: too few runs"), "{text}");
}

#[test]
fn where_no_period_was_missed_the_share_is_nothing_though_a_ratio_takes_more() {
    let place = tempfile::tempdir().unwrap();
    let missing = |name: &str, missed: u64| {
        made(place.path(), name, 100, |document| {
            document.series.iter_mut().for_each(|series| series.missed = Some(missed));
        })
    };
    let runs = read(vec![missing("old", 0), missing("new", 5_000)]);
    let found = compared(&runs[..1], &runs[1..]).unwrap();
    let missed = row(&found.described, Some("cpu0"), "missed");
    assert_eq!((missed.a, missed.b), (0.0, 0.2), "{missed:?}");
    assert!(missed.ratio.is_finite() && missed.ratio > 1_000.0, "{missed:?}");
    let text = plain_text(&report(found, &runs), None);
    assert!(text.lines().any(|line| line.starts_with("missed") && line.contains(" 0%")), "{text}");
}

#[test]
fn three_runs_of_each_side_are_judged_by_how_much_they_differ_among_themselves() {
    let place = tempfile::tempdir().unwrap();
    let (a, b) = sides(place.path(), 150);
    let found = compared(&a, &b).unwrap();
    assert_eq!((found.verdict, found.judged), (AbVerdict::Worse, true));
    let p50 = row(&found.figures, None, "p50");
    assert!(p50.low.unwrap() < 1.5 && 1.5 < p50.high.unwrap(), "{p50:?}");
    assert_eq!((p50.pairs, p50.verdict), (3, AbVerdict::Worse));
    // Each CPU has its own row, and what is not judged has no interval.
    assert_eq!(row(&found.figures, Some("cpu1"), "p50").verdict, AbVerdict::Worse);
    assert_eq!(row(&found.described, None, "max").low, None);
    let back = compared(&b, &a).unwrap();
    assert_eq!(back.verdict, AbVerdict::Better);
    // An error of 2% * sqrt(2 / 3) each: 4.6% to either side at p50, more at a third of 5%.
    let (a, b) = sides(&place.path().join("equal"), 100);
    let equal = compared(&a, &b).unwrap();
    assert!(
        matches!(equal.verdict, AbVerdict::Same | AbVerdict::Inconclusive),
        "{:?}",
        equal.figures
    );
    let open = row(&equal.figures, None, "p99.9");
    if open.verdict == AbVerdict::Inconclusive {
        assert!(equal.remarks.iter().any(|remark| remark.contains("p99.9 about")), "{equal:?}");
    }
}

#[test]
fn what_is_printed_fits_a_terminal_and_says_worse_last() {
    let place = tempfile::tempdir().unwrap();
    let (a, b) = sides(place.path(), 150);
    let found = report(compared(&a, &b).unwrap(), &[]);
    for width in [80, 120] {
        let text = plain_text(&found, Some(width));
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        assert!(text.contains("95% interval") && text.contains("not judged"), "{text}");
        assert!(text.contains("B/A by series"), "{text}");
    }
    let text = plain_text(&found, None);
    assert!(text.lines().last().unwrap().starts_with("worse: B is worse at p50 (+"), "{text}");
}

#[test]
fn runs_of_one_boot_and_runs_that_were_not_made_in_turns_are_remarked_on() {
    let place = tempfile::tempdir().unwrap();
    let side = |side: &str, hour: usize, boot: &str| {
        let one = |number: usize| {
            made(place.path(), &format!("{side}{number}"), 100, |document| {
                document.started_at = format!("2026-01-01T{:02}:00:00Z", hour + number);
                document.facts.boot_id = Some(boot.into());
            })
        };
        read((0..3).map(one).collect())
    };
    let said = |a: &[LoggedRun], b: &[LoggedRun]| compared(a, b).unwrap().remarks.join("\n");
    let (a, b, late) = (side("a", 0, "x"), side("b", 3, "x"), side("c", 1, "y"));
    let text = said(&a, &b);
    assert!(text.contains("All runs of A were made before those of B"), "{text}");
    assert!(text.contains("All runs are of one boot"), "{text}");
    let text = said(&a, &late);
    assert!(!text.contains("were made before"), "{text}");
    assert!(text.contains("The runs of A are of 1 boot"), "{text}");
    assert!(said(&b, &a).contains("All runs of B were made before those of A"));
}

#[test]
fn the_facts_that_differ_are_named_with_what_differs_in_them() {
    let place = tempfile::tempdir().unwrap();
    let with = |name: &str, kernel: &str, line: &str, per_s: f64| {
        made(place.path(), name, 100, |document| {
            document.facts.kernel = kernel.into();
            document.facts.kernel_cmdline = Some(format!("root=/dev/vda ro {line}"));
            document.loads = vec![LoadRecord {
                name: "hackbench".into(),
                parameters: serde_json::Map::new(),
                proof: Some(LoadProof {
                    unit: "messages".into(),
                    operations: 1,
                    operations_per_s: per_s,
                    context_switches_per_s: 0.0,
                    cpu_share: 1.0,
                    tasks: 1,
                    tasks_idle: 0,
                }),
                ended: None,
            }];
        })
    };
    let runs = read(vec![
        with("a", "6.1.0", "", 100_000.0),
        with("b", "6.1.0-rt", "isolcpus=1", 80_000.0),
        with("c", "6.1.0", "", 95_000.0),
    ]);
    let facts = compared(&runs[..1], &runs[1..2]).unwrap().facts;
    let of = |name: &str| facts.iter().find(|fact| fact.fact == name).unwrap();
    assert_eq!(
        (of("kernel").a.join(","), of("kernel").b.join(",")),
        ("6.1.0".into(), "6.1.0-rt".into())
    );
    assert_eq!(of("command line").a, ["without these"]);
    assert_eq!(of("command line").b, ["isolcpus=1"]);
    assert_eq!(of("work of hackbench").b, ["80.0k messages/s"]);
    assert_eq!(facts.len(), 3, "{facts:?}");
    assert_eq!(compared(&runs[..1], &runs[2..]).unwrap().facts, [], "5% is the same work");
}

#[test]
fn what_cannot_be_compared_is_refused_with_its_reason() {
    let place = tempfile::tempdir().unwrap();
    let mut other = made(place.path(), "other", 100, |_| ());
    let runs = read(vec![
        made(place.path(), "a", 100, |_| ()),
        made(place.path(), "b", 100, |document| document.duration_ns *= 2),
    ]);
    let refused = |other: Run| {
        let other = read(vec![other]);
        compared(&runs[..1], &other).unwrap_err().to_string()
    };
    let text = compared(&runs[..1], &runs[..1]).unwrap_err().to_string();
    assert!(text.contains("a is listed twice"), "{text}");
    let mut elsewhere = other.clone();
    for (number, series) in elsewhere.document.series.iter_mut().enumerate() {
        series.name = format!("cpu{}", number + 7);
    }
    let text = refused(elsewhere);
    assert!(text.contains("a has cpu0, cpu1, and other has cpu7, cpu8"), "{text}");
    other.document.probe = crate::run::ProbeRecord::Other(crate::run::OtherProbe {
        name: "irq".into(),
        parameters: serde_json::Map::new(),
    });
    let text = refused(other);
    assert!(text.contains("a is a run of timer, other one of irq"), "{text}");
    let options = CompareOptions { judged: vec![ComparedFigure::Max], margin: None };
    let error = compare(&[&runs[0]], &[&runs[1]], &options).unwrap_err().to_string();
    assert!(error.contains("--figures max: the runs lasted from 20 s to 40 s"), "{error}");
}

#[test]
fn a_run_without_samples_and_a_damaged_log_are_refused_by_name() {
    let place = tempfile::tempdir().unwrap();
    let run = made(place.path(), "a", 100, |_| ());
    let mut empty = run.clone();
    empty.document.series.iter_mut().for_each(|series| series.percentiles.clear());
    assert!(
        LoggedRun::read(empty, LatencyView::PerSample, false)
            .unwrap_err()
            .to_string()
            .contains("a has no sample")
    );
    let log = run.path.join(names::SERIES);
    let text = std::fs::read_to_string(&log).unwrap().replacen("HISTF", "HISTG", 1);
    std::fs::write(&log, text).unwrap();
    let error = LoggedRun::read(run, LatencyView::PerSample, false).unwrap_err().to_string();
    assert!(error.starts_with("a: series.hlog: line 6 is damaged"), "{error}");
}

#[test]
fn an_invalid_run_marks_the_comparison() {
    let place = tempfile::tempdir().unwrap();
    let mut invalid = made(place.path(), "b", 100, |_| ());
    invalid.add_caveat(CaveatKind::Crashed.into());
    let runs = read(vec![made(place.path(), "a", 100, |_| ()), invalid]);
    let found = compared(&runs[..1], &runs[1..]).unwrap();
    assert_eq!(found.validity, Validity::Weakened);
    let text = plain_text(&report(found, &runs), None);
    assert!(text.contains("b is questionable: tardy show b"), "{text}");
}

#[test]
fn the_causes_are_of_samples_also_where_periods_are_compared() {
    let place = tempfile::tempdir().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1");
    let [run, other] = ["a", "b"].map(|name| {
        let mut run = made(&place.path().join(name), name, 100, |_| {});
        std::fs::copy(fixtures.join("timer").join(names::BLAME), run.path.join(names::BLAME))
            .unwrap();
        for series in &mut run.document.series {
            series.period_ns = Some(50_000);
            series.missed = Some(series.count);
            series.scheduled = Some(Scheduled {
                count: 2 * series.count,
                mean: series.mean,
                max: series.max,
                percentiles: series.percentiles.clone(),
                uncertain: Vec::new(),
            });
        }
        run
    });
    assert_eq!(LatencyView::of(&run.document), LatencyView::PerPeriod);
    let found = [LatencyView::PerPeriod, LatencyView::PerSample].map(|view| {
        let logged = |run: &Run| LoggedRun::read(run.clone(), view, false).unwrap();
        compare(&[&logged(&run)], &[&logged(&other)], &options()).unwrap()
    });
    assert!(!found[0].causes.is_empty());
    assert_eq!(found[0].causes, found[1].causes);
    assert_ne!(found[0].described, found[1].described);
}

#[test]
fn periods_count_only_where_every_run_tells_how_late_those_were_that_it_missed() {
    let place = tempfile::tempdir().unwrap();
    let [a, mut b] = ["a", "b"].map(|name| {
        let mut run = made(&place.path().join(name), name, 100, |_| {});
        for series in &mut run.document.series {
            series.period_ns = Some(50_000);
            series.missed = Some(series.count);
            series.scheduled = Some(Scheduled {
                count: 2 * series.count,
                mean: series.mean,
                max: series.max,
                percentiles: series.percentiles.clone(),
                uncertain: Vec::new(),
            });
        }
        run
    });
    let remark = |b: &Run| {
        let view = LatencyView::shared(&[&a.document, &b.document]);
        let logged = |run: &Run| LoggedRun::read(run.clone(), view, false).unwrap();
        let found = compare(&[&logged(&a)], &[&logged(b)], &options()).unwrap();
        found.remarks.into_iter().find(|remark| remark.starts_with("Latencies count")).unwrap()
    };
    assert!(remark(&b).starts_with("Latencies count per scheduled period"));
    for series in &mut b.document.series {
        series.scheduled = None;
    }
    let lacking = remark(&b);
    assert!(
        lacking.contains("per wake-up") && lacking.contains("how late those of b"),
        "{lacking}"
    );
}

#[test]
fn the_causes_sum_up_to_the_difference_of_the_band() {
    let band = |wakeups: u64, causes: &[(Cause, &str, u64)]| {
        let ns = causes.iter().map(|(_, _, ns)| ns).sum();
        let cause = |(cause, name, own): &(Cause, &str, u64)| CauseInBand {
            cause: *cause,
            name: (*name).into(),
            ns: *own,
            share: *own as f64 / ns as f64,
            inferred: 0.0,
            series: Vec::new(),
        };
        let causes = causes.iter().map(cause).collect();
        let (name, blamed_share) = ("p99".into(), 1.0);
        vec![Band { name, from: 0, to: 0, wakeups, ns, blamed_share, causes }]
    };
    let a = band(10, &[(Cause::Thread, "dd", 1_000), (Cause::Softirq, "NET_RX", 500)]);
    let b = band(20, &[(Cause::Softirq, "NET_RX", 5_000), (Cause::Hardirq, "nvme", 400)]);
    let (a, b) = ([a], [b]);
    let found = of_bands(&a, &b);
    assert_eq!((found[0].a_ns, found[0].b_ns), (150.0, 270.0));
    let differences: Vec<(&str, f64)> =
        found[0].causes.iter().map(|own| (own.name.as_str(), own.difference_ns())).collect();
    assert_eq!(differences, [("NET_RX", 200.0), ("dd", -100.0), ("nvme", 20.0)]);
    let sum: f64 = differences.iter().map(|(_, ns)| ns).sum();
    assert!((sum - (found[0].b_ns - found[0].a_ns)).abs() < 1e-9);
    let [b] = b;
    assert!(of_bands(&a, &[b, Vec::new()]).is_empty(), "one run was not traced");
}
