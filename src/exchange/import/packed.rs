//! Files that are packed, or written in another encoding: what they hold as plain text.

use std::io::{self, BufRead as _, BufReader, Cursor, Read};

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use liblzma::{read::XzDecoder, stream};

use super::source::{ImportError, MOST_WHOLE};
use crate::limits::import::MOST_XZ_MEMORY;

/// A file, packed or not.
type AnyFile<'a> = Box<dyn Read + 'a>;

/// How a file is packed.
struct Packing {
    /// What such a file begins with.
    mark: &'static [u8],
    unpacked: for<'a> fn(BufReader<AnyFile<'a>>) -> io::Result<AnyFile<'a>>,
}

const PACKINGS: [Packing; 4] = [
    // RFC 1952.
    Packing { mark: b"\x1f\x8b", unpacked: |from| Ok(Box::new(MultiGzDecoder::new(from))) },
    Packing { mark: b"BZh", unpacked: |from| Ok(Box::new(MultiBzDecoder::new(from))) },
    // The .xz File Format, 2.1.1.1.
    Packing {
        mark: b"\xfd7zXZ\0",
        unpacked: |from| {
            let blocks = stream::Stream::new_stream_decoder(MOST_XZ_MEMORY, stream::CONCATENATED)?;
            Ok(Box::new(XzDecoder::new_stream(from, blocks)))
        },
    },
    // RFC 8878, 3.1.1; a window of more than 128 MiB is refused by itself.
    Packing {
        mark: b"\x28\xb5\x2f\xfd",
        unpacked: |from| Ok(Box::new(zstd::stream::read::Decoder::with_buffer(from)?)),
    },
];

/// What a text in UTF-16 begins with, lower byte first and higher byte first.
const UTF_16: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

/// The file unpacked, and in UTF-8.
pub(super) fn plain<'a>(from: impl Read + 'a) -> Result<AnyFile<'a>, ImportError> {
    let mut from = BufReader::new(Box::new(from) as AnyFile<'a>);
    let head = from.fill_buf()?;
    if let Some(packing) = PACKINGS.iter().find(|packing| head.starts_with(packing.mark)) {
        return Ok((packing.unpacked)(from)?);
    }
    match UTF_16.iter().position(|mark| head.starts_with(mark)) {
        Some(order) => Ok(Box::new(Cursor::new(utf_8(from, order == 1)?))),
        None => Ok(Box::new(from)),
    }
}

/// Whether it is an archive of tar, whose first header says so behind the file's data (POSIX
/// pax, `ustar` Interchange Format).
pub(super) fn is_archive(head: &[u8]) -> bool {
    head.get(257..262) == Some(b"ustar")
}

fn utf_8(from: impl Read, is_high_first: bool) -> Result<Vec<u8>, ImportError> {
    let mut bytes = Vec::new();
    from.take(MOST_WHOLE as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MOST_WHOLE {
        let what = format!("it is UTF-16 of more than {} MiB; write it in UTF-8", MOST_WHOLE >> 20);
        return Err(ImportError::new(what));
    }
    let (pairs, _) = bytes.as_chunks::<2>();
    let word: fn([u8; 2]) -> u16 =
        if is_high_first { u16::from_be_bytes } else { u16::from_le_bytes };
    // Behind the mark of its order.
    let words = pairs.iter().skip(1).map(|pair| word(*pair));
    let text: String =
        char::decode_utf16(words).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    Ok(text.into_bytes())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use crate::exchange::import::{ImportOptions, read, tests::series};

    const LINE: &str =
        "T: 0 ( 1) P:80 I:1000 C:  9000 Min:      3 Act:    4 Avg:    4 Max:      12\n";

    fn is_read(bytes: &[u8]) {
        let sheet = read(bytes, None, &ImportOptions::default()).unwrap();
        assert_eq!(series(&sheet), [("thread0", 9_000, 3_000, 12_000)]);
    }

    #[test]
    fn a_packed_file_and_one_in_utf_16_are_read_as_their_text() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(LINE.as_bytes()).unwrap();
        let mut packed = packed.finish().unwrap();
        is_read(&packed);
        let marked = || std::iter::once(0xfeff).chain(LINE.encode_utf16());
        is_read(&marked().flat_map(u16::to_le_bytes).collect::<Vec<u8>>());
        is_read(&marked().flat_map(u16::to_be_bytes).collect::<Vec<u8>>());
        packed.truncate(packed.len() - 9);
        let error = read(&packed[..], None, &ImportOptions::default()).unwrap_err().to_string();
        assert!(error.contains("it cannot be read"), "{error}");
    }
}
