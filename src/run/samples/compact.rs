//! Thrift's compact protocol, in which Parquet's footers and page headers are written, as far as
//! they need it. Whatever the bytes are, to read them takes no memory, and no more steps than there
//! are bytes.

use crate::limits::samples::DEEPEST;

/// Kinds of values in a struct; in a list all truths have the first kind.
pub(super) const TRUE: u8 = 1;
pub(super) const FALSE: u8 = 2;
pub(super) const I32: u8 = 5;
pub(super) const I64: u8 = 6;
pub(super) const LIST: u8 = 9;
pub(super) const STRUCT: u8 = 12;

const BYTE: u8 = 3;
const I16: u8 = 4;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;

/// The bytes that are not read yet. What does not hold together gives nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compact<'a>(pub(super) &'a [u8]);

impl<'a> Compact<'a> {
    /// The next `length` bytes.
    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    /// A number of any length: seven bits a byte, the lowest first.
    pub(super) fn unsigned(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// As [`Compact::unsigned`], with the sign in the lowest bit.
    pub(super) fn signed(&mut self) -> Option<i64> {
        let number = self.unsigned()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// A signed number that fits `T`.
    pub(super) fn number<T: TryFrom<i64>>(&mut self) -> Option<T> {
        self.signed()?.try_into().ok()
    }

    /// An unsigned number that is the size of something.
    pub(super) fn size(&mut self) -> Option<usize> {
        self.unsigned()?.try_into().ok()
    }

    /// Hands over every field of a struct with its id and kind, to be read or skipped.
    pub(super) fn fields(
        &mut self,
        mut each: impl FnMut(&mut Self, i64, u8) -> Option<()>,
    ) -> Option<()> {
        let mut id = 0_i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            id = match head >> 4 {
                0 => self.signed()?,
                step => id.saturating_add(step.into()),
            };
            each(self, id, head & 0xf)?;
        }
    }

    /// The kind of a list's elements and their number; the elements follow.
    pub(super) fn list(&mut self) -> Option<(u8, usize)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.size()?,
            count => count.into(),
        };
        Some((head & 0xf, count))
    }

    /// All elements of a list of structs.
    pub(super) fn structs<T>(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let (kind, count) = self.list()?;
        // Memory is taken as they come: a number alone is no reason to.
        (0..count).map(|_| if kind == STRUCT { each(self) } else { None }).collect()
    }

    /// Passes over a value.
    pub(super) fn skip(&mut self, kind: u8) -> Option<()> {
        self.skip_within(kind, DEEPEST)
    }

    fn skip_within(&mut self, kind: u8, depth: u8) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            TRUE | FALSE => Some(()),
            BYTE => self.byte().map(drop),
            I16 | I32 | I64 => self.unsigned().map(drop),
            DOUBLE => self.take(8).map(drop),
            BINARY => self.size().and_then(|length| self.take(length)).map(drop),
            STRUCT => self.fields(|own, _, kind| own.skip_within(kind, depth)),
            LIST => {
                let (kind, count) = self.list()?;
                // A truth takes a byte in a list, and none in a struct.
                let kind = if matches!(kind, TRUE | FALSE) { BYTE } else { kind };
                (0..count).try_for_each(|_| self.skip_within(kind, depth))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_are_written() {
        let mut bytes = Compact(&[0, 1, 2, 0x80, 1, 0xff]);
        let read: Vec<i64> = std::iter::from_fn(|| bytes.signed()).collect();
        assert_eq!(read, [0, -1, 1, 64]);
        assert_eq!(Compact(&[0xff; 11]).unsigned(), None, "longer than any number");
        let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(Compact(&most).unsigned(), Some(u64::MAX));
        assert_eq!(Compact(&most).signed(), Some(i64::MIN));
        assert_eq!(Compact(&[1]).number::<u32>(), None, "-1 is none");
    }

    #[test]
    fn fields_that_nobody_wants_are_passed_over_whatever_is_in_them() {
        // 1: [true, false], 2: "ab", 3: {1: 7}, 20 (written out): 5, 21: true.
        let bytes =
            [0x19, 0x21, 1, 2, 0x18, 2, b'a', b'b', 0x1c, 0x15, 14, 0, 0x05, 40, 10, 0x11, 0, 9];
        let (mut compact, mut found) = (Compact(&bytes), Vec::new());
        let read = compact.fields(|own, id, kind| {
            found.push((id, kind));
            own.skip(kind)
        });
        assert_eq!((read, compact.0), (Some(()), &[9][..]));
        assert_eq!(found, [(1, LIST), (2, BINARY), (3, STRUCT), (20, I32), (21, TRUE)]);
    }

    #[test]
    fn a_few_bytes_that_promise_much_are_soon_given_up() {
        let much = [0xf1, 0xff, 0xff, 0xff, 0xff, 0x7f];
        assert_eq!(Compact(&much).skip(LIST), None, "2^34 truths");
        let many = [0xfc, 0xff, 0xff, 0xff, 0xff, 0x7f];
        assert_eq!(Compact(&many).structs(|own| own.fields(|_, _, _| Some(()))), None);
        assert_eq!(Compact(&[0x19; 100]).skip(LIST), None, "deeper than anything needs");
    }
}
