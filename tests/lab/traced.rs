//! Traced on Debian's standard and real-time kernels: stages on both, and on the first the name of
//! the function that held the CPU.

use tardy::run::{TraceMode, peaks::Cause};

use super::*;

fn traced(place: &Place, load: &str) -> Cell {
    place.cell(&[
        "timer",
        "--interval=200us",
        "--samples=6000",
        "--warmup=500ms",
        "--trace=peaks",
        "--load",
        load,
    ])
}

/// What the worst wake-ups were blamed on, most first.
fn blamed(run: &Path) -> Vec<(Cause, String)> {
    let run = Run::open(run).unwrap();
    let mut peaks = run.peaks().worst;
    peaks.truncate(10);
    peaks.iter().map(|peak| (peak.blame[0].cause, peak.blame[0].name.clone())).collect()
}

fn assert_stages(document: &Document) {
    assert_eq!(document.trace.found, TraceMode::Peaks, "{:?}", document.trace);
    let of = |name: &str| document.series.iter().find(|series| series.name == name).unwrap();
    let whole = of("cpu0");
    for stage in ["irq", "handler", "dispatch", "user"] {
        let stage = of(&format!("cpu0/{stage}"));
        assert!(stage.count > 5900 && stage.count <= whole.count, "{}", stage.name);
    }
}

/// Time is counted, so that it is the same function each time.
fn assert_held(place: &Place, run: &str, function: &str) {
    let blamed = blamed(&place.path(run));
    let named = (Cause::Nonpreemptible, function.to_owned());
    assert!(blamed.iter().filter(|cause| **cause == named).count() >= 4, "{blamed:?}");
}

const KILL: &str = "signals:processes=300,interval=10ms";

#[test]
fn there_are_stages_and_the_function_that_held_the_cpu_has_its_name() {
    let Some(place) = Place::new() else { return };
    run_all(&[(&place, traced(&place, KILL), "kill")]).iter().for_each(assert_stages);
    assert_held(&place, "kill", "kill_something_info");
    place.assert_nothing_left();
}

#[test]
#[ignore = "long: two guests more, for another function and the real-time kernel"]
fn there_are_stages_on_a_real_time_kernel_and_the_exit_of_a_process_has_its_name() {
    let (Some(place), Some(rt)) = (Place::new(), Place::with("rt")) else { return };
    let exit = traced(&place, "memory:exit,size=64MiB");
    let cells = [(&rt, traced(&rt, KILL), "rt"), (&place, exit, "exit")];
    run_all(&cells).iter().for_each(assert_stages);
    assert_held(&place, "exit", "exit_mmap");
    place.assert_nothing_left();
    rt.assert_nothing_left();
}
