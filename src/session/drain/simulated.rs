//! The drain of a run whose samples are made up for a time that nobody waits for.

use std::sync::atomic::AtomicBool;

use super::{SAMPLES_FILE_NS, SECOND_NS, Thread, on_grid, wait_until};
use crate::probes::simulated_time::SimulatedTime;

impl Thread {
    /// Lets simulated time continue, interval by interval, and records each: as a run of that
    /// length would be recorded. What changes on the machine meanwhile is of another time, and only
    /// looked at before and after.
    pub(super) fn follow(&mut self, time: &SimulatedTime, finished: &AtomicBool) {
        let go = ReleaseOnDrop(time);
        let mut now = self.work.start_ns;
        loop {
            // Rings hold 5 s.
            now = self.next_interval_ns.min(now + SECOND_NS);
            if !time.advance(now) {
                break;
            }
            self.move_samples();
            if now >= self.next_interval_ns {
                self.next_interval_ns = on_grid(now, self.interval_ns(now), now);
                self.write_interval(now, &AtomicBool::new(true));
            }
            if now >= self.next_file_ns {
                self.next_file_ns = on_grid(self.next_file_ns, SAMPLES_FILE_NS, now);
                let closed = self.work.maker.close_samples();
                self.note(closed, "samples");
            }
        }
        drop(go);
        wait_until(i64::MAX, finished);
        self.end(time.ended_ns());
    }
}

/// However the drain ends, nobody waits for it.
struct ReleaseOnDrop<'a>(&'a SimulatedTime);

impl Drop for ReleaseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.let_go();
    }
}
