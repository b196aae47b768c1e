//! Causes, shares and times in words.

use crate::run::peaks::{Cause, Lane};

/// A cause as the head of a row.
pub const fn label(cause: Cause) -> &'static str {
    match cause {
        Cause::IrqsOff => "interrupts off",
        Cause::Hardirq => "hard interrupt",
        Cause::Softirq => "softirq",
        Cause::Thread => "thread",
        Cause::Nonpreemptible => "not preemptible",
        Cause::Lock => "lock",
        Cause::IdleExit => "idle exit",
        Cause::Migration => "migration",
        Cause::Throttled => "throttled",
        Cause::PageFault => "page fault",
        Cause::Stopped => "stopped",
        Cause::Host => "host",
        Cause::Hardware => "hardware",
        Cause::Tracing => "tracing",
        Cause::Unexplained => "unexplained",
    }
}

/// A cause as the end of "61 % of the time was".
pub fn phrase(cause: Cause, name: &str) -> String {
    let name = if name == label(cause) { "" } else { name };
    let with = |bare: &str, before: &str| match name {
        "" => bare.to_owned(),
        _ => format!("{bare}{before}{name}"),
    };
    match cause {
        Cause::IrqsOff => with("interrupts off", " in "),
        Cause::Hardirq => with("hard interrupt", " "),
        Cause::Softirq => with("softirq", " "),
        Cause::Thread => match name {
            "" => "a task that went first".into(),
            _ => format!("task {name}, which went first"),
        },
        Cause::Nonpreemptible => with("kernel work that cannot be preempted", ": "),
        Cause::Lock => with("waiting for a lock", ": "),
        Cause::IdleExit => with("the way out of an idle state", ": "),
        Cause::Migration => with("the move to another CPU", ": "),
        Cause::Throttled => "the throttling of real-time tasks".into(),
        Cause::PageFault => "page faults of the measured threads".into(),
        Cause::Stopped => "the measured threads being stopped".into(),
        Cause::Host => with("the virtual machine's host", ": "),
        Cause::Hardware => with("firmware or hardware", ": "),
        Cause::Tracing => "tardy's own stack walks".into(),
        Cause::Unexplained => "unexplained".into(),
    }
}

/// A lane of a timeline.
pub const fn lane(lane: Lane) -> &'static str {
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
pub fn band(name: &str) -> String {
    match name {
        "worst" => "in the ten worst wake-ups".into(),
        name => format!("above {name}"),
    }
}

/// A share as a whole percentage: `61 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", figure(share))
}

/// The same without its sign: `61`, `4.1`, `<0.1`.
pub fn figure(share: f64) -> String {
    match share * 100.0 {
        p if p >= 9.95 => format!("{p:.0}"),
        p if p >= 0.05 => format!("{p:.1}"),
        p if p > 0.0 => "<0.1".into(),
        _ => "0".into(),
    }
}

/// Text that cannot steer a terminal: control characters and those that turn the direction of
/// writing are shown as their numbers.
pub fn plain(text: &str) -> String {
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
pub fn cut(text: &str, most: usize) -> String {
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

    #[test]
    fn a_cause_without_a_name_of_its_own_is_a_phrase_too() {
        assert_eq!(phrase(Cause::IrqsOff, "console_unlock"), "interrupts off in console_unlock");
        assert_eq!(phrase(Cause::Unexplained, "unexplained"), "unexplained");
        assert_eq!(phrase(Cause::Host, "host"), "the virtual machine's host");
    }
}
