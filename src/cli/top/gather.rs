//! From what a look at the run and at the machine brought to the values that are shown.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use rustix::process::getpid;
use tardy_hot::clock::now_ns;

use super::machine::{self, Machine, MachineNow};
use crate::{
    live::{CauseRow, CaveatLine, KeptSample, LiveStatus, LiveView, LoadState, SeriesRow},
    report::{causes::words::label, words},
    run::{
        Document, Effect, LiveLoad, Origin, Status,
        follow::{FollowedSeries, KeptPeak, MainPart, RecentCauses, RunFollower},
        peaks::Basis,
        probes::{ProbeInfo, SampleName},
        series_name::whole_of_response,
    },
    sys::usage::cpu_time,
    units::{Nanos, many, rate, span},
};

/// Percentiles of the table.
const SHARES: [f64; 2] = [0.5, 0.99];

/// Sums that are older than this are said to be, s.
const OLD_S: f64 = 3.0;

/// What is followed, and the machine around it.
#[derive(Debug)]
pub(super) struct Gatherer {
    follower: RunFollower,
    machine: Machine,
    began: Instant,
    used: Duration,
    /// The samples that were kept whole at the last look, for those who open one.
    kept: Vec<KeptPeak>,
}

impl Gatherer {
    pub(super) fn new(follower: RunFollower) -> Self {
        Self {
            follower,
            machine: Machine::new(),
            began: Instant::now(),
            used: own_time(),
            kept: Vec::new(),
        }
    }

    pub(super) const fn follower(&self) -> &RunFollower {
        &self.follower
    }

    /// Looks at everything.
    pub(super) fn look(&mut self) -> LiveView {
        self.follower.look();
        let document = self.follower.document();
        let is_here = machine::is_here(document);
        let is_over = document.status != Status::Running;
        let now = match is_here && !is_over {
            true => self.machine.look(&machine::measured(document)),
            false => MachineNow::default(),
        };
        self.kept = self.follower.worst();
        self.view(now, is_here)
    }

    fn view(&self, now: MachineNow, is_here: bool) -> LiveView {
        let document = self.follower.document();
        let elapsed_s = self.elapsed_s(is_here);
        let (causes, causes_of, causes_are) = self.causes(elapsed_s);
        let sample = SampleName::of(document);
        LiveView {
            name: document.name.clone(),
            probe: probe(document),
            status: status(document, elapsed_s),
            elapsed_s,
            left_s: self.left_s(elapsed_s),
            sample: (sample.one(), sample.many()),
            read: self.follower.read(),
            rows: self.rows(elapsed_s),
            kept: self.kept.iter().map(|peak| kept(peak, document)).collect(),
            causes,
            causes_of,
            causes_are,
            cpus: now.cpus,
            interrupts: now.interrupts,
            no_machine: no_machine(document, is_here),
            loads: self.loads(elapsed_s),
            caveats: self.reasons(),
            own_share: self.own_share(),
        }
    }

    /// Since the start, s: by the clock of the run where it continues here, else by its log.
    fn elapsed_s(&self, is_here: bool) -> f64 {
        let document = self.follower.document();
        match document.status {
            Status::Running if is_here => (now_ns() - document.start_monotonic_ns) as f64 / 1e9,
            Status::Running | Status::Crashed => self.follower.end_s(),
            _ => document.duration_ns as f64 / 1e9,
        }
    }

    fn left_s(&self, elapsed_s: f64) -> Option<f64> {
        let parameters = &self.follower.document().parameters;
        if let Some(duration_ns) = parameters.duration_ns {
            return Some(duration_ns as f64 / 1e9 - elapsed_s);
        }
        let wanted = parameters.samples? as f64;
        let done = self.follower.series().iter().map(|series| series.totals.count).min()? as f64;
        (done > 0.0).then(|| (wanted - done).max(0.0) * elapsed_s / done)
    }

    fn rows(&self, elapsed_s: f64) -> Vec<SeriesRow> {
        let second = elapsed_s.min(self.follower.end_s() + 2.0).floor() as i64;
        let series = self.follower.series().iter().enumerate();
        let judged = self.judged();
        let leads = |name: &str| match whole_of_response(name) {
            Some(whole) => judged.contains(whole),
            None => !judged.contains(name),
        };
        let row = |(number, series): (usize, &FollowedSeries)| SeriesRow {
            leads: leads(&series.head.name),
            ..self.row(number, series, second)
        };
        series.map(row).collect()
    }

    fn row(&self, number: usize, series: &FollowedSeries, second: i64) -> SeriesRow {
        let mut quantiles = self.follower.quantiles(number, &SHARES).into_iter().flatten();
        let totals = &series.totals;
        SeriesRow {
            name: series.head.name.clone(),
            pooled_in: series.head.pooled_in(),
            is_response: series.head.is_response(),
            leads: true,
            cpu: series.head.cpu,
            samples: totals.count,
            missed: series.head.period_ns.map(|_| totals.missed),
            now_ns: series.minute.now(second),
            p50_ns: quantiles.next(),
            p99_ns: quantiles.next(),
            max_ns: (totals.count > 0).then_some(totals.max_ns),
            max_s: series.worst_s,
            minute: series.minute.until(second),
        }
    }

    /// The threads, and names, of others whose responses answer what was asked.
    fn judged(&self) -> HashSet<&str> {
        let info = self.follower.document().probe.info();
        let is_attached = info.is_some_and(ProbeInfo::is_attached);
        let series = self.follower.series().iter().filter(|own| own.totals.count > 0);
        series.filter(|_| is_attached).filter_map(|own| whole_of_response(&own.head.name)).collect()
    }

    /// The causes of the last seconds, the seconds that they cover, and the reason if causes are
    /// missing.
    fn causes(&self, elapsed_s: f64) -> (Vec<CauseRow>, String, String) {
        let document = self.follower.document();
        let Some(recent) = self.follower.recent_causes() else {
            let why = match &document.trace.why_not {
                Some(why_not) => format!("not traced: {why_not}"),
                None if document.parameters.peaks.is_none() => "not traced".into(),
                None => "none yet".into(),
            };
            return (Vec::new(), String::new(), why);
        };
        let row = |sum: &crate::run::follow::RecentCause| CauseRow {
            series: sum.cause.series.clone(),
            kind: crate::report::causes::words::head(sum.cause.cause).into(),
            cause: probable(label(sum.cause.cause, &sum.cause.name), sum.cause.basis),
            samples: sum.samples,
            ns: sum.ns,
        };
        let when = of_when(&recent, document, elapsed_s);
        (recent.sums.iter().map(row).collect(), when, late(&recent, document))
    }

    fn loads(&self, elapsed_s: f64) -> Vec<LoadState> {
        let document = self.follower.document();
        let states = self.follower.state().map(|state| state.loads.as_slice()).unwrap_or_default();
        let load = |(number, load): (usize, &crate::run::LoadRecord)| {
            let rate = self.follower.load_rate(number);
            let (proof, fails) = match (&load.proof, &load.ended) {
                (Some(proof), None) => {
                    let per_s = rate_of(proof.operations_per_s, &proof.unit);
                    (format!("{per_s} over the whole run"), proof.operations == 0)
                }
                (_, Some(how)) => (how.clone(), true),
                (None, None) => proof(states.get(number), rate, elapsed_s),
            };
            LoadState { name: words::load(load), proof, fails }
        };
        document.loads.iter().enumerate().map(load).collect()
    }

    fn reasons(&self) -> Vec<CaveatLine> {
        let document = self.follower.document();
        let caveats = match (document.status, self.follower.state()) {
            (Status::Running | Status::Crashed, Some(state)) => &state.caveats,
            _ => &document.caveats,
        };
        let reason = |caveat: &crate::run::Caveat| CaveatLine {
            effect: caveat.effect.displayed(),
            text: caveat.text.clone(),
        };
        let unread = self.follower.damage().iter().map(|what| CaveatLine {
            effect: Effect::Weakens.displayed(),
            text: format!("this view is not whole: {what}"),
        });
        unread.chain(caveats.iter().map(reason)).collect()
    }

    fn own_share(&self) -> Option<f64> {
        let took = self.began.elapsed();
        let used = own_time().saturating_sub(self.used);
        (took > Duration::from_secs(1)).then(|| used.as_secs_f64() / took.as_secs_f64())
    }

    /// What happened around a sample that was kept, as text.
    pub(super) fn timeline(&self, kept: &KeptSample) -> String {
        let document = self.follower.document();
        let is_it =
            |peak: &&KeptPeak| peak.series == kept.series && peak.latency_ns == kept.latency_ns;
        let Some(peak) = self.kept.iter().find(is_it) else {
            return "A later one has taken its place meanwhile: press enter again.".into();
        };
        match peak.whole(self.follower.directory()) {
            Ok(peak) => {
                let text = crate::report::why::peak_text(&peak, document);
                anstream::adapter::strip_str(&text).to_string()
            }
            Err(what) => what,
        }
    }
}

fn own_time() -> Duration {
    cpu_time(getpid()).unwrap_or_default()
}

/// `timer every 1 ms, fifo 90`
fn probe(document: &Document) -> String {
    let mut text = words::probe(&document.probe, document.messages.as_ref());
    let is_paced = ["timer", "fake"].contains(&document.probe.measured_as());
    if let Some(every) = words::every(&document.probe).filter(|_| is_paced) {
        text.push_str(&format!(" {every}"));
    }
    let is_own = document.probe.info().is_none_or(|info| !info.is_attached());
    if let Some(policy) = document.setup.found.policy.as_ref().filter(|_| is_own) {
        text.push_str(&format!(", {policy}"));
    }
    text
}

fn status(document: &Document, elapsed_s: f64) -> LiveStatus {
    let verdict = document.validity.displayed();
    let length = span(elapsed_s);
    LiveStatus::Ended(match document.status {
        Status::Running if document.start_monotonic_ns == 0 => return LiveStatus::Arranging,
        Status::Running if elapsed_s < 0.0 => return LiveStatus::WarmUp,
        Status::Running => return LiveStatus::Running,
        Status::Complete => format!("ENDED after {length}: complete, {verdict}"),
        Status::Interrupted => format!("ENDED early after {length}: {verdict}"),
        Status::StoppedOver => format!("ENDED by --stop-over after {length}: {verdict}"),
        Status::Crashed => format!("CRASHED after {length}"),
        Status::Imported => match document.provenance.origin {
            Origin::Imported => format!("IMPORTED from {}", document.provenance.program),
            Origin::Measured | Origin::Synthesised => "IMPORTED".into(),
        },
    })
}

fn no_machine(document: &Document, is_here: bool) -> Option<String> {
    if document.status != Status::Running {
        return Some("only during the run".into());
    }
    (!is_here).then(|| format!("the run is on {}, not here", document.facts.hostname))
}

fn kept(peak: &KeptPeak, document: &Document) -> KeptSample {
    let since = |at_ns: i64| at_ns.saturating_sub(document.start_monotonic_ns) as f64 / 1e9;
    let kind = peak.main.as_ref().map(|main| crate::report::causes::words::head(main.cause));
    KeptSample {
        series: peak.series.clone(),
        at_s: peak.at_ns.map(since),
        latency_ns: peak.latency_ns,
        kind: kind.unwrap_or_default().into(),
        cause: peak
            .main
            .as_ref()
            .map_or_else(|| "not analyzed".into(), |main| main_cause(main, peak.latency_ns)),
    }
}

/// `61% softirq: NET_RX`; a task has its own name, too.
fn main_cause(main: &MainPart, latency_ns: i64) -> String {
    let share = main.ns as f64 / latency_ns.max(1) as f64 * 1e2;
    let task = main.task.as_deref().filter(|task| !task.starts_with(main.name.as_str()));
    let by = task.map_or_else(String::new, |task| format!(" ({task})"));
    let cause = probable(label(main.cause, &main.name), main.basis);
    format!("{share:.0}% {cause}{by}")
}

fn probable(text: String, basis: Basis) -> String {
    if basis == Basis::Inferred { format!("probably {text}") } else { text }
}

/// `, last 10 s`, `, since the start`; and how old, where they are.
fn of_when(recent: &RecentCauses, document: &Document, elapsed_s: f64) -> String {
    let over = match recent.from_ns {
        Some(from_ns) => format!(", last {}", span((recent.until_ns - from_ns) as f64 / 1e9)),
        None => ", since the start".into(),
    };
    let until_s = (recent.until_ns - document.start_monotonic_ns) as f64 / 1e9;
    let age_s = elapsed_s - until_s;
    match document.status == Status::Running && age_s > OLD_S {
        true => format!("{over}, {} ago", span(age_s)),
        false => over,
    }
}

/// How many were late, and how late.
fn late(recent: &RecentCauses, document: &Document) -> String {
    let sample = SampleName::of(document);
    let Some(mean) = recent.ns.checked_div(recent.blamed) else {
        return format!("no late {}", sample.one());
    };
    let mean = Nanos(i64::try_from(mean).unwrap_or(i64::MAX));
    format!("{} that were late, {mean} on average", many(recent.blamed, sample.one()))
}

fn rate_of(per_s: f64, unit: &str) -> String {
    if unit.is_empty() { "alive".into() } else { format!("{} {unit}/s", rate(per_s)) }
}

/// What shows that a load works, and whether it does not.
fn proof(state: Option<&LiveLoad>, rate: Option<(f64, f64)>, elapsed_s: f64) -> (String, bool) {
    if let Some(how) = state.and_then(|state| state.died.as_ref()) {
        return (format!("DIED: {how}"), true);
    }
    let unit = state.map_or("operations", |state| state.unit.as_str());
    match rate {
        Some((at_s, per_s)) if elapsed_s - at_s < 3.0 => (rate_of(per_s, unit), per_s <= 0.0),
        Some((at_s, per_s)) => {
            (format!("{}, {} ago", rate_of(per_s, unit), span(elapsed_s - at_s)), false)
        }
        None if unit.is_empty() => ("alive".into(), false),
        None => match state.and_then(|state| state.operations) {
            Some(0) => ("does nothing yet".into(), elapsed_s > 3.0),
            Some(_) => ("works".into(), false),
            None => ("not counted yet".into(), false),
        },
    }
}
