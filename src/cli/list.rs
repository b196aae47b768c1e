//! `tardy list`: the runs of the store, and what else tardy keeps there.

use anyhow::Result;
use clap::Args;
use rustix::process::geteuid;
use serde_json::json;

use super::{Exit, flags::FormatFlags, output};
use crate::{
    plain::plain_path,
    report::{table::Table, words},
    run::Status,
    store::{ListedRun, Listing, Store, StoredCampaign, Where, owner_of},
    units::{Nanos, span},
};

/// List runs, comparisons and plans, oldest first.
///
/// The last line is what `last` means to `report`, `export` and `rm`; to commands that take one run
/// it means the last run. With --where only runs are listed, those of plans among them. If some are
/// other users', a column shows the number of their owner.
#[derive(Debug, Args)]
pub(super) struct ListFlags {
    #[command(flatten)]
    question: WhereFlags,
    #[command(flatten)]
    format: FormatFlags,
}

/// Which runs are meant.
#[derive(Debug, Args)]
pub(super) struct WhereFlags {
    /// Only these runs: `kernel=6.12* load=hackbench p99>100us started>=2026-10-01`
    ///
    /// All conditions must hold. Compare texts by = and != with a pattern, where * is any text and
    /// ? one character: name, id, kernel, machine (or host), probe, load, policy, cpus, status,
    /// verdict, series; in plans also plan and cell. Compare times also by <, <=, > and >=, with a
    /// unit: duration, and p50, p99, p99.9 and max of the worst series (or of those that series=
    /// selects). started takes dates (UTC), and with = the beginning of one.
    #[arg(long = "where", value_name = "CONDITIONS", help_heading = "Runs")]
    pub question: Option<Where>,
}

/// What is listed, by its time.
enum Listed<'a> {
    Run(&'a ListedRun),
    Campaign(&'a StoredCampaign),
}

/// Prints a line per run; errors of runs that cannot be opened go to standard error.
pub(super) fn list(flags: &ListFlags, store: &Store) -> Result<Exit> {
    let listing = store.listing()?;
    let listed = listed(&listing, flags.question.question.as_ref());
    if flags.format.is_json() {
        let lines: Vec<_> = listed.iter().map(Listed::json).collect();
        output::put_json(&lines)?;
    } else if listed.is_empty() {
        let root = plain_path(store.root());
        output::notice(&match flags.question.question {
            Some(_) => format!("No such runs in {root}."),
            None => format!("No runs in {root}; `tardy run` makes one."),
        });
    } else {
        output::put(&(table(&listed, output::width()).join("\n") + "\n"))?;
    }
    listing.damaged.iter().for_each(|error| output::warn(error));
    Ok(Exit::Done)
}

/// The runs that are meant. Without a question those of plans are left out, as their plan is there.
fn listed<'a>(listing: &'a Listing, question: Option<&Where>) -> Vec<Listed<'a>> {
    let runs = listing.runs.iter();
    if let Some(question) = question {
        return runs.filter(|run| question.holds(run)).map(Listed::Run).collect();
    }
    let runs = runs.filter(|run| run.cell().is_none()).map(Listed::Run);
    let mut all: Vec<Listed<'_>> =
        runs.chain(listing.campaigns.iter().map(Listed::Campaign)).collect();
    all.sort_by_cached_key(|listed| match listed {
        Listed::Run(run) => (run.entry.start(), run.entry.id.clone()),
        Listed::Campaign(campaign) => (campaign.start(), campaign.id.clone()),
    });
    all
}

impl Listed<'_> {
    fn id_and_name(&self) -> (&str, &str) {
        match self {
            Self::Run(run) => (&run.entry.id, &run.entry.name),
            Self::Campaign(campaign) => (&campaign.id, &campaign.name),
        }
    }

    /// The number of the user to whom its directory belongs.
    fn owner(&self) -> Option<u32> {
        owner_of(match self {
            Self::Run(run) => &run.entry.path,
            Self::Campaign(campaign) => &campaign.path,
        })
    }

    /// The same of another user's; else nothing.
    fn other_owner(&self) -> String {
        let other = self.owner().filter(|uid| *uid != geteuid().as_raw());
        other.map_or_else(String::new, |uid| uid.to_string())
    }

    fn json(&self) -> serde_json::Value {
        match self {
            Self::Run(run) => of_run(run, self.owner()),
            Self::Campaign(campaign) => json!({
                "kind": campaign.kind.as_str(),
                "id": campaign.id,
                "name": campaign.name,
                "path": campaign.path,
                "owner": self.owner(),
                "status": campaign.status,
                "verdict": campaign.verdict,
                "what": campaign.what,
                "started_at": campaign.started_at,
            }),
        }
    }

    /// All but id and name.
    fn cells(&self) -> Vec<String> {
        let run = match self {
            Self::Run(run) => &run.entry,
            Self::Campaign(campaign) => {
                let verdict = campaign.verdict.unwrap_or("-");
                let words = [campaign.status, verdict, &campaign.what, "-"];
                return words.map(str::to_owned).into();
            }
        };
        let probe = words::probe(&run.probe, run.messages.as_ref());
        let measured = words::under(&probe, &words::loads_key(&run.loads));
        let length = match (run.status, run.duration_ns) {
            (Status::Imported, 0) => "length unknown".into(),
            _ => span(run.duration_ns as f64 / 1e9),
        };
        vec![
            run.status.as_str().into(),
            run.validity.displayed().into(),
            match run.command_failure() {
                Some(how) => {
                    format!("command {how}; {measured}, {length}")
                }
                None => format!("{measured}, {length}"),
            },
            run.max().map_or_else(|| "-".into(), |ns| Nanos(ns).to_string()),
        ]
    }
}

fn of_run(listed: &ListedRun, owner: Option<u32>) -> serde_json::Value {
    let run = &listed.entry;
    let (plan, cell) = listed.cell().unzip();
    json!({
        "kind": "run",
        "id": run.id,
        "name": run.name,
        "path": run.path,
        "owner": owner,
        "plan": plan,
        "cell": cell,
        "status": run.status,
        "validity": run.validity,
        "command_failure": run.command_failure(),
        "machine": run.facts.hostname,
        "kernel": run.facts.kernel,
        "probe": run.probe.name(),
        "transport": run.messages.as_ref().map(|messages| messages.transport.as_str()),
        "loads": run.loads.iter().map(|load| load.name.as_str()).collect::<Vec<_>>(),
        "policy": run.setup.found.policy,
        "cpus": run.setup.found.cpus,
        "started_at": run.started_at,
        "duration_ns": run.duration_ns,
        "p50": run.percentile("50"),
        "p99": run.percentile("99"),
        "p99.9": run.percentile("99.9"),
        "max": run.max(),
    })
}

/// A line per run, no wider than `width`: without ids then, but for runs that have no other name,
/// and without what was measured where that is still too wide.
fn table(listed: &[Listed<'_>], width: Option<usize>) -> Vec<String> {
    let owners: Vec<String> = listed.iter().map(Listed::other_owner).collect();
    let has_owners = owners.iter().any(|owner| !owner.is_empty());
    let filled = |names: &[&str], named: fn(&Listed<'_>) -> Vec<String>| {
        let owner = has_owners.then_some("owner");
        let measured = ["status", "verdict", "measured", "worst"];
        let columns: Vec<&str> = names.iter().copied().chain(owner).chain(measured).collect();
        let mut table = Table::new(columns.len() - 1, &columns);
        for (one, owner) in listed.iter().zip(&owners) {
            let owner = has_owners.then(|| owner.clone());
            table.row(named(one).into_iter().chain(owner).chain(one.cells()).collect());
        }
        table
    };
    let whole = filled(&["id", "name"], |one| {
        let (id, name) = one.id_and_name();
        vec![id.to_owned(), if name == id { String::new() } else { name.to_owned() }]
    });
    if width.is_none_or(|width| whole.width() <= width) {
        return whole.lines();
    }
    let short = filled(&["run"], |one| vec![one.id_and_name().1.to_owned()]);
    short.fitted(width, &["measured", "status"]).0
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::chown};

    use super::*;

    fn write(store: &Store, id: &str, name: &str) {
        let record = json!({
            "schema_version": 2, "id": id, "name": name, "status": "complete",
            "validity": "weakened", "probe": {"name": "timer", "parameters": {}}, "loads": [],
            "started_at": "", "duration_ns": 20_000_000_000_u64,
            "series": [{"name": "cpu0", "max": 2_400_000}],
        });
        fs::create_dir_all(store.place(id)).unwrap();
        fs::write(store.place(id).join("run.json"), record.to_string()).unwrap();
    }

    #[test]
    fn a_command_that_failed_is_listed_before_what_was_measured_of_it() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::at(Some(place.path().into())).unwrap();
        let id = "20261121-203055.042-1f0c";
        write(&store, id, "crashed");
        let file = store.place(id).join("run.json");
        let mut record: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        record["attached"] = json!({"threads": 1, "command": {
            "argv": ["ctl"], "ended": "signal 11", "exit_code": null, "ended_by_tardy": false,
        }});
        fs::write(&file, record.to_string()).unwrap();
        let listing = store.listing().unwrap();
        let runs = listed(&listing, None);
        let lines = table(&runs, None);
        assert!(lines[1].contains("command was killed by signal 11 (SIGSEGV); timer"), "{lines:?}");
        assert_eq!(runs[0].json()["command_failure"], "was killed by signal 11 (SIGSEGV)");
    }

    #[test]
    fn the_owner_of_a_run_is_listed_if_it_is_another_user() {
        if !geteuid().is_root() {
            return eprintln!("skipped: needs root");
        }
        let place = tempfile::tempdir().unwrap();
        let store = Store::at(Some(place.path().into())).unwrap();
        ["mine", "theirs"].iter().for_each(|id| write(&store, id, id));
        let lines = || table(&listed(&store.listing().unwrap(), None), None);
        assert!(lines().iter().all(|line| !line.contains("owner")), "{:?}", lines());
        chown(store.place("theirs"), Some(65_534), None).unwrap();
        let lines = lines();
        assert!(lines[0].contains("owner"), "{lines:?}");
        let of = |line: &str| line.contains("65534");
        assert!(!of(&lines[1]) && of(&lines[2]), "{lines:?}");
        let listing = store.listing().unwrap();
        let owners: Vec<_> =
            listed(&listing, None).iter().map(|one| one.json()["owner"].clone()).collect();
        assert_eq!(owners, [0, 65_534]);
    }

    #[test]
    fn on_a_narrow_terminal_a_run_is_listed_under_the_name_that_finds_it() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::at(Some(place.path().into())).unwrap();
        let id = "20261121-203055.042-1f0c";
        write(&store, id, id);
        write(&store, "20261121-203056.042-1f0c", "named");
        let listing = store.listing().unwrap();
        let runs = listed(&listing, None);
        assert_eq!(table(&runs, None), table(&runs, Some(100)));
        let narrow = table(&runs, Some(90));
        assert!(narrow.iter().all(|line| line.chars().count() <= 90), "{narrow:?}");
        assert!(narrow[1].starts_with(id) && narrow[2].starts_with("named "), "{narrow:?}");
        assert!(
            narrow[1].contains("timer, no load started, 20 s") && narrow[1].ends_with("2.40 ms")
        );
        let narrower = table(&runs, Some(54));
        assert!(narrower.iter().all(|line| line.chars().count() <= 54), "{narrower:?}");
        assert!(narrower[1].contains("questionable") && narrower[1].ends_with("2.40 ms"));
    }
}
