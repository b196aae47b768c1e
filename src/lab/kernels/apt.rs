//! apt: what it offers of Debian's packages with kernels, and their download. It checks what it
//! downloads against Debian's signature.
//!
//! It knows the packages of this machine's sources, or, with lists beside them, those of any suite
//! on the mirror that this machine reads; its sources stay as they are.

use std::{
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use super::package::{self, Name, PREFIX, run};
use crate::lab::{Notify, program};

/// What the ELF file takes besides what the packages have; it is unpacked from the kernel.
const BESIDES: u64 = 100 << 20;

/// Begin the names of the packages that some kernels are split into.
const PARTS: [&str; 3] = ["linux-base-", "linux-binary-", "linux-modules-"];

/// The keys of Debian's signatures.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// After this time, the list of a suite is read again.
const FRESH: Duration = Duration::from_secs(86_400);

/// A package in one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageVersion {
    /// Its name.
    pub package: String,
    /// Its version.
    pub version: String,
}

/// A kernel in the version that apt would install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The package that stands for it.
    pub kernel: PackageVersion,
    /// The packages it is split into, if it is.
    pub parts: Vec<PackageVersion>,
    /// What all of them take as files and unpacked, bytes.
    pub bytes: u64,
}

impl Candidate {
    /// The name of its directory in the cache.
    #[must_use]
    pub fn directory(&self) -> String {
        format!("{}_{}", self.kernel.package, self.kernel.version.replace(':', "%3a"))
    }
}

/// What apt says of a package.
#[derive(Debug, PartialEq, Eq)]
struct About {
    version: String,
    /// What it needs in exactly one version: `linux-image-6.1.0-56-amd64 (= 6.1.192-2)`.
    exactly: Vec<PackageVersion>,
    bytes: u64,
}

/// apt with the lists of some sources.
#[derive(Debug)]
pub struct Apt {
    /// What each of its programs is told.
    options: Vec<OsString>,
    /// A suite of Debian's with separate lists, and where it is read.
    suite: Option<Suite>,
}

#[derive(Debug)]
struct Suite {
    name: String,
    mirror: String,
    /// Holds its lists.
    place: PathBuf,
}

impl Apt {
    /// With the sources of this machine.
    ///
    /// # Errors
    /// The machine has no apt; what to give instead of a package's name.
    pub fn of_machine() -> Result<Self> {
        find_program("apt-cache").and_then(|_| find_program("apt-get"))?;
        Ok(Self { options: Vec::new(), suite: None })
    }

    /// With nothing but a suite of Debian's, whose list lies in `place` and is read there first if
    /// it is missing or old.
    ///
    /// # Errors
    /// No apt, no keys of Debian's, no mirror of it, no such suite, no network, no room.
    pub fn of_suite(name: &str, place: &Path, notify: Notify) -> Result<Self> {
        let machine = Self::of_machine()?;
        ensure!(
            Path::new(KEYRING).is_file(),
            "Debian's keys are missing ({KEYRING}); apt-get install debian-archive-keyring"
        );
        let mirror = machine.mirror(name)?;
        let source = format!("deb [arch=amd64 signed-by={KEYRING}] {mirror} {name} main\n");
        let written = || {
            for directory in ["lists/partial", "archives/partial"] {
                fs::create_dir_all(place.join(directory))?;
            }
            fs::write(place.join("status"), "")?;
            fs::write(place.join("sources.list"), source)
        };
        written().with_context(|| format!("cannot write to {}", place.display()))?;
        let suite = Suite { name: name.into(), mirror, place: place.into() };
        let apt = Self { options: options(place), suite: Some(suite) };
        if !is_fresh(&place.join("renewed")) {
            notify(&format!("reading the list of Debian's {name}"));
            apt.update()?;
        }
        Ok(apt)
    }

    /// From where this machine reads Debian's packages, or those with security updates.
    fn mirror(&self, suite: &str) -> Result<String> {
        let label = if suite.ends_with("-security") { "Debian-Security" } else { "Debian" };
        let mut command = self.command("apt-get")?;
        command.args(["indextargets", "--format", "$(REPO_URI)", "Origin: Debian"]);
        let targets = run(command.arg(format!("Label: {label}"))).unwrap_or_default();
        let first = targets.lines().next().map(|uri| uri.trim_end_matches('/').to_owned());
        first.with_context(|| {
            format!(
                "this machine reads no packages of {label}, so that its mirror is not known; add \
                 one to /etc/apt/sources.list and run `apt-get update`, or give a package file \
                 (./linux-image-....deb)"
            )
        })
    }

    fn command(&self, name: &str) -> Result<Command> {
        let mut command = Command::new(find_program(name)?);
        command.args(&self.options);
        Ok(command)
    }

    /// The kernels that it offers: the newest of each series, standard and real-time.
    ///
    /// # Errors
    /// apt is missing.
    pub fn offers(&self) -> Result<Vec<Name>> {
        Ok(package::newest_of_each(&self.names()?))
    }

    fn names(&self) -> Result<Vec<String>> {
        let text = run(self.command("apt-cache")?.args(["pkgnames", PREFIX]))?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// What apt would install for a package, or for the newest that matches a pattern.
    ///
    /// # Errors
    /// No package matches.
    pub fn find(&self, pattern: &str) -> Result<Candidate> {
        let mut package = pattern.to_owned();
        if pattern.contains('*') {
            package = package::choose(pattern, &self.names()?)?;
        }
        let mut about = self.show(&package)?;
        // A package that only depends on the kernel is small itself.
        let kernel = about.exactly.iter().find(|part| part.package.starts_with(PREFIX)).cloned();
        if let Some(kernel) = kernel {
            about = self.show(&kernel.package)?;
            package = kernel.package;
        }
        let mut bytes = about.bytes.saturating_add(BESIDES);
        let is_part =
            |part: &PackageVersion| PARTS.iter().any(|begin| part.package.starts_with(begin));
        let parts: Vec<PackageVersion> = about.exactly.into_iter().filter(is_part).collect();
        for part in &parts {
            bytes = bytes.saturating_add(self.show(&part.package)?.bytes);
        }
        Ok(Candidate { kernel: PackageVersion { package, version: about.version }, parts, bytes })
    }

    fn show(&self, package: &str) -> Result<About> {
        let mut command = self.command("apt-cache")?;
        let text = run(command.args(["show", "--no-all-versions", package]));
        text.ok().and_then(|text| about(&text)).with_context(|| match &self.suite {
            Some(Suite { name, mirror, .. }) => format!(
                "Debian's {name} has no package {package} at {mirror}; give another suite, or a \
                 package file (./linux-image-....deb)"
            ),
            None => format!(
                "apt knows no package {package}; `apt-get update` may help, and `tardy lab \
                 kernels` shows what it offers"
            ),
        })
    }

    /// Has apt download the packages of a kernel into `directory`.
    ///
    /// # Errors
    /// apt cannot; what it says.
    pub fn download(&self, candidate: &Candidate, directory: &Path) -> Result<Vec<PathBuf>> {
        // The one that stands for it is empty where it is split.
        let whole = std::slice::from_ref(&candidate.kernel);
        let parts = if candidate.parts.is_empty() { whole } else { &candidate.parts };
        let exactly = |part: &PackageVersion| format!("{}={}", part.package, part.version);
        let exactly: Vec<String> = parts.iter().map(exactly).collect();
        let mut command = self.command("apt-get")?;
        // As root apt would change to a user who may not write here.
        command.args(["-qq", "-o", "APT::Sandbox::User=root", "download"]).args(&exactly);
        run(command.current_dir(directory)).with_context(|| {
            format!(
                "cannot download {}; is there a network, and are apt's lists up to date?",
                exactly.join(", ")
            )
        })?;
        let files = fs::read_dir(directory)?.flatten().map(|entry| entry.path());
        let debs = files.filter(|path| path.extension() == Some(OsStr::new("deb")));
        let debs: Vec<PathBuf> = debs.collect();
        ensure!(debs.len() == parts.len(), "apt-get download left {} packages", debs.len());
        Ok(debs)
    }

    /// Renews the lists, which may be empty or too old; only root can renew the machine's own.
    ///
    /// # Errors
    /// apt cannot.
    pub fn update(&self) -> Result<()> {
        if self.suite.is_none() && !rustix::process::geteuid().is_root() {
            return Ok(());
        }
        let renewed = run(self.command("apt-get")?.args(["update", "-qq"]));
        let Some(Suite { name, mirror, place }) = &self.suite else { return renewed.map(|_| ()) };
        renewed.with_context(|| {
            format!(
                "cannot read Debian's {name} at {mirror}; is it a suite there, as trixie, sid and \
                 bookworm-backports are, and is there a network?"
            )
        })?;
        let stamp = place.join("renewed");
        fs::write(&stamp, "").with_context(|| format!("cannot write {}", stamp.display()))
    }
}

/// Has apt's programs take everything from `place`, and nothing from this machine's sources.
fn options(place: &Path) -> Vec<OsString> {
    let files = [
        ("Dir::Etc::sourcelist=", "sources.list"),
        ("Dir::State::lists=", "lists"),
        ("Dir::State::status=", "status"),
        ("Dir::Cache=", ""),
    ];
    let files = files.map(|(name, file)| {
        let mut option = OsString::from(name);
        option.push(place.join(file));
        option
    });
    let words = [
        "Dir::Etc::sourceparts=-",
        "APT::Architecture=amd64",
        "APT::Sandbox::User=root",
        "Acquire::Languages=none",
        // A list that could not be read is an error, and not a warning.
        "APT::Update::Error-Mode=any",
    ];
    let all = files.into_iter().chain(words.map(OsString::from));
    all.flat_map(|option| ["-o".into(), option]).collect()
}

/// Whether a file was written lately.
fn is_fresh(file: &Path) -> bool {
    let age = file.metadata().and_then(|about| about.modified()).map(|at| at.elapsed());
    age.is_ok_and(|age| age.is_ok_and(|age| age < FRESH))
}

fn find_program(name: &str) -> Result<PathBuf> {
    program(name).with_context(|| {
        format!(
            "no {name} here, by which Debian's kernels come; give a package that lies here \
             (./linux-image-....deb) or a kernel (/path/to/bzImage)"
        )
    })
}

/// Reads what apt says of a package.
fn about(text: &str) -> Option<About> {
    let field =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let number = |name: &str| field(name).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let exactly = field("Depends").unwrap_or_default().split(", ").filter_map(|one| {
        let (package, version) = one.split_once(" (= ")?;
        let version = version.strip_suffix(')')?;
        Some(PackageVersion { package: package.into(), version: version.into() })
    });
    let unpacked = number("Installed-Size").saturating_mul(1024);
    Some(About {
        version: field("Version")?.into(),
        exactly: exactly.collect(),
        bytes: number("Size").saturating_add(unpacked),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(package: &str, version: &str) -> PackageVersion {
        PackageVersion { package: package.into(), version: version.into() }
    }

    #[test]
    fn what_a_package_needs_in_one_version_is_read_and_nothing_else() {
        let text = "Package: linux-image-amd64\nVersion: 1:6.1.192-2\nSize: 1000\n\
                    Installed-Size: 2\n\
                    Depends: kmod, linux-base (>= 4.17~), dracut | x, \
                    linux-image-6.1.0-56-amd64 (= 6.1.192-1)\n";
        let about = about(text).unwrap();
        assert_eq!((about.version.as_str(), about.bytes), ("1:6.1.192-2", 3048));
        assert_eq!(about.exactly, [version("linux-image-6.1.0-56-amd64", "6.1.192-1")]);
        assert_eq!(super::about("N: Unable to locate package x\n"), None);
        let kernel = version("linux-image-6.12-amd64", "1:6.12-1");
        let candidate = Candidate { kernel, parts: vec![], bytes: 0 };
        assert_eq!(candidate.directory(), "linux-image-6.12-amd64_1%3a6.12-1");
    }

    #[test]
    fn apt_is_told_to_leave_this_machines_sources_alone() {
        let options = options(Path::new("/c/apt-sid"));
        let words: Vec<_> = options.iter().map(|word| word.to_str().unwrap()).collect();
        assert!(words.chunks(2).all(|pair| pair[0] == "-o" && pair[1].contains('=')), "{words:?}");
        for word in ["Dir::Etc::sourcelist=/c/apt-sid/sources.list", "Dir::Etc::sourceparts=-"] {
            assert!(words.contains(&word), "{words:?}");
        }
    }

    #[test]
    fn a_list_is_fresh_for_a_day() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("renewed");
        assert!(!is_fresh(&file));
        fs::write(&file, "").unwrap();
        assert!(is_fresh(&file));
        let old = std::time::SystemTime::now() - 2 * FRESH;
        fs::File::open(&file).unwrap().set_modified(old).unwrap();
        assert!(!is_fresh(&file));
    }
}
