//! When the sums of what late samples are blamed on are written.

/// The sums are written each time the run is twice as long, from one second
/// up to ten: a reader of a young run finds most of it, and a long one disturbs the disk little.
const WRITE_NS: (i64, i64) = (1_000_000_000, 10_000_000_000);

/// While somebody looks at the run they are written so often, ns, and never for more than a
/// two-hundredth of the time.
const WATCHED_NS: i64 = 1_000_000_000;
const WATCHED_SHARE: i64 = 200;

/// The next times.
#[derive(Debug)]
pub(super) struct BlamePace {
    start_ns: i64,
    next_write_ns: i64,
    next_watched_ns: i64,
}

impl BlamePace {
    /// Of a run that begins at `start_ns`.
    pub(super) fn new(start_ns: i64) -> Self {
        let next_write_ns = next_write_ns(start_ns, start_ns);
        Self { start_ns, next_write_ns, next_watched_ns: start_ns + WATCHED_NS }
    }

    /// Whether they are to be written now; whether somebody looks is asked once a second.
    pub(super) fn is_due(&mut self, now: i64, is_watched: impl FnOnce() -> bool) -> bool {
        if now >= self.next_write_ns {
            return true;
        }
        if now < self.next_watched_ns {
            return false;
        }
        self.next_watched_ns = now + WATCHED_NS;
        is_watched()
    }

    /// They were due at `due_ns`, and written between two moments.
    pub(super) fn note(&mut self, due_ns: i64, (began_ns, ended_ns): (i64, i64)) {
        self.next_write_ns = next_write_ns(self.start_ns, due_ns);
        self.next_watched_ns = ended_ns + rest_ns(ended_ns - began_ns);
    }
}

/// When the sums of a run that began at `start_ns` are written after `now_ns`.
fn next_write_ns(start_ns: i64, now_ns: i64) -> i64 {
    let (least_ns, most_ns) = WRITE_NS;
    now_ns + (now_ns - start_ns).clamp(least_ns, most_ns)
}

/// The time that readers wait for the next sums, of which the last took `took_ns` to write.
fn rest_ns(took_ns: i64) -> i64 {
    took_ns.saturating_mul(WATCHED_SHARE).clamp(WATCHED_NS, WRITE_NS.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_of_a_young_run_are_written_soon_and_those_of_an_old_one_seldom() {
        let mut written_s = vec![0];
        while written_s.last().is_some_and(|last| *last < 40) {
            let last_ns = written_s.last().copied().unwrap_or(0) * 1_000_000_000;
            written_s.push((next_write_ns(7, 7 + last_ns) - 7) / 1_000_000_000);
        }
        assert_eq!(written_s, [0, 1, 2, 4, 8, 16, 26, 36, 46]);
    }

    #[test]
    fn sums_that_take_long_to_write_are_written_less_often_for_those_who_look() {
        let ms = |ms: i64| ms * 1_000_000;
        let rests = [ms(1_000), ms(1_000), ms(3_000), ms(10_000)];
        assert_eq!([0, ms(1), ms(15), ms(500)].map(rest_ns), rests);
    }
}
