//! Values that several caveats have: errors of the system, counts by series, by CPU and by end.

use std::io;

use serde::{Deserialize, Serialize};

use crate::units;

/// An error of the operating system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OsError {
    /// Its number; `None` if the error is not the kernel's.
    pub errno: Option<i32>,
    /// Its text, `Operation not permitted`.
    pub text: String,
}

impl OsError {
    /// Of an error number.
    #[must_use]
    pub fn of(errno: i32) -> Self {
        Self::from(&io::Error::from_raw_os_error(errno))
    }
}

impl From<&io::Error> for OsError {
    fn from(error: &io::Error) -> Self {
        let text = error.to_string();
        // Without "(os error 1)": the number stands beside it.
        let text = text.split(" (os error").next().unwrap_or(&text).to_owned();
        Self { errno: error.raw_os_error(), text }
    }
}

impl std::fmt::Display for OsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// How often something happened to the thread of a series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeriesCount {
    /// The series.
    pub series: String,
    /// How often.
    pub count: u64,
}

/// How often something happened to a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CpuCount {
    /// The CPU.
    pub cpu: u32,
    /// How often.
    pub count: u64,
}

/// How many packets of one end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EndCount {
    /// `near`, `far`, `far2`.
    pub end: String,
    /// How many.
    pub count: u64,
}

/// The items as text, one after the other.
pub(super) fn list<T>(items: &[T], between: &str, text: impl Fn(&T) -> String) -> String {
    items.iter().map(text).collect::<Vec<_>>().join(between)
}

/// "cpu0: 2 times; cpu1: once"
pub(super) fn times(threads: &[SeriesCount]) -> String {
    list(threads, "; ", |SeriesCount { series, count }| {
        format!("{series}: {}", units::times(*count))
    })
}

/// A moment of the run, "1.2 s".
pub(super) fn moment(at_ns: i64) -> String {
    format!("{:.1} s", at_ns as f64 / 1e9)
}
