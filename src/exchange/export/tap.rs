//! The Test Anything Protocol (testanything.org/tap-version-13-specification). Nothing of version
//! 14 is needed, which Perl's harness refuses.

use std::io;

use super::checks::{Check, CheckedRun, Outcome};
use crate::plain::plain;

/// A test point a check. What the samples do not decide is skipped, with the reason; what an
/// invalid run leaves open is not ok.
pub(super) fn write(runs: &[CheckedRun]) -> io::Result<Vec<u8>> {
    let all: usize = runs.iter().map(|run| run.checks.len()).sum();
    let mut text = format!("TAP version 13\n1..{all}\n");
    let mut number = 0;
    for run in runs {
        text.push_str(&format!("# {}: {}\n", plain(&run.name), plain(&run.line)));
        text.push_str(&format!("# {}\n", plain(&run.headline)));
        for check in &run.checks {
            number += 1;
            text.push_str(&point(number, &run.class(check.series.as_deref()), check));
        }
    }
    Ok(text.into_bytes())
}

fn point(number: usize, class: &str, check: &Check) -> String {
    let what = described(&format!("{class}: {}", check.name));
    let reason = described(&check.reason);
    match check.outcome {
        Outcome::Passed => format!("ok {number} - {what}\n# {}\n", plain(&check.reason)),
        Outcome::Inconclusive => {
            format!("ok {number} - {what} # SKIP inconclusive: {reason}\n")
        }
        Outcome::Failed | Outcome::Invalid | Outcome::NotRun => {
            format!("not ok {number} - {what}\n# {}\n", plain(&check.reason))
        }
    }
}

/// Text in a test point, where `#` begins a directive: it becomes its number, as readers differ
/// about whether it can be escaped, and a name could make a failure a skipped test.
fn described(text: &str) -> String {
    plain(text).replace('#', "\\u{23}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::export::checks::tests::{document, gates};

    #[test]
    fn each_check_is_a_point_and_what_is_undecided_is_skipped() {
        let run = CheckedRun::of(&document(), &gates());
        let text = String::from_utf8(write(&[run]).unwrap()).unwrap();
        let points: Vec<&str> = text.lines().filter(|line| line.contains("ok ")).collect();
        assert_eq!(text.lines().take(2).collect::<Vec<_>>(), ["TAP version 13", "1..4"]);
        assert_eq!(
            points,
            [
                "ok 1 - timer.idle: the run is valid",
                "ok 2 - timer.idle.cpu0: p99<=80us",
                "not ok 3 - timer.idle.cpu0: max<1ms",
                "ok 4 - timer.idle.cpu1: p99.9<=1ms # SKIP inconclusive: 0.5 to 2 ms",
            ]
        );
        assert!(text.contains("\n# 2.40 ms & <more>\n"), "{text}");
    }

    #[test]
    fn a_name_neither_begins_a_directive_nor_ends_its_line() {
        let mut document = document();
        document.name = "a # SKIP\nok 9 \\".into();
        let mut gates = gates();
        gates[0].gate.clone_from(&document.name);
        let run = CheckedRun::of(&document, &gates[..1]);
        let text = String::from_utf8(write(&[run]).unwrap()).unwrap();
        let points: Vec<&str> = text.lines().filter(|line| line.starts_with("ok")).collect();
        let named = "ok 2 - timer.idle.cpu0: a \\u{23} SKIP\\u{a}ok 9 \\";
        assert_eq!(points, ["ok 1 - timer.idle: the run is valid", named]);
    }
}
