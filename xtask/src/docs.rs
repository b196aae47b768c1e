//! `cargo xtask docs DIR`: man pages and completions, from the one definition of the command line.
//!
//! What the definition cannot say is a fragment in `docs/man`, one for each page: a real diagnosis,
//! from the command to the cause. It stands between the description and the options.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::reference::has;

const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// Writes all of them into `directory`, which is made where it is missing.
pub(crate) fn write(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let mut root = tardy::cli::command();
    let version = root.get_version().unwrap_or_default().to_owned();
    for shell in SHELLS {
        clap_complete::generate_to(shell, &mut root, "tardy", directory)
            .with_context(|| format!("cannot write the completions for {shell}"))?;
    }
    // Each page: of what, under which name.
    root.build();
    for (name, command) in pages(&root) {
        let path = directory.join(format!("{name}.1"));
        let page = page(&name, command, &version)?;
        fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// `tardy` and its verbs, and their verbs, with the names of their pages. Probes are sections of
/// the page of `tardy-run`.
fn pages(root: &Command) -> Vec<(String, Command)> {
    let name = root.get_display_name().unwrap_or_else(|| root.get_name()).to_owned();
    let is_shown = !root.is_args_conflicts_with_subcommands_set();
    let verbs = root.get_subcommands().filter(|verb| is_shown && verb.get_name() != "help");
    let below = verbs.filter(|verb| !verb.is_hide_set()).flat_map(pages);
    let below: Vec<_> = below.collect();
    let mut all = vec![(name, root.clone())];
    all.extend(below);
    all
}

fn page(name: &str, command: Command, version: &str) -> Result<Vec<u8>> {
    let fragment = fragments().join(format!("{name}.roff"));
    let example = fs::read_to_string(&fragment).with_context(|| {
        format!(
            "{} is missing: each man page has a real diagnosis, from the command to the cause; \
             write one, beginning with .SH EXAMPLE",
            fragment.display()
        )
    })?;
    let probes = match command.is_args_conflicts_with_subcommands_set() {
        true => sections_of_probes(&command)?,
        false => Vec::new(),
    };
    let command = match probes.is_empty() {
        true => command,
        false => command.mut_subcommands(|probe| probe.hide(true)),
    };
    let man = Man::new(command.disable_help_subcommand(true))
        .title(name)
        .source(format!("tardy {version}"))
        .manual("tardy");
    let mut page = Vec::new();
    man.render(&mut page).with_context(|| format!("cannot write the page of {name}"))?;
    let at = after_description(&page).with_context(|| format!("{name} has no options"))?;
    page.splice(at..at, example.bytes());
    page.extend(probes);
    Ok(page)
}

/// For each probe a section with the options that only it has.
fn sections_of_probes(verb: &Command) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    for probe in verb.get_subcommands() {
        let own = probe.get_arguments().filter(|own| !own.is_hide_set() && !has(verb, own));
        let own = own.cloned().map(|own| own.help_heading(None::<&str>));
        let own = Command::new("probe").disable_help_flag(true).args(own);
        let mut section = Vec::new();
        Man::new(own).render_options_section(&mut section).context("cannot write a section")?;
        let (name, about) = (probe.get_name(), probe.get_about().map(ToString::to_string));
        let about = about.unwrap_or_default();
        let head = format!(".SH \"PROBE {}\"\n{about}", name.to_uppercase());
        all.extend(String::from_utf8_lossy(&section).replacen(".SH OPTIONS", &head, 1).bytes());
    }
    Ok(all)
}

/// Where the section after the description begins.
fn after_description(page: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(page).ok()?;
    let description = text.find("\n.SH DESCRIPTION\n")? + 1;
    Some(description + text[description..].find("\n.SH ")? + 1)
}

fn fragments() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/man")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names() -> BTreeSet<String> {
        let mut root = tardy::cli::command();
        root.build();
        pages(&root).into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn every_verb_has_its_example_and_every_example_its_verb() {
        let files = fs::read_dir(fragments()).unwrap().map(|file| file.unwrap().path());
        let stems = files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
        assert_eq!(stems.collect::<BTreeSet<_>>(), names());
        for name in names() {
            let text = fs::read_to_string(fragments().join(format!("{name}.roff"))).unwrap();
            assert!(text.starts_with(".SH EXAMPLE\n"), "{name}");
            assert!(text.contains("\n$ tardy "), "{name} shows no command");
        }
    }

    #[test]
    fn a_verb_without_an_example_is_an_error_that_names_the_file() {
        let error = page("tardy-dance", Command::new("dance"), "1").unwrap_err().to_string();
        assert!(error.contains("docs/man/tardy-dance.roff is missing"), "{error}");
    }

    #[test]
    fn pages_and_completions_are_written_and_know_the_flags() {
        let directory = tempfile::tempdir().unwrap();
        write(&directory.path().join("new")).unwrap();
        let read =
            |name: &str| fs::read_to_string(directory.path().join("new").join(name)).unwrap();
        for name in names() {
            let page = read(&format!("{name}.1"));
            assert!(page.contains(".SH NAME") && page.contains(".SH EXAMPLE"), "{page}");
            assert_eq!(page.matches(".SH EXAMPLE").count(), 1, "{name}");
            assert!(page.find(".SH EXAMPLE") < page.find(".SH OPTIONS"), "{name}");
        }
        let run = read("tardy-run.1");
        assert!(run.contains("stop\\-over") && run.contains(".SH \"PROBE NOISE\"\n"), "{run}");
        assert!(run.contains("gap\\-over") && !run.contains("tardy\\-run\\-noise"), "{run}");
        for completions in ["tardy.bash", "_tardy", "tardy.fish"] {
            assert!(read(completions).contains("stop-over"), "{completions}");
        }
    }
}
