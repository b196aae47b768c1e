//! Interrupts for a terminal: a row a source, a column a CPU, and above them how late that CPU was
//! and how busy.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
};

use super::{
    page::InterruptRow,
    table::{Table, us},
};
use crate::{
    run::{Document, SeriesSummary},
    units::{count, rate},
};

/// The number of sources that are shown, the busiest.
const SOURCES: usize = 12;
/// The greatest number of CPUs that are shown, the latest of them.
const CPUS: usize = 8;
/// A name is cut after this number of characters.
const NAME: usize = 34;

/// The table as lines, with as many CPUs as `width` has room for; none where nothing moved.
#[must_use]
pub fn lines(document: &Document, rows: &[InterruptRow], width: Option<usize>) -> Vec<String> {
    if rows.is_empty() {
        return Vec::new();
    }
    let (mut cpus, of) = shown(document, rows);
    let mut table = table(document, rows, &cpus);
    while cpus.len() > 1 && width.is_some_and(|width| table.width() > width) {
        let least = cpus.iter().copied().min_by_key(|cpu| worst(document, *cpu, |own| own.max));
        cpus.retain(|cpu| Some(*cpu) != least);
        table = self::table(document, rows, &cpus);
    }
    let mut lines = table.lines();
    lines.extend(rest(rows.len(), of - cpus.len()));
    lines
}

/// A row a source, a column a CPU.
fn table(document: &Document, rows: &[InterruptRow], cpus: &[u32]) -> Table {
    let mut headings = vec!["interrupts, per second".to_owned(), "all".to_owned()];
    headings.extend(cpus.iter().map(|cpu| format!("cpu{cpu}")));
    let mut table = Table::new(1, &headings.iter().map(String::as_str).collect::<Vec<_>>());
    let each = |cell: &dyn Fn(u32) -> String| cpus.iter().map(|cpu| cell(*cpu)).collect::<Vec<_>>();
    let mut row = |name: &str, all: String, cells: Vec<String>| {
        table.row([vec![name.to_owned(), all], cells].concat());
    };
    let p99 = |series: &SeriesSummary| {
        series.percentiles.get("99").and_then(|ns| i64::try_from(*ns).ok())
    };
    row("latency p99, us", String::new(), each(&|cpu| us(worst(document, cpu, p99))));
    row("latency max, us", String::new(), each(&|cpu| us(worst(document, cpu, |own| own.max))));
    row("busy, %", String::new(), each(&|cpu| busy(document, cpu)));
    let seconds = document.counted_s();
    for source in rows.iter().take(SOURCES) {
        let on = |cpu: u32| source.per_cpu.iter().find(|(own, _)| *own == cpu);
        let cell = |cpu: u32| on(cpu).map_or_else(String::new, |(_, n)| per_s(*n as f64 / seconds));
        row(&name(source), per_s(source.per_s), each(&cell));
    }
    table
}

/// How much is not in the table.
fn rest(sources: usize, hidden: usize) -> Option<String> {
    let more = sources.saturating_sub(SOURCES);
    let mut rest = Vec::new();
    if more > 0 {
        rest.push(format!("{more} more that moved less"));
    }
    if hidden > 0 {
        let cpus = if hidden == 1 { "CPU that was" } else { "CPUs that were" };
        rest.push(format!("{} {cpus} less late", count(hidden as u64)));
    }
    let rest = rest.join(", and ");
    (!rest.is_empty()).then(|| format!("and {rest}: interrupts.csv has all"))
}

/// The CPUs that are shown, in their order, and how many there are.
fn shown(document: &Document, rows: &[InterruptRow]) -> (Vec<u32>, usize) {
    let of_series = document.wakeups().filter_map(|series| series.cpu);
    let of_rows = rows.iter().flat_map(|row| row.per_cpu.iter().map(|(cpu, _)| *cpu));
    let all: BTreeSet<u32> = of_series.chain(of_rows).collect();
    let mut worst: HashMap<u32, Option<i64>> = HashMap::new();
    for series in document.wakeups() {
        let Some(cpu) = series.cpu else { continue };
        let known = worst.entry(cpu).or_default();
        *known = (*known).max(series.max);
    }
    let mut cpus: Vec<u32> = all.iter().copied().collect();
    cpus.sort_by_key(|cpu| Reverse(worst.get(cpu).copied().flatten()));
    cpus.truncate(CPUS);
    cpus.sort_unstable();
    (cpus, all.len())
}

/// The worst figure of the series that were measured on a CPU.
fn worst(
    document: &Document,
    cpu: u32,
    figure: impl Fn(&SeriesSummary) -> Option<i64>,
) -> Option<i64> {
    let own = document.wakeups().filter(|series| series.cpu == Some(cpu));
    own.filter_map(figure).max()
}

fn busy(document: &Document, cpu: u32) -> String {
    let cpus = document.machine.iter().flat_map(|machine| &machine.cpus);
    let own = cpus.into_iter().find(|own| own.cpu == cpu);
    own.map_or_else(|| "-".into(), |own| format!("{:.0}", own.busy * 100.0))
}

fn per_s(rate_per_s: f64) -> String {
    if rate_per_s >= 10.0 { rate(rate_per_s.round()) } else { format!("{rate_per_s:.1}") }
}

/// `LOC Local timer interrupts`, `36 virtio1-req.0`, `TIMER softirq`.
fn name(row: &InterruptRow) -> String {
    let is_device = row.source.parse::<u32>().is_ok();
    let words: Vec<&str> = row.description.split(' ').collect();
    // "PCI-MSIX-0000:00:02.0 1-edge virtio1-req.0": chip, line and kind, then the handlers.
    let kind = |word: &&str| ["edge", "level", "fasteoi"].iter().any(|end| word.ends_with(end));
    let handlers = words.iter().position(kind).map_or(0, |at| at + 1);
    let what = match (row.kind.as_str(), is_device) {
        ("softirq", _) => "softirq".to_owned(),
        (_, true) if handlers < words.len() => words.get(handlers..).unwrap_or(&[]).join(" "),
        _ => row.description.clone(),
    };
    let name = format!("{} {what}", row.source);
    if name.chars().count() <= NAME {
        return name.trim_end().to_owned();
    }
    name.chars().take(NAME - 1).chain(['~']).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::run::{Facts, conditions::ConditionsRecord};

    fn row(kind: &str, source: &str, description: &str) -> InterruptRow {
        InterruptRow {
            kind: kind.into(),
            source: source.into(),
            description: description.into(),
            per_s: 1.0,
            per_cpu: vec![(0, 2)],
        }
    }

    /// A run on `cpus` CPUs, the later in the list the later to answer.
    fn document(cpus: u32) -> Document {
        let series = |cpu: u32| {
            json!({
                "name": format!("cpu{cpu}"), "cpu": cpu, "unit": "ns", "count": 1, "missed": 0,
                "early": 0, "above": 0, "min": 1, "mean": 1, "stddev": 0,
                "max": 1_000_000 * (cpu + 1), "percentiles": {"99": 2_000 * (cpu + 1)},
                "uncertain": [], "scheduled": null,
            })
        };
        let document = json!({
            "schema_version": 1, "id": "i", "name": "n", "argv": [], "status": "complete",
            "validity": "valid", "caveats": [], "probe": {"name": "timer", "parameters": {}},
            "loads": [], "setup": {"asked": null, "found": {}},
            "trace": {"asked": "off", "found": "off"}, "facts": Facts::default(),
            "started_at": "", "ended_at": null, "duration_ns": 2_000_000_000_u64,
            "start_monotonic_ns": 1, "machine": {"cpus": [{"cpu": 9, "busy": 0.934, "steal": 0.0}]},
            "series": (0..cpus).map(series).collect::<Vec<_>>(),
        });
        Document::from_json(document).unwrap()
    }

    #[test]
    fn the_latest_cpus_and_the_busiest_sources_are_shown_and_the_rest_is_counted() {
        let mut rows: Vec<InterruptRow> =
            (0..20).map(|number| row("irq", &number.to_string(), "x")).collect();
        rows[0].per_cpu = vec![(2, 2_600), (9, 5)];
        let lines = lines(&document(10), &rows, None);
        let cells = |at: usize| lines[at].split_whitespace().collect::<Vec<_>>();
        let cpus: Vec<String> = (2..10).map(|cpu| format!("cpu{cpu}")).collect();
        assert_eq!(cells(0)[4..], cpus, "cpu0 and cpu1 were the least late");
        assert_eq!(cells(1)[3..], ["6.0", "8.0", "10.0", "12.0", "14.0", "16.0", "18.0", "20.0"]);
        assert_eq!(cells(2).last(), Some(&"10,000"));
        assert_eq!(cells(3)[2..], ["-", "-", "-", "-", "-", "-", "-", "93"]);
        assert_eq!(cells(4), ["0", "x", "1.0", "1,300", "2.5"], "a CPU without any has none");
        let last = "and 8 more that moved less, and 2 CPUs that were less late: interrupts.csv \
                    has all";
        assert_eq!((lines.len(), lines[16].as_str()), (17, last));
        assert_eq!(super::lines(&document(1), &[], None), [""; 0]);
        let narrow = super::lines(&document(10), &rows, Some(60));
        assert!(narrow[..16].iter().all(|line| line.chars().count() <= 60), "{narrow:?}");
        let shown = narrow[0].split_whitespace().filter(|word| word.starts_with("cpu")).count();
        assert!((1..8).contains(&shown) && narrow[0].ends_with("cpu9"), "the latest stay");
        assert!(narrow[16].contains(&format!("and {} CPUs that were", 10 - shown)), "{narrow:?}");
    }

    #[test]
    fn counts_are_divided_by_the_time_in_which_they_were_counted() {
        let rows = [InterruptRow { per_cpu: vec![(0, 2_000)], ..row("irq", "LOC", "timer") }];
        let on_cpu0 = |document: &Document| {
            let lines = lines(document, &rows, None);
            lines[4].split_whitespace().last().map(str::to_owned).unwrap()
        };
        let mut run = document(1);
        assert_eq!(on_cpu0(&run), "1,000");
        run.parameters.warmup_ns = 3_000_000_000;
        assert_eq!(on_cpu0(&run), "400", "an old run counted in its warm-up too");
        run.conditions =
            Some(ConditionsRecord { counted_ns: Some(2_500_000_000), ..Default::default() });
        assert_eq!(on_cpu0(&run), "800");
    }

    #[test]
    fn a_source_is_named_as_people_know_it() {
        let device = row("irq", "36", "PCI-MSIX-0000:00:02.0 1-edge virtio1-req.0");
        assert_eq!(name(&device), "36 virtio1-req.0");
        let shared = row("irq", "16", "IO-APIC 16-fasteoi i801_smbus, snd_hda_intel:card0");
        assert_eq!(name(&shared), "16 i801_smbus, snd_hda_intel:card0");
        let own = row("irq", "LOC", "Local timer interrupts");
        assert_eq!(name(&own), "LOC Local timer interrupts");
        assert_eq!(name(&row("softirq", "TIMER", "")), "TIMER softirq");
        let odd = row("irq", "7", &"x".repeat(100));
        assert_eq!(name(&odd).chars().count(), NAME);
        assert_eq!(name(&row("irq", "9", "")), "9");
    }
}
