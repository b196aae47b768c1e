//! tardy as a library: the rooms, in the order of the layers.
//!
//! Makers write runs, readers read them; they meet in [`run`] alone. `docs/architecture.md` tells
//! who may import whom, and `tests/layers.rs` holds it.

#![deny(unsafe_code)]

// What was typed, and which exit code follows.
pub mod cli;
// Makers: the conductor, from a plan to a finished run.
pub mod session;
// Makers: what produces latency samples.
pub mod probes;
// Makers: the far end of messages, on its own.
pub mod echo;
// Makers: ways for messages, from one end to the other.
pub mod transports;
// Makers: what the kernel itself sees of a wake-up, by programs that run inside it.
pub mod kernel;
// Makers: what disturbs the machine meanwhile, and proves that it did.
pub mod loads;
// Makers: which wake-ups were late, and what each is blamed on.
pub mod peaks;
// Makers: what in this system will cost latency, and the remedy.
pub mod check;
// Makers: make the machine fit, read back, let go.
pub mod setup;
// Readers: kernels in virtual machines, where tardy measures as a user would.
pub mod lab;
// Readers: many runs, and how a user names one.
pub mod store;
// Readers: tables, pages and pictures.
pub mod report;
// Readers: what needs an interval estimate or more than one run.
pub mod analysis;
// The waist: what a measurement is, and the directory that holds it.
pub mod run;
// A file whole or not at all.
pub mod draft;
// Quantities with their units.
pub mod units;
// Safe wrappers over the operating system.
pub mod sys;
