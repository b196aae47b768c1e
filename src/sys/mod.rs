//! Safe wrappers over the operating system; home of most `unsafe`. Knows no runs.

#![expect(unsafe_code, reason = "the one room for system calls that no crate wraps safely")]

pub mod capabilities;
pub mod child;
pub mod clock;
pub mod conditions;
pub mod counters;
pub mod cpus;
pub mod faults;
pub mod kernel_config;
pub mod kmsg;
pub mod mapped;
pub mod membarrier;
pub mod memory;
pub mod namespace;
pub mod perf;
pub mod ports;
pub mod process;
pub mod ram_disk;
pub mod region;
pub mod root;
pub mod sched;
pub mod shared;
pub mod signals;
pub mod tasks;
pub mod text;
pub mod timer;
pub mod usage;
