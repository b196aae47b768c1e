//! From the axes of a plan to its rows: every combination once, loads outermost.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use toml::Spanned;

use super::{
    Plan, PlanRow,
    axes::{Axes, Entry, axes, wait_words},
    order::CellOrder,
    reading::{Reading, Words},
    syntax::{LoadTable, PlanFile},
};
use crate::run::probes::DEFAULT_PROBE;

/// The most repeats that a plan may ask for.
const MOST_REPEATS: u32 = 1_000;

/// A larger plan is refused: a short file can have a thousand million combinations.
const MOST_ROWS: usize = 10_000;

/// Flags by which two boxes find each other: the lab gives them.
const OF_BOXES: [&str; 3] = ["to", "listen", "token-file"];

/// What one row is made of.
struct Parts<'a> {
    load: Option<&'a Spanned<LoadTable>>,
    probe: &'a Entry,
    setup: &'a Entry,
    policy: &'a Entry,
    wait: &'a Entry,
}

/// The plan that a file holds.
pub(super) fn plan(reading: &Reading<'_>, file: &PlanFile) -> Result<Plan> {
    let name = reading.name("name", &file.name)?;
    if name.contains('/') || name.starts_with('.') {
        let what = format!(
            "name: {name:?} becomes part of a directory's name; leave out / and a leading dot"
        );
        bail!(reading.refusal(Some(file.name.span()), &what));
    }
    let order = match file.order.as_ref().map(|order| (order.get_ref().as_str(), order.span())) {
        None | Some(("random", _)) => CellOrder::Random,
        Some(("listed", _)) => CellOrder::Listed,
        Some((other, at)) => {
            let what = format!("order: {other:?} is none; write \"random\" or \"listed\"");
            bail!(reading.refusal(Some(at), &what))
        }
    };
    let budget_ns = reading.time("budget", file.budget.as_ref())?;
    if budget_ns == Some(0) {
        let at = file.budget.as_ref().map(Spanned::span);
        bail!(
            reading.refusal(at, "budget: 0 leaves no time to measure; leave it out, or use more")
        );
    }
    let rows = rows(reading, file)?;
    let undo = reading.command("undo", file.undo.as_ref())?;
    if undo.is_some() && rows.iter().all(|row| row.prepare.is_none()) {
        let at = file.undo.as_ref().map(Spanned::span);
        bail!(reading.refusal(at, "undo: no [[setup]] has a `prepare` that it would put back"));
    }
    Ok(Plan {
        name,
        repeat: reading.number("repeat", file.repeat.as_ref(), MOST_REPEATS)?,
        order,
        seed: reading.seed(file.seed.as_ref())?,
        pause_ns: reading.time("pause", file.pause.as_ref())?.unwrap_or(0),
        budget_ns,
        undo,
        kernels: file
            .kernels
            .iter()
            .map(|own| reading.name("kernels", own))
            .collect::<Result<_>>()?,
        rows,
    })
}

fn rows(reading: &Reading<'_>, file: &PlanFile) -> Result<Vec<PlanRow>> {
    let axes = axes(reading, file)?;
    loads_differ(reading, file)?;
    let count = [&axes.probes, &axes.setups, &axes.policies, &axes.waits]
        .iter()
        .fold(file.load.len().max(1), |count, axis| count.saturating_mul(axis.len()));
    let is_empty = file.load.is_empty()
        && [&axes.setups, &axes.policies, &axes.waits].iter().all(|axis| axis[0].name.is_empty())
        && axes.probes.len() < 2;
    ensure!(
        !is_empty,
        reading.refusal(
            None,
            "no [[load]], [[setup]], [[probe]], policies or waits: there is nothing to vary; \
             write a [[load]] for each row (`use = []` means no load)"
        )
    );
    ensure!(
        count <= MOST_ROWS,
        reading.refusal(None, &format!("{count} combinations; at most {MOST_ROWS} are measured"))
    );
    let loads: Vec<Option<&Spanned<LoadTable>>> = match file.load.as_slice() {
        [] => vec![None],
        some => some.iter().map(Some).collect(),
    };
    let mut rows: Vec<PlanRow> = Vec::new();
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for load in loads {
        for parts in combinations(load, &axes) {
            let row = row(reading, file, &axes, &parts)?;
            if let Some(line) = lines.insert(row.name.clone(), row.line) {
                let what = format!("{:?} is measured twice; see line {line}", row.name);
                bail!(reading.refusal(None, &what));
            }
            rows.push(row);
        }
    }
    Ok(rows)
}

fn loads_differ(reading: &Reading<'_>, file: &PlanFile) -> Result<()> {
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for load in &file.load {
        let name = &load.get_ref().name;
        if let Some(line) = known.insert(name.get_ref().trim(), reading.line(&load.span())) {
            let what = format!("load {:?} is given twice; see line {line}", name.get_ref().trim());
            bail!(reading.refusal(Some(name.span()), &what));
        }
    }
    Ok(())
}

fn combinations<'a>(
    load: Option<&'a Spanned<LoadTable>>,
    axes: &'a Axes,
) -> impl Iterator<Item = Parts<'a>> {
    axes.probes.iter().flat_map(move |probe| {
        axes.setups.iter().flat_map(move |setup| {
            axes.policies.iter().flat_map(move |policy| {
                axes.waits.iter().map(move |wait| Parts { load, probe, setup, policy, wait })
            })
        })
    })
}

fn row(reading: &Reading<'_>, file: &PlanFile, axes: &Axes, parts: &Parts<'_>) -> Result<PlanRow> {
    let load = parts.load.map(Spanned::get_ref);
    let probe = match load.and_then(|load| load.probe.as_ref()) {
        Some(own) if axes.probes.len() > 1 || !parts.probe.name.is_empty() => {
            let what = "probe: the plan has a [[probe]] for each already; leave it out";
            bail!(reading.refusal(Some(own.span()), what))
        }
        Some(own) => reading.name("probe", own)?,
        None => parts.probe.probe.clone().unwrap_or_else(|| DEFAULT_PROBE.name.into()),
    };
    let boxes = load.and_then(|load| load.boxes.as_ref()).or(file.boxes.as_ref());
    let are_two = reading.number("boxes", boxes, 2)? == 2;
    let flags = flags(reading, file, parts, &probe)?;
    let far = far(reading, file, load, are_two)?;
    if are_two {
        not_of_boxes(reading, "run", &flags)?;
    }
    let mut loads = Vec::new();
    for used in load.map(|load| load.loads.as_slice()).unwrap_or_default() {
        ensure!(
            !used.get_ref().trim().is_empty(),
            reading.refusal(Some(used.span()), "use: empty; write what --load takes")
        );
        loads.push(used.get_ref().trim().to_owned());
    }
    let load_name = load.map(|load| reading.name("name of a load", &load.name)).transpose()?;
    let own_line = [&parts.setup.at, &parts.policy.at, &parts.wait.at, &parts.probe.at];
    let own_line = own_line.into_iter().find(|at| !at.is_empty()).cloned().unwrap_or_default();
    let (row, column) = labels(axes, parts, load_name, file.load.len(), &probe);
    let both = [row.as_str(), column.as_str()];
    Ok(PlanRow {
        name: both.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", "),
        row,
        column,
        line: reading.line(&parts.load.map_or(own_line, Spanned::span)),
        probe,
        flags: flags.into_values().filter_map(|(word, _)| word).collect(),
        loads,
        far,
        prepare: parts.setup.prepare.clone(),
    })
}

/// The row and the column of a matrix: of each axis that has several places, which one.
fn labels(
    axes: &Axes,
    parts: &Parts<'_>,
    load: Option<String>,
    loads: usize,
    probe: &str,
) -> (String, String) {
    let varied = |axis: &[Entry], entry: &Entry| (axis.len() > 1).then(|| entry.name.clone());
    let join =
        |parts: Vec<Option<String>>| parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let row = join(vec![varied(&axes.probes, parts.probe), load.clone().filter(|_| loads > 1)]);
    let column = join(vec![
        varied(&axes.setups, parts.setup),
        varied(&axes.policies, parts.policy),
        varied(&axes.waits, parts.wait),
    ]);
    let row = if row.is_empty() { load.unwrap_or_else(|| probe.to_owned()) } else { row };
    (row, column)
}

/// The flags of all rows, with those of each place in their stead. Two places that set the same
/// contradict each other.
fn flags(reading: &Reading<'_>, file: &PlanFile, parts: &Parts<'_>, probe: &str) -> Result<Words> {
    let own = match parts.load {
        Some(load) => reading.words("run", &load.get_ref().run)?,
        None => Words::new(),
    };
    let load_name = parts.load.map_or("", |load| load.get_ref().name.get_ref());
    let layers = [
        ("probe", parts.probe.name.as_str(), parts.probe.words.clone()),
        ("setup", &parts.setup.name, parts.setup.words.clone()),
        ("policy", &parts.policy.name, parts.policy.words.clone()),
        ("wait method", &parts.wait.name, wait_words(parts.wait, probe)),
        ("load", load_name, own),
    ];
    let mut all = reading.words("run", &file.run)?;
    let mut setter: BTreeMap<String, String> = BTreeMap::new();
    for (axis, name, words) in layers {
        for (flag, (word, at)) in words {
            let who = format!("{axis} {name:?}");
            if let Some(other) = setter.insert(flag.clone(), who.clone()) {
                let what = format!("run.{flag} is set by {other} and by {who}; leave one out");
                bail!(reading.refusal(Some(at), &what));
            }
            all.insert(flag, (word, at));
        }
    }
    Ok(all)
}

/// The flags of the echo in a second box. The table for all rows may be meant for other rows.
fn far(
    reading: &Reading<'_>,
    file: &PlanFile,
    load: Option<&LoadTable>,
    are_two: bool,
) -> Result<Option<Vec<String>>> {
    let own = load.map(|load| &load.echo);
    if !are_two {
        return match own.and_then(|own| own.keys().next()) {
            None => Ok(None),
            Some(flag) => bail!(reading.refusal(
                Some(flag.span()),
                "echo: there is no second box; write `boxes = 2`, or leave it out"
            )),
        };
    }
    let mut words = reading.words("echo", &file.echo)?;
    if let Some(own) = own {
        words.extend(reading.words("echo", own)?);
    }
    not_of_boxes(reading, "echo", &words)?;
    Ok(Some(words.into_values().filter_map(|(word, _)| word).collect()))
}

fn not_of_boxes(reading: &Reading<'_>, table: &str, words: &Words) -> Result<()> {
    for (flag, (_, at)) in words {
        if OF_BOXES.contains(&flag.as_str()) {
            let what = format!("{table}.{flag}: the lab joins two boxes itself; leave it out");
            bail!(reading.refusal(Some(at.clone()), &what));
        }
    }
    Ok(())
}
