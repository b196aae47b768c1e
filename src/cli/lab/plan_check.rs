//! What a plan asks of the lab, checked before anything boots.

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::{
    cli,
    lab::{
        kernels::{Base, KernelSource},
        matrix::rows::LabRow,
    },
    loads::LoadSpec,
    plan::Plan,
};

/// Checks that `tardy run` accepts the arguments of each load: a guest would fail minutes later.
pub(super) fn check(plan: &Plan, rows: &[LabRow], file: Option<&Path>) -> Result<()> {
    let file = file.map_or_else(|| "the plan".into(), |path| path.display().to_string());
    if let Some(row) = plan.rows.iter().find(|row| row.prepare.is_some()) {
        bail!(
            "{file}, line {}: {:?} is prepared by a command, and a guest has no shell; measure it \
             with `tardy plan`",
            row.line,
            row.name
        );
    }
    for row in rows {
        let place = || format!("{file}, line {}: load {:?}", row.line, row.name);
        would_take(&row.arguments).with_context(place)?;
        if !row.far.is_empty() {
            would_take(&row.far).context("its second box").with_context(place)?;
        }
        for load in row.arguments.iter().filter_map(|word| word.strip_prefix("--load=")) {
            LoadSpec::parse(load).with_context(place)?;
        }
    }
    Ok(())
}

/// This machine is one box.
pub(super) fn has_boxes(rows: &[LabRow], sources: &[KernelSource]) -> Result<()> {
    let two = rows.iter().find(|row| !row.far.is_empty());
    if let Some(row) = two.filter(|_| sources.iter().any(|source| source.base == Base::Host)) {
        bail!(
            "--kernels: host is one box, and load {:?} wants two; leave host out, or measure it \
             with `tardy run --to` and an echo on another machine",
            row.name
        );
    }
    Ok(())
}

/// The error of clap for these arguments of tardy, without the usage line.
pub(in crate::cli) fn would_take(arguments: &[String]) -> Result<()> {
    let words = std::iter::once("tardy").chain(arguments.iter().map(String::as_str));
    let Err(error) = cli::command().try_get_matches_from(words) else { return Ok(()) };
    let text = error.to_string();
    let about = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let about = about.take_while(|line| !line.starts_with("Usage:"));
    let about = about.filter(|line| !line.starts_with("For more")).collect::<Vec<_>>();
    bail!("{}", about.join("; ").trim_start_matches("error: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(plan: &Plan) -> Vec<LabRow> {
        plan.rows.iter().map(LabRow::of).collect()
    }

    fn refused(change: &str) -> String {
        let text = format!("name = \"x\"\n[[load]]\nname = \"idle\"\n{change}\n");
        let plan = Plan::parse(&text, "p.toml").unwrap();
        format!("{:#}", check(&plan, &rows(&plan), Some(Path::new("p.toml"))).unwrap_err())
    }

    #[test]
    fn this_machine_is_one_box() {
        let text = "name = \"x\"\nboxes = 2\n[[load]]\nname = \"y\"\nuse = []\n";
        let rows = rows(&Plan::parse(text, "p.toml").unwrap());
        let sources = |list: &str| KernelSource::parse_list(list).unwrap();
        has_boxes(&rows, &sources("standard,rt")).unwrap();
        let error = has_boxes(&rows, &sources("standard,host")).unwrap_err().to_string();
        assert!(error.contains("host is one box") && error.contains("\"y\""), "{error}");
    }

    #[test]
    fn what_tardy_run_would_not_take_is_reported_before_anything_boots() {
        let error = refused("run.interval = \"200\"");
        assert!(error.starts_with("p.toml, line 2: load \"idle\": invalid value '200'"), "{error}");
        assert!(error.contains("200 has no unit"), "{error}");
        let error = refused("run.intervall = \"200us\"");
        assert!(error.contains("--intervall") && error.contains("'--interval'"), "{error}");
        let error = refused("use = [\"signals:processes=0\"]");
        assert!(error.contains("line 2") && error.contains("processes"), "{error}");
        assert!(refused("use = [\"nothing\"]").contains("nothing"), "unknown loads");
    }
}
