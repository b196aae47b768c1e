//! Boots a guest in QEMU, and ends it when its monitor says so.

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
    console::Console,
    cpu_states::Qmp,
    monitor::{GuestEnd, GuestMonitor, MOST, PORTS, Patience},
    nodes::{self, Nodes},
    output_port, result_port,
    transfer::HELLO,
};
use crate::sys::{child, tsc};

/// Which program is started.
pub const PROGRAM: &str = "qemu-system-x86_64";

/// The CPUs of plain emulation. Of this maker and model the kernel believes that their clock keeps
/// its rate when the frequency changes; with QEMU's default CPU it stops using that clock.
const PLAIN_CPU: &str = "max,vendor=GenuineIntel,family=6,model=15,stepping=11";

/// The CPU of virtual time: old enough that it lacks RDRAND, whose random numbers would differ from
/// run to run.
const COUNTED_CPU: &str = "qemu64";

/// What the machine is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hardware {
    /// What executes its instructions, and what makes its time.
    pub emulation: Emulation,
    /// How many CPUs.
    pub cpus: u8,
    /// Memory, MiB. A guest whose first file system would not fit gets more.
    pub memory_mib: u32,
    /// Whether its CPUs have frequencies to choose from.
    pub frequencies: bool,
    /// Whether it has network cards, two on one wire.
    pub nodes: Nodes,
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
    /// QEMU alone, as fast as it can; the host's time. All CPUs share one thread of the host.
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
            // With a thread for each CPU, QEMU 7.2 may keep its translation of code that another
            // CPU has changed meanwhile. A kernel that patches its own code, as it does when a
            // tracepoint comes or goes, then meets for ever a breakpoint that it has removed.
            Self::Plain => &["-accel", "tcg,thread=single"],
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

    /// What the kernel has to be told about its clocks where the host's time is the guest's and
    /// the host may let it wait while it tries them. The guest's TSC counts as the host's does; a
    /// guest that finds out by itself how fast that is may have a clock that is wrong by several
    /// times, and so are all its timeouts. One that waits in vain for ten ticks of its first timer
    /// panics ("IO-APIC + timer doesn't work"), so it takes that on trust
    /// (`arch/x86/kernel/apic/io_apic.c`, `timer_irq_works`).
    fn clock(self) -> String {
        if self != Self::Plain {
            return String::new();
        }
        let khz = tsc::khz().map_or_else(String::new, |khz| format!(" tsc_early_khz={khz}"));
        format!(" no_timer_check{khz}")
    }
}

/// Time between two checks of the console.
const PAUSE: Duration = Duration::from_millis(50);

/// A guest that breaks out of QEMU finds a process that may start no program, gain no rights and
/// change no other's scheduling. Built without seccomp, QEMU refuses the words.
const SANDBOX: &str = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";

/// Every guest's kernel command line. A panic ends the guest. A CPU that the host lets wait is not
/// a lock-up: the watchdog waits for 40 s.
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
    /// `files`, what QEMU says in `said`, and of one that hung its CPUs' registers in `cpus`.
    pub directory: &'a Path,
    /// How long it is waited for.
    pub patience: Patience,
    /// Called repeatedly: whether to end now.
    pub stop: &'a dyn Fn() -> bool,
}

/// A guest that has ended.
#[derive(Debug)]
pub struct FinishedGuest {
    /// How.
    pub ending: GuestEnd,
    /// The first serial port: the kernel, and standard error.
    pub console: Console,
    /// Standard output of the guest's command.
    pub output: String,
    /// What it handed out: by its port, or where it may not use that, by the second serial port.
    pub files: Vec<u8>,
    /// Of one that hung: what its CPUs were doing, a line each, or why that is not known.
    pub cpus: Vec<String>,
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
    let hardware = machine.hardware;
    // In counted time nothing from outside may touch it, and what hangs there does so each time.
    let is_counted = matches!(hardware.emulation, Emulation::Counted { .. });
    let qmp = if is_counted { None } else { Some(Qmp::connect(&mut command)?) };
    let mut guest = QemuProcess(command.spawn().context("cannot start QEMU")?);
    let mut monitor = GuestMonitor::new(machine.directory, machine.patience)?;
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
    let looked = qmp.filter(|_| ending.is_hang()).map(|qmp| qmp.look(hardware.cpus, &port("cpus")));
    let unknown = |error| vec![format!("what its CPUs did is not known: {error:#}")];
    let cpus = looked.map_or_else(Vec::new, |looked| looked.unwrap_or_else(unknown));
    drop(guest);
    monitor.poll()?;
    let read = |at: usize| bounded(&port(PORTS[at]), MOST[at]);
    let (output, mut files) = (read(1)?, read(2)?);
    if files.len() <= HELLO.len() && output.starts_with(HELLO) {
        files.clone_from(&output);
    }
    let output = String::from_utf8_lossy(&output).replace('\r', "");
    Ok(FinishedGuest { ending, console: monitor.console, output, files, cpus })
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

/// The least memory, MiB, in which Linux can unpack a first file system of this size: it lies
/// there twice meanwhile, and the copy in tmpfs may take half of what the first one leaves
/// (`mm/shmem.c`, `shmem_default_max_blocks`). With too little of it the kernel says "Initramfs
/// unpacking failed: write error" and panics for want of an init.
fn least_memory_mib(initramfs_bytes: u64) -> u32 {
    const KERNEL_MIB: u64 = 192;
    const STEP_MIB: u64 = 64;
    let least = (KERNEL_MIB + 3 * initramfs_bytes.div_ceil(1 << 20)).next_multiple_of(STEP_MIB);
    u32::try_from(least).unwrap_or(u32::MAX)
}

fn command(machine: &GuestMachine) -> Result<Command> {
    let hardware = machine.hardware;
    let size = fs::metadata(machine.initramfs).context("cannot read the guest's initramfs")?.len();
    let memory_mib = hardware.memory_mib.max(least_memory_mib(size));
    // A comma begins the next option, unless it is doubled.
    let path = |name: &str| machine.directory.join(name).display().to_string().replace(',', ",,");
    let console = format!("file:{}", machine.directory.join("console").display());
    // Two devices write to one file, of which a guest uses one.
    let output = |id: &str| format!("file,id={id},append=on,path={}", path("output"));
    let program = crate::lab::program(PROGRAM)?;
    let mut command = Command::new(&program);
    command
        .args(["-nodefaults", "-no-user-config", "-display", "none", "-machine", "pc"])
        .args(sandbox(&program))
        .args(hardware.emulation.arguments())
        .args(["-m", &memory_mib.to_string(), "-smp", &hardware.cpus.to_string()])
        .args(["-no-reboot", "-serial", &console])
        .args(["-chardev", &output("serial"), "-serial", "chardev:serial"])
        .args(["-chardev", &output("output")])
        .args(["-device", &format!("isa-debugcon,iobase={:#x},chardev=output", output_port::PORT)])
        .args(["-chardev", &format!("file,id=files,path={}", path("files"))])
        .args(["-device", &format!("isa-debugcon,iobase={:#x},chardev=files", result_port::PORT)])
        .arg("-kernel")
        .arg(machine.kernel)
        .arg("-initrd")
        .arg(machine.initramfs)
        .args(["-append", &format!("{APPEND}{} {}", hardware.emulation.clock(), machine.append)])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    if hardware.nodes == Nodes::Two {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qemu_is_locked_in_where_it_can_be() {
        // These take any words, and none.
        assert_eq!(sandbox(Path::new("/bin/true")), ["-sandbox", SANDBOX]);
        assert_eq!(sandbox(Path::new("/bin/false")), [""; 0]);
        assert_eq!(sandbox(Path::new("/nonexistent")), [""; 0]);
    }

    #[test]
    fn a_guest_has_room_for_what_it_starts_from() {
        assert!(least_memory_mib(20 << 20) <= 512, "an ordinary one fits");
        for initramfs_mib in [140, 400, 1_000] {
            let left = least_memory_mib(initramfs_mib << 20) - 128 - initramfs_mib as u32;
            assert!(left / 2 > initramfs_mib as u32, "{initramfs_mib} MiB");
        }
    }

    #[test]
    fn where_the_host_may_keep_a_guest_waiting_no_timer_is_tried() {
        assert!(Emulation::Plain.clock().starts_with(" no_timer_check"));
        assert_eq!(Emulation::Counted { shift: 1 }.clock(), "", "each has all its time");
        assert_eq!(Emulation::Kvm.clock(), "", "its kernel knows");
    }
}
