//! Each doubt that comes of figures is given the figures that must bring it, and those next to them
//! that must not.

use tardy_hot::tally::Totals;

use super::*;
use crate::{
    run::{Caveat, LoadProof, SeriesHead, TraceMode, TraceRecord, hlog, summary::summarize},
    sys::{faults::Usage, root::Root},
};

fn report(series: &str) -> Report {
    Report {
        series: series.into(),
        ended: Ended::Done,
        ended_ns: 0,
        usage: Usage::default(),
        migrations: Some(0),
        broken: None,
    }
}

/// The codes of what `look` finds, and all texts in one.
fn found(look: impl FnOnce(&mut Vec<Doubt>)) -> (Vec<String>, String) {
    let mut doubts = Vec::new();
    look(&mut doubts);
    let caveats: Vec<Caveat> = doubts.into_iter().map(Into::into).collect();
    let texts: Vec<&str> = caveats.iter().map(|caveat| caveat.text.as_str()).collect();
    let text = texts.join("\n");
    (caveats.into_iter().map(|caveat| caveat.code).collect(), text)
}

fn of_one_thread(report: Report) -> (Vec<String>, String) {
    let watcher = Watcher::new(Root::at("/nowhere"), Cpus::default(), &[]);
    found(|doubts| of_threads(doubts, &[report], &watcher))
}

fn summary(name: &str, cpu: u32, totals: Totals) -> SeriesSummary {
    let head = SeriesHead { name: name.into(), cpu: Some(cpu), period_ns: Some(1_000_000) };
    summarize(&head, &hlog::empty(), &totals)
}

#[test]
fn a_thread_that_fared_well_gives_no_doubt() {
    let usage = Usage { voluntary_switches: 1_000, ..Usage::default() };
    assert_eq!(of_one_thread(Report { usage, ..report("cpu0") }).0, [""; 0]);
    assert_eq!(of_one_thread(Report { migrations: None, ..report("cpu0") }).0, [""; 0]);
}

#[test]
fn a_page_fault_between_the_first_turn_and_the_last_is_told() {
    let usage = Usage { minor_faults: 2, major_faults: 1, ..Usage::default() };
    let (codes, text) = of_one_thread(Report { usage, ..report("cpu0") });
    assert_eq!(codes, ["page_faults"]);
    assert!(text.contains("cpu0: 2 minor, 1 major"), "{text}");
}

#[test]
fn a_wait_that_fails_is_told_with_its_error() {
    let (codes, text) = of_one_thread(Report { ended: Ended::Failed(22), ..report("cpu0") });
    assert_eq!(codes, ["wait_failed"]);
    assert!(text.contains("cpu0: Invalid argument"), "{text}");
}

#[test]
fn a_thread_that_was_moved_and_put_back_is_told() {
    let (codes, text) = of_one_thread(Report { migrations: Some(2), ..report("cpu0") });
    assert_eq!(codes, ["thread_migrated"]);
    assert!(text.contains("cpu0: 2 times"), "{text}");
}

#[test]
fn a_thread_that_had_to_leave_its_cpu_is_told_unless_others_are_measured_there() {
    let usage = Usage { involuntary_switches: 3, ..Usage::default() };
    let reports = [Report { usage, ..report("cpu0") }];
    let of = |policy: Policy, names: &[&str]| {
        let series: Vec<_> = names.iter().map(|name| summary(name, 0, Totals::NONE)).collect();
        found(|doubts| of_preemption(doubts, policy, &series, &reports)).0
    };
    assert_eq!(of(Policy::Fifo, &["cpu0"]), ["thread_preempted"]);
    assert_eq!(of(Policy::Fifo, &["cpu0", "cpu0#1"]), [""; 0]);
    assert_eq!(of(Policy::Other, &["cpu0"]), [""; 0], "it takes turns");
}

#[test]
fn time_that_the_hypervisor_took_of_a_measured_cpu_is_told() {
    let measured: Cpus = "0".parse().unwrap();
    let of = |cpu: u32, steal: f64| {
        found(|doubts| of_steal(doubts, &measured, &[CpuUse { cpu, busy: 1.0, steal }]))
    };
    let (codes, text) = of(0, 0.071);
    assert_eq!(codes, ["steal_time"]);
    assert!(text.contains("7.1 % of CPU 0"), "{text}");
    assert_eq!((of(0, 0.05).0, of(1, 0.5).0), (Vec::new(), Vec::new()));
}

#[test]
fn interrupts_that_cannot_be_masked_are_told_where_they_hit_a_measured_cpu() {
    let measured: Cpus = "0".parse().unwrap();
    let of = |source: &str, cpu: u32| {
        let row = InterruptCount {
            kind: "irq".into(),
            source: source.into(),
            description: String::new(),
            cpu,
            before: 1,
            after: 4,
            difference: 3,
        };
        found(|doubts| of_interrupts(doubts, &measured, &[row])).0
    };
    assert_eq!(of("NMI", 0), ["nmi_seen"]);
    assert_eq!((of("NMI", 1), of("LOC", 0)), (Vec::new(), Vec::new()));
}

#[test]
fn a_firmware_that_took_the_machine_away_is_told() {
    assert_eq!(found(|doubts| of_smis(doubts, Some(2))).0, ["smi_seen"]);
    assert_eq!(found(|doubts| of_smis(doubts, Some(0))).0, [""; 0]);
    assert_eq!(found(|doubts| of_smis(doubts, None)).0, [""; 0]);
}

#[test]
fn a_recorder_that_was_late_or_lost_samples_is_told() {
    let of = |recording: Recording| found(|doubts| of_recording(doubts, &recording, None)).0;
    assert_eq!(of(Recording { lost: 7, ..Recording::default() }), ["samples_lost"]);
    assert_eq!(of(Recording { late_ns: LATE_NS + 1, ..Recording::default() }), ["drain_late"]);
    assert_eq!(of(Recording { late_ns: LATE_NS, ..Recording::default() }), [""; 0]);
    let full = "interrupts.csv: No space left on device".to_owned();
    let (codes, _) = found(|doubts| of_recording(doubts, &Recording::default(), Some(full)));
    assert_eq!(codes, ["record_incomplete"]);
}

#[test]
fn series_without_samples_with_early_ones_and_with_missed_periods_are_told() {
    let of = |totals: Totals| found(|doubts| of_series(doubts, &[summary("cpu0", 0, totals)])).0;
    let some = |missed: u64| Totals { count: 990, missed, ..Totals::NONE };
    assert_eq!(of(Totals::NONE), ["no_samples"]);
    assert_eq!(of(Totals { early: 1, ..some(0) }), ["early_wakeups"]);
    assert_eq!((of(some(10)), of(some(5))), (vec!["periods_missed".to_owned()], Vec::new()));
}

#[test]
fn a_virtual_machine_is_told() {
    let facts = |virtualisation| Facts { virtualisation, ..Facts::default() };
    let of = |facts: Facts| found(|doubts| of_facts(doubts, &facts));
    let (codes, text) = of(facts(Some("KVM".into())));
    assert_eq!((codes, text.contains("(KVM)")), (vec!["virtual_machine".to_owned()], true));
    assert_eq!(of(facts(None)).0, [""; 0]);
}

#[test]
fn a_load_of_which_a_part_did_nothing_is_told() {
    let spec = LoadSpec::parse("hackbench").unwrap();
    let end = |tasks_idle, fault| LoadEnd {
        proof: Some(LoadProof {
            unit: "messages".into(),
            operations: 1,
            operations_per_s: 1.0,
            context_switches_per_s: 1.0,
            cpu_share: 1.0,
            tasks: 160,
            tasks_idle,
        }),
        ended: "stopped".into(),
        fault,
    };
    let told = |end| found(|doubts| of_loads(doubts, std::slice::from_ref(&spec), &[end]));
    assert_eq!(told(end(0, None)).0, [""; 0]);
    assert_eq!(told(end(3, Some(LoadFault::DidNothing))).0, ["load_did_nothing"]);
    let (codes, text) = told(end(3, None));
    assert_eq!(codes, ["load_in_part"]);
    assert!(text.contains("3 of 160 tasks"), "{text}");
}

#[test]
fn what_tracing_could_not_tell_is_a_caveat_that_informs() {
    let document = |trace: TraceRecord| {
        let mut document = Document::from_json(serde_json::json!({
            "schema_version": 1, "id": "i", "name": "n", "argv": [], "status": "complete",
            "validity": "valid", "caveats": [], "probe": {"name": "timer", "parameters": {}},
            "loads": [], "setup": {"asked": {}, "found": {}},
            "trace": {"asked": "auto", "found": "peaks"}, "facts": Facts::default(),
            "started_at": "", "ended_at": null, "duration_ns": 1, "start_monotonic_ns": 0,
            "series": [],
        }))
        .unwrap();
        let totals = |count| Totals { count, ..Totals::NONE };
        // Stages do not count as wake-ups.
        document.series =
            vec![summary("cpu0", 0, totals(5_000)), summary("cpu0/irq", 0, totals(9_999))];
        document.trace = trace;
        document
    };
    let of = |trace: TraceRecord| found(|doubts| of_trace(doubts, &document(trace))).0;
    let none = || TraceRecord::off(TraceMode::Auto);
    assert_eq!(of(TraceRecord { unmatched: 5, ..none() }), [""; 0]);
    assert_eq!(of(TraceRecord { unmatched: 6, ..none() }), ["wakeups_unmatched"]);
    assert_eq!(of(TraceRecord { lost_events: 1, ..none() }), ["events_lost"]);
    let why_not = Some("the kernel refuses the program".to_owned());
    let found_stages = TraceRecord { found: TraceMode::Stages, why_not, ..none() };
    assert_eq!(of(found_stages), ["traced_in_part"]);
    let missing = vec![MissingTracepoint {
        tracepoint: "ipi_send_cpu".into(),
        switches_off: "who sent an interrupt".into(),
        why: "the kernel has no such tracepoint".into(),
    }];
    let (codes, text) =
        found(|doubts| of_trace(doubts, &document(TraceRecord { missing, ..none() })));
    assert_eq!(codes, ["traced_in_part"]);
    assert!(text.contains("ipi_send_cpu"), "{text}");
}
