//! Transfers a run out of a guest: files in a stream of bytes that a device takes one by one.
//!
//! The stream begins with [`HELLO`], which a guest sends as soon as it is alive. Then come entries:
//! a letter, the lengths of name and content (4 bytes each, the lowest first), name, content. The
//! last entry is the end, followed by the SHA-256 of all before: a stream that is incomplete
//! or damaged in transfer is detected by that and never used.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write as _},
    path::{Component, Path},
};

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

use crate::limits::matrix::LONGEST_NAME;
use crate::run::RunDirectory;

/// The first bytes that a guest sends.
pub const HELLO: &[u8] = b"tardy-guest-1\n";

/// Exit code of a tardy that failed.
pub const FAILED: i32 = 2;

const DIRECTORY: u8 = b'd';
const FILE: u8 = b'f';
const SAID: u8 = b's';
const END: u8 = b'e';

/// Bytes of an entry before its name.
const HEAD: usize = 9;

/// Bytes of the sum.
const SUM: usize = 32;

/// What takes the bytes.
pub type ByteSink<'a> = &'a mut dyn FnMut(&[u8]) -> io::Result<()>;

/// A stream that is being written, in the guest.
pub struct TransferWriter<'a> {
    sink: ByteSink<'a>,
    sum: Sha256,
}

impl<'a> TransferWriter<'a> {
    /// Sends the hello.
    ///
    /// # Errors
    /// What the device says.
    pub fn begin(sink: ByteSink<'a>) -> Result<Self> {
        let mut sender = Self { sink, sum: Sha256::new() };
        sender.send(HELLO)?;
        Ok(sender)
    }

    /// Sends every file below `root`, in the order of their names.
    ///
    /// # Errors
    /// A file that cannot be read; anything that is neither file nor directory.
    pub fn tree(&mut self, root: &Path) -> Result<()> {
        self.below(root, "")
    }

    fn below(&mut self, root: &Path, prefix: &str) -> Result<()> {
        let directory = root.join(prefix);
        let unreadable = || format!("cannot read {}", directory.display());
        let mut names = Vec::new();
        for entry in fs::read_dir(&directory).with_context(unreadable)? {
            names.push(entry.with_context(unreadable)?.file_name());
        }
        names.sort();
        for name in names {
            let name = name.to_str().with_context(|| format!("{name:?} is not UTF-8"))?;
            let path = if prefix.is_empty() { name.into() } else { format!("{prefix}/{name}") };
            let kind = fs::symlink_metadata(root.join(&path))?.file_type();
            if kind.is_dir() {
                self.entry(DIRECTORY, &path, &[])?;
                self.below(root, &path)?;
            } else {
                ensure!(kind.is_file(), "{path} is neither a file nor a directory");
                let content = fs::read(root.join(&path));
                self.entry(FILE, &path, &content.with_context(|| format!("cannot read {path}"))?)?;
            }
        }
        Ok(())
    }

    /// Sends the command's output to the host.
    ///
    /// # Errors
    /// What the device says.
    pub fn said(&mut self, words: &str) -> Result<()> {
        self.entry(SAID, "", words.as_bytes())
    }

    /// Ends the stream with the exit code of the command.
    ///
    /// # Errors
    /// What the device says.
    pub fn end(mut self, code: i32) -> Result<()> {
        self.entry(END, "", &code.to_le_bytes())?;
        let sum = self.sum.clone().finalize();
        (self.sink)(&sum).context("cannot send")
    }

    fn entry(&mut self, kind: u8, name: &str, content: &[u8]) -> Result<()> {
        let length = |bytes: usize| {
            let length = u32::try_from(bytes);
            let length = length.with_context(|| format!("{name} has {bytes} bytes: too many"));
            length.map(u32::to_le_bytes)
        };
        self.send(&[kind])?;
        self.send(&length(name.len())?)?;
        self.send(&length(content.len())?)?;
        self.send(name.as_bytes())?;
        self.send(content)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.sum.update(bytes);
        (self.sink)(bytes).context("cannot send")
    }
}

/// What a guest sent, checked as a whole.
#[derive(Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// The exit code of its command.
    pub code: i32,
    /// Its output.
    pub said: String,
    /// Directories, each before what is in it.
    directories: Vec<&'a str>,
    /// Path and content.
    files: Vec<(&'a str, &'a [u8])>,
}

impl<'a> Received<'a> {
    /// Reads a whole stream.
    ///
    /// # Errors
    /// A stream that is cut off, with how much came; one that was damaged on its way; a name that
    /// leads elsewhere.
    pub fn parse(stream: &'a [u8]) -> Result<Self> {
        let mut left = Left { stream, at: 0 };
        ensure!(left.take(HELLO.len())? == HELLO, "the guest's first bytes are not tardy's");
        let mut received =
            Self { code: 0, said: String::new(), directories: Vec::new(), files: Vec::new() };
        loop {
            let (kind, name, content) = left.entry()?;
            match kind {
                DIRECTORY => received.directories.push(plain(name)?),
                FILE => received.files.push((plain(name)?, content)),
                SAID => received.said.push_str(&String::from_utf8_lossy(content)),
                END => {
                    let code = content.try_into().context("the end has no exit code")?;
                    received.code = i32::from_le_bytes(code);
                    break;
                }
                other => bail!("byte {}: no entry begins with {other:#04x}", left.at),
            }
        }
        let sum = Sha256::digest(&stream[..left.at]);
        ensure!(left.take(SUM)? == sum.as_slice(), "the guest's files were damaged in transfer");
        ensure!(left.at == stream.len(), "there are more bytes after the end of the guest's files");
        Ok(received)
    }

    /// Writes directories and files into `root`, each as a new one.
    ///
    /// # Errors
    /// What the disk says; a file whose directory the guest did not send before.
    pub fn write(&self, root: &RunDirectory) -> Result<()> {
        let mut known = BTreeMap::from([("", root.clone())]);
        for name in &self.directories {
            let (above, own) = parts(name);
            let above = known.get(above).with_context(|| format!("no directory for {name}"))?;
            let made = above.subdirectory(own).with_context(|| format!("cannot make {name}"))?;
            known.insert(name, made);
        }
        for (name, content) in &self.files {
            let (above, own) = parts(name);
            let above = known.get(above).with_context(|| format!("no directory for {name}"))?;
            let written = above.create(own).and_then(|mut file| file.write_all(content));
            written.with_context(|| format!("cannot write {name}"))?;
        }
        Ok(())
    }
}

/// A stream and how far it was read.
struct Left<'a> {
    stream: &'a [u8],
    at: usize,
}

impl<'a> Left<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.stream.len());
        let Some(end) = end else {
            bail!(
                "the guest's files came only in part: {} bytes, and no end; did the guest break, \
                 or is the disk full?",
                self.stream.len()
            );
        };
        let taken = &self.stream[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn entry(&mut self) -> Result<(u8, &'a str, &'a [u8])> {
        let head = self.take(HEAD)?;
        let length = |at: usize| {
            let bytes = [head[at], head[at + 1], head[at + 2], head[at + 3]];
            u32::from_le_bytes(bytes) as usize
        };
        let name = self.take(length(1))?;
        let name = std::str::from_utf8(name).context("a name is not UTF-8")?;
        Ok((head[0], name, self.take(length(5))?))
    }
}

/// The directory of a path, empty where it has none, and the name in it.
fn parts(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// A path that stays below where it is put.
fn plain(name: &str) -> Result<&str> {
    let is_normal = |part: Component| matches!(part, Component::Normal(_));
    let path = Path::new(name);
    let is_plain = path.components().all(is_normal) && !name.contains('\0');
    let is_short = (1..=LONGEST_NAME).contains(&name.len());
    ensure!(
        is_plain && is_short,
        "the guest sent a file named {name:?}, which is not a plain name"
    );
    Ok(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stream(root: &Path, said: &str, code: i32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut sink = |part: &[u8]| {
            bytes.extend_from_slice(part);
            Ok(())
        };
        let mut sender = TransferWriter::begin(&mut sink).unwrap();
        sender.tree(root).unwrap();
        sender.said(said).unwrap();
        sender.end(code).unwrap();
        bytes
    }

    fn tree(files: &BTreeMap<String, Vec<u8>>) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        root
    }

    fn found(root: &Path) -> BTreeMap<String, Vec<u8>> {
        let bytes = stream(root, "", 0);
        let received = Received::parse(&bytes).unwrap();
        let files = received.files.iter();
        files.map(|(name, content)| ((*name).to_owned(), content.to_vec())).collect()
    }

    fn any_tree() -> impl Strategy<Value = BTreeMap<String, Vec<u8>>> {
        // A name of a file has a letter that none of a directory has.
        let name = "([a-c]{1,3}/){0,2}[a-c]{0,3}[x-z.-]{0,2}[x-z]";
        proptest::collection::btree_map(name, any::<Vec<u8>>(), 0..8)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_tree_comes_out_as_it_went_in(files in any_tree(), said: String, code: i32) {
            let bytes = stream(tree(&files).path(), &said, code);
            let received = Received::parse(&bytes).unwrap();
            prop_assert_eq!((received.code, &received.said), (code, &said));
            let out = tempfile::tempdir().unwrap();
            received.write(&RunDirectory::make(out.path()).unwrap()).unwrap();
            prop_assert_eq!(found(out.path()), files);
        }

        #[test]
        fn a_stream_that_is_cut_changed_or_made_up_is_an_error_and_no_panic(
            files in any_tree(), at: prop::sample::Index, bit in 0..8_u32, noise: Vec<u8>,
        ) {
            let whole = stream(tree(&files).path(), "", 0);
            let cut = &whole[..at.index(whole.len())];
            let error = Received::parse(cut).unwrap_err().to_string();
            prop_assert!(error.contains(&format!("in part: {} bytes", cut.len())), "{}", error);
            let mut changed = whole.clone();
            changed[at.index(whole.len())] ^= 1_u8 << bit;
            prop_assert!(Received::parse(&changed).is_err());
            prop_assert!(Received::parse(&[&whole, noise.as_slice(), b"."].concat()).is_err());
            prop_assert!(Received::parse(&[HELLO, &noise].concat()).is_err());
        }
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_refused() {
        for name in ["/etc/passwd", "../x", "a/../b", "", "./a", "a\0", &"a".repeat(256)] {
            assert!(plain(name).is_err(), "{name}");
        }
        for name in ["run.json", "samples/0001.parquet", ".hidden"] {
            assert_eq!(plain(name).unwrap(), name);
        }
    }

    #[test]
    fn a_link_in_the_place_of_a_file_or_a_directory_is_not_followed() {
        let file = |name: &str| (name.to_owned(), b"new".to_vec());
        for name in ["run.json", "samples/0001.parquet"] {
            let bytes = stream(tree(&BTreeMap::from([file(name)])).path(), "", 0);
            let place = tempfile::tempdir().unwrap();
            let other = tree(&BTreeMap::from([("kept".to_owned(), b"kept".to_vec())]));
            let root = RunDirectory::make(&place.path().join("run")).unwrap();
            let (planted, to) = match name.split_once('/') {
                Some((directory, _)) => (directory, other.path().to_owned()),
                None => (name, other.path().join("kept")),
            };
            std::os::unix::fs::symlink(to, place.path().join("run").join(planted)).unwrap();
            Received::parse(&bytes).unwrap().write(&root).unwrap_err();
            assert_eq!(found(other.path()), BTreeMap::from([("kept".into(), b"kept".to_vec())]));
        }
    }

    #[test]
    fn what_is_no_file_is_not_sent() {
        let root = tree(&BTreeMap::new());
        std::os::unix::fs::symlink("/etc/passwd", root.path().join("link")).unwrap();
        let mut sink = |_: &[u8]| Ok(());
        let mut sender = TransferWriter::begin(&mut sink).unwrap();
        let error = sender.tree(root.path()).unwrap_err().to_string();
        assert!(error.contains("link is neither"), "{error}");
    }
}
