//! What happened beside the samples: `machine.csv`, `loads.csv` and `interrupts.csv`, as rows.

use std::{borrow::Cow, io, path::Path};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::files::{self, LONGEST_DAMAGE, unusable};
use crate::limits::tracks::{LARGEST_TRACK, MOST_ROWS};
use crate::plain::cut;

/// `machine.csv`: what the machine did in one interval. Long format: one row per interval and
/// subject, so that the columns do not depend on the number of CPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MachineRow {
    /// End of the interval, seconds since the start of the run.
    pub t_s: f64,
    /// `interrupts`, `softirqs`, `context_switches`, `forks`, `page_faults`, `major_faults`,
    /// `disk_read_bytes`, `disk_written_bytes`, `network_received_bytes`, `network_sent_bytes`,
    /// `loopback_bytes` (per second, the whole machine), or `cpu0`, ... (share of time not idle, 0
    /// to 1).
    pub what: String,
    /// The figure.
    pub value: f64,
}

/// `loads.csv`: what one load did in one interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadRow {
    /// End of the interval, seconds since the start of the run.
    pub t_s: f64,
    /// Its place among the run's loads, from 0.
    pub load: usize,
    /// Operations per second.
    pub operations_per_s: f64,
}

/// `interrupts.csv`: one source on one CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptCount {
    /// `irq` or `softirq`.
    pub kind: String,
    /// `LOC`, `24`, `TIMER`, ...
    #[serde(with = "device_name")]
    pub source: String,
    /// What the kernel calls it.
    #[serde(with = "device_name")]
    pub description: String,
    /// CPU number.
    pub cpu: u32,
    /// Count when the measurement began.
    pub before: u64,
    /// Count when it ended.
    pub after: u64,
    /// Their difference.
    pub difference: u64,
}

/// The rows as CSV text, with a header line where `with_header`.
#[must_use]
pub fn to_csv<T: Serialize>(rows: &[T], with_header: bool) -> Vec<u8> {
    let mut writer = csv::WriterBuilder::new().has_headers(with_header).from_writer(Vec::new());
    for row in rows {
        // Into memory, and of one shape: this cannot fail.
        let _ = writer.serialize(row);
    }
    writer.into_inner().unwrap_or_default()
}

/// Reads rows back. A last line without its end is what a killed writer leaves, and is skipped:
/// what is left of its last number would be another number.
///
/// # Errors
/// No such file, one that is invalid or too large, or a line that makes no sense (the message names
/// it).
pub fn from_csv<T: DeserializeOwned>(path: &Path) -> io::Result<Vec<T>> {
    let mut text = files::read(path, LARGEST_TRACK)?;
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    text.truncate(whole);
    let mut rows = Vec::new();
    for row in csv::Reader::from_reader(text.as_slice()).into_deserialize() {
        if rows.len() == MOST_ROWS {
            return Err(unusable(format!("it has more than {MOST_ROWS} rows")));
        }
        rows.push(row.map_err(|error| unusable(cut(&error.to_string(), LONGEST_DAMAGE)))?);
    }
    Ok(rows)
}

/// A text for a cell of a CSV file, which a spreadsheet must not take for a formula: one that
/// begins as a formula does stands behind an apostrophe. Numbers are not texts.
#[must_use]
pub fn no_formula(text: &str) -> Cow<'_, str> {
    if is_formula(text) { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) }
}

/// Behind any apostrophes, so that none is taken off that was not put there.
fn is_formula(text: &str) -> bool {
    text.trim_start_matches('\'').starts_with(['=', '+', '-', '@', '\t', '\r', '\n'])
}

/// Names of devices in a CSV file: no formulas, and read as they were.
mod device_name {
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::{is_formula, no_formula};

    pub(super) fn serialize<S: Serializer>(name: &str, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&no_formula(name))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
        let name = String::deserialize(from)?;
        let own = name.strip_prefix('\'').filter(|own| is_formula(own)).map(str::to_owned);
        Ok(own.unwrap_or(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &[u8]) -> io::Result<Vec<MachineRow>> {
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), text)?;
        from_csv(file.path())
    }

    #[test]
    fn a_file_cut_anywhere_gives_its_whole_lines_with_their_own_numbers() {
        let row = |t_s: f64| MachineRow { t_s, what: "interrupts".into(), value: 1_234.5 };
        let written = [row(1.0), row(2.0)];
        let text = to_csv(&written, true);
        for cut in 0..=text.len() {
            let lines = text[..cut].iter().filter(|byte| **byte == b'\n').count();
            let read = rows(&text[..cut]).unwrap();
            assert_eq!(read, written[..lines.saturating_sub(1)], "cut at {cut}");
        }
    }

    #[test]
    fn a_damaged_last_line_is_damage_and_not_a_cut() {
        let text = b"t_s,what,value\n1.0,forks,2.0\n2.0,forks,x\n";
        assert!(rows(text).unwrap_err().to_string().contains("line: 3"));
        assert!(rows(b"t_s,w\n1.0,forks\n").is_err(), "a damaged header");
    }

    #[test]
    fn what_is_no_file_or_too_large_is_refused_before_it_fills_the_memory() {
        let error = from_csv::<MachineRow>(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.to_string(), "it is a device, not a file");
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(LARGEST_TRACK + 1).unwrap();
        let error = from_csv::<MachineRow>(file.path()).unwrap_err();
        assert!(error.to_string().starts_with("it is larger than 32 MiB; "), "{error}");
        let text = format!("t_s,what,value\n{}", "1,a,1\n".repeat(MOST_ROWS + 1));
        assert_eq!(rows(text.as_bytes()).unwrap_err().to_string(), "it has more than 2000000 rows");
    }

    #[test]
    fn a_name_is_no_formula_to_a_spreadsheet_and_numbers_stay_numbers() {
        let names = ["=cmd()", "+1", "-1", "@a", "'=a", "eth0", "'a"];
        let written = names.map(|description| InterruptCount {
            kind: "irq".into(),
            source: "24".into(),
            description: description.into(),
            cpu: 0,
            before: 0,
            after: 5,
            difference: 5,
        });
        let text = String::from_utf8(to_csv(&written, false)).unwrap();
        let cells: Vec<&str> = text.lines().map(|line| line.split(',').nth(2).unwrap()).collect();
        assert_eq!(cells, ["'=cmd()", "'+1", "'-1", "'@a", "''=a", "eth0", "'a"]);
        let row = MachineRow { t_s: 1.0, what: "forks".into(), value: -2.5 };
        assert_eq!(to_csv(&[row], false), b"1.0,forks,-2.5\n");

        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), to_csv(&written, true)).unwrap();
        let read: Vec<InterruptCount> = from_csv(file.path()).unwrap();
        assert_eq!(read, written);
    }
}
