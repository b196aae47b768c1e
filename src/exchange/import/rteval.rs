//! rteval's `summary.xml`: the histogram of each core, as cyclictest or timerlat measured it.
//!
//! ```text
//! <rteval version="3.9"><SystemInfo><uname><node>box</node><kernel is_RT="1">6.12</kernel>...
//!  <Measurements><Profile><cyclictest command_line="...">
//!   <core id="0" priority="95"><statistics><samples>300</samples>...</statistics>
//!    <histogram nbuckets="2"><bucket index="3" value="294"/>...</histogram></core>
//! ```
//!
//! `system` is the sum of the cores, and not read. With timerlat a core's histogram has latencies
//! of the interrupt, of the thread and of user space in one.

use quick_xml::{Reader, events::BytesStart, events::Event};

use super::{
    ImportOptions,
    imported_data::ImportedData,
    source::{ImportError, Source},
    stated::{Beyond, Stated},
};
use crate::limits::import::MOST_DEPTH;
use crate::{
    plain::cut,
    run::{ImportCaveat, facts::Preemption},
};

/// Whether it begins as such a file does.
pub(super) fn matches_format(head: &str) -> bool {
    head.contains("<rteval") && head.trim_start().starts_with('<')
}

/// What is read of a file.
struct Found {
    sheet: ImportedData,
    /// The names of the elements around, outermost first.
    around: Vec<String>,
    /// Date and time of its start, as it writes them.
    began: [String; 2],
    /// The names of the loads.
    loads: Vec<String>,
    /// The series of the core that is read, and the samples that it states.
    core: Option<usize>,
    stated: Option<u64>,
    /// The CPU, the smallest and the largest that it states, and its first and last bin with
    /// samples.
    cpu: u32,
    extremes: [Option<f64>; 2],
    filled: Option<(u64, u64)>,
    /// How many bins the program was told to have: latencies from there on are in none of them.
    limit: Option<u64>,
    /// With timerlat what is beyond the last bin may be in the largest.
    has_more: bool,
}

/// Reads it.
pub(super) fn read(
    source: &mut Source<'_>,
    _options: &ImportOptions,
) -> Result<ImportedData, ImportError> {
    let bytes = source.whole()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut reader = Reader::from_str(&text);
    let mut found = Found {
        sheet: ImportedData::new("rteval", Some("timer")),
        around: Vec::new(),
        began: Default::default(),
        loads: Vec::new(),
        core: None,
        stated: None,
        cpu: 0,
        extremes: [None; 2],
        filled: None,
        limit: None,
        has_more: false,
    };
    loop {
        let event = reader.read_event();
        let at = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
        let located = |what: String| {
            let before = text.as_bytes().get(..at.min(text.len())).unwrap_or_default();
            let line = before.iter().filter(|byte| **byte == b'\n').count();
            ImportError::at(u64::try_from(line).unwrap_or(0).saturating_add(1), what)
        };
        match event.map_err(|error| located(cut(&error.to_string(), 200)))? {
            Event::Start(element) => found.begin(&element, true).map_err(located)?,
            Event::Empty(element) => found.begin(&element, false).map_err(located)?,
            Event::Text(own) => found.text(&own),
            Event::End(_) => found.end().map_err(located)?,
            Event::Eof if found.around.is_empty() => break,
            Event::Eof => return Err(located("it ends within an element".into())),
            _ => {}
        }
    }
    Ok(found.finish())
}

/// The bins that cyclictest was told to have.
fn bins_of(command: &str) -> Option<u64> {
    let words: Vec<&str> = command.split_whitespace().collect();
    flag_of(&words, ["-h", "--histogram"]).and_then(|bins| bins.parse().ok())
}

/// The value of a flag with a number: `-h 3500`, `-h3500` or `--histogram=3500`.
fn flag_of<'a>(words: &[&'a str], [short, long]: [&str; 2]) -> Option<&'a str> {
    let is_number = |text: &&str| text.parse::<i64>().is_ok();
    words.iter().enumerate().find_map(|(at, word)| {
        let joined = word.strip_prefix(long).and_then(|rest| rest.strip_prefix('='));
        let joined = joined.or_else(|| word.strip_prefix(short)).filter(is_number);
        let next = || words.get(at + 1).copied().filter(|_| *word == short || *word == long);
        joined.or_else(next).filter(is_number)
    })
}

fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let own = element.attributes().flatten().find(|own| own.key.as_ref() == name)?;
    Some(own.value.into_owned())
}

impl Found {
    fn is_of_run(&self) -> bool {
        self.around.iter().rev().nth(1).is_some_and(|above| above == "run_info")
    }

    /// What the file says of the run as a whole.
    fn finish(self) -> ImportedData {
        let mut sheet = self.sheet;
        let began = self.began.join(" ");
        // Of which zone the file does not say.
        let began = began.parse::<jiff::civil::DateTime>().ok();
        let began = began.and_then(|time| time.to_zoned(jiff::tz::TimeZone::UTC).ok());
        sheet.started_at = began.map(|time| time.timestamp());
        let words: Vec<&str> = sheet.command.split_whitespace().collect();
        let number = |flags| flag_of(&words, flags).and_then(|value| value.parse::<i64>().ok());
        let interval_us = number(["-i", "--interval"]);
        let priority = number(["-p", "--priority"]);
        if let Some(us) = interval_us {
            sheet.parameter("interval_ns", us.saturating_mul(1_000));
        }
        if let Some(priority) = priority {
            sheet.parameter("priority", priority);
        }
        if !self.loads.is_empty() {
            sheet.parameter("loads", self.loads.join(", "));
        }
        sheet.caveats.push(ImportCaveat::LatenciesRounded { step_ns: 1_000, down: true });
        sheet
    }

    fn is_within(&self, name: &str) -> bool {
        self.around.last().is_some_and(|last| last == name)
    }

    fn begin(&mut self, element: &BytesStart<'_>, has_end: bool) -> Result<(), String> {
        let name = element.name().as_ref().to_owned();
        let of = |own: &str| attribute(element, own);
        match name.as_str() {
            "rteval" => self.sheet.version = cut(&of("version").unwrap_or_default(), 20),
            "cyclictest" | "timerlat" if self.is_within("Profile") => {
                self.sheet.command = cut(&of("command_line").unwrap_or_default(), 500);
                self.has_more = name == "timerlat";
                self.limit = bins_of(&self.sheet.command);
                if self.has_more {
                    let kinds = "latencies of interrupts, threads and user space";
                    self.sheet.caveats.push(ImportCaveat::KindsPooled { kinds });
                }
            }
            "run_info" => {
                let part = |name: &str| of(name).and_then(|text| text.parse::<u64>().ok());
                let parts = [("days", 86_400), ("hours", 3_600), ("minutes", 60), ("seconds", 1)];
                let seconds = parts.iter().try_fold(0_u64, |sum, (name, length)| {
                    sum.checked_add(part(name).unwrap_or(0).checked_mul(*length)?)
                });
                let ns = seconds.and_then(|seconds| seconds.checked_mul(1_000_000_000));
                self.sheet.duration_ns = ns.filter(|ns| *ns > 0);
            }
            "command_line" if self.around.iter().any(|above| above == "loads") => {
                let load = of("name").map(|name| cut(&name, 100));
                self.loads.extend(load.filter(|_| self.loads.len() < MOST_DEPTH));
            }
            "kernel" if of("is_RT").as_deref() == Some("1") => {
                let source = "is_RT of the file".into();
                self.sheet.facts.preemption = Preemption { model: "rt".into(), source };
            }
            "core" => {
                let id = of("id").and_then(|id| id.parse().ok());
                let cpu: u32 = id.ok_or("a core without a number as its id")?;
                self.core = Some(self.sheet.cpu(cpu).map_err(|error| error.what)?);
                (self.stated, self.cpu) = (None, cpu);
                (self.extremes, self.filled) = ([None; 2], None);
            }
            "bucket" => {
                let number = |own: &str| of(own).and_then(|text| text.parse::<u64>().ok());
                let bucket = number("index").zip(number("value"));
                let (index, value) = bucket.ok_or("a bucket has two numbers: index and value")?;
                let ns = i64::try_from(index).unwrap_or(i64::MAX).saturating_mul(1_000);
                if let Some(core) = self.core {
                    self.sheet.add(core, ns, value);
                    if value > 0 {
                        let (first, last) = self.filled.unwrap_or((index, index));
                        self.filled = Some((first.min(index), last.max(index)));
                    }
                }
            }
            _ => {}
        }
        if has_end {
            if self.around.len() == MOST_DEPTH {
                return Err(format!("more than {MOST_DEPTH} elements within each other"));
            }
            self.around.push(name);
        }
        Ok(())
    }

    fn text(&mut self, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        let facts = &mut self.sheet.facts;
        let is_uname = self.around.iter().rev().nth(1).is_some_and(|above| above == "uname");
        match self.around.last().map(String::as_str) {
            Some("node") if is_uname => facts.hostname = cut(text, 200),
            Some("kernel") if is_uname => facts.kernel = cut(text, 200),
            Some("arch") if is_uname => facts.architecture = cut(text, 40),
            Some("date") if self.is_of_run() => self.began[0] = cut(text, 40),
            Some("time") if self.is_of_run() => self.began[1] = cut(text, 40),
            Some("samples") if self.core.is_some() => self.stated = text.parse().ok(),
            Some("minimum") if self.core.is_some() => self.extremes[0] = text.parse().ok(),
            Some("maximum") if self.core.is_some() => self.extremes[1] = text.parse().ok(),
            _ => {}
        }
    }

    fn end(&mut self) -> Result<(), String> {
        if self.around.pop().as_deref() != Some("core") {
            return Ok(());
        }
        let core = self.core.take();
        if let (Some(core), Some(stated)) = (core, self.stated) {
            self.sheet.check_count(core, stated);
        }
        let Some((first, last)) = self.filled else { return Ok(()) };
        let is_beyond = |max: &f64| {
            *max > last as f64
                && (self.has_more || self.limit.is_some_and(|limit| *max >= limit as f64))
        };
        if let (Some(core), Some(max)) = (core, self.extremes[1].filter(is_beyond)) {
            // How many there are is not said: one, at least.
            let ns = |us: f64| (us * 1e3) as i64;
            let from = self.limit.map_or(last.saturating_add(1), |limit| limit.max(last));
            self.sheet.hidden(core, 1, ns(from as f64), ns(max));
        }
        let of = format!("core {}", self.cpu);
        let ([min, max], names) = (self.extremes, ["minimum", "mean", "maximum"]);
        let stated = Stated { of: &of, names, values: [min, None, max] };
        let is_beyond = max.is_some_and(|max| is_beyond(&max));
        let beyond = if is_beyond { Beyond::Maybe } else { Beyond::Nothing };
        stated.ordered()?;
        stated.fits((first as f64, last as f64), beyond)
    }
}

#[cfg(test)]
mod tests {
    use crate::exchange::import::tests::{caveats, series, text};

    /// In the form of rtevalReport.py and measurement/cyclictest.py.
    const SUMMARY: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<rteval version="3.9">
 <run_info days="0" hours="0" minutes="10" seconds="0"><date>2026-11-25</date></run_info>
 <SystemInfo><uname><node>box</node><kernel is_RT="1">6.12.1</kernel><arch>x86_64</arch></uname>
 </SystemInfo>
 <Measurements><Profile><cyclictest command_line="cyclictest -i100 -qmu -h 3500">
  <system description="(2 cores)"><histogram nbuckets="1"><bucket index="3" value="594"/>
  </histogram></system>
  <core id="0" priority="95"><statistics><samples>300</samples><minimum unit="us">3</minimum>
   </statistics><histogram nbuckets="2"><bucket index="3" value="294"/><bucket index="9" value="6"/>
   </histogram></core>
  <core id="1" priority="95"><statistics><samples>301</samples></statistics>
   <histogram nbuckets="1"><bucket index="4" value="300"/></histogram></core>
 </cyclictest></Profile></Measurements>
</rteval>"#;

    #[test]
    fn each_core_has_its_histogram_and_the_sum_of_them_is_no_core() {
        let sheet = text(SUMMARY).unwrap();
        assert_eq!(series(&sheet), [("cpu0", 300, 3_000, 9_000), ("cpu1", 300, 4_000, 4_000)]);
        assert_eq!((sheet.facts.hostname.as_str(), sheet.version.as_str()), ("box", "3.9"));
        assert_eq!(sheet.facts.preemption.model, "rt");
        assert!(caveats(&sheet).contains("states 301 samples of cpu1, and has 300"));
        assert_eq!(sheet.duration_ns, Some(600_000_000_000));
        assert_eq!(sheet.parameters["interval_ns"], 100_000);
        let whole = SUMMARY.replace("</date>", "</date><time>17:34:17</time>").replace(
            "<Measurements>",
            "<loads><command_line name=\"kcompile\" run=\"1\"/></loads><Measurements>",
        );
        let whole = text(&whole).unwrap();
        assert_eq!(whole.started_at.unwrap().to_string(), "2026-11-25T17:34:17Z");
        assert_eq!(whole.parameters["loads"], "kcompile");
        let timerlat = SUMMARY.replace("<cyclictest ", "<timerlat ");
        let timerlat = timerlat.replace("</cyclictest", "</timerlat");
        assert!(caveats(&text(&timerlat).unwrap()).contains("kinds_pooled"));
    }

    #[test]
    fn damage_is_named_by_its_line() {
        let cut = &SUMMARY[..SUMMARY.find("</rteval>").unwrap()];
        let error = text(cut).unwrap_err().to_string();
        assert!(error.contains("within an element"), "{error}");
        let odd = SUMMARY.replace("value=\"294\"", "value=\"x\"");
        assert!(text(&odd).unwrap_err().to_string().starts_with("line 10: a bucket has"));
        let crossed = SUMMARY.replace("</Profile></Measurements>", "</Measurements></Profile>");
        assert_eq!(text(&crossed).unwrap_err().line, Some(14));
    }

    #[test]
    fn statistics_that_the_histogram_contradicts_are_refused_by_line_and_core() {
        let with = |max: &str| {
            SUMMARY
                .replace("</minimum>", &format!("</minimum><maximum unit=\"us\">{max}</maximum>"))
        };
        assert_eq!(series(&text(&with("9")).unwrap())[0].3, 9_000);
        let above = text(&with("12")).unwrap_err().to_string();
        assert!(
            above.starts_with("line 11: core 0: maximum 12 is above the largest bin"),
            "{above}"
        );
        let below = text(&with("8")).unwrap_err().to_string();
        assert!(
            below.starts_with("line 11: core 0: maximum 8 is below the largest bin"),
            "{below}"
        );
        let order = text(&with("2")).unwrap_err().to_string();
        assert!(order.starts_with("line 11: core 0: minimum 3 is above maximum 2"), "{order}");
    }
}
