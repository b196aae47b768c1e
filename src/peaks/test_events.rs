//! Events for tests, in few words.

use super::{Event, EventKind};

/// An event at `at_ns` on CPU 0.
pub(super) fn at(at_ns: u64, mut event: Event) -> Event {
    event.at_ns = at_ns;
    event
}

/// The same on another CPU.
pub(super) fn on(cpu: u32, mut event: Event) -> Event {
    event.cpu = cpu;
    event
}

/// With flags.
pub(super) fn flagged(flags: u8, mut event: Event) -> Event {
    event.flags = flags;
    event
}

fn about(pid: u32, prio: i16, kind: EventKind) -> Event {
    Event { at_ns: 0, cpu: 0, prio, pid, flags: 0, kind }
}

fn event(kind: EventKind) -> Event {
    about(0, 0, kind)
}

pub(super) fn switch(pid: u32, prio: i16, name: &str) -> Event {
    let mut comm = [0; 16];
    comm[..name.len()].copy_from_slice(name.as_bytes());
    about(pid, prio, EventKind::Switch { comm, ahead: None })
}

pub(super) fn waking(pid: u32, by: u32) -> Event {
    about(pid, 0, EventKind::Waking { by, cpu: 0 })
}

pub(super) fn futex_wait(pid: u32, lock: u64, owner: u32) -> Event {
    about(pid, 0, EventKind::FutexWait { lock, owner })
}

pub(super) fn priority(pid: u32, prio: i16) -> Event {
    about(pid, prio, EventKind::Priority { by: 0 })
}

pub(super) fn migrate(pid: u32, from: u32, to: u32) -> Event {
    about(pid, 0, EventKind::Migrate { from, to })
}

pub(super) fn irq(line: u32) -> Event {
    event(EventKind::IrqEntry { line, action: [0; 16] })
}

pub(super) fn irq_of(line: u32, name: &str) -> Event {
    let mut action = [0; 16];
    action[..name.len()].copy_from_slice(name.as_bytes());
    event(EventKind::IrqEntry { line, action })
}

pub(super) fn irq_end(line: u32) -> Event {
    event(EventKind::IrqExit { line })
}

pub(super) fn softirq(vector: u32) -> Event {
    event(EventKind::SoftirqEntry { vector })
}

pub(super) fn softirq_end(vector: u32) -> Event {
    event(EventKind::SoftirqExit { vector })
}

pub(super) fn vector(vector: u32, address: u64, flags: u8) -> Event {
    flagged(flags, event(EventKind::VectorEntry { vector, address }))
}

pub(super) fn vector_end(vector: u32) -> Event {
    event(EventKind::VectorExit { vector })
}

pub(super) fn timer(expires_ns: u64) -> Event {
    event(EventKind::Timer { expires_ns, callback: 0 })
}

pub(super) fn callback(address: u64) -> Event {
    event(EventKind::Timer { expires_ns: 0, callback: address })
}

pub(super) fn ipi(pid: u32, to: u32, callback: u64) -> Event {
    about(pid, 0, EventKind::Ipi { to, callback })
}

pub(super) fn ipi_mask(pid: u32, cpus: u64, callback: u64) -> Event {
    about(pid, 0, EventKind::IpiMask { cpus, callback })
}

pub(super) fn function_end(which: u8, pid: u32, took_ns: u64, address: u64) -> Event {
    flagged(which, about(pid, 0, EventKind::Function { took_ns, address }))
}

pub(super) fn poll_end(name: &str, took_ns: u32) -> Event {
    let mut device = [0; 16];
    device[..name.len()].copy_from_slice(name.as_bytes());
    event(EventKind::Poll { took_ns, device, packets: 63, budget: 64 })
}

pub(super) fn idle(state: u32) -> Event {
    event(EventKind::Idle { state })
}

pub(super) fn fault(pid: u32) -> Event {
    about(pid, 0, EventKind::PageFault { address: 0x1000, instruction: 0 })
}

pub(super) fn nmi(took_ns: u64) -> Event {
    event(EventKind::Nmi { took_ns, handler: 0 })
}

pub(super) fn steal(ns: u64, since_ns: u64) -> Event {
    event(EventKind::Steal { ns, since_ns })
}

pub(super) fn lock(pid: u32) -> Event {
    about(pid, 0, EventKind::LockBegin { lock: 0x77, flags: 0 })
}

pub(super) fn lock_owner(pid: u32, name: &str) -> Event {
    let EventKind::Switch { comm, .. } = switch(pid, 120, name).kind else { unreachable!() };
    about(pid, 120, EventKind::LockOwner { comm })
}

pub(super) fn lock_end(pid: u32) -> Event {
    about(pid, 0, EventKind::LockEnd { lock: 0x77 })
}

pub(super) fn stack(pid: u32, why: u8, number: u64, took_ns: u64) -> Event {
    flagged(why, about(pid, 0, EventKind::Stack { number, took_ns }))
}
