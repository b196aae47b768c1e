//! Which tests ran nowhere: skipped on this machine, and passed in no guest either.

use std::{collections::BTreeMap, fs, io::Write as _, path::Path};

use anyhow::{Context, Result};

/// Tests that skipped, and why, by name. Each line of such a list is `NAME<tab>WHY`.
pub(super) type Skips = BTreeMap<String, String>;

/// Reads a list. Where no test skipped, no file was written.
pub(super) fn read(file: &Path) -> Result<Skips> {
    if !file.exists() {
        return Ok(Skips::new());
    }
    let text = fs::read_to_string(file);
    Ok(parse(&text.with_context(|| format!("cannot read {}", file.display()))?))
}

/// The tests in a list.
pub(super) fn parse(text: &str) -> Skips {
    let lines = text.lines().filter_map(|line| line.split_once('\t'));
    lines.map(|(name, why)| (name.to_owned(), why.to_owned())).collect()
}

/// The tests that passed in guests so far, one a line. Before the first one, the file does not
/// exist.
pub(super) fn passed(file: &Path) -> Result<Vec<String>> {
    if !file.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(file);
    let text = text.with_context(|| format!("cannot read {}", file.display()))?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// Adds to them.
pub(super) fn add(file: &Path, passed: &[String]) -> Result<()> {
    let lines: String = passed.iter().map(|name| format!("{name}\n")).collect();
    let file_to = fs::OpenOptions::new().create(true).append(true).open(file);
    let written = file_to.and_then(|mut file_to| file_to.write_all(lines.as_bytes()));
    written.with_context(|| format!("cannot write {}", file.display()))
}

/// For each test that ran nowhere a line that says why. `passed` are those that ran in the guest
/// without a skip.
pub(super) fn nowhere(host: &Skips, guest: &Skips, passed: &[String]) -> Vec<String> {
    let missing = host.iter().filter(|(name, _)| !passed.contains(name));
    let line = |(name, why): (&String, &String)| {
        let there = guest.get(name).map_or("not run", String::as_str);
        format!("{name} ran nowhere: here: {why}; in the guest: {there}")
    };
    missing.map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_ran_neither_here_nor_there_is_reported() {
        let host = parse("a::x\tno root\na::y\tno python\na::z\tno cgroup v2\n");
        let guest = parse("a::y\tno python there\na::other\tonly on the host\n");
        let lines = nowhere(&host, &guest, &["a::x".into(), "b::b".into()]);
        assert_eq!(
            lines,
            [
                "a::y ran nowhere: here: no python; in the guest: no python there",
                "a::z ran nowhere: here: no cgroup v2; in the guest: not run",
            ]
        );
    }

    #[test]
    fn what_passed_is_kept_from_guest_to_guest() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("passed");
        assert!(passed(&file).unwrap().is_empty());
        add(&file, &["a::x".into(), "a::y".into()]).unwrap();
        add(&file, &["b::z".into()]).unwrap();
        assert_eq!(passed(&file).unwrap(), ["a::x", "a::y", "b::z"]);
    }

    #[test]
    fn without_a_list_nothing_was_skipped() {
        assert_eq!(read(Path::new("/nowhere/skips")).unwrap(), Skips::new());
        assert!(nowhere(&Skips::new(), &Skips::new(), &[]).is_empty());
    }
}
