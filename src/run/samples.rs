//! `samples/NNNN.parquet`: every sample of a run with `--raw`, for pandas, Polars and DuckDB.
//!
//! Columns `series` (string), `t_ns` (the programmed expiry, `CLOCK_MONOTONIC`) and `latency_ns`;
//! the wake-up was at `t_ns + latency_ns`. Rows are sorted by series and time: within a series the
//! expiries are equally far apart, which delta encoding makes free. Latencies are stored as they
//! are: zstd takes out what their high bytes have in common, while delta encoding pays for the
//! largest of 32 neighbours each time (10 to 15 % more on real wake-ups; byte stream split would
//! save another 6 %, but readers from before 2024 do not know it for integers).

use std::{
    fs::{self, File},
    io::BufReader,
    path::{Path, PathBuf},
    sync::Arc,
};

use parquet::{
    basic::{Compression, Encoding, ZstdLevel},
    column::reader::{ColumnReader, ColumnReaderImpl},
    data_type::{ByteArray, ByteArrayType, DataType, Int64Type},
    errors::ParquetError,
    file::{
        properties::{WriterProperties, WriterPropertiesPtr},
        reader::{FileReader, RowGroupReader, SerializedFileReader},
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::{parser::parse_message_type, types::ColumnPath},
};
use tardy_hot::ring::Sample;

use super::{files, spool};
use crate::draft::Draft;

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

/// Writes `samples` (one list per name of `series`) as one closed file.
///
/// # Errors
/// What the disk says; then there is no new file.
pub(super) fn write(
    mut draft: Draft,
    series: &[String],
    samples: &[Vec<Sample>],
) -> Result<(), ParquetError> {
    write_into(draft.file(), series, samples)?;
    draft.place()?;
    Ok(())
}

fn write_into(
    file: &mut File,
    series: &[String],
    samples: &[Vec<Sample>],
) -> Result<(), ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut file = SerializedFileWriter::new(file, schema, properties())?;
    for (name, samples) in series.iter().zip(samples) {
        // A row group per series lets a reader skip the series it does not want.
        for part in samples.chunks(1 << 20) {
            let mut group = file.next_row_group()?;
            let name = ByteArray::from(name.as_str());
            column::<ByteArrayType, _>(&mut group, part, |_| name.clone())?;
            column::<Int64Type, _>(&mut group, part, |sample| sample.t_ns)?;
            column::<Int64Type, _>(&mut group, part, |sample| sample.latency_ns)?;
            group.close()?;
        }
    }
    file.close()?;
    Ok(())
}

/// Rows that are written or read at once: few enough to stay in a cache.
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

/// Hands over every sample of one file with the number of its series in `series`; samples of a
/// series not named there are passed over.
///
/// # Errors
/// A closed file that is damaged or of another shape; what came before was handed over.
pub fn read(
    path: &Path,
    series: &[String],
    mut take: impl FnMut(usize, Sample),
) -> Result<(), ParquetError> {
    let file = files::open(path)?;
    if path.extension().is_some_and(|kind| kind == "spool") {
        spool::read(BufReader::new(file), |number, sample| {
            let number = number as usize;
            if number < series.len() {
                take(number, sample);
            }
        })?;
        return Ok(());
    }
    let file = SerializedFileReader::new(file)?;
    let parts = file.metadata().file_metadata().schema_descr();
    let plain = |column: &parquet::schema::types::ColumnDescPtr| {
        // Anything optional or repeated would have fewer values than rows.
        column.max_def_level() == 0 && column.max_rep_level() == 0
    };
    if parts.num_columns() != 3 || !parts.columns().iter().all(plain) {
        return Err(other_shape());
    }
    for number in 0..file.num_row_groups() {
        read_group(file.get_row_group(number)?.as_ref(), series, &mut take)?;
    }
    Ok(())
}

fn read_group(
    group: &dyn RowGroupReader,
    series: &[String],
    mut take: impl FnMut(usize, Sample),
) -> Result<(), ParquetError> {
    let (
        ColumnReader::ByteArrayColumnReader(mut names),
        ColumnReader::Int64ColumnReader(mut times),
        ColumnReader::Int64ColumnReader(mut latencies),
    ) = (group.get_column_reader(0)?, group.get_column_reader(1)?, group.get_column_reader(2)?)
    else {
        return Err(other_shape());
    };
    let (mut name, mut time, mut latency) = (Vec::new(), Vec::new(), Vec::new());
    // The series of the row before, which nearly always is that of the next.
    let mut known: Option<(ByteArray, Option<usize>)> = None;
    loop {
        let rows = batch(&mut names, &mut name)?;
        if batch(&mut times, &mut time)? != rows || batch(&mut latencies, &mut latency)? != rows {
            return Err(ParquetError::General("its columns are not of one length".into()));
        }
        if rows == 0 {
            return Ok(());
        }
        for ((name, t_ns), latency_ns) in name.iter().zip(&time).zip(&latency) {
            let number = match &known {
                Some((same, number)) if same == name => *number,
                _ => {
                    let number = series.iter().position(|known| known.as_bytes() == name.data());
                    known = Some((name.clone(), number));
                    number
                }
            };
            if let Some(number) = number {
                take(number, Sample { t_ns: *t_ns, latency_ns: *latency_ns });
            }
        }
    }
}

/// Reads the next rows of one column into `values`, and returns how many there were.
fn batch<T: DataType>(
    column: &mut ColumnReaderImpl<T>,
    values: &mut Vec<T::T>,
) -> Result<usize, ParquetError> {
    values.clear();
    column.read_records(BATCH, None, None, values)?;
    Ok(values.len())
}

fn other_shape() -> ParquetError {
    ParquetError::General("it has other columns than series, t_ns and latency_ns".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists() -> (Vec<String>, Vec<Vec<Sample>>) {
        let list = |start: i64| {
            (0..1_000)
                .map(|i| Sample { t_ns: start + i * 1_000_000, latency_ns: (i * 7919) % 5_003 - 3 })
                .collect()
        };
        (vec!["cpu0".into(), "cpu1".into()], vec![list(1_000), list(2_000)])
    }

    fn read_all(path: &Path, series: &[String]) -> Vec<Vec<Sample>> {
        let mut lists = vec![Vec::new(); series.len()];
        read(path, series, |number, sample| lists[number].push(sample)).unwrap();
        lists
    }

    fn write_at(path: &Path, series: &[String], samples: &[Vec<Sample>]) {
        write(Draft::beside(path).unwrap(), series, samples).unwrap();
    }

    #[test]
    fn closed_and_open_files_hold_the_same_samples() {
        let directory = tempfile::tempdir().unwrap();
        let (series, samples) = lists();
        let closed = directory.path().join("0001.parquet");
        write_at(&closed, &series, &samples);
        let mut bytes = spool::MAGIC.to_vec();
        for (number, list) in samples.iter().enumerate() {
            spool::append(&mut bytes, number as u32, list);
        }
        let open = directory.path().join("0002.spool");
        fs::write(&open, bytes).unwrap();
        fs::write(directory.path().join("0001.spool"), "left behind").unwrap();
        fs::write(directory.path().join("0003.parquet.tmp"), "half").unwrap();

        assert_eq!(read_all(&closed, &series), samples);
        assert_eq!(read_all(&open, &series), samples);
        assert_eq!(files(directory.path()), [closed, open]);
    }

    #[test]
    fn row_groups_and_batches_that_do_not_come_out_even_lose_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("0001.parquet");
        let list = |n: i64| (0..n).map(|i| Sample { t_ns: i, latency_ns: i64::MIN + i }).collect();
        let series: Vec<String> = ["a", "b", "c"].map(str::to_owned).into();
        let samples: Vec<Vec<Sample>> = vec![list((1 << 20) + 1), list(0), list(4097)];
        write_at(&path, &series, &samples);
        assert_eq!(read_all(&path, &series), samples);
        // A series that the reader does not ask for is passed over.
        assert_eq!(read_all(&path, &series[2..]), samples[2..]);
    }

    #[test]
    fn a_parquet_file_of_another_shape_is_an_error_and_no_panic() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("0001.parquet");
        for schema in [
            "message other { required int64 series; required int64 a; required int64 b; }",
            "message other { required binary series; required int64 a; optional int64 b; }",
            "message other { required binary series; required int64 a; required double b; }",
            "message other { required binary series; required int64 a; }",
        ] {
            let schema = Arc::new(parse_message_type(schema).unwrap());
            let file = File::create(&path).unwrap();
            let mut file = SerializedFileWriter::new(file, schema, properties()).unwrap();
            let mut group = file.next_row_group().unwrap();
            while let Some(column) = group.next_column().unwrap() {
                column.close().unwrap();
            }
            group.close().unwrap();
            file.close().unwrap();
            let error = read(&path, &["a".into()], |_, _| {}).unwrap_err().to_string();
            assert!(error.contains("other columns"), "{error}");
        }
    }

    #[test]
    fn a_flipped_bit_is_an_error_or_harmless_and_no_panic() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("0001.parquet");
        let (series, samples) = lists();
        write_at(&path, &series, &samples);
        let whole = fs::read(&path).unwrap();
        for at in (0..whole.len()).step_by(7) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            fs::write(&path, bytes).unwrap();
            let _ = read(&path, &series, |_, _| {});
        }
    }

    #[test]
    fn a_damaged_file_is_an_error_and_no_panic() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("0001.parquet");
        let (series, samples) = lists();
        write_at(&path, &series, &samples);
        let whole = fs::read(&path).unwrap();
        for cut in (0..whole.len()).step_by(97) {
            fs::write(&path, &whole[..cut]).unwrap();
            assert!(read(&path, &series, |_, _| {}).is_err());
        }
    }
}
