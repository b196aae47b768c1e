//! The options of a command that measures a probe: `tardy run PROBE` is a separate command, with
//! the options of that probe and those of all; without PROBE the timer is measured.

use std::ffi::OsString;

use anyhow::Result;
use clap::{
    Arg, ArgMatches, Args, Command, FromArgMatches,
    error::{ContextKind, ContextValue, ErrorKind},
    parser::ValueSource,
};

use crate::{
    probes::{
        options::{PROBE_OPTIONS, ProbeOptions},
        request::ProbeRequest,
    },
    run::probes::ProbeInfo,
};

/// The options that a command has for all probes.
pub(in crate::cli) trait CommonOptions: Args {
    /// Options of probes that it does not have.
    const WITHOUT: &'static [&'static str] = &[];
    /// Options that lead its help, the most used first.
    const LEADING: &'static [&'static str] = &[];
}

/// The options of a command for one probe.
#[derive(Debug)]
pub(in crate::cli) struct OfProbe<C> {
    /// The probe.
    options: &'static ProbeOptions,
    /// Whether the user named it.
    pub is_named: bool,
    /// Its own options.
    pub request: Box<dyn ProbeRequest>,
    /// Those of all.
    pub common: C,
}

impl<C> OfProbe<C> {
    /// What is known of the probe.
    pub(in crate::cli) fn info(&self) -> &'static ProbeInfo {
        info(self.options)
    }
}

/// What is known of it: a test compares both tables.
fn info(options: &ProbeOptions) -> &'static ProbeInfo {
    ProbeInfo::find(options.name).unwrap_or(crate::run::probes::DEFAULT_PROBE)
}

const DEFAULT: &ProbeOptions = &PROBE_OPTIONS[0];

/// The options of every command that take a value.
pub(in crate::cli) const GLOBALS: [&str; 2] = ["--store", "--exit-codes"];

/// What follows `--`.
const COMMAND: &str = "command";

/// The command with the options of a probe, and those of all that it supports.
pub(in crate::cli) fn with_options<C: CommonOptions>(
    command: Command,
    options: &ProbeOptions,
) -> Command {
    let mut command = C::augment_args((options.augment)(command));
    if !command.get_arguments().any(|arg| arg.get_id() == COMMAND) {
        // Refused with the probe that has it.
        command = command.arg(Arg::new(COMMAND).last(true).num_args(0..).hide(true));
    }
    command.mut_args(|arg| {
        let id = arg.get_id().as_str();
        let is_missing = options.why_not(id).is_some() || C::WITHOUT.contains(&id);
        match C::LEADING.iter().position(|leading| *leading == id) {
            _ if is_missing => arg.hide(true),
            Some(place) => arg.help_heading(None::<&str>).display_order(place),
            None => arg,
        }
    })
}

/// The same for a command that is called as the probe. By its name, as it is called only where the
/// command is used: the options of all probes take some milliseconds.
fn with_own_options<C: CommonOptions>(command: Command) -> Command {
    let options = named(command.get_name()).unwrap_or(DEFAULT);
    let command = with_options::<C>(command, options).before_help(None::<&str>);
    command.about(info(options).help).long_about(None::<&str>)
}

impl<C: CommonOptions> Args for OfProbe<C> {
    fn augment_args(command: Command) -> Command {
        let command = with_options::<C>(command, DEFAULT)
            .args_conflicts_with_subcommands(true)
            .subcommand_negates_reqs(true)
            .disable_help_subcommand(true)
            .subcommand_help_heading("Probes")
            .subcommand_value_name("PROBE");
        PROBE_OPTIONS.iter().fold(command, |command, options| {
            let probe = Command::new(options.name).about(info(options).help);
            command.subcommand(probe.defer(with_own_options::<C>))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<C: CommonOptions> FromArgMatches for OfProbe<C> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let (options, own) = probe_of(matches);
        refuse_unsupported::<C>(options, own)?;
        Ok(Self {
            options,
            is_named: matches.subcommand().is_some(),
            request: (options.read)(own)?,
            common: C::from_arg_matches(own)?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The probe that is measured, and the matches of its options.
pub(in crate::cli) fn probe_of(matches: &ArgMatches) -> (&'static ProbeOptions, &ArgMatches) {
    let typed = matches.subcommand().and_then(|(name, own)| Some((named(name)?, own)));
    typed.unwrap_or((DEFAULT, matches))
}

fn refuse_unsupported<C: CommonOptions>(
    options: &ProbeOptions,
    matches: &ArgMatches,
) -> Result<(), clap::Error> {
    let command = with_options::<C>(Command::new(options.name), options);
    let given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    for arg in command.get_arguments().filter(|arg| given(arg.get_id().as_str())) {
        let (id, name) = (arg.get_id().as_str(), options.name);
        let flag = arg.get_long().map_or_else(|| "-- COMMAND".into(), |long| format!("--{long}"));
        if id == COMMAND && name != "attach" {
            let text = format!("{flag} is not supported with {name}; measure attach\n");
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
        }
        if let Some(why) = options.why_not(id) {
            let text = format!("{flag} is not supported with {name}: {why}; leave it out\n");
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
        }
        if C::WITHOUT.contains(&id) {
            let text = format!("{flag} is not supported in a comparison; leave it out\n");
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
        }
    }
    Ok(())
}

/// An error about a name that is no probe, or about an option that only other probes have: says
/// which probes there are, and which have it.
pub(in crate::cli) fn name_other_probes(error: clap::Error) -> clap::Error {
    match other_probes(&error) {
        Some(text) => clap::Error::raw(error.kind(), text),
        None => error,
    }
}

fn other_probes(error: &clap::Error) -> Option<String> {
    let usage = error.get(ContextKind::Usage)?.to_string();
    // Not of another command that is called so, as `tardy lab run`.
    let usage = usage.trim_start_matches("Usage:").trim().trim_start_matches("tardy ");
    let mut words = usage.split_whitespace();
    words.next().filter(|verb| ["run", "ab"].contains(verb))?;
    let probe = words.next().and_then(named);
    let no_probe = |name: &str| {
        let all = PROBE_OPTIONS.map(|options| options.name).join(", ");
        Some(format!("no probe is called {name}; there are {all}\n"))
    };
    if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) {
        return no_probe(name);
    }
    let ErrorKind::UnknownArgument = error.kind() else { return None };
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    if !word.starts_with('-') && probe.is_none() {
        return no_probe(word);
    }
    let others = probes_with(word);
    (!others.is_empty()).then(|| {
        let (name, others) = (probe.unwrap_or(DEFAULT).name, others.join(", "));
        format!("{word} is not supported with {name}; leave it out, or measure {others}\n")
    })
}

fn named(name: &str) -> Option<&'static ProbeOptions> {
    PROBE_OPTIONS.iter().find(|options| options.name == name)
}

/// The probes that have an option of this name, as `--gap-over`; the made-up one if no other has.
fn probes_with(flag: &str) -> Vec<&'static str> {
    let Some(long) = flag.strip_prefix("--") else { return Vec::new() };
    let has = |options: &&ProbeOptions| {
        let command = (options.augment)(Command::new(options.name));
        command.get_arguments().any(|arg| arg.get_long() == Some(long))
    };
    let mut names: Vec<_> = PROBE_OPTIONS.iter().filter(has).map(|options| options.name).collect();
    if names.len() > 1 {
        names.retain(|name| *name != "fake");
    }
    names
}

/// The words behind `run` or `ab` with the name of the probe first, wherever it was typed: options
/// may stand before it.
pub(in crate::cli) fn probe_first(verb: &Command, mut words: Vec<OsString>) -> Vec<OsString> {
    if let Some(at) = first_name(verb, &words) {
        let name = words.remove(at);
        words.insert(0, name);
    }
    words
}

/// The name of a probe among these words, if one stands there.
pub(in crate::cli) fn probe_among(verb: &Command, words: &[OsString]) -> Option<&'static str> {
    let word = words.get(first_name(verb, words)?)?;
    named(word.to_str()?).map(|options| options.name)
}

/// The place of the first word that is neither an option nor its value.
pub(in crate::cli) fn first_name(verb: &Command, words: &[OsString]) -> Option<usize> {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let text = word.to_string_lossy();
        if text == "--" {
            return None;
        }
        if !text.starts_with('-') || text == "-" {
            return Some(at);
        }
        at += if takes_next_word(verb, &text) { 2 } else { 1 };
    }
    None
}

/// Whether the word after this option is its value, for any probe.
fn takes_next_word(verb: &Command, option: &str) -> bool {
    let takes = |command: &Command| {
        command.get_arguments().any(|arg| {
            let is_named = match option.strip_prefix("--") {
                Some(long) => arg.get_long() == Some(long),
                None => arg.get_short().is_some_and(|short| option == format!("-{short}")),
            };
            is_named && arg.get_action().takes_values() && !arg.is_require_equals_set()
        })
    };
    GLOBALS.contains(&option)
        || takes(verb)
        || PROBE_OPTIONS.iter().any(|options| takes(&(options.augment)(Command::new(options.name))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{command, run::RunFlags};

    fn ordered(words: &str) -> String {
        let run = RunFlags::augment_args(Command::new("run"));
        let words = words.split_whitespace().map(OsString::from).collect();
        let ordered = probe_first(&run, words);
        ordered.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_probe_may_stand_behind_options_of_any_probe() {
        for (typed, read) in [
            ("", ""),
            ("noise", "noise"),
            ("--duration 5s noise --gap-over 1us", "noise --duration 5s --gap-over 1us"),
            ("--gap-over 1us --quiet noise", "noise --gap-over 1us --quiet"),
            ("--name timer -o noise --json irq", "irq --name timer -o noise --json"),
            ("--profile noise", "noise --profile"),
            ("--quiet --store noise irq", "irq --quiet --store noise"),
            ("--quiet --store noise", "--quiet --store noise"),
            ("--cpus=0 attach -- timer", "attach --cpus=0 -- timer"),
            ("--comm x -- noise", "--comm x -- noise"),
        ] {
            assert_eq!(ordered(typed), read, "{typed}");
        }
    }

    #[test]
    fn a_command_is_for_the_probe_that_starts_it() {
        for words in [&["tardy", "run", "--", "noise"][..], &["tardy", "run", "timer", "--", "x"]] {
            let matches = command().try_get_matches_from(words).unwrap();
            let run = matches.subcommand_matches("run").unwrap();
            let said = RunFlags::from_arg_matches(run).unwrap_err().to_string();
            assert!(said.contains("-- COMMAND is not supported with timer; measure attach"));
        }
    }

    #[test]
    fn options_lead_to_the_probes_that_have_them() {
        assert_eq!(probes_with("--gap-over"), ["noise"]);
        assert_eq!(probes_with("--rate"), ["receive", "stream"]);
        assert_eq!(probes_with("--interval"), ["timer", "interactive"]);
        assert_eq!(probes_with("--duration"), [""; 0]);
        for (words, says) in [
            (
                &["tardy", "run", "--rate=1kpps"][..],
                "--rate is not supported with timer; leave it ",
            ),
            (&["tardy", "run", "noise", "--rate", "1kpps"], "or measure receive, stream\n"),
            (&["tardy", "ab", "irq", "--a", "", "--hold", "1ms"], "with irq; leave it out, or "),
            (&["tardy", "run", "noise", "--nosuch"], "unexpected argument '--nosuch'"),
            (&["tardy", "lab", "run", "--rate", "1kpps"], "unexpected argument '--rate'"),
        ] {
            let said = command().try_get_matches_from(words).unwrap_err();
            let said = name_other_probes(said).to_string();
            assert!(said.contains(says), "{said}");
        }
    }
}
