//! Plans.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tardy::plan::Plan;

fuzz_target!(|text: &str| {
    let _ = Plan::parse(text, "plan");
});
