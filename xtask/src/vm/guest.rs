//! A guest in which tests or a command run: what is in it, and how it is booted.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use tardy::lab::{
    guest::{
        image::Image,
        init::{self, Job, Module},
        monitor::{GuestEnd, Patience},
        nodes::Nodes,
        qemu::{self, Emulation, FinishedGuest, GuestMachine, Hardware},
    },
    kernels::{
        Kernel,
        modules::{self, Modules},
    },
    program,
};
use tempfile::TempDir;

use super::{VmFlags, suite, target};
use crate::bench::say;

/// What a guest has besides tardy: what tests start, and enough to look around.
const PROGRAMS: &[&str] = &[
    "cat", "chmod", "chown", "chroot", "chrt", "cp", "cut", "date", "dd", "dmesg", "env", "false",
    "find", "grep", "gzip", "head", "id", "ip", "kill", "ln", "ls", "mkdir", "mount", "mv",
    "nproc", "prlimit", "ps", "readlink", "rm", "rmdir", "script", "sed", "seq", "setpriv", "sh",
    "sleep", "sort", "stat", "sync", "tail", "tar", "taskset", "tc", "tee", "timeout", "touch",
    "tr", "true", "umount", "uname", "unshare", "wc",
];

/// An init system, whose services a test starts; without its units.
const SYSTEMD: &[&str] =
    &["/usr/lib/systemd/systemd", "/usr/lib/systemd/systemd-executor", "/usr/bin/systemctl"];

/// Kernel modules that loads and tests need.
const MODULES: [&str; 7] =
    ["acpi_cpufreq", modules::CHECKSUM, "ext4", "loop", "msr", "sch_netem", "veth"];

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

/// Begins the names of guests' directories.
const SCRATCH: &str = "guest-";

/// How long a guest may take to start its first process: on a busy host, many times what it needs.
const TO_BEGIN: Duration = Duration::from_secs(300);

const DAY: Duration = Duration::from_secs(86_400);

/// The last lines of the console that a failure shows.
const SHOWN: usize = 40;

/// What is put together for a boot.
pub(super) struct TestGuest<'a> {
    /// The first process.
    pub tardy: &'a Path,
    pub options: &'a VmFlags,
    pub kernel: &'a Kernel,
    /// Programs that lie where they lie on this machine.
    pub programs: &'a [PathBuf],
    /// Other files that do.
    pub files: &'a [PathBuf],
    pub append: &'a str,
}

impl TestGuest<'_> {
    pub(super) fn run(&self, mut job: Job) -> Result<FinishedGuest> {
        let place = target()?.join("vm");
        sweep(&place);
        let prefix = if self.options.keep { "kept-" } else { SCRATCH };
        let scratch = TempDir::with_prefix_in(prefix, place)?;
        let initramfs = scratch.path().join("initramfs");
        self.image(&mut job)?.write(&initramfs)?;
        let mut finished = self.boot(&initramfs, scratch.path())?;
        if never_began(&finished) {
            let why = finished.ending.words().unwrap_or_default();
            show(&finished);
            say(&format!("{}: {why}, and nothing had begun: once more", self.kernel.name));
            finished = self.boot(&initramfs, scratch.path())?;
        }
        self.leave(&finished, scratch.path())?;
        if finished.ending.words().is_some() {
            show(&finished);
        }
        if self.options.keep {
            say(&format!("kept: {}", scratch.keep().display()));
        }
        Ok(finished)
    }

    fn boot(&self, initramfs: &Path, scratch: &Path) -> Result<FinishedGuest> {
        let began = Instant::now();
        let finished = qemu::boot(&GuestMachine {
            kernel: &self.kernel.boot,
            initramfs,
            append: &format!("{} {}", self.kernel.append, self.append),
            directory: scratch,
            hardware: self.hardware(),
            patience: Patience {
                limit: self.options.limit,
                stall: self.options.stall,
                hello: TO_BEGIN,
            },
            stop: &|| false,
        })?;
        let took = began.elapsed().as_secs_f64();
        say(&format!("{} ran for {took:.0} s", self.kernel.name));
        Ok(finished)
    }

    /// The messages stay until the next guest, for further diagnosis.
    fn leave(&self, finished: &FinishedGuest, scratch: &Path) -> Result<()> {
        let last = target()?.join("vm/last");
        fs::create_dir_all(&last)?;
        fs::write(last.join("console"), finished.console.tail(usize::MAX))?;
        fs::write(last.join("output"), &finished.output)?;
        let _ = fs::remove_file(last.join("cpus"));
        if !finished.cpus.is_empty() {
            // It is not there where QEMU did not answer.
            let _ = fs::copy(scratch.join("cpus"), last.join("cpus"));
        }
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
        // A guest in counted time has no memory to spare. Newer versions alone have the executor.
        let systemd = SYSTEMD.iter().filter(|file| Path::new(file).exists());
        for file in systemd.filter(|_| !self.options.counted) {
            image.program(Path::new(file), file)?;
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
        let known = Modules::read(root, &self.kernel.name)?;
        let needed = |name: &&str| *name != modules::CHECKSUM || known.has(name);
        let needed: Vec<&str> = self.modules().iter().copied().filter(needed).collect();
        for file in known.closure(&needed)? {
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

/// Whether it was ended before its command printed anything: what hangs there is the kernel's start
/// on an emulated machine, and no test.
fn never_began(finished: &FinishedGuest) -> bool {
    let is_hung = matches!(finished.ending, GuestEnd::NoHello(_) | GuestEnd::Silent(_));
    is_hung && finished.output.trim().is_empty()
}

/// The last lines of the console: what went wrong often stands there.
pub(super) fn show(finished: &FinishedGuest) {
    let last = finished.console.tail(SHOWN);
    let silent = finished.console.is_silent().then_some("(nothing)");
    say(&format!("-- the console's last lines\n{}\n--", silent.unwrap_or(&last)));
    finished.cpus.iter().for_each(|line| say(line));
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
