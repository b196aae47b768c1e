//! Shares of a CPU's time, once a run of threads that never sleep is over: what the host took by
//! its own count, and, where gaps were traced, what took the rest.

use crate::run::{
    Document, FigureHead, FigureRecord, FigureUnit,
    figures::summarize_figure,
    peaks::{Blame, Cause},
    probes::ProbeInfo,
};

/// What is lost in gaps whose cause was not looked for, for want of time.
const NOT_ANALYSED: &str = "not_analysed";

/// The figures that follow from the record and from `blame`; none of a probe whose threads sleep.
pub(super) fn figures(document: &Document, blame: Option<&Blame>) -> Vec<FigureRecord> {
    if !ProbeInfo::find(document.probe.name()).is_some_and(ProbeInfo::never_sleeps) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for series in document.wakeups() {
        found.extend(series.cpu.and_then(|cpu| stolen(document, &series.name, cpu)));
        if let (Some(blame), Some(lost)) = (blame, lost(document, &series.name)) {
            found.extend(by_cause(blame, &series.name, lost, document.duration_ns));
        }
    }
    found
}

fn percent(name: String, value: f64) -> FigureRecord {
    summarize_figure(&FigureHead { name, unit: FigureUnit::Percent }, &[value])
}

/// By the steal clock of the kernel.
fn stolen(document: &Document, series: &str, cpu: u32) -> Option<FigureRecord> {
    let used = document.machine.as_ref()?.cpus.iter().find(|used| used.cpu == cpu)?;
    Some(percent(format!("{series}/stolen"), used.steal * 100.0))
}

/// The lost share of a series, in percent.
fn lost(document: &Document, series: &str) -> Option<f64> {
    let name = format!("{series}/lost");
    document.figures.iter().find(|figure| figure.name == name)?.mean
}

/// What the gaps of a series were blamed on, in the order of tables; it sums to what was lost.
fn by_cause(blame: &Blame, series: &str, lost: f64, duration_ns: u64) -> Vec<FigureRecord> {
    let of = |cause: Cause| -> u64 {
        let is_own = |number: u32| {
            let known = blame.causes.get(number as usize);
            known.is_some_and(|known| known.cause == cause && known.series == series)
        };
        let parts = blame.buckets.iter().flat_map(|bucket| &bucket.parts);
        parts.filter(|(number, ..)| is_own(*number)).map(|(.., ns)| ns).sum()
    };
    let share = |ns: u64| ns as f64 / duration_ns.max(1) as f64 * 100.0;
    let named: Vec<(Cause, f64)> =
        Cause::ALL.map(|cause| (cause, share(of(cause)))).into_iter().collect();
    let rest = (lost - named.iter().map(|(_, share)| share).sum::<f64>()).max(0.0);
    let some = named.into_iter().filter(|(_, share)| *share > 0.0);
    let some = some.map(|(cause, share)| percent(format!("{series}/lost/{}", cause.code()), share));
    some.chain([percent(format!("{series}/lost/{NOT_ANALYSED}"), rest)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::peaks::{Basis, CauseOf, LatencyBucket};

    #[test]
    fn the_causes_of_a_series_and_what_was_not_analysed_sum_to_what_was_lost() {
        let cause = |series: &str, cause| CauseOf {
            series: series.into(),
            cause,
            name: "n".into(),
            basis: Basis::Measured,
        };
        let causes = vec![
            cause("cpu0", Cause::Thread),
            cause("cpu0", Cause::Hardirq),
            cause("cpu1", Cause::Thread),
            cause("cpu0", Cause::Thread),
        ];
        let bucket = |parts: &[(u32, u64, u64)]| LatencyBucket {
            low_ns: 0,
            wakeups: 1,
            ns: 0,
            parts: parts.to_vec(),
        };
        let buckets = vec![bucket(&[(0, 1, 200), (1, 1, 50)]), bucket(&[(2, 1, 900), (3, 1, 100)])];
        let blame = Blame { causes, buckets, ..Blame::default() };
        let found = by_cause(&blame, "cpu0", 40.0, 1_000);
        let named: Vec<_> = found.iter().map(|one| (one.name.as_str(), one.mean)).collect();
        let expected = [
            ("cpu0/lost/hardirq", Some(5.0)),
            ("cpu0/lost/thread", Some(30.0)),
            ("cpu0/lost/not_analysed", Some(5.0)),
        ];
        assert_eq!(named, expected);
    }
}
