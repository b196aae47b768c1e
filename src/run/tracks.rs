//! What happened beside the samples: `machine.csv`, `loads.csv` and `interrupts.csv`, as rows.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

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
    pub source: String,
    /// What the kernel calls it.
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

/// A file is refused above this size; a day on 256 CPUs has less than half of it.
const LARGEST_TRACK: u64 = 32 << 20;

/// Reads rows back. A last line without its end is what a killed writer leaves, and is passed over:
/// what is left of its last number would be another number.
///
/// # Errors
/// No such file, one that is too large, or a line that makes no sense (the message names it).
pub fn from_csv<T: DeserializeOwned>(path: &Path) -> io::Result<Vec<T>> {
    let damaged = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut text = Vec::new();
    File::open(path)?.take(LARGEST_TRACK + 1).read_to_end(&mut text)?;
    if text.len() as u64 > LARGEST_TRACK {
        return Err(damaged(format!("it is larger than {} MiB", LARGEST_TRACK >> 20)));
    }
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    text.truncate(whole);
    let rows = csv::Reader::from_reader(text.as_slice()).into_deserialize();
    rows.map(|row| row.map_err(|error| damaged(error.to_string()))).collect()
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
    fn a_line_without_end_is_refused_before_it_fills_the_memory() {
        let error = from_csv::<MachineRow>(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.to_string(), "it is larger than 32 MiB");
    }
}
