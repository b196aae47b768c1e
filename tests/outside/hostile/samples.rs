//! Files of single samples that are small and ask for much: gigabytes behind a page of a few
//! kilobytes, and a thousand million rows beside a record of one.

use std::{
    fs::File,
    io::{Seek as _, Write as _},
    path::Path,
    sync::Arc,
};

use parquet::{
    basic::{Compression, Encoding, ZstdLevel},
    column::{
        page::{CompressedPage, Page, PageWriter as _},
        writer::ColumnCloseResult,
    },
    file::{
        metadata::ColumnChunkMetaData,
        writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite},
    },
    schema::parser::parse_message_type,
};
use serde_json::json;

use super::{caveats, kept, report, write};
use crate::support::Store;

const SCHEMA: &str =
    "message m { required binary series; required int64 t_ns; required int64 latency_ns; }";

/// Bytes over and over, packed, and how many there are.
struct Packed {
    bytes: Vec<u8>,
    unpacked: usize,
}

fn packed(pattern: &[u8], times: usize) -> Packed {
    let mut packer = zstd::Encoder::new(Vec::new(), 1).unwrap();
    for _ in 0..times {
        packer.write_all(pattern).unwrap();
    }
    Packed { bytes: packer.finish().unwrap(), unpacked: pattern.len() * times }
}

/// A page of `rows` values that are written plainly.
fn page(packed: &Packed, rows: usize) -> Vec<u8> {
    let page = Page::DataPage {
        buf: packed.bytes.clone().into(),
        num_values: rows as u32,
        encoding: Encoding::PLAIN,
        def_level_encoding: Encoding::RLE,
        rep_level_encoding: Encoding::RLE,
        statistics: None,
    };
    let mut sink = TrackedWrite::new(Vec::new());
    let page = CompressedPage::new(page, packed.unpacked);
    SerializedPageWriter::new(&mut sink).write_page(page).unwrap();
    sink.into_inner().unwrap()
}

/// A file of samples with `groups` row groups that each have one page in each column.
fn write_groups(path: &Path, groups: usize, rows: usize, columns: &[Packed; 3]) {
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let file = File::create(path).unwrap();
    let mut file = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
    let columns: Vec<(File, i64)> =
        columns.iter().map(|column| scratch(&page(column, rows))).collect();
    for _ in 0..groups {
        let parts = file.schema_descr().columns().to_vec();
        let mut group = file.next_row_group().unwrap();
        for ((from, length), part) in columns.iter().zip(parts) {
            let about = ColumnChunkMetaData::builder(part)
                .set_compression(Compression::ZSTD(ZstdLevel::default()))
                .set_total_compressed_size(*length)
                .set_num_values(rows as i64);
            let column = ColumnCloseResult {
                bytes_written: length.unsigned_abs(),
                rows_written: rows as u64,
                metadata: about.build().unwrap(),
                bloom_filter: None,
                column_index: None,
                offset_index: None,
            };
            group.append_column(from, column).unwrap();
        }
        group.close().unwrap();
    }
    file.close().unwrap();
}

fn scratch(bytes: &[u8]) -> (File, i64) {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    (file, bytes.len() as i64)
}

/// The run `r` with these samples, whose record counts one; what its report says of them.
fn reported(groups: usize, rows: usize, columns: &[Packed; 3]) -> (Store, Vec<String>) {
    let (store, run) = kept();
    let mut record = store.show("r");
    record["series"].as_array_mut().unwrap().truncate(1);
    record["series"][0]["count"] = json!(1);
    write(&run, &record);
    std::fs::create_dir_all(run.join("samples")).unwrap();
    let file = run.join("samples/000001.parquet");
    write_groups(&file, groups, rows, columns);
    assert!(file.metadata().unwrap().len() < 16 << 20, "a small file");
    let said = report(&store);
    assert_eq!(said.code, Some(0), "{said:?}");
    let own = caveats(&store).into_iter().filter(|caveat| caveat["code"] == "samples_damaged");
    let texts = own.map(|caveat| caveat["text"].as_str().unwrap().to_owned()).collect();
    (store, texts)
}

#[test]
fn a_page_that_unpacks_to_gigabytes_is_refused_with_the_limit() {
    let large = packed(&[0; 1 << 20], 1_280);
    assert!(large.bytes.len() < 1 << 20, "{} bytes", large.bytes.len());
    let (_store, said) = reported(1, 1, &[large, packed(&[0; 8], 1), packed(&[0; 8], 1)]);
    let [text] = said.as_slice() else { panic!("{said:?}") };
    assert!(
        text.contains("000001.parquet") && text.contains("takes more than 4160 bytes"),
        "{text}"
    );
}

// The limit itself, of few rows, in a unit test:
// `a_run_has_no_more_samples_than_its_record_counts_and_a_file_more`.
#[test]
#[ignore = "long: it reads 16.8 million rows"]
fn more_rows_than_the_record_counts_are_given_up_with_the_limit() {
    let rows = 1 << 20;
    let name = packed(b"\x04\0\0\0cpu0", rows);
    let (store, said) =
        reported(1_000, rows, &[name, packed(&[0; 8], rows), packed(&[0; 8], rows)]);
    let [text] = said.as_slice() else { panic!("{said:?}") };
    assert!(text.contains("more than 16777217 samples"), "{text}");
    let page = std::fs::read_to_string(store.path().join("page.html")).unwrap();
    let page = crate::support::page_data(&page);
    let points = page["runs"][0]["series"][0]["points"]["of"].as_u64();
    assert_eq!(points, Some(16 << 20), "what came before is there");
}
