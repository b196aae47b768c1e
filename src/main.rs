//! Parse, act, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    tardy::cli::main()
}
