//! What follows `cargo xtask vm`.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use tardy::lab::kernels::KernelSource;

use crate::suite::flags::time;

/// Run tests, or a command, in a virtual machine
///
/// Boots a kernel in QEMU and runs tests in it, or COMMAND.
#[derive(Debug, Args)]
pub(crate) struct VmFlags {
    /// standard, rt, 6.12, 6.12-rt, a suite of Debian's (trixie, sid-rt), a Debian package
    /// linux-image-..., a .deb file, or the path of a bzImage; +WORD for its command line, as in
    /// rt+nosmt
    #[arg(long, value_name = "NAME", default_value = "standard", value_parser = kernel)]
    pub kernel: KernelSource,
    /// Only tests whose names contain TEXT, made for a guest or not
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Besides those made for a guest, tests whose names contain TEXT (repeatable)
    #[arg(long, value_name = "TEXT")]
    pub also: Vec<String>,
    /// One CPU whose time is its count of instructions: the same every time
    #[arg(long)]
    pub counted: bool,
    /// Also copy this program of the machine into the guest, with its libraries (repeatable); not
    /// with tests, which start only what every guest has
    #[arg(long = "program", value_name = "NAME", requires = "command")]
    pub programs: Vec<String>,
    /// Bring what the command leaves in /run/out back into DIR, which is made
    #[arg(long, value_name = "DIR", requires = "command")]
    pub out: Option<PathBuf>,
    /// More for the kernel's command line
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub append: String,
    /// Tests that pass are added to this file, by name
    #[arg(long, value_name = "FILE")]
    pub passed: Option<PathBuf>,
    /// Instead, the tests that skipped on the host, by this file, and have passed in no guest yet,
    /// by --passed; as root, none may be left that ran nowhere
    #[arg(long, value_name = "FILE")]
    pub account: Option<PathBuf>,
    /// Time for everything
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time)]
    pub limit: Duration,
    /// Longest silence of the guest
    #[arg(long, value_name = "TIME", default_value = "3m", value_parser = time)]
    pub stall: Duration,
    /// Keep initramfs, console and output
    #[arg(long)]
    pub keep: bool,
    /// Instead of the tests
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

fn kernel(text: &str) -> Result<KernelSource, String> {
    KernelSource::parse(text).map_err(|error| format!("{error:#}"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Vm {
        #[command(flatten)]
        flags: VmFlags,
    }

    fn parse(text: &str) -> Result<VmFlags, clap::Error> {
        let words = std::iter::once("vm").chain(text.split_whitespace());
        Vm::try_parse_from(words).map(|vm| vm.flags)
    }

    #[test]
    fn everything_can_be_said_and_nothing_must() {
        let plain = parse("").unwrap();
        assert_eq!(plain.kernel, KernelSource::parse("standard").unwrap());
        assert!(plain.command.is_empty() && plain.account.is_none() && !plain.keep);
        let all = parse(
            "--kernel rt --filter root_ --also a:: --also b:: --append nosmt --account skips \
             --passed p --program rtla --out o --limit 5m --stall 10s --keep -- sh -c true --keep",
        );
        let all = all.unwrap();
        assert_eq!(all.kernel, KernelSource::parse("rt").unwrap());
        assert_eq!((all.filter.as_deref(), all.append.as_str()), (Some("root_"), "nosmt"));
        assert_eq!(
            (all.also, all.programs),
            (vec!["a::".into(), "b::".into()], vec!["rtla".into()])
        );
        assert_eq!((all.account, all.passed), (Some("skips".into()), Some("p".into())));
        assert_eq!(all.out, Some("o".into()));
        assert_eq!((all.limit.as_secs(), all.stall.as_secs()), (300, 10));
        assert_eq!(all.command, ["sh", "-c", "true", "--keep"]);
        assert!(all.keep);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, part) in [
            ("--kernel", "a value is required for '--kernel <NAME>'"),
            ("--kernel vmlinuz", "for '--kernel <NAME>': kernel \"vmlinuz\" is neither"),
            ("--limit 5", "invalid value '5' for '--limit <TIME>': "),
            ("--stall 0s", "more than 0"),
            ("--fast", "unexpected argument '--fast'"),
            ("--program rtla", "not provided:\n  <COMMAND>"),
            ("--out o", "not provided:\n  <COMMAND>"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
