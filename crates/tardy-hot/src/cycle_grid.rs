//! When the cycles of a JACK server are due.
//!
//! Nobody says when a cycle was due: what servers call its time is smoothed by a filter that
//! follows late cycles, and is of another clock. But cycles are a number of frames apart, on the
//! clock of the sound device, which is some millionths faster or slower than this machine's. So the
//! earliest callback of each block of about half a second gives a point, and the grid is the
//! line under all points of the last [`POINTS`] blocks that is highest in their middle: the edge of
//! their lower hull. It lies through the earliest callbacks, and follows no late ones. A callback
//! before it lowers it at once. What every callback of all blocks has in common is not seen.
//!
//! After an xrun a server may begin its cycles anew at another phase: where then none of
//! [`FEWEST`] callbacks is near the grid, it is laid anew, and that is counted. One that was
//! stopped counts no frames meanwhile: where it is whole periods behind, the grid is laid anew with
//! the first callback, which is late by all of it, and these periods are missed.

use crate::ring::Sample;

/// The number of blocks that are remembered.
pub const POINTS: usize = 16;

/// The fewest callbacks of a block.
pub const FEWEST: u32 = 16;

/// The slope of the grid is estimated from this number of blocks on.
const SLOPED_FROM: usize = 4;

/// A block has about so long, ns.
const BLOCK_NS: i64 = 500_000_000;

/// The largest deviation of a sound clock.
const STEEPEST: f64 = 500e-6;

/// After an xrun, a grid that is further off than this is laid anew, ns.
const NEAR_NS: i64 = 100_000;

/// The earliest callback of a block.
#[derive(Debug, Clone, Copy, Default)]
struct Point {
    /// Where the cycle is by the nominal rate, ns from the first one.
    at_ns: i64,
    /// How much later the callback was, ns.
    offset_ns: i64,
}

/// When cycles are due.
#[derive(Debug, Clone)]
pub struct CycleGrid {
    frames: u32,
    rate_hz: u32,
    block_cycles: u32,
    origin_ns: i64,
    /// Cycles since the first one, and what the server's count of frames was then.
    cycle: u64,
    frame_time: u32,
    points: [Point; POINTS],
    known: usize,
    lowest: Point,
    left: u32,
    line: Point,
    slope: f64,
    xruns: u32,
    is_after_xrun: bool,
    /// The last callback, where the server was whole periods behind and no xrun was told yet.
    behind: Option<Point>,
}

/// One callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cycle {
    /// When it was due, and how late it was.
    pub sample: Sample,
    /// Cycles that the server has begun since without a callback.
    pub missed: u64,
    /// Whether the grid was laid anew after it.
    pub is_laid_anew: bool,
}

impl CycleGrid {
    /// A server with `frames` frames in a cycle and `rate_hz` frames in a second; both more than 0.
    #[must_use]
    pub fn new(frames: u32, rate_hz: u32) -> Self {
        let (frames, rate_hz) = (frames.max(1), rate_hz.max(1));
        let period_ns = i64::from(frames) * 1_000_000_000 / i64::from(rate_hz);
        let block = (BLOCK_NS / period_ns.max(1)).clamp(FEWEST.into(), 1 << 20);
        Self {
            frames,
            rate_hz,
            block_cycles: block as u32,
            origin_ns: 0,
            cycle: 0,
            frame_time: 0,
            points: [Point::default(); POINTS],
            known: 0,
            lowest: Point { at_ns: 0, offset_ns: i64::MAX },
            left: FEWEST,
            line: Point::default(),
            slope: 0.0,
            xruns: 0,
            is_after_xrun: false,
            behind: None,
        }
    }

    /// When cycle `cycle` is due by the nominal rate, ns from the first one.
    #[inline(always)]
    const fn nominal_ns(&self, cycle: u64) -> i64 {
        let (frames, rate) = (cycle * self.frames as u64, self.rate_hz as u64);
        ((frames / rate) * 1_000_000_000 + (frames % rate) * 1_000_000_000 / rate) as i64
    }

    /// What the line has for a time by the nominal rate, ns.
    #[inline(always)]
    fn line_ns(&self, at_ns: i64) -> i64 {
        self.line.offset_ns + ((at_ns - self.line.at_ns) as f64 * self.slope) as i64
    }

    /// Takes a callback at `now_ns`, in which the server's count of frames was `frame_time`; by
    /// then there were `xruns`. Absent for the first one, which nothing is known before, and for
    /// one in a cycle that was counted with the callback before: that came so late that its cycle
    /// was over when it asked.
    #[inline(always)]
    pub fn take(&mut self, now_ns: i64, frame_time: u32, xruns: u32) -> Option<Cycle> {
        self.take_woken(now_ns, now_ns, frame_time, xruns)
    }

    /// The same where the thread is known to have been woken at `woken_ns`: the grid lies through
    /// the earliest of these.
    #[inline(always)]
    pub fn take_woken(
        &mut self,
        now_ns: i64,
        woken_ns: i64,
        frame_time: u32,
        xruns: u32,
    ) -> Option<Cycle> {
        if self.origin_ns == 0 {
            (self.origin_ns, self.frame_time, self.xruns) = (woken_ns, frame_time, xruns);
            return None;
        }
        let begun = frame_time.wrapping_sub(self.frame_time).saturating_add(self.frames / 2);
        let advanced = u64::from(begun / self.frames);
        if advanced == 0 {
            return None;
        }
        self.frame_time = frame_time;
        let is_after_xrun = xruns != self.xruns || self.is_after_xrun;
        // The xrun of a stop may be told only after the first callback that follows it.
        let told = self.behind.take().filter(|_| is_after_xrun);
        let mut left_out = told.map_or(0, |point| self.begin_anew(point));
        let due_ns = self.due_ns(self.cycle + 1);
        let sample = Sample { t_ns: due_ns, latency_ns: now_ns - due_ns };
        self.cycle += advanced;
        // What was begun since the callback is in the count of frames, so that a thread alone is
        // never a whole period behind: the server has left periods out.
        if woken_ns - self.due_ns(self.cycle) >= self.nominal_ns(1).max(1) {
            let at_ns = self.nominal_ns(self.cycle);
            let point = Point { at_ns, offset_ns: woken_ns - self.origin_ns - at_ns };
            match is_after_xrun {
                true => left_out += self.begin_anew(point),
                false => self.behind = Some(point),
            }
        }
        let is_laid_anew = self.learn(woken_ns, xruns) || left_out > 0;
        Some(Cycle { sample, missed: advanced - 1 + left_out, is_laid_anew })
    }

    /// Lays the grid through this callback, and gives the whole periods by which it is later.
    #[cold]
    #[inline(never)]
    fn begin_anew(&mut self, point: Point) -> u64 {
        let behind_ns = point.offset_ns - self.line_ns(point.at_ns);
        (self.line, self.slope, self.known) = (point, 0.0, 0);
        (behind_ns / self.nominal_ns(1).max(1)).max(0) as u64
    }

    #[inline(always)]
    fn due_ns(&self, cycle: u64) -> i64 {
        let nominal_ns = self.nominal_ns(cycle);
        self.origin_ns + nominal_ns + self.line_ns(nominal_ns)
    }

    fn learn(&mut self, now_ns: i64, xruns: u32) -> bool {
        let at_ns = self.nominal_ns(self.cycle);
        let offset_ns = now_ns - self.origin_ns - at_ns;
        if xruns != self.xruns {
            self.xruns = xruns;
            self.is_after_xrun = true;
            (self.lowest.offset_ns, self.left) = (i64::MAX, FEWEST);
        }
        if offset_ns < self.lowest.offset_ns {
            self.lowest = Point { at_ns, offset_ns };
        }
        let below_ns = self.line_ns(at_ns) - offset_ns;
        if below_ns > 0 {
            self.line.offset_ns -= below_ns;
        }
        self.left -= 1;
        if self.left > 0 {
            return false;
        }
        let point = core::mem::replace(&mut self.lowest, Point { at_ns, offset_ns: i64::MAX });
        self.left = self.block_cycles;
        let is_off = point.offset_ns - self.line_ns(point.at_ns) > NEAR_NS;
        let again = core::mem::take(&mut self.is_after_xrun) && is_off;
        if again {
            self.known = 0;
        }
        self.add(point);
        self.lay();
        again
    }

    fn add(&mut self, point: Point) {
        if self.known == POINTS {
            self.points.rotate_left(1);
            self.known -= 1;
        }
        if let Some(next) = self.points.get_mut(self.known) {
            *next = point;
            self.known += 1;
        }
    }

    /// Lays the line under the points.
    fn lay(&mut self) {
        let points = self.points.get(..self.known).unwrap_or_default();
        let lowest = points.iter().copied().min_by_key(|point| point.offset_ns);
        let (Some(lowest), Some(first), Some(last)) = (lowest, points.first(), points.last())
        else {
            return;
        };
        (self.line, self.slope) = (lowest, 0.0);
        if self.known >= SLOPED_FROM {
            let middle_ns = first.at_ns + (last.at_ns - first.at_ns) / 2;
            (self.line, self.slope) = hull_edge(points, middle_ns).unwrap_or((lowest, 0.0));
        }
    }
}

/// The edge of the lower hull of `points` over `middle_ns`: a point of it, and its slope.
fn hull_edge(points: &[Point], middle_ns: i64) -> Option<(Point, f64)> {
    let slope = |from: &Point, to: &Point| {
        (to.offset_ns - from.offset_ns) as f64 / (to.at_ns - from.at_ns).max(1) as f64
    };
    let mut from = points.first()?;
    loop {
        let later = points.iter().filter(|point| point.at_ns > from.at_ns);
        let next = later.min_by(|a, b| slope(from, a).total_cmp(&slope(from, b)))?;
        if next.at_ns >= middle_ns {
            return Some((*from, slope(from, next).clamp(-STEEPEST, STEEPEST)));
        }
        from = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD_NS: i64 = 1_333_333;

    /// Callbacks of a device that is `ppm` fast, each late by what `late_ns` says of its number.
    fn latencies(ppm: f64, cycles: i64, late_ns: impl Fn(i64) -> i64) -> Vec<Cycle> {
        let mut grid = CycleGrid::new(64, 48_000);
        let at = |cycle: i64| {
            let nominal_ns = cycle as f64 * 64.0 / 48_000.0 * 1e9;
            1_000_000 + (nominal_ns * (1.0 - ppm / 1e6)) as i64 + late_ns(cycle)
        };
        (0..cycles).filter_map(|cycle| grid.take(at(cycle), (cycle * 64) as u32, 0)).collect()
    }

    #[test]
    fn a_device_with_a_clock_of_its_own_is_followed_and_late_cycles_are_not() {
        for ppm in [-150.0, 0.0, 150.0] {
            // From 5 to 25 us of jitter, and each 100th cycle 800 us late.
            let late_ns = |cycle: i64| match cycle % 100 {
                0 => 800_000,
                other => 5_000 + other * 7_919 % 20_000,
            };
            let found = latencies(ppm, 40_000, late_ns);
            for (cycle, found) in (1..).zip(&found).skip(8_000) {
                let expected_ns = late_ns(cycle) - 5_000;
                let error_ns = found.sample.latency_ns - expected_ns;
                assert!(error_ns.abs() < 3_000, "{ppm} ppm, {cycle}: {error_ns} ns off");
                assert_eq!(found.missed, 0);
            }
        }
    }

    #[test]
    fn a_load_that_makes_most_cycles_late_does_not_move_the_grid() {
        // All but one in 300 are late by 300 us.
        let late_ns = |cycle: i64| if cycle % 300 == 7 { 0 } else { 300_000 };
        let found = latencies(40.0, 20_000, late_ns);
        let late = found.iter().skip(2_000).filter(|of| of.sample.latency_ns > 295_000).count();
        assert_eq!(late, 17_999 - 60);
    }

    #[test]
    fn a_thread_that_comes_cycles_too_late_is_as_late_as_its_first_and_misses_the_others() {
        let mut grid = CycleGrid::new(64, 48_000);
        for cycle in 0..1_000 {
            grid.take(1_000_000 + cycle * PERIOD_NS, (cycle * 64) as u32, 0);
        }
        // The server is in cycle 1008 when the callback of cycle 1000 comes.
        let late_ns = 8 * PERIOD_NS + 200_000;
        let found = grid.take(1_000_000 + 1_000 * PERIOD_NS + late_ns, 1_008 * 64, 0).unwrap();
        assert!((found.sample.latency_ns - late_ns).abs() < 2_000, "{found:?}");
        assert_eq!(found.missed, 8);
        // It asked for the count when cycle 1008 had begun: that has its callback yet to come.
        assert_eq!(grid.take(1_000_000 + 1_008 * PERIOD_NS + 300_000, 1_008 * 64, 0), None);
        let next = grid.take(1_000_000 + 1_009 * PERIOD_NS, 1_009 * 64, 0).unwrap();
        assert!(next.sample.latency_ns.abs() < 2_000 && next.missed == 0, "{next:?}");
    }

    #[test]
    fn a_server_that_begins_anew_after_an_xrun_has_a_new_grid_and_without_one_it_is_late() {
        for xruns in [0, 1] {
            let mut grid = CycleGrid::new(64, 48_000);
            let mut anew = 0;
            let mut last_ns = 0;
            for cycle in 0..2_000_i64 {
                let shift_ns = if cycle < 1_000 { 0 } else { 600_000 };
                let seen = if cycle < 1_000 { 0 } else { xruns };
                let at_ns = 1_000_000 + cycle * PERIOD_NS + shift_ns;
                if let Some(found) = grid.take(at_ns, (cycle * 64) as u32, seen) {
                    anew += u32::from(found.is_laid_anew);
                    last_ns = found.sample.latency_ns;
                }
            }
            assert_eq!(anew, xruns);
            assert_eq!(last_ns > 590_000, xruns == 0, "{last_ns}");
        }
    }

    #[test]
    fn a_server_that_was_stopped_is_late_once_and_its_periods_are_missed() {
        const STOP_NS: i64 = 1_500_000_000;
        // The xrun is told before the first callback after the stop, or after it.
        for told in [1_000, 1_001] {
            let mut grid = CycleGrid::new(64, 48_000);
            let of_cycle = |cycle: i64| {
                let shift_ns = if cycle < 1_000 { 0 } else { STOP_NS };
                let at_ns = 1_000_000 + cycle * PERIOD_NS + shift_ns;
                grid.take(at_ns, (cycle * 64) as u32, u32::from(cycle >= told))
            };
            let found: Vec<Cycle> = (0..3_000_i64).filter_map(of_cycle).collect();
            let late = found.iter().filter(|one| one.sample.latency_ns > 5_000);
            let late: Vec<i64> = late.map(|one| one.sample.latency_ns).collect();
            let [one] = late.as_slice() else { panic!("{late:?}") };
            assert!((one - STOP_NS).abs() < 5_000, "{one}");
            let missed: u64 = found.iter().map(|one| one.missed).sum();
            assert_eq!(missed, (STOP_NS / PERIOD_NS) as u64);
            assert_eq!(found.iter().filter(|one| one.is_laid_anew).count(), 1);
        }
    }
}
