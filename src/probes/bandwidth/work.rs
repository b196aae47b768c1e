//! The process that measures: it measures each figure in turn and lets the values out.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tardy_hot::{clock::now_ns, repeats::processes::hand_policy_down, stop::Stop, wakeup::Ended};

use super::{
    figure::PlannedFigure,
    make::{Made, Place, make},
    rounds::Rounds,
};
use crate::{
    probes::{
        FigureValue, Schedule,
        far_end::{FarEndWork, Opened, Outlet},
    },
    setup::threads::plain,
    sys::process::own_descriptors,
};

/// The least size of the file of the file metrics, bytes.
const FILE_BYTES: u64 = 16 << 20;

/// What it is to measure, and where.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Order {
    pub figures: Vec<PlannedFigure>,
    pub near_cpu: u32,
    pub far_cpu: u32,
    /// Where the file of the file figures is made.
    pub directory: PathBuf,
}

/// The work.
#[derive(Debug)]
pub(crate) struct BandwidthWork {
    order: Order,
    values: Sender<FigureValue>,
    outlet: Option<Receiver<FigureValue>>,
}

impl BandwidthWork {
    /// By this order.
    ///
    /// # Errors
    /// It is not an order of this kind.
    pub(crate) fn from_order(order: Value) -> serde_json::Result<Self> {
        let (values, outlet) = channel();
        Ok(Self { order: serde_json::from_value(order)?, values, outlet: Some(outlet) })
    }
}

/// Bytes of a value on its way.
const VALUE_BYTES: usize = 20;

fn write(value: &FigureValue, into: &mut Vec<u8>) {
    into.extend(u32::try_from(value.figure).unwrap_or(u32::MAX).to_le_bytes());
    into.extend(value.end_ns.to_le_bytes());
    into.extend(value.value.to_le_bytes());
}

/// Takes the whole values off the beginning of `bytes`.
pub(super) fn taken(bytes: &mut Vec<u8>) -> Vec<FigureValue> {
    let (whole, rest) = bytes.as_chunks::<VALUE_BYTES>();
    let value = |[f0, f1, f2, f3, end @ .., v0, v1, v2, v3, v4, v5, v6, v7]: &[u8; VALUE_BYTES]| {
        Some(FigureValue {
            figure: usize::try_from(u32::from_le_bytes([*f0, *f1, *f2, *f3])).ok()?,
            end_ns: i64::from_le_bytes(*end),
            value: f64::from_le_bytes([*v0, *v1, *v2, *v3, *v4, *v5, *v6, *v7]),
        })
    };
    let values = whole.iter().filter_map(value).collect();
    *bytes = rest.to_vec();
    values
}

impl FarEndWork for BandwidthWork {
    fn outlet(&mut self) -> Option<Outlet> {
        let values = self.outlet.take()?;
        Some(Box::new(move |into| values.try_iter().for_each(|value| write(&value, into))))
    }

    fn open(self: Box<Self>) -> Result<Box<dyn Opened>, String> {
        let Order { figures, near_cpu, far_cpu, directory } = self.order;
        let largest = figures.iter().map(|figure| figure.bytes).max().unwrap_or(0);
        let length = largest.max(FILE_BYTES).next_multiple_of(4096);
        let needs_file = figures.iter().any(PlannedFigure::has_file);
        let file = needs_file.then(|| file_in(&directory, length)).transpose()?;
        let file = file.map(|file| (Arc::new(file), length));
        let place = Place { near_cpu, far_cpu, file };
        Ok(Box::new(Measuring { figures, place, values: self.values, refusals: Vec::new() }))
    }
}

/// A file without a name, of `length` bytes, all of them written.
fn file_in(directory: &Path, length: u64) -> Result<File, String> {
    let cannot = |error: &io::Error| {
        let (place, size) = (directory.display(), length >> 20);
        format!(
            "no file of {size} MiB in {place}: {}; free space there, name another place by \
             --file-dir, or leave the figures of files out by --only",
            plain(error)
        )
    };
    let write = || -> io::Result<File> {
        let mut file = unnamed(directory)?;
        let part = vec![1_u8; 1 << 20];
        let mut left = length;
        while left > 0 {
            let length = usize::try_from(left).unwrap_or(usize::MAX).min(part.len());
            file.write_all(part.get(..length).unwrap_or_default())?;
            left -= length as u64;
        }
        Ok(file)
    };
    write().map_err(|error| cannot(&error))
}

/// Nobody else can reach it, and nothing is left of it whatever ends this process.
fn unnamed(directory: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options.custom_flags(libc::O_TMPFILE | libc::O_CLOEXEC).open(directory)
}

struct Measuring {
    figures: Vec<PlannedFigure>,
    place: Place,
    values: Sender<FigureValue>,
    refusals: Vec<(usize, String)>,
}

impl Opened for Measuring {
    fn run(&mut self, schedule: Schedule, stop: &Stop) -> Ended {
        if !wait_until(schedule.start_ns, stop) {
            return Ended::Stopped;
        }
        // As in a program of one thread. Refused, short calls are slower by what sharing costs.
        let _ = own_descriptors();
        // Refused, processes are ordinary tasks, as those of any program without rights.
        let _ = hand_policy_down();
        let plan = Rounds::new(&schedule, self.figures.len());
        for round in 0..plan.rounds {
            for place in 0..self.figures.len() {
                if stop.is_set() {
                    return Ended::Stopped;
                }
                self.repeat(&plan, round, place, stop);
            }
            if self.refusals.len() == self.figures.len() {
                break;
            }
        }
        Ended::Done
    }

    fn value(&self) -> Value {
        json!(self.refusals)
    }
}

impl Measuring {
    /// One repeat of one figure, unless that was refused before.
    fn repeat(&mut self, plan: &Rounds, round: u64, place: usize, stop: &Stop) {
        let Some(figure) = self.figures.get(place) else { return };
        if self.refusals.iter().any(|(refused, _)| *refused == place) {
            return;
        }
        let begun_ns = now_ns();
        let until_ns = plan.until_ns(round, place, begun_ns);
        let value = make(*figure, &self.place).and_then(|mut made: Made| {
            let refused = |number| plain(&io::Error::from_raw_os_error(number));
            made.repeat(begun_ns, until_ns, stop).map_err(refused)
        });
        match value {
            // A repeat that was cut short does not count.
            _ if stop.is_set() => {}
            Ok(value) => {
                let _ = self.values.send(FigureValue { figure: place, end_ns: now_ns(), value });
            }
            Err(why) => self.refusals.push((place, why)),
        }
    }
}

fn wait_until(start_ns: i64, stop: &Stop) -> bool {
    while !stop.is_set() {
        let left_ns = start_ns - now_ns();
        if left_ns <= 0 {
            return true;
        }
        // A nudge ends no sleep of std.
        std::thread::sleep(Duration::from_nanos(left_ns.unsigned_abs().min(20_000_000)));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_taken_as_they_were_let_out_and_a_part_waits_for_its_rest() {
        let values = [(0, 5, 1.5), (3, -7, f64::MAX)];
        let values = values.map(|(figure, end_ns, value)| FigureValue { figure, end_ns, value });
        let mut bytes = Vec::new();
        values.iter().for_each(|value| write(value, &mut bytes));
        let mut first = bytes[..25].to_vec();
        assert_eq!(taken(&mut first), values[..1]);
        first.extend(&bytes[25..]);
        assert_eq!(taken(&mut first), values[1..]);
        assert!(first.is_empty());
    }

    #[test]
    fn a_place_without_space_is_named_with_the_remedy() {
        let error = file_in(Path::new("/proc"), 1 << 20).unwrap_err();
        assert!(error.starts_with("no file of 1 MiB in /proc: "), "{error}");
        assert!(error.contains("--file-dir") && error.contains("--only"), "{error}");
        let place = tempfile::tempdir().unwrap();
        let file = file_in(place.path(), (1 << 20) + 4096).unwrap();
        assert_eq!(file.metadata().unwrap().len(), (1 << 20) + 4096);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "it has no name");
    }
}
