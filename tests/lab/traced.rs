//! Traced on Debian's standard and (long) real-time kernels: stages on both, and on the first the
//! name of the function that held the CPU.

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

#[test]
fn there_are_stages_and_the_function_that_held_the_cpu_has_its_name() {
    let (Some(place), Some(rt)) = (Place::new(), Place::with("rt")) else { return };
    let mut cells = vec![(&place, traced(&place, "signals:processes=300,interval=10ms"), "kill")];
    let mut held = vec![("kill", "kill_something_info")];
    if is_long() {
        cells.push((&rt, traced(&rt, "signals:processes=300,interval=10ms"), "rt"));
        cells.push((&place, traced(&place, "memory:exit,size=64MiB"), "exit"));
        held.push(("exit", "exit_mmap"));
    }
    run_all(&cells).iter().for_each(assert_stages);
    for (name, function) in held {
        let blamed = blamed(&place.path(name));
        let named = (Cause::Nonpreemptible, function.to_owned());
        assert!(blamed.iter().filter(|cause| **cause == named).count() >= 4, "{blamed:?}");
    }
    place.assert_nothing_left();
    rt.assert_nothing_left();
}
