//! A run without the time that its hypervisor took, and what that is in words.

use super::{intervals::RunLog, sample_name};
use crate::{
    run::{
        Document, Run,
        host_removal::WithoutHostError,
        without_host::{SeriesWithoutHost, WithoutHost},
    },
    units::{Nanos, count, many},
};

/// The run without the time that its hypervisor is known to have taken. Its caveats and its verdict
/// stay those of what was measured, with what its log as it was measured gives reason to doubt.
///
/// # Errors
/// Why nothing can be removed.
pub fn without_host(mut run: Run) -> Result<Run, WithoutHostError> {
    let left = run.without_host()?;
    let log = RunLog::read(&run);
    RunLog::caveats(&run, &log).into_iter().for_each(|kind| run.add_caveat(kind.into()));
    let (caveats, validity) = (run.document.caveats, run.document.validity);
    let mut run = left;
    (run.document.caveats, run.document.validity) = (caveats, validity);
    Ok(run)
}

/// Runs that are compared with each other without their hosts; one of which no hypervisor is known
/// is taken as it was measured.
///
/// # Errors
/// Why nothing can be removed from one of the others.
pub fn all_without_host(runs: Vec<Run>) -> Result<Vec<Run>, WithoutHostError> {
    let of = |run: Run| match run.document.facts.virtualisation {
        Some(_) => without_host(run),
        None => Ok(without_host(run.clone()).unwrap_or(run)),
    };
    runs.into_iter().map(of).collect()
}

/// In a few words, where a run is shown so: `without the host: 1.20 ms removed from 3 samples`.
#[must_use]
pub fn mark(document: &Document) -> Option<String> {
    let WithoutHost { samples, removed_ns, .. } = document.without_host.as_ref()?;
    Some(match samples {
        0 => "without the host: nothing to remove".into(),
        _ => format!(
            "without the host: {} removed from {}",
            duration(*removed_ns),
            many(*samples, "sample")
        ),
    })
}

/// What was removed and what was not, in sentences.
#[must_use]
pub fn sentences(document: &Document) -> Vec<String> {
    let Some(own) = &document.without_host else { return Vec::new() };
    let mut said = vec![removed(own)];
    if own.missed_removed > 0 {
        said.push(format!(
            "{} passed in that time and {} not counted as missed; without it they would have had \
             samples, which nobody knows.",
            many(own.missed_removed, "period"),
            if own.missed_removed == 1 { "is" } else { "are" }
        ));
    }
    said.push(still_in(own));
    if let Some(counted_ns) = own.counted_ns {
        said.push(format!(
            "The steal clock of the measured CPUs counted {} in the run (in ticks of 10 ms), also \
             where no sample was under way.",
            duration(counted_ns)
        ));
    }
    if !own.left_out.is_empty() {
        said.push(format!(
            "Left out: the stages ({} series), as nobody knows from which of them the host took.",
            count(own.left_out.len() as u64)
        ));
    }
    said.push("Verdict and caveats are those of the run as it was measured, with its host.".into());
    said
}

fn removed(own: &WithoutHost) -> String {
    if own.samples == 0 {
        return "Without the host: the steal counter took nothing from a sample that was judged, \
                so that all figures are as they were measured."
            .into();
    }
    let of = |series: &SeriesWithoutHost| {
        let name = sample_name::series(&series.name);
        format!("{name}: {} of {}", duration(series.removed_ns), count(series.samples))
    };
    let all: Vec<String> = own.series.iter().take(MOST_SERIES).map(of).collect();
    let more = own.series.len().saturating_sub(all.len());
    let more = if more > 0 { format!(", and {more} more series") } else { String::new() };
    format!(
        "Without the host: {} that the steal counter measured {} removed from {} ({}{more}).",
        duration(own.removed_ns),
        if own.removed_ns == 1 { "is" } else { "are" },
        many(own.samples, "late sample"),
        all.join(", ")
    )
}

/// Series that are named one by one.
const MOST_SERIES: usize = 4;

/// What cannot be removed.
fn still_in(own: &WithoutHost) -> String {
    let mut kinds = vec![format!(
        "what was stolen from samples of at most {}, which were not judged",
        Nanos(own.judged_over_ns)
    )];
    for (n, one, some) in [
        (own.passed_over, "late sample that was skipped", "late samples that were skipped"),
        (
            own.not_moved,
            "sample with stolen time that is not found again in the log",
            "samples with stolen time that are not found again in the log",
        ),
        (
            own.unmatched,
            "sample without a record of its wake-up",
            "samples without a record of their wake-ups",
        ),
    ] {
        if n > 0 {
            kinds.push(format!("{} {}", count(n), if n == 1 { one } else { some }));
        }
    }
    if own.lost_events > 0 {
        kinds.push(format!("what is in {} that the recorder lost", many(own.lost_events, "event")));
    }
    kinds.push("time of the host that nothing counted".into());
    kinds.push("what was late afterwards because of it".into());
    format!("Still in: {}.", kinds.join("; "))
}

fn duration(ns: u64) -> Nanos {
    Nanos(i64::try_from(ns).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{
        analysis::ab::figure::JUDGED_BY_DEFAULT,
        report::{
            collect,
            compare::{CompareOptions, compare_runs},
            fixture,
            intervals::RunIntervals,
        },
        run::{
            TraceMode, hlog,
            measured_steal::MEASURED_STEAL,
            names,
            peaks::{Basis, Blame, Cause, CauseOf, LatencyBucket, Part, Peak},
            stolen::{StolenMove, StolenOf, StolenRecord},
        },
    };

    const MS: u64 = 1_000_000;
    /// `CLOCK_MONOTONIC` at the start of the made-up runs.
    const START_NS: i64 = 7_000_000_123;

    fn lowest(ns: u64) -> i64 {
        hlog::empty().lowest_equivalent(ns) as i64
    }

    /// 100 wake-ups in each of 60 intervals of 0.1 s; latencies of one load.
    fn unstalled() -> Vec<Vec<u64>> {
        let mut random = 1_u64;
        let mut latency = move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let share = (random >> 40) as f64 / (1_u64 << 24) as f64;
            (5_000.0 / (1.0 - share).max(1e-4).sqrt()) as u64
        };
        (0..60).map(|_| (0..100).map(|_| latency()).collect()).collect()
    }

    /// The same samples where every 37th lost 2 to 6 ms to the host, and what was recorded of it.
    fn stalled() -> (Vec<Vec<u64>>, StolenRecord) {
        let mut blocks = unstalled();
        let mut own = StolenOf { series: "cpu0".into(), ..StolenOf::default() };
        for (block, samples) in blocks.iter_mut().enumerate() {
            for (at, sample) in samples.iter_mut().enumerate().filter(|(at, _)| at % 37 == 5) {
                let stolen = 2 * MS + (block as u64 + at as u64) % 5 * MS;
                let (to, from) = (*sample, *sample + stolen);
                *sample = from;
                let taken_ns = START_NS + block as i64 * 100_000_000 + at as i64 * 1_000_000;
                let [from_ns, to_ns] = [from, to].map(lowest);
                let slot = taken_ns / 100_000_000;
                own.moves.push(StolenMove { slot, from_ns, to_ns, count: 1 });
                (own.samples, own.ns) = (own.samples + 1, own.ns + stolen);
            }
        }
        let series = vec![own];
        (blocks, StolenRecord { counted: true, slot_ns: 100_000_000, series, no_room: 0 })
    }

    fn made(path: &Path, blocks: Vec<Vec<u64>>, blame: &Blame) -> Run {
        let run = fixture::written_with(path, &[("cpu0", blocks)], |document| {
            document.id = path.display().to_string();
            document.start_monotonic_ns = START_NS;
            document.trace.found = TraceMode::Peaks;
            document.trace.threshold_ns = 30_000;
        });
        std::fs::write(path.join(names::BLAME), serde_json::to_vec(blame).unwrap()).unwrap();
        run
    }

    fn with(stolen: StolenRecord) -> Blame {
        Blame { stolen: Some(stolen), ..Blame::default() }
    }

    #[test]
    fn a_stalled_run_without_its_host_is_an_unstalled_run_of_the_same_load() {
        let place = tempfile::tempdir().unwrap();
        let nothing = StolenRecord { counted: true, slot_ns: 100_000_000, ..Default::default() };
        let calm = made(&place.path().join("calm"), unstalled(), &with(nothing));
        let (blocks, stolen) = stalled();
        let samples = stolen.series[0].samples;
        let stalled = made(&place.path().join("stalled"), blocks, &with(stolen));
        let own = |run: &Run| run.document.series[0].clone();
        assert!(own(&stalled).percentiles["99"] > 2 * own(&calm).percentiles["99"]);
        assert!(own(&stalled).missed > Some(0));
        let left = without_host(stalled.clone()).unwrap();
        let marker = left.document.without_host.clone().unwrap();
        assert_eq!((marker.samples, marker.not_moved), (samples, 0), "{marker:?}");
        assert_eq!(marker.missed_removed, own(&stalled).missed.unwrap());
        assert_eq!(own(&left).missed, Some(0));
        // Nothing but that a bucket stands for its values is different: 0.1%.
        let is_near = |a: u64, b: u64| a.abs_diff(b) * 500 <= a;
        for (name, ns) in &own(&calm).percentiles {
            assert!(is_near(*ns, own(&left).percentiles[name]), "{name}: {:?}", own(&left));
        }
        let mean = |run: &Run| own(run).mean.unwrap();
        assert_eq!(mean(&left), mean(&calm), "sums are exact");
        let max = |run: &Run| own(run).max.unwrap().unsigned_abs();
        assert!(is_near(max(&calm), max(&left)));
        // Each percentile within the interval of the other, which is not the stalled run's.
        let (calm, stalled) = (RunIntervals::of(&calm), RunIntervals::of(&stalled));
        let left = RunIntervals::of(&left);
        for it in &left.series[0].percentiles {
            let other = calm.of_series("cpu0", &it.percentile).unwrap();
            let within = |low: Option<u64>, high: Option<u64>, ns: u64| {
                // Ends are edges of buckets.
                low.is_none_or(|low| low <= ns + ns / 500)
                    && high.is_none_or(|high| high + ns / 500 >= ns)
            };
            assert!(within(other.low_ns, other.high_ns, it.value_ns), "{it:?} {other:?}");
            assert!(within(it.low_ns, it.high_ns, other.value_ns), "{it:?} {other:?}");
        }
        let p99 = |of: &RunIntervals| of.of_series("cpu0", "99").cloned().unwrap();
        assert!(p99(&stalled).low_ns > p99(&left).high_ns, "the test tells them apart");
    }

    #[test]
    fn what_was_removed_and_what_was_not_is_said_in_the_headline_too() {
        let place = tempfile::tempdir().unwrap();
        let (blocks, mut stolen) = stalled();
        // One that the log does not have.
        let lost = StolenMove { slot: 71, from_ns: lowest(900_000_000), to_ns: 1, count: 1 };
        stolen.series[0].moves.push(lost);
        stolen.series[0].samples += 1;
        stolen.no_room = 2;
        let run = made(place.path().join("run").as_path(), blocks, &with(stolen));
        let left = without_host(run.clone()).unwrap();
        assert_eq!(left.document.without_host.as_ref().unwrap().not_moved, 3);
        let said = sentences(&left.document).join(" ");
        for words in [
            "that the steal counter measured are removed from 180 late samples (cpu0: ",
            "samples of at most 30.0 us, which were not judged",
            "3 samples with stolen time that are not found again in the log",
            "time of the host that nothing counted",
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
        assert!(
            crate::report::headline::headline(&left.document).starts_with("Without the host: ")
        );
        assert_eq!(sentences(&run.document), [""; 0]);
        // Nothing of it is in the file, and a file that has it is not believed.
        let record = place.path().join("run/run.json");
        std::fs::write(&record, serde_json::to_vec(&left.document).unwrap()).unwrap();
        assert_eq!(Run::open(record.parent().unwrap()).unwrap().document.without_host, None);
    }

    #[test]
    fn causes_and_peaks_are_those_of_what_is_left() {
        let place = tempfile::tempdir().unwrap();
        let (blocks, stolen) = stalled();
        let cause = |cause, name: &str| CauseOf {
            series: "cpu0".into(),
            cause,
            name: name.into(),
            basis: Basis::Inferred,
        };
        let causes = vec![cause(Cause::Host, MEASURED_STEAL), cause(Cause::Softirq, "NET_RX")];
        let bucket = |low_ns, ns, parts| LatencyBucket { low_ns, wakeups: 1, ns, parts };
        let blame = Blame {
            blamed: 1,
            causes,
            buckets: vec![bucket(3_000_000, 3_040_000, vec![(0, 1, 3_000_000), (1, 1, 40_000)])],
            without_host: vec![bucket(40_000, 40_000, vec![(1, 1, 40_000)])],
            ..with(stolen)
        };
        let path = place.path().join("run");
        let run = made(&path, blocks, &blame);
        let part = |cause: &CauseOf, ns| Part {
            cause: cause.cause,
            name: cause.name.clone(),
            task: None,
            ns,
            basis: cause.basis,
            evidence: None,
            stack: Vec::new(),
        };
        let peak = Peak {
            at_ns: Some(START_NS),
            series: "cpu0".into(),
            tid: None,
            cpu: 0,
            latency_ns: 3_040_000,
            stages: None,
            ways: Vec::new(),
            blame: vec![part(&blame.causes[0], 3_000_000), part(&blame.causes[1], 40_000)],
            timeline: Vec::new(),
            left_out: 0,
        };
        let line = serde_json::to_string(&peak).unwrap() + "\n";
        std::fs::write(path.join("peaks.jsonl"), line).unwrap();
        let left = without_host(run.clone()).unwrap();
        assert_eq!(left.blame().unwrap().unwrap().buckets, blame.without_host);
        let own = left.peaks();
        assert_eq!((own.worst[0].latency_ns, own.all[0].cause), (40_000, Cause::Softirq));
        assert_eq!(run.peaks().all[0].cause, Cause::Host);
        let (why, _) = crate::report::why::document(&left).unwrap();
        let all = why.bands.iter().flat_map(|band| &band.causes);
        assert!(all.clone().all(|cause| cause.cause != Cause::Host), "{:?}", why.bands);
        assert!(why.without_host.is_some());
    }

    #[test]
    fn a_page_and_a_comparison_say_that_they_are_without_the_hosts() {
        let place = tempfile::tempdir().unwrap();
        let nothing = StolenRecord { counted: true, slot_ns: 100_000_000, ..Default::default() };
        let calm = made(&place.path().join("calm"), unstalled(), &with(nothing));
        let (blocks, stolen) = stalled();
        let stalled = made(&place.path().join("stalled"), blocks, &with(stolen));
        let own = without_host(stalled.clone()).unwrap();
        let page = collect::page(vec![own]);
        assert_eq!(page.runs[0].without_host, sentences(&page.runs[0].record));
        assert!(page.runs[0].headline.starts_with("Without the host: "));
        assert!(page.runs[0].line.contains("removed from 180 samples"), "{}", page.runs[0].line);
        let samples = |histogram: &[(u32, u64)]| histogram.iter().map(|(_, n)| n).sum::<u64>();
        assert_eq!(samples(&page.runs[0].series[0].histogram), 6_000, "none is lost");
        let options = CompareOptions { judged: JUDGED_BY_DEFAULT.to_vec(), margin: None };
        let ratio = |a: Run, b: Run| {
            let report = compare_runs(vec![a], vec![b], &options).unwrap();
            let one = &report.comparisons[0];
            let mut rows = one.figures.iter().chain(&one.described);
            let p99 = rows.find(|row| row.figure == "p99").map(|row| row.ratio);
            (p99.unwrap(), one.remarks.join(" "), report.runs[1].without_host.is_some())
        };
        let (with_host, remarks, is_marked) = ratio(calm.clone(), stalled.clone());
        assert!(with_host > 2.0 && !remarks.contains("host") && !is_marked, "{remarks}");
        let mut all = all_without_host(vec![calm, stalled]).unwrap();
        let (b, a) = (all.pop().unwrap(), all.pop().unwrap());
        let (without, remarks, is_marked) = ratio(a, b);
        assert!((without - 1.0).abs() < 0.005 && is_marked, "{without}");
        assert!(remarks.contains("All figures and causes are without the hosts"), "{remarks}");
        assert!(remarks.contains("removed from 180 samples"), "{remarks}");
    }

    #[test]
    fn what_is_not_known_is_refused_with_the_remedy() {
        let place = tempfile::tempdir().unwrap();
        let error = |blame: &Blame, name: &str| {
            let run = made(&place.path().join(name), unstalled(), blame);
            without_host(run).unwrap_err().to_string()
        };
        let older = error(&Blame::default(), "older");
        assert!(older.contains("measure again with this one and --trace peaks"), "{older}");
        let uncounted = error(&with(StolenRecord::default()), "uncounted");
        assert!(uncounted.contains("nothing counted what the hypervisor took"), "{uncounted}");
        let plain = fixture::written(&place.path().join("plain"), &[("cpu0", unstalled())]);
        let untraced = without_host(plain.clone()).unwrap_err().to_string();
        assert!(untraced.contains("measure again with --trace peaks, as root"), "{untraced}");
        // Beside others, one that has no hypervisor is what it is.
        assert_eq!(all_without_host(vec![plain.clone()]).unwrap()[0].document, plain.document);
        let mut virtual_one = plain;
        virtual_one.document.facts.virtualisation = Some("kvm".into());
        assert!(all_without_host(vec![virtual_one]).is_err());
    }
}
