//! tardy's library by what others use of it: pictures, and readers of inputs that were damaged. One
//! program, so that the library is linked once.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(unused_attributes, reason = "the fuzz targets are programs without main elsewhere")]

/// Stands for the crate that the fuzz targets are made for.
extern crate self as libfuzzer_sys;

/// A separate module, so that the targets find the macro where they look for it, and only there.
mod stand_in {
    /// What a target does with one input.
    macro_rules! fuzz_target {
        (|$data:ident: &[u8]| $body:expr) => {
            pub(crate) fn once($data: &[u8]) {
                $body
            }
        };
        (|$text:ident: &str| $body:expr) => {
            pub(crate) fn once(bytes: &[u8]) {
                if let Ok($text) = std::str::from_utf8(bytes) {
                    $body
                }
            }
        };
    }
    pub(crate) use fuzz_target;
}
pub(crate) use stand_in::fuzz_target;

#[allow(dead_code, reason = "other tests use more of it")]
#[path = "../outside/chance.rs"]
mod chance;
mod fuzz_targets;
#[path = "../outside/once.rs"]
mod once;
mod plot;
