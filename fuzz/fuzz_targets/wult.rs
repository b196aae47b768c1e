//! Results of wult and ndl: the text of `info.yml`, an empty line, and `datapoints.csv`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tardy::exchange::import::{ImportFormat, ImportOptions, read};

fuzz_target!(|text: &str| {
    let (info, points) = text.split_once("\n\n").unwrap_or((text, ""));
    let options = ImportOptions { info: Some(format!("{info}\n")), ..ImportOptions::default() };
    if let Ok(sheet) = read(points.as_bytes(), ImportFormat::find("wult"), &options) {
        assert!(sheet.is_consistent(), "{sheet:?}");
    }
});
