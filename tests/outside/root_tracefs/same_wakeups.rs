//! The stages that a run recorded against the kernel's own text of the same wake-ups: both are
//! looked at by the same machine in the same moment, so that they differ by nothing but the way.

use std::{collections::HashMap, fs};

use super::{Machine, can_trace, median};
use crate::support::{in_guest, is_counted, skip};

/// By how much two ways may differ, ns. The text is rounded to 1 us, and each way writes the time
/// down after the other one did: that takes little where time is counted.
fn most_counted(_: f64) -> f64 {
    1_500.0
}

/// And what it takes on this machine.
fn most_live(text: f64) -> f64 {
    5_000.0_f64.max(text / 3.0)
}

/// Instance of the kernel's tracer that writes text; the clock is that of the measuring thread.
/// The text has whole microseconds.
const SCRIPT: &str = r#"
mine=/sys/kernel/tracing/instances/text-$$
mkdir $mine && cd $mine || exit 78
trap 'cd /; rmdir $mine' EXIT
test -e events/irq_vectors/local_timer_entry/enable || exit 77
echo mono > trace_clock
echo 20000 > buffer_size_kb
for event in irq_vectors/local_timer_entry sched/sched_waking sched/sched_switch; do
    echo 1 > events/$event/enable
done
(cd "$OLDPWD"; "$0" "$@"); code=$?
echo 0 > tracing_on
cat trace > "$OLDPWD/trace.txt"
exit $code
"#;

/// Priority 90 as the kernel writes it.
const MEASURED: &str = "prio=9 ";

/// What the text says of the wake-ups of one thread, in microseconds.
#[derive(Default)]
struct Wakes {
    handler: Vec<i64>,
    dispatch: Vec<i64>,
}

/// The wake-ups of the thread of priority 90 on CPU 0 that has the most of them.
fn of_the_measured_thread(text: &str) -> Wakes {
    let mut threads = HashMap::<&str, Wakes>::new();
    let mut woken = HashMap::<&str, (i64, i64)>::new();
    let mut interrupt = None;
    for line in text.lines().filter(|line| line.contains("[000]")) {
        let Some((at, event, rest)) = event_of(line) else { continue };
        match event {
            "local_timer_entry" => interrupt = Some(at),
            "sched_waking" if rest.contains(MEASURED) => {
                let pid = word_after(rest, " pid=");
                interrupt.map(|began| woken.insert(pid, (at - began, at)));
            }
            "sched_switch" => {
                let pid = word_after(rest, "next_pid=");
                if let Some((handler, waking)) = woken.remove(pid) {
                    let thread = threads.entry(pid).or_default();
                    thread.handler.push(handler);
                    thread.dispatch.push(at - waking);
                }
            }
            _ => {}
        }
    }
    threads.into_values().max_by_key(|of| of.handler.len()).unwrap_or_default()
}

/// Microseconds, name of the event, and what the event says: `… 12.000034: sched_waking: comm=…`.
fn event_of(line: &str) -> Option<(i64, &str, &str)> {
    let mut parts = line.splitn(3, ": ");
    let seconds = parts.next()?.rsplit(' ').next()?;
    let at = seconds.replace('.', "").parse().ok()?;
    Some((at, parts.next()?, parts.next()?))
}

fn word_after<'a>(text: &'a str, key: &str) -> &'a str {
    let after = text.split_once(key).map_or("", |(_, after)| after);
    after.split(' ').next().unwrap_or_default()
}

fn median_of(mut values: Vec<i64>) -> f64 {
    values.sort_unstable();
    values[values.len() / 2] as f64 * 1_000.0
}

#[test]
fn in_counted_time_stages_are_those_of_the_text() {
    if !is_counted() {
        return skip("needs a guest whose time is counted");
    }
    assert_same(most_counted);
}

#[test]
#[ignore = "live: twin root_tracefs::same_wakeups::in_counted_time_stages_are_those_of_the_text"]
fn stages_are_those_of_the_text() {
    if in_guest() {
        return skip("to write a time down takes an emulated guest as long as what is measured");
    }
    assert_same(most_live);
}

fn assert_same(most: impl Fn(f64) -> f64) {
    let Some(machine) = Machine::new() else { return };
    for by in ["tracefs", "bpf"] {
        if by == "bpf" && !can_trace() {
            return skip("BPF cannot be had here, to be compared with");
        }
        let run = ["run", "timer", "--cpus", "0", "--warmup", "0s", "--interval", "5ms"];
        let asked = ["--samples", "400", "--load", "burn", "--priority", "90"];
        let how = ["--trace", "stages", "--trace-by", by, "--name", by];
        let said = machine.shell(SCRIPT, &[&run[..], &asked, &how].concat());
        if said.code == Some(77) {
            return skip("this machine has no vector of the local timer");
        }
        assert_eq!(said.code, Some(0), "{said:?}");
        let text = fs::read_to_string(machine.store.path().join("trace.txt")).unwrap();
        let wakes = of_the_measured_thread(&text);
        assert!(wakes.handler.len() > 300, "{by}: {} wake-ups in the text", wakes.handler.len());
        let record = machine.store.show(by);
        for (stage, values) in [("handler", wakes.handler), ("dispatch", wakes.dispatch)] {
            let (own, text) = (median(&record, &format!("cpu0/{stage}")), median_of(values));
            let differs = (own - text).abs();
            assert!(differs < most(text), "{by} {stage}: {own} ns, and the text {text} ns");
        }
    }
}
