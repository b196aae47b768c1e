//! kill -9 at random moments, of whatever is started; what each leaves is judged by who started it.

use std::{process::Child, time::Duration};

use tardy_hot::clock::now_ns;

use super::{
    chance::{Campaign, repeats},
    support::{finish, pause, signal},
};

/// What is killed, and when.
pub(crate) struct Killing {
    /// What the campaign is called.
    pub name: &'static str,
    /// How often: where there is little time, and where there is much.
    pub times: (usize, usize),
    /// The latest moment, after the start.
    pub within: Duration,
}

/// One that was killed.
pub(crate) struct Killed {
    /// How long it lived.
    pub after: Duration,
    /// When it was killed, by the monotonic clock.
    pub at_ns: i64,
    /// The longest that this machine let this test wait too long meanwhile: what was killed
    /// may have stood still as long.
    pub stood_still_ns: i64,
}

/// Starts something again and again, kills it at a random moment, and counts what `judge` calls
/// what is left of it. `start` also hands over what is judged.
pub(crate) fn killed_at_random<T>(
    killing: &Killing,
    mut start: impl FnMut(usize) -> (T, Child),
    mut judge: impl FnMut(usize, T, &Killed) -> String,
) {
    let mut campaign = Campaign::new(killing.name);
    let most_us = u64::try_from(killing.within.as_micros()).unwrap();
    for number in 0..repeats(killing.times.0, killing.times.1) {
        let after = Duration::from_micros(campaign.chance.next() % most_us);
        let (left, child) = start(number);
        let stood_still_ns = wait_watching(after);
        signal(&child, "KILL");
        let at_ns = now_ns();
        finish(child);
        campaign.came(judge(number, left, &Killed { after, at_ns, stood_still_ns }));
    }
    campaign.end();
}

/// Waits so long; the longest that this machine let the waiting thread wait too long meanwhile, ns.
fn wait_watching(time: Duration) -> i64 {
    const STEP_NS: i64 = 5_000_000;
    let until_ns = now_ns() + i64::try_from(time.as_nanos()).unwrap();
    let mut worst_ns = 0;
    loop {
        let before_ns = now_ns();
        let step_ns = (until_ns - before_ns).min(STEP_NS);
        if step_ns <= 0 {
            return worst_ns;
        }
        pause(Duration::from_nanos(step_ns.unsigned_abs()));
        worst_ns = worst_ns.max(now_ns() - before_ns - step_ns);
    }
}
