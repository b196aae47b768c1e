//! The threads of rtla's tools: where they are, how they are scheduled, and for how long.

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use clap::Args;

use crate::{cli::cyclictest_flags::seconds_of, sys::cpus::Cpus};

#[derive(Debug, Args)]
#[command(next_help_heading = "Threads")]
pub(super) struct ThreadFlags {
    /// CPUs to measure, as 1,3,5-7 [default: all]
    #[arg(short, long, value_name = "CPUS")]
    cpus: Option<Cpus>,
    /// CPUs for the threads that do not measure [default: those not measured]
    #[arg(short = 'H', long, value_name = "CPUS")]
    house_keeping: Option<Cpus>,
    /// Policy: f:PRIO, r:PRIO, o:0 or d:RUNTIME:PERIOD [default: f:95, of osnoise o:0]
    #[arg(short = 'P', long, value_name = "POLICY")]
    priority: Option<String>,
    /// How long: seconds, or a number with s, m, h or d [default: until Ctrl-C]
    #[arg(short, long, value_name = "TIME")]
    duration: Option<String>,
    /// Measure for this long before samples count, s [default: 0]
    #[arg(long, value_name = "S", default_value = "0")]
    warm_up: u32,
    /// Print only the result: no progress, no hints
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// Name of the run in the store; an option of tardy alone
    #[arg(long, value_name = "NAME")]
    run_name: Option<String>,
}

impl ThreadFlags {
    /// The first words of `tardy run`. `usual`: the policy of the tool, as `fifo 95`.
    ///
    /// # Errors
    /// Names the option that was typed.
    pub(super) fn words(&self, probe: &str, usual: &str) -> Result<Vec<String>> {
        let mut words: Vec<String> = ["tardy", "run", probe].map(str::to_owned).into();
        let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
        let policy = match &self.priority {
            Some(typed) => policy(typed).with_context(|| format!("-P {typed}"))?,
            None => policy_words(usual),
        };
        for (name, value) in policy {
            add(name, value);
        }
        add(
            "--duration",
            match &self.duration {
                None => "inf".to_owned(),
                Some(typed) => {
                    let seconds = seconds_of(typed, "to continue until Ctrl-C")
                        .map_err(|error| anyhow!(error.to_string().replace("-D ", "-d ")))?;
                    format!("{seconds}s")
                }
            },
        );
        add("--warmup", format!("{}s", self.warm_up));
        if let Some(cpus) = &self.cpus {
            add("--cpus", cpus.to_string());
        }
        if let Some(cpus) = &self.house_keeping {
            add("--housekeeping", cpus.to_string());
        }
        if let Some(name) = &self.run_name {
            add("--name", name.clone());
        }
        words.extend(self.quiet.then(|| "--quiet".to_owned()));
        Ok(words)
    }
}

/// Options of `tardy run` with their values.
type PolicyWords = Vec<(&'static str, String)>;

/// `fifo 95` or `other`.
fn policy_words(policy: &str) -> PolicyWords {
    let (name, priority) = policy.split_once(' ').unwrap_or((policy, ""));
    let priority = (!priority.is_empty()).then(|| ("--priority", priority.to_owned()));
    std::iter::once(("--policy", name.to_owned())).chain(priority).collect()
}

/// What `-P` asks for.
fn policy(typed: &str) -> Result<PolicyWords> {
    let form = "write f:PRIO, r:PRIO, o:0 or d:RUNTIME:PERIOD";
    let (kind, rest) = typed.split_once(':').context(form)?;
    let name = match kind {
        "f" | "F" => "fifo",
        "r" | "R" => "rr",
        "o" | "O" => {
            ensure!(
                rest == "0",
                "tardy measures ordinary threads at nice 0; write o:0, or start tardy by `nice`"
            );
            return Ok(policy_words("other"));
        }
        "d" | "D" => return deadline(rest).context(form),
        _ => bail!(form),
    };
    let priority = rest.parse::<u32>().ok().filter(|own| (1..=99).contains(own));
    let priority = priority.context("priorities are 1 to 99")?;
    Ok(policy_words(&format!("{name} {priority}")))
}

/// `100us:1ms`, as the runtime and the period of a thread.
fn deadline(text: &str) -> Option<PolicyWords> {
    let (runtime, period) = text.split_once(':')?;
    // Without a unit these are ns there.
    let with_unit = |text: &str| {
        let has_unit = text.ends_with(|last: char| !last.is_ascii_digit());
        if has_unit { text.to_owned() } else { format!("{text}ns") }
    };
    let (runtime, period) = (with_unit(runtime), with_unit(period));
    let params = format!("{runtime}/{period}/{period}");
    Some(vec![("--policy", "deadline".into()), ("--deadline-params", params)])
}

/// An error of the run with the options that are typed here.
pub(super) fn as_typed(error: &anyhow::Error) -> anyhow::Error {
    let typed = [
        ("--cpus", "-c"),
        ("--housekeeping", "-H"),
        ("--deadline-params", "-P d:"),
        ("--interval", "-p"),
        ("--stop-over", "-T"),
        ("--name", "--run-name"),
    ];
    let said = format!("{error:#}");
    anyhow!(typed.iter().fold(said, |said, (own, theirs)| said.replace(own, theirs)))
}
