//! Caveats about a run that another program measured, and their texts: what its file leaves open.

use serde::Serialize;

use super::file_loss::FileLoss;
use crate::{
    run::caveat::Effect,
    units::{Nanos, count, many},
};

/// What to do where the samples that were not late are missing.
const WITH_TABLE: &str = "Import the output of a run with its table too: without --aa-only.";

/// What to do where the program stopped before the thread ran.
const BY_THREADS: &str = "Stop by the latency of threads alone (rtla timerlat: -T).";

/// A caveat about an imported run. One variant a code, as in [`super::CaveatKind`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ImportCaveat {
    /// Facts that are not in the file.
    FactsMissing {
        /// The program that wrote it.
        program: String,
        /// What is missing: `the loads`, ...
        facts: Vec<&'static str>,
    },
    /// Samples beyond the last bin, of which only how many there are is known.
    LatenciesHidden {
        /// The series concerned.
        series: String,
        /// How many.
        hidden: u64,
        /// Of how many.
        samples: u64,
        /// None of them is smaller, ns.
        from_ns: i64,
        /// What they are taken for, ns.
        taken_ns: i64,
        /// Whether the mean is the one that the file states, with them in it.
        mean_is_stated: bool,
    },
    /// The file has no histogram, only smallest, mean and largest.
    NoDistribution {
        /// Of how many samples.
        samples: u64,
    },
    /// Latencies in steps.
    LatenciesRounded {
        /// The length of a step, ns.
        step_ns: i64,
        /// Whether a latency may be larger than it says, by up to a step.
        down: bool,
    },
    /// The same, each rounded up to the end of its step.
    LatenciesRoundedUp {
        /// The length of a step, ns.
        step_ns: i64,
    },
    /// Nothing says what a number is.
    UnitAssumed {
        /// The unit that was taken.
        unit: &'static str,
    },
    /// The file contradicts itself.
    CountsDiffer {
        /// The series concerned.
        series: String,
        /// The samples that it states.
        stated: u64,
        /// The samples that are in it.
        found: u64,
    },
    /// Only points of the distribution are known.
    PointsOnly {
        /// How many.
        points: u64,
    },
    /// The lines behind a table, by which it could be checked, are not there.
    FooterMissing {
        /// What those lines begin with.
        lines: Vec<&'static str>,
    },
    /// Turns of a loop that nothing disturbed are not gaps.
    TurnsLeftOut {
        /// How many.
        turns: u64,
        /// None of them was longer, ns.
        upto_ns: i64,
    },
    /// Rows that tell of no sample.
    RowsLeftOut {
        /// How many.
        rows: u64,
        /// What they are: `tell of no wake-up: ...`.
        why: &'static str,
    },
    /// Samples of several kinds in one histogram.
    KindsPooled {
        /// Which.
        kinds: &'static str,
    },
    /// The count follows from the length and the period.
    CountsEstimated {
        /// The count.
        samples: u64,
    },
    /// Figures of which the program states one number each, made of its repetitions.
    OneNumberEach {
        /// How many.
        figures: u64,
    },
    /// Samples without those that were not late.
    LateSamplesOnly {
        /// How many.
        samples: u64,
    },
    /// Latencies that end in the timer's interrupt, before that of the thread is known.
    InterruptsOnly {
        /// The series with such a sample.
        series: Vec<String>,
    },
    /// The file has less than happened.
    Loss(FileLoss),
    /// Some of the samples were lost before the file was written.
    StreamGaps {
        /// How many.
        missing: u64,
        /// How many are there.
        samples: u64,
    },
}

impl ImportCaveat {
    /// Code, effect, text and remedy.
    pub(super) fn words(&self) -> (&'static str, Effect, String, &'static str) {
        use Effect::{Informs, Weakens};
        let (code, effect, remedy) = match self {
            Self::FactsMissing { .. } => (
                "facts_missing",
                Informs,
                "Keep beside the file what you know; `tardy run` records all of it.",
            ),
            Self::LatenciesHidden { .. } => (
                "latencies_hidden",
                Weakens,
                "Measure with more bins than the longest latency has microseconds.",
            ),
            Self::NoDistribution { .. } => (
                "no_distribution",
                Weakens,
                "Let the program write its histogram (cyclictest: -h 1000).",
            ),
            Self::LatenciesRounded { .. } | Self::LatenciesRoundedUp { .. } => (
                "latencies_rounded",
                Informs,
                "Let the program write nanoseconds where it can (cyclictest: -N; perf: --ns).",
            ),
            Self::UnitAssumed { .. } => {
                ("unit_assumed", Informs, "Import it again with --unit where this is wrong.")
            }
            Self::CountsDiffer { .. } => {
                ("counts_differ", Weakens, "Look whether the file was cut or edited.")
            }
            Self::PointsOnly { .. } => (
                "points_only",
                Informs,
                "Import the log of histograms, an .hlog, where there is one.",
            ),
            Self::FooterMissing { .. } => {
                ("footer_missing", Weakens, "Let the program write the file again, whole.")
            }
            Self::TurnsLeftOut { .. } => (
                "turns_left_out",
                Informs,
                "Nothing needs to be done: `tardy run noise` does the same.",
            ),
            Self::RowsLeftOut { .. } => {
                ("rows_left_out", Informs, "Nothing needs to be done: they are not samples.")
            }
            Self::KindsPooled { .. } => {
                ("kinds_pooled", Weakens, "Import the output of the program that measured.")
            }
            Self::CountsEstimated { .. } => {
                ("counts_estimated", Informs, "Nothing needs to be done: no figure depends on it.")
            }
            Self::OneNumberEach { .. } => (
                "one_number_each",
                Informs,
                "Write the output of several runs into one file: each is then a value.",
            ),
            Self::LateSamplesOnly { .. } => ("late_samples_only", Weakens, WITH_TABLE),
            Self::InterruptsOnly { .. } => ("interrupts_only", Informs, BY_THREADS),
            Self::Loss(loss) => loss.words(),
            Self::StreamGaps { .. } => (
                "stream_gaps",
                Weakens,
                "Let the program write to a file or a faster reader; or use its histogram.",
            ),
        };
        (code, effect, self.text(), remedy)
    }

    fn text(&self) -> String {
        match self {
            Self::FactsMissing { program, facts } => {
                format!("The file of {program} does not say: {}.", facts.join("; "))
            }
            Self::LatenciesHidden {
                series,
                hidden,
                samples,
                from_ns,
                taken_ns,
                mean_is_stated,
            } => {
                let counts = (*hidden, *samples);
                hidden_text(series, counts, (*from_ns, *taken_ns), *mean_is_stated)
            }
            Self::NoDistribution { samples } => format!(
                "The file has no histogram: of {} only the smallest, the mean and the largest are \
                 known.",
                many(*samples, "sample")
            ),
            Self::LatenciesRounded { step_ns, down: true } => format!(
                "Latencies are rounded down to steps of {}: each may be larger by up to one step.",
                Nanos(*step_ns)
            ),
            Self::LatenciesRounded { step_ns, down: false } => {
                format!("Latencies are in steps of {}.", Nanos(*step_ns))
            }
            Self::LatenciesRoundedUp { step_ns } => format!(
                "Latencies are rounded up to steps of {}: each may be smaller by up to one step.",
                Nanos(*step_ns)
            ),
            Self::UnitAssumed { unit } => {
                format!("The file names no unit of its latencies: {unit} are assumed.")
            }
            Self::CountsDiffer { series, stated, found } => format!(
                "The file states {} of {series}, and has {}.",
                many(*stated, "sample"),
                count(*found)
            ),
            Self::PointsOnly { points } => format!(
                "The file has {} of the distribution: samples between two of them are taken as \
                 the upper one.",
                many(*points, "point")
            ),
            Self::FooterMissing { lines } => footer_text(lines),
            Self::TurnsLeftOut { turns, upto_ns } => format!(
                "{} of up to {} were not disturbed: they are not interruptions, and left out.",
                many(*turns, "turn"),
                Nanos(*upto_ns)
            ),
            Self::RowsLeftOut { rows, why } => left_out_text(*rows, why),
            Self::KindsPooled { kinds } => {
                format!("The file has one histogram of different things: {kinds}.")
            }
            Self::CountsEstimated { samples } => format!(
                "The file does not count its samples: {} follow from its length and its period.",
                count(*samples)
            ),
            Self::OneNumberEach { figures } => one_number_text(*figures),
            Self::LateSamplesOnly { samples } => late_only_text(*samples),
            Self::InterruptsOnly { series } => format!(
                "The program stopped in the timer's interrupt ({}): that late the interrupt was, \
                 and the thread, of which the file has nothing, was later.",
                series.join(", ")
            ),
            Self::Loss(loss) => loss.text(),
            Self::StreamGaps { missing, samples } => gaps_text(*missing, *samples),
        }
    }
}

fn gaps_text(missing: u64, samples: u64) -> String {
    let (gone, whose) = match missing {
        1 => ("1 sample is".into(), "its latency is"),
        _ => (format!("{} samples are", count(missing)), "their latencies are"),
    };
    let came = count(samples);
    format!("{gone} missing in the stream, beside {came} that came: {whose} not known.")
}

fn footer_text(lines: &[&str]) -> String {
    format!(
        "Behind the table, lines that begin with {} are missing: whether it is whole, and what \
         they state of it (mean, count), cannot be told.",
        lines.join(", ")
    )
}

fn late_only_text(samples: u64) -> String {
    format!(
        "The file has only {} that the program stopped at because of {} latency: nothing is known \
         of all others, which were less late.",
        many(samples, "sample"),
        if samples == 1 { "its" } else { "their" }
    )
}

fn left_out_text(rows: u64, why: &str) -> String {
    if rows == 1 {
        return format!("1 row of the file is left out, as it {why}.");
    }
    format!("{} rows of the file are left out, as each {why}.", count(rows))
}

fn one_number_text(figures: u64) -> String {
    let which = if figures == 1 {
        "The figure".into()
    } else {
        format!("Each of {}", many(figures, "figure"))
    };
    format!(
        "{which} is one number that the program made of its repetitions: how these differed is not \
         in the file."
    )
}

fn hidden_text(
    series: &str,
    (hidden, samples): (u64, u64),
    (from, taken): (i64, i64),
    mean_is_stated: bool,
) -> String {
    let share = (samples.saturating_sub(hidden)) as f64 * 100.0 / samples.max(1) as f64;
    let mean = match mean_is_stated {
        true => ". The mean is the one that the file states.",
        false => ", and so is the mean.",
    };
    format!(
        "{} of {} on {series} lie beyond the last bin, at {} or more, and their values are not \
         in the file. They are taken as {}: percentiles above {share:.3}% are upper limits{mean}",
        count(hidden),
        many(samples, "sample"),
        Nanos(from),
        Nanos(taken)
    )
}
