//! A greedy thread, or a device's interrupt, that is planted on the measured CPU: found, cured, and
//! left as it was. Needs root, two CPUs and a kernel whose wake-ups can be traced.

use std::{
    fs,
    io::{self, Write},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use serde_json::Value;
use tardy::sys::cpus::Cpus;

use super::{
    chance::is_long,
    greedy::{ABOVE_ALL, Greedy, NAME, assert_kept_in_a},
    killed::{Killing, killed_at_random},
    settings::{only, read},
    support::{
        Said, Store, eventually, finish, finish_within, in_guest, is_root, list, patience, pause,
        piped, skip,
    },
};

/// The last CPU of this machine, measured while something is planted there.
struct Measured {
    store: Store,
    cpu: u32,
}

impl Measured {
    fn new() -> Option<Self> {
        let online: Cpus = read("/sys/devices/system/cpu/online").parse().unwrap();
        if !is_root() || online.len() < 2 {
            skip("needs root and two CPUs");
            return None;
        }
        if in_guest() && !is_long() {
            skip("a proof in an emulated guest takes minutes: TARDY_TEST_LONG=1");
            return None;
        }
        let cpu = online.iter().last().unwrap();
        Some(Self { store: Store::new(), cpu })
    }

    /// Makes the run `name`; whether its wake-ups were traced.
    fn run(&self, name: &str) -> bool {
        let run = ["run", "timer", "--warmup", "100ms", "--duration", "2s", "--name", name];
        let said = self.tardy(&[&run[..], &["--cpus", &self.cpu.to_string()]].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        let is_traced = self.store.show(name)["trace"]["found"] == "peaks";
        if !is_traced {
            skip("wake-ups cannot be traced here");
        }
        is_traced
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

    /// The causes of a run of which a remedy is known, those with most blame first.
    fn known_remedies(&self, run: &str) -> Vec<Value> {
        let mut all = self.json(&["why", run, "--fix", "--json"]);
        let mut remedies: Vec<Value> =
            serde_json::from_value(all["remedies"].take()).unwrap_or_default();
        remedies.retain(|own| own["set"] != Value::Null);
        remedies
    }

    /// The proof of it, which is complete.
    fn prove(&self, run: &str, remedy: &Value) -> Value {
        let number = remedy["number"].to_string();
        // A busy machine needs more time for the fewest blocks.
        let proof = [60, 240, 960].into_iter().filter(|s| !in_guest() || *s > 60).find_map(|s| {
            let (budget, limit) = (format!("{s}s"), Duration::from_secs(s) + patience());
            let prove = ["why", run, "--fix", &number, "--prove", "--budget", &budget, "--json"];
            let said = finish_within(piped(&mut self.command(&prove)), limit);
            let refused = said.code == Some(2) && said.err.contains("give it more time");
            assert!(refused || !said.out.is_empty(), "{said:?}");
            let proof: Value = serde_json::from_str(&said.out).ok()?;
            (proof["comparison"]["status"] == "complete").then_some(proof)
        });
        let proof = proof.expect("a proof that is complete");
        let helps = proof["comparison"]["verdict"] == "better";
        assert_eq!((&proof["helps"], &proof["kept"]), (&helps.into(), &false.into()));
        proof
    }

    fn has_no_journal(&self, when: &str) {
        assert!(!self.store.path().join("state/journal").exists(), "{when}");
    }
}

/// A machine whose measured CPU a greedy thread keeps.
struct Planted {
    machine: Measured,
    greedy: Greedy,
    /// A run that has it among its causes, and what is known to help.
    run: String,
    remedies: Vec<Value>,
}

impl Planted {
    fn new() -> Option<Self> {
        let machine = Measured::new()?;
        let Some(greedy) = Greedy::on(machine.cpu) else {
            skip("real-time threads are not allowed here");
            return None;
        };
        let mut planted = Self { machine, greedy, run: String::new(), remedies: Vec::new() };
        let (mut runs, mut is_traced) = (0, true);
        // On a busy machine something else may be the cause of all that is kept whole.
        eventually("a remedy against the greedy thread is known", || {
            runs += 1;
            planted.run = format!("bad{runs}");
            is_traced = planted.machine.run(&planted.run);
            if is_traced {
                planted.remedies = planted.machine.known_remedies(&planted.run);
            }
            !is_traced || planted.remedy().is_some()
        });
        is_traced.then_some(planted)
    }

    /// What is known to help against the greedy thread.
    fn remedy(&self) -> Option<&Value> {
        self.remedies.iter().find(|remedy| remedy["name"] == NAME)
    }

    /// The proof that it helps.
    fn prove(&self) -> Value {
        self.machine.prove(&self.run, self.remedy().unwrap())
    }

    fn is_as_before(&self, when: &str) {
        assert_eq!(self.greedy.terms(), (self.machine.cpu.to_string(), ABOVE_ALL), "{when}");
        self.machine.has_no_journal(when);
    }
}

#[test]
#[ignore = "live: twin campaign::judge::tests::stalls_of_a_that_b_has_not_make_b_better"]
fn a_greedy_thread_is_found_cured_and_left_as_it_was() {
    let Some(planted) = Planted::new() else { return };
    let remedy = planted.remedy().unwrap();
    let set = format!("task:{}:cpus=away", planted.greedy.tid);
    assert_eq!((&remedy["cause"], &remedy["set"]), (&"thread".into(), &set.as_str().into()));
    assert!(list(&remedy["commands"])[0].as_str().unwrap().starts_with("taskset -pc "));
    planted.is_as_before("after only naming it");
    assert!(!planted.greedy.has_spared_its_cpu(), "nothing was changed yet");
    let proof = planted.prove();
    assert!(planted.greedy.has_spared_its_cpu(), "it was away for the blocks of B");
    planted.is_as_before("after the proof");
    let comparison = proof["comparison"]["id"].as_str().unwrap();
    assert_kept_in_a(&planted.machine.store.runs().join(comparison));
}

#[test]
#[ignore = "live: twin campaign::judge::tests::stalls_of_a_that_b_has_not_make_b_better"]
fn the_remedy_against_a_greedy_thread_comes_first_and_helps() {
    if in_guest() {
        return skip("an emulated guest is late by more than the thread makes it");
    }
    let Some(planted) = Planted::new() else { return };
    assert_eq!(planted.remedies[0]["name"], NAME, "{:?}", planted.remedies);
    let proof = planted.prove();
    assert_eq!(proof["helps"], true, "{proof}");
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
        let said = planted.machine.tardy(&[&["why", &planted.run][..], words].concat());
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
        assert!(said.err.contains(part), "{said:?}");
    }
    planted.is_as_before("after refusals");
}

#[test]
fn a_proof_that_is_killed_leaves_what_is_put_back() {
    let Some(planted) = Planted::new() else { return };
    let number = planted.remedy().unwrap()["number"].to_string();
    killed_at_random(
        &Killing {
            name: "kill -9 of why --fix --prove",
            times: (3, 100),
            within: Duration::from_secs(8),
        },
        |_| {
            let prove = ["why", &planted.run, "--fix", &number, "--prove", "--budget", "60s"];
            ((), piped(&mut planted.machine.command(&prove)))
        },
        |attempt, (), _| {
            eventually("every process is gone", || planted.machine.store.processes().is_empty());
            let said = planted.machine.tardy(&["restore"]);
            assert_eq!(said.code, Some(0), "{said:?}");
            planted.is_as_before(&format!("after kill {attempt}"));
            if said.out.starts_with("restored") { "by restore" } else { "by the block" }.into()
        },
    );
}

/// The interrupt of the guest's first serial port, which carries its console.
const SERIAL: &str = "/proc/irq/4/smp_affinity_list";

/// Writes to the console from CPU 0 until dropped: an interrupt for every few bytes. As much as
/// what becomes of a console on the host may hold of a proof.
struct Chatter {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Chatter {
    fn new() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            only(0).pin_this_thread().unwrap();
            let mut console = fs::OpenOptions::new().write(true).open("/dev/ttyS0").unwrap();
            while !is_stopped.load(Ordering::Relaxed) {
                console.write_all(&[b' '; 512]).unwrap();
                pause(Duration::from_millis(4));
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Chatter {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

#[test]
#[ignore = "long: a proof in an emulated guest takes minutes"]
fn an_interrupt_that_is_planted_in_a_guest_is_found_cured_and_left_as_it_was() {
    if !in_guest() {
        return skip("needs a guest with a serial port that is free: TARDY_TEST_LONG=1");
    }
    let Some(machine) = Measured::new() else { return };
    let own = machine.cpu.to_string();
    fs::write(SERIAL, &own).unwrap();
    // Emulated, the measured thread takes enough CPU time that the kernel throttles it now and
    // then, which is another true cause.
    fs::write("/proc/sys/kernel/sched_rt_runtime_us", "-1").unwrap();
    let chatter = Chatter::new();
    // A host that is busy delays the whole guest by more than any interrupt.
    let found = (0..5).find_map(|number| {
        let run = format!("bad{number}");
        let first = machine.run(&run).then(|| machine.known_remedies(&run).into_iter().next())?;
        Some((run, first?))
    });
    let (run, remedy) = found.expect("five runs, and no cause with a known remedy");
    assert!(remedy["name"].as_str().unwrap().contains("ttyS0"), "{remedy}");
    // A real-time kernel handles it in a thread, irq/4-ttyS0.
    let set = remedy["set"].as_str().unwrap();
    let is_thread = remedy["cause"] == "thread" && set.starts_with("task:");
    assert!(is_thread || remedy["cause"] == "hardirq" && set == "irq:4=away", "{remedy}");
    let helps = machine.prove(&run, &remedy)["helps"] == true;
    drop(chatter);
    // Past the harness, which hides what passing tests print.
    let _ = writeln!(io::stderr().lock(), "moving the interrupt helps: {helps}");
    assert_eq!(read(SERIAL), own, "after the proof");
    machine.has_no_journal("after the proof");
}
