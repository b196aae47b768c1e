//! A guest's first and only file system: chosen programs with their libraries, and given files.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, BufWriter, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use super::cpio::{CpioWriter, Node};

/// Where Debian has merged what used to be two.
const MERGED: [(&str, &str); 4] =
    [("bin", "usr/bin"), ("sbin", "usr/sbin"), ("lib", "usr/lib"), ("lib64", "usr/lib64")];

/// What will be in the archive, by absolute path without the first slash.
pub struct Image {
    nodes: BTreeMap<String, Node>,
}

impl Default for Image {
    /// The directories that every Linux has, and a console for the time before there is `/dev`.
    fn default() -> Self {
        let mut image = Self { nodes: BTreeMap::new() };
        for (name, target) in MERGED {
            image.directory(target, 0o755);
            image.nodes.insert(name.into(), Node::Link(target.into()));
        }
        for name in ["dev", "etc", "proc", "root", "run", "sys"] {
            image.directory(name, 0o755);
        }
        image.directory("tmp", 0o1777);
        image.nodes.insert("dev/console".into(), Node::CharacterDevice(5, 1));
        image
    }
}

impl Image {
    /// A directory, and those that it lies in.
    pub fn directory(&mut self, path: &str, permissions: u32) {
        if let Some((parent, _)) = path.rsplit_once('/')
            && !self.nodes.contains_key(parent)
        {
            self.directory(parent, 0o755);
        }
        self.nodes.entry(path.into()).or_insert(Node::Directory(permissions));
    }

    /// A file with this content.
    pub fn file(&mut self, path: &str, permissions: u32, content: Vec<u8>) {
        let path = place(path);
        if let Some((parent, _)) = path.rsplit_once('/') {
            self.directory(parent, 0o755);
        }
        self.nodes.insert(path, Node::File(permissions, content));
    }

    /// A link at `path` to `target`.
    pub fn link(&mut self, path: &str, target: &str) {
        let path = place(path);
        if let Some((parent, _)) = path.rsplit_once('/') {
            self.directory(parent, 0o755);
        }
        self.nodes.insert(path, Node::Link(target.into()));
    }

    /// The program `file` of this machine as `path`, without what only debuggers read, and with the
    /// loader and libraries that it starts with. A script is taken as it is.
    pub fn program(&mut self, file: &Path, path: &str) -> Result<()> {
        self.stripped(file, path, "--strip-debug")
    }

    /// The same without any function names, which only debugging needs.
    pub fn bare_program(&mut self, file: &Path, path: &str) -> Result<()> {
        self.stripped(file, path, "--strip-all")
    }

    fn stripped(&mut self, file: &Path, path: &str, how: &str) -> Result<()> {
        self.file(path, 0o755, lean(file, how)?);
        for library in libraries(file)? {
            let name = library.to_str().with_context(|| format!("{library:?} is not UTF-8"))?;
            if !self.nodes.contains_key(&place(name)) {
                let content = fs::read(&library);
                let content =
                    content.with_context(|| format!("cannot read {}", library.display()))?;
                self.file(name, 0o755, content);
            }
        }
        Ok(())
    }

    /// Writes the archive.
    pub fn write(&self, file: &Path) -> Result<()> {
        let write = || self.pack(BufWriter::new(fs::File::create(file)?))?.flush();
        write().with_context(|| format!("cannot write {}", file.display()))
    }

    /// The archive in memory.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        self.pack(Vec::new()).context("cannot make an archive")
    }

    fn pack<W: Write>(&self, out: W) -> io::Result<W> {
        let mut writer = CpioWriter::new(out);
        // In this order a directory comes before what is in it.
        for (path, node) in &self.nodes {
            writer.add(path, node)?;
        }
        writer.finish()
    }

    /// An archive that adds to another: without the directories that every Linux has.
    #[must_use]
    pub fn addition() -> Self {
        Self { nodes: BTreeMap::new() }
    }
}

/// Where a path of this machine lies in the archive: `/lib/x` and `/usr/lib/x` are one.
fn place(path: &str) -> String {
    let path = path.trim_start_matches('/');
    let first = path.split('/').next().unwrap_or_default();
    match MERGED.iter().find(|(name, _)| *name == first) {
        Some((name, target)) => format!("{target}{}", &path[name.len()..]),
        None => path.to_owned(),
    }
}

/// A program's content stripped, where it is an ELF file and `strip` is there.
fn lean(file: &Path, how: &str) -> Result<Vec<u8>> {
    let whole = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let Ok(strip) = crate::lab::program("strip") else { return Ok(whole) };
    if !whole.starts_with(b"\x7fELF") {
        return Ok(whole);
    }
    let scratch = tempfile::tempdir()?;
    let out = scratch.path().join("lean");
    let done = Command::new(strip).arg(how).arg("-o").arg(&out).arg(file).output();
    if done.is_ok_and(|output| output.status.success()) { Ok(fs::read(&out)?) } else { Ok(whole) }
}

/// Loader and libraries of a dynamic program; of what is static or no ELF file, none.
fn libraries(file: &Path) -> Result<Vec<PathBuf>> {
    let mut begin = [0; 4];
    let read = fs::File::open(file).and_then(|mut file| std::io::Read::read(&mut file, &mut begin));
    if !read.is_ok_and(|length| length == 4) || begin != *b"\x7fELF" {
        return Ok(Vec::new());
    }
    let output = Command::new(crate::lab::program("ldd")?).arg(file).output().context("no ldd")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("not a dynamic executable") || text.contains("statically linked") {
        return Ok(Vec::new());
    }
    ensure!(output.status.success(), "ldd fails on {}: {}", file.display(), said.trim());
    libraries_in(&text).with_context(|| format!("of {}", file.display()))
}

/// The paths in what `ldd` prints; what only the kernel provides has none.
fn libraries_in(text: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        ensure!(!line.ends_with("not found"), "a library is missing on this machine: {line}");
        let after = line.split_once("=> ").map_or(line, |(_, after)| after);
        let path = after.split(" (0x").next().unwrap_or_default();
        if path.starts_with('/') {
            found.push(PathBuf::from(path));
        }
    }
    Ok(found)
}

/// Whether a file may be executed by somebody.
pub fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_merged_directories_are_one() {
        assert_eq!(place("/lib64/ld-linux-x86-64.so.2"), "usr/lib64/ld-linux-x86-64.so.2");
        assert_eq!(place("/usr/lib/x.so"), "usr/lib/x.so");
        assert_eq!(place("/bin/sh"), "usr/bin/sh");
        assert_eq!(place("/library/x"), "library/x");
    }

    #[test]
    fn libraries_are_read_from_every_form_of_line() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\
                    \tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f5b)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f5c)\n";
        let expected = ["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(libraries_in(text).unwrap(), expected.map(PathBuf::from));
        let error = libraries_in("\tlibx.so.1 => not found\n").unwrap_err().to_string();
        assert!(error.contains("libx.so.1"), "{error}");
    }

    #[test]
    fn a_program_brings_its_loader_and_every_file_has_its_directories() {
        let mut image = Image::default();
        image.program(Path::new("/bin/sh"), "/bin/sh").unwrap();
        image.file("/job/deep/file", 0o644, b"x".into());
        let names: Vec<&str> = image.nodes.keys().map(String::as_str).collect();
        assert!(names.contains(&"usr/bin/sh"), "{names:?}");
        assert!(names.iter().any(|name| name.contains("/ld-linux")), "{names:?}");
        for name in &names {
            if let Some((parent, _)) = name.rsplit_once('/') {
                let is_directory = matches!(image.nodes.get(parent), Some(Node::Directory(_)));
                assert!(is_directory, "{name} has no directory");
            }
        }
    }

    #[test]
    fn a_script_is_taken_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("script");
        fs::write(&script, "#!/bin/sh\n").unwrap();
        let mut image = Image::default();
        image.program(&script, "/usr/bin/script").unwrap();
        let expected = Node::File(0o755, b"#!/bin/sh\n".into());
        assert_eq!(image.nodes.get("usr/bin/script"), Some(&expected));
    }
}
