//! `cargo xtask reference`: `docs/reference/cli.md`, every command with its options, from the one
//! definition of the command line.

use std::{fmt::Write as _, fs, path::PathBuf};

use anyhow::{Context, Result};
use clap::{Arg, Command};

/// First lines of the page.
const HEAD: &str = "\
# All commands and options

`cargo xtask reference` makes this page from the definition of the command line. Each text is \
that of `--help`. [Commands and privileges](commands.md) is an overview, and \
[exit codes](exit-codes.md) has its own page.
";

/// Writes the page into the sources.
pub(crate) fn write() -> Result<()> {
    let path = path();
    fs::write(&path, page()).with_context(|| format!("cannot write {}", path.display()))
}

fn path() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/cli.md"))
}

fn page() -> String {
    let mut root = tardy::cli::command();
    root.build();
    let mut out = HEAD.to_owned();
    push_command(&mut out, &root, None);
    out
}

/// A section for the command, then those of its subcommands. One that measures a probe has only
/// the options that its parent has not.
fn push_command(out: &mut String, command: &Command, parent: Option<&Command>) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
    let about = command.get_long_about().or_else(|| command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    let _ = write!(out, "\n## {name}\n\n{}\n\n```text\n{usage}\n```\n", paragraphs(&about, ""));
    let mut heading = None;
    let is_probe = parent.is_some_and(Command::is_args_conflicts_with_subcommands_set);
    let is_new = |own: &&Arg| !(is_probe && parent.is_some_and(|parent| has(parent, own)));
    for argument in sorted(command).into_iter().filter(is_new) {
        let own = argument.get_help_heading().unwrap_or(match argument.is_positional() {
            true => "Arguments",
            false => "Options",
        });
        if heading != Some(own) {
            let _ = write!(out, "\n**{own}**\n\n");
            heading = Some(own);
        }
        push_argument(out, argument);
    }
    let subcommands = command.get_subcommands().filter(|own| own.get_name() != "help");
    let shown: Vec<_> = subcommands.filter(|own| !own.is_hide_set()).collect();
    if parent.is_some() && !shown.is_empty() {
        let names: Vec<_> = shown.iter().map(|own| format!("`{}`", own.get_name())).collect();
        let _ = write!(out, "\n{}: {}\n", kind_of_subcommands(command), names.join(", "));
    }
    if command.get_name() != "ab" {
        shown.into_iter().for_each(|own| push_command(out, own, Some(command)));
    }
}

fn kind_of_subcommands(command: &Command) -> &'static str {
    match command.get_name() {
        "run" => "Probes, whose own options follow",
        "ab" => "Probes, with their options as for `tardy run`",
        _ => "Commands",
    }
}

/// Whether the command has the same option.
pub(crate) fn has(command: &Command, option: &Arg) -> bool {
    let is_same = |own: &Arg| {
        let text = |arg: &Arg| arg.get_help().map(ToString::to_string);
        own.get_id() == option.get_id() && text(own) == text(option)
    };
    command.get_arguments().any(is_same)
}

/// Shown arguments: those without a name first, then one heading after the other.
fn sorted(command: &Command) -> Vec<&Arg> {
    let is_shown = |argument: &&Arg| {
        let is_usual =
            ["help", "version", "store", "exit_codes"].contains(&argument.get_id().as_str());
        !argument.is_hide_set()
            && (!is_usual || command.get_name() == "tardy" && !is_help(argument))
    };
    let (mut all, named): (Vec<_>, Vec<_>) =
        command.get_arguments().filter(is_shown).partition(|argument| argument.is_positional());
    let mut headings: Vec<_> = named.iter().map(|argument| argument.get_help_heading()).collect();
    headings.sort_by_key(|heading| heading.is_some());
    let mut seen = Vec::new();
    headings.retain(|heading| {
        !seen.contains(heading) && {
            seen.push(*heading);
            true
        }
    });
    for heading in headings {
        all.extend(named.iter().filter(|argument| argument.get_help_heading() == heading));
    }
    all
}

fn is_help(argument: &Arg) -> bool {
    argument.get_id() == "help"
}

fn push_argument(out: &mut String, argument: &Arg) {
    let help = argument.get_long_help().or_else(|| argument.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let _ = write!(out, "- `{}`: {}", argument.to_string().trim(), paragraphs(&help, "  "));
    let defaults: Vec<_> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    let takes_value = argument.get_num_args().is_some_and(|number| number.takes_values());
    if takes_value && !defaults.is_empty() && !argument.is_hide_default_value_set() {
        let _ = write!(out, " Default: `{}`.", defaults.join(" "));
    }
    out.push('\n');
    if takes_value && !argument.is_hide_possible_values_set() {
        let values = argument.get_possible_values();
        for value in values.iter().filter(|value| !value.is_hide_set()) {
            let help = value.get_help().map(|help| format!(": {}", escaped(&help.to_string())));
            let _ = writeln!(out, "  - `{}`{}", value.get_name(), help.unwrap_or_default());
        }
    }
}

/// The text as Markdown. Its first line ends with a period, and later paragraphs and lists are
/// indented by `indent`.
fn paragraphs(text: &str, indent: &str) -> String {
    let mut parts = text.trim().split("\n\n").map(|part| {
        let lines: Vec<_> = part.lines().map(escaped).collect();
        lines.join(&format!("\n{indent}"))
    });
    let mut first = parts.next().unwrap_or_default();
    if first.ends_with(|last: char| last.is_alphanumeric() || ")]`".contains(last)) {
        first.push('.');
    }
    let rest: Vec<_> = parts.map(|part| format!("\n\n{indent}{part}")).collect();
    first + &rest.concat()
}

/// A line of help with the marks of Markdown escaped, except in what is quoted by backticks.
fn escaped(line: &str) -> String {
    let is_mark = |c: char| "<>*_[]|".contains(c);
    let mut out = String::new();
    for (number, part) in line.split('`').enumerate() {
        if number > 0 {
            out.push('`');
        }
        for c in part.chars() {
            if number % 2 == 0 && is_mark(c) {
                out.push('\\');
            }
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_that_of_the_command_line() {
        let written = fs::read_to_string(path()).unwrap_or_default();
        assert!(written == page(), "docs/reference/cli.md is old: run `cargo xtask reference`");
    }

    #[test]
    fn every_command_and_option_is_there() {
        let page = page();
        for text in [
            "\n## tardy run\n",
            "\n## tardy run noise\n",
            "\n## tardy lab bisect\n",
            "- `--stop-over <TIME>`: ",
        ] {
            assert!(page.contains(text), "{text}");
        }
        assert!(!page.contains("--help`: "), "the usual ones are not repeated");
    }

    #[test]
    fn marks_are_escaped_outside_of_quotes_only() {
        assert_eq!(escaped("a_b `c_d` <E>"), "a\\_b `c_d` \\<E\\>");
        assert_eq!(paragraphs("One\n\nTwo\nthree", "  "), "One.\n\n  Two\n  three");
    }
}
