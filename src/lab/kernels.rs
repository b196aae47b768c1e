//! Kernels from Debian's packages: downloaded and unpacked into a cache, never installed.
//!
//! A package's directory holds `root` (what it would install) and `sums`, the checksums of the
//! package and of the kernel in it. apt checks the package against Debian's signature; `sums` sees
//! that what lies in the cache is still what was unpacked.

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use super::{Tell, program};

/// What may be typed instead of a package, and the package that always depends on the newest.
const SHORT: [(&str, &str); 2] =
    [("standard", "linux-image-amd64"), ("rt", "linux-image-rt-amd64")];

/// The directory of the lab's cache that holds kernels.
pub const DIRECTORY: &str = "kernels";

/// A kernel that can be booted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Its release (`6.1.0-56-amd64`), or the file's name where that is all there is.
    pub name: String,
    /// The compressed kernel.
    pub image: PathBuf,
    /// What has `lib/modules` with its modules, where they came along.
    pub root: Option<PathBuf>,
}

/// What `--kernel` may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A package that apt knows, under the name that was typed.
    Package {
        /// `standard`, or the package itself.
        typed: String,
        /// The package's name.
        package: String,
    },
    /// A package file.
    Deb(PathBuf),
    /// A kernel without modules.
    Image(PathBuf),
}

impl Source {
    /// What has a slash or ends in `.deb` is a file; the rest are packages.
    pub fn parse(text: &str) -> Result<Self> {
        ensure!(!text.is_empty(), "--kernel: empty; give standard, rt, a package or a file");
        let of = |package: &str| Self::Package { typed: text.to_owned(), package: package.into() };
        if let Some((_, package)) = SHORT.iter().find(|(short, _)| *short == text) {
            return Ok(of(package));
        }
        let path = PathBuf::from(text);
        if path.extension() == Some(OsStr::new("deb")) {
            return Ok(Self::Deb(path));
        }
        if text.contains('/') {
            return Ok(Self::Image(path));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-.+~".contains(c);
        if text.starts_with("linux-image-") && text.chars().all(is_plain) {
            return Ok(of(text));
        }
        bail!(
            "--kernel: \"{text}\" is neither standard nor rt, no linux-image-... package, and no \
             path; a file in this directory is ./{text}"
        )
    }
}

/// A package in the version that apt would install.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate {
    package: String,
    version: String,
}

impl Candidate {
    fn directory(&self) -> String {
        format!("{}_{}", self.package, self.version.replace(':', "%3a"))
    }
}

/// Has the kernel ready in `cache`, fetching it where it is not there yet. Several may ask for the
/// same one at once: who comes second waits, and finds it.
///
/// # Errors
/// A file that is not there; a package that apt does not know, cannot be fetched, or has no kernel.
pub fn get(source: &Source, cache: &Path, tell: Tell) -> Result<Kernel> {
    fs::create_dir_all(cache).with_context(|| format!("cannot make {}", cache.display()))?;
    // Freed when it is closed, also by a process that is killed.
    let lock = fs::File::create(cache.join("lock"));
    let lock = lock.with_context(|| format!("cannot write to {}", cache.display()))?;
    lock.lock().with_context(|| format!("cannot lock {}", cache.display()))?;
    match source {
        Source::Image(path) => {
            let image = path.canonicalize();
            let image = image.with_context(|| format!("--kernel: no {}", path.display()))?;
            let name = image.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok(Kernel { name, image, root: None })
        }
        Source::Deb(path) => {
            let stem = path.file_stem().unwrap_or_default();
            let place = cache.join(stem);
            if !is_whole(&place) {
                unpack(path, &place)?;
            }
            kernel_in(&place)
        }
        Source::Package { typed, package } => get_package(typed, package, cache, tell),
    }
}

fn get_package(typed: &str, package: &str, cache: &Path, tell: Tell) -> Result<Kernel> {
    let last = cache.join(format!("last-{typed}"));
    let place = match newest(package, cache, tell).or_else(|_| after_update(package, cache, tell)) {
        Ok(place) => place,
        Err(error) if is_whole(&last) => {
            tell(&format!("{error:#}; going on with the one fetched before"));
            return kernel_in(&last.canonicalize()?);
        }
        Err(error) => return Err(error),
    };
    let _ = fs::remove_file(&last);
    symlink(&place, &last).with_context(|| format!("cannot link {}", last.display()))?;
    kernel_in(&place)
}

/// Where the package lies that apt would install, fetched where it was not there yet.
fn newest(package: &str, cache: &Path, tell: Tell) -> Result<PathBuf> {
    let candidate = candidate(package)?;
    let place = cache.join(candidate.directory());
    if !is_whole(&place) {
        tell(&format!("fetching {} {}", candidate.package, candidate.version));
        fetch(&candidate, &place)?;
    }
    Ok(place)
}

/// Once more with apt's lists renewed, which only root can do: they may be empty or too old.
fn after_update(package: &str, cache: &Path, tell: Tell) -> Result<PathBuf> {
    if rustix::process::geteuid().is_root() {
        run(Command::new(program("apt-get")?).args(["update", "-qq"]))?;
    }
    newest(package, cache, tell)
}

/// What apt would install for `package`, or for what it depends on.
fn candidate(package: &str) -> Result<Candidate> {
    let mut command = Command::new(program("apt-cache")?);
    let text = run(command.args(["show", "--no-all-versions", package]))?;
    candidate_in(package, &text)
        .with_context(|| format!("apt knows no package {package}; `apt-get update` may help"))
}

fn candidate_in(package: &str, text: &str) -> Option<Candidate> {
    let field =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let version = field("Version")?;
    let depends = field("Depends").unwrap_or_default();
    // linux-image-6.1.0-56-amd64 (= 6.1.192-2)
    let kernel = depends.split(", ").find_map(|one| {
        let (package, version) = one.split_once(" (= ")?;
        let version = version.strip_suffix(')')?;
        package.starts_with("linux-image-").then_some((package, version))
    });
    let (package, version) = kernel.unwrap_or((package, version));
    Some(Candidate { package: package.into(), version: version.into() })
}

fn fetch(candidate: &Candidate, place: &Path) -> Result<()> {
    let cache = place.parent().context("the cache has no directory")?;
    let scratch = tempfile::tempdir_in(cache)?;
    let exactly = format!("{}={}", candidate.package, candidate.version);
    let mut command = Command::new(program("apt-get")?);
    // As root apt would change to a user who may not write here.
    command.args(["-qq", "-o", "APT::Sandbox::User=root", "download", &exactly]);
    run(command.current_dir(scratch.path()))?;
    let files = fs::read_dir(scratch.path())?.flatten().map(|entry| entry.path());
    let deb = files.into_iter().find(|path| path.extension() == Some(OsStr::new("deb")));
    unpack(&deb.context("apt-get download left no package")?, place)
}

/// Unpacks beside `place` and moves it there when it is whole.
fn unpack(deb: &Path, place: &Path) -> Result<()> {
    let cache = place.parent().context("the cache has no directory")?;
    let scratch = tempfile::tempdir_in(cache)?;
    let root = scratch.path().join("root");
    run(Command::new(program("dpkg-deb")?).arg("-x").arg(deb).arg(&root))?;
    let (_, image) = release_in(&root)?;
    let deb = deb.canonicalize()?;
    let sums = run(Command::new(program("sha256sum")?).arg(&deb).arg(&image))?;
    // Relative, for the directory moves; the package is gone when this is checked.
    let sums = sums.replace(&format!("{}/", scratch.path().display()), "");
    fs::write(scratch.path().join("sums"), sums)?;
    if place.exists() {
        fs::remove_dir_all(place).with_context(|| format!("cannot replace {}", place.display()))?;
    }
    let scratch = scratch.keep();
    fs::rename(&scratch, place).with_context(|| format!("cannot make {}", place.display()))
}

/// The kernels that lie in `cache`, by name.
///
/// # Errors
/// The cache is there and cannot be read.
pub fn cached(cache: &Path) -> Result<Vec<Kernel>> {
    if !cache.exists() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(cache);
    let entries = entries.with_context(|| format!("cannot read {}", cache.display()))?;
    let is_own = |place: &PathBuf| !place.is_symlink() && place.join("sums").exists();
    let places = entries.flatten().map(|entry| entry.path()).filter(is_own);
    let mut kernels: Vec<Kernel> = places.filter_map(|place| kernel_in(&place).ok()).collect();
    kernels.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(kernels)
}

/// Whether a directory of the cache holds what was once unpacked.
fn is_whole(place: &Path) -> bool {
    let Ok(sums) = fs::read_to_string(place.join("sums")) else { return false };
    let Some((sum, file)) = sums.lines().last().and_then(|line| line.split_once("  ")) else {
        return false;
    };
    let now = program("sha256sum")
        .and_then(|sha256sum| run(Command::new(sha256sum).arg(place.join(file))));
    now.is_ok_and(|now| now.starts_with(sum))
}

fn kernel_in(place: &Path) -> Result<Kernel> {
    let root = place.join("root");
    let (name, image) = release_in(&root)?;
    Ok(Kernel { name, image, root: Some(root) })
}

/// The release and the file of the one kernel below `root`.
fn release_in(root: &Path) -> Result<(String, PathBuf)> {
    let boot = root.join("boot");
    let entries = fs::read_dir(&boot)
        .with_context(|| format!("no {}: this package has no kernel in it", boot.display()))?;
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(release) = name.strip_prefix("vmlinuz-") {
            return Ok((release.to_owned(), entry.path()));
        }
    }
    bail!("no vmlinuz-... in {}", boot.display())
}

/// Runs to the end; the output, or what was said about the failure.
fn run(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run {name}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} fails: {}", said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(typed: &str, package: &str) -> Source {
        Source::Package { typed: typed.into(), package: package.into() }
    }

    #[test]
    fn a_kernel_is_named_by_a_word_a_package_or_a_path() {
        let parsed = |text: &str| Source::parse(text).unwrap();
        assert_eq!(parsed("standard"), package("standard", "linux-image-amd64"));
        assert_eq!(parsed("rt"), package("rt", "linux-image-rt-amd64"));
        let other = "linux-image-6.12.90-amd64";
        assert_eq!(parsed(other), package(other, other));
        assert_eq!(parsed("a/vmlinuz"), Source::Image("a/vmlinuz".into()));
        assert_eq!(parsed("./linux.deb"), Source::Deb("./linux.deb".into()));
        assert_eq!(parsed("linux-image.deb"), Source::Deb("linux-image.deb".into()));
    }

    #[test]
    fn what_is_none_of_these_is_refused_with_what_there_is() {
        for text in ["", "vmlinuz", "linux-image-amd64; true", "linux-headers-amd64"] {
            let error = Source::parse(text).unwrap_err().to_string();
            assert!(error.contains("--kernel") && error.contains("standard"), "{error}");
        }
    }

    #[test]
    fn a_package_that_only_depends_leads_to_the_kernel() {
        let text = "Package: linux-image-amd64\nVersion: 6.1.192-2\n\
                    Depends: linux-image-6.1.0-56-amd64 (= 6.1.192-1)\n";
        let found = candidate_in("linux-image-amd64", text).unwrap();
        assert_eq!(found.directory(), "linux-image-6.1.0-56-amd64_6.1.192-1");
    }

    #[test]
    fn a_kernel_is_its_own_candidate_whatever_else_it_depends_on() {
        let text = "Version: 1:6.12-1\nDepends: kmod, initramfs-tools (>= 0.120+deb8u2) | dracut\n";
        let found = candidate_in("linux-image-6.12-amd64", text).unwrap();
        assert_eq!(found.directory(), "linux-image-6.12-amd64_1%3a6.12-1");
        assert_eq!(candidate_in("x", "N: Unable to locate package x\n"), None);
    }

    #[test]
    fn a_kernel_that_changed_in_the_cache_is_not_whole() {
        let place = tempfile::tempdir().unwrap();
        let boot = place.path().join("root/boot");
        fs::create_dir_all(&boot).unwrap();
        assert!(!is_whole(place.path()));
        fs::write(boot.join("vmlinuz-1.2-x"), "a kernel").unwrap();
        let sum = run(Command::new("sha256sum").arg(boot.join("vmlinuz-1.2-x"))).unwrap();
        let sum = sum.split_whitespace().next().unwrap();
        let sums = format!("00  linux.deb\n{sum}  root/boot/vmlinuz-1.2-x\n");
        fs::write(place.path().join("sums"), sums).unwrap();
        assert!(is_whole(place.path()));
        assert_eq!(kernel_in(place.path()).unwrap().name, "1.2-x");
        fs::write(boot.join("vmlinuz-1.2-x"), "half a ker").unwrap();
        assert!(!is_whole(place.path()));
    }

    /// A package with a kernel in it that is none.
    fn package_file(directory: &Path) -> PathBuf {
        let root = directory.join("made");
        fs::create_dir_all(root.join("DEBIAN")).unwrap();
        fs::create_dir_all(root.join("boot")).unwrap();
        let control = "Package: linux-image-1.2-x\nVersion: 1\nArchitecture: all\n\
                       Maintainer: nobody <nobody@localhost>\nDescription: a test\n";
        fs::write(root.join("DEBIAN/control"), control).unwrap();
        fs::write(root.join("boot/vmlinuz-1.2-x"), "a kernel").unwrap();
        let deb = directory.join("linux-image-1.2-x.deb");
        let mut made = Command::new("dpkg-deb");
        run(made.args(["--build", "-Znone"]).arg(root).arg(&deb)).unwrap();
        deb
    }

    #[test]
    fn whoever_asks_at_the_same_time_finds_a_whole_kernel() {
        let directory = tempfile::tempdir().unwrap();
        let source = Source::Deb(package_file(directory.path()));
        for round in 0..5 {
            let cache = directory.path().join(format!("cache{round}"));
            let ask = || {
                let kernel = get(&source, &cache, &|_| {}).unwrap();
                assert_eq!(fs::read_to_string(kernel.image).unwrap(), "a kernel");
            };
            std::thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(ask))));
        }
    }

    #[test]
    fn an_image_that_is_not_there_is_named() {
        let cache = tempfile::tempdir().unwrap();
        let missing = Source::Image("/nowhere/vmlinuz".into());
        let error = get(&missing, cache.path(), &|_| {}).unwrap_err().to_string();
        assert_eq!(error, "--kernel: no /nowhere/vmlinuz");
    }
}
