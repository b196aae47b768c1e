//! One thread per CPU that carries out the plan: it waits for the moment, and is there when the
//! delay happens.
//!
//! It runs at FIFO 80, below what is measured, so that its own steps delay nobody; only as a hog
//! it rises above. It changes nothing on the machine that does not go with it, but what
//! `guard.rs` puts back.

use std::{
    net::UdpSocket,
    process::{Command, Stdio},
    sync::mpsc::Sender,
};

use anyhow::{Context, Result};
use rustix::{
    process::{Pid, Signal, kill_process},
    time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    },
};
use tardy::sys::{
    child,
    cpus::Cpus,
    sched::{self, Policy},
    timer,
};
use tardy_hot::clock::{now_ns, to_timespec};

use super::{
    InjectLogEntry,
    kernel::{CommandWriter, InjectCommand},
    plan::{DelayContext, DelayPlan, InjectedDelay},
};

/// Below the measured threads, and above what else runs.
const BELOW: u32 = 80;
/// Above them.
const ABOVE: u32 = 95;
/// From the wake-up of the worker until it has caused the delay.
const STEPS_NS: i64 = 40_000;
/// Time to prepare a delay: thousands of timers, a big process.
const READY_NS: i64 = 20_000_000;
const BIG_READY_NS: i64 = 120_000_000;

/// What one worker knows.
pub(super) struct InjectWorker {
    pub cpu: u32,
    /// The measured process.
    pub target: i32,
    /// Its measured threads and their CPUs.
    pub threads: Vec<(i32, u32)>,
    /// Time from one expiry to the next.
    pub interval_ns: i64,
    pub until_ns: i64,
    pub plan: DelayPlan,
    pub commands: CommandWriter,
    pub log: Sender<InjectLogEntry>,
}

impl InjectWorker {
    /// Works until its time is over.
    pub(super) fn run(mut self) -> Result<()> {
        [self.cpu].into_iter().collect::<Cpus>().pin_this_thread()?;
        timer::set_slack(1)?;
        sched::set_this_thread(Policy::Fifo, BELOW).context("FIFO 80 is not available")?;
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        loop {
            let delay = self.plan.next();
            let start_ns = now_ns() + delay.gap_ns as i64;
            if start_ns + BIG_READY_NS > self.until_ns {
                return Ok(());
            }
            sleep_until(start_ns);
            self.inject(&delay, &socket)?;
        }
    }

    fn inject(&self, delay: &InjectedDelay, socket: &UdpSocket) -> Result<()> {
        let ready_ns = if delay.kind == DelayContext::Exit { BIG_READY_NS } else { READY_NS };
        let Some(expires_ns) = self.expiry_after(now_ns() + ready_ns) else {
            // The measured thread has not slept yet.
            return Ok(());
        };
        let steps_ns = match delay.kind {
            DelayContext::Softirq
            | DelayContext::Switch
            | DelayContext::Nonpreemptible
            | DelayContext::Stop => STEPS_NS,
            _ => 0,
        };
        let from_ns = expires_ns - delay.lead_ns as i64 - steps_ns;
        let command = InjectCommand {
            kind: delay.kind,
            tid: sched::thread_id(),
            ns: delay.ns,
            from_ns,
            until_ns: from_ns + delay.ns as i64 + self.interval_ns,
        };
        match delay.kind {
            // The interrupt that wakes the worker up, or the switch to it, is delayed.
            DelayContext::Hardirq | DelayContext::Switch => {
                self.commands.write(&command)?;
                sleep_until(from_ns);
            }
            // A datagram to oneself raises a softirq on this CPU, which runs at once.
            DelayContext::Softirq => {
                self.commands.write(&command)?;
                sleep_until(from_ns);
                socket.send_to(&[0], socket.local_addr()?)?;
                socket.recv(&mut [0])?;
            }
            DelayContext::Nonpreemptible => {
                self.commands.write(&command)?;
                sleep_until(from_ns);
                let _ = rustix::process::getppid();
            }
            DelayContext::Hog => self.hog(&command)?,
            DelayContext::Storm => self.storm(&command)?,
            DelayContext::Exit => self.exit(&command)?,
            DelayContext::Stop => self.stop(&command)?,
            DelayContext::Migration => self.migrate(expires_ns)?,
            DelayContext::PageFault => self.fault(&command, expires_ns)?,
        }
        Ok(())
    }

    /// The first expiry of this CPU's measured thread after `ns`, from its period.
    fn expiry_after(&self, ns: i64) -> Option<i64> {
        let known_ns = self.commands.expires_ns(self.cpu)?;
        let periods = (ns - known_ns).max(0) / self.interval_ns + 1;
        Some(known_ns + periods * self.interval_ns)
    }

    fn hog(&self, command: &InjectCommand) -> Result<()> {
        self.commands.write(command)?;
        sched::set_this_thread(Policy::Fifo, ABOVE)?;
        sleep_until(command.from_ns);
        while now_ns() < command.from_ns + command.ns as i64 {
            std::hint::spin_loop();
        }
        // The delayed thread continues right here; what follows delays no thread.
        sched::set_this_thread(Policy::Fifo, BELOW)?;
        self.commands.write(&InjectCommand { until_ns: 0, ..*command })
    }

    /// As many timers that expire at once as take about that time.
    fn storm(&self, command: &InjectCommand) -> Result<()> {
        let count = (command.ns / 120).clamp(200, 8_000);
        let value = to_rustix(command.from_ns);
        let setting = Itimerspec { it_interval: to_rustix(0), it_value: value };
        let mut timers = Vec::new();
        for _ in 0..count {
            // As many as the limit on open files allows.
            let Ok(timer) = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC) else {
                break;
            };
            timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &setting)?;
            timers.push(timer);
        }
        self.commands.write(command)?;
        sleep_until(command.until_ns);
        Ok(())
    }

    /// A child that grows big and exits at that moment; how long it keeps the CPU is logged.
    fn exit(&self, command: &InjectCommand) -> Result<()> {
        let bytes = command.ns * 12;
        let mut child = Command::new(std::env::current_exe()?);
        child.args(["inject-exit", &bytes.to_string(), &command.from_ns.to_string()]);
        child::end_with_this_thread(&mut child);
        let mut child = child.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        let tid = child.id() as i32;
        // Its end may take longer than it should, where others want the CPU.
        self.commands.write(&InjectCommand {
            tid,
            until_ns: command.from_ns + 50_000_000,
            ..*command
        })?;
        child.wait()?;
        Ok(())
    }

    /// The programs log how long each thread is stopped.
    fn stop(&self, command: &InjectCommand) -> Result<()> {
        let Some(pid) = Pid::from_raw(self.target) else { return Ok(()) };
        sleep_until(command.from_ns);
        kill_process(pid, Signal::STOP)?;
        sleep_until(command.from_ns + command.ns as i64);
        Ok(kill_process(pid, Signal::CONT)?)
    }

    /// While the measured thread sleeps; for one expiry.
    fn migrate(&self, expires_ns: i64) -> Result<()> {
        let own = self.threads.iter().find(|(_, cpu)| *cpu == self.cpu);
        let other = self.threads.iter().find(|(_, cpu)| *cpu != self.cpu);
        let (Some((tid, _)), Some((_, other))) = (own, other) else { return Ok(()) };
        sleep_until(expires_ns - self.interval_ns / 4);
        let at_ns = now_ns();
        [*other].into_iter().collect::<Cpus>().pin(*tid)?;
        sleep_until(expires_ns + self.interval_ns / 2);
        [self.cpu].into_iter().collect::<Cpus>().pin(*tid)?;
        self.note(DelayContext::Migration, self.cpu, (at_ns, now_ns()), Some(expires_ns), *tid);
        Ok(())
    }

    /// Takes the right to write from all pages of the measured process while its thread sleeps:
    /// the return to user space then is a page fault.
    fn fault(&self, command: &InjectCommand, expires_ns: i64) -> Result<()> {
        self.commands.write(command)?;
        sleep_until(expires_ns - self.interval_ns / 4);
        std::fs::write(format!("/proc/{}/clear_refs", self.target), "4")?;
        sleep_until(command.until_ns);
        Ok(())
    }

    fn note(
        &self,
        kind: DelayContext,
        cpu: u32,
        span: (i64, i64),
        expires_ns: Option<i64>,
        tid: i32,
    ) {
        let line = InjectLogEntry {
            kind: kind.to_string(),
            cpu,
            at_ns: span.0 as u64,
            ns: (span.1 - span.0) as u64,
            expires_ns: expires_ns.unwrap_or(0) as u64,
            pid: u32::try_from(tid).ok(),
        };
        // The receiver is gone only when all is over.
        let _ = self.log.send(line);
    }
}

fn to_rustix(ns: i64) -> Timespec {
    let time = to_timespec(ns);
    Timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_nsec }
}

/// Sleeps until a time of `CLOCK_MONOTONIC`.
pub(super) fn sleep_until(ns: i64) {
    let clock = rustix::thread::ClockId::Monotonic;
    while now_ns() < ns {
        // Signals end it early.
        let _ = rustix::thread::clock_nanosleep_absolute(clock, &to_rustix(ns));
    }
}
