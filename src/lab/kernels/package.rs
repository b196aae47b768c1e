//! The names of Debian's packages with kernels, and what is kept of their files. Where they come
//! from is the matter of `apt`, and how they are unpacked that of `archive`.

use std::{
    fs::Permissions,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use super::LARGEST;
use crate::lab::program;

pub(super) const PREFIX: &str = "linux-image-";
const ARCHITECTURE: &str = "-amd64";

/// What the name of a kernel's package says. In this order the newest is the last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// `rt`, `cloud`; empty for the standard one.
    pub flavour: String,
    /// All numbers of the version, in their order.
    pub numbers: Vec<u64>,
    /// The whole name.
    pub package: String,
}

impl Name {
    /// Of a signed kernel for PCs; none for everything else, also for packages that only depend on
    /// the newest.
    #[must_use]
    pub fn parse(package: &str) -> Option<Self> {
        let rest = package.strip_prefix(PREFIX)?.strip_suffix(ARCHITECTURE)?;
        let (version, flavour) = match rest.rsplit_once('-') {
            Some((version, word)) if word.starts_with(|c: char| c.is_ascii_lowercase()) => {
                (version, word)
            }
            _ => (rest, ""),
        };
        let digits = version.split(|c: char| !c.is_ascii_digit());
        let numbers: Vec<u64> = digits.filter_map(|part| part.parse().ok()).collect();
        let is_kernel = version.starts_with(|c: char| c.is_ascii_digit()) && numbers.len() > 2;
        is_kernel.then(|| Self { flavour: flavour.into(), numbers, package: package.into() })
    }

    /// `6.12`, and `-rt` where it is one: what a user may type for the newest of them.
    #[must_use]
    pub fn series(&self) -> String {
        let numbers: Vec<String> = self.numbers.iter().take(2).map(u64::to_string).collect();
        let dash = if self.flavour.is_empty() { "" } else { "-" };
        format!("{}{dash}{}", numbers.join("."), self.flavour)
    }
}

/// The newest of each series, standard and real-time.
pub(super) fn newest_of_each(names: &[String]) -> Vec<Name> {
    let mut all: Vec<Name> = names.iter().filter_map(|name| Name::parse(name)).collect();
    all.retain(|name| ["", "rt"].contains(&name.flavour.as_str()));
    // The newest first, and of each series only that.
    all.sort_by(|a, b| b.cmp(a));
    all.dedup_by_key(|name| name.series());
    all.sort_by(|a, b| (&a.numbers, &a.flavour).cmp(&(&b.numbers, &b.flavour)));
    all
}

/// The newest kernel that matches. Where standard ones do, they are meant: `linux-image-6.12*` is
/// not the real-time one.
pub(super) fn choose(pattern: &str, names: &[String]) -> Result<String> {
    let kernels = names.iter().filter_map(|name| Name::parse(name));
    let mut matching: Vec<Name> = kernels.filter(|name| matches(pattern, &name.package)).collect();
    matching.sort();
    let Some(first) = matching.first() else {
        bail!("apt has no kernel like {pattern}; `tardy lab kernels` shows what it offers");
    };
    // In their order the standard ones come first.
    let flavour = first.flavour.clone();
    let is_one = flavour.is_empty() || matching.iter().all(|name| name.flavour == flavour);
    ensure!(
        is_one,
        "{pattern} matches kernels of different kinds: {}; write more of the name",
        matching.iter().map(|name| name.package.as_str()).collect::<Vec<_>>().join(", ")
    );
    let newest = matching.into_iter().rfind(|name| name.flavour == flavour);
    Ok(newest.map_or_else(String::new, |name| name.package))
}

/// Whether a name matches a pattern, in which `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else { return pattern == name };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(inner) = name.strip_prefix(begin).and_then(|name| name.strip_suffix(end)) else {
        return false;
    };
    // Each part where it comes first: what is behind it is the most that others can have.
    let mut parts = middle.split('*');
    parts.try_fold(inner, |rest, part| rest.split_once(part).map(|(_, rest)| rest)).is_some()
}

/// Takes away all but files and directories of what was unpacked into `directory`: a link may lead
/// to anything on this machine, and a device has no end. No kernel needs them to boot. Nor does it
/// need a program that runs with the rights of its owner, which is root if root unpacks, nor a
/// place where others may write.
///
/// # Errors
/// It cannot be read or changed; a file that is larger than any of a kernel, if only by a hole:
/// who reads it whole would run out of memory.
pub fn keep_files(directory: &Path) -> Result<()> {
    let failed = || format!("cannot look through {}", directory.display());
    for entry in std::fs::read_dir(directory).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        let kind = entry.file_type().with_context(failed)?;
        if kind.is_dir() {
            let mode = entry.metadata().with_context(failed)?.mode() & 0o755;
            let mode = mode | 0o700;
            let own = Permissions::from_mode(mode);
            std::fs::set_permissions(entry.path(), own).with_context(failed)?;
            keep_files(&entry.path())?;
            continue;
        }
        if !kind.is_file() {
            std::fs::remove_file(entry.path()).with_context(failed)?;
            continue;
        }
        let found = entry.metadata().with_context(failed)?;
        if found.len() > LARGEST {
            let (name, most) = (entry.file_name(), LARGEST >> 20);
            bail!("{} is larger than {most} MiB, as no file of a kernel is", name.display());
        }
        let harmless = Permissions::from_mode(found.mode() & 0o755);
        std::fs::set_permissions(entry.path(), harmless).with_context(failed)?;
    }
    Ok(())
}

/// Runs to the end; the output, or the error message of a failure.
pub fn run(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut command = mortal(command);
    let output = command.output().with_context(|| format!("cannot run {name}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} fails: {}", reason(&said));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The line that tells why: of a full disk wherever it stands, apt's own marks, or the first; what
/// follows is consequences.
pub(super) fn reason(said: &str) -> &str {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let full = lines().find(|line| line.contains("No space left"));
    let marked = || lines().find(|line| line.starts_with("E: "));
    full.or_else(marked).or_else(|| lines().next()).unwrap_or("it printed nothing")
}

/// The same command, which ends when this program is killed, and does not continue writing.
pub(super) fn mortal(command: &Command) -> Command {
    let mut same = match program("setpriv") {
        Ok(setpriv) => {
            let mut same = Command::new(setpriv);
            same.arg("--pdeathsig=KILL").arg(command.get_program());
            same
        }
        Err(_) => Command::new(command.get_program()),
    };
    same.args(command.get_args());
    // Its messages are parsed and shown, so they must be in English.
    same.env("LC_ALL", "C.UTF-8");
    if let Some(directory) = command.get_current_dir() {
        same.current_dir(directory);
    }
    same
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 16] = [
        "linux-image-amd64",
        "linux-image-rt-amd64",
        "linux-image-6.1.0-9-amd64",
        "linux-image-6.1.0-56-amd64",
        "linux-image-6.1.0-56-amd64-unsigned",
        "linux-image-6.1.0-56-amd64-dbg",
        "linux-image-6.1.0-56-rt-amd64",
        "linux-image-6.1.0-56-cloud-amd64",
        "linux-image-6.12-amd64",
        "linux-image-6.12-rt-amd64",
        "linux-image-6.12.107+deb12-amd64",
        "linux-image-6.12.99+deb12-amd64",
        "linux-image-6.12.107+deb12-rt-amd64",
        "linux-image-6.12.107+deb12-cloud-amd64",
        "linux-image-amd64-signed-template",
        "linux-image-6.12.108+bpo-rt-amd64",
    ];

    fn chosen(pattern: &str) -> Result<String, String> {
        choose(pattern, &NAMES.map(String::from)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_newest_that_matches_is_taken_by_number_and_not_by_letter() {
        for (pattern, package) in [
            ("linux-image-6.1.*-amd64", "linux-image-6.1.0-56-amd64"),
            ("linux-image-6.12.*-amd64", "linux-image-6.12.107+deb12-amd64"),
            ("linux-image-6.12*", "linux-image-6.12.107+deb12-amd64"),
            ("linux-image-6.12.*-rt-amd64", "linux-image-6.12.108+bpo-rt-amd64"),
            ("linux-image-*cloud*", "linux-image-6.12.107+deb12-cloud-amd64"),
        ] {
            assert_eq!(chosen(pattern).as_deref(), Ok(package), "{pattern}");
        }
    }

    #[test]
    fn a_pattern_of_nothing_or_of_different_kinds_is_refused() {
        assert!(chosen("linux-image-5.10*").unwrap_err().contains("no kernel like"));
        let error = chosen("linux-image-6.1.0-56-*t*-amd64");
        assert_eq!(error.as_deref(), Ok("linux-image-6.1.0-56-rt-amd64"));
        let error = chosen("linux-image-6.1.0-56-*-amd64").unwrap_err();
        assert!(error.contains("rt-amd64") && error.contains("cloud-amd64"), "{error}");
    }

    #[test]
    fn one_of_each_series_is_offered_standard_and_real_time() {
        let offers = newest_of_each(&NAMES.map(String::from));
        let series: Vec<String> = offers.iter().map(Name::series).collect();
        assert_eq!(series, ["6.1", "6.1-rt", "6.12", "6.12-rt"]);
        assert_eq!(offers[3].package, "linux-image-6.12.108+bpo-rt-amd64");
    }

    #[test]
    fn a_star_stands_for_any_text_and_all_else_for_itself() {
        for (pattern, name, is) in [
            ("a*c", "abbc", true),
            ("a*c", "ac", true),
            ("*", "", true),
            ("a*b*c", "axbxc", true),
            ("a*b*c", "axcxb", false),
            ("a.c", "abc", false),
            ("a*", "ba", false),
            ("a*a", "a", false),
            ("**b**", "abc", true),
            ("*ab*ab*", "abab", true),
            ("*ab*ab*", "aba", false),
        ] {
            assert_eq!(matches(pattern, name), is, "{pattern} {name}");
        }
        // Tried one after the other, the places of these stars would take years.
        assert!(!matches(&format!("{}*b*", "*a".repeat(60)), &"a".repeat(120)));
    }

    #[test]
    fn of_what_a_program_says_the_cause_is_reported() {
        let apt = "W: GPG error: x\nE: Failed to fetch y\nE: Some files failed\n";
        assert_eq!(reason(apt), "E: Failed to fetch y");
        assert_eq!(reason("\ntar: a\ntar: No space left\ntar: b\n"), "tar: No space left");
        assert_eq!(reason("\ntar: Unexpected EOF\ntar: b\n"), "tar: Unexpected EOF");
        assert_eq!(reason(" \n"), "it printed nothing");
    }

    #[test]
    fn no_file_of_a_package_keeps_the_right_to_run_as_its_owner() {
        let directory = tempfile::tempdir().unwrap();
        let below = directory.path().join("boot");
        std::fs::create_dir(&below).unwrap();
        std::fs::set_permissions(&below, Permissions::from_mode(0o1777)).unwrap();
        for (name, mode, kept) in [("su", 0o6777, 0o755), ("config", 0o644, 0o644)] {
            let file = below.join(name);
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            keep_files(directory.path()).unwrap();
            assert_eq!(file.metadata().unwrap().mode() & 0o7777, kept, "{name}");
        }
        assert_eq!(below.metadata().unwrap().mode() & 0o7777, 0o755, "who else may write there");
    }

    #[test]
    fn a_file_that_is_mostly_a_hole_is_refused_by_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let below = directory.path().join("lib/modules");
        std::fs::create_dir_all(&below).unwrap();
        let file = std::fs::File::create(below.join("modules.builtin")).unwrap();
        file.set_len(LARGEST).unwrap();
        keep_files(directory.path()).unwrap();
        file.set_len(LARGEST + 1).unwrap();
        let error = keep_files(directory.path()).unwrap_err().to_string();
        assert!(error.starts_with("modules.builtin is larger than 1024 MiB"), "{error}");
    }
}
