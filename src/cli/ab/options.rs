//! The options of both sides: the common ones, and those of each side. A block is `tardy run` with
//! both, so they are parsed by its own definition, before anything is measured.

use std::ffi::OsString;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches as _, parser::ValueSource};

use super::BlockFlags;
use crate::{
    campaign::SideRequest,
    cli::{
        flags::reason,
        probe_name_first,
        run::{
            CommonFlags, RunFlags,
            of_probe::{name_other_probes, probe_among, probe_of, with_options},
        },
    },
    plain::plain,
    run::AbSideRecord,
    store::Store,
};

/// One side as typed.
#[derive(Debug)]
pub(in crate::cli) struct Side {
    /// `--a` or `--b`.
    pub(in crate::cli) flag: &'static str,
    /// What follows it.
    pub(in crate::cli) options: String,
    /// Its prepare command.
    pub(in crate::cli) prepare: Option<String>,
}

/// The options that both sides have in common, as words of `tardy run`: from the command line, so
/// that a block gets what was typed and nothing that was made of it.
pub(super) fn common_words(argv: &[String]) -> Result<Vec<String>> {
    let words = probe_name_first(argv.iter().map(OsString::from).collect());
    let matches = crate::cli::command().try_get_matches_from(words)?;
    let matches = matches.subcommand_matches("ab").context("no options of `tardy ab`")?;
    let (probe, own) = probe_of(matches);
    let mut words: Vec<String> = matches.subcommand_name().map(str::to_owned).into_iter().collect();
    for arg in of_blocks(probe.augment).get_arguments() {
        let id = arg.get_id().as_str();
        if own.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        let Some(long) = arg.get_long() else { continue };
        if !arg.get_action().takes_values() {
            words.push(format!("--{long}"));
            continue;
        }
        let values = own.get_raw(id).into_iter().flatten();
        words.extend(values.map(|value| format!("--{long}={}", value.to_string_lossy())));
    }
    Ok(words)
}

/// The options of `run` that a block may have.
fn of_blocks(augment: fn(Command) -> Command) -> Command {
    BlockFlags::augment_args(augment(Command::new("run")))
}

impl Side {
    /// Refuses what a block cannot have, naming the side and the option.
    pub(in crate::cli) fn request(self, common: &[String], store: &Store) -> Result<SideRequest> {
        let (flag, shown) = (self.flag, plain(&self.options));
        let own = shlex::split(&self.options);
        let own = own.with_context(|| format!("{flag} {shown:?}: a quote is not closed"))?;
        let mut run = RunFlags::augment_args(Command::new("run"));
        run = run.no_binary_name(true).disable_help_flag(true);
        let own: Vec<OsString> = own.into_iter().map(OsString::from).collect();
        if let Some(name) = probe_among(&run, &own) {
            bail!(
                "{flag}: both sides measure the same, and {name} is no option; name the probe \
                 once, after `tardy ab`"
            );
        }
        let own = own.into_iter().map(|word| word.to_string_lossy().into_owned());
        let mut words: Vec<String> = common.iter().cloned().chain(own).collect();
        let matches = run.try_get_matches_from(&words);
        let refused = |error| anyhow!("{flag} {shown:?}: {}", reason(&name_other_probes(error)));
        let matches = matches.map_err(refused)?;
        let (_, typed) = probe_of(&matches);
        refuse(flag, &matches)?;
        let mut flags = RunFlags::from_arg_matches(&matches).map_err(refused)?;
        if self.prepare.is_some() {
            flags.request.targets_may_come();
        }
        words.extend(flags.defaults_of_blocks(typed, self.prepare.is_some()));
        flags.check(store).with_context(|| format!("{flag} {shown:?}"))?;
        let record = AbSideRecord { options: self.options, prepare: self.prepare };
        Ok(SideRequest { words, record })
    }
}

/// Refuses options of `run` that a block does not have.
fn refuse(flag: &str, matches: &ArgMatches) -> Result<()> {
    let (probe, typed) = probe_of(matches);
    let of_blocks = of_blocks(probe.augment);
    let is_of_blocks = |id: &str| of_blocks.get_arguments().any(|arg| arg.get_id().as_str() == id);
    let all = with_options::<CommonFlags>(Command::new("run"), probe);
    for arg in all.get_arguments() {
        let id = arg.get_id().as_str();
        if typed.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        let long = arg.get_long().unwrap_or("");
        match id {
            "calibrate" => bail!("--calibrate would be done anew in each block; leave it out"),
            "duration" | "samples" => {
                bail!(
                    "{flag}: --{long} is not supported in a block; --budget says how long it takes"
                )
            }
            _ if !is_of_blocks(id) => {
                bail!("{flag}: --{long} is not supported in a block of a comparison; leave it out")
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(words: &[&str]) -> Vec<String> {
        let fixed = ["tardy", "ab", "--a", "", "--b", ""];
        fixed.iter().chain(words).map(|word| (*word).to_owned()).collect()
    }

    fn request(common: &[&str], options: &str) -> Result<SideRequest> {
        let place = tempfile::tempdir().unwrap();
        let store = Store::at(Some(place.path().into())).unwrap();
        let common: Vec<String> = common.iter().map(|word| (*word).to_owned()).collect();
        Side { flag: "--b", options: options.into(), prepare: None }.request(&common, &store)
    }

    fn refusal(common: &[&str], options: &str) -> String {
        format!("{:#}", request(common, options).unwrap_err())
    }

    #[test]
    fn what_both_have_in_common_reaches_a_block_as_typed() {
        let typed = ["fake", "--load", "hackbench:groups=1", "--load=idle", "--unpaced"];
        let found = common_words(&argv(&typed)).unwrap();
        assert_eq!(found, ["fake", "--unpaced", "--load=hackbench:groups=1", "--load=idle"]);
        let own = ["--budget", "1m", "--seed", "7", "--quiet", "--json", "--name", "x"];
        assert_eq!(common_words(&argv(&own)).unwrap(), [""; 0]);
        assert_eq!(common_words(&argv(&["--warmup", "50ms"])).unwrap(), ["--warmup=50ms"]);
    }

    #[test]
    fn a_side_adds_its_own_words_as_a_shell_would_split_them() {
        let found = request(&["fake", "--unpaced"], "--load-command 'sleep 9; true'").unwrap();
        assert_eq!(found.words, ["fake", "--unpaced", "--load-command", "sleep 9; true"]);
        assert_eq!(request(&[], "").unwrap().words, [""; 0]);
    }

    #[test]
    fn options_that_a_block_cannot_have_are_refused_by_name() {
        for option in
            ["--stop-over 1ms", "-o x", "--name x", "--json", "--format text", "--quiet", "--raw"]
        {
            let error = refusal(&[], option);
            assert!(error.starts_with("--b: --") && error.contains("not supported"), "{error}");
        }
        for option in ["--duration 1s", "--samples 9"] {
            let error = refusal(&[], option);
            assert!(error.starts_with("--b: --") && error.contains("--budget"), "{error}");
        }
        assert!(refusal(&["--calibrate"], "").contains("--calibrate"));
    }

    #[test]
    fn unknown_conflicting_and_repeated_options_name_the_side_and_the_option() {
        for (common, options, wanted) in [
            (&["timer"][..], "--no-such", "--no-such"),
            (&["--policy=fifo"], "--policy other", "--policy"),
            (&[], "--policy nosuch", "nosuch"),
            (&["--policy=other"], "--priority 5", "--priority"),
            (&["timer"], "--transport tcp", "--transport"),
            (&["timer"], "pingpong", "pingpong"),
            (&[], "fake", "name the probe once"),
            (&[], "--load nosuch", "nosuch"),
            (&[], "--cpus '0", "a quote is not closed"),
        ] {
            let error = refusal(common, options);
            assert!(error.starts_with("--b") && error.contains(wanted), "{options}: {error}");
            assert!(!error.contains("Usage") && !error.contains('\n'), "{error}");
        }
    }
}
