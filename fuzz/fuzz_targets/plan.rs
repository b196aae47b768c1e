//! Plans of the lab.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tardy::lab::matrix::plan::LabPlan;

fuzz_target!(|text: &str| {
    let _ = LabPlan::parse(text, "plan");
});
