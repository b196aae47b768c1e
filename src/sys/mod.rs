//! Safe wrappers over the operating system; home of most `unsafe`. Knows no runs.

#![expect(unsafe_code, reason = "the one room for system calls that no crate wraps safely")]

pub mod address;
pub mod bell;
pub mod capabilities;
pub mod child;
pub mod clock;
pub mod conditions;
pub mod counters;
pub mod cpus;
pub mod environment;
pub mod faults;
pub mod hypervisor;
pub mod idle;
pub mod interface;
pub mod kernel_config;
pub mod kernel_file;
pub mod kmsg;
pub mod mapped;
pub mod membarrier;
pub mod memory;
pub mod mqueue;
pub mod namespace;
pub mod nic_clock;
pub mod perf;
pub mod ports;
pub mod process;
pub mod quota;
pub mod ram_disk;
pub mod region;
pub mod rights;
pub mod root;
pub mod rtc;
pub mod sched;
pub mod semaphores;
pub mod shared;
pub mod signals;
pub mod silence;
pub mod tasks;
pub mod text;
pub mod timer;
pub mod timestamps;
pub mod tsc;
pub mod usage;
pub mod zmq;
