//! Caveats of what was recorded, of loads and of tracing.

use super::*;
use crate::{
    run::{
        FigureHead, FigureUnit, LostEvents, TraceBy, figures::summarize_figure,
        profile::ProfileCost,
    },
    session::evidence::ProfileEvidence,
};

#[test]
fn a_recorder_that_was_late_or_lost_samples_is_reported() {
    let of = |recording: Recording| |evidence: &mut Evidence| evidence.recording = recording;
    let lost = Recording { lost: 7, ..Recording::default() };
    assert_one(of(lost), "samples_lost", &json!({"lost": 7}), "7 samples");
    let late = |late_ns| of(Recording { late_ns, ..Recording::default() });
    let late_ns = crate::session::caveats::recording::LATE_NS;
    assert_one(late(2 * late_ns), "drain_late", &json!({"late_ns": 2 * late_ns}), "late by 1");
    assert_eq!(codes(late(late_ns)), [""; 0]);
    for (at_ns, words) in [
        (Some(1_500_000_000), "interrupts.csv at 1.5 s: No space left on device."),
        (None, "interrupts.csv: No space left on device."),
    ] {
        let refused = RefusedWrite { file: "interrupts.csv".into(), at_ns, error: no_space() };
        let values = json!({"file": "interrupts.csv", "at_ns": at_ns, "error": no_space()});
        let refused = Recording { refused: Some(refused), ..Recording::default() };
        assert_one(of(refused), "record_incomplete", &values, words);
    }
}

#[test]
fn series_without_samples_with_early_ones_and_with_missed_periods_are_reported() {
    let of = |totals: Totals| {
        move |evidence: &mut Evidence| evidence.series = vec![summary("cpu0", totals)]
    };
    let some = |missed: u64| Totals { count: 990, missed, ..Totals::NONE };
    assert_one(of(Totals::NONE), "no_samples", &json!({}), "No sample");
    let early = Totals { early: 1, ..some(0) };
    assert_one(of(early), "early_wakeups", &json!({"early": 1}), "1 wake-up occurred");
    let of_a_device = |evidence: &mut Evidence| {
        of(early)(evidence);
        evidence.has_estimated_grid = true;
    };
    assert_eq!(codes(of_a_device), [""; 0]);
    let values = json!({"series": [{"series": "cpu0", "missed": 10, "periods": 1_000}]});
    assert_one(of(some(10)), "periods_missed", &values, "1.0% on cpu0");
    // One in a thousand, and no more.
    assert_eq!(codes(of(Totals { count: 9_990, ..some(10) })), [""; 0]);
}

#[test]
fn figures_without_a_value_are_named_with_what_was_in_the_way() {
    let gap = |name: &str, why: Option<&str>| FigureGap {
        name: name.into(),
        why: why.map(str::to_owned),
    };
    let gaps = vec![gap("exec", Some("no /bin/true")), gap("shell", None)];
    let of = |has_figures| {
        let gaps = gaps.clone();
        move |evidence: &mut Evidence| {
            evidence.series.clear();
            (evidence.has_figures, evidence.figure_gaps) = (has_figures, gaps);
        }
    };
    let values = json!({"figures": gaps});
    let words = "exec (no /bin/true), shell (the run ended before its turn).";
    assert_one(of(true), "figures_missing", &values, words);
    let all = codes(of(false));
    assert!(all.contains(&"no_samples".to_owned()) && all.len() == 2, "{all:?}");
}

#[test]
fn a_figure_that_cannot_be_makes_a_run_invalid_and_is_named() {
    let head = FigureHead { name: "switch/2".into(), unit: FigureUnit::Microseconds };
    let impossible = summarize_figure(&head, &[-198.5, 11.0]).impossible().unwrap();
    let of = move |evidence: &mut Evidence| evidence.impossible_figures = vec![impossible];
    let values = json!({"figures": [{"name": "switch/2", "unit": "us", "least": -198.5}]});
    let again = of.clone();
    assert_one(of, "figures_impossible", &values, "switch/2 (-198.500 us)");
    assert_eq!(verdict(&after(again)), Validity::Invalid);
}

#[test]
fn a_load_that_died_or_did_nothing_is_reported() {
    let of = |fault| of_load(0, Some(fault));
    assert_one(
        of(LoadFault::Died("worker 3: signal 9".into())),
        "load_died",
        &json!({"load": "hackbench", "how": "worker 3: signal 9"}),
        "worker 3: signal 9",
    );
    let values = json!({"load": "hackbench"});
    assert_one(of(LoadFault::DidNothing), "load_did_nothing", &values, "hackbench completed no");
}

#[test]
fn a_load_of_which_a_part_did_nothing_is_reported() {
    assert_eq!(codes(of_load(0, None)), [""; 0]);
    assert_eq!(codes(of_load(3, Some(LoadFault::DidNothing))), ["load_did_nothing"]);
    let values = json!({"load": "hackbench", "tasks_idle": 3, "tasks": 160});
    assert_one(of_load(3, None), "load_in_part", &values, "3 of 160 tasks");
}

/// A hackbench of 160 tasks.
fn of_load(tasks_idle: u64, fault: Option<LoadFault>) -> impl FnOnce(&mut Evidence) {
    let proof = LoadProof {
        unit: "messages".into(),
        operations: 1,
        operations_per_s: 1.0,
        context_switches_per_s: 1.0,
        cpu_share: 1.0,
        tasks: 160,
        tasks_idle,
    };
    let end = LoadEnd { proof: Some(proof), ended: "stopped".into(), fault };
    |evidence| evidence.loads = vec![("hackbench".into(), end)]
}

#[test]
fn what_the_kernels_own_tracer_does_not_see_or_lost_is_a_caveat_that_informs() {
    let of = |record: TraceRecord| |evidence: &mut Evidence| evidence.trace.record = record;
    let (by, found) = (Some(TraceBy::Tracefs), TraceMode::Peaks);
    let why = "the kernel does not describe its types";
    let instead = TraceRecord { by, found, why_not_bpf: Some(why.into()), ..Default::default() };
    let values = json!({"why_not_bpf": why, "causes": true});
    assert_one(of(instead), "traced_by_tracefs", &values, "as BPF is not available: the kernel");
    let asked = TraceRecord { by, found: TraceMode::Stages, ..Default::default() };
    let values = json!({"why_not_bpf": null, "causes": false});
    assert_one(of(asked), "traced_by_tracefs", &values, "own tracer. It was asked for stages");
    let lost_on = vec![LostEvents { cpu: 3, events: 70_000 }];
    let lost = TraceRecord { lost_on: lost_on.clone(), ..Default::default() };
    let values = json!({"cpus": lost_on});
    assert_one(of(lost), "trace_events_lost", &values, "at least 70,000 on CPU 3");
}

#[test]
fn what_tracing_could_not_tell_is_a_caveat_that_informs() {
    let of = |record: TraceRecord| |evidence: &mut Evidence| evidence.trace.record = record;
    let none = || TraceRecord::off(TraceMode::Auto);
    assert_eq!(codes(of(TraceRecord { unmatched: 10, ..none() })), [""; 0]);
    assert_one(
        of(TraceRecord { unmatched: 11, ..none() }),
        "wakeups_unmatched",
        &json!({"unmatched": 11, "wakeups": 10_000}),
        "11 of 10,000 wake-ups",
    );
    let lost = TraceRecord { lost_events: 1, ..none() };
    assert_one(of(lost), "events_lost", &json!({"lost": 1}), "lost 1 event:");
    let why = "the kernel refuses the program";
    let stages = TraceRecord { found: TraceMode::Stages, why_not: Some(why.into()), ..none() };
    let values = json!({"missing": [], "no_causes": why});
    assert_one(of(stages), "traced_in_part", &values, "stages only, no causes: the kernel");
    let missing = MissingTracepoint {
        tracepoint: "ipi_send_cpu".into(),
        switches_off: "who sent an interrupt".into(),
        why: "the kernel has no such tracepoint".into(),
    };
    let values = json!({"missing": [missing], "no_causes": null});
    let words = "reported here: who sent an interrupt (ipi_send_cpu): the kernel has no such";
    assert_one(
        of(TraceRecord { missing: vec![missing], ..none() }),
        "traced_in_part",
        &values,
        words,
    );
    assert_one(
        |evidence| evidence.trace.lack = Some(why.into()),
        "untraced",
        &json!({"why_not": why}),
        why,
    );
    let hidden = |evidence: &mut Evidence| evidence.trace.symbols_hidden = true;
    assert_one(hidden, "symbols_hidden", &json!({}), "stacks have no names");
}

#[test]
fn late_samples_for_which_there_was_no_room_are_reported() {
    assert_one(
        |evidence| evidence.trace.record.peaks_left_out = 1_200,
        "peaks_left_out",
        &json!({"left_out": 1_200}),
        "1,200 late samples",
    );
}

#[test]
fn what_a_profile_takes_of_the_cpus_it_samples_is_a_caveat_that_informs() {
    let of = |lost| {
        move |evidence: &mut Evidence| {
            let cost = ProfileCost { samples: 200, program_ns: 1_400_000, helper_ns: 5 };
            evidence.trace.profiled = Some(ProfileEvidence { hz: 99, cost, lost });
        }
    };
    let values = |lost: u64| json!({"hz": 99, "samples": 200, "sample_ns": 7_000, "lost": lost});
    let words = "interrupted 99 times a second for the profile, 200 samples in all: each took 7.00";
    assert_one(of(0), "profiled", &values(0), words);
    assert_one(of(3), "profiled", &values(3), "3 more were lost");
}

#[test]
fn helpers_on_the_cpus_of_ordinary_measured_threads_are_reported_with_their_time() {
    let of = |is_beside: bool, longest_ns: u64| {
        move |evidence: &mut Evidence| {
            let thread = "tardy/recorder".to_owned();
            evidence.recording.helpers =
                vec![HelperTime { thread, cpu_ns: 312_000_000, longest_ns }];
            evidence.setup.helpers_beside = is_beside;
        }
    };
    let helper =
        json!({"thread": "tardy/recorder", "cpu_ns": 312_000_000, "longest_ns": 4_100_000});
    let words = "tardy/recorder 312 ms, at most 4.10 ms uninterrupted. Ordinary";
    assert_one(of(true, 4_100_000), "helpers_beside", &json!({"helpers": [helper]}), words);
    assert_eq!((codes(of(false, 4_100_000)), codes(of(true, 100_000))), (Vec::new(), Vec::new()));
}

#[test]
fn helpers_that_take_much_of_the_cpus_of_ordinary_measured_threads_weaken_a_run() {
    let of = |is_beside: bool, cpu_ns: u64| {
        move |evidence: &mut Evidence| {
            let thread = "tardy/recorder".to_owned();
            evidence.recording.helpers = vec![HelperTime { thread, cpu_ns, longest_ns: 90_000 }];
            evidence.recording.length_ns = 4_000_000_000;
            evidence.machine.measured = [0, 1].into_iter().collect();
            evidence.setup.helpers_beside = is_beside;
        }
    };
    let values = json!({"cpu_ns": 480_000_000, "percent": 6, "has_deadline": false});
    let advice = |change| after(change)[0].remedy.clone();
    assert!(!advice(of(true, 480_000_000)).contains("--deadline"), "no deadline was given");
    assert_one(of(true, 480_000_000), "helpers_busy", &values, "480 ms of the measured CPUs (6%");
    let none = [codes(of(false, 480_000_000)), codes(of(true, 400_000_000))];
    assert_eq!(none, [Vec::<String>::new(), Vec::new()]);
}

#[test]
fn late_samples_that_are_late_because_of_helpers_weaken_a_run() {
    let of = |share: f64| {
        move |evidence: &mut Evidence| {
            let thread = "tardy/recorder".to_owned();
            evidence.recording.helpers = vec![HelperTime { thread, cpu_ns: 1, longest_ns: 1 }];
            evidence.recording.blamed_on_helpers = Some(share);
        }
    };
    let values = json!({"threads": ["tardy/recorder"], "percent": 34});
    let words = "own threads (tardy/recorder) caused 34% of the analyzed late time";
    assert_one(of(0.344), "helpers_blamed", &values, words);
    assert_eq!(codes(of(0.2)), Vec::<String>::new());
}
