//! Whether an attached thread slept at all: one that does not has no wake-up, and no latency.

/// What is known of it by now.
#[derive(Debug, Default)]
pub(super) struct Awake {
    /// It has a CPU, or waits for one, or did until it ended; `None` if nothing was seen.
    seen: Option<bool>,
    has_ended: bool,
    /// It has not slept in the last half of its time, or longer.
    stays_awake: bool,
    /// For how long it has been there, ns; of one that has ended up to the last look before.
    pub(super) lived_ns: u64,
}

impl Awake {
    /// What is seen of a thread that is there since `since_ns`, and had the CPU for its last
    /// wake-up at `switched_ns`.
    pub(super) fn look(
        &mut self,
        (seen, has_ended): (Option<bool>, bool),
        switched_ns: u64,
        (since_ns, now_ns): (u64, u64),
    ) {
        self.seen = seen;
        self.has_ended |= has_ended;
        // When it ended between two looks is not known: it was there at the last one.
        if !self.has_ended {
            self.lived_ns = now_ns.saturating_sub(since_ns);
        }
        let until_ns = since_ns.saturating_add(self.lived_ns);
        let awake_ns = until_ns.saturating_sub(switched_ns);
        self.stays_awake = seen == Some(true) && awake_ns > self.lived_ns / 2;
    }

    /// Whether it is there and has a CPU, or waits for one.
    pub(super) fn is_now(&self) -> bool {
        self.seen == Some(true) && !self.has_ended
    }

    /// Whether it was awake all the time, or was for the last half of it, after this number of
    /// wake-ups. Where no wake-up was seen, a thread that slept was woken; `runs` says it of a
    /// thread that is there and of which nothing was seen.
    pub(super) fn never_slept(&self, wakeups: u64, runs: impl FnOnce() -> bool) -> bool {
        match (wakeups, self.seen) {
            (0, Some(is_awake)) => is_awake,
            (0, None) => !self.has_ended && runs(),
            _ => self.stays_awake,
        }
    }

    /// Whether it has ended; when it did is known to the last look before.
    pub(super) const fn has_ended(&self) -> bool {
        self.has_ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn one_that_ended_without_a_sleep_never_slept() {
        let mut own = Awake::default();
        own.look((Some(true), false), 0, (SECOND, 6 * SECOND));
        own.look((Some(true), true), 0, (SECOND, 7 * SECOND));
        assert!(own.never_slept(0, || false) && own.has_ended() && !own.is_now());
        assert_eq!(own.lived_ns, 5 * SECOND);
        // Given away while it slept, or never seen.
        own.look((Some(false), true), 0, (SECOND, 8 * SECOND));
        assert!(!own.never_slept(0, || true));
        own.look((None, true), 0, (SECOND, 8 * SECOND));
        assert!(!own.never_slept(0, || true));
    }

    #[test]
    fn one_that_ended_awake_stayed_awake_where_its_last_sleep_was_long_before() {
        let ended_after = |switched_ns| {
            let mut own = Awake::default();
            own.look((Some(true), false), switched_ns, (SECOND, 5 * SECOND));
            own.look((Some(true), true), switched_ns, (SECOND, 9 * SECOND));
            own.never_slept(3, || false)
        };
        assert!(ended_after(2 * SECOND));
        // Its end was seen late: it need not have been awake since then.
        assert!(!ended_after(4 * SECOND));
        assert!(!ended_after(6 * SECOND));
    }
}
