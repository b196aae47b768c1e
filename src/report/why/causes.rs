//! The table of causes per band: a row a kind, and below it its names.

use std::{cmp::Reverse, collections::BTreeMap};

use super::{
    phrases::is_probable,
    terminal_text::{DIM, TerminalText},
};
use crate::{
    analysis::bands::{Band, CauseInBand, LATE},
    plain::cut,
    report::{
        causes::words::{figure, head as label},
        table::{Table, us},
    },
    run::{peaks::Cause, probes::SampleName},
    units::count,
};

/// Names below one kind at the most, and the share of a band from which they have a row.
const MOST_NAMES: usize = 5;
const LEAST_SHARE: f64 = 0.01;
/// Kinds with less than this in every band share a row.
const LEAST_KIND: f64 = 0.002;
/// Names are cut after this number of characters.
const NAME: usize = 32;
/// Before what is mostly an inference.
const PROBABLY: &str = "~ ";

/// One kind of cause in all bands, or one name of it.
struct Row<'a> {
    kind: Cause,
    name: Option<&'a str>,
    /// A share a band.
    shares: Vec<f64>,
    /// Most of it is an inference.
    is_probable: bool,
}

impl<'a> Row<'a> {
    /// Of these causes, each with the place of its band among so many.
    fn of(
        kind: Cause,
        name: Option<&'a str>,
        bands: usize,
        causes: &[(usize, &CauseInBand)],
    ) -> Self {
        let mut shares = vec![0.0; bands];
        for (band, cause) in causes {
            if let Some(share) = shares.get_mut(*band) {
                *share += cause.share;
            }
        }
        let is_probable = is_probable(causes.iter().map(|(_, cause)| *cause));
        Self { kind, name, shares, is_probable }
    }

    fn most(&self) -> f64 {
        self.shares.iter().copied().fold(0.0, f64::max)
    }

    /// Its name, marked where it is mostly an inference.
    fn marked(&self, name: &str) -> String {
        format!("{}{}", if self.is_probable { PROBABLY } else { "" }, cut(name, NAME))
    }
}

/// The table; nothing without bands.
pub(super) fn push(sheet: &mut TerminalText, bands: &[Band], sample: SampleName) {
    if bands.is_empty() {
        return;
    }
    let mut headings = vec!["share of analyzed late time, %".to_owned()];
    headings.extend(bands.iter().map(|band| match band.name.as_str() {
        "worst" => "10 worst".to_owned(),
        LATE => "late cycles".to_owned(),
        name => format!("> {name}"),
    }));
    let mut table = Table::new(1, &headings.iter().map(String::as_str).collect::<Vec<_>>());
    let kinds = kinds(bands);
    let (large, small): (Vec<_>, Vec<_>) =
        kinds.into_iter().partition(|row| row.most() >= LEAST_KIND);
    let mut is_inferred = false;
    for kind in &large {
        let names = names(kind.kind, bands);
        is_inferred |= names.iter().any(|name| name.is_probable);
        push_kind(&mut table, kind, &names);
    }
    if !small.is_empty() {
        let sum = |at: usize| small.iter().filter_map(|row| row.shares.get(at)).sum::<f64>();
        let cells = (0..bands.len()).map(|at| share(sum(at)));
        table.row(row("all others".into(), cells));
    }
    // Of late cycles the first lines say how many were analyzed.
    if bands.iter().any(|band| band.name != LATE) {
        push_bands(&mut table, bands, sample);
    }
    sheet.table(&table, "");
    if is_inferred {
        sheet.line(DIM, "~ mostly inferred, not traced; evidence: --peaks");
    }
    sheet.gap();
}

/// What each band is of, and how much of it was analyzed.
fn push_bands(table: &mut Table, bands: &[Band], sample: SampleName) {
    table.row(vec![String::new()]);
    table.row(row("latency from, us".into(), bands.iter().map(|band| us(Some(band.from)))));
    table.row(row(sample.many().into(), bands.iter().map(|band| count(band.wakeups))));
    let blamed = bands.iter().map(|band| figure(band.blamed_share));
    table.row(row("analyzed, % of their time".into(), blamed));
}

/// A kind with its sum, and its names below it; where one name is all that is worth a row, in one.
fn push_kind(table: &mut Table, kind: &Row<'_>, names: &[Row<'_>]) {
    let head = label(kind.kind);
    let cells = |row: &Row<'_>| row.shares.iter().map(|own| share(*own)).collect::<Vec<_>>();
    let name = |row: &Row<'_>| row.marked(row.name.unwrap_or_default());
    let is_shown = |name: &&Row<'_>| name.most() >= LEAST_SHARE;
    let shown: Vec<&Row<'_>> = names.iter().filter(is_shown).take(MOST_NAMES).collect();
    if let (Some(first), 0 | 1) = (names.first(), shown.len()) {
        let own = if first.name == Some(head) { first.marked("") } else { name(first) };
        let more = names.len() - 1;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let text = format!("{head}  {own}{more}");
        table.row(row(text.trim_end().to_owned(), cells(kind).into_iter()));
        return;
    }
    table.row(row(head.into(), cells(kind).into_iter()));
    for own in &shown {
        table.row(row(format!("  {}", name(own)), cells(own).into_iter()));
    }
    let more = names.len() - shown.len();
    if more > 0 {
        table.row(vec![format!("  and {more} more")]);
    }
}

fn row(first: String, cells: impl Iterator<Item = String>) -> Vec<String> {
    std::iter::once(first).chain(cells).collect()
}

fn share(share: f64) -> String {
    if share > 0.0 { figure(share) } else { String::new() }
}

/// All causes, each with the place of its band.
fn causes(bands: &[Band]) -> impl Iterator<Item = (usize, &CauseInBand)> {
    let placed = bands.iter().enumerate();
    placed.flat_map(|(at, band)| band.causes.iter().map(move |cause| (at, cause)))
}

/// The kinds: by their share in the band of which the sentence speaks, then by their largest; what
/// is unexplained comes last.
fn kinds(bands: &[Band]) -> Vec<Row<'_>> {
    let mut kinds: BTreeMap<Cause, Vec<(usize, &CauseInBand)>> = BTreeMap::new();
    for (band, cause) in causes(bands) {
        kinds.entry(cause.cause).or_default().push((band, cause));
    }
    let row = |(kind, own): (Cause, Vec<_>)| Row::of(kind, None, bands.len(), &own);
    let mut rows: Vec<Row<'_>> = kinds.into_iter().map(row).collect();
    sort(&mut rows, bands);
    rows.sort_by_key(|row| row.kind == Cause::Unexplained);
    rows
}

/// The names of one kind, as [`kinds`].
fn names(kind: Cause, bands: &[Band]) -> Vec<Row<'_>> {
    let mut names: BTreeMap<&str, Vec<(usize, &CauseInBand)>> = BTreeMap::new();
    for (band, cause) in causes(bands).filter(|(_, cause)| cause.cause == kind) {
        names.entry(&cause.name).or_default().push((band, cause));
    }
    let row = |(name, own): (_, Vec<_>)| Row::of(kind, Some(name), bands.len(), &own);
    let mut rows: Vec<Row<'_>> = names.into_iter().map(row).collect();
    sort(&mut rows, bands);
    rows
}

fn sort(rows: &mut [Row<'_>], bands: &[Band]) {
    let of = |name: &str| bands.iter().position(|band| band.name == name);
    let said = of(LATE).or_else(|| of("p99.9")).unwrap_or(0);
    // In steps of a tenth of a per cent, so that what is equal to the eye is sorted by the rest.
    let step = |share: f64| (share * 1e3).round() as u64;
    rows.sort_by_key(|row| {
        let said = row.shares.get(said).copied().unwrap_or(0.0);
        Reverse((step(said), step(row.most())))
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cpu_ns, eventually};

    fn band(name: &str, causes: &[(Cause, &str, f64)]) -> Band {
        let of = |(cause, name, share): &(Cause, &str, f64)| CauseInBand {
            cause: *cause,
            name: (*name).into(),
            ns: 1,
            share: *share,
            inferred: 0.0,
            series: Vec::new(),
        };
        let causes = causes.iter().map(of).collect();
        Band { name: name.into(), from: 1, to: 2, wakeups: 3, ns: 4, blamed_share: 1.0, causes }
    }

    #[test]
    fn kinds_have_their_sum_and_names_stand_below_them() {
        let bands = [
            band("p99", &[(Cause::Softirq, "NET_RX", 0.6), (Cause::Unexplained, "asleep", 0.4)]),
            band(
                "p99.9",
                &[
                    (Cause::Nonpreemptible, "exit_mmap", 0.5),
                    (Cause::Nonpreemptible, "kill", 0.25),
                    (Cause::Softirq, "NET_RX", 0.2),
                    (Cause::Nonpreemptible, "small", 0.005),
                    (Cause::Lock, "tiny", 0.001),
                ],
            ),
        ];
        let mut sheet = TerminalText::default();
        push(&mut sheet, &bands, SampleName::WakeUp);
        let text = anstream::adapter::strip_str(&sheet.done()).to_string();
        let words: Vec<String> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        let wanted = [
            "share of analyzed late time, % > p99 > p99.9",
            "non-preemptible 76",
            "exit_mmap 50",
            "kill 25",
            "and 1 more",
            "softirq NET_RX 60 20",
            "unexplained asleep 40",
            "all others 0.1",
            "",
            "latency from, us 0.0 0.0",
            "wake-ups 3 3",
            "analyzed, % of their time 100 100",
            "",
        ];
        assert_eq!(words, wanted, "{text}");
    }

    #[test]
    fn what_is_mostly_inferred_is_marked() {
        let mut band = band("p99", &[(Cause::Host, "hypervisor", 0.6), (Cause::Softirq, "A", 0.4)]);
        band.causes[0].inferred = 0.9;
        let mut sheet = TerminalText::default();
        push(&mut sheet, &[band], SampleName::WakeUp);
        let text = anstream::adapter::strip_str(&sheet.done()).to_string();
        assert!(text.contains("~ hypervisor  ") && text.contains("~ mostly inferred"), "{text}");
        assert!(!text.contains("~ A"), "{text}");
    }

    #[test]
    fn the_time_grows_with_the_number_of_names_and_not_with_its_square() {
        let of = |count: usize| {
            let names: Vec<String> = (0..count).map(|at| format!("task{at}")).collect();
            let causes: Vec<_> =
                names.iter().map(|name| (Cause::Thread, name.as_str(), 1.0 / 3e4)).collect();
            let bands = [band("p99", &causes), band("p99.9", &causes)];
            cpu_ns(|| push(&mut TerminalText::default(), &bands, SampleName::WakeUp))
        };
        let is_fast = || of(8_000) < 80 * of(500);
        assert!(eventually(is_fast), "8000 names take 80 times as long as 500");
    }
}
