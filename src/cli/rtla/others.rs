//! What of rtla is typed differently here, or not covered.

use std::ffi::OsString;

use clap::{
    builder::StyledStr,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::cli::{drop_in::RefusedOption, verb_at};

const fn refused(short: &'static str, long: &'static str, way: &'static str) -> RefusedOption {
    RefusedOption { short, long, way }
}

const PERFETTO: &str =
    "`tardy export last --to perfetto` makes a trace of late samples, with tardy's own events";
const USER: &str = "tardy's threads are in user space, and Thr ends there; leave it out. \
                    `tardy run attach -- COMMAND` measures a program of your own";
const ACTIONS: &str = "tardy runs no command at a limit; its exit code 2 says that it was met";

/// Options of rtla 6.1 to 7.2 that are not here.
pub(super) const REFUSED: [RefusedOption; 18] = [
    refused("-t", "--trace", PERFETTO),
    refused("-e", "--event", PERFETTO),
    refused("", "--filter", PERFETTO),
    refused("", "--trigger", PERFETTO),
    refused("", "--trace-buffer-size", PERFETTO),
    refused("-i", "--irq", "-T US ends the run at the latency of a thread, and IRQ is part of it"),
    refused("-S", "--stop-total", "-s US ends the run at a single interruption"),
    refused("-u", "--user-threads", USER),
    refused("-U", "--user-load", USER),
    refused("-k", "--kernel-threads", "tardy's threads are in user space: leave it out"),
    refused("-C", "--cgroup", "start tardy in that control group"),
    refused("-D", "--debug", "`tardy show last --json` has all that is known of the run"),
    refused("", "--dump-tasks", "`tardy why last` names the tasks of the late samples"),
    refused("", "--on-threshold", ACTIONS),
    refused("", "--on-end", ACTIONS),
    refused("", "--bpf-action", ACTIONS),
    refused("", "--stack-format", "`tardy why last --json` has whole stacks"),
    refused(
        "",
        "--deepest-idle-state",
        "--dma-latency US limits idle states by their exit latency, on every CPU",
    ),
];

/// The words with `top` if no mode is given, as rtla takes them.
pub(in crate::cli) fn with_mode(mut words: Vec<OsString>) -> Vec<OsString> {
    let Some(at) = verb_at(&words) else { return words };
    let is = |at: usize, known: &[&str]| {
        words.get(at).is_some_and(|word: &OsString| known.iter().any(|own| word == own))
    };
    let is_tool = is(at, &["rtla"]) && is(at + 1, &["timerlat", "osnoise"]);
    if is_tool && !is(at + 2, &["hist", "top", "help", "-h", "--help"]) {
        words.insert(at + 2, "top".into());
    }
    words
}

/// Says what of tardy is meant where a word of rtla is not here.
pub(in crate::cli) fn with_tip(mut error: clap::Error) -> clap::Error {
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    if !usage.contains("tardy rtla") {
        return error;
    }
    let word = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand]
        .into_iter()
        .find_map(|kind| error.get(kind));
    let Some(ContextValue::String(word)) = word else { return error };
    let way = match error.kind() {
        ErrorKind::InvalidSubcommand => known_tool(word),
        ErrorKind::UnknownArgument => {
            REFUSED.iter().find(|own| own.short == word || own.long == word).map(|own| own.way)
        }
        _ => None,
    };
    let Some(way) = way else { return error };
    error.remove(ContextKind::SuggestedArg);
    error.remove(ContextKind::SuggestedSubcommand);
    let tips = vec![StyledStr::from(format!("not covered here: {way}"))];
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    error
}

/// What tardy has for a tool or a mode of rtla that is not here.
fn known_tool(word: &str) -> Option<&'static str> {
    match word {
        "hwnoise" => Some("`tardy hwlatdetect`, or `tardy run noise --trace peaks`"),
        "top" => Some(
            "`tardy run noise --trace peaks` has the time that each CPU lost, by cause; \
             `tardy rtla osnoise hist` has the histogram",
        ),
        _ => None,
    }
}
