//! The tables in results of lmbench: a title, and rows of what was measured with and a number.
//!
//! ```text
//! "size=16k ovr=0.91
//! 2 1.23
//!
//! "libc bcopy unaligned
//! 0.000512 20541.42
//!
//! Memory load latency
//! "stride=128
//! 0.00098 1.234
//! ```

use crate::run::FigureUnit;

/// No number is as large: as many us are eleven days.
const LARGEST: f64 = 1e12;

/// What the rows of a table are.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LmbenchTable {
    /// Processes, and us of a switch among them, each of which uses this number of KiB.
    Switches(String),
    /// Size in MB (1,000,000 bytes), and us.
    Times(String),
    /// Size in MB, and MB/s; with the unit behind it or without.
    Bandwidths(String),
    /// Size in MiB, and ns of a load: the heading, and once it is known the stride.
    Loads(&'static str, Option<String>),
    /// Size, files, files made a second, files removed a second.
    Files,
    /// Rows that state no time and no bandwidth.
    Others,
}

impl LmbenchTable {
    /// The table that a line begins; nothing where it begins none.
    pub(super) fn titled(line: &str, before: Option<&Self>) -> Result<Option<Self>, String> {
        let Some(title) = line.strip_prefix('"') else { return Ok(Self::headed(line)) };
        if let Some(rest) = title.strip_prefix("size=") {
            let kib = rest.split_once("k ovr=").map(|(kib, _)| kib);
            let kib = kib.filter(|kib| kib.parse::<u32>().is_ok());
            let kib = kib.ok_or("names no size of processes")?;
            return Ok(Some(Self::Switches(kib.into())));
        }
        if let Some(stride) = title.strip_prefix("stride=") {
            let Some(Self::Loads(heading, _)) = before else {
                return Err("has no heading before it that says what was loaded".into());
            };
            let stride = stride.parse::<u32>().map_err(|_| "names no stride")?;
            return Ok(Some(Self::Loads(heading, Some(stride.to_string()))));
        }
        Ok(Some(match title {
            "mappings" => Self::Times(title.into()),
            "File system latency" => Self::Files,
            _ if title.ends_with(" bandwidth") || title.contains(" bcopy ") => {
                Self::Bandwidths(title.into())
            }
            _ => Self::Others,
        }))
    }

    /// A title without a mark before it.
    fn headed(line: &str) -> Option<Self> {
        Some(match line {
            "Memory load latency" => Self::Loads("Memory load latency", None),
            "Random load latency" => Self::Loads("Random load latency", None),
            "Memory load parallelism" => Self::Others,
            _ if line.starts_with("Socket bandwidth using ") && !line.contains(": ") => {
                Self::Bandwidths(line.into())
            }
            _ if line.starts_with("Memory ") && line.ends_with(" bandwidth") => {
                Self::Bandwidths(line.into())
            }
            _ => return None,
        })
    }

    /// Name, unit and value of a row; without them if it states neither a time nor a bandwidth, and
    /// `None` if it is not a row of the table.
    #[expect(clippy::option_option, reason = "a row without a figure is not wrong")]
    pub(super) fn row(&self, line: &str) -> Option<Option<(String, FigureUnit, f64)>> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (size, rest) = words.split_first()?;
        if matches!(self, Self::Others) {
            return Some(None);
        }
        if matches!(self, Self::Files) {
            let is_row = size.strip_suffix('k').is_some_and(|kib| kib.parse::<u32>().is_ok());
            let are_numbers = rest.iter().all(|word| *word == "-1" || plain_number(word).is_some());
            return (is_row && are_numbers && rest.len() == 3).then_some(None);
        }
        let (value, behind) = rest.split_first()?;
        let value = plain_number(value)?;
        let unit = match self {
            Self::Bandwidths(_) if matches!(behind, [] | ["MB/sec"]) => {
                FigureUnit::MegabytesPerSecond
            }
            Self::Loads(..) if behind.is_empty() => FigureUnit::Other("ns".into()),
            Self::Switches(_) | Self::Times(_) if behind.is_empty() => FigureUnit::Microseconds,
            _ => return None,
        };
        let name = match self {
            Self::Switches(kib) => {
                let processes = size.parse::<u32>().ok()?;
                format!("ctx/{processes}p/{kib}k")
            }
            _ if plain_number(size).is_none() => return None,
            Self::Times(title) | Self::Bandwidths(title) => format!("{title}/{size}MB"),
            Self::Loads(heading, stride) => {
                format!("{heading}/stride={}/{size}MiB", stride.as_deref()?)
            }
            Self::Files | Self::Others => return None,
        };
        Some(Some((name, unit, value)))
    }
}

/// A number as lmbench prints it, which is never negative.
pub(super) fn plain_number(word: &str) -> Option<f64> {
    let is_plain = word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    word.parse::<f64>().ok().filter(|value| is_plain && *value <= LARGEST)
}
