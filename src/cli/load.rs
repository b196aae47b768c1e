//! `tardy load`: loads alone, and the list of all loads.

use std::{
    fs::File,
    io::{self, IsTerminal},
    os::fd::AsFd,
};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};

use super::{
    Exit,
    flags::{CommandFlags, FormatFlags, HowLong, duration},
    output,
    progress::StatusLine,
};
use crate::{
    loads::{LOADS, Load, LoadSpec},
    report::{table::Table, terminal::fold, words},
    session::{
        LoadProgress,
        alone::{AloneEnd, LoadOnlyRun},
    },
    sys::signals::Quit,
    units::{ByteSize, Nanos, count, rate, span},
};

/// Run loads alone, without measuring
///
/// They run until Ctrl-C or the end of --duration; then a table shows what they did. If a load dies
/// or does nothing, the exit code is 4.
#[derive(Debug, Args)]
#[command(after_long_help = list_text())]
pub(super) struct LoadFlags {
    /// Loads to run: NAME[:key=value,...]; one or more
    #[arg(value_name = "LOAD")]
    loads: Vec<String>,
    #[command(flatten)]
    commands: CommandFlags,
    /// List all loads with their parameters
    #[arg(long, conflicts_with_all = ["loads", "load_commands", "duration"])]
    #[arg(help_heading = "Loads")]
    list: bool,
    /// How long to run the loads, or inf [default: inf, until Ctrl-C]
    #[arg(long, value_name = "LENGTH", value_parser = duration, help_heading = "Length")]
    #[arg(allow_hyphen_values = true)]
    duration: Option<HowLong>,
    /// Print only the result: no progress, no hints
    #[arg(long, help_heading = "Output")]
    quiet: bool,
    #[command(flatten)]
    format: FormatFlags,
}

/// Runs the loads, or lists them.
pub(super) fn load(flags: &LoadFlags) -> Result<Exit> {
    if flags.list {
        return list(flags.format.is_json());
    }
    let specs = flags.specs()?;
    let quit = Quit::listen().context("cannot set a signal handler")?;
    // The output of the loads goes to the terminal.
    let log = io::stderr().as_fd().try_clone_to_owned().context("cannot use standard error")?;
    let alone = match LoadOnlyRun::start(specs, &File::from(log), || quit.seen().is_some()) {
        Err(error) if quit.seen().is_some() => {
            output::notice(&error.to_string());
            return Ok(Exit::Done);
        }
        started => started?,
    };
    let mut line = StatusLine::new(!flags.quiet && io::stderr().is_terminal());
    let mut rates = LoadRates::default();
    let end = alone.run(
        flags.duration.and_then(HowLong::limit).map(|length| length.0),
        || quit.seen().is_some(),
        |elapsed_ns, loads| line.write(|| rates.text(elapsed_ns, loads)),
    );
    line.clear();
    if flags.format.is_json() {
        output::put_json(&end_json(&end))?;
    } else {
        output::put(&end_text(&end))?;
    }
    let mut exit = Exit::Done;
    for (load, fault) in end.loads.iter().zip(&end.faults) {
        if let Some(fault) = fault {
            output::notice(&format!("load {}: {fault}", words::load(load)));
            exit = Exit::Invalid;
        }
    }
    Ok(exit)
}

impl LoadFlags {
    fn specs(&self) -> Result<Vec<LoadSpec>> {
        if self.loads.is_empty() && self.commands.load_commands.is_empty() {
            bail!(
                "no LOAD is named: write for example `tardy load hackbench`; `tardy load --list` \
                 shows what there is"
            );
        }
        let read = |text: &String| Ok(LoadSpec::parse(text)?);
        self.loads.iter().map(read).chain(self.commands.specs()).collect()
    }
}

/// Operations per second between two lines.
#[derive(Debug, Default)]
struct LoadRates {
    before_ns: i64,
    before: Vec<u64>,
}

impl LoadRates {
    fn text(&mut self, elapsed_ns: i64, loads: &[LoadProgress]) -> String {
        let seconds = Nanos(elapsed_ns - self.before_ns).seconds().max(1e-9);
        let now: Vec<u64> = loads.iter().map(|load| load.operations.unwrap_or(0)).collect();
        let mut parts = vec![span(Nanos(elapsed_ns).seconds())];
        for (place, (load, now)) in loads.iter().zip(&now).enumerate() {
            let before = self.before.get(place).copied().unwrap_or(0);
            let per_s = now.saturating_sub(before) as f64 / seconds;
            parts.push(match &load.died {
                Some(how) => format!("{} DIED: {how}", load.name),
                None if load.unit.is_empty() => load.name.clone(),
                None => format!("{} {} {}/s", load.name, rate(per_s), load.unit),
            });
        }
        (self.before_ns, self.before) = (elapsed_ns, now);
        parts.join(" | ")
    }
}

fn end_text(end: &AloneEnd) -> String {
    let headings = ["load", "unit", "per second", "in all", "switches/s", "CPUs", "tasks", "idle"];
    let mut table = Table::new(2, &headings);
    for load in &end.loads {
        let name = words::load(load);
        table.row(match &load.proof {
            Some(proof) => vec![
                name,
                proof.unit.clone(),
                rate(proof.operations_per_s),
                count(proof.operations),
                rate(proof.context_switches_per_s),
                format!("{:.2}", proof.cpu_share),
                count(proof.tasks),
                count(proof.tasks_idle),
            ],
            None => vec![name, load.ended.clone().unwrap_or_default()],
        });
    }
    table.lines().join("\n") + "\n"
}

fn end_json(end: &AloneEnd) -> Value {
    let load = |(load, fault): (&crate::run::LoadRecord, &Option<String>)| {
        let mut entry = json!(load);
        if let Some(entry) = entry.as_object_mut() {
            entry.insert("fault".into(), json!(fault));
        }
        entry
    };
    let loads: Vec<Value> = end.loads.iter().zip(&end.faults).map(load).collect();
    json!({ "duration_ns": end.duration_ns, "loads": loads })
}

fn list(json: bool) -> Result<Exit> {
    if json {
        let loads: Vec<Value> = LOADS.iter().map(load_json).collect();
        output::put_json(&loads)?;
    } else {
        output::put(&fold(&(list_text() + "\n"), output::width()))?;
    }
    Ok(Exit::Done)
}

fn load_json(load: &Load) -> Value {
    let parameter = |parameter: &crate::loads::Parameter| {
        json!({
            "key": parameter.key,
            "default": parameter.default,
            "values": parameter.kind.expected(),
            "help": parameter.help,
        })
    };
    let parameters: Vec<Value> = load.parameters.iter().map(parameter).collect();
    let (name, summary, unit) = (load.name, load.summary, load.unit);
    json!({ "name": name, "summary": summary, "unit": unit, "parameters": parameters })
}

/// All loads and their parameters, for help and `--list`.
fn list_text() -> String {
    let mut lines = vec![format!(
        "Loads, with the defaults and bounds of their parameters.\n\
         Times need a unit ({}). Sizes are in bytes, or have a\nunit ({}).",
        Nanos::units(),
        ByteSize::units()
    )];
    for load in LOADS {
        lines.push(format!("\n  {}: {}", load.name, load.summary));
        for parameter in load.parameters {
            let (key, default, kind) = (parameter.key, parameter.default, parameter.kind);
            lines.push(format!("    {key}={default}: {} ({})", parameter.help, kind.bounds()));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(operations: u64, died: Option<&str>) -> LoadProgress {
        LoadProgress {
            name: "burn".into(),
            unit: "ms of CPU",
            operations: Some(operations),
            died: died.map(Into::into),
        }
    }

    #[test]
    fn the_line_tells_what_was_done_since_the_line_before() {
        let mut rates = LoadRates::default();
        let text = rates.text(1_000_000_000, &[progress(500, None)]);
        assert_eq!(text, format!("1 s | burn {} ms of CPU/s", rate(500.0)));
        let text = rates.text(3_000_000_000, &[progress(900, None)]);
        assert_eq!(text, format!("3 s | burn {} ms of CPU/s", rate(200.0)));
        let text = rates.text(4_000_000_000, &[progress(900, Some("worker 0: signal 9"))]);
        assert_eq!(text, "4 s | burn DIED: worker 0: signal 9");
    }

    #[test]
    fn every_load_and_parameter_is_listed() {
        let text = list_text();
        for load in LOADS {
            assert!(text.contains(&format!("\n  {}: ", load.name)), "{}", load.name);
            for parameter in load.parameters {
                assert!(text.contains(&format!("    {}={}: ", parameter.key, parameter.default)));
            }
        }
    }
}
