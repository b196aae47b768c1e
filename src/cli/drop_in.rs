//! `tardy cyclictest`: its options and its output, on tardy's loop, with the run kept as well. Also
//! where tardy is called by the name of a program that it stands for.

mod oslat;
mod others;
mod printed;
mod resolution;
mod spikes;
#[cfg(test)]
mod tests;

use std::{ffi::OsString, path::PathBuf};

use anyhow::{Result, anyhow, bail};
use clap::{CommandFactory as _, FromArgMatches as _};

use self::resolution::ClockResolution;
pub(super) use self::{
    oslat::{OslatFlags, exit_of_error, oslat},
    others::{RefusedOption, with_tip},
};
use super::{
    Cli, Exit, Verb, cyclictest_flags::CyclictestFlags, output, report, run, setup::exit_of_setup,
};
use crate::{exchange::export::rt_tests::DROP_INS, report::terminal, store::Store};

/// The words of the command line: where tardy is called as a program that it stands for, those of
/// that verb.
pub(super) fn words(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = args.into_iter().collect();
    let called = words.first().map(PathBuf::from);
    let called = called.as_ref().and_then(|called| called.file_name());
    let verbs = DROP_INS.into_iter().chain(["hwlatdetect", "rtla"]).map(|verb| (verb, vec![verb]));
    let tools = ["timerlat", "osnoise"].map(|tool| (tool, vec!["rtla", tool]));
    let mut known = verbs.chain(tools);
    if let Some((_, own)) = known.find(|(name, _)| called.is_some_and(|own| own == *name)) {
        words.splice(..1, ["tardy"].into_iter().chain(own).map(OsString::from));
    }
    words
}

/// Measures, and prints what cyclictest would.
pub(super) fn cyclictest(
    flags: &CyclictestFlags,
    store: &Store,
    argv: Vec<String>,
) -> Result<Exit> {
    let words = flags.run_words()?;
    if flags.bins().is_some() && flags.distance.is_some_and(|us| us > 0) {
        output::notice("WARN: distance is ignored and set to 0, if histogram enabled");
    }
    if flags.resolution {
        let resolution = ClockResolution::measure().text(flags.verbose);
        resolution.iter().for_each(|text| output::notice(text));
    }
    let matches =
        Cli::command().try_get_matches_from(&words).map_err(|error| anyhow!(unlabelled(&error)))?;
    let Verb::Run(asked) = Cli::from_arg_matches(&matches)?.verb else {
        bail!("`tardy run` was expected");
    };
    let (document, held) = run::record(&asked, store, argv)?;
    flags.put(&document, &held)?;
    if !flags.quiet {
        notice_caveats(&document);
    }
    // As cyclictest, which says by its output alone whether it broke off.
    Ok(exit_of_setup(&document))
}

fn notice_caveats(document: &crate::run::Document) {
    let mut caveats = String::new();
    document.caveats.iter().for_each(|caveat| terminal::push_caveat(&mut caveats, caveat));
    output::notice(caveats.trim_end());
}

/// What the parser of `tardy run` says, without the word and the hint that it puts around.
fn unlabelled(error: &clap::Error) -> String {
    let said = error.to_string();
    let said = said.strip_prefix("error: ").unwrap_or(&said);
    said.split("\n\n").next().unwrap_or_default().to_owned()
}
