//! Numbers in words.

use std::fmt::Display;

/// A number of seconds as a person says it: `46 ms`, `7 s`, `3 min 20 s`, `2 h 5 min`, `3 d 5 h`.
#[must_use]
pub fn span(seconds: f64) -> String {
    if seconds > 0.0 && seconds < 0.95 {
        return format!("{:.0} ms", seconds * 1e3);
    }
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        0..100 if seconds < 9.95 && seconds.fract() > 0.04 => format!("{seconds:.1} s"),
        0..100 => format!("{whole} s"),
        100..3600 if whole.is_multiple_of(60) => format!("{} min", whole / 60),
        100..3600 => format!("{} min {} s", whole / 60, whole % 60),
        172_800.. if whole % 86_400 < 3600 => format!("{} d", whole / 86_400),
        172_800.. => format!("{} d {} h", whole / 86_400, whole % 86_400 / 3600),
        _ if whole % 3600 < 60 => format!("{} h", whole / 3600),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// An interval as it was asked for: `1 ms`, not `1.00 ms`.
#[must_use]
pub fn round(ns: i64) -> String {
    let (unit, name) = match ns {
        _ if ns % 1_000_000_000 == 0 => (1_000_000_000, "s"),
        _ if ns % 1_000_000 == 0 => (1_000_000, "ms"),
        _ if ns % 1_000 == 0 => (1_000, "us"),
        _ => (1, "ns"),
    };
    format!("{} {name}", ns / unit)
}

/// A count in groups of three digits: `1,234,567`.
#[must_use]
pub fn count(n: u64) -> String {
    grouped(&n.to_string())
}

/// A decimal number with its whole part in groups of three digits: `-12,345.6`.
#[must_use]
pub fn grouped(number: &str) -> String {
    let begin = number.find(|c: char| c.is_ascii_digit()).unwrap_or(number.len());
    let rest = number.get(begin..).unwrap_or_default();
    let end = begin + rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let mut out = String::with_capacity(number.len() + number.len() / 3);
    for (place, c) in number.char_indices() {
        if place > begin && place < end && (end - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A share as a percentage: `61%`, with `decimals` digits after the point.
#[must_use]
pub fn percent(share: f64, decimals: usize) -> String {
    grouped(&format!("{:.decimals$}%", share * 100.0))
}

/// A ratio as a change: `+12.0%`.
#[must_use]
pub fn change(ratio: f64) -> String {
    let text = grouped(&format!("{:+.1}%", (ratio - 1.0) * 100.0));
    if text == "-0.0%" { "+0.0%".into() } else { text }
}

/// A share as a percentage of two significant digits: `61%`, `4.1%`, `0.021%`. What is not all is
/// never rounded to it.
#[must_use]
pub fn share(share: f64) -> String {
    let decimals = match share * 100.0 {
        99.95..100.0 => return ">99.9%".into(),
        99.5..100.0 => 1,
        9.95.. | 0.0 => 0,
        0.995.. => 1,
        0.0995.. => 2,
        0.00995.. => 3,
        _ => return "<0.01%".into(),
    };
    percent(share, decimals)
}

/// A count of something whose plural ends in s: `1 sample`, `12,345 samples`.
#[must_use]
pub fn many(n: u64, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{} {one}s", count(n)) }
}

/// A rate with a prefix: `812k`, `1.42M`.
#[must_use]
pub fn rate(per_s: f64) -> String {
    let (value, prefix) = match per_s.abs() {
        v if v >= 999.5e6 => (per_s / 1e9, "G"),
        v if v >= 999.5e3 => (per_s / 1e6, "M"),
        v if v >= 9999.5 => (per_s / 1e3, "k"),
        _ => (per_s, ""),
    };
    let decimals = usize::from(value.abs() < 100.0) + usize::from(value.abs() < 10.0);
    let decimals = if prefix.is_empty() && value.fract() == 0.0 { 0 } else { decimals };
    grouped(&format!("{value:.decimals$}{prefix}"))
}

/// Bytes per second: `812 kB/s`.
#[must_use]
pub fn byte_rate(per_s: f64) -> String {
    let rate = rate(per_s);
    let number = rate.trim_end_matches(char::is_alphabetic);
    format!("{number} {}B/s", &rate[number.len()..])
}

/// How often: `once`, `3 times`, `1,234 times`.
#[must_use]
pub fn times(n: u64) -> String {
    if n == 1 { "once".into() } else { format!("{} times", count(n)) }
}

/// CPUs by their list: `CPU 1`, `CPUs 0-3,7`.
#[must_use]
pub fn cpus(list: impl Display) -> String {
    let list = list.to_string();
    let several = if list.contains([',', '-']) { "s" } else { "" };
    format!("CPU{several} {list}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!([1, 2, 1_234].map(times), ["once", "2 times", "1,234 times"]);
        let samples = [0, 1, 1_234].map(|n| many(n, "sample"));
        assert_eq!(samples, ["0 samples", "1 sample", "1,234 samples"]);
        assert_eq!(
            [1.0, 0.9999, 1.12, 25.0].map(change),
            ["+0.0%", "+0.0%", "+12.0%", "+2,400.0%"]
        );
        assert_eq!(["1", "0-3", "0,7"].map(cpus), ["CPU 1", "CPUs 0-3", "CPUs 0,7"]);
    }

    #[test]
    fn intervals_are_printed_as_they_were_asked_for() {
        assert_eq!(round(1_000_000), "1 ms");
        assert_eq!(round(250_000), "250 us");
        assert_eq!(round(1_500), "1500 ns");
    }
}
