//! `tardy why --fix`: what cures the causes of a run on this machine, and whether it does.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use serde_json::{Value, json};

use super::blocks::block_words;
use crate::{
    analysis::{
        ab::figure::JUDGED_BY_DEFAULT,
        bands::{Band, LATE},
    },
    campaign::{self, Ab, AbEvent, AbRequest},
    check::remedies::{CauseRemedy, NamedCulprit, remedy},
    cli::{
        Exit,
        ab::{causes, exit_of, options::Side, progress::AbStatusView},
        flags::{positive, random_seed},
        output,
        runs::new_id,
        setup::{recover_first, recover_last},
    },
    plain::plain,
    report::{ab as text, causes::words::head, terminal::fold, why::WhyReport},
    run::{AbRecord, AbStatus, AbVerdict, Document, Run, peaks::Cause},
    setup::settings::HeldSettings,
    store::Store,
    sys::{cpus::Cpus, root::Root, signals::Quit},
    units::Nanos,
};

#[derive(Debug, Args)]
#[command(next_help_heading = "Fixes")]
pub(super) struct FixFlags {
    /// Show the fix of each cause, or of cause N; change nothing
    #[arg(long, value_name = "N", num_args = 0..=1, value_parser = cause_number)]
    pub fix: Option<Option<usize>>,
    /// Apply fix N, compare with and without it, and restore the old value
    #[arg(long, requires = "fix")]
    prove: bool,
    /// With --prove: keep the fix if it helps
    #[arg(long, requires = "prove")]
    keep: bool,
    /// With --prove: time that the comparison may take
    #[arg(long = "budget", value_name = "LIMIT", value_parser = positive, requires = "prove")]
    #[arg(default_value = "60s")]
    limit: Nanos,
}

/// The number of a cause in the list; a run stands before the option.
fn cause_number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| {
        let run = plain(text);
        format!("not the number of a cause; a run stands before it: tardy why {run} --fix")
    })
}

/// Why no fix of a run of elsewhere is offered: its tasks and interrupts are not those of here.
const ELSEWHERE: &str = "the run is of another boot or machine; measure here again";

/// Smaller causes are not listed, as a share of the blamed time.
const LEAST_SHARE: f64 = 0.01;
/// More are not listed.
const MOST: usize = 9;

/// A cause with its remedy, or why it has none.
struct Listed {
    culprit: NamedCulprit,
    share: f64,
    inferred: f64,
    remedy: Result<CauseRemedy, String>,
}

/// Lists remedies, or proves one.
pub(super) fn run(
    flags: &FixFlags,
    number: Option<usize>,
    is_json: bool,
    (why, run): (&WhyReport, &Run),
    store: &Store,
    argv: Vec<String>,
) -> Result<Exit> {
    let root = Root::default();
    let cpus = measured(&run.document)?;
    let listed = list(why, &run.document, &root, &cpus);
    let Some(number) = number else {
        ensure!(!flags.prove, "--prove needs the number of a remedy: --fix 1 --prove");
        return show(&listed, None, is_json);
    };
    let chosen = number.checked_sub(1).and_then(|at| listed.get(at));
    let chosen = chosen.with_context(|| match listed.len() {
        0 => format!("--fix {number}: nothing was blamed, so there is nothing to cure"),
        all => format!("--fix {number}: there are causes 1 to {all}"),
    })?;
    if !flags.prove {
        return show(&listed, Some(number), is_json);
    }
    match &chosen.remedy {
        Ok(remedy) => prove(flags, is_json, (remedy, run, &cpus), store, argv),
        Err(why) => bail!("--fix {number}: {}: {}", plain(&chosen.culprit.name), plain(why)),
    }
}

fn measured(document: &Document) -> Result<Cpus> {
    let asked = document.setup.asked.as_ref().map(|asked| asked.cpus.as_str());
    let found = document.setup.found.cpus.as_deref().or(asked);
    let cpus = found.and_then(|cpus| cpus.parse().ok());
    cpus.with_context(|| {
        format!("{}: it does not say which CPUs it measured", plain(&document.name))
    })
}

/// The causes of the band that the verdict speaks of, largest first.
fn list(why: &WhyReport, document: &Document, root: &Root, cpus: &Cpus) -> Vec<Listed> {
    let of = |name: &str| why.bands.iter().find(|band| band.name == name);
    let band = of(LATE).or_else(|| of("p99.9")).or_else(|| of("p99"));
    let band = band.or_else(|| why.bands.last());
    let is_here = is_of_this_boot(document, root);
    let rows = document.attached.iter().flat_map(|record| &record.rows);
    let programs: Vec<u32> = rows.filter_map(|row| row.pid).collect();
    let causes = band.map(|band: &Band| band.causes.as_slice()).unwrap_or_default();
    let large = causes.iter().filter(|cause| cause.share >= LEAST_SHARE).take(MOST);
    let listed = large.map(|cause| {
        let tasks = tasks_of(why, cause.cause, &cause.name);
        let (name, programs) = (cause.name.clone(), programs.clone());
        let culprit = NamedCulprit { cause: cause.cause, name, tasks, programs };
        let remedy = match is_here {
            true => remedy(&culprit, root, cpus),
            false => Err(ELSEWHERE.into()),
        };
        Listed { culprit, share: cause.share, inferred: cause.inferred, remedy }
    });
    listed.collect()
}

fn is_of_this_boot(document: &Document, root: &Root) -> bool {
    let now = root.read("/proc/sys/kernel/random/boot_id");
    let then = document.facts.boot_id.as_ref();
    then.is_some() && then == now.as_ref()
}

/// Tasks that the kept peaks name for a cause, most time first.
fn tasks_of(why: &WhyReport, cause: Cause, name: &str) -> Vec<String> {
    let mut tasks: BTreeMap<&str, u64> = BTreeMap::new();
    let parts = why.peaks.iter().flat_map(|peak| &peak.blame);
    for part in parts.filter(|part| part.cause == cause && part.name == name) {
        if let Some(task) = &part.task {
            *tasks.entry(task).or_default() += part.ns;
        }
    }
    let mut tasks: Vec<(&str, u64)> = tasks.into_iter().collect();
    tasks.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    tasks.into_iter().map(|(task, _)| task.to_owned()).collect()
}

fn show(listed: &[Listed], number: Option<usize>, is_json: bool) -> Result<Exit> {
    let numbered = listed.iter().enumerate().map(|(at, own)| (at + 1, own));
    let shown: Vec<(usize, &Listed)> =
        numbered.filter(|(own, _)| number.is_none_or(|number| number == *own)).collect();
    if is_json {
        let all: Vec<Value> = shown.iter().map(|(number, own)| as_json(*number, own)).collect();
        output::put_json(&json!({ "remedies": all }))?;
        return Ok(Exit::Done);
    }
    let mut out = String::new();
    let shared = shared_refusal(&shown);
    for (number, own) in &shown {
        push(&mut out, *number, own);
        if shared.is_none() {
            push_remedy(&mut out, &own.remedy);
        }
    }
    if shown.is_empty() {
        out.push_str("No cause was found, so there is nothing to fix.\n");
    } else if let Some(why) = shared {
        out.push_str(&format!("None has a fix: {why}.\n"));
    } else if shown.iter().any(|(_, own)| own.remedy.is_ok()) {
        out.push_str("Nothing was changed. --fix N --prove tries one and restores it.\n");
    }
    output::put(&fold(&out, output::width()))?;
    Ok(Exit::Done)
}

/// Why none of several causes has a fix, if it is the same of all.
fn shared_refusal<'a>(shown: &[(usize, &'a Listed)]) -> Option<&'a str> {
    let refusal = |own: &'a Listed| own.remedy.as_ref().err().map(String::as_str);
    let mut all = shown.iter().map(|(_, own)| refusal(own));
    let first = all.next()??;
    (shown.len() > 1 && all.all(|own| own == Some(first))).then_some(first)
}

fn push(out: &mut String, number: usize, own: &Listed) {
    let share = own.share * 100.0;
    let probably = if own.inferred > 0.5 { ", probably" } else { "" };
    let (kind, name) = (head(own.culprit.cause), plain(&own.culprit.name));
    out.push_str(&format!("{number}. {kind} {name}: {share:.0}% of the late time{probably}\n"));
}

fn push_remedy(out: &mut String, remedy: &Result<CauseRemedy, String>) {
    match remedy {
        Err(why) => out.push_str(&format!("   {}\n", plain(why))),
        Ok(remedy) => {
            for command in &remedy.commands {
                out.push_str(&format!("   {command}\n"));
            }
            out.push_str(&format!("   may break: {}\n", remedy.may_break));
        }
    }
}

fn as_json(number: usize, own: &Listed) -> Value {
    let remedy = own.remedy.as_ref();
    json!({
        "number": number,
        "cause": own.culprit.cause.code(),
        "name": own.culprit.name,
        "tasks": own.culprit.tasks,
        "share": own.share,
        "inferred": own.inferred,
        "set": remedy.ok().map(|remedy| format!("{}={}", remedy.choice.name, remedy.choice.value)),
        "commands": remedy.ok().map(|remedy| &remedy.commands),
        "may_break": remedy.ok().map(|remedy| &remedy.may_break),
        "no_remedy": remedy.err(),
    })
}

/// Compares the machine as it is with the remedy, by runs like the one that was explained.
fn prove(
    flags: &FixFlags,
    is_json: bool,
    (remedy, run, cpus): (&CauseRemedy, &Run, &Cpus),
    store: &Store,
    argv: Vec<String>,
) -> Result<Exit> {
    let is_root = rustix::process::geteuid().is_root();
    ensure!(is_root, "--prove changes a setting of this machine; run it as root");
    let request = request(flags, (remedy, run), store, argv)?;
    recover_first(is_json);
    output::notice(&plain(&format!("Each block runs: tardy run {}", request.b.words.join(" "))));
    let place = request.directory.display().to_string();
    let quit = Quit::listen().context("cannot set a signal handler")?;
    let mut view = AbStatusView::new(is_json);
    let pace = view.pace();
    let mut show = |event: AbEvent<'_>| view.show(&event);
    let record = campaign::run(request, quit, &mut Ab { pace, show: &mut show, causes: &causes });
    view.clear();
    let left = recover_last();
    let record = record?;
    let helps = record.status == AbStatus::Complete && record.verdict == AbVerdict::Better;
    let mut was = None;
    if helps && flags.keep {
        let choices = [remedy.choice.clone()];
        // Without the journal: nothing is to restore it.
        let held = HeldSettings::set(None, &Root::default(), &choices, cpus)?;
        was = held.found().first().map(|found| found.was.clone());
    }
    if is_json {
        let set = format!("{}={}", remedy.choice.name, remedy.choice.value);
        let kept = was.is_some();
        let all = json!({ "set": set, "helps": helps, "kept": kept, "comparison": record });
        output::put_json(&all)?;
    } else {
        let shown = text::show(&record, &place, output::width());
        let said = said(remedy, &record, helps, was.as_deref());
        output::put(&format!("{shown}\n{}", fold(&said, output::width())))?;
    }
    Ok(left.worst(match exit_of(&record) {
        // Not worse is not enough for a remedy.
        Exit::Done if !helps => Exit::No,
        exit => exit,
    }))
}

fn request(
    flags: &FixFlags,
    (remedy, run): (&CauseRemedy, &Run),
    store: &Store,
    argv: Vec<String>,
) -> Result<AbRequest> {
    let common = block_words(run)?;
    let name = &remedy.choice.name;
    let side = |flag: &'static str, value: &str| {
        let options = format!("--set {name}={value}");
        Side { flag, options, prepare: None }.request(&common, store)
    };
    let (a, b) = (side("as it is", "now")?, side("the remedy", &remedy.choice.value)?);
    let id = new_id()?;
    Ok(AbRequest {
        a,
        b,
        undo: None,
        budget_ns: flags.limit.0,
        fixed: None,
        figures: JUDGED_BY_DEFAULT.to_vec(),
        margin: None,
        seed: random_seed()?,
        directory: store.place(&id),
        store: store.root().to_owned(),
        name: id.clone(),
        id,
        argv,
    })
}

/// What became of the remedy; `was` is what a kept one replaced.
fn said(remedy: &CauseRemedy, record: &AbRecord, helps: bool, was: Option<&str>) -> String {
    let what = format!("{}={}", remedy.choice.name, remedy.choice.value);
    match was {
        Some(was) => format!(
            "{what} helps, and is kept until the machine starts again or somebody changes it; it \
             was {was}.\n"
        ),
        None if helps => {
            format!("{what} helps, and was restored. To keep it: {}\n", remedy.commands.join("; "))
        }
        None if record.status != AbStatus::Complete => {
            format!("{what} was not judged, and was restored.\n")
        }
        None if record.verdict == AbVerdict::Inconclusive => format!(
            "{what} was not shown to help, and was restored; more time would tell (--budget).\n"
        ),
        None => format!("{what} does not help, and was restored.\n"),
    }
}
