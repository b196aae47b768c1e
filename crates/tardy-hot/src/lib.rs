//! The measuring loops of tardy, and the few things they touch.
//!
//! # The contract
//!
//! Between the first and the last turn of a loop in this crate there is, per turn: one wait, the
//! clock reads that the loop's documentation names, stores into memory that was touched before the
//! loop began, and relaxed loads of flags. It has no allocation, lock, formatting, logging,
//! floating point, panic path or branch on configuration: which loop runs is chosen before, by
//! generics. Differences are signed. A failed system call is stored as a number and ends the loop;
//! the caller explains it. `tests/no_surprises/main.rs` counts allocations, page faults and system
//! calls per turn; `tests/interleavings.rs` tries the ring and the flag under loom.
//!
//! # Modules
//!
//! - [`clock`]: one clock read, as signed nanoseconds
//! - [`histogram`]: fixed log-linear counts that one thread writes and others may read meanwhile
//! - [`tally`]: what a histogram cannot hold exactly: min, max, sum, early, above, missed
//! - [`ring`]: single samples, late wake-ups or round trips on their way to a reader, bounded,
//!   never waiting
//! - [`stages`]: what the BPF side writes of a thread's last wake-up, and its parts
//! - [`stop`]: the flag that ends a loop
//! - [`pause`]: a pause between two turns of a loop
//! - [`traced`]: where samples go when their stages are recorded too
//! - [`trips`]: the same for the round trips of a ping-pong
//! - [`wakeup`]: the loop of the `timer` probe
//! - [`timeouts`]: waits of that loop as programs with an event loop have them; [`uring`]: with
//!   io_uring
//! - [`worked`]: where samples go when each wake-up has work to do
//! - [`exchange`]: the loops of the `pingpong` probe
//! - [`ports`]: what each transport calls to send and to receive a message
//! - [`packet`]: what the packets of a stream contain
//! - [`receive`]: the loop of the `receive` probe, and that of its sender
//! - [`echo`]: the loop of `tardy echo`
//! - [`gaps`]: the loop of the `noise` probe
//! - [`cycles`]: what the `audio` probe does in each cycle of a JACK server; [`cycle_grid`]: when
//!   those are due
//! - [`frames`]: the loops of the `interactive` probe, and the work that they do
//! - [`interrupts`]: what the `irq` probe does in each turn beside its wake-up
//! - [`inversion`]: the loops of the `inversion` probe
//! - [`stream`]: the loop of the `stream` probe
//! - [`repeats`]: the loops of the `bandwidth` probe
//!
//! All times are nanoseconds in `i64`: 292 years, with a sign.

pub mod clock;
pub mod cycle_grid;
pub mod cycles;
pub mod echo;
pub mod exchange;
pub mod frames;
pub mod gaps;
pub mod histogram;
#[cfg(feature = "instances")]
#[doc(hidden)]
pub mod instances;
pub mod interrupts;
pub mod inversion;
pub mod late_work;
pub mod packet;
pub mod pause;
pub mod ports;
pub mod receive;
pub mod repeats;
pub mod ring;
pub mod stages;
pub mod stop;
pub mod stream;
mod sync;
pub mod tally;
pub mod timeouts;
pub mod traced;
pub mod trips;
pub mod uring;
pub mod wakeup;
pub mod worked;
