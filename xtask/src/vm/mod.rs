//! `cargo xtask vm`: boots a kernel of Debian's in QEMU and runs tests, or a command, inside.
//!
//! For setups that the machine at hand has not: another kernel, cgroup v2, the right to do
//! everything. Nothing is installed and nothing of this machine is changed; what is fetched and
//! made lies in `target/vm`. Only `suite` and `account` know that tests exist.

mod account;
mod options;
mod suite;

use std::{
    fs,
    io::Write as _,
    iter,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use tardy::{
    lab::{
        guest::{
            image::Image,
            init::{self, Job, Module},
            monitor::Patience,
            nodes::Nodes,
            qemu::{self, Emulation, FinishedGuest, GuestMachine, Hardware},
            transfer::Received,
        },
        kernels::{
            self, Kernel, KernelSource,
            modules::{self, Modules},
        },
        program,
    },
    run::RunDirectory,
};
use tempfile::TempDir;

use crate::bench::say;
pub(crate) use options::VmFlags;
use suite::{Choice, Suite, TestResults};

/// What a guest has besides tardy: what tests start, and enough to look around.
const PROGRAMS: &[&str] = &[
    "cat", "chmod", "chown", "chrt", "cp", "cut", "date", "dd", "dmesg", "env", "false", "find",
    "grep", "head", "id", "ip", "kill", "ln", "ls", "mkdir", "mount", "mv", "nproc", "prlimit",
    "ps", "rm", "rmdir", "script", "sed", "seq", "setpriv", "sh", "sleep", "sort", "stat", "sync",
    "tail", "taskset", "tc", "tee", "timeout", "touch", "tr", "true", "umount", "uname", "unshare",
    "wc",
];

/// Kernel modules that loads and tests need.
const MODULES: [&str; 7] =
    ["acpi_cpufreq", "crc32c_generic", "ext4", "loop", "msr", "sch_netem", "veth"];

/// Small files that programs look for.
const FILES: [(&str, &str); 3] = [
    ("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"),
    ("/etc/group", "root:x:0:\nnogroup:x:65534:\n"),
    ("/etc/hosts", "127.0.0.1 localhost\n"),
];

/// Two CPUs with frequencies, as fast as they come.
const HARDWARE: Hardware = Hardware {
    emulation: Emulation::Plain,
    cpus: 2,
    memory_mib: 1024,
    frequencies: true,
    nodes: Nodes::One,
};

/// One CPU whose time is the count of its instructions.
const COUNTED: Hardware = Hardware {
    emulation: Emulation::Counted { shift: 1 },
    cpus: 1,
    memory_mib: 512,
    frequencies: false,
    nodes: Nodes::One,
};

/// Where a command leaves what is wanted back.
const OUT: &str = "/run/out";

/// Begins the names of guests' directories.
const SCRATCH: &str = "guest-";

const DAY: Duration = Duration::from_secs(86_400);

/// The last lines of the console that a failure shows.
const SHOWN: usize = 40;

/// Fetches, boots, tells.
pub(crate) fn run(options: &VmFlags) -> Result<()> {
    if let Err(error) = program(qemu::PROGRAM) {
        return skipped(&format!("{error:#}; apt-get install qemu-system-x86"));
    }
    let kernel = match kernel(&options.kernel) {
        Ok(kernel) => kernel,
        Err(error) => return skipped(&format!("{error:#}")),
    };
    if options.command.is_empty() { tests(options, &kernel) } else { alone(options, &kernel) }
}

/// The kernel, from the cache or fetched into it.
pub(crate) fn kernel(source: &KernelSource) -> Result<Kernel> {
    kernels::get(source, &target()?.join("vm/kernels"), &say)
}

/// The tardy that the tests start, built if it is not.
pub(crate) fn tests_tardy() -> Result<PathBuf> {
    Ok(Suite::build()?.tardy)
}

/// Without root a machine need not have what this needs; as root there is no excuse.
fn skipped(why: &str) -> Result<()> {
    ensure!(!rustix::process::geteuid().is_root(), "vm: {why}");
    tell(&format!("vm: skipped: {why}"))
}

/// The verdict: one line on standard output.
fn tell(line: &str) -> Result<()> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}

/// Runs the tests that are wanted, and says which of those that the host skipped ran nowhere.
fn tests(options: &VmFlags, kernel: &Kernel) -> Result<()> {
    let suite = Suite::build()?;
    let host = options.account.as_deref().map(account::read).transpose()?;
    let passed = options.passed.as_deref().map_or(Ok(Vec::new()), account::passed)?;
    let names = suite.choose(&Choice {
        filter: options.filter.as_deref(),
        also: &options.also,
        skipped: host.as_ref(),
        passed: &passed,
    })?;
    let results = if names.is_empty() {
        tell("vm: of what skipped on this machine nothing is left for a guest")?;
        TestResults::default()
    } else {
        boot(options, kernel, &suite, &names)?
    };
    if let Some(file) = &options.passed {
        account::add(file, &results.passed)?;
    }
    let passed = [passed, results.passed].concat();
    settle(&account::nowhere(&host.unwrap_or_default(), &results.skipped, &passed))
}

/// Runs these tests in a guest and gives the verdict; one that failed is an error.
fn boot(
    options: &VmFlags,
    kernel: &Kernel,
    suite: &Suite,
    names: &[String],
) -> Result<TestResults> {
    let append = format!("{} {}", suite::APPEND, options.append);
    let programs = [suite.outside.clone(), suite.tardy.clone()];
    let files = [suite::schema()?];
    let guest = TestGuest {
        tardy: &suite.tardy,
        options,
        kernel,
        programs: &programs,
        files: &files,
        append: &append,
    };
    let finished = guest.run(suite.job(names)?)?;
    let results = TestResults::parse(&finished.output, names);
    let broken = finished.ending.words().or_else(|| {
        let code = suite::exit_code(&finished.output);
        code.err().map(|error| format!("{error:#}"))
    });
    for (name, why) in &results.skipped {
        say(&format!("{name} skipped: {why}"));
    }
    if broken.is_some() || !results.failed.is_empty() {
        say(&format!("{}\nfailed: {}", results.output_of_failures, results.failed.join(", ")));
    }
    let verdict = format!("vm: {}: {}", kernel.name, results.counts());
    match broken {
        Some(why) => tell(&format!("{verdict}; {why}"))?,
        None => tell(&verdict)?,
    }
    ensure!(finished.ending.words().is_none() && results.failed.is_empty(), "vm: failed");
    Ok(results)
}

/// Tells what ran nowhere; as root, this is a failure.
fn settle(nowhere: &[String]) -> Result<()> {
    for line in nowhere {
        say(line);
    }
    ensure!(
        nowhere.is_empty() || !rustix::process::geteuid().is_root(),
        "vm: as root every test runs, here or in a guest"
    );
    Ok(())
}

/// Runs the command; its output is this program's.
fn alone(options: &VmFlags, kernel: &Kernel) -> Result<()> {
    let suite = Suite::build()?;
    let handed_out = options.out.as_ref().map(|_| OUT.into());
    let job = Job { command: options.command.clone(), handed_out, ..Job::default() };
    let named = options.programs.iter().map(|name| program(name));
    let programs: Vec<PathBuf> =
        iter::once(Ok(suite.tardy.clone())).chain(named).collect::<Result<_>>()?;
    let append = &options.append;
    let guest =
        TestGuest { tardy: &suite.tardy, options, kernel, programs: &programs, files: &[], append };
    let finished = guest.run(job)?;
    let ended = match &options.out {
        Some(into) => bring(&finished, into),
        None => printed(&finished),
    };
    if let Some(why) = finished.ending.words() {
        bail!("vm: {}: {why}", kernel.name);
    }
    let code = ended?;
    if code != 0 {
        // With what the command said on standard error.
        show(&finished);
    }
    tell(&format!("vm: {}: the command ended with exit code {code}", kernel.name))?;
    ensure!(code == 0, "vm: failed");
    Ok(())
}

/// Tells what came by the serial port; the command's exit code.
fn printed(finished: &FinishedGuest) -> Result<i32> {
    let output = finished.output.lines().filter(|line| !line.starts_with(init::END));
    let output: Vec<&str> = output.collect();
    tell(output.join("\n").trim_end())?;
    suite::exit_code(&finished.output)
}

/// Writes what was handed out into a new directory, and tells what the command said; its exit code.
fn bring(finished: &FinishedGuest, into: &Path) -> Result<i32> {
    let received = Received::parse(&finished.files)?;
    received.write(&RunDirectory::make(into)?)?;
    tell(received.said.trim_end())?;
    Ok(received.code)
}

/// The last lines of the console: what went wrong often stands there.
fn show(finished: &FinishedGuest) {
    let last = finished.console.tail(SHOWN);
    let silent = finished.console.is_silent().then_some("(nothing)");
    say(&format!("-- the console's last lines\n{}\n--", silent.unwrap_or(&last)));
}

/// What is put together for one boot.
struct TestGuest<'a> {
    /// The first process.
    tardy: &'a Path,
    options: &'a VmFlags,
    kernel: &'a Kernel,
    /// Programs that lie where they lie on this machine.
    programs: &'a [PathBuf],
    /// Other files that do.
    files: &'a [PathBuf],
    append: &'a str,
}

impl TestGuest<'_> {
    fn run(&self, mut job: Job) -> Result<FinishedGuest> {
        let place = target()?.join("vm");
        sweep(&place);
        let prefix = if self.options.keep { "kept-" } else { SCRATCH };
        let scratch = TempDir::with_prefix_in(prefix, place)?;
        let initramfs = scratch.path().join("initramfs");
        self.image(&mut job)?.write(&initramfs)?;
        let began = Instant::now();
        let finished = qemu::boot(&GuestMachine {
            kernel: &self.kernel.boot,
            initramfs: &initramfs,
            append: &format!("{} {}", self.kernel.append, self.append),
            directory: scratch.path(),
            hardware: self.hardware(),
            patience: Patience {
                stall: self.options.stall,
                ..Patience::in_all(self.options.limit)
            },
            stop: &|| false,
        })?;
        let took = began.elapsed().as_secs_f64();
        say(&format!("{} ran for {took:.0} s", self.kernel.name));
        self.leave(&finished)?;
        if finished.ending.words().is_some() {
            show(&finished);
        }
        if self.options.keep {
            say(&format!("kept: {}", scratch.keep().display()));
        }
        Ok(finished)
    }

    /// What was said stays until the next guest, for who wants to know more.
    fn leave(&self, finished: &FinishedGuest) -> Result<()> {
        let last = target()?.join("vm/last");
        fs::create_dir_all(&last)?;
        fs::write(last.join("console"), finished.console.tail(usize::MAX))?;
        fs::write(last.join("output"), &finished.output)?;
        say(&format!("its console and its output are in {}", last.display()));
        Ok(())
    }

    fn hardware(&self) -> Hardware {
        if self.options.counted { COUNTED } else { HARDWARE }
    }

    /// Without frequencies the driver of frequencies refuses to be loaded.
    fn modules(&self) -> &[&str] {
        if self.hardware().frequencies { &MODULES } else { &MODULES[1..] }
    }

    fn image(&self, job: &mut Job) -> Result<Image> {
        let mut image = Image::default();
        image.program(self.tardy, "/init")?;
        for name in PROGRAMS {
            image.program(&program(name)?, &format!("/usr/bin/{name}"))?;
        }
        for file in self.programs {
            // Once is enough: a guest in counted time has no memory to spare.
            if self.options.counted && file == self.tardy {
                image.link(suite::utf8(file)?, "/init");
            } else {
                image.program(file, suite::utf8(file)?)?;
            }
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let link = format!("/usr/bin/{name}");
            if Path::new(&link) != file {
                image.link(&link, suite::utf8(file)?);
            }
        }
        for (path, content) in FILES {
            image.file(path, 0o644, content.into());
        }
        for file in self.files {
            let content = fs::read(file);
            let content = content.with_context(|| format!("cannot read {}", file.display()))?;
            image.file(suite::utf8(file)?, 0o644, content);
        }
        self.kernel_files(&mut image, job)?;
        let paths = [("PATH", "/usr/bin:/usr/sbin"), ("HOME", "/root"), ("LANG", "C.UTF-8")];
        for (name, value) in paths {
            job.environment.insert(name.into(), value.into());
        }
        if self.options.counted {
            job.environment.insert("TARDY_TEST_COUNTED".into(), "1".into());
        }
        image.file(init::JOB, 0o644, serde_json::to_vec(job)?);
        Ok(image)
    }

    /// Modules and configuration, where the kernel came with them.
    fn kernel_files(&self, image: &mut Image, job: &mut Job) -> Result<()> {
        let Some(root) = &self.kernel.root else { return Ok(()) };
        for file in Modules::read(root, &self.kernel.name)?.closure(self.modules())? {
            let name = format!("/job/modules/{}.ko", job.modules.len());
            image.file(&name, 0o644, modules::content(&file)?);
            job.modules.push(Module { file: name.into(), ..Module::default() });
        }
        let config = format!("boot/config-{}", self.kernel.name);
        if let Ok(content) = fs::read(root.join(&config)) {
            image.file(&config, 0o644, content);
        }
        Ok(())
    }
}

/// Removes what guests left whose watcher was killed; none that is alive is a day old.
fn sweep(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let is_scratch = entry.file_name().to_string_lossy().starts_with(SCRATCH);
        let age = entry.metadata().and_then(|data| data.modified()).map(|at| at.elapsed());
        if is_scratch && age.is_ok_and(|age| age.is_ok_and(|age| age > DAY)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// cargo's directory, where this program was built.
fn target() -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program")?;
    Ok(own.ancestors().nth(2).context("this program lies outside of target/")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_old_scratch_is_swept_away() {
        let place = tempfile::tempdir().unwrap();
        let old = std::time::SystemTime::now() - DAY * 2;
        for (name, is_old) in [("guest-a", true), ("guest-b", false), ("kept-c", true)] {
            fs::create_dir(place.path().join(name)).unwrap();
            if is_old {
                fs::File::open(place.path().join(name)).unwrap().set_modified(old).unwrap();
            }
        }
        sweep(place.path());
        let left = ["guest-a", "guest-b", "kept-c"].map(|name| place.path().join(name).exists());
        assert_eq!(left, [false, true, true]);
    }

    #[test]
    fn nothing_is_listed_twice() {
        assert!(PROGRAMS.is_sorted() && PROGRAMS.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
