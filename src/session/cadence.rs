//! When helper threads wake up. Where no CPU is left that is not measured they run on one that is,
//! so they wake together, and right after an expiry of the measured threads: what they do is then
//! over before the next, as far as the interval has room for it.
//!
//! There one of them, and only one, has a timer that is never far away. Counted on Debian's 6.1,
//! an idle CPU, an interval of 1 ms: a quarter of all wake-ups, those that find a new tick, take
//! 9.0 us where the next timer of all but the measured thread is one that the kernel keeps by
//! ticks, and 8.5 us where a thread's is nearer. With helpers that wake once a second p99 was
//! 9.04 us, every 100 ms 9.02, every 50 ms 8.69 to 9.04, every 20 ms 8.53 to 8.72, every 10 ms
//! 8.56 us; that of cyclictest, whose main thread wakes every 10 ms, was 8.55 to 8.63 us. Further
//! timers of helpers add to it again: 8.7 us with three of them.

use crate::probes::ExpiryGrid;

/// The longest lag after an expiry, ns: by then the measured thread has run, mostly.
const MOST_LAG_NS: i64 = 100_000;

/// The time before an expiry in which no background thread wakes, if the interval is longer; ns.
/// None of them works as long.
const CLEAR_NS: i64 = 10_000_000;

/// On a CPU that is measured a helper rests no longer than this, ns; where the measured thread
/// itself wakes less often, that would be a load.
const REST_NS: i64 = 10_000_000;

/// Without expiries of measured threads, the rest of a background thread after each piece of its
/// work on a measured CPU, ns. It runs before ksoftirqd, an ordinary task, which may have a message
/// to carry: that has the CPU meanwhile.
const BREAK_NS: i64 = 200_000;

/// The longest that one system call of theirs takes, if the interval has room for it; ns. Counted
/// on Debian's 6.1, 2 ns an instruction: 0.1 ms for `/proc/stat` of one CPU.
const CALL_NS: i64 = 150_000;

/// The lead time of what counts from the start on: to begin interrupts a measured CPU.
pub(super) const BEFORE_NS: i64 = 20_000_000;

/// Moments for helpers of one run. Without a grid of expiries every moment is as good as another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cadence {
    /// A good moment: a little after an expiry.
    good_ns: i64,
    /// The lag after the expiry.
    lag_ns: i64,
    /// Others follow so far apart; 1 where all are good.
    period_ns: i64,
    /// The longest rest of one of them; absent for as long as it likes.
    rest_ns: Option<i64>,
    /// The rest between two pieces of work, where no expiry says when the next may begin.
    break_ns: Option<i64>,
    /// Whether they run on CPUs that are measured.
    is_shared: bool,
}

impl Cadence {
    /// Of threads that begin at `start_ns`. `is_shared` is whether helpers run on CPUs that are
    /// measured.
    pub(super) fn new(start_ns: i64, grid: Option<&ExpiryGrid>, is_shared: bool) -> Self {
        let Some(grid) = grid.filter(|grid| grid.interval_ns > 1) else {
            let break_ns = is_shared.then_some(BREAK_NS);
            let good_ns = start_ns;
            return Self { good_ns, lag_ns: 0, period_ns: 1, rest_ns: None, break_ns, is_shared };
        };
        let (phase_ns, gap_ns) = longest_gap(grid);
        let lag_ns = (gap_ns / 4).min(MOST_LAG_NS);
        let rest_ns = (is_shared && grid.interval_ns <= REST_NS).then_some(REST_NS);
        let good_ns = start_ns + phase_ns + lag_ns;
        let period_ns = grid.interval_ns;
        Self { good_ns, lag_ns, period_ns, rest_ns, break_ns: None, is_shared }
    }

    /// Until when the one that rests for `due_ns`, a good moment, does so first.
    pub(super) fn towards(&self, due_ns: i64, now_ns: i64) -> i64 {
        // From a little after a good moment to the last one that is not too far.
        let rested = |rest_ns| self.after(now_ns + rest_ns - self.period_ns);
        self.rest_ns.map_or(due_ns, |rest_ns| due_ns.min(rested(rest_ns)))
    }

    /// Until when a helper with more to do on a CPU that is measured waits first: a piece of work
    /// that begins right after an expiry is over before the next, where a long system call in the
    /// middle of one that does not end would keep the measured thread waiting. Without expiries it
    /// waits a little.
    pub(super) fn before_next_piece(&self, now_ns: i64) -> Option<i64> {
        let after_expiry = self.rest_ns.map(|_| self.after(now_ns));
        after_expiry.or(self.break_ns.map(|break_ns| now_ns + break_ns))
    }

    /// Of work while no message is on its way: without breaks.
    pub(super) const fn without_breaks(self) -> Self {
        Self { break_ns: None, ..self }
    }

    /// Whether ordinary tasks of others must have their turn between two pieces of work, such as
    /// those that carry messages.
    pub(super) const fn has_breaks(&self) -> bool {
        self.break_ns.is_some()
    }

    /// Whether the next expiry may come within a system call: then the next piece waits until it
    /// is over.
    pub(super) fn is_tight(&self, now_ns: i64) -> bool {
        let room_ns = ((self.period_ns - self.lag_ns) / 2).min(CALL_NS);
        self.next_expiry_ns(now_ns).is_some_and(|next_ns| next_ns - now_ns < room_ns)
    }

    /// When what counts from the start on is read first. Where helpers run on CPUs that are
    /// measured that is before the start, as each reading there keeps a measured thread waiting.
    pub(super) const fn first_counts_ns(&self, start_ns: i64) -> i64 {
        if self.is_shared { start_ns - BEFORE_NS } else { start_ns }
    }

    /// The next expiry, on a CPU that is measured.
    pub(super) fn next_expiry_ns(&self, now_ns: i64) -> Option<i64> {
        self.rest_ns.map(|_| self.after(now_ns + self.lag_ns + 1) - self.lag_ns)
    }

    /// The first good moment that is not before `due_ns`.
    pub(super) const fn after(&self, due_ns: i64) -> i64 {
        let since_ns = (due_ns - self.good_ns).rem_euclid(self.period_ns);
        // With long intervals a moment in between is good, too.
        if since_ns == 0 || since_ns < self.period_ns - CLEAR_NS {
            return due_ns;
        }
        due_ns + (self.period_ns - since_ns)
    }
}

/// When the conductor looks after a run in progress.
#[derive(Debug, Clone, Copy)]
pub(super) struct PollSchedule {
    cadence: Cadence,
    start_ns: i64,
    step_ns: i64,
    /// The watchdog rings it once a second, so that it needs no timer.
    is_rung: bool,
}

/// Sources without a thread, remote endpoints and threads that are to stop are looked after so
/// often, ns.
const POLL_NS: i64 = 50_000_000;

/// The same where late samples come that way, ns: the kernel keeps the events around them for some
/// 50 ms, and each remote endpoint lets them out after 5 ms.
const HURRY_NS: i64 = 5_000_000;

/// A progress is shown so often, ns.
const SHOW_NS: i64 = 500_000_000;

/// Otherwise so often, ns.
const BEAT_NS: i64 = 1_000_000_000;

impl PollSchedule {
    /// Of a run whose measured time begins at `start_ns`.
    pub(super) const fn new(
        cadence: Cadence,
        start_ns: i64,
        is_polled: bool,
        is_shown: bool,
        has_watchdog: bool,
    ) -> Self {
        let is_rung = has_watchdog && !is_polled && !is_shown;
        let step_ns = match (is_polled, is_shown) {
            (true, _) => POLL_NS,
            (false, true) => SHOW_NS,
            (false, false) => BEAT_NS,
        };
        Self { cadence, start_ns, step_ns, is_rung }
    }

    /// With late samples to take meanwhile.
    pub(super) const fn hurried(self) -> Self {
        Self { step_ns: HURRY_NS, ..self }
    }

    /// How long until the next: at the start of the measured time, and by whole steps from it;
    /// `None` if somebody rings.
    pub(super) fn next_in_ns(&self, now_ns: i64, is_ending: bool) -> Option<i64> {
        if self.is_rung && !is_ending && now_ns >= self.start_ns {
            return None;
        }
        let step_ns = if is_ending { POLL_NS.min(self.step_ns) } else { self.step_ns };
        let passed = (now_ns - self.start_ns).div_euclid(step_ns);
        Some(self.cadence.after(self.start_ns + (passed + 1) * step_ns) - now_ns)
    }
}

/// After which phase no other follows for the longest time, and that time; ns.
fn longest_gap(grid: &ExpiryGrid) -> (i64, i64) {
    let mut phases_ns: Vec<i64> =
        grid.phases_ns.iter().map(|phase_ns| phase_ns.rem_euclid(grid.interval_ns)).collect();
    phases_ns.sort_unstable();
    let first_ns = phases_ns.first().copied().unwrap_or(0);
    let next_ns = phases_ns.iter().copied().skip(1).chain([first_ns + grid.interval_ns]);
    let gap = |(phase_ns, next_ns): (&i64, i64)| (*phase_ns, next_ns - *phase_ns);
    let gaps = phases_ns.iter().zip(next_ns).map(gap);
    gaps.max_by_key(|(_, gap_ns)| *gap_ns).unwrap_or((0, grid.interval_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn cadence(start_ns: i64, interval_ns: i64, phases_ns: &[i64]) -> Cadence {
        let grid = ExpiryGrid { interval_ns, phases_ns: phases_ns.into() };
        Cadence::new(start_ns, Some(&grid), true)
    }

    #[test]
    fn helpers_wake_right_after_an_expiry_and_before_none() {
        let one = cadence(7 * MS, MS, &[0]);
        assert_eq!(one.after(7 * MS), 7 * MS + 100_000);
        assert_eq!(one.after(7 * MS + 100_000), 7 * MS + 100_000);
        assert_eq!(one.after(7 * MS + 100_001), 8 * MS + 100_000);
        assert_eq!(one.after(3), 100_000, "in the warm-up as well");
        assert_eq!(cadence(0, 200_000, &[0]).after(1), 50_000, "a quarter of a short interval");
    }

    #[test]
    fn the_next_expiry_is_known_where_helpers_share_a_cpu_with_measured_threads() {
        let one = cadence(7 * MS, MS, &[0]);
        assert_eq!(one.next_expiry_ns(7 * MS), Some(8 * MS));
        assert_eq!(one.next_expiry_ns(7 * MS + 100_000), Some(8 * MS));
        assert_eq!(one.next_expiry_ns(8 * MS - 1), Some(8 * MS));
        let grid = ExpiryGrid { interval_ns: MS, phases_ns: vec![0] };
        assert_eq!(Cadence::new(0, Some(&grid), false).next_expiry_ns(7), None);
    }

    #[test]
    fn no_system_call_begins_on_a_measured_cpu_that_could_last_until_after_the_next_expiry() {
        let tight = |interval_ns, since_ns| cadence(0, interval_ns, &[0]).is_tight(since_ns);
        assert_eq!(
            [849_999, 850_001, 999_999, MS].map(|at| tight(MS, at)),
            [false, true, true, false]
        );
        // Half of what is left of a short interval after the lag.
        assert_eq!([124_999, 125_001].map(|at| tight(200_000, at)), [false, true]);
        let grid = ExpiryGrid { interval_ns: MS, phases_ns: vec![0] };
        assert!(!Cadence::new(0, Some(&grid), false).is_tight(999_999), "they have another CPU");
    }

    #[test]
    fn what_counts_is_first_read_before_the_start_where_no_cpu_is_free() {
        let first = |is_shared| Cadence::new(5, None, is_shared).first_counts_ns(100 * MS);
        assert_eq!([first(true), first(false)], [80 * MS, 100 * MS]);
    }

    #[test]
    fn with_several_phases_it_is_the_longest_gap() {
        let several = cadence(0, MS, &[0, 100_000, 700_000]);
        assert_eq!(several.after(0), 200_000);
        let around = cadence(0, MS, &[500_000, 900_000]);
        assert_eq!(around.after(0), 0, "from 900 us over the end to 500 us");
        assert_eq!(around.after(1), MS);
    }

    #[test]
    fn with_a_long_interval_only_the_time_before_an_expiry_is_left_out() {
        let long = cadence(0, 1_000 * MS, &[0]);
        assert_eq!(long.after(MS), MS);
        assert_eq!(long.after(985 * MS), 985 * MS);
        assert_eq!(long.after(995 * MS), 1_000 * MS + 100_000);
        assert_eq!(long.after(1_000 * MS), 1_000 * MS + 100_000);
    }

    #[test]
    fn the_conductor_looks_at_the_start_and_by_whole_steps_from_it() {
        let cadence = cadence(0, MS, &[0]);
        let next = |now_ns, is_polled, is_shown, is_ending| {
            let looks = PollSchedule::new(cadence, 3_000 * MS, is_polled, is_shown, false);
            now_ns + looks.next_in_ns(now_ns, is_ending).unwrap()
        };
        let lag_ns = 100_000;
        assert_eq!(next(2_400 * MS, false, false, false), 3_000 * MS + lag_ns);
        assert_eq!(next(3_000 * MS + lag_ns, false, false, false), 4_000 * MS + lag_ns);
        assert_eq!(next(3_700 * MS, false, true, false), 4_000 * MS + lag_ns);
        assert_eq!(next(3_710 * MS, true, true, false), 3_750 * MS + lag_ns);
        assert_eq!(next(3_710 * MS, false, false, true), 3_750 * MS + lag_ns);
        let hurried = PollSchedule::new(cadence, 3_000 * MS, true, true, false).hurried();
        for is_ending in [false, true] {
            let next_ns = 3_711 * MS + hurried.next_in_ns(3_711 * MS, is_ending).unwrap();
            assert_eq!(next_ns, 3_715 * MS + lag_ns);
        }
    }

    #[test]
    fn the_conductor_has_no_timer_once_the_watchdog_rings() {
        let cadence = cadence(0, MS, &[0]);
        let next = |now_ns, is_shown, is_ending| {
            PollSchedule::new(cadence, 3_000 * MS, false, is_shown, true)
                .next_in_ns(now_ns, is_ending)
        };
        assert!(next(2_999 * MS, false, false).is_some(), "it must not miss the start");
        assert_eq!(next(3_001 * MS, false, false), None);
        assert!(next(3_001 * MS, true, false).is_some());
        assert!(next(3_001 * MS, false, true).is_some());
    }

    #[test]
    fn on_a_measured_cpu_one_helper_rests_in_steps_unless_measured_threads_wake_as_seldom() {
        let shared = cadence(0, MS, &[0]);
        let due_ns = 100 * MS + 100_000;
        let mut steps = vec![100_000];
        while let Some(now_ns) = steps.last().copied().filter(|now_ns| *now_ns < due_ns) {
            // It wakes a little late.
            steps.push(shared.towards(due_ns, now_ns + 5_000));
        }
        let steps_ms: Vec<i64> = steps.iter().map(|step| step / MS).collect();
        assert_eq!(steps_ms, [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
        assert_eq!(cadence(0, 11 * MS, &[0]).towards(due_ns, 0), due_ns);
        let grid = ExpiryGrid { interval_ns: MS, phases_ns: vec![0] };
        assert_eq!(Cadence::new(0, Some(&grid), false).towards(due_ns, 0), due_ns);
    }

    #[test]
    fn on_a_measured_cpu_each_piece_of_work_begins_after_an_expiry() {
        let shared = cadence(0, MS, &[0]);
        assert_eq!(shared.before_next_piece(5 * MS + 300_000), Some(6 * MS + 100_000));
        assert_eq!(cadence(0, 11 * MS, &[0]).before_next_piece(5 * MS), None);
        let grid = ExpiryGrid { interval_ns: MS, phases_ns: vec![0] };
        assert_eq!(Cadence::new(0, Some(&grid), false).before_next_piece(5 * MS), None);
    }

    #[test]
    fn without_a_grid_every_moment_is_good() {
        let free = Cadence::new(5, None, true);
        assert_eq!([free.after(0), free.after(6), free.after(12_345)], [0, 6, 12_345]);
    }

    #[test]
    fn without_a_grid_helpers_on_a_measured_cpu_rest_between_two_pieces_of_work() {
        let [shared, apart] = [true, false].map(|is_shared| Cadence::new(5, None, is_shared));
        assert_eq!(shared.before_next_piece(1_000), Some(1_000 + BREAK_NS));
        assert!(shared.has_breaks() && !cadence(0, MS, &[0]).has_breaks());
        assert_eq!((apart.before_next_piece(1_000), apart.has_breaks()), (None, false));
    }
}
