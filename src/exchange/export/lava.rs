//! Calls of `lava-test-case`, by which a test in a lab of LAVA reports its results
//! (docs.lavasoftware.org, "Recording test case results").

use std::io;

use super::checks::{Check, CheckedFigure, CheckedRun, Outcome};

/// A line a check, then a line a latency, for a shell. What the samples do not decide is skipped,
/// and what an invalid run leaves open is unknown, so that neither counts as a pass.
pub(super) fn write(runs: &[CheckedRun]) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    for run in runs {
        lines.extend(run.checks.iter().map(|check| result(run, check)));
        lines.extend(run.figures.iter().map(|figure| measurement(run, figure)));
    }
    Ok(lines.concat().into_bytes())
}

fn result(run: &CheckedRun, check: &Check) -> String {
    let result = match check.outcome {
        Outcome::Passed => "pass",
        Outcome::Failed => "fail",
        Outcome::Inconclusive => "skip",
        Outcome::Invalid | Outcome::NotRun => "unknown",
    };
    format!(
        "lava-test-case {} --result {result}\n",
        run.plain_name(check.series.as_deref(), &check.name)
    )
}

fn measurement(run: &CheckedRun, figure: &CheckedFigure) -> String {
    let name = run.plain_name(Some(&figure.series), &figure.name);
    let us = figure.ns as f64 / 1e3;
    format!("lava-test-case {name} --result pass --measurement {us:.3} --units us\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        exchange::export::checks::tests::{document, gates},
        run::Validity,
    };

    #[test]
    fn each_check_is_a_result_and_each_latency_a_measurement() {
        let mut document = document();
        let series = &mut document.series[0];
        series.max = Some(2_400_500);
        series.percentiles = [("99".to_owned(), 65_000), ("99.9".to_owned(), 1)].into();
        series.uncertain = vec!["99.9".into()];
        document.series[1].max = None;
        document.series[1].percentiles.clear();
        let text = String::from_utf8(write(&[CheckedRun::of(&document, &gates())]).unwrap());
        let expected = "\
            lava-test-case timer.idle.the_run_is_valid --result pass\n\
            lava-test-case timer.idle.cpu0.p99_le_80us --result pass\n\
            lava-test-case timer.idle.cpu0.max_lt_1ms --result fail\n\
            lava-test-case timer.idle.cpu1.p99.9_le_1ms --result skip\n\
            lava-test-case timer.idle.cpu0.p99 --result pass --measurement 65.000 --units us\n\
            lava-test-case timer.idle.cpu0.max --result pass --measurement 2400.500 --units us\n";
        assert_eq!(text.unwrap(), expected);
    }

    #[test]
    fn an_invalid_run_has_no_measurement_and_nothing_of_it_passes() {
        let mut document = document();
        document.validity = Validity::Invalid;
        document.loads.clear();
        let bytes = write(&[CheckedRun::of(&document, &gates())]).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.lines().all(|line| line.ends_with(" --result unknown")), "{text}");
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_. \n".contains(c);
        assert!(text.chars().all(plain), "{text}");
    }
}
