//! Both ends of a ping-pong over a stream that carries anything, in any parts.
#![no_main]

use std::{
    io::Write as _,
    net::Shutdown,
    os::{fd::AsRawFd as _, unix::net::UnixStream},
};

use libfuzzer_sys::fuzz_target;
use tardy_hot::{
    exchange::{Port as _, pong},
    ports::stream::{StreamPort, StreamSocket},
    stop::Stop,
};

fuzz_target!(|data: &[u8]| {
    let Some((size, rest)) = data.split_first() else { return };
    let size = usize::from(*size) + 1;
    // What fits into the socket at once; and so do the answers, which nobody reads: of small ones
    // hardly 300, as each takes some 768 bytes there.
    let rest = &rest[..rest.len().min(4096).min(200 * size)];
    for is_far in [false, true] {
        let (here, mut there) = UnixStream::pair().expect("two sockets");
        there.write_all(rest).expect("room in the socket");
        there.shutdown(Shutdown::Write).expect("an end");
        let descriptor = here.as_raw_fd();
        let mut port = StreamPort::<StreamSocket>::new(descriptor, descriptor, size);
        if is_far {
            let mut answered = 0;
            let _ = pong(&mut port, &Stop::new(), &mut answered);
            assert_eq!(answered, (rest.len() / size) as u64);
        } else {
            let messages = std::iter::from_fn(|| port.receive().ok()).count();
            assert_eq!(messages, rest.len() / size);
        }
    }
});
