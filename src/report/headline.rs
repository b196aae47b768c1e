//! The sentence for a manager: how late, how often, and the worst.

use super::{
    cycles_headline, figures, messages,
    sample_name::{self, SampleName},
};
use crate::{
    run::{
        AttachedCommand, Document, MissedPeriods, Percentiles, ProbeRecord, SeriesSummary, Status,
        messages::ROUND_TRIP, probes::LatencyFrom,
    },
    units::{Nanos, count},
};

/// One sentence: how late, how often, and the worst.
#[must_use]
pub fn headline(document: &Document) -> String {
    headline_because(document, None)
}

/// The same, with why the worst was late where that is known: `while interrupts were off in ext4`.
#[must_use]
pub fn headline_because(document: &Document, why: Option<&str>) -> String {
    let text = failed_command(document) + &measured(document, why);
    match document.without_host {
        Some(_) => format!("Without the host: {text}"),
        None => text,
    }
}

/// How a command that was attached to failed, before what was measured of it.
pub(super) fn failed_command(document: &Document) -> String {
    let Some(record) = &document.attached else { return String::new() };
    let Some(how) = record.command.as_ref().and_then(AttachedCommand::failure) else {
        return String::new();
    };
    let after = record.ended_ns.map_or_else(String::new, |ns| format!(" after {}", Nanos(ns)));
    format!("The command {how}{after}. ")
}

fn measured(document: &Document, why: Option<&str>) -> String {
    if let Some(text) = cycles_headline::sentence(document, why) {
        return text;
    }
    let Some((worst, max)) = worst_of(document) else {
        return no_gap(document)
            .or_else(|| figures::sentence(document))
            .unwrap_or_else(|| "Nothing was measured.".into());
    };
    if SampleName::of(document) == SampleName::Wait {
        return waits(document);
    }
    if document.status == Status::Imported
        && document.wakeups().any(|series| series.count > 0 && series.percentiles.is_empty())
    {
        return without_percentiles(document, (worst, max));
    }
    let missed = MissedInAll::of(document);
    let views = match missed.come_first() {
        true => per_period(document),
        false => per_sample(document),
    };
    let views = if document.attached.is_some() { busy(views) } else { views };
    let (name, ns) = certain_percentile(&views);
    let why = why.map(|why| format!(", {why}")).unwrap_or_default();
    let (within, worst) = match SampleName::of(document) {
        SampleName::RoundTrip => round_trips(ns, max),
        SampleName::Packet => packets(document, ns, (worst, max)),
        SampleName::Gap => gaps(ns, (worst, max)),
        SampleName::Frame => frames(ns, (worst, max)),
        SampleName::WakeUp | SampleName::Wait | SampleName::Sample | SampleName::Response => {
            wakeups(ns, (worst, max), &missed)
        }
    };
    let mut text = format!("{name}% of {within}; the worst {worst}{why}.");
    match MissedInAll::of_work(document).filter(|work| work.missed > missed.missed) {
        Some(work) => text.push_str(&format!(" {}.", work.words_of_work(missed.missed))),
        None if missed.missed > 0 => text.push_str(&format!(" {}.", missed.words())),
        None => {}
    }
    text.push_str(&missed_elsewhere(document, &missed));
    text.push_str(&most_lost(document));
    text.push_str(&deadlines_missed(document));
    if let Some(lost) = document.messages.as_ref().and_then(messages::losses) {
        text.push_str(&format!(" {lost}."));
    }
    text
}

/// Of a file that has no histogram: the worst alone.
fn without_percentiles(document: &Document, (worst, max): (&SeriesSummary, i64)) -> String {
    let samples = document.wakeups().map(|series| series.count).fold(0, u64::saturating_add);
    let (samples, name) = (count(samples), SampleName::of(document));
    let (max, place) = (Nanos(max), place(worst));
    format!("Of {samples} {} the worst was {max}, on {place}.", name.many())
}

/// The share that was at most `ns` late, and the lateness of the worst.
fn wakeups(ns: i64, (worst, max): (&SeriesSummary, i64), missed: &MissedInAll) -> (String, String) {
    let place = place(worst);
    let within = match missed.come_first() {
        true => format!("scheduled periods had their wake-up within {}", Nanos(ns)),
        false => format!("wake-ups were at most {} late", Nanos(ns)),
    };
    (within, format!("was {} late, on {place}", Nanos(max)))
}

fn gaps(ns: i64, (worst, max): (&SeriesSummary, i64)) -> (String, String) {
    let within = format!("gaps took at most {}", Nanos(ns));
    (within, format!("took {}, on {}", Nanos(max), place(worst)))
}

fn frames(ns: i64, (worst, max): (&SeriesSummary, i64)) -> (String, String) {
    let within = format!("frames were at most {} late", Nanos(ns));
    (within, format!("was {} late, of {}", Nanos(max), worst.name))
}

/// Of simulated tasks the one that met the fewest of its deadlines.
fn deadlines_missed(document: &Document) -> String {
    let ProbeRecord::Interactive(parameters) = &document.probe else { return String::new() };
    let met = parameters.tasks.iter().filter_map(|task| {
        let name = format!("{}/deadlines", task.name);
        let figure = document.figures.iter().find(|figure| figure.name == name)?;
        Some((&task.name, figure.mean?))
    });
    let least = met.min_by(|a, b| a.1.total_cmp(&b.1));
    least.map_or_else(String::new, |(task, share)| {
        format!(" {task} met {}% of its deadlines.", figures::number(share))
    })
}

/// The worst CPU's median wait for each of the two mutexes, and the longest wait of all.
fn waits(document: &Document) -> String {
    let of = |kind: &str| {
        let own = document.wakeups().filter(|series| series.name.ends_with(kind));
        let own: Vec<_> = own.filter_map(|series| Some((median(series)?, series.max?))).collect();
        let median = own.iter().map(|(median, _)| *median).max()?;
        let max = own.iter().map(|(_, max)| *max).max()?;
        Some(format!("{} (median; at most {})", Nanos(median), Nanos(max)))
    };
    let (with, without) = (of("-inherit"), of("-none"));
    let words = [(with, "with priority inheritance"), (without, "without")];
    let known = words.into_iter().filter_map(|(waits, how)| Some(format!("{} {how}", waits?)));
    format!("The high-priority thread waited {}.", known.collect::<Vec<_>>().join(", "))
}

fn median(series: &SeriesSummary) -> Option<i64> {
    i64::try_from(*series.percentiles.get("50")?).ok()
}

fn place(series: &SeriesSummary) -> String {
    match series.cpu {
        Some(cpu) => format!("CPU {cpu}"),
        None => sample_name::series(&series.name).into_owned(),
    }
}

/// That threads which never sleep had their CPUs all the time, or that a gap was longer than the
/// run; `None` if they did not spin.
fn no_gap(document: &Document) -> Option<String> {
    let ProbeRecord::Noise(noise) = &document.probe else { return None };
    let over = Nanos(noise.gap_over_ns);
    if cpu_that_lost_most(document).is_some_and(|(_, share)| share > 0.0) {
        let lost = most_lost(document);
        return Some(format!("No gap above {over} began and ended within the run, but{lost}"));
    }
    document.has_values().then(|| format!("No gap above {over} was found."))
}

/// Of threads that never sleep, the CPU that lost the largest share of its time.
fn cpu_that_lost_most(document: &Document) -> Option<(&SeriesSummary, f64)> {
    let lost = document.wakeups().filter_map(|series| {
        let name = format!("{}/lost", series.name);
        let figure = document.figures.iter().find(|figure| figure.name == name)?;
        Some((series, figure.mean?))
    });
    lost.max_by(|a, b| a.1.total_cmp(&b.1))
}

fn most_lost(document: &Document) -> String {
    cpu_that_lost_most(document).map_or_else(String::new, |(series, share)| {
        format!(" {} lost {}% of its time.", place(series), figures::number(share))
    })
}

fn round_trips(ns: i64, max: i64) -> (String, String) {
    let half = Nanos(half(ns));
    let within = format!("round trips took at most {} (one way {half}, as half of it)", Nanos(ns));
    (within, format!("took {}", Nanos(max)))
}

fn packets(document: &Document, ns: i64, (worst, max): (&SeriesSummary, i64)) -> (String, String) {
    if document.probe.info().is_some_and(|probe| probe.latency_from == LatencyFrom::Stamp) {
        let within = format!("packets were read within {} of their time stamp", Nanos(ns));
        return (within, format!("took {}", Nanos(max)));
    }
    // An echo sends each back: the whole way is measured by one clock, and its parts are less.
    if worst.name == ROUND_TRIP {
        let within = format!("packets were back within {} of their scheduled time", Nanos(ns));
        return (within, format!("was {} late", Nanos(max)));
    }
    let within = format!("packets came within {} of their scheduled time", Nanos(ns));
    let of = if document.wakeups().count() > 1 { format!(" {}", worst.name) } else { "".into() };
    (within, format!("was {} late{of}", Nanos(max)))
}

/// Half of a round trip: what stands for one way where only there and back was measured.
#[must_use]
pub const fn half(round_trip_ns: i64) -> i64 {
    round_trip_ns / 2
}

fn worst_of(document: &Document) -> Option<(&SeriesSummary, i64)> {
    let maxima = document.wakeups().filter_map(|series| Some((series, series.max?)));
    maxima.max_by_key(|(_, max)| *max)
}

/// Those of attached threads whose series has no view per period: they have another timer as well,
/// or other threads of their name another period.
fn missed_elsewhere(document: &Document, missed: &MissedInAll) -> String {
    let rows = document.attached.iter().flat_map(|record| &record.rows);
    let of_threads: u64 = rows.filter(|row| row.tid.is_some()).filter_map(|row| row.missed).sum();
    match of_threads.saturating_sub(missed.missed) {
        0 => String::new(),
        more => format!(
            " Individual threads missed {} more {}; see the thread table.",
            count(more),
            if more == 1 { "period" } else { "periods" }
        ),
    }
}

/// Periods of all series that were missed, because the wake-up before them came too late.
pub(super) struct MissedInAll {
    missed: u64,
    periods: u64,
    /// Each series that missed some has a view per period.
    have_view: bool,
}

impl MissedInAll {
    /// Of all series together.
    pub(super) fn of(document: &Document) -> Self {
        Self::of_series(&document.wakeups().collect::<Vec<_>>())
    }

    /// Of the work after wake-ups: also those that passed while a thread worked. `None` if there is
    /// no work that counts them.
    fn of_work(document: &Document) -> Option<Self> {
        let all: Vec<_> = document.responses().filter(|own| own.missed.is_some()).collect();
        (!all.is_empty()).then(|| Self::of_series(&all))
    }

    fn of_series(all: &[&SeriesSummary]) -> Self {
        let sum = |of: fn(&SeriesSummary) -> Option<u64>| {
            all.iter().filter_map(|series| of(series)).fold(0, u64::saturating_add)
        };
        Self {
            missed: sum(|series| series.missed),
            periods: sum(|series| Some(series.count.saturating_add(series.missed?))),
            have_view: all
                .iter()
                .all(|series| series.missed.unwrap_or(0) == 0 || series.scheduled.is_some()),
        }
    }

    /// The rule of the caveat `periods_missed`.
    const fn are_material(&self) -> bool {
        MissedPeriods::are_material(self.missed, self.periods)
    }

    /// So many that the scheduled view comes first. Those that a thread let pass while it worked
    /// are in no view of its wake-ups.
    pub(super) const fn come_first(&self) -> bool {
        self.have_view && self.are_material()
    }

    /// Of work, of which this number of periods had passed when it was begun.
    fn words_of_work(&self, by_wakeup: u64) -> String {
        let of_wakeups = match by_wakeup {
            0 => String::new(),
            _ => format!(", {} of them by its wake-up", count(by_wakeup)),
        };
        format!("{} by the end of the work{of_wakeups}", self.words())
    }

    fn words(&self) -> String {
        let missed = self.missed;
        match self.are_material() {
            true => format!("{} of {} periods were missed", count(missed), count(self.periods)),
            false if missed == 1 => "1 period was missed".into(),
            false => format!("{} periods were missed", count(missed)),
        }
    }
}

/// What percentiles are of.
struct View<'a> {
    count: u64,
    percentiles: &'a Percentiles,
    uncertain: &'a [String],
}

fn per_sample(document: &Document) -> Vec<View<'_>> {
    let views = document.wakeups().map(|series| View {
        count: series.count,
        percentiles: &series.percentiles,
        uncertain: &series.uncertain,
    });
    views.collect()
}

fn per_period(document: &Document) -> Vec<View<'_>> {
    let scheduled = document.wakeups().filter_map(|series| series.scheduled.as_ref());
    let views = scheduled.map(|own| View {
        count: own.count,
        percentiles: &own.percentiles,
        uncertain: &own.uncertain,
    });
    views.collect()
}

/// Without threads that woke up fewer than a hundredth as often as the busiest, as one that waits
/// for the others to end: a share of so few says nothing of the others.
fn busy(mut views: Vec<View<'_>>) -> Vec<View<'_>> {
    let most = views.iter().map(|view| view.count).max().unwrap_or(0);
    views.retain(|view| view.count >= most / 100);
    views
}

/// The highest percentile, up to 99.9, that has enough samples beyond it in every view; and the
/// largest value it has in any of them.
fn certain_percentile(views: &[View<'_>]) -> (&'static str, i64) {
    let worst = |name: &str| {
        views.iter().filter_map(|view| view.percentiles.get(name).copied()).max().unwrap_or(0)
    };
    let certain = |name: &str| {
        let measured = || views.iter().filter(|view| view.count > 0);
        measured().count() > 0
            && measured().all(|view| !view.uncertain.iter().any(|few| few == name))
    };
    let best = ["99.9", "99", "90"].into_iter().find(|name| certain(name)).unwrap_or("50");
    (best, i64::try_from(worst(best)).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
