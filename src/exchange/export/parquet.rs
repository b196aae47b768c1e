//! Parquet: single samples of a run, and histograms of many runs that any SQL engine can merge.

use std::{
    io::{self, Write},
    iter,
    sync::Arc,
};

use parquet::{
    basic::{Compression, ZstdLevel},
    data_type::{ByteArray, ByteArrayType, DataType, Int64Type},
    errors::ParquetError,
    file::{
        properties::WriterProperties,
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::parser::parse_message_type,
};

use super::{
    CountedRuns,
    counted::CountedRun,
    rows::{COLUMNS, Column, HistogramRow, RunColumns},
};
use crate::run::Run;

/// Rows that are written as one group.
const ROWS_A_GROUP: usize = 1 << 17;

const SAMPLES: &str = "message samples {
    required binary series (UTF8);
    required int64 t_ns;
    required int64 latency_ns;
}";

type Group<'a, 'b> = SerializedRowGroupWriter<'a, &'b mut dyn Output>;

/// What a file is written to.
pub(crate) trait Output: Write + Send {}
impl<T: Write + Send> Output for T {}

fn begin<'a>(
    out: &'a mut dyn Output,
    schema: &str,
) -> Result<SerializedFileWriter<&'a mut dyn Output>, ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(format!("tardy {}", env!("CARGO_PKG_VERSION")));
    let schema = Arc::new(parse_message_type(schema)?);
    SerializedFileWriter::new(out, schema, Arc::new(properties.build()))
}

fn column<T: DataType>(group: &mut Group<'_, '_>, values: &[T::T]) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

/// The schema of [`COLUMNS`].
fn histograms() -> String {
    let column = |(name, column): &(&str, Column)| match column {
        Column::Text(_) => format!("required binary {name} (UTF8);"),
        Column::Number(_) | Column::Bucket(_) => format!("required int64 {name};"),
    };
    format!("message histograms {{ {} }}", COLUMNS.iter().map(column).collect::<String>())
}

/// Values of one column that wait to be written.
enum Values {
    Texts(Vec<ByteArray>),
    Numbers(Vec<i64>),
}

/// Rows of histograms that wait to be written, by the columns of [`COLUMNS`].
struct HistogramRows {
    columns: Vec<Values>,
    rows: usize,
}

impl HistogramRows {
    fn new() -> Self {
        let values = |(_, column): &(&str, Column)| match column {
            Column::Text(_) => Values::Texts(Vec::new()),
            Column::Number(_) | Column::Bucket(_) => Values::Numbers(Vec::new()),
        };
        Self { columns: COLUMNS.iter().map(values).collect(), rows: 0 }
    }

    /// All buckets of a series.
    fn add(&mut self, run: &CountedRun, number: usize, row: &HistogramRow<'_>) {
        let buckets = run.buckets(number);
        for ((_, column), values) in COLUMNS.iter().zip(&mut self.columns) {
            match (column, values) {
                (Column::Text(text), Values::Texts(all)) => {
                    all.extend(iter::repeat_n(ByteArray::from(text(row)), buckets.len()));
                }
                (Column::Number(number), Values::Numbers(all)) => {
                    all.extend(iter::repeat_n(number(row), buckets.len()));
                }
                (Column::Bucket(number), Values::Numbers(all)) => {
                    let places = buckets.iter().zip(0..);
                    all.extend(places.map(|(bucket, place)| number(bucket, place)));
                }
                _ => {}
            }
        }
        self.rows += buckets.len();
    }

    fn write(
        &mut self,
        file: &mut SerializedFileWriter<&mut dyn Output>,
    ) -> Result<(), ParquetError> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = file.next_row_group()?;
        for values in &self.columns {
            match values {
                Values::Texts(texts) => column::<ByteArrayType>(&mut group, texts)?,
                Values::Numbers(numbers) => column::<Int64Type>(&mut group, numbers)?,
            }
        }
        group.close()?;
        *self = Self::new();
        Ok(())
    }
}

/// The rows of [`HistogramRow`], one a bucket that has samples. Buckets of all runs have the same
/// bounds, so that `sum(count) group by low_ns, high_ns` merges them. Holds one run at a time.
pub(super) fn write_histograms(runs: CountedRuns<'_>, out: &mut dyn Output) -> io::Result<()> {
    let mut file = begin(out, &histograms())?;
    let mut rows = HistogramRows::new();
    for run in runs {
        let run = run?;
        let columns = RunColumns::of(&run.document);
        for (number, series) in run.document.series.iter().enumerate() {
            rows.add(&run, number, &HistogramRow { run: &columns, series });
            if rows.rows >= ROWS_A_GROUP {
                rows.write(&mut file)?;
            }
        }
    }
    rows.write(&mut file)?;
    file.close()?;
    Ok(())
}

/// Rows `series, t_ns, latency_ns`: one a sample, in the order in which they were kept.
pub(super) fn write_samples(run: &Run, out: &mut dyn Output) -> io::Result<()> {
    let names: Vec<ByteArray> =
        run.document.series.iter().map(|own| ByteArray::from(own.name.as_str())).collect();
    let mut file = begin(out, SAMPLES)?;
    let mut rows = SampleRows::default();
    let mut failed = Ok(());
    let read = run.samples(|number, sample| {
        let Some(name) = names.get(number).filter(|_| failed.is_ok()) else { return };
        rows.series.push(name.clone());
        rows.t_ns.push(sample.t_ns);
        rows.latency_ns.push(sample.latency_ns);
        if rows.t_ns.len() == ROWS_A_GROUP {
            failed = rows.write(&mut file);
        }
    });
    failed?;
    read.map_err(io::Error::other)?;
    rows.write(&mut file)?;
    file.close()?;
    Ok(())
}

/// Samples that wait to be written.
#[derive(Default)]
struct SampleRows {
    series: Vec<ByteArray>,
    t_ns: Vec<i64>,
    latency_ns: Vec<i64>,
}

impl SampleRows {
    fn write(
        &mut self,
        file: &mut SerializedFileWriter<&mut dyn Output>,
    ) -> Result<(), ParquetError> {
        if self.t_ns.is_empty() {
            return Ok(());
        }
        let mut group = file.next_row_group()?;
        column::<ByteArrayType>(&mut group, &self.series)?;
        column::<Int64Type>(&mut group, &self.t_ns)?;
        column::<Int64Type>(&mut group, &self.latency_ns)?;
        group.close()?;
        self.series.clear();
        self.t_ns.clear();
        self.latency_ns.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use parquet::{
        file::reader::{FileReader as _, SerializedFileReader},
        record::RowAccessor as _,
    };

    use super::*;
    use crate::exchange::export::counted::tests::measured;

    #[test]
    fn the_rows_of_histograms_have_every_count_of_every_run() {
        let runs = [measured(), measured()];
        let mut file = tempfile::tempfile().unwrap();
        write_histograms(&mut [measured(), measured()].into_iter().map(Ok), &mut file).unwrap();
        let file = SerializedFileReader::new(file).unwrap();
        let mut counted = 0;
        let (mut last, mut keys) = ((String::new(), 0), BTreeMap::new());
        for row in file.get_row_iter(None).unwrap() {
            let row = row.unwrap();
            assert!(row.get_long(4).unwrap() <= row.get_long(5).unwrap());
            assert_eq!(row.get_string(2).unwrap(), &runs[0].document.id);
            assert_eq!(row.get_string(7).unwrap(), runs[0].document.validity.as_str());
            counted += row.get_long(6).unwrap();
            let (series, place) = (row.get_string(3).unwrap(), row.get_long(19).unwrap());
            // Each series begins at 0 again, and has its own number to be merged by.
            assert_eq!(place, if series == &last.0 { last.1 + 1 } else { 0 });
            last = (series.clone(), place);
            keys.entry(series.clone()).or_insert(row.get_long(18).unwrap());
            assert_eq!(keys[series], row.get_long(18).unwrap());
        }
        let series = 0..runs[0].document.series.len();
        let expected: u64 = series.flat_map(|at| runs[0].buckets(at)).map(|own| own.count).sum();
        assert_eq!(counted, 2 * i64::try_from(expected).unwrap());
        assert_eq!(keys.values().collect::<BTreeSet<_>>().len(), keys.len());
    }
}
