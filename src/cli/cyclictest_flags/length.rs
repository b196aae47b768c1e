//! How long a run of the drop-in is.

use anyhow::{Context as _, Result, ensure};

/// The longest time in seconds that fits into ns.
const LONGEST_S: u64 = 9_000_000_000;

/// When a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunLength {
    Endless,
    Seconds(u64),
    Samples(u64),
}

impl RunLength {
    /// Of -l and -D the one that comes first; a loop takes an interval.
    pub(super) fn of(loops: u64, duration: Option<&str>, interval_us: u64) -> Result<Self> {
        let seconds =
            duration.map(|text| seconds_of(text, "to continue until Ctrl-C")).transpose()?;
        let all_us = loops.saturating_mul(interval_us);
        Ok(match (loops, seconds) {
            (0, None) => Self::Endless,
            (0, Some(seconds)) => Self::Seconds(seconds),
            (_, Some(seconds)) if all_us > seconds.saturating_mul(1_000_000) => {
                Self::Seconds(seconds)
            }
            (loops, _) => Self::Samples(loops),
        })
    }
}

/// `10`, `5m`, `1H`, `2d` of rt-tests, in s; and what `-D` is left out for.
pub(in crate::cli) fn seconds_of(text: &str, left_out: &str) -> Result<u64> {
    let (number, unit) = match text.find(|c: char| !c.is_ascii_digit()) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let each_s = match unit.to_ascii_lowercase().as_str() {
        "d" => Some(86_400),
        "h" => Some(3_600),
        "m" => Some(60),
        "s" => Some(1),
        _ => None,
    };
    let each_s: u64 = each_s.filter(|_| !number.is_empty()).with_context(|| {
        format!("-D {text}: write seconds, or a number with m, h or d behind it")
    })?;
    ensure!(
        number.bytes().any(|digit| digit != b'0'),
        "-D {text}: 0 leaves no time; write 1 or more, or leave -D out {left_out}"
    );
    let seconds = number.parse().ok().filter(|own: &u64| *own <= LONGEST_S / each_s);
    let seconds = seconds.with_context(|| {
        format!("-D {text}: it is longer than 292 years; leave -D out {left_out}")
    })?;
    Ok(seconds * each_s)
}
