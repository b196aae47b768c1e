//! Files of single samples: the closed one and the open one.
#![no_main]

use std::io::Write as _;

use libfuzzer_sys::fuzz_target;
use tardy::run::{samples::SampleReader, spool};

fuzz_target!(|data: &[u8]| {
    let _ = spool::read(data, |_, _| Ok(()));
    let mut file = tempfile::Builder::new()
        .suffix(".parquet")
        .tempfile_in("/dev/shm")
        .expect("a place in memory");
    file.write_all(data).expect("room in memory");
    let _ = SampleReader::new(&["cpu0".into()], 0).read(file.path(), |_, _| {});
});
