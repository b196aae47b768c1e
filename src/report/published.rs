//! A run beside a published table: the figures that both have, and what differs in method.
//!
//! The tables are `published.toml`, which is built in. Nothing is judged: a table is of another
//! machine, another kernel and other software, and a run beside it is a sample of one.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{headline::half, sample_name, table::Table, terminal::fold, words};
use crate::{
    analysis::matrix::whole,
    plain::plain,
    run::{Document, SeriesSummary, Validity},
    units::{Nanos, count, round, span},
};

const TABLES: &str = include_str!("published.toml");

/// Figures that a table may have, in the order in which they are shown.
const FIGURES: [&str; 5] = ["min", "mean", "p50", "p99", "max"];

/// What may differ in method, in the order in which it is shown.
const METHOD: [&str; 7] = ["machine", "kernel", "load", "policy", "period", "message", "length"];

const NOTE: &str = "A published table is one sample of another machine, and so is this run of this \
                    one: nothing is judged.";

/// All tables; what is built in is read once.
static PUBLISHED: LazyLock<Vec<PublishedTable>> = LazyLock::new(|| {
    /// The file.
    #[derive(Deserialize)]
    struct Tables {
        table: Vec<PublishedTable>,
    }
    toml::from_str::<Tables>(TABLES).map(|tables| tables.table).unwrap_or_default()
});

/// Why a run cannot be put beside a table.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PublishedError {
    /// No table of this name.
    #[error("{0:?}: no such table; there are {1}, and `--published list` says what they are")]
    Unknown(String, String),
    /// Of another kind of latency.
    #[error(
        "{id} is a table of what the probe {of} measures, and {run} is a run of {probe}: their \
         samples are different things; tables for {probe}: {others}"
    )]
    Probe {
        /// The table.
        id: String,
        /// Its probe.
        of: String,
        /// The run.
        run: String,
        /// The probe of the run.
        probe: String,
        /// Tables that would do.
        others: String,
    },
    /// Nothing to put beside it.
    #[error("{0} has no sample")]
    Empty(String),
}

/// A published table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedTable {
    id: String,
    source: String,
    probe: String,
    latency: String,
    #[serde(default)]
    halved: bool,
    unit: String,
    #[serde(default)]
    claims: Vec<String>,
    #[serde(default)]
    method: BTreeMap<String, String>,
    row: Vec<PublishedRow>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedRow {
    name: String,
    samples: Option<u64>,
    figures: BTreeMap<String, f64>,
}

/// A run beside a published table, as `tardy compare --published --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BesidePublished {
    /// The table.
    pub id: String,
    /// Where it was published.
    pub source: String,
    /// What its latencies are.
    pub latency: String,
    /// The name of the run.
    pub run: String,
    /// Whether its figures are valid.
    pub validity: Validity,
    /// The figures that the table has, of each series of the run.
    pub measured: Vec<FigureLine>,
    /// The table.
    pub published: Vec<FigureLine>,
    /// What differs in method, or is not stated.
    pub method: Vec<MethodDifference>,
    /// What the source says of its figures.
    pub claims: Vec<String>,
    /// Why nothing is judged.
    pub note: &'static str,
}

/// A row of figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FigureLine {
    /// The series, or what the source calls it.
    pub name: String,
    /// How many samples; null if that is not stated.
    pub samples: Option<u64>,
    /// By name, ns: `min`, `mean`, `p50`, `p99`, `max`.
    pub figures_ns: BTreeMap<String, f64>,
    /// Names of those with fewer than 10 samples beyond them.
    pub uncertain: Vec<String>,
}

/// One matter of method.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MethodDifference {
    /// Which: `machine`, `load`.
    pub what: String,
    /// That of the run; null where its record does not say.
    pub run: Option<String>,
    /// That of the table; null where its source does not state it.
    pub published: Option<String>,
}

/// All tables, a line each.
#[must_use]
pub fn list() -> String {
    let mut table = Table::new(3, &["id", "probe", "latency", ""]);
    for own in PUBLISHED.iter() {
        let texts = [&own.id, &own.probe, &own.latency, &own.source];
        table.row(texts.map(String::clone).into());
    }
    table.lines().join("\n") + "\n"
}

/// Puts a run beside the table of this name.
///
/// # Errors
/// See [`PublishedError`].
pub fn beside(document: &Document, id: &str) -> Result<BesidePublished, PublishedError> {
    let table = PUBLISHED.iter().find(|table| table.id == id);
    let Some(table) = table else {
        return Err(PublishedError::Unknown(id.into(), ids(|_| true)));
    };
    let (run, probe) = (document.name.clone(), document.probe.measured_as());
    if probe != table.probe {
        return Err(PublishedError::Probe {
            id: id.into(),
            of: table.probe.clone(),
            run,
            probe: probe.into(),
            others: ids(|table| table.probe == probe),
        });
    }
    let series = whole(document).filter(|series| series.max.is_some());
    let measured: Vec<FigureLine> = series.map(|series| measured(series, table)).collect();
    if measured.is_empty() {
        return Err(PublishedError::Empty(run));
    }
    Ok(BesidePublished {
        id: table.id.clone(),
        source: table.source.clone(),
        latency: table.latency.clone(),
        run,
        validity: document.validity,
        measured,
        published: table.row.iter().map(|row| published(row, &table.unit)).collect(),
        method: method(document, table),
        claims: table.claims.clone(),
        note: NOTE,
    })
}

/// Names of the tables that `is_meant`; `none` without any.
fn ids(is_meant: impl Fn(&PublishedTable) -> bool) -> String {
    let ids = PUBLISHED.iter().filter(|table| is_meant(table)).map(|table| table.id.as_str());
    let ids: Vec<&str> = ids.collect();
    if ids.is_empty() { "none".into() } else { ids.join(", ") }
}

/// The figures of a series that the table has too.
fn measured(series: &SeriesSummary, table: &PublishedTable) -> FigureLine {
    let value = |name: &str| match name {
        "min" => series.min,
        "mean" => series.mean,
        "max" => series.max,
        _ => series.percentiles.get(name.trim_start_matches('p')).map(|ns| ns.cast_signed()),
    };
    let shown = |ns: i64| if table.halved { half(ns) } else { ns };
    let has = |name: &&str| table.row.iter().any(|row| row.figures.contains_key(*name));
    let names: Vec<&str> = FIGURES.into_iter().filter(has).collect();
    let figure = |name: &&str| Some(((*name).to_owned(), shown(value(name)?) as f64));
    let is_few = |name: &&str| series.uncertain.iter().any(|own| format!("p{own}") == **name);
    let name = sample_name::series(&series.name);
    FigureLine {
        name: if table.halved { format!("half of {name}") } else { name.into_owned() },
        samples: Some(series.count),
        figures_ns: names.iter().filter_map(figure).collect(),
        uncertain: names.iter().copied().filter(|name| is_few(name)).map(str::to_owned).collect(),
    }
}

fn published(row: &PublishedRow, unit: &str) -> FigureLine {
    let ns = if unit == "ms" { 1e6 } else { 1e3 };
    FigureLine {
        name: row.name.clone(),
        samples: row.samples,
        figures_ns: row.figures.iter().map(|(name, value)| (name.clone(), value * ns)).collect(),
        uncertain: Vec::new(),
    }
}

/// What is not the same, or not stated.
fn method(document: &Document, table: &PublishedTable) -> Vec<MethodDifference> {
    let own = |what: &&str| MethodDifference {
        what: (*what).to_owned(),
        run: of_run(document, what).filter(|text| !text.is_empty()),
        published: table.method.get(*what).cloned(),
    };
    let all = METHOD.iter().map(own);
    all.filter(|own| own.run != own.published).collect()
}

fn of_run(document: &Document, what: &str) -> Option<String> {
    let facts = &document.facts;
    match what {
        "machine" => {
            let cpus = Some(format!("CPUs {}", facts.cpus_online));
            let parts = [facts.cpu_model.clone(), cpus, facts.virtualisation.clone()];
            Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
        }
        "kernel" => Some(format!("{} ({})", facts.kernel, facts.preemption.model)),
        "load" if document.loads.is_empty() => Some("none by tardy".into()),
        "load" => Some(words::loads(&document.loads)),
        "policy" => document.setup.found.policy.clone(),
        "period" => document.probe.interval_ns().map(round),
        "message" => {
            document.probe.carrier().map(|(over, bytes)| format!("{bytes} bytes over {over}"))
        }
        "length" => Some(span(document.duration_ns as f64 / 1e9)),
        _ => None,
    }
}

/// As text.
#[must_use]
pub fn text(beside: &BesidePublished, width: Option<usize>) -> String {
    let mut out = format!(
        "{} beside {}: {}\nlatency there: {}\n",
        plain(&beside.run),
        beside.id,
        beside.source,
        beside.latency
    );
    if beside.validity != Validity::Valid {
        let validity = beside.validity.displayed();
        out.push_str(&format!("This run is {validity}: `tardy show` says why.\n"));
    }
    out.push('\n');
    out.push_str(&figures(beside).lines().join("\n"));
    if beside.measured.iter().any(|line| !line.uncertain.is_empty()) {
        out.push_str("\n~ fewer than 10 samples beyond it");
    }
    out.push_str("\n\nWhat differs in method, or is not stated:\n");
    for own in &beside.method {
        let said = |text: &Option<String>, none: &str| text.clone().unwrap_or_else(|| none.into());
        let (run, there) = (said(&own.run, "not recorded"), said(&own.published, "not stated"));
        out.push_str(&format!("  {}: here {}; there {there}\n", own.what, plain(&run)));
    }
    for claim in &beside.claims {
        out.push_str(&format!("The source says: {claim}.\n"));
    }
    out.push_str(&format!("{}\n", beside.note));
    fold(&out, width)
}

fn figures(beside: &BesidePublished) -> Table {
    let all = || beside.measured.iter().chain(&beside.published);
    let has = |name: &&str| all().any(|line| line.figures_ns.contains_key(*name));
    let names: Vec<&str> = FIGURES.into_iter().filter(has).collect();
    let mut table = Table::new(2, &[&["", "", "samples"][..], &names].concat());
    let rows = beside.measured.iter().map(|line| ("here", line));
    for (place, line) in rows.chain(beside.published.iter().map(|line| ("there", line))) {
        let samples = line.samples.map_or_else(|| "-".into(), count);
        let mut row = vec![place.to_owned(), line.name.clone(), samples];
        row.extend(names.iter().map(|name| {
            let mark = if line.uncertain.iter().any(|own| own == name) { "~" } else { "" };
            let value = line.figures_ns.get(*name);
            value.map_or_else(|| "-".into(), |ns| format!("{mark}{}", Nanos(ns.round() as i64)))
        }));
        table.row(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn the_tables_are_whole_and_of_known_words() {
        let tables: toml::Table = toml::from_str(TABLES).unwrap();
        assert_eq!(PUBLISHED.len(), tables["table"].as_array().unwrap().len());
        assert!(PUBLISHED.len() >= 6, "{}", list());
        for table in PUBLISHED.iter() {
            let id = &table.id;
            assert_eq!(PUBLISHED.iter().filter(|other| other.id == *id).count(), 1, "{id}");
            assert!(crate::run::probes::ProbeInfo::find(&table.probe).is_some(), "{id}");
            assert!(["us", "ms"].contains(&table.unit.as_str()), "{id}: {}", table.unit);
            assert!(table.method.keys().all(|what| METHOD.contains(&what.as_str())), "{id}");
            assert!(!table.row.is_empty() && !table.source.is_empty(), "{id}");
            for row in &table.row {
                assert!(!row.figures.is_empty(), "{id}: {}", row.name);
                assert!(row.figures.keys().all(|name| FIGURES.contains(&name.as_str())), "{id}");
            }
        }
    }

    #[test]
    fn a_run_has_the_figures_of_the_table_in_its_units_and_no_others() {
        let found = beside(&fixture::of("timer", &["cpu0", "cpu1"]), "latstat-2007").unwrap();
        let names: Vec<&str> = found.measured.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["cpu0", "cpu1"]);
        let own: Vec<(&str, f64)> =
            found.measured[0].figures_ns.iter().map(|(name, ns)| (name.as_str(), *ns)).collect();
        assert_eq!(own, [("max", 2_400_000.0), ("mean", 41_000.0)]);
        assert_eq!(found.published[0].figures_ns["max"], 32_000.0);
        let text = text(&found, None);
        assert!(text.contains("there  Solaris  300,000,000  4.00 us"), "{text}");
        assert!(text.contains("policy: here fifo 90; there not stated\n"), "{text}");
        assert!(text.ends_with(&format!("{NOTE}\n")), "{text}");
        for word in ["better", "worse", "inconclusive"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
    }

    #[test]
    fn half_of_a_round_trip_stands_beside_half_of_one() {
        let run = fixture::of("pingpong", &["rtt", "there", "back"]);
        let halves = beside(&run, "zeromq-rt-2008").unwrap();
        assert_eq!(halves.measured.len(), 1, "{halves:?}");
        assert_eq!(halves.measured[0].name, "half of round trip");
        assert_eq!(halves.measured[0].figures_ns["p50"], 19_000.0);
        let whole = beside(&run, "pingpong-2012").unwrap();
        assert_eq!(whole.measured[0].figures_ns["max"], 2_400_000.0);
        assert_eq!(whole.published[1].figures_ns["max"], 900_000.0);
    }

    #[test]
    fn what_cannot_be_put_beside_each_other_is_refused_with_what_can() {
        let timer = fixture::of("timer", &["cpu0"]);
        let refusal = |run: &Document, id: &str| beside(run, id).unwrap_err().to_string();
        let unknown = refusal(&timer, "nothing");
        assert!(unknown.contains("\"nothing\"") && unknown.contains("latstat-2007"), "{unknown}");
        let other = refusal(&timer, "receive-2012");
        assert!(other.contains("the probe receive measures, and n is a run of timer"), "{other}");
        assert!(other.contains("tables for timer: cyclictest-hackbench-2012"), "{other}");
        let empty = refusal(&fixture::of("timer", &[]), "latstat-2007");
        assert_eq!(empty, "n has no sample");
    }
}
