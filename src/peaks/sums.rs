//! Time per cause over all late wake-ups, in sums of bounded size.

use std::collections::{BTreeMap, HashMap};

use crate::run::{
    measured_steal::stolen_ns,
    peaks::{Basis, Blame, Cause, CauseOf, LatencyBucket, Part},
};

/// The number of causes with a separate name; later names go to `(others)`.
const MOST_CAUSES: usize = 1024;

/// The name that stands for all names beyond the limit.
const OTHERS: &str = "(others)";

/// Number of buckets per octave of latency.
const PER_OCTAVE: i64 = 16;

/// Late wake-ups of about one latency.
#[derive(Debug, Default, Clone)]
struct Sum {
    wakeups: u64,
    ns: u64,
    /// By number of the cause: wake-ups, ns.
    parts: BTreeMap<u32, (u64, u64)>,
}

/// The sums of a run.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    causes: Vec<CauseOf>,
    /// By thread, kind and basis, then by name, so that a look-up copies no text.
    numbers: HashMap<(usize, Cause, Basis), HashMap<String, u32>>,
    buckets: BTreeMap<i64, Sum>,
    blamed: u64,
    /// Of work: apart, as each is longer than the wake-up that it began with.
    responses: BTreeMap<i64, Sum>,
    /// Of those that lost time to the hypervisor: as they are in `buckets`, and without that time.
    stolen: BTreeMap<i64, Sum>,
    without: BTreeMap<i64, Sum>,
}

/// Where the bucket of a latency begins: a sixteenth of its octave.
#[must_use]
pub(crate) fn low_ns(latency_ns: i64) -> i64 {
    if latency_ns < PER_OCTAVE {
        return latency_ns.max(0);
    }
    let octave = 1_i64 << latency_ns.ilog2();
    octave + (latency_ns - octave) / (octave / PER_OCTAVE) * (octave / PER_OCTAVE)
}

impl Sums {
    /// Adds one late wake-up of the series called `series`, that of the thread numbered `thread`.
    pub(crate) fn add(&mut self, thread: usize, series: &str, latency_ns: i64, parts: &[Part]) {
        self.blamed += 1;
        let numbered: Vec<(u32, u64)> =
            parts.iter().map(|part| (self.number(thread, series, part), part.ns)).collect();
        add(&mut self.buckets, latency_ns, &numbered);
        let stolen_ns = stolen_ns(parts);
        if stolen_ns > 0 {
            add(&mut self.stolen, latency_ns, &numbered);
            let left_ns = latency_ns.saturating_sub_unsigned(stolen_ns).max(0);
            let is_left = |(part, _): &(&Part, &(u32, u64))| !part.is_measured_steal();
            let left = parts.iter().zip(&numbered).filter(is_left);
            let left: Vec<(u32, u64)> = left.map(|(_, numbered)| *numbered).collect();
            add(&mut self.without, left_ns, &left);
        }
    }

    /// Adds one late response.
    pub(crate) fn add_response(
        &mut self,
        thread: usize,
        series: &str,
        latency_ns: i64,
        parts: &[Part],
    ) {
        let numbered: Vec<(u32, u64)> =
            parts.iter().map(|part| (self.number(thread, series, part), part.ns)).collect();
        add(&mut self.responses, latency_ns, &numbered);
    }

    fn number(&mut self, thread: usize, series: &str, part: &Part) -> u32 {
        let (cause, basis, name) = (part.cause, part.basis, part.name.as_str());
        let known = self.numbers.entry((thread, cause, basis)).or_default();
        if let Some(number) = known.get(name) {
            return *number;
        }
        let name = if self.causes.len() < MOST_CAUSES { name } else { OTHERS };
        if let Some(number) = known.get(name) {
            return *number;
        }
        let number = u32::try_from(self.causes.len()).unwrap_or(u32::MAX);
        known.insert(name.to_owned(), number);
        let (series, name) = (series.to_owned(), name.to_owned());
        self.causes.push(CauseOf { series, cause, name, basis });
        number
    }

    /// The sums as `blame.json` has them; the caller adds its own counts.
    #[must_use]
    pub(crate) fn record(&self) -> Blame {
        Blame {
            blamed: self.blamed,
            causes: self.causes.clone(),
            buckets: recorded(&self.buckets),
            responses: recorded(&self.responses),
            without_host: self.without_host(),
            ..Blame::default()
        }
    }

    /// All of them without the time that the hypervisor took; empty where it took none.
    fn without_host(&self) -> Vec<LatencyBucket> {
        if self.stolen.is_empty() {
            return Vec::new();
        }
        let mut buckets = self.buckets.clone();
        for (low_ns, sum) in &self.stolen {
            buckets.entry(*low_ns).or_default().take_away(sum);
        }
        for (low_ns, sum) in &self.without {
            buckets.entry(*low_ns).or_default().join(sum);
        }
        buckets.retain(|_, sum| sum.wakeups > 0);
        recorded(&buckets)
    }
}

impl Sum {
    fn take_away(&mut self, less: &Self) {
        self.wakeups -= less.wakeups;
        self.ns -= less.ns;
        for (number, (n, ns)) in &less.parts {
            if let Some(own) = self.parts.get_mut(number) {
                *own = (own.0 - n, own.1 - ns);
            }
        }
        self.parts.retain(|_, part| *part != (0, 0));
    }

    fn join(&mut self, more: &Self) {
        self.wakeups += more.wakeups;
        self.ns += more.ns;
        for (number, (n, ns)) in &more.parts {
            let own = self.parts.entry(*number).or_default();
            *own = (own.0 + n, own.1 + ns);
        }
    }
}

/// Adds a late wake-up with its parts by number of their cause.
fn add(buckets: &mut BTreeMap<i64, Sum>, latency_ns: i64, parts: &[(u32, u64)]) {
    let sum = buckets.entry(low_ns(latency_ns)).or_default();
    sum.wakeups += 1;
    sum.ns += u64::try_from(latency_ns).unwrap_or(0);
    let mut seen: Vec<u32> = Vec::with_capacity(parts.len());
    for (number, ns) in parts {
        let part = sum.parts.entry(*number).or_default();
        // Two tasks of one name are two parts of one wake-up.
        if !seen.contains(number) {
            part.0 += 1;
            seen.push(*number);
        }
        part.1 += ns;
    }
}

fn recorded(buckets: &BTreeMap<i64, Sum>) -> Vec<LatencyBucket> {
    let bucket = |(low_ns, sum): (&i64, &Sum)| LatencyBucket {
        low_ns: *low_ns,
        wakeups: sum.wakeups,
        ns: sum.ns,
        parts: sum.parts.iter().map(|(number, (n, ns))| (*number, *n, *ns)).collect(),
    };
    buckets.iter().map(bucket).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, ns: u64) -> Part {
        Part {
            cause: Cause::Thread,
            name: name.into(),
            task: None,
            ns,
            basis: Basis::Measured,
            evidence: None,
            stack: Vec::new(),
        }
    }

    #[test]
    fn a_response_is_in_no_sum_of_wake_ups() {
        let mut sums = Sums::default();
        sums.add_response(1, "cpu0/response", 5_000, &[part("hog", 5_000)]);
        sums.add(0, "cpu0", 1_000, &[part("hog", 1_000)]);
        let record = sums.record();
        let all = |of: &[LatencyBucket]| of.iter().map(|own| (own.wakeups, own.ns)).collect();
        let (buckets, responses): (Vec<_>, Vec<_>) = (all(&record.buckets), all(&record.responses));
        assert_eq!((record.blamed, buckets, responses), (1, vec![(1, 1_000)], vec![(1, 5_000)]));
        let series: Vec<&str> = record.causes.iter().map(|own| own.series.as_str()).collect();
        assert_eq!(series, ["cpu0/response", "cpu0"]);
    }

    #[test]
    fn a_bucket_is_a_sixteenth_of_an_octave() {
        assert_eq!([0, 15, 16, 17, 32, 33, 34].map(low_ns), [0, 15, 16, 17, 32, 32, 34]);
        assert_eq!([1024, 1087, 1088, 2047].map(low_ns), [1024, 1024, 1088, 1984]);
    }

    #[test]
    fn two_parts_of_one_name_are_one_wake_up_with_that_cause() {
        let mut sums = Sums::default();
        sums.add(0, "cpu0", 100, &[part("a", 60), part("a", 40)]);
        sums.add(0, "cpu0", 100, &[part("a", 100)]);
        let record = sums.record();
        assert_eq!(record.buckets.len(), 1);
        assert_eq!(record.buckets[0].parts, [(0, 2, 200)]);
        assert_eq!((record.blamed, record.buckets[0].ns), (2, 200));
    }

    #[test]
    fn names_beyond_what_there_is_room_for_are_others() {
        let mut sums = Sums::default();
        for name in 0..3000 {
            sums.add(0, "cpu0", 100, &[part(&name.to_string(), 100)]);
        }
        let record = sums.record();
        assert_eq!(record.causes.len(), MOST_CAUSES + 1);
        assert_eq!(record.causes.last().map(|cause| cause.name.as_str()), Some(OTHERS));
        let total: u64 = record.buckets.iter().flat_map(|b| &b.parts).map(|(.., ns)| ns).sum();
        assert_eq!(total, 300_000);
    }
}
