//! The pages of a column, one after the other. A few bytes may unpack to gigabytes, so the unpacked
//! size is limited by the number of rows.

use std::{fs::File, io, os::unix::fs::FileExt as _};

use zstd::bulk::Decompressor;

use super::{
    compact::{Compact, FALSE, I32, STRUCT},
    footer::Column,
};
use crate::run::files::unusable;

/// Bytes that a column may take, packed and unpacked, for each row of its group: eight are a
/// number, and a name is short.
const A_ROW: usize = 64;

/// Extra bytes for a group of few rows: headers, and blocks that are filled up.
const BESIDE: usize = 4096;

/// Columns as they are, and packed by zstd, by Parquet's numbers.
const PLAIN: i64 = 0;
const ZSTD: i64 = 6;

/// Kinds of pages by Parquet's numbers: two forms of data, and between them what is not data.
const DATA: i64 = 0;
const DICTIONARY: i64 = 2;
const DATA_2: i64 = 3;

/// A page, unpacked.
#[derive(Debug)]
pub(super) struct Page {
    /// Not values, but what the values of other pages are numbers of.
    pub is_dictionary: bool,
    /// How the values are written, by Parquet's number.
    pub encoding: i64,
    /// How many there are.
    pub values: usize,
    /// Their bytes.
    pub bytes: Vec<u8>,
}

/// Hands over the pages of a column of `rows` rows.
///
/// # Errors
/// The column cannot be read, is damaged, or takes more than its rows may; or what `take` says.
pub(super) fn read(
    file: &File,
    column: &Column,
    rows: usize,
    mut take: impl FnMut(Page) -> io::Result<()>,
) -> io::Result<()> {
    let most = rows.saturating_mul(A_ROW).saturating_add(BESIDE);
    let length = usize::try_from(column.length).unwrap_or(usize::MAX);
    if length > most {
        return Err(too_large(rows, most));
    }
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, column.start)?;
    let mut unpacker = match column.codec {
        PLAIN => None,
        ZSTD => Some(Decompressor::new()?),
        _ => return Err(unusable("it is packed by something else than zstd".into())),
    };
    let (mut rest, mut left) = (Compact(&bytes), most);
    while !rest.0.is_empty() {
        let damaged = || unusable("a page of it is damaged".into());
        let header = Header::read(&mut rest).ok_or_else(damaged)?;
        let packed = rest.take(header.packed_bytes).ok_or_else(damaged)?;
        if !matches!(header.kind, DATA | DATA_2 | DICTIONARY) || header.values == 0 {
            continue;
        }
        if header.values > rows {
            return Err(unusable("a page of it has more values than there are rows".into()));
        }
        let bytes = match &mut unpacker {
            Some(unpacker) if header.is_packed => {
                left = left.checked_sub(header.bytes).ok_or_else(|| too_large(rows, most))?;
                // What unpacks to more than its header says is an error.
                unpacker.decompress(packed, header.bytes)?
            }
            _ => packed.to_vec(),
        };
        let Header { kind, encoding, values, .. } = header;
        take(Page { is_dictionary: kind == DICTIONARY, encoding, values, bytes })?;
    }
    Ok(())
}

fn too_large(rows: usize, most: usize) -> io::Error {
    unusable(format!("a column of {rows} rows in it takes more than {most} bytes"))
}

/// What stands before a page.
#[derive(Debug, Default)]
struct Header {
    kind: i64,
    /// Bytes, unpacked and as they lie there.
    bytes: usize,
    packed_bytes: usize,
    values: usize,
    encoding: i64,
    is_packed: bool,
}

impl Header {
    fn read(page: &mut Compact<'_>) -> Option<Self> {
        let mut found = Self { is_packed: true, ..Self::default() };
        page.fields(|page, id, kind| match (id, kind) {
            (1, I32) => page.signed().map(|kind| found.kind = kind),
            (2, I32) => page.number().map(|bytes| found.bytes = bytes),
            (3, I32) => page.number().map(|bytes| found.packed_bytes = bytes),
            (5 | 7, STRUCT) => found.read_more(page, 2),
            (8, STRUCT) => found.read_more(page, 4),
            _ => page.skip(kind),
        })?;
        Some(found)
    }

    /// Reads the fields that only one kind of page has; its forms differ in where the encoding
    /// stands. What the second form says of levels does not matter: columns that must be there have
    /// none.
    fn read_more(&mut self, page: &mut Compact<'_>, encoding: i64) -> Option<()> {
        page.fields(|page, id, kind| match (id, kind) {
            (1, I32) => page.number().map(|values| self.values = values),
            (at, I32) if at == encoding => page.signed().map(|number| self.encoding = number),
            (7, FALSE) => {
                self.is_packed = false;
                Some(())
            }
            _ => page.skip(kind),
        })
    }
}
