//! `samples/NNNN.parquet`: every sample of a run with `--raw`, for pandas, Polars and DuckDB.
//!
//! Columns `series` (string), `t_ns` (the programmed expiry, `CLOCK_MONOTONIC`) and `latency_ns`;
//! the wake-up was at `t_ns + latency_ns`. Rows are sorted by series and time: within a series the
//! expiries are equally far apart, which delta encoding makes free. Latencies are stored as they
//! are: zstd takes out what their high bytes have in common, while delta encoding pays for the
//! largest of 32 neighbours each time (10 to 15% more on real wake-ups; byte stream split would
//! save another 6%, but readers from before 2024 do not know it for integers).

mod compact;
mod footer;
mod packing;
mod pages;
mod values;

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, BufReader},
    path::{Path, PathBuf},
    sync::Arc,
};

use parquet::{
    basic::{Compression, Encoding, ZstdLevel},
    data_type::{ByteArray, ByteArrayType, DataType, Int64Type},
    errors::ParquetError,
    file::{
        properties::{WriterProperties, WriterPropertiesPtr},
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::{parser::parse_message_type, types::ColumnPath},
};
use tardy_hot::ring::Sample;

use self::{footer::RowGroup, values::Kind};
use super::{files, spool};
pub(super) use packing::{Packed, pack};

/// Rows that a row group has at most, written or read: as many as pyarrow makes.
const ROWS_A_GROUP: usize = 1 << 20;

/// Samples that are read beyond those that the record counts: more than a file of ten seconds
/// holds. The record of a run that did not end in order may be older than its last file.
const A_FILE: u64 = 1 << 24;

const SCHEMA: &str = "message tardy {
    required binary series (string);
    required int64 t_ns;
    required int64 latency_ns;
}";

fn properties() -> WriterPropertiesPtr {
    let column = |name: &str| ColumnPath::from(name);
    let level = ZstdLevel::try_new(1).unwrap_or_default();
    let properties = WriterProperties::builder()
        .set_created_by(format!("tardy {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::ZSTD(level))
        .set_column_dictionary_enabled(column("t_ns"), false)
        .set_column_encoding(column("t_ns"), Encoding::DELTA_BINARY_PACKED)
        .set_column_dictionary_enabled(column("latency_ns"), false)
        .set_column_encoding(column("latency_ns"), Encoding::PLAIN)
        .build();
    Arc::new(properties)
}

/// Begins a closed file.
fn begin<W: io::Write + Send>(file: W) -> Result<SerializedFileWriter<W>, ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    SerializedFileWriter::new(file, schema, properties())
}

/// Appends `samples`, one list per name of `series`.
fn append<W: io::Write + Send>(
    file: &mut SerializedFileWriter<W>,
    series: &[String],
    samples: &[Vec<Sample>],
) -> Result<(), ParquetError> {
    for (name, samples) in series.iter().zip(samples) {
        // A row group per series lets a reader skip the series it does not want.
        for part in samples.chunks(ROWS_A_GROUP) {
            let mut group = file.next_row_group()?;
            let name = ByteArray::from(name.as_str());
            column::<ByteArrayType, _>(&mut group, part, |_| name.clone())?;
            column::<Int64Type, _>(&mut group, part, |sample| sample.t_ns)?;
            column::<Int64Type, _>(&mut group, part, |sample| sample.latency_ns)?;
            group.close()?;
        }
    }
    Ok(())
}

/// Rows that are written at once: few enough to stay in a cache.
const BATCH: usize = 4096;

fn column<T: DataType, W: std::io::Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    samples: &[Sample],
    value: impl Fn(&Sample) -> T::T,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Ok(());
    };
    let mut values = Vec::with_capacity(BATCH);
    for part in samples.chunks(BATCH) {
        values.clear();
        values.extend(part.iter().map(&value));
        column.typed::<T>().write_batch(&values, None, None)?;
    }
    column.close()
}

/// The files of samples under `directory`, oldest first: closed ones, and spools without one.
#[must_use]
pub fn files(directory: &Path) -> Vec<PathBuf> {
    if directory.is_symlink() {
        // Whoever opens it is told so.
        return vec![directory.to_owned()];
    }
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    let kept = |path: &PathBuf| match path.extension().and_then(|kind| kind.to_str()) {
        Some("parquet") => true,
        // Both are there where the maker died between closing one and removing the other.
        Some("spool") => !path.with_extension("parquet").exists(),
        _ => false,
    };
    files.retain(kept);
    files
}

/// The number of samples that are read of a run whose record counts `counted`.
pub(super) const fn most(counted: u64) -> u64 {
    counted.saturating_add(A_FILE)
}

/// Reads the files of samples of a run, one after the other, and no more samples than it can have:
/// it may come from anywhere, and small files hold, or say that they hold, more than anybody waits
/// for.
#[derive(Debug)]
pub struct SampleReader<'a> {
    /// The number of each series by its name.
    numbers: HashMap<&'a [u8], i64>,
    series: usize,
    most: u64,
    left: u64,
}

impl<'a> SampleReader<'a> {
    /// A reader for a run with these series, whose record counts `counted` samples.
    #[must_use]
    pub fn new(series: &'a [String], counted: u64) -> Self {
        // From the end, so that of two of one name the first stays.
        let numbers = series.iter().enumerate().rev();
        let numbers = numbers.map(|(number, name)| (name.as_bytes(), number as i64)).collect();
        let most = most(counted);
        Self { numbers, series: series.len(), most, left: most }
    }

    /// Whether the run can have no more samples than were read.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.left == 0
    }

    /// Hands over every sample of one file with the number of its series; samples of other series
    /// are skipped.
    ///
    /// # Errors
    /// A closed file that is damaged, of another shape or beyond the limits, or a file with which
    /// the run has more samples than it can have; what came before was handed over.
    pub fn read(&mut self, path: &Path, take: impl FnMut(usize, Sample)) -> io::Result<()> {
        let file = files::open(path)?;
        if path.extension().is_some_and(|kind| kind == "spool") {
            return self.read_spool(file, take);
        }
        self.read_closed(&file, take)
    }

    fn read_spool(&mut self, file: File, mut take: impl FnMut(usize, Sample)) -> io::Result<()> {
        let read = spool::read(BufReader::new(file), |number, sample| {
            self.count(1)?;
            let number = number as usize;
            if number < self.series {
                take(number, sample);
            }
            Ok(())
        });
        read.map(drop)
    }

    /// As [`SampleReader::read`], of a closed file that is open.
    ///
    /// # Errors
    /// The same.
    pub(super) fn read_closed(
        &mut self,
        file: &File,
        mut take: impl FnMut(usize, Sample),
    ) -> io::Result<()> {
        for group in footer::read(file)? {
            let rows = self.rows(&group)?;
            let [names, times, latencies] = &group.columns;
            let names = values::read(file, names, rows, Kind::Names(&self.numbers))?;
            let times = values::read(file, times, rows, Kind::Integers)?;
            let latencies = values::read(file, latencies, rows, Kind::Integers)?;
            for ((name, t_ns), latency_ns) in names.into_iter().zip(times).zip(latencies) {
                if let Ok(number) = usize::try_from(name) {
                    take(number, Sample { t_ns, latency_ns });
                }
            }
        }
        Ok(())
    }

    /// Hands over the number of the series of each sample of a closed file, and not the sample.
    ///
    /// # Errors
    /// As [`SampleReader::read`].
    pub(super) fn read_names(
        &mut self,
        file: &File,
        mut take: impl FnMut(usize),
    ) -> io::Result<()> {
        for group in footer::read(file)? {
            let rows = self.rows(&group)?;
            let [names, ..] = &group.columns;
            let names = values::read(file, names, rows, Kind::Names(&self.numbers))?;
            names.into_iter().filter_map(|name| usize::try_from(name).ok()).for_each(&mut take);
        }
        Ok(())
    }

    /// The rows of a group that is about to be read.
    fn rows(&mut self, group: &RowGroup) -> io::Result<usize> {
        let rows = usize::try_from(group.rows).unwrap_or(usize::MAX);
        if rows > ROWS_A_GROUP {
            let what = format!("a row group of it has more than {ROWS_A_GROUP} rows");
            return Err(files::unusable(what));
        }
        self.count(group.rows)?;
        Ok(rows)
    }

    /// Counts samples that are about to be read.
    fn count(&mut self, samples: u64) -> io::Result<()> {
        let left = self.left.checked_sub(samples);
        self.left = left.unwrap_or(0);
        left.map(drop).ok_or_else(|| {
            let most = self.most;
            files::unusable(format!(
                "with it the run has more than {most} samples, and its record counts fewer"
            ))
        })
    }
}

#[cfg(test)]
mod tests;
