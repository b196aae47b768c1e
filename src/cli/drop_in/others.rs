//! Options of cyclictest that the drop-in does not have.

use clap::{
    builder::StyledStr,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// Options of cyclictest that are not here, short and long, and the way of tardy.
pub(super) const OTHERS: [(&str, &str, &str); 12] = [
    ("-R", "--resolution", "`tardy show` has the clock; figures are in ns"),
    ("-s", "--system", "`tardy run --wake nanosleep` sleeps by clock_nanosleep"),
    ("", "--secaligned", "`tardy run --distance TIME` sets expiries apart"),
    ("-A", "--aligned", "`tardy run --distance TIME` sets expiries apart"),
    ("-F", "--fifo", "`tardy export last --to json` has the figures"),
    ("", "--histfile", "`tardy export last --to cyclictest-histogram -o FILE` writes it"),
    ("", "--latency", "`tardy run --max-idle-latency TIME` limits idle states"),
    ("-o", "--oscope", "`tardy run --raw` keeps every sample"),
    ("", "--priospread", "`tardy run --threads N --priority-step N` has different priorities"),
    ("", "--smi", "`tardy run noise` finds what no kernel sees"),
    ("", "--spike", "`tardy run --peak-over TIME` keeps each late wake-up with its cause"),
    ("-x", "--posix_timers", "`tardy run --wake timerfd` has another timer"),
];

/// Says what of tardy is meant where an option of cyclictest is not here.
pub(in crate::cli) fn with_tip(mut error: clap::Error) -> clap::Error {
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    if error.kind() != ErrorKind::UnknownArgument || !usage.contains("tardy cyclictest") {
        return error;
    }
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let known = OTHERS.iter().find(|(short, long, _)| flag == short || flag == long);
    if let Some((.., way)) = known {
        error.remove(ContextKind::SuggestedArg);
        let tips = vec![StyledStr::from(format!("not covered here: {way}"))];
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}
