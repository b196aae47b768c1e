//! oslat's text: a row a latency, a column a core.
//!
//! ```text
//!         Core:   0 1
//!     001 (us):   52076368 55396730
//!     016 (us):   407 1290 (including overflows)
//!      Maximum:   12024 3288 (us)
//!     Duration:   1.997 1.997 (sec)
//! ```
//!
//! A row has what took at most its latency, and more than that of the row before. The last row has
//! all that is longer, too. The first row, of 1 us, is every turn of the loop that nothing
//! disturbed, and none of it a gap.

use super::{
    ImportOptions,
    imported_data::ImportedData,
    source::{ImportError, Source},
};
use crate::{plain::cut, run::ImportCaveat};

/// A turn of the loop takes that long where nothing disturbs it.
pub(super) const UNDISTURBED_US: i64 = 1;

/// Whether it begins as such a file does.
pub(super) fn matches_format(head: &str) -> bool {
    head.lines().any(|line| line.starts_with("oslat V "))
        || head.lines().any(|line| line.trim_start().starts_with("001 (us):"))
}

/// Reads it.
pub(super) fn read(
    source: &mut Source<'_>,
    _options: &ImportOptions,
) -> Result<ImportedData, ImportError> {
    let mut sheet = ImportedData::new("oslat", Some("noise"));
    let (mut cores, mut maxima) = (Vec::new(), Vec::new());
    let mut rows: Vec<(i64, Vec<u64>)> = Vec::new();
    while let Some((number, line)) = source.text()? {
        if let Some(version) = line.strip_prefix("oslat V ") {
            sheet.version = cut(version.trim(), 20);
        }
        let Some((name, values)) = line.split_once(':') else { continue };
        let fields = || values.split_whitespace().take_while(|word| !word.starts_with('('));
        let numbers = || -> Option<Vec<u64>> { fields().map(|word| word.parse().ok()).collect() };
        match name.trim() {
            "Core" if !rows.is_empty() => {
                let what = "a second run begins here: import one file for each";
                return Err(ImportError::at(number, what));
            }
            "Core" => cores = numbers().unwrap_or_default(),
            "Maximum" => maxima = numbers().unwrap_or_default(),
            "Duration" => {
                let seconds = fields().filter_map(|word| word.parse::<f64>().ok());
                let longest = seconds.fold(0.0, f64::max);
                sheet.duration_ns = (longest > 0.0).then_some((longest * 1e9) as u64);
            }
            name => {
                let Some(bin) = name.strip_suffix("(us)") else { continue };
                let row = bin.trim().parse().ok().zip(numbers());
                let row: (i64, Vec<u64>) =
                    row.filter(|row| row.1.len() == cores.len()).ok_or_else(|| {
                        ImportError::at(number, "a row has a latency and a count of each core")
                    })?;
                rows.push(row);
            }
        }
    }
    put(&mut sheet, &cores, &rows, &maxima)?;
    Ok(sheet)
}

fn put(
    sheet: &mut ImportedData,
    cores: &[u64],
    rows: &[(i64, Vec<u64>)],
    maxima: &[u64],
) -> Result<(), ImportError> {
    let Some((last, overflowed)) = rows.last() else { return Ok(()) };
    if maxima.len() != cores.len() {
        return Err(ImportError::new(
            "a line Maximum: with a number for each core was expected behind its rows",
        ));
    }
    for (column, core) in cores.iter().enumerate() {
        let cpu = u32::try_from(*core).map_err(|_| ImportError::new("no core has this number"))?;
        let number = sheet.cpu(cpu)?;
        let of = |counts: &[u64]| counts.get(column).copied().unwrap_or(0);
        for (bin, counts) in rows.iter().take(rows.len() - 1) {
            if *bin <= UNDISTURBED_US {
                sheet.leave_out_turns(of(counts), UNDISTURBED_US * 1_000);
                continue;
            }
            sheet.add(number, bin.saturating_mul(1_000), of(counts));
        }
        let max = i64::try_from(of(maxima)).unwrap_or(i64::MAX).saturating_mul(1_000);
        let from = last.saturating_mul(1_000);
        if max > from {
            sheet.hidden(number, of(overflowed), from, max);
        } else {
            sheet.add(number, from, of(overflowed));
        }
    }
    sheet.caveats.push(ImportCaveat::LatenciesRoundedUp { step_ns: 1_000 });
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::exchange::import::tests::{caveats, series, text};

    /// As oslat 2.40 wrote it.
    const OSLAT: &str = "oslat V 2.40\nTotal runtime: \t\t2 seconds\nCPU list: \t\t0,1\n\n\
        \x20       Core:\t 0 3\nCounter Freq:\t 2597 2597 (Mhz)\n\
        \x20   001 (us):\t 52076368 55396730\n    002 (us):\t 53 31\n\
        \x20   016 (us):\t 407 0 (including overflows)\n\
        \x20    Minimum:\t 1 1 (us)\n     Average:\t 1.019 1.018 (us)\n\
        \x20    Maximum:\t 12024 2 (us)\n     Max-Min:\t 12023 1 (us)\n\
        \x20   Duration:\t 1.997 1.998 (sec)\n";

    #[test]
    fn the_last_row_is_of_unknown_length_where_the_maximum_is_beyond_it() {
        let sheet = text(OSLAT).unwrap();
        let expected = [("cpu0", 460, 2_000, 12_024_000), ("cpu3", 31, 2_000, 2_000)];
        assert_eq!(series(&sheet), expected);
        assert_eq!(sheet.duration_ns, Some(1_998_000_000));
        let said = caveats(&sheet);
        assert!(said.contains("407 of 460 samples on cpu0 lie beyond"), "{said}");
        assert!(said.contains("rounded up to steps of 1.00 us"), "{said}");
        assert!(said.contains("turns_left_out: 107,473,098 turns of up to 1.00 us"), "{said}");
    }

    #[test]
    fn a_cut_or_uneven_table_is_refused() {
        let cut = &OSLAT[..OSLAT.find("     Maximum").unwrap()];
        assert!(text(cut).unwrap_err().to_string().contains("a line Maximum:"));
        let error = text(&OSLAT.replace("53 31", "53")).unwrap_err().to_string();
        assert!(error.starts_with("line 8: a row has"), "{error}");
    }
}
