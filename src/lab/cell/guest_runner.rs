//! Where cells are run: QEMU, this program with its libraries, and a place for guests.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};

use super::{
    Cell, ClockMode, Key, SHIFT, guest_record,
    guest_scratch::{GuestScratch, sweep},
    parts::{Archive, Parts, RUN, base, job, job_archive, write_all},
    phase::StartPhase,
};
use crate::{
    lab::{
        Notify,
        guest::{
            init::Job,
            monitor::Patience,
            nodes::Nodes,
            qemu::{self, Emulation, FinishedGuest, GuestMachine, Hardware},
            transfer::{FAILED, Received},
        },
        kernels::Kernel,
        program,
    },
    run::{Document, LabCaveat, LabFacts, RunDirectory, copy::copy},
};

const MEMORY_MIB: u32 = 512;

/// For every guest's kernel: it accepts messages of programs to its log without a rate limit.
const APPEND: &str = "printk.devkmsg=on";

/// How long a kernel may take to show that KVM works.
const TRIAL: Duration = Duration::from_secs(20);

/// Lines of the console that a failure shows.
const SHOWN: usize = 20;

/// Changes when the same cell no longer means the same run.
const KEY: &str = "tardy lab cell 2";

/// What a kernel brings is known by its hash, where its modules lie, and whether it has two boxes.
type KernelKey = (String, Option<PathBuf>, bool);

/// What cells need of this machine. Cells may be run by several threads at once.
pub struct GuestRunner {
    place: PathBuf,
    version: String,
    program: Archive,
    kernels: Mutex<BTreeMap<KernelKey, Arc<Parts>>>,
    /// By hash of the kernel: whether it boots under KVM.
    kvm: Mutex<BTreeMap<String, bool>>,
}

impl GuestRunner {
    /// Finds QEMU, packs this program, and clears away what killed labs left in `cache`.
    ///
    /// # Errors
    /// Another architecture than x86-64; a missing QEMU, with the package that has it; a cache that
    /// cannot be written.
    pub fn open(cache: &Path, notify: Notify) -> Result<Self> {
        let own = std::env::current_exe().context("cannot find this program's own file")?;
        Self::with(&own, cache, notify)
    }

    /// The same with `tardy`, another executable of this program.
    ///
    /// # Errors
    /// As [`GuestRunner::open`].
    pub fn with(tardy: &Path, cache: &Path, notify: Notify) -> Result<Self> {
        // A guest runs this program's own file, and its kernel is one for x86-64.
        ensure!(
            cfg!(target_arch = "x86_64"),
            "the lab boots kernels for x86-64 with this tardy inside, which is built for {}; run \
             the lab on x86-64, and `tardy run` here",
            std::env::consts::ARCH
        );
        let qemu = program(qemu::PROGRAM);
        let qemu = qemu.context("install QEMU: apt-get install qemu-system-x86")?;
        let place = cache.join("guests");
        fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
        sweep(&place);
        let version = version(&qemu)?;
        let program = Archive::of(base(tardy, notify)?);
        Ok(Self { place, version, program, kernels: Mutex::default(), kvm: Mutex::default() })
    }

    /// SHA-256 of this program with its libraries, and QEMU's version.
    #[must_use]
    pub fn programs(&self) -> (&str, &str) {
        (&self.program.hash, &self.version)
    }

    /// SHA-256 over everything that decides what comes out of a cell, in hexadecimal digits.
    ///
    /// # Errors
    /// A kernel that cannot be read.
    pub fn key(&self, cell: &Cell) -> Result<String> {
        let parts = self.parts(cell)?;
        let mode = match cell.mode {
            ClockMode::Deterministic => "deterministic",
            ClockMode::Real => "real",
        };
        let (seed, cpus, far) = (cell.seed, cell.cpus, cell.far.len());
        let StartPhase { wait_ns, padding } = cell.start;
        let numbers = format!(
            "shift {SHIFT} seed {seed} wait {wait_ns} padding {padding} control {} cpus {cpus} far \
             {far}",
            cell.is_control
        );
        let given = [
            &self.version,
            &self.program.hash,
            &cell.kernel.hash,
            &parts.archive.hash,
            &cell.kernel.asked,
            &cell.kernel.append,
            mode,
            &numbers,
            &cell.load,
        ];
        let key = given.into_iter().fold(Key::of(KEY), |key, text| key.and(text));
        Ok(cell.far.iter().chain(&cell.arguments).fold(key, |key, text| key.and(text)).hex())
    }

    /// Runs the cell, and puts its run into `place`, which is new.
    ///
    /// # Errors
    /// What went wrong in the guest or around it, with the console's last lines. A run that tardy
    /// itself finds invalid does not count. Where the disk does not take the run, a part of it is
    /// left.
    pub fn run(
        &self,
        cell: &Cell,
        place: &RunDirectory,
        stop: &dyn Fn() -> bool,
    ) -> Result<Document> {
        cell.check(&self.version)?;
        cell.kernel.check()?;
        let emulation = match cell.counted() {
            Some(counted) => counted,
            None => self.real(cell, stop)?,
        };
        let parts = self.parts(cell)?;
        let job = job(cell, &parts.modules);
        let (finished, initramfs_hash) = self.boot(cell, &parts, &job, emulation, stop)?;
        let received = received(&finished)?;
        ensure!(
            received.code != FAILED,
            "`tardy run` in the guest has failed: {}",
            received.said.trim()
        );
        let facts = self.facts(cell, emulation, initramfs_hash)?;
        let caveats = kernel_caveats(&parts, &finished);
        let scratch = self.scratch()?;
        let complete = |run: &RunDirectory| guest_record::complete(run, cell, facts, &caveats);
        keep(&received, scratch.path(), place, complete)
    }

    /// What is known of the cell; the hash of its samples comes with them.
    fn facts(&self, cell: &Cell, emulation: Emulation, initramfs_hash: String) -> Result<LabFacts> {
        Ok(LabFacts {
            mode: guest_record::mode(emulation).into(),
            qemu: self.version.clone(),
            cpu_model: emulation.cpu_model().into(),
            shift: cell.counted().map(|_| SHIFT),
            seed: cell.seed,
            wait_ns: Some(cell.start.wait_ns),
            padding: cell.start.padding,
            is_control: cell.is_control,
            kernel: cell.kernel.asked.clone(),
            kernel_hash: cell.kernel.hash.clone(),
            initramfs_hash,
            sample_hash: None,
            load: cell.load.clone(),
            program_hash: self.program.hash.clone(),
            cpus: cell.cpus,
            arguments: cell.arguments.clone(),
            far: cell.far.clone(),
            key: self.key(cell)?,
        })
    }

    /// What would make a repetition of the run with these facts another run, in words.
    ///
    /// # Errors
    /// A kernel that cannot be read.
    pub fn differences(&self, facts: &LabFacts, cell: &Cell) -> Result<Vec<String>> {
        let mut found = Vec::new();
        if facts.qemu != self.version {
            found.push(format!("QEMU was {}, and is {}", facts.qemu, self.version));
        }
        let mut hashes = |what: &str, was: &str, is: &str| {
            if was != is {
                found.push(format!("{what} was {}, and is {}", short(was), short(is)));
            }
        };
        hashes("the kernel", &facts.kernel_hash, &cell.kernel.hash);
        hashes("tardy with its libraries", &facts.program_hash, &self.program.hash);
        if found.is_empty() && facts.key != self.key(cell)? {
            found.push("its modules or its command line have changed".into());
        }
        Ok(found)
    }

    /// By KVM where this kernel has shown that it boots under it.
    fn real(&self, cell: &Cell, stop: &dyn Fn() -> bool) -> Result<Emulation> {
        let (kernel, parts) = (&cell.kernel, self.parts(cell)?);
        // Other callers with the same kernel wait for the answer.
        let mut known = self.kvm.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.contains_key(&kernel.hash) {
            let works = File::options().read(true).write(true).open("/dev/kvm").is_ok()
                && self.boots_under_kvm(kernel, &parts, stop)?;
            known.insert(kernel.hash.clone(), works);
        }
        let works = known.get(&kernel.hash).copied().unwrap_or(false);
        Ok(if works { Emulation::Kvm } else { Emulation::Plain })
    }

    fn boots_under_kvm(
        &self,
        kernel: &Kernel,
        parts: &Parts,
        stop: &dyn Fn() -> bool,
    ) -> Result<bool> {
        let trial = Cell {
            kernel: kernel.clone(),
            mode: ClockMode::Real,
            seed: 0,
            start: StartPhase::default(),
            is_control: false,
            load: String::new(),
            arguments: Vec::new(),
            far: Vec::new(),
            cpus: 1,
            limit: TRIAL,
        };
        let job = Job {
            command: ["/init", "--version"].map(str::to_owned).into(),
            handed_out: Some(RUN.into()),
            ..Job::default()
        };
        let booted = self.boot(&trial, parts, &job, Emulation::Kvm, stop);
        ensure!(!stop(), "the guest was ended early");
        Ok(booted.is_ok_and(|(finished, _)| received(&finished).is_ok_and(|it| it.code == 0)))
    }

    /// Boots it, and returns the hash of its first file system too.
    fn boot(
        &self,
        cell: &Cell,
        parts: &Parts,
        job: &Job,
        emulation: Emulation,
        stop: &dyn Fn() -> bool,
    ) -> Result<(FinishedGuest, String)> {
        let scratch = self.scratch()?;
        let archives = [&self.program.bytes, &parts.archive.bytes, &job_archive(job)?];
        let initramfs = scratch.path().join("initramfs");
        let hash = write_all(&initramfs, &archives)?;
        let hardware = Hardware {
            emulation,
            cpus: cell.cpus,
            memory_mib: MEMORY_MIB,
            frequencies: false,
            nodes: cell.nodes(),
        };
        let finished = qemu::boot(&GuestMachine {
            hardware,
            kernel: &cell.kernel.boot,
            initramfs: &initramfs,
            append: &format!("{APPEND} {}{}", cell.kernel.append, cell.start.word()),
            directory: scratch.path(),
            // Without trouble it prints nothing.
            patience: Patience::in_all(cell.limit),
            stop,
        })?;
        if let Some(why) = finished.ending.words() {
            bail!("{why}{}", last_lines(&finished));
        }
        Ok((finished, hash))
    }

    /// A directory that is removed on drop, and after a SIGKILL by the next lab.
    ///
    /// # Errors
    /// A cache that cannot be written.
    pub fn scratch(&self) -> Result<GuestScratch> {
        let unwritable = || format!("cannot make a directory in {}", self.place.display());
        GuestScratch::create(&self.place).with_context(unwritable)
    }

    fn parts(&self, cell: &Cell) -> Result<Arc<Parts>> {
        let mut known = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        let (kernel, nodes) = (&cell.kernel, cell.nodes());
        let own = (kernel.hash.clone(), kernel.root.clone(), nodes == Nodes::Two);
        if let Some(parts) = known.get(&own) {
            return Ok(Arc::clone(parts));
        }
        let parts = Arc::new(Parts::of(kernel, nodes)?);
        known.insert(own, Arc::clone(&parts));
        Ok(parts)
    }
}

/// Enough of a hash to see that it differs.
fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

/// `QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)`: what comes behind the word.
fn version(qemu: &Path) -> Result<String> {
    let output = Command::new(qemu).arg("--version").output().context("cannot run QEMU")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.lines().next().and_then(|line| line.split_once("version "));
    let (_, version) = version.context("QEMU does not print its version")?;
    Ok(version.trim().to_owned())
}

fn received(finished: &FinishedGuest) -> Result<Received<'_>> {
    let parsed = Received::parse(&finished.files);
    parsed.map_err(|error| error.context(format!("the guest sent no run{}", last_lines(finished))))
}

/// What a failure shows of the console, and of one that hung of its CPUs.
fn last_lines(finished: &FinishedGuest) -> String {
    let cpus: String = finished.cpus.iter().map(|line| format!("\n{line}")).collect();
    if finished.console.is_silent() {
        return format!("; its console printed nothing{cpus}");
    }
    let what =
        if finished.console.trouble().is_some() { "lines from there on" } else { "last lines" };
    format!("; its console's {what}:\n{}{cpus}", finished.console.excerpt(SHOWN))
}

/// Writes the files in `scratch`, lets `complete` do the rest, and only then puts a copy of all in
/// place.
fn keep<T>(
    received: &Received,
    scratch: &Path,
    place: &RunDirectory,
    complete: impl FnOnce(&RunDirectory) -> Result<T>,
) -> Result<T> {
    let run = RunDirectory::make(&scratch.join("run"))?;
    received.write(&run).with_context(|| format!("cannot write to {}", scratch.display()))?;
    let made = complete(&run)?;
    copy(&run.path(), place).context("cannot write the run to its place")?;
    Ok(made)
}

fn kernel_caveats(parts: &Parts, finished: &FinishedGuest) -> Vec<LabCaveat> {
    let lacks = parts.lacks.iter().map(|lack| LabCaveat::KernelLacks { lack: lack.clone() });
    let warned = finished
        .console
        .warnings()
        .map(|(count, first)| LabCaveat::KernelWarned { count, first: first.to_owned() });
    lacks.chain(warned).collect()
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;
    use crate::lab::{
        guest::{console::Console, monitor::GuestEnd},
        kernels::missing_feature,
    };

    fn finished(console: &str) -> FinishedGuest {
        let mut watched = Console::default();
        watched.feed(console.as_bytes());
        FinishedGuest {
            ending: GuestEnd::Off,
            console: watched,
            output: String::new(),
            files: b"tardy-guest-1\n".into(),
            cpus: Vec::new(),
        }
    }

    #[test]
    fn what_a_kernel_lacks_or_warns_of_is_a_caveat() {
        let lacks = vec![missing_feature::no_module_files()];
        let parts = Parts::of(&Kernel { lacks, ..Kernel::default() }, Nodes::One).unwrap();
        let caveats = kernel_caveats(&parts, &finished("WARNING: CPU: 0 PID: 1 at x.c:7\n"));
        let code = |kind: &LabCaveat| {
            let caveat: crate::run::Caveat = crate::run::CaveatKind::from(kind.clone()).into();
            (caveat.code, caveat.text)
        };
        let [(lacks, what), (warned, line)] = [code(&caveats[0]), code(&caveats[1])];
        assert_eq!((lacks.as_str(), warned.as_str()), ("kernel_lacks", "kernel_warned"));
        assert!(what.contains("without modules") && line.contains("x.c:7"), "{what} {line}");
        assert_eq!(kernel_caveats(&parts, &finished("fine\n")).len(), 1);
    }

    #[test]
    fn a_guest_that_hands_out_nothing_is_reported_with_its_consoles_last_lines() {
        let error = received(&finished("[ 1.0] the last line\n")).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains("the last line") && error.contains("in part: 14 bytes"), "{error}");
        let error = format!("{:#}", received(&finished("")).unwrap_err());
        assert!(error.contains("printed nothing"), "{error}");
        let hung = FinishedGuest { cpus: vec!["CPU 0 in the kernel".into()], ..finished("") };
        assert!(last_lines(&hung).ends_with("printed nothing\nCPU 0 in the kernel"));
    }

    #[test]
    fn what_fails_on_its_way_leaves_nothing_in_its_place() {
        let mut stream = Vec::new();
        let mut sink = |part: &[u8]| {
            stream.extend_from_slice(part);
            Ok(())
        };
        let source = tempfile::tempdir().unwrap();
        fs::write(source.path().join("run.json"), "{}").unwrap();
        let mut sender = crate::lab::guest::transfer::TransferWriter::begin(&mut sink).unwrap();
        sender.tree(source.path()).unwrap();
        sender.end(0).unwrap();
        let received = Received::parse(&stream).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let run = RunDirectory::make(&at("run")).unwrap();
        let failed = keep(&received, &at("first"), &run, |_| Err::<(), _>(anyhow!("no")));
        assert_eq!(failed.unwrap_err().to_string(), "no");
        assert_eq!(fs::read_dir(at("run")).unwrap().count(), 0);
        let complete = |run: &RunDirectory| run.replace("run.json", b"whole").context("full");
        keep(&received, &at("second"), &run, complete).unwrap();
        assert_eq!(fs::read_to_string(at("run/run.json")).unwrap(), "whole");
        assert!(keep(&received, &at("third"), &run, |_| Ok(())).is_err(), "not overwritten");
        assert_eq!(fs::read_to_string(at("run/run.json")).unwrap(), "whole");
    }
}
