//! tardy as a library: its modules, in the order of the layers.
//!
//! Makers write runs, readers read them; they share only [`run`]. `docs/dev/architecture.md`
//! says which
//! module may import which, and `style/tests/layers.rs` checks it.

#![deny(unsafe_code)]

// The command line and exit codes.
pub mod cli;
// Makers: many runs in an order.
pub(crate) mod campaign;
// Makers: runs a measurement, from the plan to the finished run.
pub(crate) mod session;
// Makers: what produces latency samples.
pub mod probes;
// Makers: `tardy echo`, the remote endpoint of messages on another machine.
pub(crate) mod echo;
// Makers: transports of messages, with both their ends.
pub mod transports;
// Makers: the BPF programs that record wake-ups inside the kernel, and their loader.
pub mod kernel;
// Makers: background loads, with proof that they ran.
pub mod loads;
// Makers: which wake-ups were late, and what each is blamed on.
pub(crate) mod peaks;
// Makers: what on this system costs latency, and the remedies.
pub(crate) mod check;
// Makers: sets up the machine, reads back, restores.
pub mod setup;
// What to run: one format for this machine and for the lab.
pub mod plan;
// Readers: kernels in virtual machines, where tardy measures as a user would.
pub mod lab;
// Readers: the store of runs, and how a user names one.
pub(crate) mod store;
// Readers: the full-screen view of a run in progress.
pub(crate) mod live;
// Readers: runs in the formats of other programs.
pub mod exchange;
// Readers: tables, pages and pictures.
pub mod report;
// Readers: what needs an interval estimate or more than one run.
pub mod analysis;
// The waist: what a measurement is, and the directory that holds it.
pub mod run;
// Atomic replacement of files.
pub(crate) mod draft;
// Limits of everything that is read from files.
pub mod limits;
// Foreign text for a terminal.
pub(crate) mod plain;
// Quantities with their units.
pub mod units;
// Safe wrappers over the operating system.
pub mod sys;
// What unit tests of several modules share.
#[cfg(test)]
pub(crate) mod testing;
