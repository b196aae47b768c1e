//! An open file of samples becomes a closed one, in parts of a bounded size.

use std::{
    fs::File,
    io::{self, BufRead},
};

use parquet::{errors::ParquetError, file::writer::SerializedFileWriter};
use tardy_hot::ring::Sample;

use super::{append, begin};
use crate::run::{files, spool};

/// Samples that are held at once: mostly all of a spool, which has those of ten seconds.
const AT_ONCE: usize = 1 << 22;

/// What was in an open file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::run) struct Packed {
    /// Samples that the closed file has.
    pub samples: u64,
    /// Samples of series that the run does not have, which it has not.
    pub strangers: u64,
    /// The latest wake-up, `CLOCK_MONOTONIC` ns.
    pub last_ns: Option<i64>,
    /// Bytes of the open file that could be read.
    pub whole_bytes: u64,
}

/// Writes what can be read of `open` into `closed`, an empty file. Samples of one series stand
/// together, as far as they are held at once.
///
/// # Errors
/// What the disk says, or that there are more samples than `most`.
pub(in crate::run) fn pack(
    open: impl BufRead,
    series: &[String],
    most: u64,
    closed: &mut File,
) -> io::Result<Packed> {
    let mut file = begin(closed).map_err(io::Error::other)?;
    let mut lists = vec![Vec::new(); series.len()];
    let (mut packed, mut held) = (Packed::default(), 0);
    let whole_bytes = spool::read(open, |number, sample| {
        let Some(list) = lists.get_mut(number as usize) else {
            packed.strangers += 1;
            return Ok(());
        };
        if packed.samples == most {
            return Err(files::unusable(format!("it has more than {most} samples")));
        }
        packed.samples += 1;
        packed.last_ns = packed.last_ns.max(Some(sample.t_ns.saturating_add(sample.latency_ns)));
        list.push(sample);
        held += 1;
        if held == AT_ONCE {
            held = 0;
            flush(&mut file, series, &mut lists).map_err(io::Error::other)?;
        }
        Ok(())
    })?;
    flush(&mut file, series, &mut lists).map_err(io::Error::other)?;
    file.close().map_err(io::Error::other)?;
    Ok(Packed { whole_bytes, ..packed })
}

fn flush(
    file: &mut SerializedFileWriter<&mut File>,
    series: &[String],
    lists: &mut [Vec<Sample>],
) -> Result<(), ParquetError> {
    append(file, series, lists)?;
    lists.iter_mut().for_each(Vec::clear);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::samples::SampleReader;

    fn packed(spool: &[u8], most: u64) -> (io::Result<Packed>, File) {
        let mut closed = tempfile::tempfile().unwrap();
        (pack(spool, &["a".into(), "b".into()], most, &mut closed), closed)
    }

    #[test]
    fn a_spool_is_packed_with_what_can_be_read_of_it_and_says_what_that_is() {
        let mut bytes = spool::MAGIC.to_vec();
        spool::append(&mut bytes, 1, &[Sample { t_ns: 10, latency_ns: 5 }]);
        spool::append(&mut bytes, 0, &[Sample { t_ns: 9, latency_ns: 9 }; 2]);
        spool::append(&mut bytes, 7, &[Sample { t_ns: 90, latency_ns: 9 }]);
        let whole_bytes = bytes.len() as u64;
        bytes.extend_from_slice(b"half a frame");
        let (found, closed) = packed(&bytes, 3);
        let wanted = Packed { samples: 3, strangers: 1, last_ns: Some(18), whole_bytes };
        assert_eq!(found.unwrap(), wanted);
        let (series, mut numbers) = (["a".to_owned(), "b".to_owned()], Vec::new());
        SampleReader::new(&series, 3).read_names(&closed, |number| numbers.push(number)).unwrap();
        assert_eq!(numbers, [0, 0, 1], "sorted by series");
        let refused = packed(&bytes, 2).0.unwrap_err();
        assert_eq!(refused.to_string(), "it has more than 2 samples");
    }

    #[test]
    fn what_is_no_spool_has_no_samples() {
        for bytes in [&b""[..], b"tardy", b"PAR1 is something else"] {
            assert_eq!(packed(bytes, 9).0.unwrap(), Packed::default());
        }
    }
}
