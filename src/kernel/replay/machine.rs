//! A small machine whose tasks do given steps, on CPUs with a run queue each; what its kernel does
//! then, as events. Every delay is a constant, so that figures are exact.
//!
//! Events are constructed in the order in which Linux emits them: a timer's interrupt, its expiry,
//! the wake-up and the end of the interrupt, and then the switch. Tasks of one priority do not
//! preempt each other.

mod queues;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, VecDeque},
    fmt::Write as _,
};

use super::FIRST_TID;
use queues::Queue;
pub(crate) use queues::lock_address;

pub(crate) use super::steps::{
    CALL_NS, DISPATCH_NS, ENTRY_NS, Happened, LATE_NS, RETURN_NS, SLACK_NS, Step, TaskPlan,
    WAKING_NS,
};

/// What a call takes that does not sleep.
pub(crate) const SHORT_CALL_NS: u64 = 1_000;
/// From a wake-up on another CPU to the switch there.
pub(crate) const REMOTE_NS: u64 = 2_000;

const NANOSLEEP: u32 = 230;
const READ: u32 = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    Begin(usize),
    /// Its timer expires.
    Timer(usize),
    /// A device is ready.
    Device(usize),
    /// It has had the CPU for long enough; by its turn of the CPU.
    Next(usize, u64),
    /// Somebody was woken from elsewhere.
    Look(usize),
}

#[derive(Debug)]
struct Task {
    plan: TaskPlan,
    tid: u32,
    prio: i32,
    at: usize,
    /// Of CPU time until its next step.
    left_ns: u64,
    since_ns: u64,
    turn: u64,
    last_expiry_ns: u64,
    in_call: bool,
}

#[derive(Debug, Default)]
struct Cpu {
    current: Option<usize>,
    ready: VecDeque<usize>,
    /// What the kernel does until then is told already.
    busy_until_ns: u64,
}

/// The events of a machine.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    tasks: Vec<Task>,
    cpus: Vec<Cpu>,
    queues: BTreeMap<u32, Queue>,
    actions: BinaryHeap<Reverse<(u64, u64, Action)>>,
    number: u64,
    lines: Vec<(u64, String)>,
}

impl Machine {
    /// Runs these tasks until then. Their numbers follow each other from [`FIRST_TID`] on, which is
    /// also that of their process.
    pub(crate) fn run(plans: Vec<TaskPlan>, until_ns: u64) -> Happened {
        let mut own = Self::default();
        let mut tasks = String::new();
        for (number, plan) in (0_u32..).zip(plans) {
            let tid = FIRST_TID + number;
            let _ = writeln!(tasks, "task {tid} {} {} {FIRST_TID}", plan.prio, plan.name);
            own.cpus.resize_with(own.cpus.len().max(plan.cpu + 1), Cpu::default);
            own.add(plan.at_ns, Action::Begin(own.tasks.len()));
            let prio = plan.prio;
            own.tasks.push(Task {
                plan,
                tid,
                prio,
                at: 0,
                left_ns: 0,
                since_ns: 0,
                turn: 0,
                last_expiry_ns: 0,
                in_call: false,
            });
        }
        while let Some(Reverse((at_ns, _, action))) = own.actions.pop() {
            if at_ns >= until_ns {
                break;
            }
            let busy_until_ns = own.cpus[own.cpu_of(action)].busy_until_ns;
            match at_ns < busy_until_ns {
                true => own.add(busy_until_ns, action),
                false => own.act(at_ns, action),
            }
        }
        own.lines.sort_by_key(|(at_ns, _)| *at_ns);
        Happened { tasks, lines: own.lines }
    }

    fn add(&mut self, at_ns: u64, action: Action) {
        self.number += 1;
        self.actions.push(Reverse((at_ns, self.number, action)));
    }

    fn cpu_of(&self, action: Action) -> usize {
        match action {
            Action::Begin(task)
            | Action::Timer(task)
            | Action::Device(task)
            | Action::Next(task, _) => self.tasks[task].plan.cpu,
            Action::Look(cpu) => cpu,
        }
    }

    fn tell(&mut self, at_ns: u64, cpu: usize, what: &str) {
        self.cpus[cpu].busy_until_ns = self.cpus[cpu].busy_until_ns.max(at_ns);
        self.lines.push((at_ns, format!("{at_ns} {cpu} {what}")));
    }

    fn act(&mut self, at_ns: u64, action: Action) {
        let cpu = self.cpu_of(action);
        match action {
            Action::Begin(task) => {
                let tid = self.tasks[task].tid;
                self.tell(at_ns, cpu, &format!("fork {tid}"));
                // No wake-up tells of the first one.
                self.queue(cpu, task);
                self.reschedule(at_ns + DISPATCH_NS, cpu);
            }
            Action::Timer(task) => self.expire(at_ns, cpu, task),
            Action::Device(task) => {
                self.tell(at_ns, cpu, "irq 5");
                self.make_ready(at_ns + WAKING_NS, cpu, task);
                self.tell(at_ns + WAKING_NS + 500, cpu, "irq_end 5");
                self.reschedule(at_ns + WAKING_NS + DISPATCH_NS, cpu);
            }
            Action::Next(task, turn) => {
                if self.cpus[cpu].current == Some(task) && self.tasks[task].turn == turn {
                    self.step(at_ns, cpu, task);
                }
            }
            Action::Look(cpu) => {
                self.reschedule(at_ns, cpu);
            }
        }
    }

    /// The timer of a sleep expires, whether its task has left its CPU by now or not.
    fn expire(&mut self, at_ns: u64, cpu: usize, task: usize) {
        let (tid, is_current) = (self.tasks[task].tid, self.cpus[cpu].current == Some(task));
        let is_asleep = !is_current && !self.cpus[cpu].ready.contains(&task);
        let entry_ns = at_ns + ENTRY_NS;
        self.tell(entry_ns, cpu, "timer_irq");
        self.tell(entry_ns + WAKING_NS / 2, cpu, &format!("expire {tid}"));
        let waking_ns = entry_ns + WAKING_NS;
        if is_asleep {
            self.make_ready(waking_ns, cpu, task);
        } else {
            self.tell(waking_ns, cpu, &format!("waking {tid}"));
        }
        self.tell(waking_ns, cpu, "expired");
        self.tell(waking_ns + DISPATCH_NS / 2, cpu, "timer_irq_end");
        if is_asleep {
            self.reschedule(waking_ns + DISPATCH_NS, cpu);
        } else if is_current {
            self.go_on(waking_ns + DISPATCH_NS, task, 0);
        }
    }

    /// Somebody on `cpu` wakes it.
    fn make_ready(&mut self, at_ns: u64, cpu: usize, task: usize) {
        let tid = self.tasks[task].tid;
        self.tell(at_ns, cpu, &format!("waking {tid}"));
        let own = self.tasks[task].plan.cpu;
        self.queue(own, task);
        if own != cpu {
            self.add(at_ns + REMOTE_NS, Action::Look(own));
        }
    }

    /// It wants the CPU, after the others of its priority.
    fn queue(&mut self, cpu: usize, task: usize) {
        let prio = self.tasks[task].prio;
        self.tasks[task].left_ns = RETURN_NS;
        let before = |other: &&usize| self.tasks[**other].prio <= prio;
        let place = self.cpus[cpu].ready.iter().take_while(before).count();
        self.cpus[cpu].ready.insert(place, task);
    }

    /// Switches to who runs first, if that is another one; whether it is.
    fn reschedule(&mut self, at_ns: u64, cpu: usize) -> bool {
        let Some(&next) = self.cpus[cpu].ready.front() else { return false };
        let current = self.cpus[cpu].current;
        if current.is_some_and(|own| self.tasks[own].prio <= self.tasks[next].prio) {
            return false;
        }
        self.cpus[cpu].ready.pop_front();
        if let Some(own) = current {
            let task = &mut self.tasks[own];
            task.left_ns = task.left_ns.saturating_sub(at_ns - task.since_ns);
            task.turn += 1;
            let prio = task.prio;
            // It is the first of its priority again.
            let before = |other: &&usize| self.tasks[**other].prio < prio;
            let place = self.cpus[cpu].ready.iter().take_while(before).count();
            self.cpus[cpu].ready.insert(place, own);
        }
        self.switch(at_ns, cpu, if current.is_some() { "R+" } else { "R" }, Some(next));
        true
    }

    fn switch(&mut self, at_ns: u64, cpu: usize, state: &str, next: Option<usize>) {
        let tid = next.map_or(0, |task| self.tasks[task].tid);
        self.tell(at_ns, cpu, &format!("switch {state} {tid}"));
        self.cpus[cpu].current = next;
        if let Some(task) = next {
            if std::mem::take(&mut self.tasks[task].in_call) {
                self.tell(at_ns, cpu, "sysret");
            }
            let left_ns = self.tasks[task].left_ns;
            self.go_on(at_ns, task, left_ns);
        }
    }

    /// The task has the CPU, and its next step is after `left_ns` of it.
    fn go_on(&mut self, at_ns: u64, task: usize, left_ns: u64) {
        let own = &mut self.tasks[task];
        (own.since_ns, own.left_ns) = (at_ns, left_ns);
        own.turn += 1;
        let turn = own.turn;
        self.add(at_ns + left_ns, Action::Next(task, turn));
    }

    /// It leaves its CPU.
    fn block(&mut self, at_ns: u64, cpu: usize, state: &str) {
        let next = self.cpus[cpu].ready.pop_front();
        self.switch(at_ns, cpu, state, next);
    }

    fn call(&mut self, at_ns: u64, cpu: usize, task: usize, number: u32) {
        self.call_with(at_ns, cpu, task, (number, [0; 3]));
    }

    fn call_with(
        &mut self,
        at_ns: u64,
        cpu: usize,
        task: usize,
        (number, [a, b, c]): (u32, [u64; 3]),
    ) {
        self.tasks[task].in_call = true;
        self.tell(at_ns, cpu, &format!("syscall {number} {a} {b} {c}"));
    }

    fn sleep(&mut self, at_ns: u64, cpu: usize, task: usize, (soft_ns, mode): (u64, &str)) {
        let slack_ns = if self.tasks[task].prio < 100 { 0 } else { SLACK_NS };
        let hard_ns = soft_ns + slack_ns;
        self.call(at_ns, cpu, task, NANOSLEEP);
        self.tell(at_ns + CALL_NS / 2, cpu, &format!("start {hard_ns} {soft_ns} {mode}"));
        // The CPU's clock is set to the hard expiry; what is over by then expires at once.
        let is_over = hard_ns <= at_ns + CALL_NS / 2;
        self.add(hard_ns.max(at_ns + CALL_NS / 2), Action::Timer(task));
        if is_over {
            // It waits for nothing, and continues when it has expired.
            self.tasks[task].turn += 1;
        } else {
            self.block(at_ns + CALL_NS, cpu, "S");
        }
    }

    fn step(&mut self, at_ns: u64, cpu: usize, task: usize) {
        if std::mem::take(&mut self.tasks[task].in_call) {
            self.tell(at_ns, cpu, "sysret");
        }
        let own = &mut self.tasks[task];
        let step = own.plan.steps[own.at % own.plan.steps.len()];
        own.at += 1;
        match step {
            Step::UntilNext(period_ns, after_ns) => {
                let next_ns = (at_ns + period_ns - after_ns) / period_ns * period_ns + after_ns;
                own.last_expiry_ns = next_ns;
                self.sleep(at_ns, cpu, task, (next_ns, "abs"));
            }
            Step::UntilAfterLast(period_ns) => {
                let last_ns = match own.last_expiry_ns {
                    0 => at_ns,
                    last_ns => last_ns,
                };
                own.last_expiry_ns = last_ns + period_ns;
                self.sleep(at_ns, cpu, task, (last_ns + period_ns, "abs"));
            }
            Step::For(ns) => self.sleep(at_ns, cpu, task, (at_ns + ns, "rel")),
            Step::Work(ns) => self.go_on(at_ns, task, ns),
            Step::Fault(count) => {
                self.tell(at_ns, cpu, &format!("faults {count} 0"));
                self.go_on(at_ns, task, 0);
            }
            Step::Lock(lock) | Step::LockPi(lock) => {
                self.lock(at_ns, cpu, task, (lock, matches!(step, Step::LockPi(_))));
            }
            Step::Unlock(lock) | Step::UnlockPi(lock) => self.unlock(at_ns, cpu, task, lock),
            Step::Read(ns) => {
                self.call(at_ns, cpu, task, READ);
                self.add(at_ns + CALL_NS + ns, Action::Device(task));
                self.block(at_ns + CALL_NS, cpu, "IO");
            }
            Step::Receive(queue) => self.receive(at_ns, cpu, task, queue),
            Step::Send(queue) => self.send(at_ns, cpu, task, queue),
            Step::Exit => {
                self.tell(at_ns, cpu, "exit");
                self.block(at_ns + CALL_NS, cpu, "X");
            }
        }
    }
}
