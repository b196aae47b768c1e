//! The journal of changed settings: only changes that tardy makes come out of it, and they come
//! back when they are written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tardy::setup::journal::{Change, parse};

fuzz_target!(|data: &[u8]| {
    let (owner, changes, _) = parse("journal", data);
    assert!(changes.iter().all(Change::is_plausible), "{changes:?}");
    let Some(owner) = owner else { return };
    let lines = std::iter::once(serde_json::to_string(&owner));
    let lines = lines.chain(changes.iter().map(serde_json::to_string));
    let text: String = lines.map(|line| line.expect("strings and numbers") + "\n").collect();
    assert_eq!(parse("journal", text.as_bytes()), (Some(owner), changes, Vec::new()));
});
