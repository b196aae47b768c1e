//! Waits with patience.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use super::PATIENCE;

/// Waits for a condition that must come true.
pub(super) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        sleep(Duration::from_millis(10));
    }
}
