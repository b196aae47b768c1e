//! `lab.json`: what is read comes back when it is written.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use tardy::run::{
    RunDirectory,
    lab::{LAB, LabRecord},
};

thread_local! {
    static PLACE: tempfile::TempDir = tempfile::tempdir_in("/dev/shm").expect("a place in memory");
}

fuzz_target!(|data: &[u8]| {
    PLACE.with(|place| {
        let place = place.path();
        fs::write(place.join(LAB), data).expect("room in memory");
        if let Ok(Some(record)) = LabRecord::open(place) {
            let copy = place.join("copy");
            let directory = RunDirectory::make(&copy).expect("room in memory");
            record.write(&directory).expect("room in memory");
            assert_eq!(LabRecord::open(&copy).expect("what was written"), Some(record));
            fs::remove_dir_all(copy).expect("its own directory");
        }
    });
});
