//! Options of programs that the drop-ins do not have.

use clap::{
    builder::StyledStr,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// An option that is refused.
pub(in crate::cli) struct RefusedOption {
    /// `-F`, or nothing.
    pub(in crate::cli) short: &'static str,
    pub(in crate::cli) long: &'static str,
    /// What tardy has instead.
    pub(in crate::cli) way: &'static str,
}

const fn refused(short: &'static str, long: &'static str, way: &'static str) -> RefusedOption {
    RefusedOption { short, long, way }
}

/// The options of the newest cyclictest that are not here, and one of older ones.
pub(super) const REFUSED: [RefusedOption; 7] = [
    refused(
        "-F",
        "--fifo",
        "`tardy top` shows a run in progress, and SIGUSR1 prints the status of each thread",
    ),
    refused("", "--dbg_cyclictest", "`tardy show last --json` has all that is known of the run"),
    refused(
        "",
        "--deepest-idle-state",
        "--latency US, or `tardy run --max-idle-latency TIME`, limits idle states by their exit \
         latency, on every CPU",
    ),
    refused("-U", "--numa", "`tardy run --cpus LIST` has a thread on each of these CPUs"),
    refused(
        "",
        "--priospread",
        "`tardy run --threads N --priority-step N` has different priorities on each CPU",
    ),
    refused(
        "",
        "--secaligned",
        "-A [US], or `tardy run --distance TIME`, sets the expiries of threads apart; none is \
         aligned to a full second",
    ),
    refused("", "--smi", "`tardy run noise` finds what no kernel sees"),
];

/// The same of oslat.
pub(super) const REFUSED_OF_OSLAT: [RefusedOption; 6] = [
    refused(
        "-m",
        "--workload-mem",
        "the loop has no workload; `tardy run noise --load memory` has one beside it",
    ),
    refused("-s", "--single-preheat", "no frequency is measured before the run; leave it out"),
    refused("-g", "--resctrl-group", "start tardy in that group of resctrl"),
    refused("-W", "--bucket-width", "`tardy export last --to histogram-csv` has buckets of ns"),
    refused("", "--trace-markers", "`tardy run noise --trace peaks` names the cause of each gap"),
    refused(
        "",
        "--trace-control",
        "`tardy run noise --stop-over TIME --mark-trace` stops your own trace",
    ),
];

/// The refused option that was typed, in full or cut short.
fn known(refused: &'static [RefusedOption], flag: &str) -> Option<&'static RefusedOption> {
    let mut meant = refused
        .iter()
        .filter(|own| own.short == flag || (flag.starts_with("--") && own.long.starts_with(flag)));
    let known = meant.next()?;
    meant.next().is_none().then_some(known)
}

/// Says what of tardy is meant where an option of the program that it stands for is not here.
pub(in crate::cli) fn with_tip(mut error: clap::Error) -> clap::Error {
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let refused: &[RefusedOption] = match &usage {
        _ if error.kind() != ErrorKind::UnknownArgument => return error,
        usage if usage.contains("tardy cyclictest") => &REFUSED,
        usage if usage.contains("tardy oslat") => &REFUSED_OF_OSLAT,
        _ => return error,
    };
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    if let Some(RefusedOption { way, .. }) = known(refused, flag) {
        error.remove(ContextKind::SuggestedArg);
        let tips = vec![StyledStr::from(format!("not covered here: {way}"))];
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}
