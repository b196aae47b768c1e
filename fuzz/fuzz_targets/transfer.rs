//! What a guest says: its files, as they are and with the right sum behind them, and its console.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sha2::{Digest as _, Sha256};
use tardy::lab::guest::{
    console::Console,
    transfer::{HELLO, Received},
};

fuzz_target!(|data: &[u8]| {
    let _ = Received::parse(data);
    let mut whole = [HELLO, data].concat();
    whole.extend(Sha256::digest(&whole));
    let _ = Received::parse(&whole);
    let mut console = Console::default();
    for part in data.chunks(7) {
        console.feed(part);
    }
    let _ = (console.excerpt(5), console.tail(5));
});
