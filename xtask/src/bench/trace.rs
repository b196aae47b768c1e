//! What tracing adds to a wake-up: the timer probe without, with its stages, and with the recorder,
//! in turns.

use std::{
    path::Path,
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use tardy::{
    analysis::{self, EstimateError},
    run::{Run, hlog},
    units::Nanos,
};

use super::{
    Bench,
    process::{self, Used},
    say,
    sheet::{FigureRow, Section, interval},
};

/// Without tracing, and the modes that are compared with that.
const MODES: [&str; 3] = ["off", "stages", "peaks"];
/// What may be added to the median wake-up, us.
const LIMIT_US: f64 = 1.5;

/// One round's results of one mode.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    p50_ns: f64,
    p99_ns: f64,
    /// The measuring thread's, per wake-up.
    cpu_ns: f64,
    /// The whole process's, % of one CPU.
    busy_percent: f64,
}

type Figure = fn(&Outcome) -> f64;

struct Frame<'a> {
    bench: &'a Bench,
    interval_ns: i64,
    length: Duration,
    rounds: usize,
}

/// All intervals.
pub(super) fn part(bench: &Bench) -> Result<Section> {
    let mut section = Section::new("What tracing adds to a wake-up");
    let length = Duration::from_millis(bench.either(3_000, 1_500));
    let rounds = bench.either(7, 6);
    let intervals: &[i64] = bench.either(&[1_000_000, 200_000], &[1_000_000]);
    for interval_ns in intervals {
        Frame { bench, interval_ns: *interval_ns, length, rounds }.measure(&mut section)?;
    }
    section.note(format!(
        "{rounds} rounds; in each, every mode runs once for {:.1} s after 200 ms of warm-up, one \
         after the other, there and back in turns; SCHED_FIFO 90, one thread per CPU. Differences \
         are within a round, to the run without tracing; median of the rounds.",
        length.as_secs_f64()
    ));
    section.note(
        "CPU per wake-up is that of the measuring threads (`schedstat`, as in the rows against \
         cyclictest). What the kernel's programs take within interrupts is not in it, but is in \
         the latency. CPU of the process holds all its threads, also the one that finds the \
         blame; % of one CPU.",
    );
    Ok(section)
}

impl Frame<'_> {
    fn measure(&self, section: &mut Section) -> Result<()> {
        let mut rounds = Vec::new();
        for round in 0..self.rounds {
            let mut outcomes = [None; 3];
            let mut order = [0, 1, 2];
            if round % 2 == 1 {
                // There and back, so that running before the other side gives no advantage.
                order.reverse();
            }
            for at in order {
                outcomes[at] = Some(self.run(MODES[at], round)?);
            }
            if let [Some(off), Some(stages), Some(peaks)] = outcomes {
                rounds.push([off, stages, peaks]);
            }
            say(&format!("  {}: round {} of {}", Nanos(self.interval_ns), round + 1, self.rounds));
        }
        for (mode, at) in [("stages", 1), ("peaks", 2)] {
            section.rows.extend(self.rows(mode, at, &rounds)?);
        }
        Ok(())
    }

    /// What one mode adds.
    fn rows(&self, mode: &str, at: usize, rounds: &[[Outcome; 3]]) -> Result<Vec<FigureRow>> {
        let figures: [(&str, Figure, f64, &str, Option<f64>); 4] = [
            ("the median wake-up", |outcome| outcome.p50_ns, 1e3, "us", Some(LIMIT_US)),
            ("p99", |outcome| outcome.p99_ns, 1e3, "us", None),
            ("CPU per wake-up", |outcome| outcome.cpu_ns, 1e3, "us", None),
            ("CPU of the process", |outcome| outcome.busy_percent, 1.0, "%", None),
        ];
        let row = |(what, of, scale, unit, limit): (&str, Figure, f64, &str, Option<f64>)| {
            let of_mode =
                |at: usize| rounds.iter().map(move |round| of(&round[at]) / scale).collect();
            let (before, after): (Vec<f64>, Vec<f64>) = (of_mode(0), of_mode(at));
            let added: Vec<f64> = after.iter().zip(&before).map(|(with, no)| with - no).collect();
            let middle = analysis::median(&before, 0.95)?.median;
            let added = analysis::median(&added, 0.95)?;
            let what = format!("added to {what} by `{mode}`, {} interval", Nanos(self.interval_ns));
            let measured = format!("{} {unit}; without {middle:.1} {unit}", interval(&added, 2));
            let row = FigureRow::new(what, measured);
            Ok::<_, EstimateError>(match limit {
                Some(limit) => row.judged(format!("{limit} {unit}"), added.meets(limit)),
                None => row,
            })
        };
        Ok(figures.into_iter().map(row).collect::<Result<_, _>>()?)
    }

    /// One mode, once.
    fn run(&self, mode: &str, round: usize) -> Result<Outcome> {
        let place = self.bench.path(&format!("trace-{mode}-{}-{round}", self.interval_ns));
        let begun = Instant::now();
        let mut child = process::start(&mut self.command(mode, &place))?;
        let look = |at: Duration| -> Result<(Duration, Used, Used)> {
            sleep(at.saturating_sub(begun.elapsed()));
            let threads = Used::of(child.id(), |name, _| name.starts_with("tardy/cpu"))?;
            Ok((begun.elapsed(), threads, Used::of(child.id(), |_, _| true)?))
        };
        let early = look(self.length.mul_f64(0.25) + Duration::from_millis(500));
        let late = look(self.length.mul_f64(0.9));
        let ended = child.wait()?;
        ensure!(ended.success(), "--trace {mode} ended with {ended}");
        let ((from, threads_before, all_before), (to, threads, all)) = (early?, late?);
        let busy_ns = all.cpu_ns.saturating_sub(all_before.cpu_ns) as f64;
        let mut counts = hlog::empty();
        Run::open(&place)?.intervals(|_, span, own| {
            // Series of stages are named after the one they split. Bounds are equal, so that
            // nothing can be lost.
            if !span.tag.contains('/') {
                let _ = counts.add(&own);
            }
        })?;
        ensure!(!counts.is_empty(), "not one sample");
        let at = |quantile| counts.value_at_quantile(quantile) as f64;
        Ok(Outcome {
            p50_ns: at(0.5),
            p99_ns: at(0.99),
            cpu_ns: threads.per_wakeup_since(threads_before)?,
            busy_percent: 100.0 * busy_ns / (to - from).as_nanos() as f64,
        })
    }

    fn command(&self, mode: &str, place: &Path) -> Command {
        let mut command = Command::new(&self.bench.tardy);
        let (interval, length) = (self.interval_ns, self.length.as_nanos());
        command
            .args(["run", "timer", "--trace", mode, "--policy", "fifo", "--priority", "90"])
            .args(["--interval", &format!("{interval}ns"), "--warmup", "200ms", "--quiet"])
            .args(["--cpus", &self.bench.cpus.to_string()])
            .args(["--duration", &format!("{length}ns"), "-o"])
            .arg(place);
        command
    }
}
