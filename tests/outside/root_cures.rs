//! A greedy thread that is planted on the measured CPU: found, cured, and left as it was. Needs
//! root, two CPUs and a kernel whose wake-ups can be traced.

use std::{
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::{Builder, JoinHandle, sleep},
    time::{Duration, Instant},
};

use serde_json::Value;
use tardy::sys::{
    cpus::Cpus,
    root::Root,
    sched::{self, RawScheduling},
    tasks,
};

use super::{
    settings::{only, read},
    support::{Said, Store, finish, in_guest, is_root, list, piped, skip},
    turn::Turn,
};

const NAME: &str = "greedy";
const ABOVE_ALL: RawScheduling = RawScheduling { policy: libc::SCHED_FIFO, priority: 95 };

/// A real-time thread that keeps a CPU for 4 ms of each 20 ms, until dropped.
struct Greedy {
    tid: i32,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Greedy {
    fn on(cpu: u32) -> Option<Self> {
        let (stop, (sender, tid)) = (Arc::new(AtomicBool::new(false)), mpsc::channel());
        let is_stopped = Arc::clone(&stop);
        let work = move || {
            let own = sched::thread_id();
            let is_set = only(cpu).pin(own).and_then(|()| sched::set_raw(own, ABOVE_ALL));
            sender.send(is_set.is_ok().then_some(own)).unwrap();
            while is_set.is_ok() && !is_stopped.load(Ordering::Relaxed) {
                let start = Instant::now();
                while start.elapsed() < Duration::from_millis(4) {}
                sleep(Duration::from_millis(16));
            }
        };
        let thread = Builder::new().name(NAME.into()).spawn(work).unwrap();
        Some(Self { tid: tid.recv().unwrap()?, stop, thread: Some(thread) })
    }

    /// Its CPUs, and its policy.
    fn terms(&self) -> (String, RawScheduling) {
        let cpus = tasks::cpus(&Root::default(), self.tid).unwrap();
        (cpus.to_string(), sched::raw_of_thread(self.tid).unwrap())
    }
}

impl Drop for Greedy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

struct Planted {
    store: Store,
    greedy: Greedy,
    cpu: u32,
    _alone: Turn,
}

impl Planted {
    /// With a run of the greedy thread's CPU, `bad`.
    fn new() -> Option<Self> {
        let online: Cpus = read("/sys/devices/system/cpu/online").parse().unwrap();
        if !is_root() || online.len() < 2 {
            skip("needs root and two CPUs");
            return None;
        }
        if in_guest() {
            skip("a proof in an emulated guest is silent for longer than its watcher waits");
            return None;
        }
        let (alone, cpu) = (Turn::alone(), online.iter().last().unwrap());
        let Some(greedy) = Greedy::on(cpu) else {
            skip("real-time threads are not allowed here");
            return None;
        };
        let planted = Self { store: Store::new(), greedy, cpu, _alone: alone };
        let said = planted.tardy(&[
            "run",
            "timer",
            "--cpus",
            &cpu.to_string(),
            "--duration",
            "2s",
            "--warmup",
            "100ms",
            "--name",
            "bad",
        ]);
        assert_eq!(said.code, Some(0), "{said:?}");
        if planted.store.show("bad")["trace"]["found"] != "peaks" {
            skip("wake-ups cannot be traced here");
            return None;
        }
        Some(planted)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.store.tardy(arguments);
        command.env("TARDY_JOURNAL", self.store.path().join("state/journal"));
        command
    }

    fn tardy(&self, arguments: &[&str]) -> Said {
        finish(piped(&mut self.command(arguments)))
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let said = self.tardy(arguments);
        serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"))
    }

    /// The number of the remedy of the greedy thread.
    fn remedy(&self) -> Value {
        let all = self.json(&["why", "bad", "--fix", "--json"]);
        let own = list(&all["remedies"]).iter().find(|own| own["name"] == NAME);
        own.unwrap_or_else(|| panic!("{all}")).clone()
    }

    fn is_as_before(&self, when: &str) {
        assert_eq!(self.greedy.terms(), (self.cpu.to_string(), ABOVE_ALL), "{when}");
        assert!(!self.store.path().join("state/journal").exists(), "{when}");
    }
}

#[test]
fn a_greedy_thread_is_found_cured_and_left_as_it_was() {
    let Some(planted) = Planted::new() else { return };
    let remedy = planted.remedy();
    let set = format!("task:{}:cpus=away", planted.greedy.tid);
    assert_eq!((&remedy["cause"], &remedy["set"]), (&"thread".into(), &set.as_str().into()));
    assert!(list(&remedy["commands"])[0].as_str().unwrap().starts_with("taskset -pc "));
    planted.is_as_before("after only naming it");
    let number = remedy["number"].to_string();
    let prove = ["why", "bad", "--fix", &number, "--prove", "--budget", "60s"];
    let proof = planted.json(&[&prove[..], &["--json"]].concat());
    let comparison = &proof["comparison"];
    assert_eq!(comparison["status"], "complete", "{proof}");
    // How much else disturbs this machine is not known: it may be too much to tell.
    let verdict = comparison["verdict"].as_str().unwrap();
    assert!(["better", "same", "inconclusive"].contains(&verdict), "{proof}");
    assert_eq!((&proof["helps"], &proof["kept"]), (&(verdict == "better").into(), &false.into()));
    planted.is_as_before("after the proof");
}

#[test]
fn a_remedy_that_is_not_there_is_refused_and_nothing_is_changed() {
    let Some(planted) = Planted::new() else { return };
    for (words, part) in [
        (&["--fix", "99"][..], "--fix 99: there are causes 1 to "),
        (&["--fix", "--prove"], "--fix 1 --prove"),
        (&["--prove"], "--fix"),
        (&["--fix", "1", "--keep"], "--prove"),
    ] {
        let said = planted.tardy(&[&["why", "bad"][..], words].concat());
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
        assert!(said.err.contains(part), "{said:?}");
    }
    planted.is_as_before("after refusals");
}
