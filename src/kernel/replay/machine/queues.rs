//! What tasks wait for at each other: locks and messages.

use std::collections::VecDeque;

use super::{CALL_NS, Machine, READ, SHORT_CALL_NS};

const FUTEX_WAIT: u64 = 128;
const FUTEX_LOCK_PI: u64 = 128 | 6;
const LOCK_WITH_WAITERS: u64 = 2;
const FUTEX: u32 = 202;

/// Where the lock of that number is in the memory of its program.
pub(crate) fn lock_address(lock: u32) -> u64 {
    0x10_0000 + u64::from(lock) * 0x100
}

/// A lock, or a queue of messages.
#[derive(Debug, Default)]
pub(super) struct Queue {
    owner: Option<usize>,
    waiting: VecDeque<usize>,
    messages: u32,
}

impl Machine {
    pub(super) fn lock(
        &mut self,
        at_ns: u64,
        cpu: usize,
        task: usize,
        (lock, inherits): (u32, bool),
    ) {
        let queue = self.queues.entry(lock).or_default();
        let Some(owner) = queue.owner else {
            queue.owner = Some(task);
            self.tell_owner(at_ns, cpu, lock);
            return self.go_on(at_ns, task, 0);
        };
        queue.waiting.push_back(task);
        let command = if inherits { FUTEX_LOCK_PI } else { FUTEX_WAIT };
        let arguments = [lock_address(lock), command, LOCK_WITH_WAITERS];
        self.call_with(at_ns, cpu, task, (FUTEX, arguments));
        let (tid, prio) = (self.tasks[owner].tid, self.tasks[task].prio);
        if inherits {
            self.tell(at_ns + CALL_NS / 2, cpu, &format!("pi_wait {tid}"));
            self.set_prio(at_ns + CALL_NS / 2, cpu, owner, prio);
        }
        self.block(at_ns + CALL_NS, cpu, "S");
    }

    /// Its place in the queue follows.
    fn set_prio(&mut self, at_ns: u64, cpu: usize, task: usize, prio: i32) {
        let (tid, own) = (self.tasks[task].tid, self.tasks[task].plan.cpu);
        self.tell(at_ns, cpu, &format!("prio {tid} {prio}"));
        self.tasks[task].prio = prio;
        let mut ready: Vec<usize> = self.cpus[own].ready.drain(..).collect();
        ready.sort_by_key(|other| self.tasks[*other].prio);
        self.cpus[own].ready.extend(ready);
    }

    /// As the C library keeps it, beside the lock.
    fn tell_owner(&mut self, at_ns: u64, cpu: usize, lock: u32) {
        let owner = self.queues.get(&lock).and_then(|queue| queue.owner);
        let tid = owner.map_or(0, |task| self.tasks[task].tid);
        self.tell(at_ns, cpu, &format!("word {} {tid}", lock_address(lock) + 8));
    }

    pub(super) fn unlock(&mut self, at_ns: u64, cpu: usize, task: usize, lock: u32) {
        let queue = self.queues.entry(lock).or_default();
        queue.owner = queue.waiting.pop_front();
        let next = queue.owner;
        self.tell_owner(at_ns, cpu, lock);
        let Some(next) = next else { return self.go_on(at_ns, task, 0) };
        self.call(at_ns, cpu, task, FUTEX);
        let prio = self.tasks[task].plan.prio;
        if self.tasks[task].prio != prio {
            self.set_prio(at_ns + 200, cpu, task, prio);
        }
        self.make_ready(at_ns + 500, cpu, next);
        self.end_call(at_ns, cpu, task);
    }

    /// After a call that has woken somebody.
    fn end_call(&mut self, at_ns: u64, cpu: usize, task: usize) {
        let own = &mut self.tasks[task];
        (own.left_ns, own.since_ns) = (0, at_ns);
        if !self.reschedule(at_ns + SHORT_CALL_NS, cpu) {
            self.go_on(at_ns + SHORT_CALL_NS, task, 0);
        }
    }

    pub(super) fn receive(&mut self, at_ns: u64, cpu: usize, task: usize, queue: u32) {
        let queue = self.queues.entry(queue).or_default();
        if queue.messages > 0 {
            queue.messages -= 1;
            return self.go_on(at_ns, task, 0);
        }
        queue.waiting.push_back(task);
        self.call(at_ns, cpu, task, READ);
        self.block(at_ns + CALL_NS, cpu, "S");
    }

    pub(super) fn send(&mut self, at_ns: u64, cpu: usize, task: usize, queue: u32) {
        let queue = self.queues.entry(queue).or_default();
        match queue.waiting.pop_front() {
            None => queue.messages += 1,
            Some(next) => self.make_ready(at_ns + 500, cpu, next),
        }
        self.end_call(at_ns, cpu, task);
    }
}
