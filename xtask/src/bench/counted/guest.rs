//! A guest whose time is the count of its instructions, with tardy and other programs in it.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use tardy::{
    lab::{
        guest::{
            image::Image,
            init::{self, Job},
            monitor::Patience,
            nodes::Nodes,
            qemu::{self, Emulation, GuestMachine, Hardware},
            transfer::Received,
        },
        kernels::Kernel,
        program,
    },
    run::RunDirectory,
};

/// What scripts start beside what is compared.
const PROGRAMS: [&str; 7] = ["chrt", "grep", "kill", "mkdir", "sh", "sleep", "taskset"];

/// Small files that programs look for.
const FILES: [(&str, &str); 2] =
    [("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"), ("/etc/hosts", "127.0.0.1 localhost\n")];

/// Where scripts leave their files.
pub(super) const OUT: &str = "/run/out";

/// One CPU, 2 ns an instruction.
const HARDWARE: Hardware = Hardware {
    emulation: Emulation::Counted { shift: 1 },
    cpus: 1,
    memory_mib: 512,
    frequencies: false,
    nodes: Nodes::One,
};

/// Longer than any script takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(1_800);

/// Lines of the console that a failure shows.
const SHOWN: usize = 20;

/// Guests of one kernel, one after the other.
pub(super) struct CountedGuest<'a> {
    pub kernel: &'a Kernel,
    pub tardy: &'a Path,
    /// For initramfs, ports and what scripts leave.
    pub scratch: &'a Path,
}

impl CountedGuest<'_> {
    /// Boots, runs `script` with these programs of the machine, and returns the directory with what
    /// it left in [`OUT`].
    pub(super) fn run(&self, name: &str, programs: &[&str], script: &str) -> Result<PathBuf> {
        let place = self.scratch.join(format!("{name}-{}", self.kernel.asked));
        let left = place.join("out");
        fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
        let initramfs = place.join("initramfs");
        self.image(programs, script)?.write(&initramfs)?;
        let finished = qemu::boot(&GuestMachine {
            kernel: &self.kernel.boot,
            initramfs: &initramfs,
            append: &self.kernel.append,
            directory: &place,
            hardware: HARDWARE,
            // It prints nothing.
            patience: Patience::in_all(LIMIT),
            stop: &|| false,
        })?;
        fs::remove_file(&initramfs)?;
        if let Some(why) = finished.ending.words() {
            bail!("{}: {why}\n{}", self.kernel.name, finished.console.tail(SHOWN));
        }
        let received = Received::parse(&finished.files)?;
        ensure!(
            received.code == 0,
            "{}: the script ended with exit code {}: {}",
            self.kernel.name,
            received.code,
            received.said.trim()
        );
        received.write(&RunDirectory::make(&left)?)?;
        Ok(left)
    }

    fn image(&self, programs: &[&str], script: &str) -> Result<Image> {
        let mut image = Image::default();
        image.bare_program(self.tardy, init::OWN)?;
        image.link("/usr/bin/tardy", init::OWN);
        for name in PROGRAMS.iter().chain(programs) {
            image.bare_program(&program(name)?, &format!("/usr/bin/{name}"))?;
        }
        for (path, content) in FILES {
            image.file(path, 0o644, content.into());
        }
        let script = format!("set -e\nmkdir -p {OUT}\n{script}");
        let environment = [("PATH", "/usr/bin"), ("HOME", "/root")];
        let job = Job {
            command: ["sh", "-c", &script].map(str::to_owned).into(),
            environment: environment.map(|(name, value)| (name.into(), value.into())).into(),
            handed_out: Some(OUT.into()),
            ..Job::default()
        };
        image.file(init::JOB, 0o644, serde_json::to_vec(&job)?);
        Ok(image)
    }
}
