//! A late wake-up of the made-up run, whole: its timeline as a recorder would have seen it.

use tardy::run::peaks::{Cause, Lane, Moment, Peak, StagesOf};

use super::{Wakeup, blame, delay::SynthDelay};

/// The measured thread of CPU 0; those of the others follow.
const FIRST_PID: u32 = 2_000;

/// The peak that this wake-up was.
pub(super) fn peak(wakeup: &Wakeup) -> Peak {
    let mut timeline = before(wakeup);
    timeline.extend(wakeup.delay.iter().map(|delay| delaying(wakeup, delay)));
    timeline.extend(waking(wakeup));
    timeline.sort_by_key(|moment| moment.at);
    Peak {
        at_ns: Some(wakeup.at_ns),
        series: format!("cpu{}", wakeup.cpu),
        cpu: wakeup.cpu,
        latency_ns: wakeup.latency_ns(),
        stages: Some(wakeup.stages),
        ways: Vec::new(),
        blame: blame(wakeup),
        tid: None,
        left_out: if wakeup.turn % 97 == 0 { 12 } else { 0 },
        timeline,
    }
}

fn moment(at: i64, ns: Option<i64>, lane: Lane, what: &str, name: &str) -> Moment {
    Moment {
        at,
        ns: ns.map(i64::unsigned_abs),
        cpu: 0,
        lane,
        what: what.into(),
        name: name.into(),
        pid: None,
        priority: None,
        detail: None,
        stack: Vec::new(),
    }
}

fn task(at: i64, ns: i64, name: &str, pid: u32, priority: &str) -> Moment {
    let moment = moment(at, Some(ns), Lane::Others, "task", name);
    Moment { pid: Some(pid), priority: Some(priority.into()), ..moment }
}

/// What the CPU did before the expiry: tasks take turns, a packet comes.
fn before(wakeup: &Wakeup) -> Vec<Moment> {
    let turns = 3 + wakeup.turn % 5;
    let mut found = vec![moment(0, None, Lane::Thread, "expiry", "timer expires")];
    for turn in 1..=turns {
        let pid = 9_000 + ((wakeup.turn + turn) % 40) as u32;
        found.push(Moment {
            detail: Some("preempted".into()),
            ..task(-turn * 9_000, 9_000, "hackbench", pid, "nice 0")
        });
    }
    found.push(moment(-6_400, Some(1_900), Lane::Hardirq, "irq", "31 virtio0-input.0"));
    found.push(moment(-4_500, Some(2_700), Lane::Softirq, "softirq", "NET_RX"));
    // A crowded one now and then, to test the drawing.
    if wakeup.turn % 61 == 0 {
        let point = |at: i64| moment(-at * 140, None, Lane::Others, "waking", "hackbench");
        found.extend((1..250).map(point));
    }
    place(found, wakeup.cpu)
}

/// The delay itself.
fn delaying(wakeup: &Wakeup, delay: &SynthDelay) -> Moment {
    let StagesOf { irq, handler, dispatch, user, .. } = wakeup.stages;
    let at = if delay.is_before_waking() {
        0
    } else if delay.is_after_switch() {
        irq + handler + dispatch + user - delay.ns
    } else {
        irq + handler
    };
    let kind = delay.kind;
    let name = kind.task.map_or(kind.name, |(name, ..)| name);
    Moment {
        pid: kind.task.map(|(_, pid, _)| pid),
        priority: kind.task.map(|(.., priority)| priority.into()),
        detail: (kind.cause == Cause::IrqsOff).then(|| "interrupts on at its end".into()),
        stack: kind.stack.iter().map(|frame| (*frame).to_owned()).collect(),
        cpu: wakeup.cpu,
        ..moment(at, Some(delay.ns), kind.lane, kind.what, name)
    }
}

/// The timer's interrupt, the wake-up, the switch, and the clock read at the end.
fn waking(wakeup: &Wakeup) -> Vec<Moment> {
    let StagesOf { irq, handler, dispatch, user, .. } = wakeup.stages;
    let name = format!("tardy-cpu{}", wakeup.cpu);
    let thread = |moment: Moment| Moment {
        pid: Some(FIRST_PID + wakeup.cpu),
        priority: Some("fifo 90".into()),
        ..moment
    };
    let switched = irq + handler + dispatch;
    let found = vec![
        moment(irq, Some(handler + 400), Lane::Hardirq, "vector", "local_timer"),
        moment(irq + handler - 300, None, Lane::Hardirq, "timer", "hrtimer_wakeup"),
        Moment {
            detail: Some("woken by the timer".into()),
            ..thread(moment(irq + handler, None, Lane::Thread, "waking", &name))
        },
        thread(moment(switched, Some(user), Lane::Thread, "task", &name)),
        thread(moment(switched + user, None, Lane::Thread, "woke", "woke up")),
    ];
    place(found, wakeup.cpu)
}

fn place(mut moments: Vec<Moment>, cpu: u32) -> Vec<Moment> {
    moments.iter_mut().for_each(|moment| moment.cpu = cpu);
    moments
}
