//! The footer of a file of samples: its columns, and where they lie in each row group.
//!
//! It is not read by the library that writes such files, which believes what a file says of itself:
//! it reserves 16 GB for columns that are not there, and counts through thousands of millions of
//! elements that take no byte.

use std::{fs::File, io, os::unix::fs::FileExt as _};

use super::compact::{Compact, I32, I64, LIST, STRUCT};
pub(super) use crate::limits::samples::LARGEST_FOOTER as LARGEST;
use crate::run::files::unusable;

/// The footer's length and the magic behind it.
const TAIL: u64 = 8;

/// Rows that have all three columns.
#[derive(Debug)]
pub(super) struct RowGroup {
    /// How many there are, as the file says.
    pub rows: u64,
    /// `series`, `t_ns` and `latency_ns`.
    pub columns: [Column; 3],
}

/// Where the pages of a column lie in the file.
#[derive(Debug)]
pub(super) struct Column {
    /// How they are packed, by Parquet's number.
    pub codec: i64,
    /// Where they begin.
    pub start: u64,
    /// Bytes of all of them.
    pub length: u64,
}

/// The row groups of a file.
///
/// # Errors
/// It cannot be read, is damaged or too large, or has other columns.
pub(super) fn read(file: &File) -> io::Result<Vec<RowGroup>> {
    let length = file.metadata()?.len();
    let cut_short = || unusable("it is cut short".into());
    let end = length.checked_sub(TAIL).ok_or_else(cut_short)?;
    let mut tail = [0; TAIL as usize];
    file.read_exact_at(&mut tail, end)?;
    let [a, b, c, d, magic @ ..] = tail;
    if magic != *b"PAR1" {
        return Err(unusable("it does not end as a Parquet file".into()));
    }
    let size = u64::from(u32::from_le_bytes([a, b, c, d]));
    if size > LARGEST {
        let what = format!("its footer has {size} bytes, and at most {LARGEST} are read");
        return Err(unusable(what));
    }
    let start = end.checked_sub(size).ok_or_else(cut_short)?;
    let mut footer = vec![0; size as usize];
    file.read_exact_at(&mut footer, start)?;
    let (is_ours, groups) =
        parse(&footer).ok_or_else(|| unusable("its footer is damaged".into()))?;
    if !is_ours {
        let what = "it has other columns than series, t_ns and latency_ns";
        return Err(unusable(what.into()));
    }
    refuse_overlap(&groups, length)?;
    Ok(groups)
}

/// One part of a file that many row groups share would make a small file a long one.
fn refuse_overlap(groups: &[RowGroup], length: u64) -> io::Result<()> {
    let lengths = groups.iter().flat_map(|group| &group.columns).map(|column| column.length);
    if lengths.fold(0, u64::saturating_add) > length {
        return Err(unusable("its columns take more bytes than it has".into()));
    }
    Ok(())
}

/// Whether the columns are those of samples, and then the row groups.
fn parse(footer: &[u8]) -> Option<(bool, Vec<RowGroup>)> {
    let (mut is_ours, mut groups) = (false, None);
    Compact(footer).fields(|footer, id, kind| match (id, kind) {
        (2, LIST) => is_samples(footer).map(|found| is_ours = found),
        // They come behind the columns, without which they mean nothing.
        (4, LIST) if is_ours => footer.structs(row_group).map(|found| groups = Some(found)),
        _ => footer.skip(kind),
    })?;
    if is_ours { Some((true, groups?)) } else { Some((false, Vec::new())) }
}

/// An element of a schema by Parquet's numbers: its type and whether it must be there, and how many
/// elements are in it.
#[derive(Debug, PartialEq, Eq)]
struct Element {
    kind: i64,
    repetition: i64,
    children: i64,
}

/// Whether a schema is that of samples. Anything optional or repeated would have fewer or more
/// values than rows.
fn is_samples(schema: &mut Compact<'_>) -> Option<bool> {
    const REQUIRED: i64 = 0;
    let column = |kind| Element { kind, repetition: REQUIRED, children: 0 };
    let (text, integer) = (6, 2);
    let columns = [column(text), column(integer), column(integer)];
    let (mut elements, mut is_ours) = (0, true);
    schema.structs(|schema| {
        let found = element(schema)?;
        is_ours &= match elements {
            0 => found.children == 3,
            at => columns.get(at - 1) == Some(&found),
        };
        elements += 1;
        Some(())
    })?;
    Some(is_ours && elements == 4)
}

fn element(schema: &mut Compact<'_>) -> Option<Element> {
    let mut found = Element { kind: -1, repetition: -1, children: 0 };
    schema.fields(|schema, id, kind| match (id, kind) {
        (1, I32) => schema.signed().map(|kind| found.kind = kind),
        (3, I32) => schema.signed().map(|repetition| found.repetition = repetition),
        (5, I32) => schema.signed().map(|children| found.children = children),
        _ => schema.skip(kind),
    })?;
    Some(found)
}

fn row_group(footer: &mut Compact<'_>) -> Option<RowGroup> {
    let (mut columns, mut rows) = (Vec::new(), None);
    footer.fields(|footer, id, kind| match (id, kind) {
        (1, LIST) => footer.structs(column).map(|found| columns = found),
        (3, I64) => footer.number().map(|number| rows = Some(number)),
        _ => footer.skip(kind),
    })?;
    Some(RowGroup { rows: rows?, columns: columns.try_into().ok()? })
}

fn column(footer: &mut Compact<'_>) -> Option<Column> {
    let (mut codec, mut length, mut data, mut dictionary) = (None, None, None, None);
    footer.fields(|footer, id, kind| match (id, kind) {
        (3, STRUCT) => footer.fields(|footer, id, kind| match (id, kind) {
            (4, I32) => footer.signed().map(|number| codec = Some(number)),
            (7, I64) => footer.number().map(|number| length = Some(number)),
            (9, I64) => footer.number().map(|number| data = Some(number)),
            (11, I64) => footer.number().map(|number| dictionary = Some(number)),
            _ => footer.skip(kind),
        }),
        _ => footer.skip(kind),
    })?;
    // Nothing begins where the file does: some write 0 if a column has no dictionary.
    let start = dictionary.filter(|start| *start > 0).or(data);
    Some(Column { codec: codec?, start: start?, length: length? })
}
