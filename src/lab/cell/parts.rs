//! The parts of a guest's first file system: this program with what it starts, what a kernel
//! brings, and the job. Archives that the kernel unpacks one after the other.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use super::{Cell, hex, keeps_samples};
use crate::{
    lab::{
        Notify,
        guest::{
            image::Image,
            init::{self, Job, Module},
            nodes::{self, Nodes},
        },
        kernels::{
            Kernel, LARGEST_CONFIG, missing_feature,
            modules::{self, Modules},
        },
        program,
    },
    run::files,
};

/// What loads start besides tardy itself.
const PROGRAMS: [&str; 2] = ["ip", "sh"];

/// Modules that loads need, and what they are given.
const MODULES: [(&str, &str); 4] =
    [(modules::CHECKSUM, ""), ("ext4", ""), ("loop", ""), ("veth", "")];

/// Small files that programs look for.
const FILES: [(&str, &str); 3] = [
    ("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"),
    ("/etc/group", "root:x:0:\nnogroup:x:65534:\n"),
    ("/etc/hosts", "127.0.0.1 localhost\n"),
];

/// Where the guest's tardy records.
pub const RUN: &str = "/run/tardy";

/// Length of the file with the job: always the same, so that memory looks the same whatever the
/// job.
const JOB_BYTES: usize = 16 << 10;

/// A part of a first file system.
pub struct Archive {
    /// All of it.
    pub bytes: Vec<u8>,
    /// SHA-256 of it, in hexadecimal digits.
    pub hash: String,
}

impl Archive {
    /// Of these bytes.
    #[must_use]
    pub fn of(bytes: Vec<u8>) -> Self {
        let hash = hex(&Sha256::digest(&bytes));
        Self { bytes, hash }
    }
}

/// What every cell of a kernel has.
pub struct Parts {
    /// Its modules and its configuration.
    pub archive: Archive,
    /// What to load, in this order.
    pub modules: Vec<Module>,
    /// What it lacks of what the lab needs.
    pub lacks: Vec<String>,
}

impl Parts {
    /// Reads the kernel and what came with it.
    ///
    /// # Errors
    /// A file that cannot be read, modules that cannot be unpacked.
    pub fn of(kernel: &Kernel, nodes: Nodes) -> Result<Self> {
        let (mut archive, mut modules) = (Image::addition(), Vec::new());
        let mut lacks: Vec<String> = kernel.lacks.iter().map(|lack| lack.what.clone()).collect();
        archive.directory("job", 0o755);
        // That it has none is among what it lacks already.
        if let Some(root) = &kernel.root {
            let known = Modules::read(root, &kernel.name)?;
            let cards = (nodes == Nodes::Two).then_some(nodes::DRIVER);
            let needed = |(name, _): &(&str, &str)| *name != modules::CHECKSUM || known.has(name);
            for (name, parameters) in MODULES.into_iter().chain(cards).filter(needed) {
                match known.closure(&[name]) {
                    Ok(files) => add_modules(&mut archive, &mut modules, files, parameters)?,
                    Err(_) => lacks.push(missing_feature::no_module(name).what),
                }
            }
            let config = format!("boot/config-{}", kernel.name);
            if let Ok(content) = files::read(&root.join(&config), LARGEST_CONFIG) {
                archive.file(&config, 0o644, content);
            }
        }
        let archive = Archive::of(archive.bytes()?);
        Ok(Self { archive, modules, lacks })
    }
}

/// The last of `files` is what the parameters are for; those before it are what it needs.
fn add_modules(
    archive: &mut Image,
    modules: &mut Vec<Module>,
    files: Vec<PathBuf>,
    parameters: &str,
) -> Result<()> {
    let last = files.len().saturating_sub(1);
    for (number, file) in files.iter().enumerate() {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let name = name.split(".ko").next().unwrap_or_default();
        let inside = PathBuf::from(format!("/job/modules/{name}.ko"));
        if modules.iter().any(|known| known.file == inside) {
            continue;
        }
        archive.file(&inside.to_string_lossy(), 0o644, modules::content(file)?);
        let parameters = if number == last { parameters } else { "" };
        modules.push(Module { file: inside, parameters: parameters.into() });
    }
    Ok(())
}

/// The first and largest part: `own`, this program, and what it needs.
///
/// # Errors
/// A program or library that cannot be read.
pub fn base(own: &Path, notify: Notify) -> Result<Vec<u8>> {
    let mut image = Image::default();
    image.bare_program(own, init::OWN)?;
    for name in PROGRAMS {
        match program(name) {
            Ok(file) => image.bare_program(&file, &format!("/usr/bin/{name}"))?,
            Err(error) => notify(&format!("{error:#}: loads that start it will fail")),
        }
    }
    for (path, content) in FILES {
        image.file(path, 0o644, content.into());
    }
    image.bytes()
}

/// What the guest of a cell is to do.
#[must_use]
pub fn job(cell: &Cell, modules: &[Module]) -> Job {
    let fixed = ["--quiet", "-o", RUN];
    let arguments = cell.arguments.iter().map(String::as_str);
    let command = [init::OWN, "run"].into_iter().chain(arguments);
    let command = command.chain(keeps_samples(&cell.arguments)).chain(fixed);
    let paths = [("PATH", "/usr/bin:/usr/sbin"), ("HOME", "/root"), ("LANG", "C.UTF-8")];
    Job {
        command: command.map(str::to_owned).collect(),
        environment: paths.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        modules: modules.to_vec(),
        kept: Vec::new(),
        wait_ns: cell.start.wait_ns,
        handed_out: Some(RUN.into()),
        far: cell.far.clone(),
    }
}

/// The job, as long as any other.
///
/// # Errors
/// Arguments that are too long for it.
pub fn job_archive(job: &Job) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec(job)?;
    ensure!(text.len() <= JOB_BYTES, "the arguments of tardy run are longer than a job may be");
    text.resize(JOB_BYTES, b' ');
    let mut image = Image::addition();
    image.directory("job", 0o755);
    image.file(init::JOB, 0o644, text);
    image.bytes()
}

/// Writes the archives into one file; returns SHA-256 of it.
///
/// # Errors
/// What the disk says.
pub fn write_all(file: &Path, archives: &[&Vec<u8>]) -> Result<String> {
    let mut sum = Sha256::new();
    let mut written = File::create(file);
    for archive in archives {
        sum.update(archive);
        let one = |mut file: File| std::io::Write::write_all(&mut file, archive).map(|()| file);
        written = written.and_then(one);
    }
    written.with_context(|| format!("cannot write {}: is the disk full?", file.display()))?;
    Ok(hex(&sum.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_reported_by_the_file_that_has_no_place() {
        let full = Path::new("/dev/full");
        let error = write_all(full, &[&vec![0; 9]]).unwrap_err().to_string();
        assert_eq!(error, "cannot write /dev/full: is the disk full?");
    }

    #[test]
    fn a_job_is_as_long_as_any_other() {
        let cell = |arguments: &[&str]| crate::lab::cell::tests::cell(arguments);
        let short = job_archive(&job(&cell(&[]), &[])).unwrap();
        let long = job_archive(&job(&cell(&["--load", &"x".repeat(9_000)]), &[])).unwrap();
        assert_eq!(short.len(), long.len());
        assert!(job_archive(&job(&cell(&[&"x".repeat(JOB_BYTES)]), &[])).is_err());
    }
}
