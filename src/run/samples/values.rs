//! The values of a column from its pages, as Parquet writes them: plainly, as numbers of a
//! dictionary, or as differences of neighbours.

use std::{collections::HashMap, fs::File, io, iter::repeat_n};

use super::{
    compact::Compact,
    footer::Column,
    pages::{self, Page},
};
use crate::run::files::unusable;

/// Stands for a name that nobody looks for.
const UNKNOWN: i64 = -1;

/// What a column holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind<'a> {
    /// Numbers of eight bytes.
    Integers,
    /// Names, in whose place their numbers are handed over; [`UNKNOWN`] where they have none.
    Names(&'a HashMap<&'a [u8], i64>),
}

/// All values of a column of `rows` rows.
///
/// # Errors
/// See [`pages::read`]; values that are not whole, not as many, or written in another way.
pub(super) fn read(
    file: &File,
    column: &Column,
    rows: usize,
    kind: Kind<'_>,
) -> io::Result<Vec<i64>> {
    let (mut dictionary, mut values) = (Vec::new(), Vec::new());
    pages::read(file, column, rows, |page| {
        if page.is_dictionary {
            dictionary = plain(&page, kind).ok_or_else(damaged)?;
            return Ok(());
        }
        values.extend(decoded(&page, kind, &dictionary)?);
        if values.len() > rows {
            return Err(uneven());
        }
        Ok(())
    })?;
    if values.len() == rows { Ok(values) } else { Err(uneven()) }
}

fn damaged() -> io::Error {
    unusable("a page of it is damaged".into())
}

fn uneven() -> io::Error {
    unusable("its columns are not of one length".into())
}

fn decoded(page: &Page, kind: Kind<'_>, dictionary: &[i64]) -> io::Result<Vec<i64>> {
    let values = match (page.encoding, kind) {
        (0, _) => plain(page, kind),
        (2 | 8, _) => chosen(page, dictionary),
        (5, Kind::Integers) => differences(page),
        (other, _) => {
            return Err(unusable(format!("its values are written in another way ({other})")));
        }
    };
    values.ok_or_else(damaged)
}

/// One behind the other.
fn plain(page: &Page, kind: Kind<'_>) -> Option<Vec<i64>> {
    let mut rest = Compact(&page.bytes);
    // The name of the row before, which nearly always is that of the next.
    let mut last: Option<(&[u8], i64)> = None;
    let value = |_| match kind {
        Kind::Integers => Some(i64::from_le_bytes(rest.take(8)?.try_into().ok()?)),
        Kind::Names(numbers) => {
            let length = u32::from_le_bytes(rest.take(4)?.try_into().ok()?);
            let name = rest.take(length as usize)?;
            let number = match last {
                Some((same, number)) if same == name => number,
                _ => numbers.get(name).copied().unwrap_or(UNKNOWN),
            };
            last = Some((name, number));
            Some(number)
        }
    };
    (0..page.values).map(value).collect()
}

/// Numbers of entries in a dictionary: runs of one, and groups of eight as bits.
fn chosen(page: &Page, dictionary: &[i64]) -> Option<Vec<i64>> {
    let (width, runs) = page.bytes.split_first()?;
    let (width, mut rest) = (usize::from(*width), Compact(runs));
    let mut numbers = Vec::with_capacity(page.values);
    while numbers.len() < page.values {
        let head = rest.size()?;
        let (count, wanted) = (head >> 1, page.values - numbers.len());
        if head & 1 == 0 {
            let number = bits(rest.take(width.div_ceil(8))?, width, 0)?;
            numbers.extend(repeat_n(number, count.min(wanted)));
        } else {
            let count = count.min(wanted.div_ceil(8));
            // Some leave out what the last group does not need.
            let packed = rest.take((count * width).min(rest.0.len()))?;
            for at in 0..wanted.min(count * 8) {
                numbers.push(bits(packed, width, at)?);
            }
        }
    }
    let entry = |number: u64| dictionary.get(usize::try_from(number).ok()?).copied();
    numbers.into_iter().map(entry).collect()
}

/// The first value, and blocks of what each is larger than the one before, less the least of that.
fn differences(page: &Page) -> Option<Vec<i64>> {
    let mut rest = Compact(&page.bytes);
    let (block, parts, count) = (rest.size()?, rest.size()?, rest.size()?);
    let mut value = rest.signed()?;
    let each = block.checked_div(parts).filter(|each| *each > 0 && each % 8 == 0)?;
    if count != page.values {
        return None;
    }
    let mut values = Vec::with_capacity(count);
    values.push(value);
    while values.len() < count {
        let least = rest.signed()?;
        for width in rest.take(parts)? {
            let (width, wanted) = (usize::from(*width), each.min(count - values.len()));
            if wanted == 0 {
                break;
            }
            let length = each.checked_mul(width)? / 8;
            let packed = rest.take(length.min(rest.0.len()))?;
            for at in 0..wanted {
                let more = bits(packed, width, at)?;
                value = value.wrapping_add(least).wrapping_add(more.cast_signed());
                values.push(value);
            }
        }
    }
    Some(values)
}

/// The number at place `at` of such as have `width` bits each, the lowest first.
fn bits(packed: &[u8], width: usize, at: usize) -> Option<u64> {
    if width == 0 || width > 64 {
        return (width == 0).then_some(0);
    }
    let first = at.checked_mul(width)?;
    let bytes = packed.get(first / 8..(first + width).div_ceil(8))?;
    // Nine at most: 64 bits that do not begin with a byte.
    let whole = bytes.iter().rev().fold(0_u128, |whole, byte| (whole << 8) | u128::from(*byte));
    Some(((whole >> (first % 8)) & ((1 << width) - 1)) as u64)
}
