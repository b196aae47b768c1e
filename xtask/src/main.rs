//! Developers' commands of tardy: `cargo xtask NAME`.

mod bench;
mod docs;
mod inject;
mod synth;
mod synth_why;
mod vm;

use std::{path::Path, process::ExitCode};

const USAGE: &str = "\
usage: cargo xtask NAME
  bench [--quick] [ROW...]  hold tardy to its numbers; a table on stderr, Markdown on stdout
  docs DIR                  write man pages and completions
  inject --target PID ...   delay a running measurement by known times; a log on stdout
  synth-day DIR             write a run of one day, 8 CPUs at 1 kHz, without measuring it
  synth-why DIR             write a traced run of a minute with 100 peaks of every cause
  vm [OPTION...] [-- COMMAND...]
                            run tests, or COMMAND, in a virtual machine";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (name, rest) = match words.split_first() {
        Some((name, rest)) => (name.as_str(), rest),
        None => ("", [].as_slice()),
    };
    let done = match name {
        "bench" => bench::run(rest),
        "docs" => match rest {
            [directory] => docs::write(Path::new(directory)),
            _ => Err(anyhow::anyhow!(USAGE)),
        },
        "inject" => inject::run(rest),
        // What it starts as processes of their own.
        "inject-exit" => inject::run_exit(rest),
        "inject-guard" => inject::run_guard(rest),
        "synth-day" => synth::run(rest),
        "synth-why" => match rest {
            [directory] => synth_why::write(Path::new(directory)),
            _ => Err(anyhow::anyhow!(USAGE)),
        },
        "vm" => vm::run(rest),
        // What `bench` starts as processes of their own.
        "bare-exchange" => bench::messages::bare::run(rest),
        "bare-loop" => bench::bare::run(rest),
        "record-loop" => bench::record::run_loop(rest),
        "record-time" => bench::record::run_time(rest),
        _ => Err(anyhow::anyhow!(USAGE)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            bench::say(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}
