//! The ring and the flag under loom, which tries every interleaving that the memory model allows:
//! `RUSTFLAGS="--cfg loom" cargo test -p tardy-hot --test interleavings --release`.
//!
//! loom's cells fail a test when two threads touch a slot at once, so a torn sample cannot pass,
//! and its atomics hand out every old value that an ordering too weak would let through.

#![cfg(loom)]

use loom::{cell::UnsafeCell, sync::Arc, thread};
use tardy_hot::{
    ring::{Reader, Sample, Writer, ring},
    stop::Stop,
};

/// A sample whose two halves tell on each other.
fn sample(n: i64) -> Sample {
    Sample { t_ns: n, latency_ns: -n }
}

fn push_all(mut writer: Writer<Sample>, samples: i64) {
    (1..=samples).for_each(|n| writer.push(sample(n)));
}

/// Drains `times` times while the writer may be at work.
fn drain(reader: &mut Reader<Sample>, times: usize, got: &mut Vec<Sample>) {
    for _ in 0..times {
        let before = got.len();
        let there = reader.drain(|sample| got.push(sample));
        assert_eq!(got.len() - before, there, "what drain returns is what it handed over");
    }
}

/// What arrived is whole and in order, and nothing is missing but what was counted.
fn check(got: &[Sample], dropped: u64, pushed: i64) {
    assert!(got.iter().all(|sample| sample.t_ns == -sample.latency_ns), "torn: {got:?}");
    assert!(got.is_sorted_by(|a, b| a.t_ns < b.t_ns), "out of order: {got:?}");
    assert_eq!(got.len() as u64 + dropped, pushed as u64, "lost: {got:?}");
}

#[test]
fn samples_arrive_whole_in_order_and_are_lost_only_where_counted() {
    loom::model(|| {
        let (writer, mut reader) = ring(2);
        let thread = thread::spawn(move || push_all(writer, 4));
        let mut got = Vec::new();
        drain(&mut reader, 2, &mut got);
        thread.join().unwrap();
        drain(&mut reader, 1, &mut got);
        check(&got, reader.dropped(), 4);
    });
}

#[test]
fn a_full_ring_keeps_the_oldest_and_takes_more_once_it_was_drained() {
    loom::model(|| {
        let (mut writer, mut reader) = ring(2);
        (1..=3).for_each(|n| writer.push(sample(n)));
        assert_eq!(reader.dropped(), 1);
        let thread = thread::spawn(move || {
            (4..=5).for_each(|n| writer.push(sample(n)));
        });
        let mut got = Vec::new();
        drain(&mut reader, 1, &mut got);
        assert_eq!(got.first_chunk(), Some(&[sample(1), sample(2)]));
        thread.join().unwrap();
        drain(&mut reader, 1, &mut got);
        check(&got, reader.dropped(), 5);
    });
}

#[test]
fn a_reader_that_goes_first_or_last_leaves_nothing_behind() {
    loom::model(|| {
        let (writer, mut reader) = ring(2);
        let thread = thread::spawn(move || push_all(writer, 2));
        let mut got = Vec::new();
        drain(&mut reader, 1, &mut got);
        let so_far = reader.dropped();
        drop(reader);
        thread.join().unwrap();
        check(&got, 2 - got.len() as u64, 2);
        assert_eq!(so_far, 0, "two samples fit");
    });
}

/// A plain cell that one thread writes before it sets the flag.
struct Guarded {
    what: UnsafeCell<u32>,
    stop: Stop,
}

// SAFETY: the cell is written before `stop` is set and read after it was seen set; that this is
// enough is what the test below finds out.
unsafe impl Sync for Guarded {}
// SAFETY: see above; nothing in it belongs to a thread.
unsafe impl Send for Guarded {}

#[test]
fn what_was_stored_before_the_flag_was_set_is_visible_to_who_sees_it_set() {
    loom::model(|| {
        let shared = Arc::new(Guarded { what: UnsafeCell::new(0), stop: Stop::new() });
        let writer = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            // SAFETY: it is not read before the flag is set below.
            writer.what.with_mut(|what| unsafe { *what = 7 });
            writer.stop.set();
        });
        if shared.stop.is_set() {
            // SAFETY: the flag is set, so the writer has finished.
            assert_eq!(shared.what.with(|what| unsafe { *what }), 7);
        }
        thread.join().unwrap();
        assert!(shared.stop.is_set());
    });
}

#[test]
fn the_flag_may_be_set_by_two_at_once_and_stays_set() {
    loom::model(|| {
        let stop = Arc::new(Stop::new());
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let stop = Arc::clone(&stop);
                thread::spawn(move || {
                    stop.set();
                    assert!(stop.is_set());
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(stop.is_set());
    });
}
