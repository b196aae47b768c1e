//! One thread per CPU that carries out the plan: it waits for the moment, and is there when the
//! delay happens.
//!
//! It runs at FIFO 80, below what is measured, so that its own steps delay nobody; only as a hog it
//! rises above. It changes nothing on the machine that does not go with it, but what `guard.rs`
//! restores.

use std::{
    fs::{File, OpenOptions},
    io::Write as _,
    net::UdpSocket,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc::Sender,
};

use anyhow::{Context, Result, ensure};
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
    root::Root,
    sched::{self, Policy},
    tasks, timer,
};
use tardy_hot::clock::{now_ns, to_timespec};

use super::{
    InjectLogEntry,
    kernel::{CommandWriter, InjectCommand},
    mutex::PiMutex,
    plan::{DelayContext, DelayPlan, InjectedDelay},
};

/// Below the measured threads, and above what else runs.
const BELOW: u32 = 80;
/// Above them.
const ABOVE: u32 = 95;
/// From the wake-up of the worker until it has caused the delay.
const STEPS_NS: i64 = 40_000;
/// A walk over the pages of a process takes no longer, or is not of this use.
const LONGEST_LOCK_NS: i64 = 400_000;
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
    /// What one timer takes to expire, ns.
    pub timer_ns: u64,
    /// A serial line whose interrupts are delayed.
    pub serial: PathBuf,
    /// What its measured threads want when they are asked.
    pub mutex: Option<&'static PiMutex>,
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
        let ready_ns = match delay.kind {
            DelayContext::Exit => BIG_READY_NS,
            DelayContext::Storm => READY_NS + (self.timers(delay.ns) * self.timer_ns * 16) as i64,
            _ => READY_NS,
        };
        let Some(expires_ns) = self.expiry_after(now_ns() + ready_ns) else {
            // The measured thread has not slept yet.
            return Ok(());
        };
        let steps_ns = match delay.kind {
            DelayContext::Hardirq
            | DelayContext::FromIdle
            | DelayContext::Hog
            | DelayContext::Exit
            | DelayContext::Storm => 0,
            _ => STEPS_NS,
        };
        let from_ns = expires_ns - delay.lead_ns as i64 - steps_ns;
        let command = InjectCommand {
            kind: delay.kind,
            tid: sched::thread_id(),
            ns: delay.ns,
            from_ns,
            until_ns: from_ns + delay.ns as i64 + self.interval_ns,
            within: None,
        };
        self.carry_out(&command, expires_ns, socket)
    }

    fn carry_out(
        &self,
        command: &InjectCommand,
        expires_ns: i64,
        socket: &UdpSocket,
    ) -> Result<()> {
        let from_ns = command.from_ns;
        match command.kind {
            // The interrupt that wakes the worker up, or a switch to or from it, is delayed.
            DelayContext::Hardirq
            | DelayContext::Switch
            | DelayContext::FromIdle
            | DelayContext::ToIdle
            | DelayContext::MaskedIdle => {
                self.commands.write(command)?;
                sleep_until(from_ns);
            }
            // What arms its timer after that is delayed.
            DelayContext::Masked => {
                self.commands.write(command)?;
                sleep_until(from_ns);
                sleep_until(now_ns() + STEPS_NS);
            }
            // Whenever such a thread runs.
            DelayContext::SoftirqThread => {
                let until_ns = from_ns + READY_NS * 3;
                self.commands.write(&InjectCommand { until_ns, ..*command })?;
                sleep_until(until_ns);
            }
            // A datagram to oneself raises a softirq on this CPU, which runs at once.
            DelayContext::Softirq => {
                self.commands.write(command)?;
                sleep_until(from_ns);
                socket.send_to(&[0], socket.local_addr()?)?;
                socket.recv(&mut [0])?;
            }
            DelayContext::Nonpreemptible => {
                self.commands.write(command)?;
                sleep_until(from_ns);
                let _ = rustix::process::getppid();
            }
            DelayContext::Hog => self.hog(command)?,
            DelayContext::Storm => self.storm(command)?,
            DelayContext::Exit => self.exit(command)?,
            DelayContext::Stop => self.stop(command)?,
            DelayContext::Migration => self.migrate(expires_ns)?,
            DelayContext::PageFault => self.fault(command, expires_ns)?,
            DelayContext::Lock => {
                self.lock(expires_ns - command.ns as i64 % LONGEST_LOCK_NS, expires_ns)?;
            }
            DelayContext::Device => self.interrupt(command)?,
            DelayContext::IrqThread => self.threaded_interrupt(command)?,
            DelayContext::Arming => self.arming(command, expires_ns)?,
            DelayContext::Overlap => self.overlap(command, expires_ns, socket)?,
            DelayContext::PiMutex => self.mutex(command)?,
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

    /// How many timers that expire at once take about that time.
    fn timers(&self, ns: u64) -> u64 {
        (ns / self.timer_ns).clamp(200, 8_000)
    }

    /// As many timers as take about that time.
    fn storm(&self, command: &InjectCommand) -> Result<()> {
        let value = to_rustix(command.from_ns);
        let setting = Itimerspec { it_interval: to_rustix(0), it_value: value };
        let mut timers = Vec::new();
        for _ in 0..self.timers(command.ns) {
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
        self.note(&DelayContext::Migration.to_string(), at_ns, expires_ns, *tid);
        Ok(())
    }

    /// Takes the right to write from all pages of the measured process while its thread sleeps:
    /// the return to user space then is a page fault.
    fn fault(&self, command: &InjectCommand, expires_ns: i64) -> Result<()> {
        self.commands.write(command)?;
        sleep_until(expires_ns - self.interval_ns / 4);
        self.walk_pages(expires_ns)?;
        sleep_until(command.until_ns);
        Ok(())
    }

    /// Walks over all pages of the measured process, whose lock it has meanwhile, and takes the
    /// right to write from them: a thread of it that is woken then faults, and waits for the lock.
    fn lock(&self, from_ns: i64, expires_ns: i64) -> Result<()> {
        sleep_until(from_ns);
        self.walk_pages(expires_ns)
    }

    /// Takes the right to write from all pages of the measured process, and logs for how long: any
    /// of its threads may wait for the lock, and a real-time kernel then raises this one to its
    /// priority, which may be above the measured one's.
    fn walk_pages(&self, expires_ns: i64) -> Result<()> {
        let at_ns = now_ns();
        std::fs::write(format!("/proc/{}/clear_refs", self.target), "4")?;
        self.note("page_walk", at_ns, expires_ns, sched::thread_id());
        Ok(())
    }

    /// A byte to a serial line has it interrupt, once that is sent.
    fn interrupt(&self, command: &InjectCommand) -> Result<()> {
        let mut line = self.open_serial()?;
        self.commands.write(command)?;
        sleep_until(command.from_ns);
        Ok(line.write_all(b"\n")?)
    }

    /// The same, of a handler that is a thread, which goes before the measured one. It is there for
    /// as long as the line is open.
    fn threaded_interrupt(&self, command: &InjectCommand) -> Result<()> {
        let mut line = self.open_serial()?;
        let tid = self
            .irq_thread()
            .with_context(|| format!("the interrupt of {} has no thread", self.serial.display()))?;
        let mut raise = Command::new("chrt");
        let status = raise.args(["--fifo", "--pid", &ABOVE.to_string(), &tid.to_string()]).status();
        ensure!(status?.success(), "chrt refused to raise {tid}");
        self.commands.write(&InjectCommand { tid, ..*command })?;
        sleep_until(command.from_ns);
        line.write_all(b"\n")?;
        sleep_until(command.until_ns);
        Ok(())
    }

    fn open_serial(&self) -> Result<File> {
        let line = OpenOptions::new().write(true).open(&self.serial);
        line.with_context(|| format!("cannot open {}", self.serial.display()))
    }

    /// The thread of the serial line's interrupt: `irq/3-ttyS1`.
    fn irq_thread(&self) -> Option<i32> {
        let root = Root::default();
        let ending = format!("-{}", self.serial.file_name()?.to_str()?);
        let is_it = |tid: &i32| {
            let name = tasks::name(&root, *tid).unwrap_or_default();
            name.starts_with("irq/") && name.ends_with(&ending)
        };
        tasks::numbers(Path::new("/proc")).into_iter().find(is_it)
    }

    /// Has the measured thread want the mutex while this one has it: half of the time at work,
    /// half of the time asleep.
    fn mutex(&self, command: &InjectCommand) -> Result<()> {
        let mutex = self.mutex.context("--mutex FILE names the mutex of that process")?;
        let own = self.threads.iter().find(|(_, cpu)| *cpu == self.cpu);
        let Some((wants_it, _)) = own else { return Ok(()) };
        self.commands.write(command)?;
        sleep_until(command.from_ns);
        let held = mutex.lock()?;
        held.ask_of(self.target, *wants_it)?;
        let until_ns = command.from_ns + command.ns as i64;
        if command.ns.is_multiple_of(2) {
            sleep_until(until_ns);
        }
        while now_ns() < until_ns {
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// From the wake-up before: the thread is to be awake at its expiry.
    fn arming(&self, command: &InjectCommand, expires_ns: i64) -> Result<()> {
        let from_ns = expires_ns - self.interval_ns;
        let until_ns = from_ns + self.interval_ns;
        let ns = command.ns + self.interval_ns.unsigned_abs();
        self.commands.write(&InjectCommand { ns, from_ns, until_ns, ..*command })?;
        sleep_until(until_ns + ns as i64);
        Ok(())
    }

    /// A delay that interrupts can interrupt, and in it a shorter one of the timer's interrupt.
    fn overlap(&self, command: &InjectCommand, expires_ns: i64, socket: &UdpSocket) -> Result<()> {
        let outer = [DelayContext::Softirq, DelayContext::Nonpreemptible, DelayContext::Hog];
        let kind = outer[command.ns as usize % outer.len()];
        let within = Some((DelayContext::Hardirq, command.ns / 3));
        self.carry_out(&InjectCommand { kind, within, ..*command }, expires_ns, socket)
    }

    /// Logs what has been going on here since `at_ns`.
    fn note(&self, kind: &str, at_ns: i64, expires_ns: i64, tid: i32) {
        let line = InjectLogEntry {
            kind: kind.to_owned(),
            cpu: self.cpu,
            at_ns: at_ns as u64,
            ns: (now_ns() - at_ns) as u64,
            expires_ns: expires_ns as u64,
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
