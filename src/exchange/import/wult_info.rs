//! The `info.yml` of a result of wult or ndl: of its YAML the plain lines `key: value` alone.

use super::source::ImportError;
pub(crate) use crate::limits::import::MOST_INFO;
use crate::plain::cut;

/// Keys that are read. The others may be of any form.
const KEYS: [&str; 11] = [
    "cpu",
    "cpunum",
    "date",
    "devdescr",
    "devid",
    "duration",
    "format_version",
    "reportid",
    "resolution",
    "toolname",
    "toolver",
];

/// Keys that are kept as parameters of the run.
const KEPT: [&str; 6] = ["date", "devdescr", "devid", "duration", "reportid", "resolution"];

/// What it says of the result.
#[derive(Debug)]
pub(super) struct WultInfo {
    /// `wult` or `ndl`.
    pub(super) tool: &'static str,
    pub(super) version: String,
    /// The measured CPU; ndl may have none.
    pub(super) cpu: Option<u32>,
    /// By how many digits behind the point latencies are ns: 3 where they are in us.
    pub(super) digits_of_ns: usize,
    pub(super) parameters: Vec<(&'static str, String)>,
}

/// A line of it.
struct Line {
    number: u64,
    key: &'static str,
    value: String,
}

impl WultInfo {
    /// # Errors
    /// What is wrong in which line, beginning with `info.yml`.
    pub(super) fn of(text: &str) -> Result<Self, ImportError> {
        let lines = lines(text)?;
        let find = |keys: &[&str]| lines.iter().find(|line| keys.contains(&line.key));
        let needed =
            |key: &str| find(&[key]).ok_or_else(|| refused(None, format!("it has no {key}")));
        let tool = needed("toolname")?;
        let format = needed("format_version")?;
        let kept = KEPT.into_iter().filter_map(|key| Some((key, find(&[key])?.value.clone())));
        Ok(Self {
            tool: match &*tool.value {
                "wult" => "wult",
                "ndl" => "ndl",
                other => {
                    let what = format!("toolname \"{}\" is neither wult nor ndl", cut(other, 40));
                    return Err(refused(Some(tool.number), what));
                }
            },
            version: find(&["toolver"]).map(|line| cut(&line.value, 40)).unwrap_or_default(),
            cpu: find(&["cpu", "cpunum"]).map(cpu).transpose()?,
            digits_of_ns: match &*format.value {
                "1.0" => 0,
                "1.1" | "1.2" | "1.3" => 3,
                other => {
                    let what = format!(
                        "format_version \"{}\" is not known, but 1.0 to 1.3: in which unit its \
                         latencies are cannot be told",
                        cut(other, 40)
                    );
                    return Err(refused(Some(format.number), what));
                }
            },
            parameters: kept.collect(),
        })
    }
}

fn cpu(line: &Line) -> Result<u32, ImportError> {
    line.value.parse().map_err(|_| {
        refused(Some(line.number), format!("cpu \"{}\" is not a CPU", cut(&line.value, 40)))
    })
}

fn refused(line: Option<u64>, what: impl AsRef<str>) -> ImportError {
    let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
    ImportError::new(format!("info.yml: {line}{}", what.as_ref()))
}

/// The lines of keys that are read.
fn lines(text: &str) -> Result<Vec<Line>, ImportError> {
    let mut lines: Vec<Line> = Vec::new();
    // Whether lines that are indented continue with the last value.
    let mut goes_on = false;
    for (number, line) in (1_u64..).zip(text.split_inclusive('\n')) {
        let refused = |what: String| refused(Some(number), what);
        if !line.ends_with('\n') {
            return Err(refused("its last line has no end".into()));
        }
        let line = line.trim_end();
        if line.is_empty() || line.starts_with('#') || line == "---" {
            continue;
        }
        if line.starts_with([' ', '\t', '-']) {
            if let Some(last) = lines.last_mut().filter(|_| goes_on) {
                last.value = format!("{} {}", last.value, cut(line.trim(), 200));
            }
            continue;
        }
        let entry =
            line.split_once(':').filter(|(_, value)| value.is_empty() || value.starts_with(' '));
        let (key, value) = entry
            .ok_or_else(|| refused(format!("\"{}\" is not a line key: value", cut(line, 80))))?;
        let Some(key) = KEYS.into_iter().find(|known| *known == key) else {
            goes_on = false;
            continue;
        };
        if lines.iter().any(|line| line.key == key) {
            return Err(refused(format!("\"{key}\" is there twice")));
        }
        let value = plain_value(value.trim())
            .ok_or_else(|| refused(format!("\"{}\" is not a plain value", cut(line, 80))))?;
        goes_on = !value.is_empty();
        lines.push(Line { number, key, value });
    }
    Ok(lines)
}

/// A value without marks around it; nothing where it is a list, a map, an anchor or the like.
fn plain_value(value: &str) -> Option<String> {
    for mark in ['\'', '"'] {
        if let Some(rest) = value.strip_prefix(mark) {
            let inner = rest.strip_suffix(mark)?;
            return (!inner.contains([mark, '\\'])).then(|| cut(inner, 200));
        }
    }
    let is_plain = !value.starts_with(|c| "[]{}&*!|>%@`#,?".contains(c)) && !value.contains(" #");
    is_plain.then(|| cut(value, 200))
}
