//! `modules.dep` of a kernel from anywhere, and names of packages.
#![no_main]

use std::path::Component;

use libfuzzer_sys::fuzz_target;
use tardy::lab::kernels::{modules::Modules, package::Name};

fuzz_target!(|text: &str| {
    let _ = text.lines().map(Name::parse).count();
    let Ok(modules) = Modules::parse(text, "") else { return };
    let names = text.lines().filter_map(|line| line.split(':').next());
    for name in names.take(20) {
        let files = modules.closure(&[name]).unwrap_or_default();
        let parts = files.iter().flat_map(|file| file.components());
        assert!(parts.into_iter().all(|part| matches!(part, Component::Normal(_))), "{files:?}");
    }
});
