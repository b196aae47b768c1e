//! Results of lmbench 2 and 3: the file that `make results` writes, or the output of its programs.
//!
//! ```text
//! [lmbench3.0 results for Linux vm 6.12.0 #1 SMP x86_64 GNU/Linux]
//! Simple syscall: 0.0411 microseconds
//! Pipe bandwidth: 5023.11 MB/sec
//!
//! "size=0k ovr=0.40
//! 2 1.23
//! ```
//!
//! A line of a name states one number, and a line in a table another one beside what it was
//! measured with: neither has a distribution, so that all of them are figures. lmbench makes each
//! number of several repetitions, which the file does not have. Times are as `micro()` and `nano()`
//! of lmbench print them, bandwidths in units of 1,000,000 bytes as `mb()` does.

use super::{
    ImportOptions,
    imported_data::ImportedData,
    lmbench_table::{LmbenchTable, plain_number},
    source::{ImportError, Source},
};
use crate::{
    plain::cut,
    run::{FigureHead, FigureUnit, ImportCaveat},
};

/// How names begin by which the output of a single program is recognised.
const NAMES: [&str; 19] = [
    "Simple ",
    "Signal handler ",
    "Protection fault",
    "Pipe latency",
    "Fifo latency",
    "AF_UNIX sock stream ",
    "Process fork+",
    "Procedure call",
    "Select on ",
    "Pagefaults on ",
    "TCP latency using ",
    "UDP latency using ",
    "RPC/tcp latency using ",
    "RPC/udp latency using ",
    "TCP/IP connection cost to ",
    "UNIX connection cost",
    "Fcntl lock latency",
    "Semaphore latency",
    "Pipe bandwidth",
];

/// Whether it begins as such a file does.
pub(super) fn matches_format(head: &str) -> bool {
    head.lines().any(|line| {
        let is_named = || NAMES.iter().any(|name| line.starts_with(name));
        (line.starts_with("[lmbench") && line.contains(" results for "))
            || (line.starts_with("\"size=") && line.contains("k ovr="))
            || (is_named() && stated(line.trim_end()).is_some_and(|(_, found)| found.is_some()))
    })
}

/// Reads it.
pub(super) fn read(
    source: &mut Source<'_>,
    _options: &ImportOptions,
) -> Result<ImportedData, ImportError> {
    let mut reader =
        Reader { sheet: ImportedData::new("lmbench", None), table: None, left: [0; 3] };
    while let Some((number, line)) = source.text()? {
        let read = match line.trim_end() {
            line if !source.is_whole() && !line.is_empty() => Err("has no end of line".into()),
            line if line.chars().any(is_strange) => Err("is not text of lmbench".into()),
            line => reader.line(line),
        };
        read.map_err(|what| {
            ImportError::at(number, format!("\"{}\" {what}", cut(line.trim(), 80)))
        })?;
    }
    reader.finished()
}

/// What neither lmbench nor a program that it starts prints.
fn is_strange(c: char) -> bool {
    c == char::REPLACEMENT_CHARACTER || (c.is_control() && c != '\t')
}

/// Why a line is left out.
#[derive(Debug, Clone, Copy)]
enum Left {
    Nothing,
    OtherThing,
    Message,
}

impl Left {
    const ALL: [(Self, &'static str); 3] = [
        (Self::Nothing, "states 0 or -1: lmbench could not measure it"),
        (Self::OtherThing, "states neither one time nor one bandwidth"),
        (Self::Message, "is a message and no result"),
    ];
}

struct Reader {
    sheet: ImportedData,
    table: Option<LmbenchTable>,
    /// Lines that are left out, by [`Left`].
    left: [u64; 3],
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        if line.is_empty() {
            self.table = None;
            return Ok(());
        }
        if let Some(fact) = line.strip_prefix('[') {
            self.table = None;
            return self.fact(fact.trim_end_matches(']'));
        }
        if let Some(table) = LmbenchTable::titled(line, self.table.as_ref())? {
            self.table = Some(table);
            return Ok(());
        }
        if is_other_thing(line) {
            return self.leave_out(Left::OtherThing);
        }
        if line.starts_with(|first: char| first.is_ascii_digit())
            && let Some(table) = &self.table
        {
            let row = table.row(line).ok_or("is not a row of this table")?;
            return match row {
                Some((name, unit, value)) => self.figure(&name, unit, value),
                None => self.leave_out(Left::OtherThing),
            };
        }
        match stated(line) {
            Some((_, None)) => {
                Err("is not a number that lmbench prints, or has no unit of it".into())
            }
            Some((name, Some((unit, value)))) => {
                self.table = None;
                self.figure(name, unit, value)
            }
            None if line.ends_with(": -1") => self.leave_out(Left::Nothing),
            None if is_row(line) => Err("is a row of no table".into()),
            None => self.leave_out(Left::Message),
        }
    }

    fn leave_out(&mut self, why: Left) -> Result<(), String> {
        if let Some(lines) = self.left.get_mut(why as usize) {
            *lines += 1;
        }
        Ok(())
    }

    fn figure(&mut self, name: &str, unit: FigureUnit, value: f64) -> Result<(), String> {
        if value == 0.0 {
            return self.leave_out(Left::Nothing);
        }
        let name = cut(name.trim(), 200).replace(' ', "_");
        let mut known = self.sheet.figures.iter();
        if known.any(|(own, _)| own.name == name && own.unit != unit) {
            return Err("has another unit than the same figure before".into());
        }
        self.sheet.figure(FigureHead { name, unit }, value).map_err(|error| error.what)
    }

    /// `HOSTNAME: vm`. Files of two runs may stand one behind the other, if both are of the same
    /// machine and kernel.
    fn fact(&mut self, text: &str) -> Result<(), String> {
        let (name, value) = text.split_once(": ").unwrap_or((text, ""));
        let (facts, value) = (&mut self.sheet.facts, cut(value.trim(), 200));
        let fact = match name {
            "HOSTNAME" | "NODENAME" => &mut facts.hostname,
            "RELEASE" => &mut facts.kernel,
            "VERSION" => &mut facts.kernel_version,
            "MACHINE" => &mut facts.architecture,
            "SYNC_MAX" => {
                // How many copies of each program run at once, each of which is slowed down.
                let before = self.sheet.parameters.get("parallel").cloned();
                if before.is_some_and(|before| before != value.as_str()) {
                    return Err("differs from the run before: import them one by one".into());
                }
                self.sheet.parameter("parallel", value);
                return Ok(());
            }
            _ => return Ok(()),
        };
        if !fact.is_empty() && *fact != value && name != "NODENAME" {
            return Err("differs from the run before: import them one by one".into());
        }
        if fact.is_empty() {
            *fact = value;
        }
        Ok(())
    }

    fn finished(mut self) -> Result<ImportedData, ImportError> {
        if self.sheet.figures.is_empty() {
            return Err(ImportError::new("it has no result of lmbench"));
        }
        for ((_, why), rows) in Left::ALL.into_iter().zip(self.left) {
            if rows > 0 {
                self.sheet.caveats.push(ImportCaveat::RowsLeftOut { rows, why });
            }
        }
        let figures = self.sheet.figures.len() as u64;
        self.sheet.caveats.push(ImportCaveat::OneNumberEach { figures });
        Ok(self.sheet)
    }
}

/// `tlb: 32 pages 3.2 nanoseconds`, `integer bit parallelism: 4.1`, `2400 MHz, 0.4167 nanosec
/// clock`, `Avg xfer: 3.2KB, 41.8KB in 22.2000 millisecs, 1.88 MB/sec`.
fn is_other_thing(line: &str) -> bool {
    let several = line.contains(" in ") && line.contains(", ") && line.ends_with("/sec");
    line.starts_with("tlb: ") || line.contains("parallelism") || line.contains(" MHz, ") || several
}

/// The name of a line and what it states; without it if that is not a number with a unit, and
/// nothing where it states none.
fn stated(line: &str) -> Option<(&str, Option<(FigureUnit, f64)>)> {
    let (name, rest) = line.rsplit_once(": ")?;
    let mut words = rest.split_whitespace();
    let (value, unit) = (words.next()?, words.next());
    let is_signed = value.starts_with(['-', '+', '.']) || value.starts_with(char::is_numeric);
    let has_unit = unit.is_some_and(|unit| scale(unit).is_some());
    if (unit.is_none() && rest == "-1") || !(is_signed || has_unit) {
        return None;
    }
    let found = (words.next().is_none()).then(|| amount(value, unit?)).flatten();
    Some((name, found))
}

/// In which unit a figure is that lmbench states in this one, and how much larger that is.
fn scale(unit: &str) -> Option<(FigureUnit, f64)> {
    Some(match unit {
        "microseconds" => (FigureUnit::Microseconds, 1.0),
        "milliseconds" => (FigureUnit::Microseconds, 1e3),
        // As us, their digits would not be shown.
        "nanoseconds" => (FigureUnit::Other("ns".into()), 1.0),
        "MB/sec" => (FigureUnit::MegabytesPerSecond, 1.0),
        "KB/sec" => (FigureUnit::MegabytesPerSecond, 1e-3),
        _ => return None,
    })
}

fn amount(value: &str, unit: &str) -> Option<(FigureUnit, f64)> {
    let (unit, times) = scale(unit)?;
    Some((unit, plain_number(value)? * times))
}

fn is_row(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let are_numbers = words.by_ref().take(2).filter(|word| plain_number(word).is_some()).count();
    are_numbers == 2
}

#[cfg(test)]
mod tests {
    use crate::exchange::import::{
        ImportedData,
        tests::{caveats, text},
    };

    /// In the form of lmbench 3.0-a9, with what its programs say besides.
    const RESULTS: &str = "[lmbench3.0 results for Linux vm 6.12.0 #1 SMP x86_64 GNU/Linux]\n\
        [SYNC_MAX: 1]\n[HOSTNAME: vm]\n[RELEASE: 6.12.0]\n[mount: proc on /proc]\n\
        Simple syscall: 0.0411 microseconds\nSimple read: -1\nSelect on 10 fd's: 0.5 microseconds\n\
        integer add: 0.00 nanoseconds\ninteger mul: 0.21 nanoseconds\n\
        integer bit parallelism: 4.10\nfree(): invalid pointer\n\
        File /tmp/f write bandwidth: 92367 KB/sec\n\n\"mappings\n1.048576 317\n\n\
        \"File system latency\n0k\t18\t178\t8307\n\nSocket bandwidth using localhost\n\
        0.000064 48.20 MB/sec\n\nAvg xfer: 3.2KB, 41.8KB in 22.2000 millisecs, 1.88 MB/sec\n\
        \"libc bcopy unaligned\n0.000512 20541.42\n\n\"size=0k ovr=0.40\n2 1.23\n96 3.10\n\n\
        \"size=16k ovr=0.91\n2 1.50\n\ntlb: 32 pages 3.25000 nanoseconds\n\n\
        Memory load latency\n\"stride=128\n0.00098 1.234\n\n";

    fn figures(sheet: &ImportedData) -> Vec<(&str, &str, f64)> {
        let figures = sheet.figures.iter();
        figures.map(|(own, values)| (&*own.name, own.unit.as_str(), values[0])).collect()
    }

    #[test]
    fn each_line_and_each_row_is_a_figure_in_its_unit() {
        let sheet = text(RESULTS).unwrap();
        let expected = [
            ("Simple_syscall", "us", 0.0411),
            ("Select_on_10_fd's", "us", 0.5),
            ("integer_mul", "ns", 0.21),
            ("File_/tmp/f_write_bandwidth", "MB/s", 92.367),
            ("mappings/1.048576MB", "us", 317.0),
            ("Socket_bandwidth_using_localhost/0.000064MB", "MB/s", 48.2),
            ("libc_bcopy_unaligned/0.000512MB", "MB/s", 20_541.42),
            ("ctx/2p/0k", "us", 1.23),
            ("ctx/96p/0k", "us", 3.1),
            ("ctx/2p/16k", "us", 1.5),
            ("Memory_load_latency/stride=128/0.00098MiB", "ns", 1.234),
        ];
        assert_eq!(figures(&sheet), expected);
        assert_eq!((&*sheet.facts.hostname, &*sheet.facts.kernel), ("vm", "6.12.0"));
        assert!(sheet.series.is_empty());
        let said = caveats(&sheet);
        for text in [
            "rows_left_out: 2 rows of the file are left out, as each states 0 or -1",
            "rows_left_out: 4 rows of the file are left out, as each states neither",
            "rows_left_out: 1 row of the file is left out, as it is a message",
            "one_number_each: Each of 11 figures is one number",
        ] {
            assert!(said.contains(text), "{text}: {said}");
        }
        assert_eq!(
            said.lines().filter_map(|line| line.split(':').next()).next_back(),
            Some("one_number_each")
        );
        assert_eq!(figures(&text(&RESULTS.replace('\n', "\r\n")).unwrap()), expected);
    }

    #[test]
    fn results_one_behind_the_other_are_repeats_of_one_machine() {
        let sheet = text(&RESULTS.repeat(2)).unwrap();
        assert!(sheet.figures.iter().all(|(_, values)| values.len() == 2));
        for (from, to) in [("[HOSTNAME: vm]", "[HOSTNAME: b]"), ("[SYNC_MAX: 1]", "[SYNC_MAX: 2]")]
        {
            let error = text(&format!("{RESULTS}{}", RESULTS.replace(from, to))).unwrap_err();
            assert!(error.what.contains("import them one by one"), "{error}");
        }
    }

    #[test]
    fn the_output_of_one_program_is_enough() {
        for (file, name) in [
            ("Pipe latency: 5.2 microseconds\n", "Pipe_latency"),
            ("TCP latency using 10.0.0.2: 25.1 microseconds\n", "TCP_latency_using_10.0.0.2"),
            ("\n\"size=0k ovr=0.40\n2 1.23\n", "ctx/2p/0k"),
        ] {
            assert_eq!(figures(&text(file).unwrap())[0].0, name);
        }
    }

    #[test]
    fn what_is_damaged_is_refused_with_its_line() {
        for (from, to, line) in [
            ("0.0411 micro", "-0.0411 micro", 6),
            ("0.0411 micro", "0,0411 micro", 6),
            ("0.0411 micro", "1e3 micro", 6),
            ("0.0411 micro", "99999999999999999999 micro", 6),
            ("0.0411 microseconds", "0.0411", 6),
            ("0.0411 microseconds", "0.0411 jiffies", 6),
            ("integer mul: 0.21 nano", "Simple syscall: 0.21 nano", 10),
            ("free(): ", "free()\u{0}: ", 12),
            ("1.048576 317", "1.048576 317 2", 16),
            ("0k\t18\t178", "0k\t18\tx", 19),
            ("48.20 MB/sec", "48.20 KB/sec", 22),
            ("size=0k", "size=?k", 28),
            ("2 1.23", "2.5 1.23", 29),
            ("2 1.23", "2 -1.23", 29),
            ("96 3.10", "96", 30),
            ("Memory load latency\n", "", 37),
            ("\"size=16k ovr=0.91\n", "", 32),
            ("1.234\n\n", "1.2", 39),
        ] {
            assert!(RESULTS.contains(from), "{from:?}");
            let error = text(&RESULTS.replacen(from, to, 1)).unwrap_err();
            assert_eq!(error.line, Some(line), "{from:?} {to:?}: {error}");
        }
        let head = &RESULTS[..RESULTS.find("Simple").unwrap()];
        assert!(text(head).unwrap_err().what.contains("no result of lmbench"));
    }
}
