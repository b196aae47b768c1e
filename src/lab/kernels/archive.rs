//! The content of a package file, which may come from anywhere: read and unpacked within limits.
//! dpkg-deb opens the package and tar makes the files; what passes between them is counted.

use std::{
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    thread::{self, JoinHandle},
};

use anyhow::{Context, Result, bail, ensure};

use super::{
    cache::Cache,
    package::{mortal, reason},
};
use crate::lab::program;

/// Bytes of a block of a tar archive; each file takes one at least.
const BLOCK: usize = 512;

/// Bytes that are kept of what a program complains of.
const SAID: u64 = 64 << 10;

/// What may be in an archive.
#[derive(Debug, Clone, Copy)]
pub(super) struct ArchiveLimits {
    /// Bytes of all of it.
    pub bytes: u64,
    /// Files, directories and all else that has a name.
    pub files: u64,
}

/// Of what a package installs: several times what a kernel with all modules and what debuggers read
/// of them takes.
pub(super) const LIMITS: ArchiveLimits = ArchiveLimits { bytes: 16 << 30, files: 200_000 };

/// Of what a package says of itself.
const OF_CONTROL: ArchiveLimits = ArchiveLimits { bytes: 16 << 20, files: 1_000 };

/// What a package file takes unpacked, bytes, as far as it says.
///
/// # Errors
/// It is not a package, or claims larger sizes than any package has.
pub(super) fn size_of(deb: &Path) -> Result<u64> {
    let mut control = Counted::new(Vec::new(), OF_CONTROL);
    let poured = pour(Command::new(dpkg_deb()?).arg("--ctrl-tarfile").arg(deb), &mut control);
    let named = || format!("{} is not a whole Debian package", deb.display());
    control.check().and(poured).with_context(named)?;
    // An archive without compression: its files stand in it as they are.
    let text = String::from_utf8_lossy(&control.sink);
    let size = text.lines().find_map(|line| line.strip_prefix("Installed-Size:"));
    let kib: u64 = size.and_then(|size| size.trim().parse().ok()).unwrap_or(0);
    Ok(kib.saturating_mul(1024))
}

/// Unpacks what a package would install into `root`, which is new.
///
/// # Errors
/// It is not a complete package, or has more in it than the limits; the disk does not take it.
pub(super) fn extract(deb: &Path, root: &Path, cache: &Cache, limits: ArchiveLimits) -> Result<()> {
    let failed = || {
        format!("cannot unpack it into {}: is the disk full, or the package damaged?", cache.room())
    };
    fs::create_dir(root).with_context(failed)?;
    let mut dpkg_deb = Command::new(dpkg_deb()?);
    let (mut tar, sink, said) = unpacker(root)?;
    let mut counted = Counted::new(sink, limits);
    let poured = pour(dpkg_deb.arg("--fsys-tarfile").arg(deb), &mut counted);
    let checked = counted.check();
    // Now tar has all, and ends.
    drop(counted);
    let ended = reap("tar", &mut tar, said);
    checked?;
    let unpacked = match poured {
        // Where tar ended first, that it took no more is a consequence.
        Err(error) if !is_refused(&error) => Err(error),
        _ => ended,
    };
    unpacked.with_context(failed)
}

/// Whether this is the error of who writes to a program that has ended.
fn is_refused(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// What makes files below `root` of a tar archive; where to write it, and what it complains of.
fn unpacker(root: &Path) -> Result<(Child, ChildStdin, JoinHandle<String>)> {
    let tar = program("tar").context("which unpacks packages; apt-get install tar")?;
    let mut command = Command::new(tar);
    command.args(["--extract", "--file=-", "--no-same-owner", "--directory"]).arg(root);
    let mut command = mortal(&command);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut tar = command.spawn().context("cannot run tar")?;
    let (Some(sink), Some(said)) = (tar.stdin.take(), tar.stderr.take()) else {
        bail!("cannot talk to tar")
    };
    Ok((tar, sink, thread::spawn(move || beginning(said))))
}

fn dpkg_deb() -> Result<PathBuf> {
    program("dpkg-deb").context("dpkg-deb is missing, which unpacks packages; apt-get install dpkg")
}

/// Runs a program, and gives what it writes to `sink`; it is ended where that takes no more.
fn pour(command: &mut Command, sink: &mut impl Write) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut command = mortal(command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot run {name}"))?;
    let (Some(mut output), Some(said)) = (child.stdout.take(), child.stderr.take()) else {
        bail!("cannot read from {name}")
    };
    let said = thread::spawn(move || beginning(said));
    let poured = io::copy(&mut output, sink);
    drop(output);
    if poured.is_err() {
        let _ = child.kill();
    }
    let ended = reap(&name, &mut child, said);
    poured.with_context(|| format!("cannot take what {name} writes"))?;
    ended
}

/// Waits for the end of a program.
fn reap(name: &str, child: &mut Child, said: JoinHandle<String>) -> Result<()> {
    let ended = child.wait().with_context(|| format!("cannot wait for {name}"))?;
    let said = said.join().unwrap_or_default();
    ensure!(ended.success(), "{name} fails: {}", reason(&said));
    Ok(())
}

/// The beginning of what a program complains of, to whose end it is read: else it would wait.
fn beginning(mut said: impl Read) -> String {
    let mut bytes = Vec::new();
    let _ = said.by_ref().take(SAID).read_to_end(&mut bytes);
    let _ = io::copy(&mut said, &mut io::sink());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Counts what is in a tar archive that passes, and ends it at a limit.
#[derive(Debug)]
struct Counted<W> {
    sink: W,
    limits: ArchiveLimits,
    bytes: u64,
    files: u64,
    block: Vec<u8>,
}

impl<W: Write> Counted<W> {
    const fn new(sink: W, limits: ArchiveLimits) -> Self {
        Self { sink, limits, bytes: 0, files: 0, block: Vec::new() }
    }

    /// Whether it is within the limits.
    fn check(&self) -> Result<()> {
        let ArchiveLimits { bytes, files } = self.limits;
        ensure!(
            self.bytes <= bytes,
            "more than {} MiB are in this package, as in none with a kernel",
            bytes >> 20
        );
        ensure!(
            self.files <= files,
            "more than {files} files are in this package, as in none with a kernel"
        );
        Ok(())
    }

    /// Takes bytes into account.
    fn count(&mut self, mut bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        while !bytes.is_empty() {
            let (taken, rest) = bytes.split_at(bytes.len().min(BLOCK - self.block.len()));
            self.block.extend_from_slice(taken);
            bytes = rest;
            if self.block.len() == BLOCK {
                self.files += u64::from(is_header(&self.block));
                self.block.clear();
            }
        }
    }
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.count(bytes);
        self.check().map_err(|error| io::Error::other(error.to_string()))?;
        self.sink.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// Whether a block is what tar takes for the beginning of a file: it has the sum of its bytes in
/// it, those of the sum taken for spaces. Looked for in every block, so that nobody can hide one by
/// a size that tar does not believe.
fn is_header(block: &[u8]) -> bool {
    const SUM: std::ops::Range<usize> = 148..156;
    let Some(said) = block.get(SUM).and_then(octal) else { return false };
    let spaces = i64::from(b' ') * SUM.len() as i64;
    let sum = |value: fn(u8) -> i64| {
        let all: i64 = block.iter().map(|byte| value(*byte)).sum();
        let own: i64 = block.get(SUM).into_iter().flatten().map(|byte| value(*byte)).sum();
        all - own + spaces
    };
    // Old ones took bytes for signed.
    said == sum(i64::from) || said == sum(|byte| byte.cast_signed().into())
}

/// A number in octal digits, with spaces before it.
fn octal(field: &[u8]) -> Option<i64> {
    let digits = field.trim_ascii_start();
    let length = digits.iter().take_while(|byte| matches!(byte, b'0'..=b'7')).count();
    let digits = std::str::from_utf8(digits.get(..length)?).ok()?;
    i64::from_str_radix(digits, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tar archive of `files` files of `bytes` bytes each, as tar makes it.
    fn archive(files: usize, bytes: usize) -> Vec<u8> {
        let directory = tempfile::tempdir().unwrap();
        for number in 0..files {
            fs::write(directory.path().join(number.to_string()), vec![b'x'; bytes]).unwrap();
        }
        let mut tar = Command::new("tar");
        tar.args(["--create", "--file=-", "--directory"]).arg(directory.path()).arg(".");
        tar.output().unwrap().stdout
    }

    fn counted(archive: &[u8], parts: usize, limits: ArchiveLimits) -> io::Result<u64> {
        let mut counted = Counted::new(io::sink(), limits);
        archive.chunks(parts).try_for_each(|part| counted.write_all(part))?;
        Ok(counted.files)
    }

    #[test]
    fn files_are_counted_in_whatever_parts_they_come() {
        let archive = archive(7, 700);
        for parts in [1, 511, 512, 513, 8192] {
            assert_eq!(counted(&archive, parts, LIMITS).unwrap(), 8, "and their directory");
        }
        assert_eq!(counted(&[b'0'; 4096], 100, LIMITS).unwrap(), 0, "no sum fits");
        assert_eq!(counted(&[0; 4096], 100, LIMITS).unwrap(), 0, "the end");
    }

    #[test]
    fn an_archive_with_more_than_the_limits_is_ended_with_what_was_too_much() {
        let archive = archive(7, 700);
        let refused =
            |bytes, files| counted(&archive, 100, ArchiveLimits { bytes, files }).unwrap_err();
        let bytes = archive.len() as u64;
        assert!(counted(&archive, 100, ArchiveLimits { bytes, files: 8 }).is_ok());
        assert!(refused(bytes - 1, 8).to_string().contains("MiB are in this package"));
        assert!(refused(bytes, 7).to_string().contains("more than 7 files"));
    }

    #[test]
    fn a_program_that_writes_for_ever_is_ended_at_the_limit() {
        let limits = ArchiveLimits { bytes: 1 << 20, files: 1 };
        let mut counted = Counted::new(io::sink(), limits);
        pour(Command::new("cat").arg("/dev/zero"), &mut counted).unwrap_err();
        let error = counted.check().unwrap_err().to_string();
        assert!(error.contains("more than 1 MiB"), "{error}");
    }

    #[test]
    fn what_a_program_complains_of_is_its_error() {
        let mut sink = Vec::new();
        let script = "echo done; echo 'no, not so' >&2; exit 3";
        let error = pour(Command::new("sh").args(["-c", script]), &mut sink).unwrap_err();
        assert!(error.to_string().contains("sh fails: no, not so"), "{error}");
        assert_eq!(sink, b"done\n");
    }
}
