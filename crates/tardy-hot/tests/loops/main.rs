//! What the loops decide and what they keep: with made-up waits, beside other histograms, and with
//! stages written by hand.

#![cfg(not(loom))]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod histogram;
mod traced;
mod wakeup;
