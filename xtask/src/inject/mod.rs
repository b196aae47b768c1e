//! `cargo xtask inject`: delays of known length, in a known context, written down: the truth that
//! `tardy why` is compared with.
//!
//! What is injected is aimed at the expiries of the measured threads of a running process. Where
//! and how long is random, the same for the same seed. One line of JSON a delay goes to standard
//! output. Delays take a thirtieth of the time, none is longer than 5 ms, and all ends after
//! `--duration`, or with the process, however that ends.

mod guard;
mod kernel;
mod mutex;
mod plan;
mod worker;

use std::{
    fs,
    io::Write,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use anyhow::{Result, ensure};
use clap::Args;
use serde::Serialize;
use tardy::{
    sys::{cpus::Cpus, open_files, process, root::Root, tasks},
    units,
};
use tardy_hot::clock::now_ns;

use kernel::InjectPrograms;
use mutex::PiMutex;
use plan::{DelayContext, DelayPlan};
use worker::InjectWorker;

pub(crate) use guard::{GuardFlags, run as run_guard};
pub(crate) use mutex::{ASKED_FOR, run_measured};

/// To load the programs takes a CPU for a while, which makes other wake-ups late: for so long the
/// measurement analyzes those before the first delay.
const SETTLE: Duration = Duration::from_secs(2);

/// Delay a running measurement by known times; a log on stdout
#[derive(Debug, Args)]
pub(crate) struct InjectFlags {
    /// The measuring process
    #[arg(long, value_name = "PID")]
    target: i32,
    /// What the names of its measured threads begin with
    #[arg(long, default_value = "tardy/cpu")]
    threads: String,
    /// Kinds, by comma
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "hardirq,softirq,switch,hog,nonpreemptible,exit,storm,stop"
    )]
    kinds: Vec<DelayContext>,
    /// From one measured expiry to the next
    #[arg(long, default_value = "1ms", value_parser = time)]
    interval: i64,
    /// When all ends, if the process has not ended before
    #[arg(long, default_value = "30s", value_parser = time)]
    duration: i64,
    /// What one timer takes to expire on this machine
    #[arg(long, default_value = "120ns", value_parser = time)]
    timer: i64,
    /// A serial line to whose interrupts the delays of kinds device and irq_thread are added
    #[arg(long, default_value = "/dev/ttyS1", value_name = "FILE")]
    serial: PathBuf,
    /// The file of the mutex that the process wants when it is asked, for delays of kind pi_mutex;
    /// to have one, it was started as `TARDY_INJECT_MUTEX=FILE xtask run timer ...`
    #[arg(long, value_name = "FILE")]
    mutex: Option<PathBuf>,
    /// Where and how long is random, the same for the same seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// One delay, as it was.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct InjectLogEntry {
    /// Its kind.
    pub kind: String,
    /// Where.
    pub cpu: u32,
    /// From when, `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// How long.
    pub ns: u64,
    /// The expiry that the CPU's measured thread waited for.
    pub expires_ns: u64,
    /// Whose doing it was, or the stopped or moved thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

fn time(text: &str) -> Result<i64, String> {
    let time: units::Nanos = text.parse().map_err(|error| format!("{error}"))?;
    Ok(time.0)
}

/// Injects until the time is over.
pub(crate) fn run(options: &InjectFlags) -> Result<()> {
    let threads = measured(options)?;
    let protects = [DelayContext::PageFault, DelayContext::Lock];
    ensure!(
        !options.kinds.iter().any(|kind| protects.contains(kind)) || can_protect_pages(),
        "page_fault and lock cannot be injected: the kernel was built without CONFIG_MEM_SOFT_DIRTY"
    );
    let names: Vec<String> = threads.iter().map(|(_, cpu)| cpu.to_string()).collect();
    super::bench::say(&format!("injecting on CPUs {}, seed {}", names.join(","), options.seed));
    open_files::raise_open_files()?;
    let mutex = options.mutex.as_deref().map(PiMutex::map).transpose()?;
    // Before there are threads: what restores survives this process.
    let _guard = guard::post(options.target, &threads)?;
    let mut kernel = InjectPrograms::load(&threads, &options.kinds)?;
    kernel.attach()?;
    thread::sleep(SETTLE);
    let (sender, lines) = channel();
    let log = kernel.log(sender.clone())?;
    let until_ns = now_ns() + options.duration;
    let mut workers = Vec::new();
    for (n, (_, cpu)) in threads.iter().enumerate() {
        let worker = InjectWorker {
            cpu: *cpu,
            target: options.target,
            threads: threads.clone(),
            interval_ns: options.interval.max(1),
            until_ns,
            serial: options.serial.clone(),
            mutex,
            timer_ns: options.timer.max(1).unsigned_abs(),
            plan: DelayPlan::new(options.seed, *cpu, kinds_of(&options.kinds, n)),
            commands: kernel.command_writer(*cpu)?,
            log: sender.clone(),
        };
        let name = format!("inject/cpu{cpu}");
        workers.push(thread::Builder::new().name(name).spawn(|| worker.run())?);
    }
    while workers.iter().any(|worker| !worker.is_finished()) {
        thread::sleep(Duration::from_millis(20));
        log.consume()?;
        write(&lines)?;
    }
    for worker in workers {
        worker.join().map_err(|_| anyhow::anyhow!("a worker died"))??;
    }
    log.consume()?;
    write(&lines)?;
    let lost = kernel.lost()?;
    ensure!(lost == 0, "{lost} delays found no place in the log");
    Ok(())
}

/// Whether writing 4 to `clear_refs` takes the right to write from pages: only where the kernel
/// keeps, and shows, the mark that a page was written to since.
fn can_protect_pages() -> bool {
    const WRITTEN: u64 = 1 << 55;
    let page = vec![1_u8; 4096];
    let at = page.as_ptr() as u64 / 4096 * 8;
    let mut entry = [0; 8];
    let read = fs::File::open("/proc/self/pagemap").and_then(|map| map.read_at(&mut entry, at));
    std::hint::black_box(&page);
    read.is_ok() && u64::from_ne_bytes(entry) & WRITTEN != 0
}

/// SIGSTOP hits the whole process, so one worker sends it.
fn kinds_of(kinds: &[DelayContext], worker: usize) -> Vec<DelayContext> {
    let own = |kind: &DelayContext| worker == 0 || *kind != DelayContext::Stop;
    let chosen: Vec<DelayContext> = kinds.iter().copied().filter(own).collect();
    if chosen.is_empty() { vec![DelayContext::Hardirq] } else { chosen }
}

fn write(lines: &Receiver<InjectLogEntry>) -> Result<()> {
    let mut out = std::io::stdout().lock();
    for line in lines.try_iter() {
        serde_json::to_writer(&mut out, &line)?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

/// The measured threads and the CPU each is bound to.
fn measured(options: &InjectFlags) -> Result<Vec<(i32, u32)>> {
    let root = Root::default();
    let directory = format!("/proc/{}/task", options.target);
    ensure!(fs::exists(&directory)?, "no process {}", options.target);
    let mut found = Vec::new();
    for tid in tasks::numbers(Path::new(&directory)) {
        let name = tasks::name(&root, tid).unwrap_or_default();
        let cpus: Option<Cpus> = tasks::cpus(&root, tid).filter(|cpus| cpus.len() == 1);
        let cpu = cpus.as_ref().and_then(|cpus| cpus.iter().next());
        if let Some(cpu) = cpu.filter(|_| name.starts_with(&options.threads)) {
            found.push((tid, cpu));
        }
    }
    ensure!(
        !found.is_empty(),
        "process {} has no bound thread {}*",
        options.target,
        options.threads
    );
    Ok(found)
}

/// Grow big, wait, and end
#[derive(Debug, Args)]
pub(crate) struct ExitFlags {
    bytes: usize,
    at_ns: i64,
}

/// What `DelayContext::Exit` starts as its own process.
pub(crate) fn run_exit(flags: &ExitFlags) -> Result<()> {
    let ExitFlags { bytes, at_ns } = *flags;
    tardy::sys::sched::set_this_thread(tardy::sys::sched::Policy::Other, 0)?;
    let mut big = vec![0_u8; bytes.min(64 << 20)];
    for page in big.chunks_mut(4096) {
        // All of it before the moment, or not at all.
        if now_ns() > at_ns {
            break;
        }
        if let Some(first) = page.first_mut() {
            *first = 1;
        }
    }
    std::hint::black_box(&big);
    worker::sleep_until(at_ns);
    process::exit_now(0)
}
