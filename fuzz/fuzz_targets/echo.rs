//! The far end of messages: what is sent back is never more than came.
//! The first byte chooses the answer, each next the length of a message behind it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tardy_hot::{
    echo::{Answer, EchoCounts, EchoIo, Plain, RawEcho, Stamped, TokenBucket, serve},
    stop::Stop,
};

struct Script<'a> {
    left: &'a [u8],
    last: usize,
}

impl EchoIo for Script<'_> {
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, i32> {
        let (length, rest) = self.left.split_first().ok_or(libc::ECONNRESET)?;
        let (message, rest) = rest.split_at(rest.len().min((*length).into()));
        let fits = message.len().min(into.len());
        into[..fits].copy_from_slice(&message[..fits]);
        (self.left, self.last) = (rest, message.len());
        Ok(message.len())
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), i32> {
        assert!(bytes.len() <= self.last, "more goes back than came");
        Ok(())
    }

    fn is_over(errno: i32) -> bool {
        errno == libc::ECONNRESET
    }
}

fn run(left: &[u8], answer: &impl Answer) {
    let mut buffer = [0; 200];
    // More than any input has: to drop one takes a pause.
    let mut bucket = TokenBucket::new(1_000_000, i64::MAX);
    let talk = (&mut buffer[..], b"tdyh", 128);
    let mut way = Script { left, last: 0 };
    serve(&mut way, answer, talk, &mut bucket, &EchoCounts::default(), &Stop::new());
}

fuzz_target!(|data: &[u8]| {
    let Some((kind, rest)) = data.split_first() else { return };
    match kind % 3 {
        0 => run(rest, &Plain { size: 16 }),
        1 => run(rest, &RawEcho),
        _ => run(rest, &Stamped { size: 64, session: 0 }),
    }
});
