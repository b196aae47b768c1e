//! What a run says of threads whose every step is known.

use std::{fmt::Write as _, path::Path};

use super::*;
use crate::{
    kernel::replay::{
        FIRST_TID,
        machine::{
            CALL_NS, LATE_NS, Machine, REMOTE_NS, RETURN_NS, SHORT_CALL_NS, SLACK_NS, Step,
            Step::*, TaskPlan, WAKING_NS,
        },
    },
    run::{AttachedFaults, AttachedLatency, CycleBegin},
};

pub(super) const MS: u64 = 1_000_000;

pub(super) fn ns(ns: u64) -> Option<i64> {
    i64::try_from(ns).ok()
}

/// A run over these tasks, of the threads of that name.
pub(super) fn of(
    plans: Vec<TaskPlan>,
    name: &str,
    deadline_ns: Option<u64>,
    measured: [u64; 2],
) -> ReplayedEnd {
    run(&ReplayRequest::name(name, deadline_ns, measured), &Machine::run(plans, measured[1]))
}

#[test]
fn a_thread_of_a_timer_has_the_lateness_of_its_switches_and_its_period() {
    let steps = [UntilNext(2 * MS, 0), Work(50_000)];
    let end = of(vec![TaskPlan::fifo("timer", &steps)], "timer", None, [100 * MS, 2_100 * MS]);
    for name in ["timer", "timer/5000001"] {
        let row = end.row(name);
        assert_eq!(row.latency, Some(AttachedLatency::Lateness));
        assert_eq!((row.period_ns, row.slack_ns, row.missed), (ns(2 * MS), Some(0), Some(0)));
        assert_eq!((row.wakeups, row.by_own_timer, row.unmatched), (1_000, 1_000, 0));
        let own = end.series(name);
        assert_eq!((own.count, own.period_ns, own.missed), (1_000, ns(2 * MS), Some(0)));
        assert_eq!((own.min, own.mean, own.max), (ns(LATE_NS), ns(LATE_NS), ns(LATE_NS)));
    }
    assert_eq!(end.series("timer/5000001").thread_of.as_deref(), Some("timer"));
    // A task that runs before it for 100 us makes every tenth wake-up late.
    let hog =
        TaskPlan { prio: 9, ..TaskPlan::fifo("hog", &[UntilNext(20 * MS, 0), Work(100_000)]) };
    let plans = vec![hog, TaskPlan::fifo("timer", &steps)];
    let own = of(plans, "timer", None, [100 * MS, 2_100 * MS]);
    let own = own.series("timer");
    assert_eq!((own.count, own.min), (1_000, ns(LATE_NS)));
    // The timer's interrupt comes first, and takes 2.5 us of the hog's time.
    let hog_ns = 2_500 + 100_000 + CALL_NS;
    assert_eq!((own.max, own.mean), (ns(LATE_NS + hog_ns), ns(LATE_NS + hog_ns / 10)));
}

#[test]
fn work_of_known_length_is_the_run_time_of_each_wake_up() {
    let steps = [Work(3 * MS), For(5 * MS)];
    let end = of(vec![TaskPlan::fair("known", &steps)], "known", None, [100 * MS, 1_100 * MS]);
    let row = end.row("known");
    let run_ns = RETURN_NS + 3 * MS + CALL_NS;
    assert_eq!((row.run.mean, row.run.max), (ns(run_ns), ns(run_ns)));
    let asleep_ns = 5 * MS + SLACK_NS + LATE_NS - WAKING_NS - CALL_NS;
    assert_eq!((row.blocked.mean, row.blocked.max), (ns(asleep_ns), ns(asleep_ns)));
    assert_eq!((row.period_ns, row.slack_ns), (None, ns(SLACK_NS)));
    assert!(end.figures.iter().any(|figure| figure.head().name == "known/run"), "{end:?}");
}

/// A file below `/proc` of a machine.
fn write(machine: &Path, path: &str, text: &str) {
    let path = machine.join("proc").join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A thread of a process that went to sleep so often.
fn add_thread(machine: &Path, (pid, tid): (u32, u32), name: &str, sleeps: u64) {
    let stat = format!("{tid} ({name}) S{}", " 1".repeat(40));
    let status = format!("Tgid:\t{pid}\nvoluntary_ctxt_switches:\t{sleeps}\n");
    write(machine, &format!("{tid}/stat"), &stat);
    write(machine, &format!("{tid}/status"), &status);
    write(machine, &format!("{pid}/task/{tid}/comm"), &format!("{name}\n"));
    write(machine, &format!("{pid}/task/{tid}/status"), &status);
}

/// A shell that starts a `sleep` every 20 ms, which sleeps for 5 ms.
fn shell(children: u32) -> String {
    let mut text = String::from("1000 0 switch R 5000001\n");
    for child in 1..=children {
        let (tid, at) = (FIRST_TID + child, u64::from(child + 5) * 20 * MS);
        let (soft, irq) = (at + 5 * MS, at + 5 * MS + SLACK_NS + 1_000);
        let _ = writeln!(
            text,
            "{at} 0 fork {tid}\n{} 0 switch S {tid}\n{} 0 rename {tid} sleep\n\
             {} 0 start {} {soft} rel\n{} 0 switch S 0\n\
             {irq} 0 timer_irq\n{irq} 0 expire {tid}\n{} 0 waking {tid}\n{} 0 expired\n\
             {} 0 timer_irq_end\n{} 0 switch R {tid}\n\
             {} 0 exit\n{} 0 waking 5000001\n{} 0 switch X 5000001",
            at + 2_000,
            at + 3_000,
            at + 10_000,
            soft + SLACK_NS,
            at + 11_000,
            irq + 1_000,
            irq + 1_000,
            irq + 1_500,
            irq + 2_000,
            irq + 10_000,
            irq + 11_000,
            irq + 12_000,
        );
    }
    // It waits for the last one.
    let end = u64::from(children + 6) * 20 * MS;
    let _ = writeln!(text, "{end} 0 switch S 0");
    text
}

#[test]
fn what_an_attached_shell_starts_is_attached_and_has_the_name_of_its_program() {
    let machine = tempfile::tempdir().unwrap();
    add_thread(machine.path(), (FIRST_TID, FIRST_TID), "sh", 0);
    let group = machine.path().join("group");
    std::fs::create_dir(&group).unwrap();
    std::fs::write(group.join("cgroup.procs"), format!("{FIRST_TID}\n")).unwrap();
    std::fs::write(group.join("cgroup.threads"), format!("{FIRST_TID}\n")).unwrap();
    let target = AttachTarget::Group(group);
    let asked = ReplayRequest {
        target,
        only: None,
        stop_over_ns: None,
        deadline_ns: None,
        of_threads: Vec::new(),
        start_ns: 0,
        end_ns: 1_000 * MS,
    };
    let tasks = (0..=40).fold(String::new(), |text, child| {
        text + &format!("task {} 120 sh {0}\n", FIRST_TID + child)
    });
    let mut run = ReplayedRun::start(&asked, &tasks, machine);
    let text = shell(40);
    let at = |line: &&str| line.split(' ').next().and_then(|at| at.parse().ok()).unwrap_or(0_u64);
    for until_ns in (1..=20).map(|poll| poll * POLL_NS) {
        let now = until_ns - POLL_NS..until_ns;
        let lines: Vec<&str> = text.lines().filter(|line| now.contains(&at(line))).collect();
        run.step(&lines.join("\n"), until_ns);
    }
    let end = run.finish();
    let sleeps = end.row("sleep");
    assert_eq!((sleeps.threads, sleeps.wakeups, sleeps.by_own_timer), (Some(40), 40, 40));
    let shell = end.row("sh");
    assert_eq!((shell.threads, shell.wakeups, shell.by_task), (Some(1), 40, 40));
    assert_eq!((end.record.threads, end.record.no_room), (41, 0));
    assert_eq!(end.series("sleep").count, 40);
}

/// The threads of all names of the process, with this deadline.
fn of_process(plans: Vec<TaskPlan>, deadline_ns: u64, measured: [u64; 2]) -> ReplayedEnd {
    let target = AttachTarget::Process(FIRST_TID);
    let asked = ReplayRequest { target, ..ReplayRequest::name("", Some(deadline_ns), measured) };
    run(&asked, &Machine::run(plans, measured[1]))
}

#[test]
fn a_stage_is_judged_from_its_wake_up_to_its_next_wait() {
    let sensor = TaskPlan::fair("sensor", &[UntilNext(20 * MS, 0), Work(MS), Send(1)]);
    let item = |work_ns| [Receive(1), Fault(3), Work(work_ns), Send(2)];
    let steps: Vec<Step> = [6, 1, 1, 1, 1].iter().flat_map(|ms| item(ms * MS)).collect();
    let plan = TaskPlan::fair("plan", &steps).on(1);
    let act = TaskPlan::fair("act", &[Receive(2), Work(2 * MS)]).on(2);
    let end = of_process(vec![sensor, plan, act], 5 * MS, [100 * MS, 2_100 * MS]);
    let stage = |name: &str, most_ns: u64, over: u64| {
        let row = end.row(name);
        assert_eq!(
            (row.latency, row.cycle_begin),
            (Some(AttachedLatency::Dispatch), CycleBegin::WakeUp)
        );
        let all = end.series(&format!("{name}/response"));
        assert_eq!((all.count, all.max), (100, ns(most_ns)));
        let over_it = row.over.unwrap();
        assert_eq!(over_it.cycles, over);
        over_it
    };
    let took_ns = |work_ns| REMOTE_NS + RETURN_NS + work_ns + CALL_NS;
    let plan = stage("plan", took_ns(6 * MS) + SHORT_CALL_NS, 20);
    let run_ns = RETURN_NS + 6 * MS + SHORT_CALL_NS + CALL_NS;
    assert_eq!((plan.late_ns, plan.run_ns, plan.wait_ns), (20 * REMOTE_NS, 20 * run_ns, 0));
    assert_eq!(plan.faults, Some(AttachedFaults { cycles: 20, minor: 60, major: 0 }));
    // What came before is not in it.
    stage("act", took_ns(2 * MS), 0);
    let sensor = end.row("sensor");
    assert_eq!((sensor.cycle_begin, sensor.response.unwrap().count), (CycleBegin::Timer, 100));
}

#[test]
fn what_a_stage_waits_for_in_the_midst_of_its_work_is_in_its_cycle() {
    let sensor = TaskPlan::fair("sensor", &[UntilNext(20 * MS, MS), Send(1)]);
    // It has the lock for 6 ms at each fifth item.
    let owner = [UntilNext(100 * MS, 0), Lock(1), Work(6 * MS), Unlock(1)];
    let owner = TaskPlan::fair("owner", &owner).on(2);
    let steps = [Receive(1), Work(MS), Lock(1), Work(MS), Unlock(1), For(MS), Read(MS)];
    let plan = TaskPlan::fifo("plan", &steps).on(1);
    let end = of_process(vec![sensor, owner, plan], 5 * MS, [100 * MS, 2_100 * MS]);
    let row = end.row("plan");
    assert_eq!((row.cycle_begin, row.response.unwrap().count), (CycleBegin::WakeUp, 100));
    let over = row.over.unwrap();
    let waits = over.waits.unwrap();
    assert_eq!((over.cycles, over.unseen_ns), (20, 0));
    assert!(waits.futex_ns.unwrap() >= 20 * 3 * MS, "{over:?}");
    assert!(waits.io_ns >= 20 * MS && waits.other_ns >= 20 * MS, "{over:?}");
}

#[test]
fn a_preemption_is_in_the_response_and_work_is_all_there_is_without() {
    let victim = TaskPlan::fair("victim", &[UntilNext(20 * MS, 0), Work(2 * MS)]);
    // It comes in the middle of every fifth cycle.
    let hog = TaskPlan::fifo("hog", &[UntilNext(100 * MS, MS), Work(5 * MS)]);
    let end = of(vec![victim, hog], "victim", Some(6 * MS), [100 * MS, 2_000 * MS]);
    let row = end.row("victim");
    assert_eq!((row.period_ns, row.missed), (ns(20 * MS), Some(0)));
    let (run_ns, ready_ns) = (RETURN_NS + 2 * MS + CALL_NS, RETURN_NS + 5 * MS + CALL_NS);
    let all = end.series("victim/response");
    assert_eq!((all.count, all.min), (95, ns(LATE_NS + run_ns)));
    assert_eq!(all.max, ns(LATE_NS + run_ns + ready_ns));
    let over = row.over.unwrap();
    assert_eq!((over.cycles, over.deadline_ns), (19, 6 * MS));
    let parts = [over.late_ns, over.run_ns, over.ready_ns, over.wait_ns, over.unseen_ns];
    assert_eq!(parts, [19 * LATE_NS, 19 * run_ns, 19 * ready_ns, 0, 0]);
    assert_eq!(row.preempted, 19);
}

#[test]
fn a_stall_in_the_first_cycle_is_seen_whatever_came_before_it() {
    // Before its first cycle it waits for a lock and a device. That cycle takes 7 ms of 5.
    let steps = [Lock(1), Work(MS), Unlock(1), UntilNext(1_000 * MS, 0)];
    let owner = TaskPlan { at_ns: 61 * MS, ..TaskPlan::fair("owner", &steps) };
    let start = [Work(100_000), Lock(1), Unlock(1), Read(100_000), Read(100_000), Read(100_000)];
    let first = [UntilNext(5 * MS, 0), Work(7 * MS)];
    let others = [UntilNext(5 * MS, 0), Work(100_000)].repeat(30);
    let steps = [&start[..], &first, &others].concat();
    // It starts when the measured time has begun.
    let robot = TaskPlan { at_ns: 61 * MS, ..TaskPlan::fifo("robot", &steps).on(1) };
    let end = of(vec![owner, robot], "robot", Some(2 * MS), [0, 200 * MS]);
    let row = end.row("robot");
    let (response, over) = (row.response.unwrap(), row.over.unwrap());
    assert_eq!((row.cycle_begin, over.cycles), (CycleBegin::Timer, 1), "{row:?}");
    assert_eq!(response.max, ns(LATE_NS + RETURN_NS + 7 * MS + CALL_NS));
}

#[test]
fn a_thread_of_a_grid_has_a_period_and_one_that_sleeps_for_a_time_has_none() {
    let grid = TaskPlan::fair("grid", &[UntilNext(15 * MS, 0), UntilNext(15 * MS, 5 * MS)]);
    let end = of(vec![grid], "grid", None, [50 * MS, 850 * MS]);
    assert_eq!(end.row("grid").period_ns, ns(5 * MS));
    let end =
        of(vec![TaskPlan::fair("relative", &[For(20 * MS)])], "relative", None, [0, 700 * MS]);
    let own = end.row("relative");
    assert!(own.period_ns.is_none() && own.by_own_timer > 30, "{own:?}");
}

#[test]
fn a_sleep_for_a_time_is_part_of_its_cycle_and_begins_none() {
    let steps = [UntilNext(20 * MS, 0), Work(MS), For(3 * MS), Work(MS)];
    let end =
        of(vec![TaskPlan::fair("within", &steps)], "within", Some(4 * MS), [200 * MS, 2_200 * MS]);
    let row = end.row("within");
    assert_eq!((row.period_ns, row.missed), (ns(20 * MS), Some(0)));
    assert_eq!((row.lateness.unwrap().count, row.asides, row.by_own_timer), (100, 100, 200));
    let all = end.series("within");
    assert_eq!((all.count, all.missed, all.max), (100, Some(0), ns(LATE_NS)));
    // The two parts of the work and the sleep between them are one cycle.
    let asleep_ns = 3 * MS + SLACK_NS + LATE_NS;
    let took_ns = LATE_NS + RETURN_NS + MS + asleep_ns + RETURN_NS + MS + CALL_NS;
    let response = row.response.unwrap();
    assert_eq!((response.count, response.mean, response.max), (100, ns(took_ns), ns(took_ns)));
    let over = row.over.unwrap();
    let waits_ns = 100 * (asleep_ns - CALL_NS - 1_000);
    assert_eq!((over.cycles, over.wait_ns), (100, waits_ns));
    assert_eq!(over.waits.unwrap().other_ns, waits_ns);
}

#[test]
fn a_thread_that_never_sleeps_is_named_and_a_slow_one_is_judged_by_its_timer() {
    let slow = TaskPlan::fair("slow", &[UntilNext(800 * MS, 0)]).on(1);
    let happened = Machine::run(vec![TaskPlan::fair("never", &[Work(MS)]), slow], 3_000 * MS);
    let target = AttachTarget::Process(FIRST_TID);
    let asked = ReplayRequest {
        target,
        only: None,
        stop_over_ns: None,
        deadline_ns: None,
        of_threads: Vec::new(),
        start_ns: 0,
        end_ns: 3_000 * MS,
    };
    let end = run(&asked, &happened);
    assert_eq!(end.record.never_slept, ["never/5000001"]);
    let slow = end.row("slow");
    assert_eq!((slow.latency, slow.wakeups), (Some(AttachedLatency::Lateness), 3));
    // Of one name the others have no row and no series, and nobody names them.
    let end = run(&ReplayRequest { only: Some("slow".into()), ..asked }, &happened);
    let names: Vec<&str> = end.record.rows.iter().map(|row| row.series.as_str()).collect();
    assert_eq!(names, ["slow", "slow/5000002"]);
    assert_eq!((end.row("slow").wakeups, end.record.threads), (3, 1));
    assert!(end.record.never_slept.is_empty(), "{:?}", end.record);
    assert!(end.series.iter().all(|series| series.name.starts_with("slow")));
}

#[test]
fn a_response_over_the_limit_ends_the_run_though_each_wake_up_is_in_time() {
    let worker = TaskPlan::fair("worker", &[UntilNext(20 * MS, 0), Work(9 * MS)]);
    let happened = Machine::run(vec![worker], 2_000 * MS);
    let of = |deadline_ns, stop_over_ns| {
        let asked = ReplayRequest {
            stop_over_ns: Some(stop_over_ns),
            ..ReplayRequest::name("worker", deadline_ns, [0, 2_000 * MS])
        };
        let mut run = ReplayedRun::start(&asked, &happened.tasks, tempfile::tempdir().unwrap());
        for until_ns in (1..=40).map(|poll| poll * POLL_NS) {
            run.step(&happened.between(until_ns - POLL_NS, until_ns), until_ns);
        }
        run.stopped.is_set()
    };
    assert!(of(Some(10 * MS), 8_000_000));
    assert!(!of(Some(10 * MS), 10_000_000));
    assert!(!of(None, 8_000_000), "without a deadline no work is measured");
}

#[test]
fn a_thread_that_never_slept_and_has_ended_is_named() {
    let steps = [Work(2_000 * MS), Exit];
    let other = TaskPlan::fair("other", &[UntilNext(100 * MS, 0)]).on(1);
    let happened = Machine::run(vec![TaskPlan::fair("spins", &steps), other], 4_000 * MS);
    let target = AttachTarget::Process(FIRST_TID);
    let end = run(
        &ReplayRequest {
            target,
            only: None,
            stop_over_ns: None,
            deadline_ns: None,
            of_threads: Vec::new(),
            start_ns: 0,
            end_ns: 4_000 * MS,
        },
        &happened,
    );
    assert_eq!(end.record.never_slept, ["spins/5000001"]);
}

#[test]
fn active_threads_take_the_places_of_idle_ones() {
    let plan = |at_ns| TaskPlan { at_ns, ..TaskPlan::fair("crowd", &[For(5 * MS)]) };
    let plans: Vec<TaskPlan> = [1_000].into_iter().chain([1_000 * MS; 8]).map(plan).collect();
    let happened = Machine::run(plans, 6_000 * MS);
    let machine = tempfile::tempdir().unwrap();
    let of_process = |number| (FIRST_TID, FIRST_TID + number);
    let path = machine.path().to_owned();
    (100..614).for_each(|number| add_thread(&path, of_process(number), "crowd", 0));
    add_thread(&path, of_process(0), "crowd", 1);
    let asked = ReplayRequest::name("crowd", None, [50 * MS, 6_000 * MS]);
    let mut run = ReplayedRun::start(&asked, &happened.tasks, machine);
    for until_ns in (1..=120).map(|poll| poll * POLL_NS) {
        if until_ns >= 1_000 * MS {
            let sleeps = (until_ns - 1_000 * MS) / (5 * MS);
            (1..=8).for_each(|number| add_thread(&path, of_process(number), "crowd", sleeps));
        }
        run.step(&happened.between(until_ns - POLL_NS, until_ns), until_ns);
    }
    let end = run.finish();
    let rows = end.record.rows.iter().filter(|row| row.tid.is_some() && row.by_own_timer > 0);
    assert_eq!(rows.count(), 9);
    // Of the idle ones as many gave way; the few that had no room at first never had any.
    assert_eq!((end.record.gave_way, end.record.no_room), (8, 4));
}
