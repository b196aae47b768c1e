//! `cargo xtask house`: counts that say how the sources are built, each beside its aim.
//!
//! Product code is what ships: `src/` and the measuring crate, without tests. A module of tests at
//! the end of a file is cut off.

mod rust;
mod sources;

use std::process::Command;

use anyhow::{Context, Result};

use self::{
    rust::{Function, RustCounts},
    sources::{Source, fullest_directory},
};
use crate::bench::say;

/// One count: what is counted, how much there is, and how much there should be at most.
struct Count {
    what: &'static str,
    now: String,
    aim: &'static str,
}

/// Prints the counts, and the balance of lines since `since`.
///
/// # Errors
/// A source cannot be read or parsed; git cannot tell the balance.
pub(crate) fn run(since: Option<&str>) -> Result<()> {
    let product = sources::product()?;
    let counts = RustCounts::of(&product)?;
    for Count { what, now, aim } in counted(&product, &counts) {
        say(&format!("{what:<68} {now:>10}  {aim}"));
    }
    if let Some(since) = since {
        say(&format!("since {since}: {}", balance(since)?));
    }
    Ok(())
}

fn counted(product: &[Source], counts: &RustCounts) -> Vec<Count> {
    let naming = |word: &str| product.iter().filter(|own| own.names(word)).count();
    let mentions = |text: &str| -> usize { product.iter().map(|own| own.mentions(text)).sum() };
    let refusing: Vec<&Function> = counts.functions.iter().filter(|own| refuses(own)).collect();
    let lines: usize = refusing.iter().map(|own| own.lines).sum();
    let fullest = fullest_directory(product);
    let count = |what, now: usize, aim| Count { what, now: now.to_string(), aim };
    vec![
        count("product files that name `inversion`", naming("inversion"), "5"),
        count("product files that name `audio`", naming("audio"), "10"),
        count("mentions of `Rhythm::`", mentions("Rhythm::"), "0"),
        Count {
            what: "functions check* and refuse* in cli (their lines)",
            now: format!("{} ({lines})", refusing.len()),
            aim: "15 (250)",
        },
        count("\"has no meaning\" in the source", mentions("has no meaning"), "10"),
        Count {
            what: "modules in the fullest directory",
            now: format!("{} {}", fullest.modules, fullest.path),
            aim: "20",
        },
        count("tuples of more than two parts in public fields and results", counts.tuples, "0"),
        count("functions of three lines or fewer that are called once", counts.shards(), "300"),
        count("comments of three words or fewer that repeat the name", counts.echoes, "0"),
        count("lines of Rust in the product", product.iter().map(Source::lines).sum(), "110000"),
    ]
}

fn refuses(function: &Function) -> bool {
    let is_named = ["check", "refuse"].iter().any(|name| function.name.starts_with(name));
    is_named && function.path.starts_with("src/cli")
}

/// Lines of Rust that were added and deleted.
fn balance(since: &str) -> Result<String> {
    let git = Command::new("git").args(["diff", "--shortstat", since, "--", "*.rs"]).output();
    let git = git.context("cannot run git")?;
    anyhow::ensure!(git.status.success(), "git diff {since}: {}", git.status);
    Ok(String::from_utf8_lossy(&git.stdout).trim().to_owned())
}
