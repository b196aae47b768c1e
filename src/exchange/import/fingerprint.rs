//! By what a content is known again, whatever it is called and however it is packed.

use std::{
    fmt::Write as _,
    io::{self, Read},
};

use sha2::{Digest as _, Sha256};

/// What reads from another and hashes what passes.
pub(super) struct Fingerprinted<R> {
    from: R,
    hash: Sha256,
}

impl<R: Read> Fingerprinted<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, hash: Sha256::new() }
    }

    /// The SHA-256 of all of it, in hexadecimal digits; what nobody has read yet is read now.
    pub(super) fn of_all(mut self) -> io::Result<String> {
        io::copy(&mut self, &mut io::sink())?;
        let mut text = String::new();
        for byte in self.hash.finalize() {
            let _ = write!(text, "{byte:02x}");
        }
        Ok(text)
    }
}

impl<R: Read> Read for Fingerprinted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.from.read(into)?;
        self.hash.update(into.get(..length).unwrap_or_default());
        Ok(length)
    }
}
