//! `peaks.jsonl` and `blame.json` of a run.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, ErrorKind, Read as _},
    path::Path,
};

use crate::run::{
    Run, names,
    peaks::{Blame, Peak},
};

/// Longer lines are no peaks.
const LONGEST_LINE: u64 = 16 << 20;

/// A larger `blame.json` is none.
const LARGEST_BLAME: u64 = 64 << 20;

/// The worst peaks, worst first, at most `most`; and the lines that are damaged.
pub fn peaks(run: &Run, most: usize) -> (Vec<Peak>, Vec<String>) {
    let path = run.path.join(names::PEAKS);
    let (mut worst, mut damaged) = (Vec::new(), Vec::new());
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return (worst, damaged),
        Err(error) => return (worst, vec![format!("{}: {error}", names::PEAKS)]),
    };
    let mut file = BufReader::new(file);
    for number in 1_u64.. {
        let mut line = Vec::new();
        match file.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => {
                damaged.push(format!("{}, line {number}: {error}", names::PEAKS));
                break;
            }
        }
        match serde_json::from_slice::<Peak>(&line) {
            Ok(peak) => worst.push(peak),
            Err(error) => damaged.push(format!("{}, line {number}: {error}", names::PEAKS)),
        }
        if worst.len() >= 2 * most {
            keep_worst(&mut worst, most);
        }
    }
    keep_worst(&mut worst, most);
    (worst, damaged)
}

fn keep_worst(peaks: &mut Vec<Peak>, most: usize) {
    peaks.sort_by_key(|peak| std::cmp::Reverse(peak.latency_ns));
    peaks.truncate(most);
}

/// The sums; nothing where the run was not traced.
///
/// # Errors
/// What is wrong with the file.
pub fn blame(run: &Run) -> Result<Option<Blame>, String> {
    let path: &Path = &run.path.join(names::BLAME);
    match fs::metadata(path) {
        Ok(found) if found.len() > LARGEST_BLAME => {
            return Err(format!("{} is larger than any that tardy writes", names::BLAME));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        _ => {}
    }
    let text = fs::read(path).map_err(|error| format!("{}: {error}", names::BLAME))?;
    let blame = serde_json::from_slice(&text);
    blame.map(Some).map_err(|error| format!("{}: {error}", names::BLAME))
}
