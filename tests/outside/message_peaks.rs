//! Why messages were late: what a traced ping-pong or receive leaves, and whether delays of a known
//! cause come back. Needs the rights to trace.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
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
    support::{Store, eventually, finish, is_root, list, pause, skip, whole, with_little_time},
    why,
};

const TRACED: [&str; 6] = ["run", "pingpong", "--trace", "peaks", "--warmup", "200ms"];

pub(super) fn can_trace() -> bool {
    tardy::kernel::can_trace().is_ok()
}

pub(super) fn peaks(store: &Store) -> Vec<Peak> {
    let lines = fs::read_to_string(store.runs().join("r/peaks.jsonl")).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A traced run whose worst sample was kept whole. After a warm-up that was worse than a short run,
/// it need not be.
pub(super) fn with_peaks(arguments: &[&str]) -> (Store, Value, Vec<Peak>) {
    with_little_time(|duration| {
        let store = Store::new();
        let said = store.run(&[arguments, &["--duration", duration, "--name", "r"]].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        let (record, peaks) = (store.show("r"), peaks(&store));
        let worst = peaks.iter().map(|peak| peak.latency_ns).max();
        let is_whole = |series: &&Value| series["stage_of"].is_null();
        let measured = list(&record["series"]).iter().filter(is_whole);
        let is_kept = worst == measured.map(|series| whole(&series["max"])).max();
        is_kept.then_some((store, record, peaks))
    })
}

/// The parts sum to the latency, its ways do, and the stages of each to the way.
pub(super) fn assert_sums(peak: &Peak) {
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
        let asked = ["--transport", transport, "--peaks", "20"];
        let (store, record, peaks) = with_peaks(&[&TRACED[..], &asked].concat());
        assert_eq!(faults(&schema(), &record), [""; 0], "{record}");
        assert_eq!(record["trace"]["found"], "peaks", "{record}");
        assert!(whole(&record["trace"]["blamed"]) > 0, "{record}");
        peaks.iter().for_each(assert_sums);
        assert!(peaks.iter().all(|peak| peak.series == "rtt" && peak.stages.is_none()));
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

pub(super) const BURST_NS: i64 = 2_000_000;
const PAUSE: Duration = Duration::from_millis(60);
/// No round trip that is longer is looked at: less than a pause.
const MOST_NS: i64 = 50_000_000;

impl Hog {
    fn start(cpu: u32) -> Self {
        let end = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&end);
        let work = move || {
            [cpu].into_iter().collect::<Cpus>().pin_this_thread().unwrap();
            sched::set_this_thread(sched::Policy::Fifo, 60).unwrap();
            let mut bursts = Vec::new();
            while !ends.load(Ordering::Relaxed) {
                pause(PAUSE);
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
pub(super) fn during(peaks: &[Peak], (from_ns, to_ns): (i64, i64)) -> Option<&Peak> {
    let middle = i64::midpoint(from_ns, to_ns);
    peaks.iter().find(|peak| (at(peak)..at(peak) + peak.latency_ns).contains(&middle))
}

pub(super) fn part(peak: &Peak, is_it: impl Fn(&Part) -> bool) -> u64 {
    peak.blame.iter().filter(|part| is_it(part)).map(|part| part.ns).sum()
}

#[test]
fn a_task_of_higher_priority_at_either_end_comes_back_with_its_name_and_its_time() {
    let cpus: Vec<u32> = Cpus::allowed().unwrap().iter().take(2).collect();
    let [near, far] = cpus[..] else { return skip("needs two CPUs") };
    if !can_trace() || !is_root() {
        return skip("needs root, to trace and for real-time priorities");
    }
    for (transport, cpu) in [("tcp", far), ("futex", near)] {
        // A busy machine may delay everything meanwhile.
        eventually(&format!("{transport}: a burst comes back with its name and its time"), || {
            let asked = [&TRACED[..], &["--transport", transport]].concat();
            let (peaks, bursts) = with_hog(&asked, (near, far), cpu);
            bursts.into_iter().any(|burst| is_hog_named(&peaks, burst))
        });
    }
}

/// The peaks of a run with bursts on `cpu`, and when these were.
pub(super) fn with_hog(
    arguments: &[&str],
    (near, far): (u32, u32),
    cpu: u32,
) -> (Vec<Peak>, Vec<(i64, i64)>) {
    let store = Store::new();
    let place = format!("{near},{far}");
    let asked = ["--cpus", &place, "--priority", "40", "--peak-over", "1ms"];
    let child = store.start(&[arguments, &asked, &["--duration", "1s", "--name", "r"]].concat());
    store.wait_measuring("r");
    let hog = Hog::start(cpu);
    let said = finish(child);
    let bursts = hog.finish();
    assert_eq!(said.code, Some(0), "{said:?}");
    let peaks = peaks(&store);
    peaks.iter().for_each(assert_sums);
    (peaks, bursts)
}

/// Whether a burst made a sample late that names it, and it alone, for its time.
pub(super) fn is_hog_named(peaks: &[Peak], burst: (i64, i64)) -> bool {
    // A machine that throttles real-time tasks may keep several bursts in one sample.
    let Some(peak) = during(peaks, burst).filter(|peak| peak.latency_ns < MOST_NS) else {
        return false;
    };
    // Its own way to the first clock read is not in the burst.
    let most = 2 * (burst.1 - burst.0).unsigned_abs();
    (BURST_NS.unsigned_abs() / 2..most).contains(&hog_ns(peak))
}

/// What of a peak is the hog's, ns.
pub(super) fn hog_ns(peak: &Peak) -> u64 {
    part(peak, |part| part.cause == Cause::Thread && part.name == "hog")
}

#[test]
fn a_far_end_that_was_stopped_is_found_stopped_for_as_long() {
    if !can_trace() {
        return skip("round trips cannot be traced here");
    }
    for transport in ["udp", "futex"] {
        let asked = [&TRACED[..], &["--transport", transport]].concat();
        eventually(&format!("{transport}: the stop comes back as such"), || {
            let (peaks, stopped) = with_stop(&asked);
            during(&peaks, stopped).is_some_and(|peak| is_stop_named(peak, stopped))
        });
    }
}

/// The peaks of a run whose remote endpoint is stopped once, and when that was.
fn with_stop(arguments: &[&str]) -> (Vec<Peak>, (i64, i64)) {
    let store = Store::new();
    // Throttled real-time ends could not be stopped at once.
    let asked = ["--policy", "other", "--duration", "1s", "--peak-over", "5ms", "--name", "r"];
    let child = store.start(&[arguments, &asked].concat());
    store.wait_measuring("r");
    let mut stopped = (0, 0);
    // A busy machine may come here when the run is over.
    if let Some(far) = far_ends(&store).first() {
        kill(*far, "STOP");
        stopped.0 = now_ns();
        pause(Duration::from_millis(25));
        stopped.1 = now_ns();
        kill(*far, "CONT");
    }
    assert_eq!(finish(child).code, Some(0));
    let peaks = peaks(&store);
    peaks.iter().for_each(assert_sums);
    (peaks, stopped)
}

/// When it was sent; each peak of a run that was measured says so.
fn at(peak: &Peak) -> i64 {
    peak.at_ns.unwrap()
}

/// Whether nine tenths of the time for which the remote endpoint was stopped came back as that, as
/// far as the peak reaches.
fn is_stop_named(peak: &Peak, (from_ns, until_ns): (i64, i64)) -> bool {
    let stopped = part(peak, |part| part.cause == Cause::Stopped);
    stopped >= (until_ns - from_ns.max(at(peak))).unsigned_abs() * 9 / 10
}

#[test]
fn late_packets_are_split_at_the_wake_up_of_their_reader_and_explained() {
    if !can_trace() {
        return skip("packets cannot be traced here");
    }
    for wait in ["block", "epoll"] {
        let asked = ["run", "receive", "--listen", "0", "--rate", "2kpps", "--wait", wait];
        let traced = ["--warmup", "200ms", "--trace", "peaks"];
        let (store, record, peaks) = with_peaks(&[&asked[..], &traced].concat());
        assert_eq!(faults(&schema(), &record), [""; 0], "{record}");
        assert_eq!(record["trace"]["found"], "peaks", "{record}");
        let series = list(&record["series"]);
        let names: Vec<&str> = series.iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["receive", "receive/stack", "receive/dispatch", "receive/read"]);
        let counts: Vec<i64> = series.iter().map(|one| whole(&one["count"])).collect();
        let unmatched = whole(&record["trace"]["unmatched"]);
        assert!(counts[1] > 0 && counts[0] == counts[1] + unmatched, "{counts:?}: {record}");
        peaks.iter().for_each(assert_sums);
        assert!(peaks.iter().all(|peak| peak.ways.len() <= 1 && peak.series == "receive"));
        assert_eq!(why::document(&store)["sample"], "packet");
        let text = store.run(&["why", "r"]).out;
        assert!(text.contains("packets") && text.contains("us after stamp"), "{text}");
        assert!(!text.contains("wake-ups") && !text.contains("expiry"), "{text}");
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
    // Where tardy itself waits for a CPU, events of some late round trips are overwritten.
    eventually("the worst round trip is read whole", || {
        assert_eq!(store.run(&[&TRACED[..], &asked].concat()).code, Some(0));
        let page = store.page(&["r"]);
        let first = &list(&page["runs"][0]["peaks"]["peaks"])[0];
        assert_eq!(first["series"], "rtt", "{first}");
        assert_eq!(store.run(&["rm", "r"]).code, Some(0));
        list(&first["ways"]).len() == 2
    });
}
