//! One sentence: what made late wake-ups late.

use std::collections::BTreeMap;

use super::{
    WhyReport,
    phrases::{band as band_words, is_probable},
};
use crate::{
    analysis::bands::{Band, CauseInBand, LATE},
    report::causes::words::{percent, phrase},
    run::{
        peaks::{Basis, Cause, Part, Peak},
        probes::SampleName,
    },
    units::Nanos,
};

/// Below this share of blamed time, the sentence is about that.
const LITTLE: f64 = 0.5;
/// A second cause is named where the first has less than this, and the second at least that.
const NOT_ALL: f64 = 0.6;
const WORTH: f64 = 0.1;
/// A cause belongs to one CPU if that CPU has at least this share of it.
const ONE_CPU: f64 = 0.9;
/// A beat belongs to a cause if at least this share of its peaks is on it.
const ON_BEAT: f64 = 0.5;
/// Maximum number of names shown of one kind.
const NAMES: usize = 3;

/// The sentence of a run with this number of series of wake-ups.
pub(super) fn verdict(why: &WhyReport, series: usize) -> String {
    // With a deadline users look at late cycles, else above p99.9; short runs have less.
    let order = [LATE, "p99.9", "p99", "worst"];
    let named = |name| why.bands.iter().find(|band: &&Band| band.name == name);
    let Some(band) = order.into_iter().find_map(named) else {
        return match why.summed_ns {
            Some(0) => format!("Too few {} yet to name a cause.", why.sample.many()),
            None if let Some(worst) = why.peaks.first() => of_one(worst, why.sample),
            _ => format!("No {} was late enough to be analyzed.", why.sample.one()),
        };
    };
    let place = band_words(&band.name, why.sample);
    let kinds = kinds(band);
    let unexplained = band.share_of_all(|cause| cause.cause == Cause::Unexplained);
    if band.blamed_share < LITTLE {
        return little(band, &place, kinds.first());
    }
    let Some(first) = kinds.first() else {
        return format!("All of the time {place} that was analyzed is unexplained.");
    };
    let describe = |kind: &CauseSum<'_>| describe(why, kind, series);
    let (share, text) = describe(first);
    if unexplained > first.share {
        return format!(
            "{} of all time {place} is unexplained; the largest known cause is {text} ({}).",
            percent(unexplained),
            percent(share),
        );
    }
    let second = kinds.get(1).filter(|second| first.share < NOT_ALL && second.share >= WORTH);
    // A kind that is larger in all may be represented by a name that is smaller.
    let mut said = vec![(share, text)];
    said.extend(second.map(describe));
    said.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut sentence = String::new();
    for (share, text) in said {
        let share = percent(share);
        sentence += &match sentence.is_empty() {
            true => format!("{share} of all time {place} was {text}"),
            false => format!("; {share} was {text}"),
        };
    }
    if unexplained >= WORTH {
        sentence.push_str(&format!("; {} is unexplained", percent(unexplained)));
    }
    sentence + "."
}

/// Of a run that has no band: too few samples for one, or samples without a histogram.
fn of_one(worst: &Peak, sample: SampleName) -> String {
    let parts = worst.parts_by_name();
    let share = |part: &Part| part.ns as f64 / worst.latency_ns.max(1) as f64;
    let (unknown, known): (Vec<&Part>, Vec<&Part>) =
        parts.iter().partition(|part| part.cause == Cause::Unexplained);
    let mut said: Vec<String> = Vec::new();
    for part in known.into_iter().filter(|part| share(part) >= WORTH).take(NAMES) {
        let probably = if part.basis == Basis::Inferred { "probably " } else { "" };
        let words = phrase(part.cause, &part.name);
        said.push(format!("{} was {probably}{words}", percent(share(part))));
    }
    let unexplained: f64 = unknown.into_iter().map(share).sum();
    if unexplained >= WORTH {
        said.push(format!("{} is unexplained", percent(unexplained)));
    }
    let (one, late) = (sample.one(), Nanos(worst.latency_ns));
    match said.is_empty() {
        true => format!("The worst {one} that was kept, {late} on {}, has no cause.", worst.series),
        false => format!(
            "Of the worst {one} that was kept, {late} on {}, {}.",
            worst.series,
            said.join("; ")
        ),
    }
}

/// A kind of cause in a band, its share of all time, and its names, largest first.
struct CauseSum<'a> {
    share: f64,
    names: Vec<(&'a CauseInBand, f64)>,
}

/// The known kinds of a band, largest first.
fn kinds(band: &Band) -> Vec<CauseSum<'_>> {
    let mut kinds: Vec<CauseSum<'_>> = Vec::new();
    for cause in band.causes.iter().filter(|cause| cause.cause != Cause::Unexplained) {
        let share = cause.share * band.blamed_share;
        let is_its = |kind: &&mut CauseSum<'_>| {
            kind.names.first().is_some_and(|(first, _)| first.cause == cause.cause)
        };
        match kinds.iter_mut().find(is_its) {
            Some(kind) => {
                kind.share += share;
                kind.names.push((cause, share));
            }
            None => kinds.push(CauseSum { share, names: vec![(cause, share)] }),
        }
    }
    kinds.sort_by(|a, b| b.share.total_cmp(&a.share));
    kinds
}

/// When most of the time was skipped, the sentence says so first.
fn little(band: &Band, place: &str, first: Option<&CauseSum<'_>>) -> String {
    let blamed = percent(band.blamed_share);
    let most = first.and_then(|kind| kind.names.first()).map_or_else(String::new, |(cause, _)| {
        let text = named(&[cause], phrase(cause.cause, &cause.name));
        format!(", of which {} was {text}", percent(cause.share))
    });
    format!("Only {blamed} of the time {place} was analyzed{most}: the rest is not known.")
}

/// A kind by its largest name where that is most of it, else by several; with the share that this
/// has, where it was, and how regularly it came.
fn describe(why: &WhyReport, kind: &CauseSum<'_>, series: usize) -> (f64, String) {
    let Some((first, share)) = kind.names.first() else { return (0.0, String::new()) };
    if *share >= NOT_ALL * kind.share {
        let mut text = named(&[first], phrase(first.cause, &first.name));
        if series > 1
            && let Some(place) = one_place(&[first])
        {
            text.push_str(&format!(", on {place}"));
        }
        text.push_str(&regularity(why, first));
        return (*share, text);
    }
    let causes: Vec<&CauseInBand> = kind.names.iter().map(|(cause, _)| *cause).collect();
    let mut text = named(&causes, phrase(first.cause, ""));
    if series > 1
        && let Some(place) = one_place(&causes)
    {
        text.push_str(&format!(", on {place}"));
    }
    let name =
        |(cause, share): &(&CauseInBand, f64)| format!("{} ({})", cause.name, percent(*share));
    let shown: Vec<String> = kind.names.iter().take(NAMES).map(name).collect();
    let more = kind.names.len() - shown.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (kind.share, format!("{text}: {}{more}", shown.join(", ")))
}

/// The words of a kind of cause; as probable where most of its time is an inference.
fn named(causes: &[&CauseInBand], words: String) -> String {
    if is_probable(causes.iter().copied()) { format!("probably {words}") } else { words }
}

/// The CPU that has nearly all of these.
fn one_place(causes: &[&CauseInBand]) -> Option<String> {
    let mut shares: BTreeMap<&str, f64> = BTreeMap::new();
    for share in causes.iter().flat_map(|cause| &cause.series) {
        *shares.entry(share.series.as_str()).or_default() += share.ns as f64;
    }
    let all: f64 = shares.values().sum();
    let (most, ns) = shares.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let cpu = most.strip_prefix("cpu").filter(|rest| rest.parse::<u32>().is_ok());
    let place = cpu.map_or_else(|| most.to_owned(), |cpu| format!("CPU {cpu}"));
    (ns >= ONE_CPU * all).then_some(place)
}

/// The beat of a cause, and whether it hits several CPUs at once.
fn regularity(why: &WhyReport, cause: &CauseInBand) -> String {
    let mut text = String::new();
    let is_its = |own: (Cause, &String)| own == (cause.cause, &cause.name);
    let beat = why.periodic.iter().find(|beat| is_its((beat.cause, &beat.name)));
    if let Some(beat) = beat.filter(|beat| beat.period.share >= ON_BEAT) {
        text.push_str(&format!(", every {}", every(beat.period.period_ns)));
    }
    let is_shared = why.together.as_ref().is_some_and(|together| {
        is_its((together.cause, &together.name)) && together.cause_share >= ON_BEAT
    });
    if is_shared {
        text.push_str(", on several CPUs at once");
    }
    text
}

/// A period: `50 ms` where it is nearly that, else `33.4 ms`.
pub(super) fn every(period_ns: f64) -> String {
    let text = Nanos(period_ns as i64).to_string();
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        analysis::{bands::SeriesShare, period::Periodicity},
        report::{sample_name::SampleName, why::PeriodicCause},
    };

    fn cause(cause: Cause, name: &str, share: f64, on: &[(&str, u64)]) -> CauseInBand {
        let series = |(series, ns): &(&str, u64)| SeriesShare { series: (*series).into(), ns: *ns };
        let ns = on.iter().map(|(_, ns)| ns).sum();
        let series = on.iter().map(series).collect();
        CauseInBand { cause, name: name.into(), ns, share, inferred: 0.0, series }
    }

    fn why(blamed_share: f64, causes: Vec<CauseInBand>) -> WhyReport {
        let band = Band {
            name: "p99.9".into(),
            from: 1,
            to: 2,
            wakeups: 10,
            ns: 1_000,
            blamed_share,
            causes,
        };
        WhyReport { run: "r".into(), bands: vec![band], ..WhyReport::default() }
    }

    #[test]
    fn a_cause_that_leads_is_reported_with_its_cpu_and_its_period() {
        let console = cause(Cause::IrqsOff, "console_unlock", 0.61, &[("cpu1", 95), ("cpu0", 5)]);
        let mut why = why(1.0, vec![console]);
        let period = Periodicity {
            period_ns: 50_000_400.0,
            events: 100,
            share: 0.9,
            spread_ns: 0.0,
            false_alarm: 0.0,
        };
        why.periodic.push(PeriodicCause {
            cause: Cause::IrqsOff,
            name: "console_unlock".into(),
            series: vec!["cpu1".into()],
            period,
        });
        assert_eq!(
            verdict(&why, 2),
            "61% of all time above p99.9 was interrupts off in console_unlock, on CPU 1, every \
             50 ms."
        );
        assert!(!verdict(&why, 1).contains("CPU"), "one CPU has no other");
    }

    #[test]
    fn a_cause_of_which_most_is_inferred_is_probable() {
        let with = |inferred| {
            let host = cause(Cause::Host, "hypervisor (steal)", 0.7, &[("cpu0", 1), ("cpu1", 1)]);
            verdict(&why(1.0, vec![CauseInBand { inferred, ..host }]), 2)
        };
        assert!(with(0.6).contains("was probably "), "{}", with(0.6));
        assert!(!with(0.4).contains("probably"), "{}", with(0.4));
    }

    #[test]
    fn what_is_unexplained_leads_where_it_is_more_than_any_cause() {
        let unexplained = cause(Cause::Unexplained, "unexplained", 0.5, &[("cpu0", 1)]);
        let softirq = cause(Cause::Softirq, "NET_RX", 0.25, &[("cpu0", 1), ("cpu1", 1)]);
        let text = verdict(&why(0.8, vec![unexplained.clone(), softirq]), 2);
        let wanted = "40% of all time above p99.9 is unexplained; the largest known cause is \
                      softirq NET_RX (20%).";
        assert_eq!(text, wanted);
        let text = verdict(&why(0.8, vec![unexplained]), 2);
        assert_eq!(text, "All of the time above p99.9 that was analyzed is unexplained.");
    }

    #[test]
    fn a_second_cause_is_reported_where_the_first_is_not_most_of_it() {
        let first = cause(Cause::Host, "steal", 0.5, &[]);
        let second = cause(Cause::Thread, "migration/0", 0.3, &[]);
        let rest = cause(Cause::Unexplained, "", 0.2, &[]);
        assert_eq!(
            verdict(&why(1.0, vec![first, second, rest]), 2),
            "50% of all time above p99.9 was the virtual machine's host: steal; 30% was task \
             migration/0, which ran first; 20% is unexplained."
        );
    }

    #[test]
    fn of_two_that_are_reported_the_larger_comes_first() {
        let names = [("a", 0.18), ("b", 0.05)];
        let mut causes: Vec<CauseInBand> =
            names.map(|(name, share)| cause(Cause::IrqsOff, name, share, &[])).into();
        causes.push(cause(Cause::Host, "steal", 0.21, &[]));
        causes.push(cause(Cause::Softirq, "RCU", 0.1, &[]));
        let said = verdict(&why(1.0, causes), 2);
        assert!(said.starts_with("21% of all time above p99.9 was the virtual"), "{said}");
        assert!(said.contains("; 18% was interrupts off in a"), "{said}");
    }

    #[test]
    fn a_kind_of_many_names_is_reported_as_one_with_the_largest_of_them() {
        let on = [("cpu0", 1), ("cpu1", 1)];
        let names = [("a", 0.3), ("b", 0.25), ("c", 0.2), ("d", 0.1), ("e", 0.1)];
        let mut causes: Vec<CauseInBand> =
            names.map(|(name, share)| cause(Cause::Nonpreemptible, name, share, &on)).into();
        causes.push(cause(Cause::Host, "steal", 0.05, &on));
        assert_eq!(
            verdict(&why(1.0, causes), 2),
            "95% of all time above p99.9 was kernel work that cannot be preempted: a (30%), b \
             (25%), c (20%) and 2 more."
        );
    }

    #[test]
    fn little_blame_and_none_are_said_to_be_that() {
        let host = cause(Cause::Host, "steal", 0.9, &[]);
        assert_eq!(
            verdict(&why(0.12, vec![host]), 2),
            "Only 12% of the time above p99.9 was analyzed, of which 90% was the virtual machine's \
             host: steal: the rest is not known."
        );
        let mut none = why(0.0, Vec::new());
        assert!(verdict(&none, 2).starts_with("Only 0% of the time"));
        none.bands.clear();
        assert_eq!(verdict(&none, 2), "No wake-up was late enough to be analyzed.");
        none.summed_ns = Some(0);
        assert_eq!(verdict(&none, 2), "Too few wake-ups yet to name a cause.");
    }

    #[test]
    fn a_run_of_messages_speaks_of_round_trips() {
        let mut none = WhyReport { sample: SampleName::RoundTrip, ..why(0.0, Vec::new()) };
        none.bands[0].name = "worst".into();
        let text = verdict(&none, 1);
        assert!(text.contains("in the ten worst round trips"), "{text}");
        none.bands.clear();
        assert_eq!(verdict(&none, 1), "No round trip was late enough to be analyzed.");
    }

    #[test]
    fn periods_are_reported_as_people_say_them() {
        assert_eq!(["50 ms", "33.4 ms", "1 s"], [50_000_400.0, 33_370_000.0, 1e9].map(every));
    }
}
