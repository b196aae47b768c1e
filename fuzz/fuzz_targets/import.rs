//! Files of other programs, in the format that each looks like: what is read has a sample, and no
//! series has more in its histogram than it counts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tardy::exchange::import::{FORMATS, ImportOptions, read};

fuzz_target!(|data: &[u8]| {
    let options = ImportOptions::default();
    if let Ok(sheet) = read(data, None, &options) {
        assert!(sheet.is_consistent(), "{sheet:?}");
    }
    // And in one that it may not look like.
    let chosen = usize::from(data.first().copied().unwrap_or(0)) % FORMATS.len();
    if let Ok(sheet) = read(data, FORMATS.get(chosen), &options) {
        assert!(sheet.is_consistent(), "{sheet:?}");
    }
});
