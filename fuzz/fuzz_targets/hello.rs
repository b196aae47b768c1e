//! The handshake of both ends: what is read is what would be sent.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tardy::transports::hello::HelloMessage;

fuzz_target!(|data: &[u8]| {
    if let Ok(message) = HelloMessage::read(data) {
        assert_eq!(HelloMessage::read(&message.write()), Ok(message));
    }
});
