//! Each caveat that comes of evidence is given the evidence that must bring it, and that next to it
//! which must not. Its values, its text and the verdict are checked.

use serde_json::{Value, json};
use tardy_hot::{tally::Totals, wakeup::Ended};

use super::{super::evidence::*, *};
use crate::{
    loads::{LoadEnd, LoadFault},
    probes::{ClockEvidence, FarLoss, MessageEvidence, OneThread, ReceiveEvidence, ThreadReport},
    run::{
        BootOption, Caveat, CpuCount, Deviation, EndCount, EndRecord, FarEndReason, FigureGap,
        FlowRecord, HelperTime, LoadProof, MessageRecord, MissingTracepoint, OsError, SendRefusal,
        SeriesHead, SeriesSummary, ThreadDeviation, ThreadTerms, TraceMode, TraceRecord, Validity,
        caveat::verdict,
        conditions::{CpuUse, ForeignRecord, ForeignUser},
        hlog,
        summary::summarize,
    },
    setup::{
        journal::{Recovered, Undone},
        shield::{ShieldGaps, ShieldLoss},
    },
    sys::faults::ThreadUsage,
};

/// A run on CPU 0 in which all was well.
fn fine() -> Evidence {
    let totals = Totals { count: 10_000, ..Totals::NONE };
    Evidence {
        threads: ThreadEvidence {
            is_real_time: true,
            reports: vec![report()],
            ..ThreadEvidence::default()
        },
        machine: MachineEvidence { measured: "0".parse().unwrap(), ..MachineEvidence::default() },
        series: vec![summary("cpu0", totals)],
        ..Evidence::default()
    }
}

fn report() -> ThreadReport {
    ThreadReport {
        series: "cpu0".into(),
        ended: Ended::Done,
        ended_ns: 0,
        usage: ThreadUsage { voluntary_switches: 1_000, ..ThreadUsage::default() },
        migrations: Some(0),
        turns: None,
        broken: None,
    }
}

fn summary(name: &str, totals: Totals) -> SeriesSummary {
    let head = SeriesHead { name: name.into(), cpu: Some(0), period_ns: Some(1_000_000) };
    summarize(&head, &hlog::empty(), &totals)
}

fn no_space() -> OsError {
    OsError::of(libc::ENOSPC)
}

/// What follows when `change` is made to a run in which all was well.
fn after(change: impl FnOnce(&mut Evidence)) -> Vec<Caveat> {
    let mut evidence = fine();
    change(&mut evidence);
    caveats(&evidence).into_iter().map(Caveat::from).collect()
}

/// The codes of what follows.
fn codes(change: impl FnOnce(&mut Evidence)) -> Vec<String> {
    after(change).into_iter().map(|caveat| caveat.code).collect()
}

/// That one caveat follows: its code, its values, and some words of its text.
fn assert_one(change: impl FnOnce(&mut Evidence), code: &str, values: &Value, words: &str) {
    let found = after(change);
    let [caveat] = found.as_slice() else { panic!("{code}: {found:?}") };
    assert_eq!(caveat.code, code);
    assert_eq!(&Value::Object(caveat.values.clone()), values, "{code}");
    assert!(caveat.text.contains(words), "{code}: {}", caveat.text);
    assert!(!caveat.remedy.is_empty() || code == "interrupted", "{code}");
}

fn of_report(change: impl FnOnce(&mut ThreadReport)) -> impl FnOnce(&mut Evidence) {
    |evidence| change(&mut evidence.threads.reports[0])
}

#[test]
fn a_run_in_which_all_was_well_has_no_caveat() {
    assert_eq!(after(|_| {}), []);
    assert_eq!(after(of_report(|report| report.migrations = None)), []);
}

#[test]
fn the_verdict_follows_from_the_evidence() {
    let of = |change: fn(&mut Evidence)| verdict(&after(change));
    assert_eq!(of(|_| {}), Validity::Valid);
    assert_eq!(of(|evidence| evidence.ended_by = Some("SIGTERM".into())), Validity::Valid);
    assert_eq!(of(|evidence| evidence.recording.lost = 1), Validity::Weakened);
    let moved = |evidence: &mut Evidence| evidence.threads.reports[0].migrations = Some(1);
    assert_eq!(of(moved), Validity::Invalid);
}

#[test]
fn what_could_not_be_arranged_is_reported_with_the_systems_error() {
    let refused = || OsError::of(libc::EPERM);
    let error = json!({"errno": libc::EPERM, "text": "Operation not permitted"});
    let values = json!({"policy": "fifo", "priority": 90, "error": error});
    assert_one(
        |evidence| evidence.setup.real_time_refused = Some(("fifo".into(), 90, refused())),
        "no_real_time",
        &values,
        "not fifo 90: Operation not permitted.",
    );
    let values = json!({"error": error});
    let words = ": Operation not permitted.";
    assert_one(
        |evidence| evidence.setup.memory_refused = Some(refused()),
        "memory_not_locked",
        &values,
        words,
    );
    assert_one(
        |evidence| evidence.setup.dma_latency_refused = Some(refused()),
        "dma_latency_not_held",
        &values,
        words,
    );
    assert_one(
        |evidence| evidence.recording.not_real_time = Some(refused()),
        "helpers_not_real_time",
        &values,
        "ordinary tasks: Operation not permitted.",
    );
}

#[test]
fn a_watchdog_that_ended_the_run_is_reported_instead_of_the_ordinary_tasks_it_made() {
    let broken = |evidence: &mut Evidence| {
        evidence.threads.reports[0].broken = Some(Deviation::Died);
    };
    assert_eq!(codes(broken), ["thread_not_as_asked"]);
    let ended = |evidence: &mut Evidence| {
        broken(evidence);
        let end = WatchdogEnd { silent_s: 3, made_ordinary: true };
        evidence.setup.watchdog = Some(end);
        assert!(evidence.is_interrupted());
    };
    let values = json!({"silent_s": 3, "made_ordinary": true});
    assert_one(ended, "watchdog_ended", &values, "for 3 s no other thread of tardy got to run");
}

#[test]
fn that_nothing_is_above_the_measured_threads_is_reported_with_what_stands_in() {
    let above = |unbounded: Option<OsError>| {
        |evidence: &mut Evidence| {
            evidence.setup.nothing_above = Some(NoHigherPriority { unbounded });
        }
    };
    assert_one(above(None), "nothing_above", &json!({}), "interrupts them once a second");
    let refused = OsError { errno: Some(1), text: "Operation not permitted".into() };
    let values = json!({"unbounded": refused});
    assert_one(above(Some(refused)), "nothing_above", &values, "nothing ends the run");
}

#[test]
fn what_a_killed_one_left_is_reported_where_it_stays_so() {
    let left = |failed: &[&str]| {
        let failed = failed.iter().map(ToString::to_string).collect();
        let undone = Undone { put_back: vec!["x: 1".into()], failed };
        |evidence: &mut Evidence| evidence.setup.left = Recovered::Undone(undone)
    };
    assert_eq!(codes(left(&[])), [""; 0]);
    let failed = "/proc/irq/7: no such file";
    assert_one(left(&[failed]), "left_changed", &json!({"failed": [failed]}), failed);
}

#[test]
fn what_could_not_be_looked_at_is_reported() {
    let why = "/run/tardy/journal: Permission denied";
    assert_one(
        |evidence| evidence.setup.left = Recovered::Unknown(why.into()),
        "journal_unread",
        &json!({"why": why}),
        "is not known: /run/tardy/journal: Permission denied.",
    );
}

#[test]
fn what_cannot_be_put_back_at_the_end_is_reported() {
    let failed = "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor: Invalid argument";
    assert_one(
        |evidence| evidence.setup.not_put_back = vec![failed.into()],
        "not_put_back",
        &json!({"failed": [failed]}),
        "scaling_governor",
    );
}

#[test]
fn what_a_shield_cannot_keep_off_is_reported() {
    let gaps = |gaps: ShieldGaps| {
        move |evidence: &mut Evidence| {
            evidence.setup.shield = Some(ShieldGaps { cpus: "2-3".into(), ..gaps });
        }
    };
    assert_eq!(codes(gaps(ShieldGaps::default())), [""; 0]);
    let interrupts = vec!["36 (virtio1-req.0)".to_owned()];
    assert_one(
        gaps(ShieldGaps { interrupts: interrupts.clone(), ..ShieldGaps::default() }),
        "interrupts_stay",
        &json!({"interrupts": interrupts, "cpus": "2-3"}),
        "shielded CPUs 2-3: 36 (virtio1-req.0).",
    );
    let options = vec![BootOption::NohzFull, BootOption::Isolcpus];
    let values = json!({
        "cpus": "2-3", "options": ["nohz_full", "isolcpus"], "helpers_inside": true
    });
    assert_one(
        gaps(ShieldGaps { options, helpers_inside: true, ..ShieldGaps::default() }),
        "shield_limits",
        &values,
        "nohz_full=2-3 (no tick while one task runs), isolcpus=managed_irq,domain,2-3 (",
    );
    assert_one(
        gaps(ShieldGaps { irqbalance: true, ..ShieldGaps::default() }),
        "irqbalance_runs",
        &json!({}),
        "irqbalance runs",
    );
}

#[test]
fn a_thread_that_runs_on_other_terms_is_reported_once_with_both() {
    let terms = |policy: &str, priority, cpus: &str| ThreadTerms {
        policy: policy.into(),
        priority,
        nice: None,
        cpus: cpus.into(),
        timer_slack_ns: None,
    };
    let (found, asked) = (terms("other", 0, "0-1"), terms("fifo", 90, "0"));
    assert_eq!(Deviation::between(asked.clone(), asked.clone(), None), None);
    let deviation = Deviation::between(found.clone(), asked.clone(), Some(1_250_000_000)).unwrap();
    let values = json!({"threads": [{
        "series": "cpu0", "reason": "differs", "found": found, "asked": asked,
        "at_ns": 1_250_000_000
    }]});
    let seen = ThreadDeviation { series: "cpu0".into(), deviation };
    let words = "cpu0: other instead of fifo 90, CPUs 0-1 instead of 0 at 1.2 s.";
    assert_one(
        |evidence| evidence.threads.deviations = vec![seen],
        "thread_not_as_asked",
        &values,
        words,
    );
}

#[test]
fn a_page_fault_between_the_first_turn_and_the_last_is_reported() {
    let usage = ThreadUsage { minor_faults: 2, major_faults: 1, ..ThreadUsage::default() };
    assert_one(
        of_report(|report| report.usage = usage),
        "page_faults",
        &json!({"threads": [{"series": "cpu0", "minor": 2, "major": 1}]}),
        "cpu0: 2 minor, 1 major",
    );
}

#[test]
fn a_wait_that_fails_is_reported_with_its_error() {
    let error = json!({"errno": 22, "text": "Invalid argument"});
    assert_one(
        of_report(|report| report.ended = Ended::Failed(22)),
        "wait_failed",
        &json!({"threads": [{"series": "cpu0", "error": error}]}),
        "cpu0: Invalid argument",
    );
}

#[test]
fn a_thread_that_was_moved_and_put_back_is_reported() {
    assert_one(
        of_report(|report| report.migrations = Some(2)),
        "thread_migrated",
        &json!({"threads": [{"series": "cpu0", "count": 2}]}),
        "cpu0: 2 times",
    );
}

#[test]
fn a_thread_that_had_to_leave_its_cpu_is_reported_unless_others_are_measured_there() {
    let preempted = |evidence: &mut Evidence| {
        evidence.threads.reports[0].usage.involuntary_switches = 3;
    };
    let values = json!({"threads": [{"series": "cpu0", "count": 3}]});
    assert_one(preempted, "thread_preempted", &values, "cpu0: 3 times");
    let beside_another = |evidence: &mut Evidence| {
        preempted(evidence);
        evidence.series.push(summary("cpu0#1", Totals { count: 1, ..Totals::NONE }));
    };
    assert_eq!(codes(beside_another), [""; 0]);
    let ordinary = |evidence: &mut Evidence| {
        preempted(evidence);
        evidence.threads.is_real_time = false;
    };
    assert_eq!(codes(ordinary), [""; 0], "it takes turns");
}

#[test]
fn time_that_the_hypervisor_took_of_a_measured_cpu_is_reported() {
    let of = |cpu: u32, steal: f64| {
        move |evidence: &mut Evidence| {
            evidence.machine.cpu_use = vec![CpuUse { cpu, busy: 1.0, steal }];
        }
    };
    let values = json!({"cpus": [{"cpu": 0, "share": 0.071}]});
    assert_one(of(0, 0.071), "steal_time", &values, "7.1% of CPU 0");
    assert_eq!((codes(of(0, 0.05)), codes(of(1, 0.5))), (Vec::new(), Vec::new()));
}

#[test]
fn work_that_takes_another_time_at_the_end_is_reported() {
    let of = |after_per_ms: f64| {
        move |evidence: &mut Evidence| evidence.work = Some((1_000.0, after_per_ms))
    };
    let values = json!({"before_per_ms": 1_000.0, "after_per_ms": 900.0});
    assert_one(of(900.0), "work_changed", &values, "did -10% work in a millisecond");
    assert_eq!((codes(of(1_049.0)), codes(of(951.0))), (Vec::new(), Vec::new()));
    assert_eq!(codes(of(1_051.0)), ["work_changed"]);
}

#[test]
fn interrupts_that_cannot_be_masked_are_reported_where_they_hit_a_measured_cpu() {
    let of = |cpu: u32, count: u64| {
        move |evidence: &mut Evidence| evidence.machine.nmis = vec![CpuCount { cpu, count }]
    };
    let values = json!({"cpus": [{"cpu": 0, "count": 3}]});
    assert_one(of(0, 3), "nmi_seen", &values, "3 on CPU 0");
    assert_eq!((codes(of(1, 3)), codes(of(0, 0))), (Vec::new(), Vec::new()));
}

#[test]
fn a_firmware_that_took_the_machine_away_is_reported() {
    let of = |smis| move |evidence: &mut Evidence| evidence.machine.smis = smis;
    assert_one(of(Some(2)), "smi_seen", &json!({"count": 2}), "2 times (SMI)");
    assert_eq!((codes(of(Some(0))), codes(of(None))), (Vec::new(), Vec::new()));
}

#[test]
fn a_virtual_machine_is_reported() {
    assert_one(
        |evidence| evidence.machine.virtualisation = Some("KVM".into()),
        "virtual_machine",
        &json!({"kind": "KVM"}),
        "(KVM)",
    );
}

#[test]
fn what_ended_the_run_from_outside_is_reported() {
    let by = json!({"by": "SIGTERM"});
    let ended = |evidence: &mut Evidence| {
        evidence.ended_by = Some("SIGTERM".into());
        assert!(evidence.is_interrupted());
    };
    assert_one(ended, "interrupted", &by, "early by SIGTERM;");
    assert!(!fine().is_interrupted());
}

mod messages;
mod recording;
mod setup;

#[test]
fn other_programs_weaken_a_run_of_ordinary_threads_and_one_that_was_to_be_idle() {
    let user = |processes, cpus| ForeignUser { name: "spin".into(), processes, cpus };
    let foreign = |share| ForeignRecord { share, users: vec![user(6, 1.94)] };
    let of = |share: f64, is_real_time: bool, load: &'static str| {
        move |evidence: &mut Evidence| {
            evidence.machine.foreign = Some(foreign(share));
            evidence.threads.is_real_time = is_real_time;
            let end = LoadEnd { proof: None, ended: "stopped".into(), fault: None };
            evidence.loads.push((load.into(), end));
        }
    };
    let text = "other programs used 97% of the measured CPUs (6 spin 1.94 CPUs)";
    for (is_real_time, load, words) in
        [(true, "idle", "`--load idle` was asked for"), (false, "burn", "are ordinary tasks")]
    {
        let values = json!({"text": text, "is_idle_asked": load == "idle"});
        assert_one(of(0.97, is_real_time, load), "foreign_use", &values, words);
    }
    assert_eq!(codes(of(0.97, true, "burn")), [""; 0], "the line of conditions says it");
    assert_eq!(codes(of(0.04, false, "idle")), [""; 0], "a machine does something at all times");
}
