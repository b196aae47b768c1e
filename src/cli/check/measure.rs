//! `tardy check --measure`: what each setting of this machine is worth, tried one at a time.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;

use super::CheckFlags;
use crate::{
    analysis::ab::{discoveries::FALSE_DISCOVERIES, looks::FEWEST_PAIRS},
    campaign::{SettingsProgress, SettingsRequest, SideRequest, try_settings},
    cli::{
        Exit,
        ab::options::Side,
        flags::{LoadFlags, positive, random_seed},
        output,
        progress::StatusLine,
        runs::new_id,
        setup::{recover_first, recover_last},
    },
    draft::DraftDirectory,
    plain::plain_path,
    report::settings::{settings_plan, settings_text},
    run::{AbVerdict, SETTINGS_SCHEMA_VERSION, SettingsRecord, TriedSetting, UntriedSetting},
    setup::{
        settings::{HelpfulSetting, Setting, TrialRefusal, drop_ins, table, trials},
        shield::cpuset::Backend,
        siblings::siblings_of,
    },
    store::Store,
    sys::{cpus::Cpus, root::Root, signals::Quit},
    units::{Nanos, many, span},
};

#[derive(Debug, Args)]
#[command(next_help_heading = "Measuring what settings are worth")]
pub(super) struct MeasureFlags {
    /// Toggle each setting, compare both states, and restore it
    ///
    /// Compares in blocks, like `tardy ab`. Needs root; no setting stays changed.
    #[arg(long)]
    pub measure: bool,
    /// Only these settings, e.g. timer_migration,thp (docs/reference/settings.md)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "measure")]
    only: Vec<String>,
    /// Total time for all settings [default: 6 pairs of blocks of 2s each]
    #[arg(long = "budget", value_name = "SUM", value_parser = positive, requires = "measure")]
    sum: Option<Nanos>,
    /// Seed for the order of the blocks [default: a random one, which is printed]
    #[arg(long, value_name = "N", requires = "measure")]
    #[arg(value_parser = clap::value_parser!(u64).range(..=MOST_SEED))]
    seed: Option<u64>,
    /// Write files that apply helpful settings at each boot; install nothing
    #[arg(long, value_name = "DIR", requires = "measure")]
    write: Option<PathBuf>,
    /// Only show which settings would be tried, the time, and which cannot be tried
    #[arg(long, requires = "measure")]
    dry_run: bool,
    #[command(flatten)]
    loads: LoadFlags,
}

const MOST_SEED: u64 = (1 << 53) - 1;

/// How long a block runs before it counts.
const WARMUP: &str = "--warmup=200ms";

/// What a block takes besides measuring, s: warm-up, the start of a process, arming, loads.
const BESIDE_S: f64 = 1.0;

const USUAL_BLOCK_S: f64 = 2.0;
const LONGEST_BLOCK_S: f64 = 10.0;
const SHORTEST_BLOCK_S: f64 = 0.2;

/// Changes that can be tried by a flag.
const FLAGS: [(&str, &str, &str, &str); 2] = [
    (
        "shield",
        "--shield",
        "whether other tasks, interrupts and kernel work are kept off the measured CPUs",
        "everything else shares the other CPUs",
    ),
    (
        "smt_siblings",
        "--no-smt-sibling",
        "whether other hardware threads of the measured cores are online",
        "the machine has fewer CPUs",
    ),
];

/// One setting that is tried, and how.
struct Trial {
    row: TriedSetting,
    options: [String; 2],
    /// What would be kept of it.
    keeps: HelpfulSetting,
}

/// Tries settings, and prints what they are worth.
pub(super) fn run(
    flags: CheckFlags,
    store: impl FnOnce() -> Result<Store>,
    argv: Vec<String>,
) -> Result<Exit> {
    let is_json = flags.format.is_json();
    let MeasureFlags { only, sum, seed, write, dry_run, loads, .. } = flags.measured;
    ensure!(!flags.all, "--all is not supported with --measure; leave it out");
    check_names(&only)?;
    if !dry_run {
        let is_root = rustix::process::geteuid().is_root();
        ensure!(is_root, "--measure changes settings of this machine; run it as root");
        write.as_deref().map_or(Ok(()), refuse_full)?;
    }
    recover_first(is_json);
    let root = Root::default();
    let cpus = match flags.cpus {
        Some(cpus) => cpus,
        None => Cpus::allowed().context("cannot ask which CPUs this process may use")?,
    };
    let (found, not_tried) = find(&root, &cpus, &only);
    let common = common(&cpus, &argv, &loads)?;
    let (pairs, block_s) = size(found.len(), sum)?;
    let record = SettingsRecord {
        schema_version: SETTINGS_SCHEMA_VERSION,
        id: new_id()?,
        argv,
        started_at: jiff::Timestamp::now().to_string(),
        cpus: cpus.to_string(),
        common: common.clone(),
        pairs,
        block_ns: (block_s * 1e3).round() as u64 * 1_000_000,
        seed: seed.map_or_else(random_seed, Ok)?,
        false_discovery_rate: FALSE_DISCOVERIES,
        interrupted: false,
        settings: found.iter().map(|trial| trial.row.clone()).collect(),
        not_tried,
    };
    if dry_run {
        return show_plan(&record, is_json);
    }
    ensure!(
        !found.is_empty(),
        "no setting can be tried here; --dry-run says why of each, and --cpus names the CPUs that \
         are measured"
    );
    if !is_json {
        output::notice(&forecast(&record));
    }
    let record = measure(record, &found, &common, &store()?, sum, is_json);
    let left = recover_last();
    let record = record?;
    if let Some(directory) = &write {
        write_out(directory, &record, &found)?;
    }
    let judged = record.settings.iter().any(|setting| setting.verdict.is_some());
    Ok(left.worst(if judged { Exit::Done } else { Exit::Inconclusive }))
}

fn check_names(only: &[String]) -> Result<()> {
    let known: Vec<&str> = names().collect();
    for name in only {
        if !known.contains(&name.as_str()) {
            bail!("--only {name}: no setting is called so; use {}", known.join(", "));
        }
    }
    Ok(())
}

fn names() -> impl Iterator<Item = &'static str> {
    table().map(|setting| setting.name).chain(FLAGS.map(|(name, ..)| name))
}

fn refuse_full(directory: &Path) -> Result<()> {
    let is_full = fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some());
    let shown = plain_path(directory);
    ensure!(!is_full, "--write {shown}: it is not empty; name a directory that is new or empty");
    Ok(())
}

/// What can be tried, and what not.
fn find(root: &Root, cpus: &Cpus, only: &[String]) -> (Vec<Trial>, Vec<UntriedSetting>) {
    let (mut found, mut not_tried) = (Vec::new(), Vec::new());
    let is_wanted = |name: &str| only.is_empty() || only.iter().any(|wanted| wanted == name);
    for (setting, trial) in trials(root, cpus) {
        if !is_wanted(setting.name) {
            continue;
        }
        let trial = trial
            .and_then(|now| of_setting(setting, now, root, cpus).map_err(TrialRefusal::Cannot));
        match trial {
            Ok(trial) => found.push(trial),
            Err(why) => not_tried.push(untried(setting.name, why)),
        }
    }
    for (name, flag, what, may_break) in FLAGS.into_iter().filter(|(name, ..)| is_wanted(name)) {
        match of_flag(name, root, cpus) {
            Ok(boot) => found.push(Trial {
                row: row(name, what, ("off".into(), "on"), may_break),
                options: [String::new(), flag.into()],
                keeps: HelpfulSetting {
                    name: name.into(),
                    may_break: may_break.into(),
                    writes: Vec::new(),
                    boot,
                },
            }),
            Err(why) => not_tried.push(untried(name, why)),
        }
    }
    (found, not_tried)
}

fn untried(name: &str, why: TrialRefusal) -> UntriedSetting {
    let (why, is_so) = match why {
        TrialRefusal::IsSo(now) => (now, true),
        TrialRefusal::Cannot(why) => (why, false),
    };
    UntriedSetting { name: name.into(), why, is_so }
}

fn row(name: &str, what: &str, (now, tried): (String, &str), may_break: &str) -> TriedSetting {
    TriedSetting {
        name: name.into(),
        what: what.into(),
        now,
        tried: tried.into(),
        may_break: may_break.into(),
        verdict: None,
        not_judged: None,
        comparison: None,
        figures: Vec::new(),
    }
}

fn of_setting(setting: &Setting, now: String, root: &Root, cpus: &Cpus) -> Result<Trial, String> {
    let Setting { name, what, better, may_break, .. } = setting;
    Ok(Trial {
        row: row(name, what, (now, better), may_break),
        options: [format!("--set {name}=now"), format!("--set {name}={better}")],
        keeps: HelpfulSetting::of(setting, root, cpus)?,
    })
}

/// Whether a flag can be tried, and the words of the kernel's command line that do the like.
fn of_flag(name: &str, root: &Root, cpus: &Cpus) -> Result<String, TrialRefusal> {
    let cannot = |why: &str| Err(TrialRefusal::Cannot(why.into()));
    if name == "shield" {
        Backend::find(root).map_err(TrialRefusal::Cannot)?;
        let online: Cpus = root.value("/sys/devices/system/cpu/online").unwrap_or_default();
        if online.without(cpus).is_empty() {
            return cannot("every CPU is measured; name some with --cpus");
        }
        return Ok(format!("isolcpus=managed_irq,domain,{cpus} nohz_full={cpus} rcu_nocbs={cpus}"));
    }
    let siblings: Vec<u32> =
        cpus.iter().flat_map(|cpu| siblings_of(root, cpu).iter().collect::<Vec<_>>()).collect();
    match siblings.as_slice() {
        [] => cannot("the measured CPUs share no core"),
        all if all.iter().any(|cpu| cpus.contains(*cpu)) => {
            cannot("measured CPUs share cores with each other; name one of each core with --cpus")
        }
        _ => Ok("nosmt".into()),
    }
}

/// What both sides of each comparison have in common. The machine's idle states are as they are
/// without tardy.
fn common(cpus: &Cpus, argv: &[String], loads: &LoadFlags) -> Result<Vec<String>> {
    loads.specs()?;
    let matches = crate::cli::command().try_get_matches_from(argv)?;
    let matches = matches.subcommand_matches("check").context("not the options of `check`")?;
    let mut words = vec![format!("--cpus={cpus}")];
    for (id, flag) in [("loads", "--load"), ("load_commands", "--load-command")] {
        let values = matches.get_many::<String>(id).into_iter().flatten();
        words.extend(values.map(|value| format!("{flag}={value}")));
    }
    words.extend([WARMUP, "--no-dma-latency", "--trace=off"].map(str::to_owned));
    Ok(words)
}

/// Pairs of blocks of each setting, and how long a block is, s.
fn size(settings: usize, sum: Option<Nanos>) -> Result<(u32, f64)> {
    let Some(sum) = sum.filter(|_| settings > 0) else { return Ok((FEWEST_PAIRS, USUAL_BLOCK_S)) };
    let each_s = sum.0 as f64 / 1e9 / settings as f64;
    // The first block of each side is half a second long, and not compared.
    let blocks_s = each_s - 2.0 * (BESIDE_S + 0.5);
    let of = |pairs: u32| blocks_s / f64::from(pairs) / 2.0 - BESIDE_S;
    let block_s = of(FEWEST_PAIRS);
    if block_s < SHORTEST_BLOCK_S {
        let least_s = (2.0 * f64::from(FEWEST_PAIRS) * (SHORTEST_BLOCK_S + BESIDE_S)
            + 2.0 * (BESIDE_S + 0.5))
            * settings as f64;
        bail!(
            "--budget {}: {} take at least {}; give it more time, or choose some with --only",
            sum.typed(),
            many(settings as u64, "setting"),
            span(least_s)
        );
    }
    if block_s <= LONGEST_BLOCK_S {
        return Ok((FEWEST_PAIRS, block_s));
    }
    let pairs = (blocks_s / (2.0 * (LONGEST_BLOCK_S + BESIDE_S))) as u32 / 2 * 2;
    let pairs = pairs.clamp(FEWEST_PAIRS, 200);
    Ok((pairs, of(pairs)))
}

/// "17 settings, 6 pairs of blocks of 2.0 s each: about 8 min"
fn forecast(record: &SettingsRecord) -> String {
    let block_s = record.block_ns as f64 / 1e9;
    let each_s = 2.0 * f64::from(record.pairs) * (block_s + BESIDE_S) + 2.0 * (BESIDE_S + 0.5);
    format!(
        "{}, {} pairs of blocks of {} each: about {}. Order by --seed {}.",
        many(record.settings.len() as u64, "setting"),
        record.pairs,
        span(block_s),
        span(each_s * record.settings.len() as f64),
        record.seed
    )
}

fn show_plan(record: &SettingsRecord, is_json: bool) -> Result<Exit> {
    if is_json {
        output::put_json(record)?;
    } else {
        let plan = settings_plan(record, output::width());
        output::put(&format!("{}\n\n{plan}", forecast(record)))?;
    }
    Ok(Exit::Done)
}

fn measure(
    record: SettingsRecord,
    found: &[Trial],
    common: &[String],
    store: &Store,
    sum: Option<Nanos>,
    is_json: bool,
) -> Result<SettingsRecord> {
    let side = |options: &String| {
        Side { flag: "--measure", options: options.clone(), prepare: None }.request(common, store)
    };
    let mut sides: Vec<[SideRequest; 2]> = Vec::new();
    for Trial { options: [a, b], .. } in found {
        sides.push([side(a)?, side(b)?]);
    }
    let directory = store.place(&record.id);
    let place = directory.display().to_string();
    let budget = sum.map(|sum| Duration::from_nanos(u64::try_from(sum.0).unwrap_or(0)));
    let store = store.root().to_owned();
    let request = SettingsRequest { record, sides, directory, store, budget };
    let quit = Quit::listen().context("cannot set a signal handler")?;
    let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let mut line = StatusLine::new(is_terminal && !is_json);
    let mut show = |progress: SettingsProgress<'_>| line.write(|| passing(&progress));
    let pace = (is_terminal && !is_json).then_some(Duration::from_millis(500));
    let record = try_settings(request, &quit, &mut (pace, &mut show));
    line.clear();
    let record = record?;
    if is_json {
        output::put_json(&record)?;
    } else {
        output::put(&settings_text(&record, &place, output::width()))?;
    }
    Ok(record)
}

fn passing(progress: &SettingsProgress<'_>) -> String {
    let SettingsProgress { name, number, of, block, elapsed } = progress;
    format!("{} | setting {number} of {of}, {name}, block {block}", span(elapsed.as_secs_f64()))
}

/// Writes what helps; nothing where nothing does.
fn write_out(directory: &Path, record: &SettingsRecord, found: &[Trial]) -> Result<()> {
    let helps = |name: &str| {
        let own = record.settings.iter().find(|setting| setting.name == name);
        own.is_some_and(|setting| setting.verdict == Some(AbVerdict::Better))
    };
    let kept = found.iter().filter(|trial| helps(&trial.row.name));
    let kept: Vec<HelpfulSetting> = kept.map(|trial| trial.keeps.clone()).collect();
    let files = drop_ins(&kept);
    let shown = plain_path(directory);
    if files.is_empty() {
        output::notice(&format!("Nothing was shown to help, so nothing is written to {shown}."));
        return Ok(());
    }
    let place = DraftDirectory::at(directory).with_context(|| shown.clone())?;
    for file in &files {
        let written = place.replace_below(Path::new(file.path), file.text.as_bytes());
        written.with_context(|| format!("cannot write {shown}/{}", file.path))?;
    }
    let all: Vec<&str> = files.iter().map(|file| file.path).collect();
    output::notice(&format!("Written to {shown}, and not installed: {}.", all.join(", ")));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_divided_among_the_settings_and_one_that_is_too_small_says_what_it_takes() {
        let s = |seconds: i64| Some(Nanos(seconds * 1_000_000_000));
        assert_eq!(size(17, None).unwrap(), (6, 2.0));
        // 63 s each: 60 s in 12 blocks of 5 s, of which 1 s is beside.
        assert_eq!(size(10, s(630)).unwrap(), (6, 4.0));
        let (pairs, block_s) = size(1, s(3_600)).unwrap();
        assert!(pairs > 100 && (10.0..11.5).contains(&block_s), "{pairs} {block_s}");
        let error = size(17, s(60)).unwrap_err().to_string();
        assert!(error.starts_with("--budget 1m: 17 settings take at least 4"), "{error}");
    }

    #[test]
    fn a_name_that_is_no_setting_is_refused_with_those_there_are() {
        check_names(&["thp".into(), "shield".into()]).unwrap();
        let error = check_names(&["thp".into(), "x".into()]).unwrap_err().to_string();
        assert!(error.starts_with("--only x: ") && error.contains("smt_siblings"), "{error}");
    }

    #[test]
    fn a_directory_that_is_not_empty_is_not_written_to() {
        let place = tempfile::tempdir().unwrap();
        refuse_full(place.path()).unwrap();
        refuse_full(&place.path().join("new")).unwrap();
        fs::write(place.path().join("x"), "").unwrap();
        assert!(refuse_full(place.path()).unwrap_err().to_string().contains("is not empty"));
    }
}
