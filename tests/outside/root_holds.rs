//! In a guest of `cargo xtask vm` with two CPUs: the kernel holds a real-time thread back for the
//! sake of a task that is not.

use std::{
    fs,
    process::{Child, Command},
};

use tardy::{
    run::peaks::{Cause, FAIR_SERVER, Part, Peak, REAL_TIME_THROTTLING},
    sys::{kernel_config::release, root::Root},
};

use super::support::{Store, finish, in_guest, is_counted, skip, with_time};

/// Of each second the kernel gives tasks that are not real-time 50 ms; a wait for less than this
/// was for something else.
const LEAST_NS: u64 = 20_000_000;

/// Keeps CPU 1 busy until it goes.
struct Hog(Child);

impl Hog {
    /// At a real-time priority, where one is given.
    fn new(fifo: Option<&str>) -> Self {
        let policy = fifo.map_or(["chrt", "-o", "0"], |priority| ["chrt", "-f", priority]);
        let mut command = Command::new("taskset");
        command.args(["-c", "1"]).args(policy).args(["sh", "-c", "while :; do :; done"]);
        Self(command.spawn().unwrap())
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "long: the guests of make test have other tests to do"]
fn a_fair_hog_under_a_fifo_hog_gets_its_time_and_the_wait_for_it_its_name() {
    if !in_guest() || is_counted() {
        return skip("needs a guest with two CPUs: TARDY_TEST_LONG=1");
    }
    // Since 6.12 the fair server gives it its time, before that real-time throttling.
    let has_server = release(&Root::default()).is_some_and(|release| release >= (6, 12));
    let name = if has_server { FAIR_SERVER } else { REAL_TIME_THROTTLING };
    let is_held =
        |part: &Part| part.cause == Cause::Throttled && part.name == name && part.ns >= LEAST_NS;
    let run = ["run", "timer", "--cpus", "1", "--priority", "90", "--interval", "10ms"];
    let traced = ["--trace", "peaks", "--peak-over", "5ms", "--warmup", "0s", "--name", "r"];
    with_time(|time| {
        let store = Store::new();
        let child = store.start(&[&run[..], &traced, &["--duration", time]].concat());
        store.wait_measuring("r");
        let hogs = [Hog::new(None), Hog::new(Some("50"))];
        let said = finish(child);
        drop(hogs);
        assert_eq!(said.code, Some(0), "{said:?}");
        let lines = fs::read_to_string(store.runs().join("r/peaks.jsonl")).unwrap();
        let mut peaks = lines.lines().map(|line| serde_json::from_str::<Peak>(line).unwrap());
        peaks.find(|peak| peak.blame.iter().any(is_held)).map(|_| ())
    });
}
