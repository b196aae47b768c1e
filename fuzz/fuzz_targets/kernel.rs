//! Files of kernels: bzImage, ELF, configuration. An even first byte gets the marks of a bzImage,
//! so that not each has to be found again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tardy::{
    analysis::kernel_config::KernelConfig,
    lab::kernels::bzimage::{has_pvh, read},
};

const MARKS: [(usize, &[u8]); 3] = [(0x1fe, &[0x55, 0xaa]), (0x202, b"HdrS"), (0x206, &[0x0f, 2])];

fuzz_target!(|data: &[u8]| {
    let mut bytes = data.to_vec();
    if data.first().is_some_and(|first| first % 2 == 0) {
        bytes.resize(bytes.len().max(0x250), 0);
        for (at, mark) in MARKS {
            bytes[at..at + mark.len()].copy_from_slice(mark);
        }
    }
    let _ = (read(&bytes), has_pvh(&bytes));
    let _ = KernelConfig::parse(&String::from_utf8_lossy(data));
});
