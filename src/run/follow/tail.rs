//! A file that grows while it is read: each look brings only what was appended since the last one.

use std::{
    fs::File,
    io::{self, ErrorKind},
    os::unix::fs::FileExt as _,
    path::PathBuf,
};

use crate::run::files::{self, unusable};

/// A file and how far it was read.
#[derive(Debug)]
pub(super) struct Tail {
    path: PathBuf,
    file: Option<File>,
    /// Bytes that were handed over: whole lines.
    at: u64,
}

/// What one look brought.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Appended {
    /// Where in the file the lines begin.
    pub at: u64,
    /// Whole lines, each with its end.
    pub lines: Vec<u8>,
    /// Bytes behind them that wait for the next look, or for the end of their line.
    pub left: u64,
    /// The file is shorter than what was read of it: these lines are its first again.
    pub is_new: bool,
}

impl Tail {
    /// Nothing read yet; the file need not be there.
    pub(super) const fn new(path: PathBuf) -> Self {
        Self { path, file: None, at: 0 }
    }

    /// Bytes that were read.
    pub(super) const fn read(&self) -> u64 {
        self.at
    }

    /// The next whole lines, of at most `most` bytes together. A last line without its end waits.
    ///
    /// # Errors
    /// The file cannot be read, or is not a regular file; or one line is longer than `most`.
    pub(super) fn look(&mut self, most: usize) -> io::Result<Appended> {
        if self.file.is_none() {
            match files::open(&self.path) {
                Ok(file) => self.file = Some(file),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Appended::default()),
                Err(error) => return Err(error),
            }
        }
        let Some(file) = &self.file else { return Ok(Appended::default()) };
        let length = file.metadata()?.len();
        // What a full disk refused in part is cut off again.
        let is_new = length < self.at;
        if is_new {
            self.at = 0;
        }
        let (at, fresh) = (self.at, length - self.at);
        let wanted = usize::try_from(fresh).unwrap_or(most).min(most);
        let mut lines = vec![0; wanted];
        let mut got = 0;
        while let Some(rest) = lines.get_mut(got..).filter(|rest| !rest.is_empty()) {
            match file.read_at(rest, at + got as u64) {
                Ok(0) => break,
                Ok(read) => got += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        lines.truncate(got);
        let whole = memchr::memrchr(b'\n', &lines).map_or(0, |end| end + 1);
        if whole == 0 && got == most {
            return Err(unusable(format!("a line of it is longer than {} KiB", most >> 10)));
        }
        lines.truncate(whole);
        self.at += whole as u64;
        Ok(Appended { at, lines, left: fresh - whole as u64, is_new })
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::OpenOptions, io::Write as _};

    use super::*;

    #[test]
    fn each_look_brings_whole_lines_that_are_new() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("log");
        let mut tail = Tail::new(path.clone());
        assert_eq!(tail.look(100).unwrap(), Appended::default(), "it is not there yet");
        let mut file = OpenOptions::new().create(true).append(true).open(&path).unwrap();
        file.write_all(b"one\ntwo\nthr").unwrap();
        let first = tail.look(100).unwrap();
        assert_eq!((first.at, first.lines.as_slice(), first.left), (0, &b"one\ntwo\n"[..], 3));
        assert_eq!(tail.look(100).unwrap().lines, b"", "a line without its end waits");
        file.write_all(b"ee\n").unwrap();
        let second = tail.look(100).unwrap();
        assert_eq!((second.at, second.lines.as_slice(), second.left), (8, &b"three\n"[..], 0));
        assert_eq!(tail.read(), 14);
    }

    #[test]
    fn what_is_long_comes_in_pieces_and_what_has_no_end_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("log");
        std::fs::write(&path, "aaaa\nbbbb\ncccc\n").unwrap();
        let mut tail = Tail::new(path.clone());
        let pieces: Vec<_> = (0..3).map(|_| tail.look(9).unwrap()).collect();
        let texts: Vec<_> = pieces.iter().map(|piece| piece.lines.as_slice()).collect();
        assert_eq!(texts, [&b"aaaa\n"[..], b"bbbb\n", b"cccc\n"]);
        assert_eq!(pieces.iter().map(|piece| piece.left).collect::<Vec<_>>(), [10, 5, 0]);
        assert_eq!(Tail::new(path).look(4).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn a_file_that_was_cut_off_is_read_again_from_its_beginning() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("log");
        std::fs::write(&path, "one\ntwo\n").unwrap();
        let mut tail = Tail::new(path.clone());
        assert!(!tail.look(100).unwrap().is_new);
        OpenOptions::new().write(true).open(&path).unwrap().set_len(4).unwrap();
        let again = tail.look(100).unwrap();
        assert_eq!((again.is_new, again.lines.as_slice()), (true, &b"one\n"[..]));
    }
}
