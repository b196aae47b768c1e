//! The command line: parsing, and exit codes. The only module that prints.

mod ab;
mod alike;
mod check;
mod chosen;
mod compare;
mod cyclictest;
mod cyclictest_flags;
mod deadline;
mod drop_in;
mod echo;
mod empty_values;
mod exit_codes;
mod export;
mod flags;
mod gates;
mod hwlatdetect;
mod import;
mod lab;
mod licenses;
mod list;
mod live;
mod load;
mod nights;
mod output;
mod plan;
mod profile;
mod progress;
mod record;
mod repair;
mod report;
mod restore;
mod rm;
mod rtla;
mod run;
mod runs;
mod setup;
mod shield;
mod suite;
mod top;
mod why;
mod trace;
mod trend;

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use anyhow::{Result, ensure};
use clap::{
    Args as _, CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind,
    parser::ValueSource,
};

use self::{
    exit_codes::ExitCodes,
    run::of_probe::{GLOBALS, name_other_probes, probe_first},
};
use crate::{
    lab::guest::init,
    loads::{self, protocol::SUBCOMMAND, supervisor},
    plain::plain,
    probes::{far_end, jobs::JOBS},
    run::SERVER_LOST,
    run::{Document, Status, Validity},
    store::Store,
    sys::{abort_handler, environment, signals, stack},
};

/// Measures how late Linux responds, explains late samples, and checks that the figures are valid.
#[derive(Debug, Parser)]
#[command(
    name = "tardy",
    version,
    max_term_width = 100,
    after_help = "First steps: `tardy run` measures for a minute and prints the result; \
                  `tardy why last` explains late wake-ups; `tardy report last -o page.html` \
                  makes a page of it.\n\n\
                  Times need a unit: 250us, 1ms, 1.5s. RUN is a path, a name, the beginning of an \
                  id, or `last`, `last~1`.\n\n\
                  Exit codes: 0 done; 1 measured, but a limit was exceeded or a check failed \
                  (--stop-over hit, a --gate failed, `check` found something serious, `ab` or \
                  `compare` found B worse); 2 error; 3 inconclusive; 4 the run is invalid. \
                  `shield` returns the exit code of its command."
)]
struct Cli {
    /// Where runs are kept [default: $TARDY_STORE, or $XDG_DATA_HOME/tardy/runs]
    #[arg(long, global = true, value_name = "DIR", display_order = 900)]
    store: Option<PathBuf>,
    /// Exit codes for a caller that reads tardy's otherwise [default: tardy]
    ///
    /// To kselftest 2, 3 and 4 are an expected failure, an unexpected pass and a skipped test, and
    /// to rtla 1 is an error and 2 a limit that was met.
    #[arg(long, global = true, value_name = "PROGRAM", display_order = 901)]
    exit_codes: Option<ExitCodes>,
    /// Print the licenses of everything in this program, and its sources
    #[arg(long)]
    licenses: bool,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    // The largest.
    Run(Box<run::RunFlags>),
    Ab(Box<ab::AbFlags>),
    Plan(plan::PlanFlags),
    Suite(suite::SuiteFlags),
    List(list::ListFlags),
    Trend(trend::TrendFlags),
    Show(runs::ShowFlags),
    Why(why::WhyFlags),
    Top(top::TopFlags),
    Profile(profile::ProfileFlags),
    Record(record::RecordVerbFlags),
    Report(report::ReportFlags),
    Plot(report::PlotFlags),
    Export(export::ExportFlags),
    Import(import::ImportFlags),
    Cyclictest(cyclictest_flags::CyclictestFlags),
    Oslat(drop_in::OslatFlags),
    Hwlatdetect(hwlatdetect::HwlatdetectFlags),
    Rtla(rtla::RtlaFlags),
    Rm(rm::RmFlags),
    Check(check::CheckFlags),
    Compare(compare::CompareFlags),
    Load(load::LoadFlags),
    Echo(echo::EchoFlags),
    Shield(shield::ShieldFlags),
    Repair(repair::RepairFlags),
    Restore(restore::RestoreFlags),
    Lab(lab::LabFlags),
}

/// The exit codes; the worst of those that apply wins, in the order of [`Exit::of`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// Measured, but a limit was exceeded or a check failed.
    No,
    /// An error.
    Failed,
    /// Measured, and it does not tell.
    Inconclusive,
    /// The run is invalid.
    Invalid,
    /// The exit code of the command of `shield`.
    Passed(u8),
}

impl Exit {
    /// The exit code of a run that has ended.
    #[must_use]
    pub fn of(document: &Document) -> Self {
        match (document.validity, document.status) {
            (Validity::Invalid, _) => Self::Invalid,
            (_, Status::StoppedOver) => Self::No,
            // It ended before its time, and nobody had asked it to.
            _ if document.caveats.iter().any(|caveat| caveat.code == SERVER_LOST) => {
                Self::Inconclusive
            }
            _ => Self::Done,
        }
    }

    /// Of two that apply the one that counts: an error, then an invalid run, no, inconclusive.
    #[must_use]
    pub fn worst(self, other: Self) -> Self {
        let weight = |exit: Self| match exit {
            Self::Done => 0,
            Self::Inconclusive => 1,
            Self::No => 2,
            Self::Invalid => 3,
            Self::Failed | Self::Passed(_) => 4,
        };
        if weight(other) > weight(self) { other } else { self }
    }

    /// The number for the shell.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::No => 1,
            Self::Failed => 2,
            Self::Inconclusive => 3,
            Self::Invalid => 4,
            Self::Passed(code) => code,
        }
    }
}

/// The definition of the command line; help, man pages and completions come from it.
#[must_use]
pub fn command() -> clap::Command {
    // In place: `mut_subcommand` would move `run` behind all others.
    Cli::command().mut_subcommands(|verb| match verb.get_name() {
        "run" => verb.override_usage("tardy run [PROBE] [OPTIONS]"),
        "ab" => verb.override_usage("tardy ab [PROBE] [OPTIONS] --a <OPTIONS> --b <OPTIONS>"),
        _ => verb,
    })
}

/// Runs the command of the command line, if the stack is large enough for that.
#[must_use]
pub fn main() -> ExitCode {
    if let Err(error) = stack::check() {
        output::complain(&error.into());
        return Exit::Failed.code().into();
    }
    run_command()
}

/// Parses the command line and runs the command. Never a part of its caller, whose stack may be
/// too small for it.
#[inline(never)]
fn run_command() -> ExitCode {
    // While there is one thread.
    environment::distrust();
    environment::silence_libraries();
    // As the first process of a virtual machine; it ends with the machine.
    if init::is_me()
        && let Err(error) = init::run()
    {
        output::complain(&error);
        return Exit::Failed.code().into();
    }
    // If this is refused, an abort ends tardy as it ends any program.
    let _ = abort_handler::listen();
    // Where this is refused such a write ends tardy, as it ends any program.
    let _ = signals::survive_large_files();
    let argv: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    // Not a command for users: the supervisor of a load is this same program.
    if let [_, verb, spec] = argv.as_slice()
        && verb == SUBCOMMAND
    {
        return supervisor::supervise(spec).into();
    }
    // So is the remote endpoint of messages.
    if let [_, verb, order] = argv.as_slice()
        && verb == far_end::SUBCOMMAND
    {
        return far_end::serve(order, JOBS).into();
    }
    // So is what follows an abort that left the machine changed.
    if let [_, verb] = argv.as_slice()
        && verb == abort_handler::AFTER_ABORT
    {
        return restore::after_abort().code().into();
    }
    // Alone, as `--version` is; the definition has it for help and man page.
    if let [_, flag] = argv.as_slice()
        && flag == licenses::FLAG
    {
        return licenses::print();
    }
    let codes = ExitCodes::asked(&argv);
    let (cli, names_store) = match parse() {
        Ok(parsed) => parsed,
        Err(error) => {
            output::explain(&error);
            // Help and version are not errors.
            let failed = || codes.code(drop_in::exit_of_error(&argv)).into();
            return if error.use_stderr() { failed() } else { ExitCode::SUCCESS };
        }
    };
    let fits = cli.refuse_idle_store(names_store).and_then(|()| cli.refuse_idle_licenses());
    let failed = drop_in::exit_of_error(&argv);
    let codes = cli.exit_codes.unwrap_or(codes);
    let done = fits.and_then(|()| dispatch(cli, argv));
    match done {
        Ok(exit) => codes.code(exit).into(),
        Err(error) => {
            output::complain(&error);
            codes.code(failed).into()
        }
    }
}

/// The command line, and whether it names a store.
fn parse() -> clap::error::Result<(Cli, bool)> {
    let words = || probe_name_first(rtla::with_mode(drop_in::words(std::env::args_os())));
    let parsed = parse_words(words()).map_err(|error| {
        // clap quotes words as they are, and one may be the name of a file from anywhere.
        let words = words().into_iter().map(|word| plain(&word.to_string_lossy()));
        match parse_words(words) {
            Err(same) => same,
            Ok(_) => Cli::command().error(error.kind(), "a word of it holds odd characters"),
        }
    });
    let parsed = parsed.map_err(name_other_probes).map_err(cyclictest::with_tip);
    let parsed = parsed.map_err(drop_in::with_tip).map_err(hwlatdetect::with_tip);
    parsed.map_err(rtla::with_tip)
}

fn parse_words<W: Into<OsString> + Clone>(
    words: impl IntoIterator<Item = W>,
) -> clap::error::Result<(Cli, bool)> {
    let mut definition = command();
    let matches = definition.try_get_matches_from_mut(words)?;
    empty_values::refuse(&definition, &matches)
        .map_err(|why| definition.error(ErrorKind::InvalidValue, why))?;
    let names_store = matches.value_source("store") == Some(ValueSource::CommandLine);
    Ok((Cli::from_arg_matches(&matches)?, names_store))
}

/// A command line with the name of the probe right behind `run` or `ab`, wherever it was typed.
fn probe_name_first(mut words: Vec<OsString>) -> Vec<OsString> {
    let Some(at) = verb_at(&words) else { return words };
    let verb = match words.get(at).and_then(|verb| verb.to_str()) {
        Some("run") => run::RunFlags::augment_args(clap::Command::new("run")),
        Some("ab") => ab::AbFlags::augment_args(clap::Command::new("ab")),
        _ => return words,
    };
    let behind = words.split_off(at + 1);
    words.extend(probe_first(&verb, behind));
    words
}

/// The place of the verb: behind options of tardy itself, of which some have a value.
fn verb_at(words: &[OsString]) -> Option<usize> {
    let mut at = 1;
    while words.get(at)?.as_encoded_bytes().starts_with(b"-") {
        let has_value = GLOBALS.iter().any(|option| words.get(at).is_some_and(|own| own == option));
        at += if has_value { 2 } else { 1 };
    }
    Some(at)
}

impl Cli {
    /// Beside a command it would be a flag that does nothing.
    fn refuse_idle_licenses(&self) -> Result<()> {
        ensure!(!self.licenses, "--licenses stands alone: run `tardy {}`", licenses::FLAG);
        Ok(())
    }

    /// A store that is named for a command without runs would be a flag that does nothing.
    fn refuse_idle_store(&self, names_store: bool) -> Result<()> {
        let verb = match &self.verb {
            Verb::Check(flags) if flags.keeps_runs() => return Ok(()),
            Verb::Check(_) => "check",
            Verb::Load(_) => "load",
            Verb::Echo(_) => "echo",
            Verb::Shield(_) => "shield",
            Verb::Restore(_) => "restore",
            Verb::Record(_) => "record",
            _ => return Ok(()),
        };
        ensure!(!names_store, "--store: `tardy {verb}` neither keeps nor reads runs; leave it out");
        Ok(())
    }
}

fn dispatch(cli: Cli, argv: Vec<String>) -> Result<Exit> {
    // Only if it is needed: without a home directory the store has no place.
    let store = || Store::at(cli.store);
    if matches!(cli.verb, Verb::Run(_) | Verb::Load(_)) {
        loads::adopt_orphans();
    }
    match cli.verb {
        Verb::Run(flags) => run::run(&flags, &store()?, argv),
        Verb::Ab(flags) => ab::ab(*flags, &store()?, argv),
        Verb::Plan(flags) => plan::plan(&flags, &store()?, argv),
        Verb::Suite(flags) => suite::suite(&flags, &store()?, argv),
        Verb::List(flags) => list::list(&flags, &store()?),
        Verb::Trend(flags) => trend::trend(&flags, &store()?),
        Verb::Show(flags) => runs::show(&flags, &store()?),
        Verb::Why(flags) => why::why(&flags, &store()?, argv),
        Verb::Top(flags) => top::top(&flags, &store()?),
        Verb::Profile(flags) => profile::profile(&flags, &store()?),
        Verb::Record(flags) => record::record(&flags),
        Verb::Report(flags) => report::report(&flags, &store()?),
        Verb::Plot(flags) => report::plot(&flags, &store()?),
        Verb::Export(flags) => export::export(&flags, &store()?),
        Verb::Import(flags) => import::import(&flags, &store()?, &argv),
        Verb::Cyclictest(flags) => drop_in::cyclictest(&flags, &store()?, argv),
        Verb::Oslat(flags) => drop_in::oslat(&flags, store, argv),
        Verb::Hwlatdetect(flags) => hwlatdetect::hwlatdetect(&flags, &argv),
        Verb::Rtla(flags) => rtla::rtla(&flags, &store()?, argv),
        Verb::Rm(flags) => rm::rm(&flags, &store()?),
        Verb::Compare(flags) => compare::compare(&flags, &store()?),
        Verb::Check(flags) => check::run(flags, || Ok(store()?), argv),
        Verb::Load(flags) => load::load(&flags),
        Verb::Echo(flags) => echo::echo(&flags),
        Verb::Shield(flags) => shield::shield(&flags, &argv),
        Verb::Repair(flags) => repair::run(&flags, &store()?),
        Verb::Restore(flags) => restore::restore(&flags),
        Verb::Lab(flags) => lab::lab(&flags, &store()?),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::{Arg, Command};

    use super::*;

    /// Every flag and argument that a user can see, with the verb or the probe it belongs to.
    fn each_argument(mut check: impl FnMut(&str, &Arg)) {
        fn visit(command: &Command, check: &mut impl FnMut(&str, &Arg)) {
            let own = |arg: &&Arg| !matches!(arg.get_id().as_str(), "help" | "version");
            for arg in command.get_arguments().filter(own).filter(|arg| !arg.is_hide_set()) {
                check(command.get_bin_name().unwrap_or_default(), arg);
            }
            command.get_subcommands().for_each(|verb| visit(verb, check));
        }
        let mut all = command();
        all.build();
        visit(&all, &mut check);
    }

    fn help(arg: &Arg) -> String {
        arg.get_help().map(ToString::to_string).unwrap_or_default()
    }

    #[test]
    fn of_two_exit_codes_the_worse_counts() {
        let order = [Exit::Done, Exit::Inconclusive, Exit::No, Exit::Invalid, Exit::Failed];
        for (number, low) in order.iter().enumerate() {
            for high in &order[number..] {
                assert_eq!((low.worst(*high), high.worst(*low)), (*high, *high));
            }
        }
    }

    #[test]
    fn the_definition_holds_together() {
        command().debug_assert();
    }

    #[test]
    fn the_verb_is_found_behind_options_of_tardy_itself() {
        let with_values = |arg: &&Arg| arg.get_action().takes_values();
        let definition = Cli::command();
        let with_values: Vec<_> = definition.get_arguments().filter(with_values).collect();
        let named = with_values.iter().filter_map(|arg| arg.get_long());
        let named: Vec<String> = named.map(|long| format!("--{long}")).collect();
        assert_eq!(named, GLOBALS);
        for (words, place) in [
            ("tardy run noise", Some(1)),
            ("tardy --store run ab", Some(3)),
            ("tardy --store=x run", Some(2)),
            ("tardy --licenses", None),
            ("tardy", None),
        ] {
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            assert_eq!(verb_at(&words), place, "{words:?}");
        }
    }

    #[test]
    fn every_flag_has_a_help_text_that_is_no_sentence_with_an_end() {
        each_argument(|verb, arg| {
            // An argument of a command that was not built cannot be displayed.
            let (help, arg) = (help(arg), arg.get_id());
            assert!(!help.is_empty(), "{verb} {arg} has no help");
            assert!(!help.ends_with('.'), "{verb} {arg}: {help}");
            let first = help.chars().next().unwrap();
            assert!(!first.is_lowercase(), "{verb} {arg}: {help}");
        });
    }

    #[test]
    fn every_verb_says_what_it_is_for_in_one_line() {
        for verb in command().get_subcommands() {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            assert!((5..90).contains(&about.len()), "{}: {about}", verb.get_name());
            assert!(!about.ends_with('.'), "{}: {about}", verb.get_name());
        }
    }

    #[test]
    fn names_of_values_are_upper_case() {
        each_argument(|verb, arg| {
            for name in arg.get_value_names().unwrap_or_default() {
                let plain = arg.get_action().takes_values();
                let is_upper = name.chars().all(|c| c.is_ascii_uppercase());
                assert!(!plain || is_upper, "{verb} {arg}: {name}");
            }
        });
    }

    #[test]
    fn a_flag_of_two_verbs_that_takes_the_same_has_the_same_help() {
        // `run -o DIR` and `report -o FILE` are not the same; the name of the value says so.
        let mut known: BTreeMap<(String, String), (String, String)> = BTreeMap::new();
        each_argument(|verb, arg| {
            let own = verb.strip_prefix("tardy ").unwrap_or_default();
            let is_of_verb = command().find_subcommand(own).is_some();
            let Some(long) = arg.get_long().filter(|_| is_of_verb) else { return };
            let value = arg.get_value_names().unwrap_or_default().join(" ");
            let own = (verb.to_owned(), help(arg));
            let (other, text) = known.entry((long.into(), value)).or_insert(own.clone());
            assert_eq!(*text, own.1, "--{long} of {other} and of {verb}");
        });
        assert!(known.len() > 20, "{known:?}");
    }
}
