//! What all late wake-ups were blamed on, in sums of a bounded size.

use std::collections::{BTreeMap, HashMap};

use crate::run::peaks::{Basis, Blame, Cause, CauseOf, LatencyBucket, Part};

/// So many causes are named apart by name; later names go to `(others)`.
const MOST_CAUSES: usize = 1024;

/// Where names go for which there is no room.
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
        let sum = self.buckets.entry(low_ns(latency_ns)).or_default();
        sum.wakeups += 1;
        sum.ns += u64::try_from(latency_ns).unwrap_or(0);
        let mut seen: Vec<u32> = Vec::with_capacity(numbered.len());
        for (number, ns) in numbered {
            let part = sum.parts.entry(number).or_default();
            // Two tasks of one name are two parts of one wake-up.
            if !seen.contains(&number) {
                part.0 += 1;
                seen.push(number);
            }
            part.1 += ns;
        }
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
        let bucket = |(low_ns, sum): (&i64, &Sum)| LatencyBucket {
            low_ns: *low_ns,
            wakeups: sum.wakeups,
            ns: sum.ns,
            parts: sum.parts.iter().map(|(number, (n, ns))| (*number, *n, *ns)).collect(),
        };
        Blame {
            blamed: self.blamed,
            causes: self.causes.clone(),
            buckets: self.buckets.iter().map(bucket).collect(),
            ..Blame::default()
        }
    }
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
