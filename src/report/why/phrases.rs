//! Lanes, bands and shares in words; causes are in `causes::words`.

use crate::run::{peaks::Lane, probes::SampleName};

/// A lane of a timeline.
pub(super) const fn lane(lane: Lane) -> &'static str {
    match lane {
        Lane::Host => "host",
        Lane::Hardirq => "interrupt",
        Lane::Softirq => "softirq",
        Lane::Thread => "measured",
        Lane::Others => "others",
        Lane::Idle => "idle",
    }
}

/// A band as the end of "of all time".
pub(super) fn band(name: &str, sample: SampleName) -> String {
    match name {
        "worst" => format!("in the ten worst {}", sample.many()),
        name => format!("above {name}"),
    }
}

/// A share as a whole percentage: `61 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", figure(share))
}

/// The same without its sign: `61`, `4.1`, `<0.1`.
pub(super) fn figure(share: f64) -> String {
    match share * 100.0 {
        p if p >= 9.95 => format!("{p:.0}"),
        p if p >= 0.05 => format!("{p:.1}"),
        p if p > 0.0 => "<0.1".into(),
        _ => "0".into(),
    }
}

/// Text that cannot steer a terminal: control characters and those that turn the direction of
/// writing are shown as their numbers.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_turning(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

const fn is_turning(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The same, at most `most` characters of it.
pub(super) fn cut(text: &str, most: usize) -> String {
    let text = plain(text);
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most.saturating_sub(2)).chain("..".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_a_run_cannot_steer_a_terminal() {
        assert_eq!(plain("a\u{1b}[2J\u{9b}b\u{202e}"), "a\\u{1b}[2J\\u{9b}b\\u{202e}");
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcd..");
        assert_eq!(cut("\n\n\n", 6), "\\u{a..");
    }

    #[test]
    fn shares_have_two_digits() {
        let shares = [1.0, 0.614, 0.0412, 0.0004, 0.0].map(percent);
        assert_eq!(shares, ["100 %", "61 %", "4.1 %", "<0.1 %", "0 %"]);
    }
}
