//! Reads small files under /proc and /sys, with a size limit.

use std::{
    fs::File,
    io::{ErrorKind, Read},
    path::Path,
    str::FromStr,
};

/// Size limit in bytes, above that of every file that tardy reads there.
const LIMIT: u64 = 4 << 20;

/// Bytes of a piece: at most some 60 us, of `/proc/diskstats` in a guest that counts 2 ns an
/// instruction.
const PIECE_BYTES: usize = 256;

/// Content of a file without trailing white space; `None` if unreadable.
#[must_use]
pub fn read(path: impl AsRef<Path>) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(LIMIT).read_to_string(&mut text).ok()?;
    text.truncate(text.trim_end().len());
    Some(text)
}

/// The same in pieces of at most [`PIECE_BYTES`], with a `pause` before each system call that takes
/// long: a kernel that does not preempt system calls keeps every thread of this CPU waiting for it.
/// A file of many lines is made line by line as it is read (`seq_read_iter`, fs/seq_file.c).
#[must_use]
pub fn read_in_pieces(path: impl AsRef<Path>, pause: &mut dyn FnMut()) -> Option<String> {
    pause();
    let mut file = File::open(path).ok()?.take(LIMIT);
    let (mut text, mut piece) = (Vec::new(), [0; PIECE_BYTES]);
    loop {
        pause();
        match file.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => text.extend_from_slice(piece.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    let mut text = String::from_utf8(text).ok()?;
    text.truncate(text.trim_end().len());
    Some(text)
}

/// A file that holds one value.
#[must_use]
pub fn value<T: FromStr>(path: impl AsRef<Path>) -> Option<T> {
    read(path)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_the_whole_text_and_a_pause_comes_before_each() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "\u{e4}bcdefghi\n".repeat(100);
        std::fs::write(&file, &text).unwrap();
        let mut pauses = 0;
        let pieces = read_in_pieces(&file, &mut || pauses += 1);
        assert_eq!((pieces.as_deref(), pieces.clone()), (Some(text.trim_end()), read(&file)));
        // To open it, for 1,100 bytes in pieces of 256, and for its end.
        assert_eq!(pauses, 1 + 5 + 1);
        assert_eq!(read_in_pieces("/nowhere", &mut || {}), None);
    }
}
