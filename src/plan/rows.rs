//! From the axes of a plan to its rows: every combination once, loads outermost.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use toml::Spanned;

use super::{
    Plan, PlanGate, PlanRow,
    axes::{Axes, Entry, axes, wait_words},
    order::CellOrder,
    reading::{Reading, Words},
    syntax::{LoadTable, Part, PlanFile},
};
use crate::{loads::is_built_in, run::probes::DEFAULT_PROBE};

/// The most repeats that a plan may ask for.
const MOST_REPEATS: u32 = 1_000;

/// A larger plan is refused: a short file can have a thousand million combinations.
const MOST_ROWS: usize = 10_000;

/// Flags by which two boxes find each other: the lab gives them.
const OF_BOXES: [&str; 3] = ["to", "listen", "token-file"];

/// What one row is made of.
struct Places<'a> {
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
            let what = format!("order: {other:?} is unknown; write \"random\" or \"listed\"");
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
        bail!(reading.refusal(at, "undo: no [[setup]] has a `prepare` to restore"));
    }
    if let Some(change) = file.first_change().filter(|_| undo.is_none()) {
        let what = format!(
            "prepare: {:?} may change the machine, and the plan has no `undo` for that; give it \
             one (undo = \"true\" if there is nothing to undo)",
            change.get_ref()
        );
        bail!(reading.refusal(Some(change.span()), &what));
    }
    Ok(Plan {
        name,
        repeat: reading.number("repeat", file.repeat.as_ref(), MOST_REPEATS)?,
        order,
        seed: reading.seed(file.seed.as_ref())?,
        pause_ns: reading.time("pause", file.pause.as_ref())?.unwrap_or(0),
        budget_ns,
        undo,
        gates: file
            .gates
            .iter()
            .map(|own| PlanGate { text: own.get_ref().clone(), line: reading.line(&own.span()) })
            .collect(),
        kernels: file
            .kernels
            .iter()
            .map(|own| reading.name("kernels", own))
            .collect::<Result<_>>()?,
        rows,
    })
}

fn rows(reading: &Reading<'_>, file: &PlanFile) -> Result<Vec<PlanRow>> {
    if let (true, Some(first)) = (file.has_own_axis(), file.part.first()) {
        let what = "part: the plan has axes outside of its parts too; move them into a [[part]]";
        bail!(reading.refusal(Some(first.span()), what));
    }
    let parts = file.parts();
    for (number, name) in parts.iter().filter_map(|part| part.name).enumerate() {
        let same = |other: &&Spanned<String>| other.get_ref().trim() == name.get_ref().trim();
        if parts.iter().take(number).filter_map(|part| part.name).any(|other| same(&other)) {
            let what = format!("part {:?} is given twice", name.get_ref().trim());
            bail!(reading.refusal(Some(name.span()), &what));
        }
    }
    let mut rows = Vec::new();
    for part in &parts {
        rows.extend(rows_of(reading, file, part)?);
        ensure!(
            rows.len() <= MOST_ROWS,
            reading.refusal(None, &format!("more than {MOST_ROWS} combinations"))
        );
    }
    differ_over_parts(reading, &rows)?;
    Ok(rows)
}

/// What one part alone cannot see: rows of one name, and setups that leave the machine to others.
fn differ_over_parts(reading: &Reading<'_>, rows: &[PlanRow]) -> Result<()> {
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows {
        if let Some(line) = known.insert(&row.name, row.line) {
            let what = format!("lines {line} and {}: both are called {:?}", row.line, row.name);
            bail!(reading.refusal(None, &format!("{what}; choose other names")));
        }
    }
    let is_any_prepared = rows.iter().any(|row| row.prepare.is_some());
    if let Some(bare) = rows.iter().find(|row| is_any_prepared && row.prepare.is_none()) {
        let what = format!(
            "line {}: {:?} has no `prepare`, and others do: it would be measured as they leave the \
             machine; give it a [[part.setup]] with what it needs, or prepare = \"true\"",
            bare.line, bare.name
        );
        bail!(reading.refusal(None, &what));
    }
    Ok(())
}

fn rows_of(reading: &Reading<'_>, file: &PlanFile, part: &Part<'_>) -> Result<Vec<PlanRow>> {
    let axes = axes(reading, part)?;
    loads_differ(reading, part)?;
    let count = [&axes.probes, &axes.setups, &axes.policies, &axes.waits]
        .iter()
        .fold(part.load.len().max(1), |count, axis| count.saturating_mul(axis.len()));
    let is_empty = part.load.is_empty()
        && [&axes.setups, &axes.policies, &axes.waits].iter().all(|axis| axis[0].name.is_empty())
        && axes.probes.len() < 2;
    ensure!(
        !is_empty || part.name.is_some(),
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
    let loads: Vec<Option<&Spanned<LoadTable>>> = match part.load {
        [] => vec![None],
        some => some.iter().map(Some).collect(),
    };
    let mut rows: Vec<PlanRow> = Vec::new();
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for load in loads {
        for places in combinations(load, &axes) {
            let row = row(reading, file, (part, &axes), &places)?;
            if let Some(line) = lines.insert(row.name.clone(), row.line) {
                let what = format!("{:?} is measured twice; see line {line}", row.name);
                bail!(reading.refusal(None, &what));
            }
            rows.push(row);
        }
    }
    Ok(rows)
}

fn loads_differ(reading: &Reading<'_>, part: &Part<'_>) -> Result<()> {
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for load in part.load {
        let name = &load.get_ref().name;
        if let Some(line) = known.insert(name.get_ref().trim(), reading.line(&load.span())) {
            let what = format!("load {:?} is given twice; see line {line}", name.get_ref().trim());
            bail!(reading.refusal(Some(name.span()), &what));
        }
    }
    Ok(())
}

/// What a load starts: what it uses, or else the built-in load of its name.
fn loads_of(reading: &Reading<'_>, load: &LoadTable) -> Result<Vec<String>> {
    let Some(used) = &load.loads else {
        let name = reading.name("name of a load", &load.name)?;
        let what = format!(
            "use: load {name:?} has none, and is not a built-in load; write one of \
             `tardy load --list`, as in use = [\"hackbench\"], or use = [] for no load"
        );
        ensure!(is_built_in(&name), reading.refusal(Some(load.name.span()), &what));
        return Ok(vec![name]);
    };
    for own in used {
        let what = "use: empty; write what --load takes";
        ensure!(!own.get_ref().trim().is_empty(), reading.refusal(Some(own.span()), what));
    }
    Ok(used.iter().map(|own| own.get_ref().trim().to_owned()).collect())
}

fn combinations<'a>(
    load: Option<&'a Spanned<LoadTable>>,
    axes: &'a Axes,
) -> impl Iterator<Item = Places<'a>> {
    axes.probes.iter().flat_map(move |probe| {
        axes.setups.iter().flat_map(move |setup| {
            axes.policies.iter().flat_map(move |policy| {
                axes.waits.iter().map(move |wait| Places { load, probe, setup, policy, wait })
            })
        })
    })
}

fn row(
    reading: &Reading<'_>,
    file: &PlanFile,
    (part, axes): (&Part<'_>, &Axes),
    places: &Places<'_>,
) -> Result<PlanRow> {
    let load = places.load.map(Spanned::get_ref);
    let probe = match load.and_then(|load| load.probe.as_ref()) {
        Some(own) if axes.probes.len() > 1 || !places.probe.name.is_empty() => {
            let what = "probe: the plan has a [[probe]] for each already; leave it out";
            bail!(reading.refusal(Some(own.span()), what))
        }
        Some(own) => reading.name("probe", own)?,
        None => places.probe.probe.clone().unwrap_or_else(|| DEFAULT_PROBE.name.into()),
    };
    let boxes = load.and_then(|load| load.boxes.as_ref()).or(file.boxes.as_ref());
    let are_two = reading.number("boxes", boxes, 2)? == 2;
    let flags = flags(reading, (file, part), places, &probe)?;
    let far = far(reading, file, load, are_two)?;
    if are_two {
        not_of_boxes(reading, "run", &flags)?;
    }
    let loads = load.map(|load| loads_of(reading, load)).transpose()?.unwrap_or_default();
    let load_name = load.map(|load| reading.name("name of a load", &load.name)).transpose()?;
    let own_line = [&places.setup.at, &places.policy.at, &places.wait.at, &places.probe.at];
    let own_line = own_line.into_iter().find(|at| !at.is_empty()).cloned().unwrap_or_default();
    let (row, column) = labels(axes, places, load_name, part, &probe);
    let group = part.name.map(|name| reading.name("name of a part", name)).transpose()?;
    let part_line = part.name.filter(|_| places.load.is_none() && own_line.is_empty());
    let row = match &group {
        // What there is one of needs no second name.
        Some(group) if places.load.is_none() && axes.probes.len() < 2 && row == probe => {
            group.clone()
        }
        Some(group) => format!("{group}: {row}"),
        None => row,
    };
    let both = [row.as_str(), column.as_str()];
    Ok(PlanRow {
        name: both.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", "),
        part: group,
        row,
        column,
        line: reading.line(&match (places.load, part_line) {
            (Some(load), _) => load.span(),
            (None, Some(name)) => name.span(),
            (None, None) => own_line,
        }),
        probe,
        flags: flags.into_values().filter_map(|(word, _)| word).collect(),
        loads,
        far,
        prepare: places.setup.prepare.clone(),
    })
}

/// The row and the column of a matrix: of each axis that has several places, which one.
fn labels(
    axes: &Axes,
    places: &Places<'_>,
    load: Option<String>,
    part: &Part<'_>,
    probe: &str,
) -> (String, String) {
    let varied = |axis: &[Entry], entry: &Entry| (axis.len() > 1).then(|| entry.name.clone());
    let join =
        |names: Vec<Option<String>>| names.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let row = join(vec![
        varied(&axes.probes, places.probe),
        load.clone().filter(|_| part.load.len() > 1),
    ]);
    let column = join(vec![
        varied(&axes.setups, places.setup),
        varied(&axes.policies, places.policy),
        varied(&axes.waits, places.wait),
    ]);
    let row = if row.is_empty() { load.unwrap_or_else(|| probe.to_owned()) } else { row };
    (row, column)
}

/// The flags of all rows, with those of the part and of each place in their stead. Two places that
/// set the same contradict each other.
fn flags(
    reading: &Reading<'_>,
    (file, part): (&PlanFile, &Part<'_>),
    places: &Places<'_>,
    probe: &str,
) -> Result<Words> {
    let own = match places.load {
        Some(load) => reading.words("run", &load.get_ref().run)?,
        None => Words::new(),
    };
    let load_name = places.load.map_or("", |load| load.get_ref().name.get_ref());
    let layers = [
        ("probe", places.probe.name.as_str(), places.probe.words.clone()),
        ("setup", &places.setup.name, places.setup.words.clone()),
        ("policy", &places.policy.name, places.policy.words.clone()),
        ("wait method", &places.wait.name, wait_words(places.wait, probe)),
        ("load", load_name, own),
    ];
    let mut all = reading.words("run", &file.run)?;
    if let Some(own) = part.run {
        all.extend(reading.words("run", own)?);
    }
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
                "echo: it needs a second box; write `boxes = 2`, or leave it out"
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
