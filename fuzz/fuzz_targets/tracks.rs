//! The tables beside the samples.
#![no_main]

use std::io::Write as _;

use libfuzzer_sys::fuzz_target;
use tardy::run::tracks::{InterruptCount, LoadRow, MachineRow, from_csv};

fuzz_target!(|data: &[u8]| {
    let mut file = tempfile::NamedTempFile::new_in("/dev/shm").expect("a place in memory");
    file.write_all(data).expect("room in memory");
    let _ = from_csv::<MachineRow>(file.path());
    let _ = from_csv::<LoadRow>(file.path());
    let _ = from_csv::<InterruptCount>(file.path());
});
