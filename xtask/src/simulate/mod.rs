//! `cargo xtask simulate`: what the statistics of `tardy::analysis` do with data whose truth is
//! known. Tables in Markdown, for `docs/explanation/statistics.md`, to
//! standard output; the same seed and
//! number of repeats print the same tables, on any number of threads.

mod coverage;
mod nights;
mod phases;
mod processes;
mod runs;
mod sessions;
mod steadiness;
mod table;
mod tails;
mod trends;

use std::{io::Write as _, num::NonZeroUsize, time::Instant};

use anyhow::Result;
use clap::{Args, builder::PossibleValuesParser};
use table::Effort;

use crate::bench::say;

/// Tables by the name that selects one.
const TABLES: [&str; 9] =
    ["coverage", "equal", "nights", "phases", "power", "runs", "steady", "tails", "trends"];

/// Simulate coverage, false verdicts and power; Markdown on stdout
#[derive(Debug, Args)]
pub(crate) struct SimulateFlags {
    /// Simulated runs for each row of `coverage`, `steady` and `tails`; each of 60,000 samples
    #[arg(long, default_value = "1000", value_name = "N")]
    repeats: NonZeroUsize,
    /// Simulated sessions for each row of `equal`, `nights`, `phases`, `power`, `runs` and
    /// `trends`; they take less time
    #[arg(long, default_value = "10000", value_name = "N")]
    sessions: NonZeroUsize,
    /// Samples of each run of `coverage`, one a ms
    #[arg(long, default_value = "60000", value_name = "N")]
    samples: NonZeroUsize,
    /// Threads; default: all CPUs
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Where the random numbers begin
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only these
    #[arg(value_name = "TABLE", value_parser = PossibleValuesParser::new(TABLES))]
    tables: Vec<String>,
}

/// Simulates and prints.
pub(crate) fn run(flags: &SimulateFlags) -> Result<()> {
    let own = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = flags.threads.map_or(own, NonZeroUsize::get);
    let effort =
        |repeats: NonZeroUsize| Effort { repeats: repeats.get(), threads, seed: flags.seed };
    for name in TABLES {
        if !flags.tables.is_empty() && !flags.tables.iter().any(|table| table == name) {
            continue;
        }
        let start = Instant::now();
        let text = match name {
            "coverage" => coverage::table(effort(flags.repeats), flags.samples.get()),
            "equal" => sessions::equal_sides(effort(flags.sessions))?,
            "nights" => nights::tables(effort(flags.sessions)),
            "phases" => {
                let effort = effort(flags.sessions);
                phases::equal_kernels(effort) + &phases::power(effort)
            }
            "runs" => runs::equal_sides(effort(flags.sessions)),
            "tails" => tails::table(effort(flags.repeats)),
            "steady" => steadiness::table(effort(flags.repeats)),
            "trends" => trends::tables(effort(flags.sessions)),
            _ => sessions::power(effort(flags.sessions))?,
        };
        std::io::stdout().write_all(text.as_bytes())?;
        say(&format!("{name}: {:.0} s", start.elapsed().as_secs_f64()));
    }
    Ok(())
}
