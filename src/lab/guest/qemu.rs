//! Boots a guest in QEMU, by plain emulation, and watches its console until it ends.

use std::{
    fs::{self, File},
    io::Read,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

use super::{
    acpi,
    console::{Console, Trouble},
    nodes::{self, Nodes},
    result_port,
    transfer::HELLO,
};
use crate::sys::child;

/// Which program is started.
pub const PROGRAM: &str = "qemu-system-x86_64";

/// The CPUs of plain emulation. Of this maker and model the kernel believes that their clock keeps
/// its rate when the frequency changes; with QEMU's default CPU it stops using that clock.
const PLAIN_CPU: &str = "max,vendor=GenuineIntel,family=6,model=15,stepping=11";

/// The CPU of counted time: old enough to have no source of random numbers of its own (RDRAND),
/// which would differ from run to run.
const COUNTED_CPU: &str = "qemu64";

/// What the machine is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hardware {
    /// What executes its instructions, and what makes its time.
    pub emulation: Emulation,
    /// How many CPUs.
    pub cpus: u8,
    /// Memory, MiB.
    pub memory_mib: u32,
    /// Whether its CPUs have frequencies to choose from.
    pub frequencies: bool,
    /// Whether it has network cards, two on one wire.
    pub boxes: Nodes,
}

/// What executes a guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emulation {
    /// QEMU alone, an instruction at a time; each takes 2^shift ns, and nothing else takes any. The
    /// same guest does the same thing at the same time, every time.
    Counted {
        /// 1: 2 ns an instruction.
        shift: u8,
    },
    /// QEMU alone, as fast as it can; the host's time.
    Plain,
    /// The CPU itself, by KVM; the host's time.
    Kvm,
}

impl Emulation {
    /// The name of the CPU model as QEMU knows it.
    #[must_use]
    pub const fn cpu_model(self) -> &'static str {
        match self {
            Self::Counted { .. } => COUNTED_CPU,
            Self::Plain => PLAIN_CPU,
            Self::Kvm => "host",
        }
    }

    fn arguments(self) -> Vec<String> {
        let words: &[&str] = match self {
            Self::Counted { .. } => {
                &["-accel", "tcg", "-rtc", "clock=vm,base=2026-01-01", "-seed", "1"]
            }
            Self::Plain => &["-accel", "tcg,thread=multi"],
            Self::Kvm => &["-accel", "kvm"],
        };
        let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        if let Self::Counted { shift } = self {
            // Recording is for its locks alone: without them QEMU's two threads race at the moment
            // when the CPU halts, and now and then time jumps too far.
            let count = format!("shift={shift},sleep=off,rr=record,rrfile=/dev/null");
            words.extend(["-icount".into(), count]);
        }
        words.extend(["-cpu".into(), self.cpu_model().into()]);
        words
    }
}

/// Time between two checks of the console.
const PAUSE: Duration = Duration::from_millis(50);

/// The files that a guest writes to.
const PORTS: [&str; 3] = ["console", "output", "files"];

/// What a guest may write to each of its ports, bytes: what it prints is kept in memory, and of
/// what it hands out more than its memory would be no run.
const MOST: [usize; 3] = [64 << 20, 64 << 20, 1 << 30];

/// A guest that breaks out of QEMU finds a process that may start no program, gain no rights and
/// change no other's scheduling. Built without seccomp, QEMU refuses the words.
const SANDBOX: &str = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";

/// How long a guest in trouble may continue to print.
const GRACE: Duration = Duration::from_secs(2);

/// Every guest's kernel command line. A panic ends the guest. A CPU that the host lets wait
/// is no lock-up: the watchdog waits for 40 s.
pub(crate) const APPEND: &str = "console=ttyS0 loglevel=5 panic=-1 nokaslr random.trust_cpu=1 \
                                 tsc=reliable watchdog_thresh=20 mitigations=off rdinit=/init";

/// A guest to be booted.
pub struct GuestMachine<'a> {
    /// What it is like.
    pub hardware: Hardware,
    /// The kernel: compressed as it is installed, or the ELF file in it.
    pub kernel: &'a Path,
    /// Its first file system.
    pub initramfs: &'a Path,
    /// More for its command line.
    pub append: &'a str,
    /// For files of the guest: its serial ports `console` and `output`, what it hands out in
    /// `files`, and what QEMU says in `said`.
    pub directory: &'a Path,
    /// How long it may take in all.
    pub limit: Duration,
    /// How long it may be silent.
    pub stall: Duration,
    /// How long its first process may take to send its hello.
    pub hello: Duration,
    /// Called repeatedly: whether to end now.
    pub stop: &'a dyn Fn() -> bool,
}

/// How a guest ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuestEnd {
    /// It powered off.
    Off,
    /// Its kernel reported trouble.
    Trouble(Trouble),
    /// It was silent for so long.
    Silent(Duration),
    /// It took longer than it may.
    TimeUp(Duration),
    /// Its first process has not sent its hello in this time.
    NoHello(Duration),
    /// The caller stopped it.
    Stopped,
    /// It wrote more than any run does to this port.
    TooMuch {
        /// `console`, `output` or `files`.
        port: &'static str,
        /// How much it may, bytes.
        most: usize,
    },
    /// QEMU itself failed.
    Failed(String),
}

impl GuestEnd {
    /// In words; nothing where all is well.
    pub fn words(&self) -> Option<String> {
        Some(match self {
            Self::Off => return None,
            Self::Trouble(Trouble::Panic(line)) => format!("the kernel broke: {line}"),
            Self::Trouble(Trouble::LockUp(line)) => format!("the kernel is stuck: {line}"),
            Self::Silent(time) => format!("the guest hangs: silent for {} s", time.as_secs()),
            Self::TimeUp(time) => format!("the guest did not end within {} s", time.as_secs()),
            Self::NoHello(time) => format!(
                "the kernel did not start its first process in {} s: it hangs, or cannot use an \
                 initramfs (CONFIG_BLK_DEV_INITRD)",
                time.as_secs()
            ),
            Self::Stopped => "the guest was ended early".into(),
            Self::TooMuch { port, most } => {
                format!("the guest wrote more than {} MiB to its port \"{port}\"", most >> 20)
            }
            Self::Failed(why) => format!("{PROGRAM} failed: {why}"),
        })
    }
}

/// A guest that has ended.
#[derive(Debug)]
pub struct FinishedGuest {
    /// How.
    pub ending: GuestEnd,
    /// The first serial port: the kernel, and standard error.
    pub console: Console,
    /// The second: standard output of the guest's command.
    pub output: String,
    /// What it handed out: by its port, or where it may not use that, by the second serial port.
    pub files: Vec<u8>,
}

/// Boots the guest and waits for its end.
pub fn boot(machine: &GuestMachine) -> Result<FinishedGuest> {
    let port = |name: &str| machine.directory.join(name);
    for name in PORTS {
        File::create(port(name))
            .with_context(|| format!("cannot make {}", port(name).display()))?;
    }
    if machine.hardware.frequencies {
        let table = acpi::frequencies(machine.hardware.cpus);
        fs::write(port("frequencies"), table).context("cannot write an ACPI table")?;
    }
    let mut command = command(machine)?;
    let said = File::create(port("said")).context("cannot make a file for what QEMU says")?;
    // A guest must not outlive the process that watches it.
    child::end_with_this_thread(command.stderr(said));
    // Ctrl-C is for the watching process: QEMU would exit as if the guest had ended.
    command.process_group(0);
    let mut guest = QemuProcess(command.spawn().context("cannot start QEMU")?);
    let mut monitor = GuestMonitor::new(machine)?;
    let ending = loop {
        let ended = guest.0.try_wait()?;
        monitor.poll()?;
        if let Some(ending) = monitor.verdict(Instant::now(), ended.is_some()) {
            break ending;
        }
        if let Some(status) = ended {
            break ending(status, &port("said"));
        }
        if (machine.stop)() {
            break GuestEnd::Stopped;
        }
        sleep(PAUSE);
    };
    drop(guest);
    monitor.poll()?;
    let read = |at: usize| bounded(&port(PORTS[at]), MOST[at]);
    let (output, mut files) = (read(1)?, read(2)?);
    if files.len() <= HELLO.len() && output.starts_with(HELLO) {
        files.clone_from(&output);
    }
    let output = String::from_utf8_lossy(&output).replace('\r', "");
    Ok(FinishedGuest { ending, console: monitor.console, output, files })
}

/// The beginning of a file, as much of it as a port may hold.
fn bounded(file: &Path, most: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The words that lock QEMU in, where it was built to know them.
fn sandbox(program: &Path) -> &'static [&'static str] {
    // It reads its words in turn, and ends at the last one.
    let tried = Command::new(program).args(["-sandbox", SANDBOX, "-version"]).output();
    if tried.is_ok_and(|tried| tried.status.success()) { &["-sandbox", SANDBOX] } else { &[] }
}

fn command(machine: &GuestMachine) -> Result<Command> {
    let hardware = machine.hardware;
    // A comma begins the next option, unless it is doubled.
    let path = |name: &str| machine.directory.join(name).display().to_string().replace(',', ",,");
    let serial = |name: &str| format!("file:{}", machine.directory.join(name).display());
    let program = crate::lab::program(PROGRAM)?;
    let mut command = Command::new(&program);
    command
        .args(["-nodefaults", "-no-user-config", "-display", "none", "-machine", "pc"])
        .args(sandbox(&program))
        .args(hardware.emulation.arguments())
        .args(["-m", &hardware.memory_mib.to_string(), "-smp", &hardware.cpus.to_string()])
        .args(["-no-reboot", "-serial", &serial("console"), "-serial", &serial("output")])
        .args(["-chardev", &format!("file,id=files,path={}", path("files"))])
        .args(["-device", &format!("isa-debugcon,iobase={:#x},chardev=files", result_port::PORT)])
        .arg("-kernel")
        .arg(machine.kernel)
        .arg("-initrd")
        .arg(machine.initramfs)
        .args(["-append", &format!("{APPEND} {}", machine.append)])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    if hardware.boxes == Nodes::Two {
        command.args(nodes::hardware(&program)?);
    }
    if hardware.frequencies {
        let table = machine.directory.join("frequencies");
        command.args(["-acpitable", &format!("sig=SSDT,rev=2,data={}", table.display())]);
    }
    Ok(command)
}

/// QEMU, which ends when this is dropped.
struct QemuProcess(Child);

/// Of a QEMU that ended by itself.
fn ending(status: ExitStatus, said: &Path) -> GuestEnd {
    if status.success() {
        return GuestEnd::Off;
    }
    let said = fs::read_to_string(said).unwrap_or_default();
    GuestEnd::Failed(format!("{status}: {}", said.trim()))
}

impl Drop for QemuProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What is known of a guest while it runs.
struct GuestMonitor {
    console: Console,
    /// Console, output, and what is handed out.
    files: [File; 3],
    /// Bytes that each has received.
    received: [usize; 3],
    limit: Duration,
    stall: Duration,
    hello: Duration,
    began: Instant,
    last_word: Instant,
    trouble_since: Option<Instant>,
}

impl GuestMonitor {
    fn new(machine: &GuestMachine) -> Result<Self> {
        let open = |name: &str| File::open(machine.directory.join(name));
        let now = Instant::now();
        Ok(Self {
            console: Console::default(),
            files: [open(PORTS[0])?, open(PORTS[1])?, open(PORTS[2])?],
            received: [0; 3],
            limit: machine.limit,
            stall: machine.stall,
            hello: machine.hello,
            began: now,
            last_word: now,
            trouble_since: None,
        })
    }

    /// Reads what all ports have received since the last time; of each no more than it may hold.
    fn poll(&mut self) -> Result<()> {
        let mut bytes = Vec::new();
        for (at, file) in self.files.iter_mut().enumerate() {
            let known = bytes.len();
            // One more than it may, which tells that it is more.
            let room = (MOST[at] + 1).saturating_sub(self.received[at]);
            file.take(room as u64).read_to_end(&mut bytes)?;
            self.received[at] += bytes.len() - known;
            // What goes to the other ports is read at the end; here it is a sign of life.
            if at == 0 {
                self.console.feed(&bytes);
            }
        }
        let now = Instant::now();
        if !bytes.is_empty() {
            self.last_word = now;
        }
        if self.console.trouble().is_some() {
            self.trouble_since.get_or_insert(now);
        }
        Ok(())
    }

    /// Whether the guest must end, and why; the caller evaluates an exit of QEMU alone.
    fn verdict(&self, now: Instant, has_ended: bool) -> Option<GuestEnd> {
        if let (Some(trouble), Some(since)) = (self.console.trouble(), self.trouble_since) {
            let is_over = has_ended || now - since >= GRACE;
            return is_over.then(|| GuestEnd::Trouble(trouble.clone()));
        }
        if let Some(at) = (0..3).find(|at| self.received[*at] > MOST[*at]) {
            return Some(GuestEnd::TooMuch { port: PORTS[at], most: MOST[at] });
        }
        if has_ended {
            return None;
        }
        if self.received[2] == 0 && now - self.began >= self.hello {
            return Some(GuestEnd::NoHello(self.hello));
        }
        if now - self.began >= self.limit {
            return Some(GuestEnd::TimeUp(self.limit));
        }
        (now - self.last_word >= self.stall).then_some(GuestEnd::Silent(self.stall))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn monitor(directory: &Path) -> (GuestMonitor, [File; 3]) {
        let ports = PORTS.map(|name| File::create(directory.join(name)).unwrap());
        let machine = GuestMachine {
            kernel: directory,
            hardware: Hardware {
                emulation: Emulation::Plain,
                cpus: 1,
                memory_mib: 256,
                frequencies: false,
                boxes: Nodes::One,
            },
            initramfs: directory,
            append: "",
            directory,
            limit: SECOND * 60,
            stall: SECOND * 10,
            hello: SECOND * 20,
            stop: &|| false,
        };
        (GuestMonitor::new(&machine).unwrap(), ports)
    }

    #[test]
    fn a_panic_ends_the_watch_after_a_grace_or_with_the_guest() {
        let directory = tempfile::tempdir().unwrap();
        let (mut monitor, mut ports) = monitor(directory.path());
        ports[0].write_all(b"[ 1.0] Kernel panic - not syncing: x\n").unwrap();
        monitor.poll().unwrap();
        let now = Instant::now();
        let panic = GuestEnd::Trouble(Trouble::Panic("Kernel panic - not syncing: x".into()));
        assert_eq!(monitor.verdict(now, false), None, "the rest may come yet");
        assert_eq!(monitor.verdict(now, true).as_ref(), Some(&panic));
        assert_eq!(monitor.verdict(now + GRACE, false).as_ref(), Some(&panic));
        let words = panic.words().unwrap();
        assert_eq!(words, "the kernel broke: Kernel panic - not syncing: x");
    }

    #[test]
    fn silence_ends_the_watch_and_a_word_on_either_port_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let (mut monitor, mut ports) = monitor(directory.path());
        let began = monitor.began;
        assert_eq!(monitor.verdict(began + SECOND * 9, false), None);
        assert_eq!(
            monitor.verdict(began + SECOND * 11, false),
            Some(GuestEnd::Silent(SECOND * 10))
        );
        assert_eq!(monitor.verdict(began + SECOND * 11, true), None, "it has ended by itself");
        for port in &mut ports {
            monitor.last_word = began;
            port.write_all(b".").unwrap();
            monitor.poll().unwrap();
            assert!(monitor.last_word > began);
        }
    }

    #[test]
    fn a_guest_that_talks_for_ever_meets_the_limit() {
        let directory = tempfile::tempdir().unwrap();
        let (mut monitor, _ports) = monitor(directory.path());
        monitor.last_word = monitor.began + SECOND * 60;
        monitor.received[2] = HELLO.len();
        let late = monitor.began + SECOND * 60;
        assert_eq!(monitor.verdict(late, false), Some(GuestEnd::TimeUp(SECOND * 60)));
    }

    #[test]
    fn a_kernel_has_a_time_to_come_to_its_first_process() {
        let directory = tempfile::tempdir().unwrap();
        let (mut monitor, mut ports) = monitor(directory.path());
        monitor.last_word = monitor.began + SECOND * 20;
        let late = monitor.began + SECOND * 20;
        assert_eq!(monitor.verdict(late, false), Some(GuestEnd::NoHello(SECOND * 20)));
        ports[2].write_all(HELLO).unwrap();
        monitor.poll().unwrap();
        monitor.last_word = late;
        assert_eq!(monitor.verdict(late, false), None);
    }

    #[test]
    fn a_guest_that_writes_without_end_is_ended_and_fills_no_memory() {
        for (at, port) in PORTS.into_iter().enumerate() {
            let directory = tempfile::tempdir().unwrap();
            let (mut monitor, ports) = monitor(directory.path());
            monitor.received[2] = HELLO.len();
            ports[at].set_len(MOST[at] as u64 - HELLO.len() as u64).unwrap();
            monitor.received[at] = MOST[at] - 1;
            monitor.poll().unwrap();
            let now = monitor.began;
            let too_much = Some(GuestEnd::TooMuch { port, most: MOST[at] });
            assert_eq!(monitor.received[at], MOST[at] + 1, "no more is read");
            assert_eq!(monitor.verdict(now, false), too_much);
            assert_eq!(monitor.verdict(now, true), too_much, "also where it has ended by then");
            assert!(monitor.console.tail(9).len() < 9);
        }
        let words = GuestEnd::TooMuch { port: "console", most: MOST[0] }.words().unwrap();
        assert_eq!(words, "the guest wrote more than 64 MiB to its port \"console\"");
    }

    #[test]
    fn qemu_is_locked_in_where_it_can_be() {
        // These take any words, and none.
        assert_eq!(sandbox(Path::new("/bin/true")), ["-sandbox", SANDBOX]);
        assert_eq!(sandbox(Path::new("/bin/false")), [""; 0]);
        assert_eq!(sandbox(Path::new("/nonexistent")), [""; 0]);
    }
}
