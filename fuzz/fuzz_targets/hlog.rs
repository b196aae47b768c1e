//! `series.hlog`: lines of histograms, as other programs write them too.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tardy::run::hlog;

fuzz_target!(|data: &[u8]| {
    let _ = hlog::read(data, |_| {});
});
