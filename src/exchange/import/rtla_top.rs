//! The tables of `rtla timerlat top`, `rtla osnoise top` and `rtla hwnoise`: a row for each CPU.
//!
//! ```text
//!                                      Timer Latency
//!   0 00:01:00   |          IRQ Timer Latency (us)        |         Thread Timer Latency (us)
//! CPU COUNT      |      cur       min       avg       max |      cur       min       avg       max
//!   0 #60003     |        1         1         6        41 |       11         7        18       367
//! ```
//!
//! ```text
//! duration:   0 00:01:00 | time is in us
//! CPU Period       Runtime        Noise  % CPU Aval   Max Noise   Max Single          HW  ...
//!   0 #58         52200000         1031    99.99802          91           60           0  ...
//! ```
//!
//! The table of `rtla hwnoise` ends with the column `NMI`.
//!
//! Of latencies there are smallest, mean and largest alone. The noise of a CPU is a sum, so that it
//! becomes figures. rtla draws the table again and again: the last one counts, with what its
//! auto-analysis says behind it.

use super::{
    ImportOptions,
    imported_data::{ImportedData, LatencyUnit},
    rtla::duration_ns,
    rtla_analysis::{Analyses, Table, unfinished_by_counts},
    source::{ImportError, Source, without_escapes},
};
use crate::{
    plain::cut,
    run::{FigureHead, FigureUnit, ImportCaveat},
};

/// What the columns behind the period of a row of osnoise are.
const NOISE: [(&str, FigureUnit); 9] = [
    ("noise", FigureUnit::Microseconds),
    ("available", FigureUnit::Percent),
    ("max_noise", FigureUnit::Microseconds),
    ("max_single", FigureUnit::Microseconds),
    ("hw", FigureUnit::Count),
    ("nmi", FigureUnit::Count),
    ("irq", FigureUnit::Count),
    ("softirq", FigureUnit::Count),
    ("thread", FigureUnit::Count),
];

/// Their headings behind `Max Single`. Of hardware noise there are the first two.
const INTERFERENCES: [&str; 5] = ["HW", "NMI", "IRQ", "Softirq", "Thread"];

/// Whether it begins as such a file does.
pub(super) fn matches_format(head: &str) -> bool {
    let is_heading = |line: &str| Heading::of(&without_escapes(line)).is_some();
    head.lines().any(is_heading)
}

/// Which table the rows are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heading {
    /// With this number of kinds of latency: interrupt, thread, return to user space.
    Timerlat(usize),
    /// With this number of columns behind the period and the runtime.
    Osnoise(usize),
}

impl Heading {
    fn of(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.get(..2)? {
            ["CPU", "COUNT"] => {
                let kinds = line.split('|').skip(1).collect::<Vec<&str>>();
                let names = ["cur", "min", "avg", "max"];
                let is_kind = |kind: &&str| kind.split_whitespace().eq(names);
                (matches!(kinds.len(), 2 | 3) && kinds.iter().all(is_kind))
                    .then_some(Self::Timerlat(kinds.len()))
            }
            ["CPU", "Period"] => {
                let interferences = line.split_once("Max Single")?.1.split_whitespace();
                let columns = NOISE.len() - INTERFERENCES.len() + interferences.clone().count();
                let are_known = interferences.zip(INTERFERENCES).all(|(own, known)| own == known);
                (are_known && columns <= NOISE.len()).then_some(Self::Osnoise(columns))
            }
            _ => None,
        }
    }
}

/// A row, once it is known to be of the last table.
#[derive(Debug)]
enum TopRow {
    /// Samples, then smallest, mean and largest of each kind; nothing where one has none.
    Latencies(u32, u64, Vec<Option<[i64; 3]>>),
    /// A dash in the file is `None`.
    Noise(u32, Vec<Option<f64>>),
}

/// Reads it.
pub(super) fn read(
    source: &mut Source<'_>,
    _options: &ImportOptions,
) -> Result<ImportedData, ImportError> {
    let mut heading = None;
    let (mut rows, mut unit, mut lasted_ns) = (Vec::new(), LatencyUnit::Microseconds, None);
    let (mut analyses, mut is_hardware) = (Analyses::default(), false);
    while let Some((number, line)) = source.text()? {
        if analyses.take(number, &line)? {
            continue;
        }
        let line = without_escapes(&line);
        is_hardware |= line.trim() == "Hardware-related Noise";
        if let Some(found) = Heading::of(&line) {
            heading = Some(found);
            rows.clear();
            continue;
        }
        if line.contains("Timer Latency (") || line.contains("| time is in") {
            let text = line.split('|').next().unwrap_or_default();
            lasted_ns = duration_ns(text.trim().trim_start_matches("duration:")).or(lasted_ns);
            if line.contains("(ns)") {
                unit = LatencyUnit::Nanoseconds;
            }
        }
        let Some(kind) = heading else { continue };
        let begin: Vec<&str> = line.split_whitespace().take(2).collect();
        let is_row = matches!(begin[..], [cpu, count]
            if cpu.bytes().all(|byte| byte.is_ascii_digit()) && count.starts_with('#'));
        if !is_row {
            continue;
        }
        let row = row(&line, kind, unit).filter(|_| source.is_whole()).ok_or_else(|| {
            let line = cut(line.trim(), 80);
            ImportError::at(number, format!("\"{line}\" is not a row of rtla top"))
        })?;
        rows.push(row);
    }
    let Some(heading) = heading else {
        return Err(ImportError::new("it has no heading (CPU COUNT | cur min avg max ...)"));
    };
    let mut sheet = match heading {
        Heading::Timerlat(_) => ImportedData::new("rtla timerlat", Some("timer")),
        Heading::Osnoise(_) if is_hardware => ImportedData::new("rtla hwnoise", None),
        Heading::Osnoise(_) => ImportedData::new("rtla osnoise", None),
    };
    sheet.duration_ns = lasted_ns;
    for row in rows {
        add(row, &mut sheet)?;
    }
    analyses.add_to(&mut sheet, Table::OfThreads(unit))?;
    unfinished_by_counts(&mut sheet)?;
    if matches!(heading, Heading::Timerlat(_)) {
        let caveat = ImportCaveat::LatenciesRounded { step_ns: unit.ns(), down: true };
        sheet.caveats.push(caveat);
    }
    Ok(sheet)
}

fn row(line: &str, heading: Heading, unit: LatencyUnit) -> Option<TopRow> {
    let mut words = line.split_whitespace();
    let cpu: u32 = words.next()?.parse().ok()?;
    let count: u64 = words.next()?.strip_prefix('#')?.parse().ok()?;
    match heading {
        Heading::Osnoise(columns) => {
            let one = |word: &str| match word {
                "-" => Some(None),
                _ => word.parse().ok().filter(|own: &f64| own.is_finite() && *own >= 0.0).map(Some),
            };
            let values: Option<Vec<Option<f64>>> = words.skip(1).map(one).collect();
            values.filter(|own| own.len() == columns).map(|own| TopRow::Noise(cpu, own))
        }
        Heading::Timerlat(kinds) => {
            let columns: Vec<&str> = line.split('|').skip(1).collect();
            let all: Option<Vec<_>> = columns.iter().map(|kind| latencies(kind, unit)).collect();
            let all = all.filter(|all| all.len() == kinds)?;
            Some(TopRow::Latencies(cpu, count, all))
        }
    }
}

/// `cur min avg max`, which are dashes where nothing was measured.
fn latencies(kind: &str, unit: LatencyUnit) -> Option<Option<[i64; 3]>> {
    let words: Vec<&str> = kind.split_whitespace().collect();
    let [_, min, mean, max] = words[..] else { return None };
    if [min, mean, max].contains(&"-") {
        return Some(None);
    }
    let ns = |word: &str| {
        let value = word.parse::<i64>().ok().filter(|value| *value >= 0)?;
        value.checked_mul(unit.ns())
    };
    let values = [ns(min)?, ns(mean)?, ns(max)?];
    (values[0] <= values[1] && values[1] <= values[2]).then_some(Some(values))
}

fn add(row: TopRow, sheet: &mut ImportedData) -> Result<(), ImportError> {
    match row {
        TopRow::Noise(cpu, values) => {
            for ((name, unit), value) in NOISE.into_iter().zip(values) {
                let Some(value) = value else { continue };
                sheet.figure(FigureHead { name: format!("cpu{cpu}/{name}"), unit }, value)?;
            }
        }
        TopRow::Latencies(cpu, count, kinds) => {
            let whole = kinds.len().saturating_sub(1);
            for (at, values) in kinds.into_iter().enumerate() {
                // The last kind is the whole latency, and those before it are parts.
                let name = match at {
                    _ if at == whole => format!("cpu{cpu}"),
                    0 => format!("cpu{cpu}/irq"),
                    _ => format!("cpu{cpu}/thread"),
                };
                let Some(values) = values else { continue };
                let number = sheet.series(&name, Some(cpu))?;
                sheet.summary(number, count, values);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::exchange::import::tests::{caveats, series, text};

    /// In the form of the kernel's rtla-timerlat-top.rst.
    const TIMERLAT: &str = "                                     Timer Latency\n\
        \x20 0 00:01:00   |          IRQ Timer Latency (us)        |         Thread Timer \
        Latency (us)\n\
        CPU COUNT      |      cur       min       avg       max |      cur       min       avg   \
        \x20   max\n\
        \x20 0 #60003     |        1         1         6        41 |       11         7        18 \
        \x20     367\n\
        \x20 3 #60002     |        1         0         5        17 |       11         6        16 \
        \x20      42\n\
        ---------------|----------------------------------------|-----------------------\n\
        ALL #120005 e0 |                  0         5        41 |                  6        17 \
        \x20     367\n";

    const OSNOISE: &str = "                         Operating System Noise\n\
        duration:   0 00:01:00 | time is in us\n\
        CPU Period       Runtime        Noise  % CPU Aval   Max Noise   Max Single          HW   \
        \x20      NMI          IRQ      Softirq       Thread\n\
        \x20 2 #58         52200000         1031    99.99802          91           60           0 \
        \x20          3        52285            4          101\n";

    #[test]
    fn latencies_of_each_cpu_are_a_summary_and_the_last_table_counts() {
        let twice = format!("{}{TIMERLAT}", TIMERLAT.replace("#6000", "#100"));
        let sheet = text(&twice).unwrap();
        let expected = [
            ("cpu0/irq", 60_003, 1_000, 41_000),
            ("cpu0", 60_003, 7_000, 367_000),
            ("cpu3/irq", 60_002, 0, 17_000),
            ("cpu3", 60_002, 6_000, 42_000),
        ];
        assert_eq!(series(&sheet), expected);
        assert_eq!(sheet.series[1].totals.sum_ns, 18_000 * 60_003);
        assert_eq!((sheet.duration_ns, sheet.same_as), (Some(60_000_000_000), Some("timer")));
        let said = caveats(&sheet);
        assert!(said.contains("no_distribution") && said.contains("latencies_rounded"), "{said}");
    }

    #[test]
    fn with_user_space_that_is_the_whole_and_colours_are_no_text() {
        let user = TIMERLAT.replace("CPU COUNT", "\u{1b}[2;30;47mCPU COUNT");
        let lines = user.lines().map(|line| match line {
            _ if line.contains("cur") => format!("{line} |  cur min avg max\u{1b}[0;0;0m\n"),
            _ if line.contains("0 #") => format!("{line} |    14        10        22       372\n"),
            _ if line.contains("3 #") => format!("{line} |     -         -         -         -\n"),
            _ => format!("{line}\n"),
        });
        let sheet = text(&lines.collect::<String>()).unwrap();
        let names: Vec<_> = series(&sheet).into_iter().map(|own| (own.0, own.3)).collect();
        let expected = [("cpu0/irq", 41_000), ("cpu0/thread", 367_000), ("cpu0", 372_000)];
        assert_eq!(names[..3], expected);
        // It never came back to user space: it took that long, at least.
        let parts = [("cpu3/irq", 17_000), ("cpu3/thread", 42_000), ("cpu3", 42_000)];
        assert_eq!(names[3..], parts);
    }

    #[test]
    fn the_noise_of_each_cpu_is_figures() {
        let sheet = text(OSNOISE).unwrap();
        let figures: Vec<_> = sheet
            .figures
            .iter()
            .map(|(own, values)| (own.name.as_str(), own.unit.as_str(), values[0]))
            .collect();
        let first = [("cpu2/noise", "us", 1031.0), ("cpu2/available", "percent", 99.998_02)];
        assert_eq!((figures.len(), &figures[..2]), (9, &first[..]));
        assert_eq!(figures[8], ("cpu2/thread", "count", 101.0));
        assert!(sheet.series.is_empty());
    }

    #[test]
    fn hardware_noise_has_the_first_columns_alone() {
        let heading = "Max Noise   Max Single          HW          NMI\n";
        let table = format!(
            "                 Hardware-related Noise\nduration:   0 00:10:00 | time is in us\n\
             CPU Period       Runtime        Noise  % CPU Aval   {heading}\
             \x20 0 #599       599000000          138    99.99997           3            3        \
             \x20  4           74\n\
             \x20 1 #599       599000000           85    99.99998           3            2        \
             \x20  -           75\n"
        );
        let sheet = text(&table).unwrap();
        assert_eq!(
            (sheet.program.as_str(), sheet.duration_ns),
            ("rtla hwnoise", Some(600_000_000_000))
        );
        let figures: Vec<_> =
            sheet.figures.iter().map(|(own, values)| (own.name.as_str(), values[0])).collect();
        assert_eq!(figures.len(), 11, "a dash has no value");
        assert_eq!(figures[4..6], [("cpu0/hw", 4.0), ("cpu0/nmi", 74.0)]);
        assert_eq!(figures[9..], [("cpu1/max_single", 2.0), ("cpu1/nmi", 75.0)]);
        let short = table.replace("          74", "");
        let error = text(&short).unwrap_err().to_string();
        assert!(error.starts_with("line 4: \"0 #599"), "{error}");
        let odd = table.replace("NMI\n", "XYZ\n");
        assert!(text(&odd).unwrap_err().to_string().contains("none of the formats"));
    }

    #[test]
    fn a_damaged_row_is_refused_and_a_table_without_rows_too() {
        for (from, to) in [
            ("       367\n\x20 3", "       -1\n\x20 3"),
            ("41 |       11", "41        11"),
            ("6        41", "60        41"),
            ("#60003", "#99999999999999999999"),
            ("18       ", "1,8       "),
        ] {
            assert!(TIMERLAT.contains(from), "{from:?}");
            let error = text(&TIMERLAT.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.starts_with("line 4: \""), "{from:?}: {error}");
        }
        let cut = &TIMERLAT[..TIMERLAT.find("42\n").unwrap()];
        assert!(text(cut).unwrap_err().to_string().starts_with("line 5: \""));
        let nan = OSNOISE.replace("99.99802", "nan");
        assert!(text(&nan).unwrap_err().to_string().starts_with("line 4: \""));
        let empty: String = TIMERLAT.lines().take(3).map(|line| format!("{line}\n")).collect();
        assert_eq!(text(&empty).unwrap_err().to_string(), "it has no sample");
    }
}
