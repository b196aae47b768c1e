//! Why round trips were late: what a traced ping-pong leaves, and whether delays of a known cause
//! come back. Needs the rights to trace.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle, sleep},
    time::Duration,
};

use serde_json::Value;
use tardy::{
    run::peaks::{Cause, Part, Peak},
    sys::{cpus::Cpus, sched},
};
use tardy_hot::clock::now_ns;

use super::{
    pingpong::{far_ends, kill},
    schema::{faults, schema},
    support::{Store, finish, is_root, list, skip, whole},
    why,
};

const TRACED: [&str; 6] = ["run", "pingpong", "--trace", "peaks", "--warmup", "200ms"];

fn can_trace() -> bool {
    tardy::kernel::can_trace().is_ok()
}

fn peaks(store: &Store) -> Vec<Peak> {
    let lines = fs::read_to_string(store.runs().join("r/peaks.jsonl")).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The parts sum to the round trip, its ways do, and the stages of each to the way.
fn assert_sums(peak: &Peak) {
    let parts: u64 = peak.blame.iter().map(|part| part.ns).sum();
    assert_eq!(i64::try_from(parts).unwrap(), peak.latency_ns, "{peak:?}");
    let ways: i64 = peak.ways.iter().map(|way| way.ns).sum();
    assert!(peak.ways.is_empty() || ways == peak.latency_ns, "{peak:?}");
    for way in &peak.ways {
        if let Some(stages) = way.stages {
            let all = [stages.send, stages.stack, stages.wake_up, stages.dispatch, stages.receive];
            assert_eq!(all.iter().sum::<i64>(), way.ns, "{peak:?}");
            assert!(all.iter().all(|ns| *ns >= 0), "{peak:?}");
        }
    }
}

#[test]
fn late_round_trips_are_kept_whole_with_stages_each_way_and_explained() {
    if !can_trace() {
        return skip("round trips cannot be traced here");
    }
    for transport in ["futex", "pipe", "udp", "tcp"] {
        let store = Store::new();
        let asked = ["--transport", transport, "--duration", "1s", "--peaks", "20", "--name", "r"];
        let said = store.run(&[&TRACED[..], &asked].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        let record = store.show("r");
        assert_eq!(faults(&schema(), &record), [""; 0], "{record}");
        assert_eq!(record["trace"]["found"], "peaks", "{record}");
        assert!(whole(&record["trace"]["blamed"]) > 0, "{record}");
        let peaks = peaks(&store);
        assert!(!peaks.is_empty(), "{transport}: {record}");
        peaks.iter().for_each(assert_sums);
        assert!(peaks.iter().all(|peak| peak.series == "rtt" && peak.stages.is_none()));
        let worst = peaks.iter().map(|peak| peak.latency_ns).max();
        assert_eq!(worst, Some(whole(&list(&record["series"])[0]["max"])), "{record}");
        let document = why::document(&store);
        assert_eq!(document["sample"], "round_trip", "{document}");
        let text = store.run(&["why", "r", "--peaks", "3"]).out;
        assert!(text.contains("round trips") && text.contains("1. round trip of"), "{text}");
        assert!(!text.contains("wake-ups") && !text.contains("expiry"), "{text}");
    }
}

/// A thread that keeps a CPU for a known time now and then, at a priority above both ends'.
struct Hog {
    end: Arc<AtomicBool>,
    handle: JoinHandle<Vec<(i64, i64)>>,
}

const BURST_NS: i64 = 2_000_000;
const PAUSE: Duration = Duration::from_millis(60);

impl Hog {
    fn start(cpu: u32) -> Self {
        let end = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&end);
        let work = move || {
            [cpu].into_iter().collect::<Cpus>().pin_this_thread().unwrap();
            sched::set_this_thread(sched::Policy::Fifo, 60).unwrap();
            let mut bursts = Vec::new();
            while !ends.load(Ordering::Relaxed) {
                sleep(PAUSE);
                let from_ns = now_ns();
                while now_ns() - from_ns < BURST_NS {}
                bursts.push((from_ns, now_ns()));
            }
            bursts
        };
        let handle = thread::Builder::new().name("hog".into()).spawn(work).unwrap();
        Self { end, handle }
    }

    /// From when until when it had the CPU, each time.
    fn finish(self) -> Vec<(i64, i64)> {
        self.end.store(true, Ordering::Relaxed);
        self.handle.join().unwrap()
    }
}

/// The peak during which this happened, if it was kept.
fn during(peaks: &[Peak], (from_ns, to_ns): (i64, i64)) -> Option<&Peak> {
    let middle = i64::midpoint(from_ns, to_ns);
    peaks.iter().find(|peak| (peak.at_ns..peak.at_ns + peak.latency_ns).contains(&middle))
}

fn part(peak: &Peak, is_it: impl Fn(&Part) -> bool) -> u64 {
    peak.blame.iter().filter(|part| is_it(part)).map(|part| part.ns).sum()
}

#[test]
fn a_task_of_higher_priority_at_either_end_comes_back_with_its_name_and_its_time() {
    let cpus: Vec<u32> = Cpus::allowed().unwrap().iter().take(2).collect();
    let [near, far] = cpus[..] else { return skip("needs two CPUs") };
    if !can_trace() || !is_root() {
        return skip("needs root, to trace and for real-time priorities");
    }
    let place = format!("{near},{far}");
    for (transport, cpu) in [("tcp", far), ("futex", near)] {
        let store = Store::new();
        let asked = ["--transport", transport, "--cpus", &place, "--priority", "40"];
        let length = ["--duration", "3s", "--peak-over", "1ms", "--name", "r"];
        let child = store.start(&[&TRACED[..], &asked, &length].concat());
        store.wait_measuring("r");
        let hog = Hog::start(cpu);
        let said = finish(child);
        let bursts = hog.finish();
        assert_eq!(said.code, Some(0), "{said:?}");
        let peaks = peaks(&store);
        let mut found = 0;
        for burst in &bursts {
            let Some(peak) = during(&peaks, *burst) else { continue };
            let named = part(peak, |part| part.cause == Cause::Thread && part.name == "hog");
            // Whatever came on top of it is not its own.
            let most = (burst.1 - burst.0).unsigned_abs() + 200_000;
            assert!(named <= most, "{named} of {most}: {peak:?}");
            found += usize::from(named > BURST_NS.unsigned_abs() / 2);
        }
        // The machine may be busy with something else that lasts longer than the record reaches.
        assert!(found > 0 && 2 * found > bursts.len() / 2, "{found} of {}", bursts.len());
    }
}

#[test]
fn a_far_end_that_was_stopped_is_found_stopped_for_as_long() {
    if !can_trace() {
        return skip("round trips cannot be traced here");
    }
    for transport in ["udp", "futex"] {
        let store = Store::new();
        let asked = ["--transport", transport, "--duration", "2s", "--name", "r"];
        let child = store.start(&[&TRACED[..], &asked, &["--peak-over", "5ms"]].concat());
        store.wait_measuring("r");
        let far = far_ends(&store)[0];
        kill(far, "STOP");
        let from_ns = now_ns();
        sleep(Duration::from_millis(25));
        let until_ns = now_ns();
        kill(far, "CONT");
        assert_eq!(finish(child).code, Some(0));
        let peaks = peaks(&store);
        let peak = during(&peaks, (from_ns, until_ns)).unwrap();
        let stopped = part(peak, |part| part.cause == Cause::Stopped);
        assert!(stopped >= (until_ns - from_ns).unsigned_abs() * 9 / 10, "{transport}: {peak:?}");
        assert_sums(peak);
    }
}

#[test]
fn an_end_that_spins_or_is_elsewhere_is_not_traced_and_the_page_shows_what_is() {
    let store = Store::new();
    let spins = ["--transport", "shm-spin", "--duration", "200ms", "--policy", "other"];
    let said = store.run(&[&TRACED[..], &spins].concat());
    assert!(
        said.code == Some(2) && said.err.contains("no wake-ups that can be traced"),
        "{said:?}"
    );
    if !can_trace() {
        return skip("round trips cannot be traced here");
    }
    let asked = ["--transport", "tcp", "--duration", "500ms", "--name", "r"];
    assert_eq!(store.run(&[&TRACED[..], &asked].concat()).code, Some(0));
    let page = store.page(&["r"]);
    let run: &Value = &page["runs"][0];
    let first = &list(&run["peaks"]["peaks"])[0];
    assert_eq!(first["series"], "rtt", "{first}");
    assert_eq!(list(&first["ways"]).len(), 2, "{first}");
}
