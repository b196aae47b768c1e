//! The kernels between a good and a bad one: files of a directory, by their names.

use std::{cmp::Ordering, fs, path::Path};

use anyhow::{Context, Result, ensure};

use crate::lab::kernels::KernelSource;

/// The largest range of candidates: nobody has built more.
const MOST: usize = 10_000;

/// The kernels of a directory in the order of their names, numbers by their value; a release
/// candidate comes before its release. `others` are left out.
pub(super) fn in_directory(
    directory: &Path,
    others: [&KernelSource; 2],
) -> Result<Vec<KernelSource>> {
    let place = directory.display();
    let entries = fs::read_dir(directory).with_context(|| format!("--between {place}"))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.with_context(|| format!("--between {place}"))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_file() && is_kernel(&name) {
            names.push(name);
        }
    }
    ensure!(
        !names.is_empty(),
        "--between {place}: no kernel there; their names begin with bzImage, vmlinuz or vmlinux \
         (after a number, as in 01-bzImage), or end with .deb"
    );
    ensure!(names.len() <= MOST, "--between {place}: more than {MOST} kernels");
    names.sort_by(|a, b| by_version(a, b));
    let file = |name: &String| {
        let path = directory.join(name);
        let path = path.to_str().with_context(|| format!("--between {place}: {name:?}"))?;
        // A plain word would be the name of a package.
        let path = if path.contains('/') { path.to_owned() } else { format!("./{path}") };
        KernelSource::parse(&path).with_context(|| format!("--between {place}"))
    };
    let mut found = names.iter().map(file).collect::<Result<Vec<_>>>()?;
    found.retain(|kernel| others.iter().all(|other| !is_one_file(kernel, other)));
    Ok(found)
}

/// A name that a kernel's file has, whatever number stands before it.
fn is_kernel(name: &str) -> bool {
    let plain = name.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-' || c == '_');
    let is_image = ["bzImage", "vmlinuz", "vmlinux"].iter().any(|stem| plain.starts_with(stem));
    is_image || Path::new(name).extension().is_some_and(|kind| kind == "deb")
}

fn is_one_file(a: &KernelSource, b: &KernelSource) -> bool {
    let real = |kernel: &KernelSource| fs::canonicalize(&kernel.asked).ok();
    a.asked == b.asked || real(a).is_some_and(|path| real(b) == Some(path))
}

/// A name in parts: text and numbers in turn.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part<'a> {
    /// `-rc1` comes before the end of a name, and before all else that follows a version.
    Candidate,
    End,
    Text(&'a str),
    Number(u128),
}

/// Which of two names is that of the older version.
fn by_version(a: &str, b: &str) -> Ordering {
    parts(a).cmp(&parts(b)).then_with(|| a.cmp(b))
}

fn parts(name: &str) -> Vec<Part<'_>> {
    let mut found = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let is_number = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != is_number).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        rest = after;
        match part.parse() {
            Ok(number) if is_number => found.push(Part::Number(number)),
            _ if part == "-rc" && !after.is_empty() => found.push(Part::Candidate),
            _ => found.push(Part::Text(part)),
        }
    }
    found.push(Part::End);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_order_and_a_candidate_is_before_its_release() {
        let mut names = vec![
            "bzImage-6.10",
            "bzImage-6.9.1",
            "bzImage-6.9",
            "bzImage-6.9-rc10",
            "bzImage-6.9-rc2",
            "bzImage-6.8-12-gabc",
            "bzImage-6.8",
        ];
        names.sort_by(|a, b| by_version(a, b));
        let wanted = [
            "bzImage-6.8",
            "bzImage-6.8-12-gabc",
            "bzImage-6.9-rc2",
            "bzImage-6.9-rc10",
            "bzImage-6.9",
            "bzImage-6.9.1",
            "bzImage-6.10",
        ];
        assert_eq!(names, wanted);
        assert_eq!(by_version("9-bzImage", "10-bzImage"), Ordering::Less);
    }

    #[test]
    fn only_kernels_are_taken_and_the_ends_are_left_out() {
        let place = tempfile::tempdir().unwrap();
        for name in ["2-bzImage", "10-bzImage", "config-6.1", "System.map", "x.deb", "1-bzImage"] {
            fs::write(place.path().join(name), "x").unwrap();
        }
        let of =
            |name: &str| KernelSource::parse(place.path().join(name).to_str().unwrap()).unwrap();
        let (good, bad) = (of("1-bzImage"), KernelSource::parse("standard").unwrap());
        let found = in_directory(place.path(), [&good, &bad]).unwrap();
        let names: Vec<_> = found.iter().map(|own| own.asked.rsplit('/').next().unwrap()).collect();
        assert_eq!(names, ["x.deb", "2-bzImage", "10-bzImage"]);
        let empty = tempfile::tempdir().unwrap();
        let error = in_directory(empty.path(), [&good, &bad]).unwrap_err().to_string();
        assert!(error.contains("--between") && error.contains("bzImage"), "{error}");
        let missing = in_directory(&empty.path().join("no"), [&good, &bad]).unwrap_err();
        assert!(format!("{missing:#}").contains("No such file"), "{missing:#}");
    }
}
