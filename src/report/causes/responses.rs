//! What late responses were spent on, as sums: they are not wake-ups, and in no band.

use std::{cmp::Reverse, collections::BTreeMap};

use serde::{Deserialize, Serialize};

use super::{
    Causes,
    words::{percent, phrase},
};
use crate::{
    run::peaks::{Basis, Blame, Cause, CauseOf},
    units::count,
};

/// The number of causes in the sentence, none with less than this share.
const MOST_NAMED: usize = 5;
const LEAST_SHARE: f64 = 0.01;

/// What late responses of a series were spent on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ResponseCause {
    /// Whose.
    pub series: String,
    /// What kind.
    pub cause: Cause,
    /// Which one.
    pub name: String,
    /// What the name rests on.
    pub basis: Basis,
    /// Late responses that had it.
    pub responses: u64,
    /// Its part of their time, ns.
    pub ns: u64,
    /// Its share of the time of all late responses, 0 to 1.
    pub share: f64,
}

/// Most first.
pub(in crate::report) fn spent_on(blame: &Blame) -> Vec<ResponseCause> {
    let all_ns: u64 = blame.responses.iter().map(|bucket| bucket.ns).sum();
    let mut sums: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for (cause, times, ns) in blame.responses.iter().flat_map(|bucket| &bucket.parts) {
        let sum = sums.entry(*cause).or_default();
        *sum = (sum.0 + times, sum.1 + ns);
    }
    let found = sums.into_iter().filter_map(|(number, (responses, ns))| {
        let CauseOf { series, cause, name, basis } = blame.causes.get(number as usize)?.clone();
        let share = ns as f64 / all_ns.max(1) as f64;
        Some(ResponseCause { series, cause, name, basis, responses, ns, share })
    });
    let mut found: Vec<ResponseCause> = found.collect();
    found.sort_by_key(|one| Reverse(one.ns));
    found
}

/// How many late responses that is of.
pub(in crate::report) fn analysed(blame: &Blame) -> u64 {
    blame.responses.iter().map(|bucket| bucket.wakeups).sum()
}

/// Those of a run in one sentence.
#[must_use]
pub fn of(causes: &Causes) -> Option<String> {
    let blame = causes.blame.as_ref()?;
    sentence(&spent_on(blame), (analysed(blame), blame.responses_passed_over))
}

/// The largest of them in one sentence, `~` before what is inferred; `None` without any. With how
/// many were analyzed, if others were skipped.
pub(in crate::report) fn sentence(
    responses: &[ResponseCause],
    (analysed, passed_over): (u64, u64),
) -> Option<String> {
    let one = |cause: &ResponseCause| {
        let doubt = if cause.basis == Basis::Measured { "" } else { "~" };
        let what = phrase(cause.cause, &cause.name);
        format!("{doubt}{} {what} ({})", percent(cause.share), cause.series)
    };
    let named = responses.iter().filter(|own| own.share >= LEAST_SHARE).take(MOST_NAMED);
    let named: Vec<String> = named.map(one).collect();
    let of = match passed_over {
        0 => String::new(),
        _ => {
            let all = count(analysed.saturating_add(passed_over));
            format!(" ({} of {all} were analyzed, the latest first)", count(analysed))
        }
    };
    let no_time = || format!("Late responses{of}: no cause is known");
    match named.is_empty() {
        true => (passed_over > 0).then(no_time),
        false => Some(format!("The time of late responses{of}: {}", named.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_says_of_how_many_late_responses_it_is() {
        let cause = ResponseCause {
            series: "app/response".into(),
            cause: Cause::Thread,
            name: "hog".into(),
            basis: Basis::Measured,
            responses: 200,
            ns: 5_000,
            share: 0.5,
        };
        let of = |causes: &[ResponseCause], analysed, passed_over| {
            sentence(causes, (analysed, passed_over)).unwrap_or_default()
        };
        let all = of(std::slice::from_ref(&cause), 200, 0);
        assert!(all.starts_with("The time of late responses: 50%"), "{all}");
        let some = of(&[cause], 200, 3_800);
        let wanted = "The time of late responses (200 of 4,000 were analyzed, the latest first): ";
        assert!(some.starts_with(wanted), "{some}");
        let none = of(&[], 0, 12);
        assert!(none.contains("0 of 12 were analyzed"), "{none}");
        assert_eq!(of(&[], 0, 0), "");
    }
}
