//! Delays of perf beside the dispatch of attach.

use super::*;
use crate::run::{AttachParameters, OtherProbe, ProbeRecord};

/// A run of threads called `app`, by the program that its probe names: of attach with a lateness
/// three times the dispatch. Of perf there is another task.
fn delays(place: &Path, name: &str, probe: &str) -> Run {
    let blocks = |low: u64| -> Vec<Vec<u64>> {
        (0..100).map(|block| (0..50).map(|n| low + n * 100 + block).collect()).collect()
    };
    let series = match probe {
        "attach" => vec![("app", blocks(30_000)), ("app/dispatch", blocks(10_000))],
        "woken" => vec![("app", blocks(10_000))],
        _ => vec![("app", blocks(10_000)), ("other", blocks(90_000))],
    };
    let parameters = AttachParameters {
        by: "comm".into(),
        target: "app".into(),
        only: None,
        deadlines: Vec::new(),
    };
    written_with(&place.join(name), &series, |document| {
        (document.name, document.id) = (name.into(), name.into());
        document.series.iter_mut().for_each(|own| (own.missed, own.scheduled) = (None, None));
        document.probe = match probe {
            "attach" | "woken" => ProbeRecord::Attach(parameters),
            "timer" => return,
            _ => {
                let parameters = serde_json::Map::new();
                ProbeRecord::Other(OtherProbe { name: probe.into(), parameters })
            }
        };
    })
}

/// The p50 of `app` in a comparison of these.
fn p50_of_app(a: Vec<Run>, b: Vec<Run>) -> Result<(f64, SideComparison), CompareError> {
    let one = compare_runs(a, b, &options())?.comparisons.remove(0);
    let ratio = row(&one.figures, Some("app"), "p50").ratio;
    Ok((ratio, one))
}

#[test]
fn delays_of_perf_and_the_dispatch_of_attach_are_described_beside_each_other() {
    let place = tempfile::tempdir().unwrap();
    let mut number = 0;
    let mut run = |probe: &str| {
        number += 1;
        delays(place.path(), &format!("r{number}"), probe)
    };
    for [a, b] in [
        ["perf script", "attach"],
        ["attach", "perf sched timehist"],
        ["woken", "perf script"],
        ["perf sched timehist", "perf script"],
    ] {
        let (ratio, one) = p50_of_app(vec![run(a)], vec![run(b)]).unwrap();
        assert!((0.98..1.02).contains(&ratio), "{a}, {b}: {ratio}");
        assert!((!one.judged && one.verdict == AbVerdict::Inconclusive), "{one:?}");
        assert!(one.remarks[0].contains("Described, not judged: these are delays"), "{one:?}");
        let is_cut = a.contains("timehist") || b.contains("timehist");
        assert_eq!(one.remarks[0].contains("below a microsecond"), is_cut);
        let of_app = one.shift.iter().filter(|point| point.series.as_deref() == Some("app"));
        assert!(of_app.clone().count() > 3 && of_app.clone().count() < 20);
        assert!(of_app.clone().all(|point| (0.98..1.02).contains(&point.ratio)), "{one:?}");
    }
    // However many runs there are.
    let three =
        |probe: &str, run: &mut dyn FnMut(&str) -> Run| (0..3).map(|_| run(probe)).collect();
    let (perf, attach) = (three("perf script", &mut run), three("attach", &mut run));
    let (_, one) = p50_of_app(perf, attach).unwrap();
    let p50 = row(&one.figures, Some("app"), "p50");
    assert_eq!((one.judged, p50.low, p50.pairs), (false, None, 0));
    let left_out = "Not in all runs, and left out: other.";
    assert!(one.remarks.iter().any(|remark| remark == left_out), "{:?}", one.remarks);
    assert_eq!(one.unjudged, Some(Unjudged::SeveralPrograms));
    // Of one program it is as before: the lateness, and a judgement.
    let (perf, attach) = (three("perf script", &mut run), three("attach", &mut run));
    let more = three("perf script", &mut run);
    assert!(compare_runs(perf, more, &options()).unwrap().comparisons[0].judged);
    let (ratio, one) = p50_of_app(attach, vec![run("woken")]).unwrap();
    assert!((0.3..0.4).contains(&ratio) && !one.remarks[0].contains("these are delays"));
    let refused = p50_of_app(vec![run("timer")], vec![run("perf script")]).unwrap_err();
    assert!(refused.to_string().contains("their samples are different things"), "{refused}");
}
