//! What the kernel's side recorded, as the blame sees it; `src/kernel/recorder.h` tells each.

/// One event of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// `CLOCK_MONOTONIC` ns.
    pub at_ns: u64,
    /// The CPU that recorded it.
    pub cpu: u32,
    /// The kernel's priority of the task it is about: -1 deadline, 0 to 98 real-time, 100 to 139
    /// fair.
    pub prio: i16,
    /// The task it is about.
    pub pid: u32,
    /// Depends on the kind.
    pub flags: u8,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[expect(missing_docs, reason = "the fields are told in recorder.h")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// The task switched in; `flags` tell how the task before it went.
    Switch { comm: [u8; 16] },
    /// The task was made runnable.
    Waking { by: u32, cpu: u32 },
    /// The task was moved.
    Migrate { from: u32, to: u32 },
    /// The handler of an interrupt line begins.
    IrqEntry { line: u32 },
    /// And ends.
    IrqExit { line: u32 },
    /// A softirq begins.
    SoftirqEntry { vector: u32 },
    /// And ends.
    SoftirqExit { vector: u32 },
    /// An interrupt without a line begins.
    VectorEntry { vector: u32, address: u64 },
    /// And ends.
    VectorExit { vector: u32 },
    /// A timer's callback begins.
    Timer { expires_ns: u64, callback: u64 },
    /// The CPU enters an idle state, or leaves it.
    Idle { state: u32 },
    /// An interrupt was sent to another CPU.
    Ipi { to: u32 },
    /// A measured thread faulted.
    PageFault { address: u64, instruction: u64 },
    /// An NMI's handler ended.
    Nmi { took_ns: u64, handler: u64 },
    /// The hypervisor took time from this CPU.
    Steal { ns: u64, since_ns: u64 },
    /// A measured thread begins to wait for a lock.
    LockBegin { lock: u64, flags: u64 },
    /// And has it.
    LockEnd { lock: u64 },
    /// A stack was walked.
    Stack { number: u64, took_ns: u64 },
}
