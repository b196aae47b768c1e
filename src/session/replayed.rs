//! Late wake-ups and cycles of attached threads, explained as in a run, over a kernel of text.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::atomic::Ordering::Relaxed,
};

use super::late_samples::{collect, follow, least, measured};
use crate::{
    kernel::{
        Event, EventReader, SetFrequency,
        replay::{
            FIRST_TID,
            machine::{
                CALL_NS, Happened, LATE_NS, Machine, RETURN_NS, Step::*, TaskPlan, lock_address,
            },
            record,
        },
    },
    peaks::{BlameOptions, BlameScope, Blamer, EventSource},
    probes::{
        TracedThread,
        attach::replayed::{POLL_NS, ReplayRequest, ReplayedEnd, ReplayedRun},
    },
    run::peaks::{Basis, Blame, Cause, Peak},
};

const MS: u64 = 1_000_000;

/// What is late until something is known, ns; as in a run.
const LATE_AT_FIRST_NS: i64 = 50_000;

/// What the programs of the recorder wrote, all of it.
struct Recorded(EventReader);

impl EventSource for Recorded {
    fn events(&self, cpu: u32, from_ns: u64, to_ns: u64, into: &mut Vec<Event>) -> bool {
        self.0.events(cpu, from_ns, to_ns, into)
    }

    fn frequencies(&self, _: u32, _: u64, _: u64) -> Vec<SetFrequency> {
        Vec::new()
    }

    fn cpus(&self) -> u32 {
        self.0.cpus()
    }

    fn recorded(&self, cpu: u32) -> Range<u64> {
        self.0.recorded(cpu)
    }

    fn stack(&self, number: u64) -> Option<Vec<u64>> {
        self.0.stack(number)
    }

    fn symbol(&self, _: u64) -> Option<(Cow<'_, str>, u64)> {
        None
    }

    fn lost(&self) -> u64 {
        self.0.lost()
    }

    fn smis(&mut self, _: u32) -> Option<u64> {
        None
    }
}

/// What a run leaves.
struct Explained {
    end: ReplayedEnd,
    peaks: Vec<Peak>,
    blame: Blame,
    /// Late ones that were handed over to be explained.
    late: u64,
}

/// A run over these tasks. Samples over `peak_over_ns` are kept whole, and at most `most` late ones
/// are explained in each 50 ms.
fn explain(
    plans: Vec<TaskPlan>,
    asked: &ReplayRequest,
    peak_over_ns: Option<i64>,
    most: usize,
) -> Explained {
    let happened = Machine::run(plans, asked.end_ns);
    let first = i32::try_from(FIRST_TID).unwrap();
    let source = Recorded(record(&happened.text(), &[(first, 139)]));
    let wishes = BlameOptions { keep: 20, peak_over_ns, roams: true, ..BlameOptions::default() };
    let mut blamer = Blamer::new(Vec::new(), wishes, Box::new(source));
    let mut run = ReplayedRun::start(asked, &happened.tasks, tempfile::tempdir().unwrap());
    let (mut threads, mut peaks, mut late) = (Vec::<TracedThread>::new(), Vec::new(), 0);
    let mut from_ns = 0;
    while from_ns < asked.end_ns {
        let to_ns = (from_ns + POLL_NS).min(asked.end_ns);
        run.step(&happened.between(from_ns, to_ns), to_ns);
        for thread in run.traced.try_iter() {
            blamer.follow_more(measured(&thread));
            let late_ns = least(&thread.samples).unwrap_or(LATE_AT_FIRST_NS);
            blamer.begin(threads.len(), late_ns, LATE_AT_FIRST_NS);
            threads.push(thread);
        }
        for (number, thread) in threads.iter_mut().enumerate() {
            if to_ns.is_multiple_of(1_000 * MS) {
                follow(&mut blamer, number, &thread.samples);
                let p99_ns = least(&thread.samples).unwrap_or(LATE_AT_FIRST_NS);
                blamer.follow_p99(number, p99_ns);
            }
            let late_ns = blamer.threshold_ns(number);
            thread.control.late_over_ns.store(late_ns, Relaxed);
            let before = blamer.waiting();
            collect(&mut blamer, number, &mut thread.samples);
            late += (blamer.waiting() - before) as u64;
        }
        let mut left = most;
        peaks.extend(blamer.work(|| {
            left = left.saturating_sub(1);
            if left > 0 { BlameScope::All } else { BlameScope::Nothing }
        }));
        from_ns = to_ns;
    }
    peaks.extend(blamer.give_up());
    Explained { end: run.finish(), peaks, blame: blamer.record(), late }
}

/// How much of a peak was that, ns.
fn part(peak: &Peak, cause: Cause, name: &str) -> u64 {
    let parts = peak.blame.iter().filter(|part| part.cause == cause && part.name == name);
    parts.map(|part| part.ns).sum()
}

/// The cycles among them; the parts of each sum to it.
fn cycles(explained: &Explained) -> Vec<&Peak> {
    let cycles: Vec<&Peak> = explained.peaks.iter().filter(|peak| peak.is_cycle()).collect();
    assert!(!cycles.is_empty(), "{:?}", explained.peaks);
    for peak in &cycles {
        let sum: u64 = peak.blame.iter().map(|part| part.ns).sum();
        assert_eq!(i64::try_from(sum), Ok(peak.latency_ns), "{peak:?}");
        assert!(peak.stages.is_none(), "{peak:?}");
    }
    cycles
}

const ALL: usize = usize::MAX;

#[test]
fn a_preemption_in_the_midst_of_a_cycle_is_named_with_all_of_its_time() {
    let victim = TaskPlan::fair("victim", &[UntilNext(20 * MS, 0), Work(2 * MS)]);
    let hog = TaskPlan::fifo("hog", &[UntilNext(100 * MS, MS), Work(5 * MS)]);
    let asked = ReplayRequest::name("victim", Some(6 * MS), [100 * MS, 2_000 * MS]);
    let explained = explain(vec![victim, hog], &asked, None, ALL);
    for peak in cycles(&explained) {
        assert_eq!(peak.series, "victim/response");
        let took_ns = LATE_NS + RETURN_NS + 2 * MS + CALL_NS + RETURN_NS + 5 * MS + CALL_NS;
        assert_eq!(u64::try_from(peak.latency_ns), Ok(took_ns), "{peak:?}");
        // The hog's timer interrupts the victim; from the end of that on it has the CPU.
        let by_hog = part(peak, Cause::Thread, "hog");
        assert_eq!(by_hog, RETURN_NS + 5 * MS + CALL_NS, "{peak:?}");
        let own = part(peak, Cause::OwnWork, "own work");
        assert!((2 * MS - 5_000..=2 * MS + 5_000).contains(&own), "{peak:?}");
    }
}

#[test]
fn a_preemption_is_the_cause_of_the_wake_ups_that_it_delays() {
    let victim = TaskPlan::fair("victim", &[Work(MS), For(4 * MS)]);
    let hog = TaskPlan::fifo("hog", &[Work(5 * MS), For(97 * MS)]);
    let asked = ReplayRequest::name("victim", None, [0, 8_000 * MS]);
    let explained = explain(vec![victim, hog], &asked, Some(1_000_000), ALL);
    let row = explained.end.row("victim");
    assert!(row.preempted > 0 && row.ready.max > Some(2_000_000), "{row:?}");
    assert!(!explained.peaks.is_empty(), "{row:?}");
    for peak in &explained.peaks {
        assert!(peak.latency_ns > 1_000_000 && peak.series == "victim", "{peak:?}");
        let first = &peak.blame[0];
        assert_eq!((first.cause, first.name.as_str()), (Cause::Thread, "hog"), "{peak:?}");
        let sum: u64 = peak.blame.iter().map(|part| part.ns).sum();
        assert_eq!(i64::try_from(sum), Ok(peak.latency_ns), "{peak:?}");
    }
}

/// One task has a lock for 6 ms from each fiftieth on, and another, which goes before it, wants the
/// lock 2 ms later.
fn locked(inherits: bool) -> Explained {
    let (lock, unlock) = match inherits {
        true => (LockPi(1), UnlockPi(1)),
        false => (Lock(1), Unlock(1)),
    };
    let owner = TaskPlan::fair("owner", &[UntilNext(50 * MS, 0), lock, Work(6 * MS), unlock]);
    let waiter = TaskPlan::fifo("waiter", &[UntilNext(50 * MS, MS), Work(MS), lock, unlock]);
    let asked = ReplayRequest::name("waiter", Some(3 * MS), [100 * MS, 2_000 * MS]);
    explain(vec![waiter, owner], &asked, None, ALL)
}

#[test]
fn a_wait_for_a_mutex_with_priority_inheritance_names_its_owner() {
    let explained = locked(true);
    let over = explained.end.row("waiter").over.unwrap();
    let waits = over.waits.unwrap();
    assert_eq!((over.cycles, waits.pi_mutex_ns), (38, Some(over.wait_ns)));
    assert!(over.wait_ns >= 38 * 5 * MS, "{over:?}");
    for peak in cycles(&explained) {
        assert!(part(peak, Cause::Lock, "PI mutex") >= 5 * MS, "{peak:?}");
        let mut locks = peak.blame.iter().filter(|part| part.name == "PI mutex");
        assert!(locks.all(|part| part.task.as_deref() == Some("owner/5000002")), "{peak:?}");
    }
}

#[test]
fn a_wait_for_an_ordinary_mutex_is_a_futex_and_names_who_let_it_go() {
    let explained = locked(false);
    let over = explained.end.row("waiter").over.unwrap();
    assert_eq!((over.cycles, over.waits.unwrap().futex_ns), (38, Some(over.wait_ns)));
    for peak in cycles(&explained) {
        let name = format!("lock {:#x} held by owner", lock_address(1));
        assert!(part(peak, Cause::Lock, &name) >= 5 * MS, "{peak:?}");
        let mut locks = peak.blame.iter().filter(|part| part.cause == Cause::Lock);
        assert!(locks.all(|part| part.basis == Basis::Measured), "{peak:?}");
    }
}

#[test]
fn a_holder_that_a_lower_task_keeps_from_the_cpu_is_a_priority_inversion() {
    let steps = [UntilNext(50 * MS, 0), Lock(1), Work(6 * MS), Unlock(1)];
    let owner = TaskPlan::fair("owner", &steps);
    let vision = TaskPlan {
        prio: 59,
        ..TaskPlan::fifo("vision", &[UntilNext(50 * MS, 3 * MS), Work(9 * MS)])
    };
    let steps = [UntilNext(50 * MS, MS), Work(MS), Lock(1), Unlock(1)];
    let waiter = TaskPlan::fifo("waiter", &steps);
    let asked = ReplayRequest::name("waiter", Some(3 * MS), [100 * MS, 2_000 * MS]);
    let explained = explain(vec![waiter, owner, vision], &asked, None, ALL);
    let lock = format!("lock {:#x} held by owner", lock_address(1));
    let inversion = format!("priority inversion: {lock}, preempted by vision (fifo 40)");
    for peak in cycles(&explained) {
        let [by_vision, by_owner] = [&inversion, &lock].map(|name| part(peak, Cause::Lock, name));
        assert!((9 * MS..9 * MS + 50_000).contains(&by_vision), "{peak:?}");
        assert!(by_owner >= 4 * MS, "{peak:?}");
        assert_eq!(peak.blame[0].name, inversion);
        assert_eq!(peak.blame[0].task.as_deref(), Some("vision/5000003"));
    }
    // One that ranks above the thread may run first.
    let above = [UntilNext(50 * MS, 3 * MS), Work(9 * MS)];
    let above = TaskPlan { prio: 9, ..TaskPlan::fifo("above", &above) };
    let plans = vec![
        TaskPlan::fifo("waiter", &steps),
        TaskPlan::fair("owner", &[UntilNext(50 * MS, 0), Lock(1), Work(6 * MS), Unlock(1)]),
        above,
    ];
    for peak in cycles(&explain(plans, &asked, None, ALL)) {
        let name = format!("{lock}, preempted by above (fifo 90)");
        assert!(part(peak, Cause::Lock, &name) >= 9 * MS, "{peak:?}");
    }
}

#[test]
fn a_late_answer_of_a_server_is_blamed_on_the_task_that_had_its_cpu() {
    let server = TaskPlan::fair("server", &[Receive(1), Work(20_000), Send(2)]);
    let client = TaskPlan::fair("client", &[Send(1), Receive(2), For(MS)]).on(1);
    let hog = TaskPlan::fifo("hog", &[Work(10 * MS), For(90 * MS)]);
    let asked = ReplayRequest::name("server", None, [0, 4_000 * MS]);
    let explained = explain(vec![server, client, hog], &asked, Some(2_000_000), ALL);
    let row = explained.end.row("server");
    assert!(row.by_task > 1_000 && row.by_own_timer == 0, "{row:?}");
    assert!(explained.peaks.len() > 30, "{:?}", explained.peaks);
    for peak in &explained.peaks {
        let first = &peak.blame[0];
        assert_eq!((first.cause, first.name.as_str()), (Cause::Thread, "hog"), "{peak:?}");
        assert!(first.ns > MS, "{peak:?}");
    }
}

#[test]
fn each_cycle_that_is_late_is_explained_or_counted_as_passed_over() {
    let always = || TaskPlan::fair("always", &[UntilNext(MS, 0), Work(100_000)]);
    let asked = ReplayRequest::name("always", Some(20_000), [0, 3_000 * MS]);
    for most in [ALL, 20, 1] {
        let explained = explain(vec![always()], &asked, Some(1_000), most);
        let over = explained.end.row("always").over.unwrap();
        let blame = &explained.blame;
        let analysed: u64 = blame.responses.iter().map(|bucket| bucket.wakeups).sum();
        let others = blame.blamed + blame.passed_over;
        let known = analysed + blame.responses_passed_over;
        assert_eq!(known + others, explained.late, "{most}: {blame:?}");
        // All but those of the first 200 ms, in which it is not known yet that it works in cycles.
        assert_eq!(known + 200, over.cycles, "{over:?}");
        assert_eq!(blame.responses_passed_over == 0, most == ALL, "{most}: {blame:?}");
    }
}

#[test]
fn a_read_of_a_device_is_a_wait_for_input_or_output() {
    let reader = TaskPlan::fair("reader", &[UntilNext(100 * MS, 0), Work(MS), Read(5 * MS)]);
    let asked = ReplayRequest::name("reader", Some(MS), [200 * MS, 3_100 * MS]);
    let explained = explain(vec![reader], &asked, None, ALL);
    let over = explained.end.row("reader").over.unwrap();
    assert_eq!((over.cycles, over.waits.unwrap().io_ns), (29, over.wait_ns));
    for peak in cycles(&explained) {
        let io = peak.blame.iter().find(|part| part.name.starts_with("I/O, ")).unwrap();
        assert!(io.cause == Cause::Wait && io.ns >= 5 * MS, "{peak:?}");
    }
}

/// Who had CPU 0 between these moments, and for how long, ns.
fn had_the_cpu(happened: &Happened, from_ns: u64, to_ns: u64) -> BTreeMap<u32, u64> {
    let (mut had, mut current, mut since_ns) = (BTreeMap::new(), 0, 0);
    for (at_ns, line) in happened.lines.iter().chain([&(u64::MAX, String::from("- 0 switch R 0"))])
    {
        let words: Vec<&str> = line.split(' ').collect();
        let [_, "0", "switch", _, next] = words[..] else { continue };
        let ns = to_ns.min(*at_ns).saturating_sub(from_ns.max(since_ns));
        if ns > 0 {
            *had.entry(current).or_default() += ns;
        }
        (current, since_ns) = (next.parse().unwrap(), *at_ns);
    }
    had
}

#[test]
fn beside_six_spinners_no_cause_names_a_task_that_did_not_have_the_cpu() {
    let spins = |name, ms| TaskPlan::fair(name, &[Work(ms * MS), For(MS)]);
    let plans = || {
        let victim = TaskPlan::fair("victim", &[UntilNext(20 * MS, 0), Work(200_000)]);
        let here = [spins("spin1", 3), spins("spin2", 4), spins("spin3", 5)];
        let there = [spins("spin4", 3), spins("spin5", 4), spins("spin6", 5)];
        let all = [victim].into_iter().chain(here).chain(there.map(|spinner| spinner.on(1)));
        all.collect::<Vec<_>>()
    };
    let asked = ReplayRequest::name("victim", None, [0, 4_000 * MS]);
    let happened = Machine::run(plans(), asked.end_ns);
    let explained = explain(plans(), &asked, Some(1_000_000), ALL);
    let mut named = BTreeSet::new();
    for peak in &explained.peaks {
        let from_ns = u64::try_from(peak.at_ns.unwrap()).unwrap();
        let to_ns = from_ns + u64::try_from(peak.latency_ns).unwrap();
        let had = had_the_cpu(&happened, from_ns, to_ns);
        let mut blamed = BTreeMap::<u32, u64>::new();
        for part in &peak.blame {
            let Some(task) = &part.task else { continue };
            let (_, tid) = task.rsplit_once('/').unwrap();
            *blamed.entry(tid.parse().unwrap()).or_default() += part.ns;
        }
        for (tid, ns) in &blamed {
            assert!(ns <= had.get(tid).unwrap_or(&0), "{tid} had {had:?}: {peak:?}");
        }
        let by_others: u64 = blamed.values().sum();
        assert!(by_others * 10 > (to_ns - from_ns) * 9, "{peak:?}");
        named.extend(blamed.into_keys());
    }
    let here = (1..=3).map(|number| FIRST_TID + number).collect::<BTreeSet<_>>();
    assert_eq!(named, here, "{} peaks", explained.peaks.len());
}
