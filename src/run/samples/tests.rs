//! Files of samples: whole, damaged, of other writers, and made to take memory or time.

use std::{fs::OpenOptions, io::Write as _, os::unix::fs::FileExt as _};

use parquet::{
    column::page::{CompressedPage, Page, PageWriter as _},
    file::{
        metadata::{ParquetMetaDataReader, ParquetMetaDataWriter, RowGroupMetaData},
        properties::{WriterPropertiesBuilder, WriterVersion},
        writer::{SerializedPageWriter, TrackedWrite},
    },
};

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
    let mut reader = SampleReader::new(series, 0);
    reader.read(path, |number, sample| lists[number].push(sample)).unwrap();
    lists
}

/// Why a file is not read.
fn refusal(path: &Path) -> String {
    let series = ["cpu0".to_owned()];
    SampleReader::new(&series, 0).read(path, |_, _| {}).unwrap_err().to_string()
}

fn write_at(path: &Path, series: &[String], samples: &[Vec<Sample>]) {
    let mut file = begin(File::create(path).unwrap()).unwrap();
    append(&mut file, series, samples).unwrap();
    file.close().unwrap();
}

#[test]
fn a_link_instead_of_the_directory_is_refused_by_whoever_reads() {
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("samples");
    std::os::unix::fs::symlink(directory.path(), &link).unwrap();
    assert_eq!(files(&link), std::slice::from_ref(&link));
    assert!(refusal(&link).contains("it is a symbolic link"));
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
    // A series that the reader does not ask for is skipped.
    assert_eq!(read_all(&path, &series[2..]), samples[2..]);
}

#[test]
fn as_many_series_as_a_record_may_have_are_within_the_limits() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("0001.parquet");
    let series: Vec<String> = (0..1_000).map(|cpu| format!("cpu{cpu}#1")).collect();
    let samples = vec![wild(1); series.len()];
    write_at(&path, &series, &samples);
    assert_eq!(read_all(&path, &series), samples);
    let bytes = fs::read(&path).unwrap();
    let footer = bytes[bytes.len() - 8..].first_chunk().map(|length| u32::from_le_bytes(*length));
    // Of longer runs, offsets take a few bytes more.
    let of_one = u64::from(footer.unwrap()) / 1_000 + 50;
    assert!(of_one * 16_384 < footer::LARGEST, "{of_one}");
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
        "message other { required binary series; required group a { required int64 b; \
         required int64 c; } }",
    ] {
        let parsed = Arc::new(parse_message_type(schema).unwrap());
        let file = File::create(&path).unwrap();
        let mut file = SerializedFileWriter::new(file, parsed, properties()).unwrap();
        let mut group = file.next_row_group().unwrap();
        while let Some(column) = group.next_column().unwrap() {
            column.close().unwrap();
        }
        group.close().unwrap();
        file.close().unwrap();
        assert!(refusal(&path).contains("other columns"), "{schema}: {}", refusal(&path));
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
        assert!(SampleReader::new(&series, 0).read(&path, |_, _| {}).is_err(), "{cut}");
    }
}

/// Samples that are hard to pack: both signs, all sizes, steps that overflow.
fn wild(count: u64) -> Vec<Sample> {
    let number = |at: u64| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (at % 64)).cast_signed();
    let sample = |at| Sample { t_ns: number(at), latency_ns: number(at * 3).wrapping_neg() };
    (1..=count).map(sample).collect()
}

/// A file as another writer of Parquet may make it.
fn write_otherwise(path: &Path, series: &[String], lists: &[Vec<Sample>], by: WriterPropertiesPtr) {
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let mut file = SerializedFileWriter::new(File::create(path).unwrap(), schema, by).unwrap();
    let mut group = file.next_row_group().unwrap();
    let of_one = |(name, list)| {
        let (name, list): (&String, &Vec<Sample>) = (name, list);
        list.iter().map(|sample| (name, *sample)).collect::<Vec<_>>()
    };
    let rows: Vec<(&String, Sample)> = series.iter().zip(lists).flat_map(of_one).collect();
    let names: Vec<ByteArray> = rows.iter().map(|(name, _)| name.as_str().into()).collect();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<ByteArrayType>().write_batch(&names, None, None).unwrap();
    column.close().unwrap();
    for value in [|sample: &Sample| sample.t_ns, |sample: &Sample| sample.latency_ns] {
        let values: Vec<i64> = rows.iter().map(|(_, sample)| value(sample)).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&values, None, None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    file.close().unwrap();
}

/// Encodings, pages and packing as other writers of Parquet may choose them.
fn writers() -> Vec<WriterPropertiesPtr> {
    let bare = WriterProperties::builder;
    let packed = || bare().set_compression(Compression::ZSTD(ZstdLevel::default()));
    let plain = |by: WriterPropertiesBuilder| by.set_dictionary_enabled(false);
    let steps = |by: WriterPropertiesBuilder| {
        ["t_ns", "latency_ns"].into_iter().fold(plain(by), |by, name| {
            by.set_column_encoding(ColumnPath::from(name), Encoding::DELTA_BINARY_PACKED)
        })
    };
    let small = |by: WriterPropertiesBuilder| {
        by.set_data_page_row_count_limit(100).set_write_batch_size(64)
    };
    let second = |by: WriterPropertiesBuilder| by.set_writer_version(WriterVersion::PARQUET_2_0);
    let all = [
        bare(),
        packed(),
        plain(bare()),
        plain(packed()),
        steps(bare()),
        small(steps(packed())),
        small(packed()),
        second(small(packed())),
        second(bare()),
    ];
    all.map(|by| Arc::new(by.build())).into()
}

#[test]
fn whatever_another_writer_chooses_the_samples_are_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("0001.parquet");
    let (series, few) = lists();
    for by in writers() {
        for lists in [&few, &vec![wild(1_000), wild(313)], &vec![wild(1), wild(0)]] {
            write_otherwise(&path, &series, lists, Arc::clone(&by));
            assert_eq!(read_all(&path, &series), *lists, "{by:?}");
        }
    }
    // Where each name is the beginning of the one before, few bytes ask for much memory.
    let names = WriterProperties::builder().set_dictionary_enabled(false);
    let names = names.set_column_encoding(ColumnPath::from("series"), Encoding::DELTA_BYTE_ARRAY);
    write_otherwise(&path, &series, &few, Arc::new(names.build()));
    assert!(refusal(&path).contains("written in another way (7)"), "{}", refusal(&path));
}

#[test]
fn a_flipped_bit_is_an_error_or_harmless_and_no_panic() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("0001.parquet");
    let (series, samples) = (lists().0, [wild(40), wild(17)]);
    let mut refused = 0;
    for by in [properties()].into_iter().chain(writers()) {
        write_otherwise(&path, &series, &samples, by);
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        for (at, byte) in (0..).zip(fs::read(&path).unwrap()) {
            file.write_all_at(&[byte ^ (1 << (at % 8))], at).unwrap();
            let read = SampleReader::new(&series, 0).read(&path, |_, _| {});
            refused += u32::from(read.is_err());
            file.write_all_at(&[byte], at).unwrap();
        }
    }
    assert!(refused > 1_000, "{refused}");
}

/// Gives a file other row groups, by a footer behind its own.
fn change_groups(path: &Path, change: impl Fn(RowGroupMetaData) -> Vec<RowGroupMetaData>) {
    let footer = ParquetMetaDataReader::new().parse_and_finish(&File::open(path).unwrap());
    let mut footer = footer.unwrap().into_builder();
    let groups = footer.take_row_groups().into_iter().flat_map(change).collect();
    let footer = footer.set_row_groups(groups).build();
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    ParquetMetaDataWriter::new(&mut file, &footer).finish().unwrap();
}

#[test]
fn what_a_footer_says_of_its_row_groups_is_not_believed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("0001.parquet");
    let (series, samples) = lists();
    let refused = |change: &dyn Fn(RowGroupMetaData) -> Vec<RowGroupMetaData>, why: &str| {
        write_at(&path, &series, &samples);
        change_groups(&path, change);
        assert!(refusal(&path).contains(why), "{why}: {}", refusal(&path));
    };
    let with_rows = |group: RowGroupMetaData, rows: i64| {
        vec![group.into_builder().set_num_rows(rows).build().unwrap()]
    };
    refused(&|group| vec![group; 1_000], "more bytes than it has");
    refused(&|group| with_rows(group, (1 << 20) + 1), "more than 1048576 rows");
    refused(&|group| with_rows(group, -1), "footer is damaged");
    refused(&|group| with_rows(group, 999), "more values than there are rows");
    refused(&|group| with_rows(group, 1_001), "not of one length");
    let with_columns = |group: RowGroupMetaData, start: i64, length: i64| {
        let mut group = group.into_builder();
        let columns = group.take_columns().into_iter().map(|column| {
            let column = column.into_builder().set_dictionary_page_offset(None);
            column.set_data_page_offset(start).set_total_compressed_size(length).build().unwrap()
        });
        let columns = columns.collect();
        vec![group.set_column_metadata(columns).build().unwrap()]
    };
    refused(&|group| with_columns(group, -1, 10), "footer is damaged");
    refused(&|group| with_columns(group, 4, -1), "footer is damaged");
    refused(&|group| with_columns(group, 4, 1 << 60), "more bytes than it has");
    refused(&|group| with_columns(group, i64::MAX, 10), "");
}

#[test]
fn a_long_footer_and_a_long_column_are_refused_by_their_length() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("0001.parquet");
    // Holes, which take no room on the disk.
    let file = File::create(&path).unwrap();
    file.set_len(1 << 33).unwrap();
    let tail = |length: u32| [&length.to_le_bytes()[..], b"PAR1"].concat();
    OpenOptions::new().append(true).open(&path).unwrap().write_all(&tail(u32::MAX - 1)).unwrap();
    assert!(refusal(&path).contains("at most 8388608 are read"), "{}", refusal(&path));
    let column = footer::Column { codec: 0, start: 0, length: 1 << 32 };
    let error = values::read(&file, &column, ROWS_A_GROUP, Kind::Integers).unwrap_err().to_string();
    assert!(error.contains("takes more than 67112960 bytes"), "{error}");
}

/// A page of eight-byte numbers that claims to unpack to `unpacked` bytes.
fn page(encoding: Encoding, values: u32, bytes: Vec<u8>, unpacked: usize) -> Vec<u8> {
    let level = Encoding::RLE;
    let page = Page::DataPage {
        buf: bytes.into(),
        num_values: values,
        encoding,
        def_level_encoding: level,
        rep_level_encoding: level,
        statistics: None,
    };
    let mut sink = TrackedWrite::new(Vec::new());
    let page = CompressedPage::new(page, unpacked);
    SerializedPageWriter::new(&mut sink).write_page(page).unwrap();
    sink.into_inner().unwrap()
}

/// What reading a column of these pages, packed by zstd, says.
fn column_of(pages: &[u8], rows: usize) -> Result<Vec<i64>, String> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(pages).unwrap();
    let column = footer::Column { codec: 6, start: 0, length: pages.len() as u64 };
    values::read(&file, &column, rows, Kind::Integers).map_err(|error| error.to_string())
}

#[test]
fn a_page_unpacks_within_what_its_rows_may_take_whatever_it_says() {
    let zeros = |bytes: usize| zstd::bulk::compress(&vec![0; bytes], 1).unwrap();
    let plain = |said: usize, real: usize| page(Encoding::PLAIN, 2, zeros(real), said);
    assert_eq!(column_of(&plain(16, 16), 2), Ok(vec![0, 0]));
    let error = column_of(&plain(1 << 20, 1 << 20), 2).unwrap_err();
    assert!(error.contains("2 rows in it takes more than 4224 bytes"), "{error}");
    column_of(&plain(16, 1 << 20), 2).unwrap_err();
    column_of(&plain(i32::MAX as usize, 16), 2).unwrap_err();
    // Each by itself is small.
    let many = plain(3_000, 3_000).repeat(2);
    assert!(column_of(&many, 2).unwrap_err().contains("takes more"));
    let more = page(Encoding::PLAIN, u32::MAX >> 1, zeros(16), 16);
    assert!(column_of(&more, 2).unwrap_err().contains("more values than there are rows"));
}

#[test]
fn values_that_are_not_what_their_page_says_are_an_error() {
    let error_of = |encoding, bytes: &[u8]| {
        let packed = zstd::bulk::compress(bytes, 1).unwrap();
        column_of(&page(encoding, 9, packed, bytes.len()), 9).unwrap_err()
    };
    let steps = Encoding::DELTA_BINARY_PACKED;
    for (encoding, bytes) in [
        (Encoding::PLAIN, &[0; 71][..]),
        (Encoding::RLE_DICTIONARY, &[]),
        // No dictionary; then an empty run, a width of 255 bits, and a number that never
        // ends.
        (Encoding::RLE_DICTIONARY, &[1, 18, 0]),
        (Encoding::RLE_DICTIONARY, &[1, 0, 0, 0]),
        (Encoding::RLE_DICTIONARY, &[255; 99]),
        (Encoding::RLE_DICTIONARY, &[1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255]),
        // Blocks of nothing, of no parts, of few values; and a step of 65 bits.
        (steps, &[0, 4, 9, 0, 0, 0, 0, 0]),
        (steps, &[128, 1, 0, 9, 0, 0, 0, 0]),
        (steps, &[128, 1, 4, 1, 0, 0, 0, 0]),
        (steps, &[128, 1, 4, 9, 0, 0, 65, 65, 65, 65]),
        (steps, &[255; 40]),
        (Encoding::BYTE_STREAM_SPLIT, &[0; 72]),
    ] {
        let error = error_of(encoding, bytes);
        let is_told = error.contains("is damaged") || error.contains("in another way");
        assert!(is_told, "{encoding} {bytes:?}: {error}");
    }
}

#[test]
fn a_run_has_no_more_samples_than_its_record_counts_and_a_file_more() {
    let directory = tempfile::tempdir().unwrap();
    let (series, samples) = lists();
    let closed = directory.path().join("0001.parquet");
    write_at(&closed, &series, &samples);
    let open = directory.path().join("0002.spool");
    let mut bytes = spool::MAGIC.to_vec();
    spool::append(&mut bytes, 0, &samples[0]);
    fs::write(&open, bytes).unwrap();
    for (path, room, taken) in [(&closed, 1_999, 1_000), (&open, 999, 999)] {
        let mut reader = SampleReader::new(&series, 7);
        reader.left = room;
        let mut read = 0;
        let error = reader.read(path, |_, _| read += 1).unwrap_err().to_string();
        assert!(error.contains("more than 16777223 samples"), "{error}");
        assert!(reader.is_full());
        assert_eq!(read, taken, "whole row groups, and single samples of a spool");
    }
    let mut reader = SampleReader::new(&series, 7);
    reader.read(&closed, |_, _| {}).unwrap();
    assert_eq!(reader.left, (1 << 24) + 7 - 2_000);
}

#[test]
fn of_two_series_of_one_name_the_first_has_the_samples_and_one_that_nobody_wants_is_passed_over() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("0001.parquet");
    let written = ["a", "other", "b"].map(str::to_owned);
    let samples = [wild(3), wild(4), wild(5)];
    let series = ["a", "a", "b"].map(str::to_owned);
    for by in [properties()].into_iter().chain(writers()) {
        write_otherwise(&path, &written, &samples, by);
        assert_eq!(read_all(&path, &series), [wild(3), Vec::new(), wild(5)]);
    }
}
