//! The cache on disk: its lock, the checks of its content, and its free space.
//!
//! What is made is made in its own directory beside its place, and moved there when it is complete.
//! Only the lock holder has such a directory. So the next lock holder may remove any that it finds:
//! the process that made it was killed.

use std::{
    ffi::OsStr,
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::lab::Notify;

/// Begins the names of directories that are not finished.
const SCRATCH: &str = "scratch-";

/// The checksums of a directory, as `sha256sum --check` reads them.
const SUMS: &str = "sums";

/// A cache, locked for writing.
#[derive(Debug)]
pub struct Cache {
    place: PathBuf,
    /// Freed when it is closed, also by a process that is killed.
    _lock: File,
}

impl Cache {
    /// Makes the directory if it is missing, waits for another writer's lock, and removes what
    /// was left unfinished.
    ///
    /// # Errors
    /// It cannot be made, or not written to.
    pub fn open(place: &Path, notify: Notify) -> Result<Self> {
        let open = || {
            fs::create_dir_all(place)?;
            lock_file(&place.join("lock"))
        };
        let lock = open().with_context(|| {
            format!(
                "cannot write to the kernels' cache {}; set XDG_CACHE_HOME to use another place",
                place.display()
            )
        })?;
        if let Err(TryLockError::WouldBlock) = lock.try_lock() {
            notify(&format!("waiting for another tardy that uses {}", place.display()));
            lock.lock().with_context(|| format!("cannot lock {}", place.display()))?;
        }
        for entry in fs::read_dir(place)?.flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(SCRATCH.as_bytes()) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        Ok(Self { place: place.to_owned(), _lock: lock })
    }

    /// Where something of this name lies.
    #[must_use]
    pub fn at(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.place.join(name.as_ref())
    }

    /// A directory for what is not finished.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn scratch(&self) -> Result<TempDir> {
        TempDir::with_prefix_in(SCRATCH, &self.place)
            .with_context(|| format!("cannot make a directory in {}", self.place.display()))
    }

    /// Moves what is finished to its place, with checksums of its `files` (relative to it).
    ///
    /// # Errors
    /// The disk does not take it.
    pub fn settle(&self, scratch: TempDir, files: &[PathBuf], place: &Path) -> Result<()> {
        let mut sums = String::new();
        for file in files {
            let sum = sha256(&scratch.path().join(file))?;
            sums.push_str(&format!("{sum}  {}\n", file.display()));
        }
        // Last: what has them is whole.
        let list = scratch.path().join(SUMS);
        fs::write(&list, sums).with_context(|| format!("cannot write {}", list.display()))?;
        if place.exists() {
            // Moves the old one away in one step: a reader meanwhile finds nothing, not a part.
            let old = self.scratch()?;
            fs::rename(place, old.path().join("old"))
                .with_context(|| format!("cannot replace {}", place.display()))?;
        }
        fs::rename(scratch.path(), place)
            .with_context(|| format!("cannot make {}", place.display()))?;
        let _ = scratch.keep();
        Ok(())
    }

    /// Whether `bytes` can be written, as far as can be known before.
    ///
    /// # Errors
    /// They cannot; how much is free and how much is needed.
    pub fn need(&self, bytes: u64) -> Result<()> {
        let free = free(&self.place);
        ensure!(
            free.is_none_or(|free| free >= bytes),
            "no room in {}: {} MiB are free there, and the kernel needs {}; free some, or set \
             XDG_CACHE_HOME to another place",
            self.place.display(),
            free.unwrap_or(0) >> 20,
            mib(bytes)
        );
        Ok(())
    }

    /// A likely cause of an external program's error.
    #[must_use]
    pub fn room(&self) -> String {
        let free = free(&self.place).map(|free| format!(" ({} MiB free there)", free >> 20));
        format!("{}{}", self.place.display(), free.unwrap_or_default())
    }
}

/// Opens the lock, and makes it where it is missing. What is there is not emptied, and no link is
/// followed: under the `HOME` of another user, as `sudo` may leave it, it may lead anywhere.
fn lock_file(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let mut options = File::options();
    let options = options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other(format!("{} is not a plain file; remove it", path.display())))
    }
}

/// Upwards, so that little is not nothing.
fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

/// Bytes that an ordinary user may write.
fn free(place: &Path) -> Option<u64> {
    let about = rustix::fs::statvfs(place).ok()?;
    about.f_bavail.checked_mul(about.f_frsize)
}

/// What was written down when a directory was made: checksum and file, relative to it.
pub fn sums(place: &Path) -> Option<Vec<(String, PathBuf)>> {
    let text = fs::read_to_string(place.join(SUMS)).ok()?;
    let line = |line: &str| {
        let (sum, file) = line.split_once("  ")?;
        (sum.len() == 64).then(|| (sum.to_owned(), PathBuf::from(file)))
    };
    text.lines().map(line).collect()
}

/// Whether a directory of the cache still holds what was put there.
pub fn is_whole(place: &Path) -> bool {
    let is_same =
        |(sum, file): &(String, PathBuf)| sha256(&place.join(file)).is_ok_and(|now| now == *sum);
    sums(place).is_some_and(|sums| !sums.is_empty() && sums.iter().all(is_same))
}

/// The SHA-256 of a file, hexadecimal.
///
/// # Errors
/// It cannot be read.
pub fn sha256(file: &Path) -> Result<String> {
    let hash = || -> io::Result<String> {
        let mut hasher = Sha256::new();
        let mut reader = File::open(file)?;
        let mut block = vec![0; 1 << 20];
        loop {
            match io::Read::read(&mut reader, &mut block)? {
                0 => return Ok(hex(&hasher.finalize())),
                length => hasher.update(&block[..length]),
            }
        }
    };
    hash().with_context(|| format!("cannot read {}", file.display()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(cache: &Cache, content: &str) -> PathBuf {
        let scratch = cache.scratch().unwrap();
        fs::write(scratch.path().join("a"), content).unwrap();
        let place = cache.at("thing");
        cache.settle(scratch, &["a".into()], &place).unwrap();
        place
    }

    #[test]
    fn what_was_put_there_is_whole_until_it_changes_and_can_be_put_there_again() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::open(directory.path(), &|_| {}).unwrap();
        let place = made(&cache, "abc");
        assert!(is_whole(&place));
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sums(&place).unwrap(), [(known.to_owned(), PathBuf::from("a"))]);
        fs::write(place.join("a"), "abd").unwrap();
        assert!(!is_whole(&place));
        assert!(is_whole(&made(&cache, "abcd")), "replaced");
        for broken in ["", "00  a\n", "no sums"] {
            fs::write(place.join(SUMS), broken).unwrap();
            assert!(!is_whole(&place), "{broken}");
        }
        fs::remove_file(place.join(SUMS)).unwrap();
        assert!(!is_whole(&place));
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["scratch-x/deep", "linux"] {
            fs::create_dir_all(directory.path().join(name)).unwrap();
        }
        let _cache = Cache::open(directory.path(), &|_| {}).unwrap();
        assert!(!directory.path().join("scratch-x").exists());
        assert!(directory.path().join("linux").exists());
    }

    #[test]
    fn a_lock_that_is_a_link_or_a_pipe_is_refused_and_nothing_is_emptied() {
        let directory = tempfile::tempdir().unwrap();
        let (kept, lock) = (directory.path().join("kept"), directory.path().join("lock"));
        fs::write(&kept, "kept").unwrap();
        std::os::unix::fs::symlink(&kept, &lock).unwrap();
        Cache::open(directory.path(), &|_| {}).unwrap_err();
        assert_eq!(fs::read_to_string(&kept).unwrap(), "kept");
        fs::remove_file(&lock).unwrap();
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &lock, fifo, 0o600.into(), 0).unwrap();
        Cache::open(directory.path(), &|_| {}).unwrap_err();
        fs::rename(&kept, &lock).unwrap();
        Cache::open(directory.path(), &|_| {}).unwrap();
        assert_eq!(fs::read_to_string(&lock).unwrap(), "kept", "it is only locked");
    }

    #[test]
    fn room_that_is_not_there_is_reported_with_what_is_needed() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::open(directory.path(), &|_| {}).unwrap();
        assert!(cache.need(0).is_ok());
        let error = cache.need(u64::MAX >> 1).unwrap_err().to_string();
        assert!(error.contains("8796093022208 MiB") && error.contains("XDG_CACHE_HOME"), "{error}");
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let error = Cache::open(Path::new("/proc/no/cache"), &|_| {}).unwrap_err();
        assert!(format!("{error:#}").contains("/proc/no/cache"), "{error:#}");
    }
}
