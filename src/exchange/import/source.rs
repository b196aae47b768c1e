//! What a file is read through: line by line, by bounded memory, with the number of the line for
//! whoever finds it wrong.

use std::{
    borrow::Cow,
    io::{BufRead, BufReader, Read},
};

pub(super) use crate::limits::import::{LONGEST_LINE, MOST_WHOLE};
use thiserror::Error;

use super::line_prefix::without_prefix;

/// Bytes by which a format is recognised.
const HEAD_BYTES: usize = 64 << 10;

/// Why a file cannot be imported.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{}{what}", .line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct ImportError {
    /// Counted from 1; `None` if no line is to blame.
    pub line: Option<u64>,
    /// What is wrong, and what is to be done.
    pub what: String,
}

impl ImportError {
    /// Of the file as a whole.
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self { line: None, what: what.into() }
    }

    /// Of a line.
    pub(super) fn at(line: u64, what: impl Into<String>) -> Self {
        Self { line: Some(line), what: what.into() }
    }
}

/// Of a file with nothing in it.
pub(super) fn empty() -> ImportError {
    ImportError::new("it is empty")
}

/// Of a file that looks like no format.
pub(super) fn unknown() -> ImportError {
    let known: Vec<&str> = super::FORMATS.iter().map(|format| format.name).collect();
    ImportError::new(format!(
        "it looks like none of the formats that can be imported: {}; --from names one, and of a \
         table (CSV) --latency-column the column of its latencies",
        known.join(", ")
    ))
}

impl From<std::io::Error> for ImportError {
    fn from(error: std::io::Error) -> Self {
        Self::new(format!("it cannot be read: {error}"))
    }
}

/// What may stand before each line of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BeforeLine {
    /// The lines are as the program wrote them.
    Nothing,
    /// What other programs put there.
    Prefix,
    /// That, and spaces: of a mail or a manual page.
    PrefixAndSpaces,
}

impl BeforeLine {
    fn taken_from(self, line: &str) -> Cow<'_, str> {
        match self {
            Self::Nothing => line.into(),
            Self::Prefix => without_prefix(line),
            Self::PrefixAndSpaces => match without_prefix(line) {
                Cow::Borrowed(line) => line.trim_start().into(),
                Cow::Owned(line) => line.trim_start().to_owned().into(),
            },
        }
    }
}

/// A file that is being imported.
pub(super) struct Source<'a> {
    from: BufReader<Box<dyn Read + 'a>>,
    line: Vec<u8>,
    number: u64,
    is_whole: bool,
    before: BeforeLine,
    /// Of a line with carriage returns in it the parts behind the first, the last one first.
    redrawn: Vec<String>,
}

/// The first bytes of a file.
pub(super) fn head(from: &mut impl Read) -> Result<Vec<u8>, ImportError> {
    let mut head = Vec::new();
    from.take(HEAD_BYTES as u64).read_to_end(&mut head)?;
    Ok(head)
}

impl<'a> Source<'a> {
    pub(super) fn new(from: impl Read + 'a, before: BeforeLine) -> Self {
        let from = BufReader::with_capacity(HEAD_BYTES * 4, Box::new(from) as Box<dyn Read + 'a>);
        Self { from, line: Vec::new(), number: 0, is_whole: true, before, redrawn: Vec::new() }
    }

    /// The number of the last line.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// Whether the last line had an end: one that has none may have been cut within a number.
    pub(super) const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The next line without its end, whatever ends it; nothing at the end of the file.
    pub(super) fn line(&mut self) -> Result<Option<&[u8]>, ImportError> {
        self.line.clear();
        self.number += 1;
        let most = LONGEST_LINE as u64;
        if (&mut self.from).take(most).read_until(b'\n', &mut self.line)? == 0 {
            return Ok(None);
        }
        if self.line.len() >= LONGEST_LINE {
            let what = format!("it is longer than {} MiB: it is another file", most >> 20);
            return Err(ImportError::at(self.number, what));
        }
        self.is_whole = self.line.last() == Some(&b'\n');
        while matches!(self.line.last(), Some(b'\n' | b'\r')) {
            self.line.pop();
        }
        Ok(Some(&self.line))
    }

    /// The next line as text; invalid bytes become marks. What steers a terminal is left out.
    pub(super) fn text(&mut self) -> Result<Option<(u64, String)>, ImportError> {
        if self.redrawn.is_empty() {
            let Some(line) = self.line()? else { return Ok(None) };
            let line = without_escapes(&String::from_utf8_lossy(line));
            // A program that redraws its line, or a text of old systems.
            self.redrawn.extend(line.rsplit('\r').map(str::to_owned));
        }
        let (number, line) = (self.number, self.redrawn.pop().unwrap_or_default());
        Ok(Some((number, self.before.taken_from(&line).into_owned())))
    }

    /// All of it.
    pub(super) fn whole(&mut self) -> Result<Vec<u8>, ImportError> {
        let mut bytes = Vec::new();
        (&mut self.from).take(MOST_WHOLE as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > MOST_WHOLE {
            let what = format!("it is larger than {} MiB: it is another file", MOST_WHOLE >> 20);
            return Err(ImportError::new(what));
        }
        Ok(match self.before {
            BeforeLine::Nothing => bytes,
            before => lines_of(&bytes, before).into_bytes(),
        })
    }
}

/// The lines of a text, without what stands before them.
pub(super) fn lines_of(text: &[u8], before: BeforeLine) -> String {
    let text = String::from_utf8_lossy(text);
    let mut out = String::with_capacity(text.len());
    // Old systems end a line by a carriage return alone.
    for line in text.lines().flat_map(|line| line.split('\r')) {
        out.push_str(&before.taken_from(&without_escapes(line)));
        out.push('\n');
    }
    out
}

/// What a sequence that steers a terminal begins with: as a byte, and as terminals and pagers show
/// that byte.
const ESCAPES: [&str; 3] = ["\u{1b}[", "^[[", "\u{241b}["];

/// A text without the sequences that steer a terminal: programs that redraw their lines leave them
/// in a file.
pub(super) fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let first = |rest: &str| {
        let found = ESCAPES.iter().filter_map(|begin| Some((rest.find(begin)?, begin.len())));
        found.min()
    };
    while let Some((at, length)) = first(rest) {
        let (before, sequence) = rest.split_at(at);
        let (begin, sequence) = sequence.split_at(length);
        out.push_str(before);
        let end = sequence.find(|c: char| ('@'..='~').contains(&c));
        let is_one = |end: &usize| {
            let parameters = sequence.get(..*end).unwrap_or_default();
            parameters.chars().all(|c| (' '..='?').contains(&c))
        };
        rest = match end.filter(is_one) {
            Some(end) => sequence.get(end + 1..).unwrap_or_default(),
            None => {
                out.push_str(begin);
                sequence
            }
        };
    }
    (out + rest).replace('\u{1b}', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_as_they_like_and_are_numbered() {
        let mut source = Source::new(&b"a\r\nb\n\nlast"[..], BeforeLine::Nothing);
        let mut lines = Vec::new();
        while let Some(line) = source.text().unwrap() {
            lines.push(line);
        }
        let expected = [(1, "a"), (2, "b"), (3, ""), (4, "last")];
        assert_eq!(lines, expected.map(|(number, text)| (number, text.to_owned())));
    }

    #[test]
    fn a_line_without_end_is_refused_and_not_kept() {
        let endless = std::io::repeat(b'x').take(1 << 40);
        let mut source = Source::new(endless, BeforeLine::Nothing);
        let error = source.line().unwrap_err();
        assert!(error.to_string().starts_with("line 1: it is longer than 4 MiB"), "{error}");
        let endless = std::io::repeat(b' ').take(1 << 40);
        assert!(Source::new(endless, BeforeLine::Nothing).whole().is_err());
    }

    #[test]
    fn prefixes_are_taken_away_line_by_line() {
        let lava = "- {\"msg\": \"# Histogram\"}\n- {\"msg\": \"000003 000006\\t000002\"}\n";
        let own = |text: &str| lines_of(text.as_bytes(), BeforeLine::Prefix);
        assert_eq!(own(lava), "# Histogram\n000003 000006\t000002\n");
        let ktap = "# # Histogram\n# 000003 000006\t000002\n";
        assert_eq!(own(ktap), "# Histogram\n000003 000006\t000002\n");
        let mailed = lines_of(b">   # Histogram\r>   000003 000006\r", BeforeLine::PrefixAndSpaces);
        assert_eq!(mailed, "# Histogram\n000003 000006\n\n");
    }

    #[test]
    fn what_steers_a_terminal_is_no_text() {
        assert_eq!(without_escapes("\u{1b}[2AT: 0\u{1b}[0m x\u{1b}"), "T: 0 x");
        assert_eq!(without_escapes("\u{1b}[12;"), "12;".replace("12;", "[12;"));
    }
}
