//! `tardy --licenses`: the terms of all that is in the program, and where its sources are.
//!
//! `cargo xtask licenses` makes the list of what others wrote; a test of it compares the list with
//! the lock files.

use std::process::ExitCode;

use super::{Exit, output};

/// How it is asked for.
pub(super) const FLAG: &str = "--licenses";

const PARTS: [&str; 4] = [
    include_str!("../../licenses/about.txt"),
    include_str!("../../LICENSE-APACHE"),
    include_str!("../../LICENSE-MIT"),
    include_str!("../../licenses/third-party.txt"),
];

/// Prints them.
pub(super) fn print() -> ExitCode {
    match output::put(&text()) {
        Ok(()) => Exit::Done.code().into(),
        Err(error) => {
            output::complain(&error);
            Exit::Failed.code().into()
        }
    }
}

fn text() -> String {
    PARTS.map(str::trim_end).join("\n\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_licenses_are_there_with_the_place_of_the_sources() {
        let text = text();
        for part in [
            "Apache License",
            "MIT License",
            "GNU GENERAL PUBLIC LICENSE",
            "GNU LESSER GENERAL PUBLIC LICENSE",
            "recorder.bpf.c",
            "profile.bpf.c",
            "libelf",
            "https://crates.io/crates/NAME",
            "\nlibbpf-rs ",
            "\necharts ",
        ] {
            assert!(text.contains(part), "{part}");
        }
    }

    #[test]
    fn no_text_steers_the_terminal() {
        let odd = text().chars().find(|c| c.is_control() && *c != '\n');
        assert_eq!(odd, None);
    }

    #[test]
    fn it_is_the_flag_of_the_definition() {
        let command = super::super::command();
        let known = command.get_arguments().filter_map(clap::Arg::get_long);
        assert!(known.map(|long| format!("--{long}")).any(|long| long == FLAG));
    }
}
