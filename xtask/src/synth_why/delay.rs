//! What delays wake-ups of the made-up run: when, on which CPU, for how long.

use tardy::run::peaks::{Basis, Cause, Lane, Part, StagesOf};

use super::Random;

/// What every late wake-up is blamed on besides its delay, and its share of what is left, percent.
pub(super) const BESIDE: [(Cause, &str, u64); 3] = [
    (Cause::Hardirq, "local_timer", 40),
    (Cause::Nonpreemptible, "the wake-up itself", 70),
    (Cause::Unexplained, "unexplained", 100),
];

/// One delay of one wake-up.
#[derive(Clone, Copy)]
pub(super) struct SynthDelay {
    pub kind: &'static DelayKind,
    pub ns: i64,
}

/// A kind of delay.
pub(super) struct DelayKind {
    pub cause: Cause,
    pub name: &'static str,
    /// Name and number, and the priority it had.
    pub task: Option<(&'static str, u32, &'static str)>,
    /// Where the timeline shows it, and as what.
    pub lane: Lane,
    pub what: &'static str,
    stage: Stage,
    pub stack: &'static [&'static str],
}

#[derive(Clone, Copy)]
enum Stage {
    Irq,
    Handler,
    Dispatch,
    User,
}

const fn kind(
    cause: Cause,
    name: &'static str,
    (lane, what): (Lane, &'static str),
    stage: Stage,
    task: Option<(&'static str, u32, &'static str)>,
    stack: &'static [&'static str],
) -> DelayKind {
    DelayKind { cause, name, task, lane, what, stage, stack }
}

const CONSOLE: [&str; 8] = [
    "console_unlock+0x1c5",
    "vprintk_emit+0x2a1",
    "_printk+0x5e",
    "__report_bad_irq+0x22",
    "note_interrupt+0x2c0",
    "handle_irq_event+0x77",
    "do_syscall_64+0x82",
    "entry_SYSCALL_64_after_hwframe+0x76",
];
const KILL: [&str; 5] = [
    "_raw_read_lock+0x27",
    "__kill_pgrp_info+0x4c",
    "kill_something_info+0x91",
    "__x64_sys_kill+0xd3",
    "do_syscall_64+0x82",
];

static PRINTK: DelayKind = kind(
    Cause::IrqsOff,
    "console_unlock",
    (Lane::Others, "task"),
    Stage::Irq,
    Some(("logger", 4711, "nice 0")),
    &CONSOLE,
);
static KILL_ALL: DelayKind = kind(
    Cause::Nonpreemptible,
    "__kill_pgrp_info",
    (Lane::Others, "task"),
    Stage::Dispatch,
    Some(("killer", 812, "nice 0")),
    &KILL,
);
static NETWORK: DelayKind = kind(
    Cause::Softirq,
    "NET_RX",
    (Lane::Softirq, "softirq"),
    Stage::Dispatch,
    None,
    &["virtnet_poll+0x3d1", "__napi_poll+0x2b", "net_rx_action+0x2f5"],
);
static DISK: DelayKind =
    kind(Cause::Hardirq, "36 virtio1-req.0", (Lane::Hardirq, "irq"), Stage::Irq, None, &[]);
static URGENT: DelayKind = kind(
    Cause::Thread,
    "irq/42-nvme0",
    (Lane::Others, "task"),
    Stage::Dispatch,
    Some(("irq/42-nvme0", 311, "fifo 95")),
    &[],
);
static IDLE: DelayKind = kind(Cause::IdleExit, "C6", (Lane::Idle, "idle"), Stage::Irq, None, &[]);
static STEAL: DelayKind =
    kind(Cause::Host, "steal (probable)", (Lane::Host, "steal"), Stage::Irq, None, &[]);

/// Each happens once, so that a reader meets every cause.
static RARE: [DelayKind; 8] = [
    kind(
        Cause::Lock,
        "&rq->__lock",
        (Lane::Thread, "lock"),
        Stage::Dispatch,
        Some(("hackbench", 9003, "nice 0")),
        &["native_queued_spin_lock_slowpath+0x2e", "_raw_spin_lock+0x2d"],
    ),
    kind(Cause::Migration, "cpu2 to cpu0", (Lane::Thread, "migration"), Stage::Dispatch, None, &[]),
    kind(Cause::Throttled, "sched_rt_runtime_us", (Lane::Idle, "idle"), Stage::Dispatch, None, &[]),
    kind(
        Cause::PageFault,
        "exc_page_fault",
        (Lane::Thread, "page_fault"),
        Stage::User,
        None,
        &["handle_mm_fault+0x1b0", "exc_page_fault+0x7f"],
    ),
    kind(Cause::Stopped, "SIGSTOP", (Lane::Thread, "stopped"), Stage::User, None, &[]),
    kind(Cause::Hardware, "SMI", (Lane::Host, "steal"), Stage::Irq, None, &[]),
    kind(Cause::Tracing, "stack walk", (Lane::Hardirq, "stack"), Stage::Handler, None, &[]),
    kind(
        Cause::Unexplained,
        "unexplained",
        (Lane::Others, "task"),
        Stage::Irq,
        Some(("hackbench", 9001, "nice 0")),
        &[],
    ),
];

/// What delays the wake-up of this turn on this CPU, if anything.
pub(super) fn of(random: &mut Random, turn: i64, cpu: u32) -> Option<SynthDelay> {
    let some = |kind, ns| Some(SynthDelay { kind, ns });
    // A turn in a thousand or so, the same one on every CPU.
    let shared = turn.wrapping_mul(2_654_435_761).rem_euclid(4_099);
    let rare = |kind: usize| 3_333 + 7_000 * kind as i64;
    let chance = random.below(10_000);
    let jitter = random.below(1_000);
    match cpu {
        _ if turn == 41_007 => some(&STEAL, 3_400_000 + jitter * 10),
        0..3 if shared == 11 => some(&KILL_ALL, 420_000 + jitter * 200),
        3 => {
            let found = RARE.iter().enumerate().find(|(number, _)| rare(*number) == turn);
            match found {
                Some((number, kind)) => some(kind, 300_000 + number as i64 * 90_000),
                None if chance < 90 => some(&IDLE, 35_000 + jitter * 30),
                None => None,
            }
        }
        1 if turn % 50 == 7 => some(&PRINTK, 140_000 + jitter * 250),
        0 if chance < 60 => some(&NETWORK, 40_000 + jitter * 120),
        0 if chance < 90 => some(&DISK, 12_000 + jitter * 40),
        2 if chance < 40 => some(&URGENT, 30_000 + jitter * 70),
        _ => None,
    }
}

impl SynthDelay {
    /// Puts it into the stage in which it shows.
    pub(super) fn add_to(&self, stages: &mut StagesOf) {
        match self.kind.stage {
            Stage::Irq => stages.irq += self.ns,
            Stage::Handler => stages.handler += self.ns,
            Stage::Dispatch => stages.dispatch += self.ns,
            Stage::User => stages.user += self.ns,
        }
    }

    /// Whether it was over before the thread was woken.
    pub(super) fn is_before_waking(&self) -> bool {
        matches!(self.kind.stage, Stage::Irq | Stage::Handler)
    }

    /// Whether the thread itself was already on the CPU.
    pub(super) fn is_after_switch(&self) -> bool {
        matches!(self.kind.stage, Stage::User)
    }

    /// It, as a part of the latency.
    pub(super) fn part(&self) -> Part {
        let DelayKind { cause, name, task, stack, .. } = self.kind;
        let (basis, evidence) = basis(*cause);
        Part {
            cause: *cause,
            name: (*name).into(),
            task: task.map(|(name, pid, _)| format!("{name}/{pid}")),
            ns: self.ns.unsigned_abs(),
            basis,
            evidence,
            stack: stack.iter().map(|frame| (*frame).to_owned()).collect(),
        }
    }
}

/// What a name of this kind rests on, as in a real run.
pub(super) fn basis(cause: Cause) -> (Basis, Option<String>) {
    match cause {
        Cause::Unexplained => (Basis::None, None),
        Cause::Host | Cause::Hardware | Cause::IdleExit | Cause::Throttled => {
            (Basis::Inferred, Some("a made-up sign".into()))
        }
        _ => (Basis::Measured, None),
    }
}
