//! Scheduling policies of an attached thread over the whole run, as one label.

/// The number of policies that are named, one after another.
const NAMED: usize = 3;

/// Observed policies, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Policies {
    seen: Vec<String>,
    has_more: bool,
}

impl Policies {
    /// It has this policy now.
    pub(super) fn note(&mut self, policy: String) {
        if self.seen.last() == Some(&policy) {
            return;
        }
        match self.seen.len() < NAMED {
            true => self.seen.push(policy),
            false => self.has_more = true,
        }
    }

    /// Drops policies from before the measured time.
    pub(super) fn forget_earlier(&mut self) {
        let kept = self.seen.pop();
        self.seen = kept.into_iter().collect();
        self.has_more = false;
    }

    /// Continues after these, as the thread was there before.
    pub(super) fn resume(&mut self, before: Self) {
        let since = std::mem::replace(self, before);
        since.seen.into_iter().for_each(|policy| self.note(policy));
        self.has_more |= since.has_more;
    }

    /// `fifo 50`; where it changed `other, then fifo 50`. `None` if none could be read.
    pub(super) fn words(&self) -> Option<String> {
        let words = self.seen.join(", then ");
        let more = if self.has_more { ", and changed again" } else { "" };
        (!words.is_empty()).then(|| format!("{words}{more}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(policies: &[&str]) -> Policies {
        let mut own = Policies::default();
        policies.iter().for_each(|policy| own.note((*policy).to_owned()));
        own
    }

    #[test]
    fn a_policy_that_changed_is_told_with_those_before() {
        let words = |policies: &[&str]| of(policies).words();
        assert_eq!(words(&[]), None);
        assert_eq!(words(&["fifo 50", "fifo 50"]).unwrap(), "fifo 50");
        assert_eq!(words(&["other", "fifo 50", "fifo 50"]).unwrap(), "other, then fifo 50");
        let often = words(&["other", "fifo 1", "other", "fifo 1", "other"]).unwrap();
        assert_eq!(often, "other, then fifo 1, then other, and changed again");
    }

    #[test]
    fn what_was_before_the_measured_time_is_left_out_and_an_earlier_part_of_it_is_not() {
        let mut own = of(&["other", "fifo 50"]);
        own.forget_earlier();
        assert_eq!(own.words().unwrap(), "fifo 50");
        own.resume(of(&["other"]));
        assert_eq!(own.words().unwrap(), "other, then fifo 50");
    }
}
