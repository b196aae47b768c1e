//! Files of single samples: the closed one and the open one.
#![no_main]

use std::io::Write as _;

use libfuzzer_sys::fuzz_target;
use tardy::run::{samples, spool};

fuzz_target!(|data: &[u8]| {
    let _ = spool::read(data, |_, _| {});
    let mut file = tempfile::Builder::new()
        .suffix(".parquet")
        .tempfile_in("/dev/shm")
        .expect("a place in memory");
    file.write_all(data).expect("room in memory");
    let _ = samples::read(file.path(), &["cpu0".into()], |_, _| {});
});
