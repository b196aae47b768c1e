//! What follows `cargo xtask vm`.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result, bail};
use tardy::{lab::kernels::KernelSource, units::Nanos};

/// How it is used.
pub const USAGE: &str = "\
usage: cargo xtask vm [OPTION...] [-- COMMAND...]
Boots a kernel in QEMU and runs tests in it, or COMMAND.
  --kernel NAME   standard (default), rt, 6.12, 6.12-rt, a Debian package linux-image-..., a .deb
                  file, or the path of a bzImage; +WORD for its command line, as in rt+nosmt
  --filter TEXT   only tests whose names contain TEXT, made for a guest or not
  --also TEXT     besides those made for a guest, tests whose names contain TEXT (repeatable)
  --counted       one CPU whose time is its count of instructions: the same every time
  --program NAME  also copy this program of the machine into the guest, with its libraries
                  (repeatable); not with tests
  --append TEXT   more for the kernel's command line
  --passed FILE   tests that pass are added to this file, by name
  --account FILE  instead, the tests that skipped on the host, by this file, and have passed in no
                  guest yet, by --passed; as root, none may be left that ran nowhere
  --limit TIME    time for everything, 10m by default
  --stall TIME    longest silence of the guest, 3m by default
  --keep          keep initramfs, console and output";

/// The options, checked.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    pub kernel: KernelSource,
    pub filter: Option<String>,
    pub also: Vec<String>,
    pub counted: bool,
    pub programs: Vec<String>,
    pub append: String,
    pub passed: Option<PathBuf>,
    pub account: Option<PathBuf>,
    pub limit: Duration,
    pub stall: Duration,
    pub keep: bool,
    /// Instead of the tests.
    pub command: Vec<String>,
}

impl Options {
    /// Reads the words after `vm`.
    pub fn parse(words: &[String]) -> Result<Self> {
        let mut options = Self {
            kernel: KernelSource::parse("standard")?,
            filter: None,
            also: Vec::new(),
            counted: false,
            programs: Vec::new(),
            append: String::new(),
            passed: None,
            account: None,
            limit: Duration::from_secs(600),
            stall: Duration::from_secs(180),
            keep: false,
            command: Vec::new(),
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value =
                || words.next().cloned().with_context(|| format!("{word}: a value is missing"));
            match word.as_str() {
                "--kernel" => options.kernel = kernel(&value()?)?,
                "--filter" => options.filter = Some(value()?),
                "--also" => options.also.push(value()?),
                "--counted" => options.counted = true,
                "--program" => options.programs.push(value()?),
                "--append" => options.append = value()?,
                "--passed" => options.passed = Some(value()?.into()),
                "--account" => options.account = Some(value()?.into()),
                "--limit" => options.limit = time(word, &value()?)?,
                "--stall" => options.stall = time(word, &value()?)?,
                "--keep" => options.keep = true,
                "--" => {
                    options.command = words.by_ref().cloned().collect();
                    if options.command.is_empty() {
                        bail!("--: a command is missing");
                    }
                }
                _ => bail!("\"{word}\" is no option of vm\n{USAGE}"),
            }
        }
        if options.command.is_empty() && !options.programs.is_empty() {
            bail!("--program: tests start only what every guest has; give a command after --");
        }
        Ok(options)
    }
}

fn kernel(text: &str) -> Result<KernelSource> {
    KernelSource::parse(text).context("--kernel")
}

fn time(flag: &str, text: &str) -> Result<Duration> {
    let time: Nanos = text.parse().with_context(|| format!("{flag}: {text}"))?;
    let ns = u64::try_from(time.0).ok().filter(|ns| *ns > 0);
    Ok(Duration::from_nanos(ns.with_context(|| format!("{flag}: more than 0, please"))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Options> {
        Options::parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn everything_can_be_said_and_nothing_must() {
        let plain = parse("").unwrap();
        assert_eq!(plain.kernel, KernelSource::parse("standard").unwrap());
        assert!(plain.command.is_empty() && plain.account.is_none() && !plain.keep);
        let all = parse(
            "--kernel rt --filter root_ --also a:: --also b:: --append nosmt --account skips \
             --passed p --program rtla --limit 5m --stall 10s --keep -- sh -c true --keep",
        );
        let all = all.unwrap();
        assert_eq!(all.kernel, KernelSource::parse("rt").unwrap());
        assert_eq!((all.filter.as_deref(), all.append.as_str()), (Some("root_"), "nosmt"));
        assert_eq!(
            (all.also, all.programs),
            (vec!["a::".into(), "b::".into()], vec!["rtla".into()])
        );
        assert_eq!((all.account, all.passed), (Some("skips".into()), Some("p".into())));
        assert_eq!((all.limit.as_secs(), all.stall.as_secs()), (300, 10));
        assert_eq!(all.command, ["sh", "-c", "true", "--keep"]);
        assert!(all.keep);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, part) in [
            ("--kernel", "--kernel: a value is missing"),
            ("--kernel vmlinuz", "--kernel: kernel \"vmlinuz\" is neither"),
            ("--limit 5", "--limit: 5"),
            ("--stall 0s", "--stall: more than 0"),
            ("--fast", "\"--fast\" is no option"),
            ("--", "a command is missing"),
            ("--program rtla", "give a command"),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
