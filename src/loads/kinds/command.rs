//! The load `command`: any other command, under the same supervisor.
//!
//! `sh -c` gets the text. Nothing is known of its work but the CPU time that it and everything
//! below it take, so a microsecond of that is one operation: a command that took none in the
//! measured time did nothing. One that ends before it is asked to has died, even with exit code 0.
//! tardy ends its processes with it, but does not clean up other changes that it makes.

use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::{Map, Value};

use crate::loads::task_loop::PROCESS_BYTES;
use crate::loads::worker_pool::WorkerPool;
use crate::loads::{Load, LoadError, LoadSpec, LoadWork, Need, Parameter, ParameterKind};

/// Not in the table: a command may hold commas and colons, and has its own flag.
pub const LOAD: Load = Load {
    name: "command",
    summary: "A command of your own, given with --load-command.",
    unit: "us of CPU",
    parameters: &[Parameter {
        key: "command",
        help: "What sh -c runs.",
        default: "stress-ng --vm 2",
        kind: ParameterKind::Text,
    }],
    work: Some(LoadWork { need, start }),
};

/// The load that runs `command`.
///
/// # Errors
/// The command is empty.
pub fn spec(command: &str) -> Result<LoadSpec, LoadError> {
    let parameters = Map::from_iter([("command".to_owned(), Value::from(command.trim()))]);
    let spec = LoadSpec { name: LOAD.name.to_owned(), parameters };
    spec.check()?;
    Ok(spec)
}

fn need(_: &LoadSpec) -> Result<Need, LoadError> {
    Ok(Need { tasks: 1, memory_bytes: PROCESS_BYTES, ..Need::default() })
}

fn start(spec: &LoadSpec, pool: &mut WorkerPool) -> Result<(), LoadError> {
    let command = spec.text("command")?;
    pool.count_cpu_time();
    pool.spawn(|worker| {
        worker.begin()?;
        Err(Command::new("sh").arg("-c").arg(command).exec())
    })
    .map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_may_hold_what_a_load_may_not() {
        let spec = spec(" stress-ng --vm 2, a=b:c ").unwrap();
        assert_eq!(spec.text("command").unwrap(), "stress-ng --vm 2, a=b:c");
        assert_eq!(LoadSpec::from_json(&spec.to_json().unwrap()).unwrap(), spec);
    }

    #[test]
    fn nothing_is_no_command() {
        let said = super::spec("  ").unwrap_err().to_string();
        assert!(said.contains("is not a text"), "{said}");
    }
}
