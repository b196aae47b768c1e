//! `--deadline`: one for all, and of attached threads one for each name.

use anyhow::{Result, anyhow, bail, ensure};
use clap::Args;

use super::flags::positive;
use crate::{
    probes::attach::series_of_name,
    report::deadline::{SeriesDeadline, deadlines},
    run::{Deadlines, Run, ThreadDeadline},
    units::Nanos,
};

/// What latencies are to keep.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct DeadlineFlags {
    /// Also print the share of periods that met this deadline, and consecutive misses
    ///
    /// The time from the expiry to the wake-up; for messages, to the answer or the packet; for
    /// --work and for attached threads with a timer, to the end of the work. Attached threads may
    /// have one each, by name: ctl=1ms,act=5ms.
    ///
    /// Periods that passed while the thread slept count, each as late as the wake-up that served
    /// it. If the end of work is judged, a period without work is missed. Bursts, and the most
    /// misses in any 10, 100 and 1,000 periods, need the single samples of --raw. The run remembers
    /// its deadline: `tardy show` uses it.
    #[arg(long, value_name = "TIME", value_parser = parsed)]
    deadline: Option<Deadlines>,
}

impl DeadlineFlags {
    /// What was given; empty without.
    pub(super) fn asked(&self) -> Deadlines {
        self.deadline.clone().unwrap_or_default()
    }

    /// That of all, ns.
    pub(super) fn all_ns(&self) -> Option<i64> {
        self.deadline.as_ref()?.all_ns
    }

    /// Whether it is given.
    pub(super) const fn is_given(&self) -> bool {
        self.deadline.is_some()
    }

    /// Refuses names for a probe without threads of others.
    ///
    /// # Errors
    /// Names the flag and the first name.
    pub(super) fn refuse_names(&self, probe: &str) -> Result<()> {
        let named = self.deadline.as_ref().and_then(|asked| asked.of_threads.first());
        if let Some(ThreadDeadline { name, deadline_ns }) = named {
            let time = Nanos(*deadline_ns).typed();
            bail!(
                "--deadline {name}={time}: only threads of attach have deadlines by their names, \
                 and {probe} is measured; write --deadline {time}"
            );
        }
        Ok(())
    }

    /// What a deadline is to a run: this one, or else the run's own. `None` without a deadline.
    ///
    /// # Errors
    /// A name that no series of the run has; a log that cannot be read.
    pub(super) fn of(&self, run: &Run) -> Result<Option<Vec<SeriesDeadline>>> {
        let asked = match &self.deadline {
            Some(asked) => asked.clone(),
            None => run.document.deadlines(),
        };
        if self.is_given() {
            check_names(&asked, run)?;
        }
        let which = match asked.is_empty() {
            false => format!("the deadline {}", asked.typed()),
            true => "the deadlines of the threads".to_owned(),
        };
        let found = deadlines(run, &asked).map_err(|damage| anyhow!("{which}: {damage}"))?;
        Ok(Some(found).filter(|found| !asked.is_empty() || !found.is_empty()))
    }
}

/// Refuses names that nothing in the run has.
fn check_names(asked: &Deadlines, run: &Run) -> Result<()> {
    let known: Vec<&str> = run.document.wakeups().map(|own| own.name.as_str()).collect();
    for ThreadDeadline { name, deadline_ns } in &asked.of_threads {
        let there_are = match known.is_empty() {
            true => "it has no wake-ups".to_owned(),
            false => format!("there are {}", named(&known)),
        };
        ensure!(
            known.contains(&name.as_str()),
            "--deadline {name}={}: nothing in {} is called {name}; {there_are}",
            Nanos(*deadline_ns).typed(),
            run.document.name,
        );
    }
    Ok(())
}

/// The number of names that are listed.
const NAMED: usize = 8;

/// Some names, and how many more there are.
pub(super) fn named(names: &[&str]) -> String {
    let first = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// `1ms`, `ctl=1ms,act=5ms`, or both.
fn parsed(text: &str) -> Result<Deadlines, String> {
    let mut found = Deadlines::default();
    for part in text.split(',') {
        let Some((name, time)) = part.rsplit_once('=') else {
            let time = positive(part)?;
            if let Some(first) = found.all_ns.replace(time.0) {
                return Err(format!(
                    "{} and {} are both without a name; give one for all, or write NAME=TIME",
                    Nanos(first).typed(),
                    time.typed()
                ));
            }
            continue;
        };
        let name = name.trim();
        if name.is_empty() {
            return Err(format!("{part} has no name; write NAME=TIME, as ctl=1ms"));
        }
        let (name, deadline_ns) = (series_of_name(name), positive(time)?.0);
        if found.of_threads.iter().any(|own| own.name == name) {
            return Err(format!(
                "two deadlines are of threads called {name}, of whose name the kernel keeps 15 \
                 bytes; give one of them"
            ));
        }
        found.of_threads.push(ThreadDeadline { name, deadline_ns });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_of_all_or_of_threads_by_name() {
        assert_eq!(parsed("1ms").unwrap(), Deadlines::of_all(Some(1_000_000)));
        let named = parsed("act=5ms, ctl loop=1ms").unwrap();
        let loops = series_of_name("ctl loop");
        assert_eq!((named.of("act"), named.of(&loops)), (Some(5_000_000), Some(1_000_000)));
        assert_eq!(named.of("other"), None);
        let both = parsed("2ms,ctl=1ms").unwrap();
        assert_eq!((both.of("act"), both.of("ctl")), (Some(2_000_000), Some(1_000_000)));
        assert_eq!(parsed("a=b=1ms").unwrap().of(&series_of_name("a=b")), Some(1_000_000));
    }

    #[test]
    fn what_could_be_of_several_or_of_none_is_refused() {
        for (text, says) in [
            ("ctl=1ms,ctl=2ms", "two deadlines are of threads called ctl"),
            ("a-long-name-of-a-1=1ms,a-long-name-of-a-2=1ms", "keeps 15 bytes"),
            ("=1ms", "has no name"),
            ("1ms,2ms", "both without a name"),
            ("ctl=", "is not a time"),
            ("ctl=1", "no unit"),
            ("ctl=0", "0 is not more than nothing"),
            ("1ms,", ""),
        ] {
            let error = parsed(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
