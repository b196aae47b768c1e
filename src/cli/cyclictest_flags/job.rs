//! What a command line of cyclictest measures, for those who compare its results with runs of
//! `tardy cyclictest`.

use clap::{Args as _, Command, FromArgMatches as _};

use super::{CyclictestFlags, length::RunLength};
use crate::{probes::timer::WakeKind, units::Nanos};

/// As `tardy run timer` would be asked for it.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cli) struct CyclictestJob {
    pub(in crate::cli) interval: Nanos,
    /// How much longer the interval of each next thread is.
    pub(in crate::cli) interval_step: Nanos,
    /// Between the expiries of a thread and the next.
    pub(in crate::cli) distance: Nanos,
    /// How threads wait, by its name in tardy.
    pub(in crate::cli) wake: &'static str,
    /// `fifo 90`
    pub(in crate::cli) policy: String,
    /// The planned length; `None` if samples are counted, or without an end.
    pub(in crate::cli) duration: Option<Nanos>,
    /// Of each thread.
    pub(in crate::cli) samples: Option<u64>,
    pub(in crate::cli) stop_over: Option<Nanos>,
    /// The longest latency of idle states that it asks for, us.
    pub(in crate::cli) dma_latency_us: Option<i32>,
}

impl CyclictestJob {
    /// Of its words with this number of threads; nothing if it is not a command line of
    /// cyclictest, or one of which `tardy cyclictest` refuses an option.
    pub(in crate::cli) fn of(command: &str, threads: u32) -> Option<Self> {
        let mut words = command.split_whitespace();
        let program = words.next()?.rsplit('/').next()?;
        let parser = CyclictestFlags::augment_args(Command::new("cyclictest"));
        let words = std::iter::once("cyclictest").chain(words);
        let matches =
            parser.try_get_matches_from(words).ok().filter(|_| program == "cyclictest")?;
        let flags = CyclictestFlags::from_arg_matches(&matches).ok()?;
        flags.check_numbers().ok()?;
        let us = |us: u64| Some(Nanos(i64::try_from(us).ok()?.checked_mul(1_000)?));
        let step_us = flags.step_us(threads);
        let longest_us =
            u64::from(flags.interval) + u64::from(step_us) * u64::from(threads.saturating_sub(1));
        let length = RunLength::of(flags.loops, flags.duration.as_deref(), longest_us).ok()?;
        let (duration, samples) = match length {
            RunLength::Endless => (None, None),
            RunLength::Seconds(seconds) => (us(seconds.checked_mul(1_000_000)?), None),
            RunLength::Samples(samples) => (None, Some(samples)),
        };
        let policy = match flags.own_policy().ok()? {
            "other" => "other".to_owned(),
            policy => format!("{policy} {}", flags.priority.max(1)),
        };
        Some(Self {
            interval: us(flags.interval.into())?,
            interval_step: us(step_us.into())?,
            distance: us(flags.aligned.unwrap_or(0).into())?,
            wake: flags.wake().unwrap_or(WakeKind::Nanosleep.as_str()),
            policy,
            duration,
            samples,
            dma_latency_us: match flags.laptop || flags.default_system {
                true => None,
                false => Some(i32::try_from(flags.latency.unwrap_or(0)).ok()?),
            },
            stop_over: flags.breaktrace.and_then(us),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_read_as_the_drop_in_reads_it() {
        let of = |command: &str| CyclictestJob::of(command, 4);
        let own = of("/usr/bin/cyclictest -qm -i 250 -p90 -S -D 1m -h 400").unwrap();
        assert_eq!((own.interval, own.interval_step), (Nanos(250_000), Nanos(0)));
        assert_eq!((own.policy.as_str(), own.wake), ("fifo 90", "nanosleep"));
        assert_eq!((own.duration, own.samples), (Some(Nanos(60_000_000_000)), None));
        assert_eq!(own.dma_latency_us, Some(0));
        assert_eq!(of("cyclictest --latency 50").unwrap().dma_latency_us, Some(50));
        assert_eq!(of("cyclictest --laptop").unwrap().dma_latency_us, None);
        let own = of("cyclictest -t4 -a -l 1000 -r -b 100").unwrap();
        assert_eq!((own.policy.as_str(), own.wake), ("other", "relative"));
        assert_eq!((own.interval_step, own.samples), (Nanos(500_000), Some(1_000)));
        assert_eq!(own.stop_over, Some(Nanos(100_000)));
        for other in ["oslat -D 60", "cyclictest --smi", "cyclictest -i 0", "cyclictest --oops", ""]
        {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
