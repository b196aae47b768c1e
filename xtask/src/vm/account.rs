//! Which tests ran nowhere: skipped on this machine, and not run in the guest either.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result};

/// Tests that skipped, and why, by name. Each line of such a list is `NAME<tab>WHY`.
pub type Skips = BTreeMap<String, String>;

/// Reads a list. Where no test skipped, no file was written.
pub fn read(file: &Path) -> Result<Skips> {
    if !file.exists() {
        return Ok(Skips::new());
    }
    let text = fs::read_to_string(file);
    Ok(parse(&text.with_context(|| format!("cannot read {}", file.display()))?))
}

/// The tests in a list.
pub fn parse(text: &str) -> Skips {
    let lines = text.lines().filter_map(|line| line.split_once('\t'));
    lines.map(|(name, why)| (name.to_owned(), why.to_owned())).collect()
}

/// For each test that ran nowhere a line that says why. `passed` are those that ran in the guest
/// without a skip.
pub fn nowhere(host: &Skips, guest: &Skips, passed: &[String]) -> Vec<String> {
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
    fn only_what_ran_neither_here_nor_there_is_told() {
        let host = parse("a::x\tno root\na::y\tno python\na::z\tno cgroup v2\n");
        let guest = parse("a::y\tno python there\na::other\tonly on the host\n");
        let told = nowhere(&host, &guest, &["a::x".into(), "b::b".into()]);
        assert_eq!(
            told,
            [
                "a::y ran nowhere: here: no python; in the guest: no python there",
                "a::z ran nowhere: here: no cgroup v2; in the guest: not run",
            ]
        );
    }

    #[test]
    fn without_a_list_nothing_was_skipped() {
        assert_eq!(read(Path::new("/nowhere/skips")).unwrap(), Skips::new());
        assert!(nowhere(&Skips::new(), &Skips::new(), &[]).is_empty());
    }
}
