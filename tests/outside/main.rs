//! tardy from outside: the built program as a user, a script or a stranger's tool meets it.
//!
//! Every test has its own store and knows its own processes by a mark in their environment, so that
//! tests disturb neither each other nor the runs of whoever else works on this machine. Tests that
//! need root, Python modules or other tools say `skipped: why` without them.
//!
//! Modules whose names begin with `root_` run in a guest of `cargo xtask vm` as well. A test that
//! changes the whole machine runs there only, or restores all of it: `cargo xtask test` runs
//! nothing beside it (`xtask/src/suite/schedule.rs`).
//!
//! `TARDY_TEST_LONG=1` makes the random ones long; `TARDY_TEST_SEED` repeats one of them;
//! `TARDY_TEST_PYTHON` names the Python that has the modules of `tests/python/requirements.txt`.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod ab;
mod audio;
mod attach;
mod attach_overload;
mod attach_response;
mod attach_room;
mod attach_runtimes;
mod attach_sleeps;
mod attach_truth;
mod attach_zmq;
mod bandwidth;
mod beside;
mod chance;
mod check;
mod chosen;
mod compare;
mod control_group;
mod crash;
mod damage;
mod durable;
mod echo;
mod endings;
mod export;
mod failing_calls;
mod flags;
mod documents;
mod fleet;
mod fleet_ansible;
mod fleet_kubernetes;
mod fleet_systemd;
mod flight;
mod foreign_readers;
mod full_disk;
mod greedy;
mod gates_against;
mod hostile;
mod import;
mod import_perf;
mod interactive;
mod inversion;
mod irq;
mod judged;
mod killed;
mod known_tails;
mod lab;
mod lab_kernels;
mod leaves_nothing;
mod limits;
mod live;
mod loads;
mod long;
mod long_enough;
mod meddling;
mod message_peaks;
mod nights;
mod noise;
mod once;
mod old_runs;
mod page;
mod page_causes;
mod pingpong;
mod plan;
mod profile;
mod questions;
mod quota;
mod receive;
mod record;
mod root_holds;
mod root_netem;
mod root_pod;
mod root_cures;
mod root_settings;
mod root_shield;
mod root_systemd;
mod root_tracefs;
mod root_two_machines;
mod root_vm;
mod schema;
mod settings;
mod stalls;
mod strace;
mod strangers;
mod stream;
mod stream_peaks;
mod support;
mod tracing;
mod trend;
mod trust;
mod undo_fails;
mod unprivileged;
mod unread;
mod unseen;
mod verbs;
mod why;
mod work;
mod zmq;
