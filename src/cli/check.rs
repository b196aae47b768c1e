//! `tardy check`: what on this system costs latency, and the remedies.

mod measure;

use anstyle::{AnsiColor, Style};
use anyhow::{Context as _, Result, ensure};
use clap::Args;
use serde_json::json;

use super::{Exit, flags::FormatFlags, output, setup::recover_first};
use measure::MeasureFlags;

use crate::{
    check::{CheckedMachine, Finding, FindingStatus, Severity, check},
    report::{suite::FINDINGS, terminal::fold},
    run::RunDirectory,
    session,
    store::Store,
    sys::{cpus::Cpus, root::Root},
};

/// Find settings that hurt latency, and how to fix them.
///
/// tardy first restores settings that a killed tardy left changed. Otherwise it only reads, except
/// with --measure, which toggles, compares and restores each setting.
///
/// Exit code 1: a serious finding, which can delay a real-time thread by a millisecond or more.
#[derive(Debug, Args)]
pub(super) struct CheckFlags {
    /// CPUs that must respond in time, e.g. 0-3,7; also check their isolation
    #[arg(long, value_name = "LIST")]
    cpus: Option<Cpus>,
    /// Also show settings that are fine, one line each
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    measured: MeasureFlags,
    #[command(flatten)]
    format: FormatFlags,
}

impl CheckFlags {
    /// Whether it keeps runs.
    pub(super) const fn keeps_runs(&self) -> bool {
        self.measured.measure
    }
}

/// Runs all checks and prints the findings, worst first.
///
/// # Errors
/// As [`measure::run`], where that was asked for.
pub(super) fn run(
    flags: CheckFlags,
    store: impl FnOnce() -> Result<Store>,
    argv: Vec<String>,
) -> Result<Exit> {
    if flags.measured.measure {
        refuse_missing(&Root::default(), flags.cpus.as_ref())?;
        return measure::run(flags, store, argv);
    }
    // Settings that a killed tardy left are not those of this machine.
    let left = recover_first(flags.format.is_json());
    if let Some(caveat) = session::left_changed(&left) {
        output::notice(&caveat.text);
    }
    let root = Root::default();
    refuse_missing(&root, flags.cpus.as_ref())?;
    let subject = CheckedMachine::new(root, flags.cpus.clone());
    let findings = check(&subject);
    if flags.format.is_json() {
        output::put_json(&json!({ "findings": findings }))?;
    } else {
        let cpus = subject.cpus().to_string();
        let text = text(&findings, &cpus, flags.cpus.is_some(), flags.all);
        output::put(&fold(&text, output::width()))?;
    }
    let is_serious = findings.iter().any(Finding::is_serious);
    Ok(if is_serious { Exit::No } else { Exit::Done })
}

fn refuse_missing(root: &Root, cpus: Option<&Cpus>) -> Result<()> {
    let Some(cpus) = cpus else { return Ok(()) };
    let online: Cpus = root.value("/sys/devices/system/cpu/online").unwrap_or_default();
    let missing = cpus.without(&online);
    ensure!(
        online.is_empty() || missing.is_empty(),
        "--cpus {cpus}: {missing} is not online; online are {online}"
    );
    Ok(())
}

/// What there is to find on this machine; settings that a killed tardy left are restored first.
pub(super) fn findings() -> Vec<Finding> {
    let left = recover_first(true);
    if let Some(caveat) = session::left_changed(&left) {
        output::notice(&caveat.text);
    }
    check(&CheckedMachine::new(Root::default(), None))
}

/// Keeps findings in a directory of many runs, as `tardy check --json` prints them; those of an
/// earlier sitting stay.
pub(super) fn keep(findings: &[Finding], directory: &RunDirectory) -> Result<()> {
    if directory.holds(FINDINGS) {
        return Ok(());
    }
    let text = serde_json::to_string_pretty(&json!({ "findings": findings }))? + "\n";
    let written = directory.replace(FINDINGS, text.as_bytes());
    written.with_context(|| format!("cannot write {FINDINGS}"))
}

/// The heading of each severity, and its style.
const HEADS: [(&str, Severity, Style); 3] = [
    ("Serious: a millisecond or more", Severity::Serious, AnsiColor::Red.on_default().bold()),
    ("Matters: tens to hundreds of us", Severity::Matters, AnsiColor::Yellow.on_default().bold()),
    ("Little: a few us, or in special cases", Severity::Little, Style::new().bold()),
];

const DIM: Style = Style::new().dimmed();

fn text(findings: &[Finding], cpus: &str, named: bool, all: bool) -> String {
    let of = |severity| findings.iter().filter(move |finding| finding.severity == Some(severity));
    let with = |status| findings.iter().filter(move |finding| finding.status == status);
    let word = if cpus.parse::<u32>().is_ok() { "CPU" } else { "CPUs" };
    let mut out = format!(
        "{word} {cpus}: {} serious, {} that matter, {} little, {} unknown, {} fine\n",
        of(Severity::Serious).count(),
        of(Severity::Matters).count(),
        of(Severity::Little).count(),
        with(FindingStatus::Unknown).count(),
        with(FindingStatus::Ok).count(),
    );
    for (head, severity, style) in HEADS {
        push(&mut out, head, style, of(severity));
    }
    push(&mut out, "Unknown", Style::new().bold(), with(FindingStatus::Unknown));
    let fine: Vec<&str> = with(FindingStatus::Ok).map(|finding| finding.code).collect();
    if all {
        push(&mut out, "Fine", AnsiColor::Green.on_default().bold(), with(FindingStatus::Ok));
    } else if !fine.is_empty() {
        out.push_str(&format!("\n{DIM}Fine (--all shows why): {}{DIM:#}\n", fine.join(", ")));
    }
    if !named {
        out.push_str(&format!(
            "{DIM}With --cpus LIST tardy also checks what else may run on those CPUs.{DIM:#}\n"
        ));
    }
    out
}

fn push<'a>(
    out: &mut String,
    head: &str,
    style: Style,
    findings: impl Iterator<Item = &'a Finding>,
) {
    for (number, finding) in findings.enumerate() {
        if number == 0 {
            out.push_str(&format!("\n{style}{head}{style:#}\n"));
        }
        let Finding { code, evidence, remedy, .. } = finding;
        out.push_str(&format!("  {code}: {evidence}\n"));
        if !remedy.is_empty() {
            out.push_str(&format!("    {DIM}do:{DIM:#} {remedy}\n"));
        }
    }
}
