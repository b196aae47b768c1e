//! Results of wult and ndl: the `datapoints.csv` of a result directory, with the `info.yml` beside
//! it.
//!
//! ```text
//! format_version: '1.2'            WakeLatency,SilentTime,IntrLatency,LDist,ReqCState,CC6%
//! toolname: wult                   4.1797981021053525,1746.303,7.903,1757.788,C6,92.63
//! ```
//!
//! wult's `WakeLatency` is from the event that was set until the CPU runs again after an idle
//! state, and its `IntrLatency` until the handler of its interrupt begins; ndl's `RTD` is the
//! longest time of a network card's reads from memory. By its definitions all are in us; until
//! format 1.1 they were in ns, which no line of the file says, so that nothing is read without
//! `info.yml`. The other columns say in which state the CPU was, and are not read.

use super::{
    ImportOptions,
    imported_data::ImportedData,
    source::{ImportError, Source},
    times::decimal,
    wult_info::WultInfo,
};
use crate::plain::cut;

/// Columns of latencies, in the order of their series, and the tool that has them.
const LATENCIES: [(&str, &str); 3] =
    [("WakeLatency", "wult"), ("IntrLatency", "wult"), ("RTD", "ndl")];

/// Whether it begins as such a file does.
pub(super) fn matches_format(head: &str) -> bool {
    let first = head.lines().next().unwrap_or_default();
    let names: Vec<&str> = first.trim_end().split(',').collect();
    names.contains(&"LDist") && (names.contains(&"WakeLatency") || names.contains(&"RTD"))
}

/// Reads it.
pub(super) fn read(
    source: &mut Source<'_>,
    options: &ImportOptions,
) -> Result<ImportedData, ImportError> {
    let info = options.info.as_deref().ok_or_else(|| {
        ImportError::new(
            "its unit follows from the info.yml that wult and ndl write, and it is missing beside \
             it; without it say what it is: --latency-column WakeLatency --unit us",
        )
    })?;
    let info = WultInfo::of(info)?;
    let mut sheet = ImportedData::new(info.tool, None);
    sheet.version = info.version;
    for (name, value) in info.parameters {
        sheet.parameter(name, value);
    }
    let Some((_, first)) = source.text()? else { return Err(ImportError::new("it is empty")) };
    let names: Vec<String> = first.split(',').map(str::to_owned).collect();
    let mut places = Vec::new();
    for (column, tool) in LATENCIES {
        let at = names.iter().position(|name| name == column).filter(|_| tool == info.tool);
        if let Some(at) = at {
            places.push((at, column, sheet.series(column, info.cpu)?));
        }
    }
    if places.is_empty() {
        let what = format!("it has no column of latencies of {}, as info.yml calls it", info.tool);
        return Err(ImportError::at(1, what));
    }
    while let Some((number, line)) = source.text()? {
        let fields: Vec<&str> = line.split(',').collect();
        if fields.len() != names.len() || !source.is_whole() {
            let what = format!(
                "\"{}\" has {} of {} columns, or no end of line",
                cut(&line, 80),
                fields.len(),
                names.len()
            );
            return Err(ImportError::at(number, what));
        }
        for (at, column, series) in &places {
            let field = fields.get(*at).copied().unwrap_or_default();
            let ns = decimal(field, info.digits_of_ns).filter(|ns| *ns >= 0);
            let ns = ns.ok_or_else(|| {
                let what = format!("{column} \"{}\" is not a latency", cut(field, 40));
                ImportError::at(number, what)
            })?;
            sheet.add(*series, ns, 1);
        }
    }
    Ok(sheet)
}

#[cfg(test)]
mod tests {
    use crate::exchange::import::{
        ImportError, ImportOptions, ImportedData,
        tests::{read_as, series, text},
    };

    const INFO: &str = "cpu: 3\ndevdescr: Intel I210 network card. PCI address\n  0000:00:04.0\n\
        devid: tdt\nformat_version: '1.2'\nreportid: a-b\nresolution: 1\ntoolname: wult\n\
        toolver: 1.9.8\n";

    /// In the form of wult 1.9.8.
    const POINTS: &str = "WakeLatency,SilentTime,IntrLatency,IntrOff,LDist,ReqCState,CC6%\n\
        4.1797981021053525,1746.3,7.903527106738778,1,1757.788,C6,92.63\n\
        37.55135960796328,2301.7,42.53136685911278,1,2320.707,C6,95.01\n";

    fn beside(points: &str, info: &str) -> Result<ImportedData, ImportError> {
        read_as(points, &ImportOptions { info: Some(info.into()), ..ImportOptions::default() })
    }

    #[test]
    fn both_latencies_are_series_of_the_cpu_in_us() {
        let sheet = beside(POINTS, INFO).unwrap();
        let expected = [("WakeLatency", 2, 4_179, 37_551), ("IntrLatency", 2, 7_903, 42_531)];
        assert_eq!(series(&sheet), expected);
        assert_eq!(series(&beside(&POINTS.replace('\n', "\r\n"), INFO).unwrap()), expected);
        assert!(sheet.series.iter().all(|own| own.head.cpu == Some(3)));
        assert_eq!((&*sheet.program, &*sheet.version, sheet.same_as), ("wult", "1.9.8", None));
        let device = &sheet.parameters["devdescr"];
        assert_eq!(device, "Intel I210 network card. PCI address 0000:00:04.0");
    }

    #[test]
    fn before_format_1_1_latencies_are_in_ns_and_ndl_has_its_own() {
        let old = INFO.replace("'1.2'", "'1.0'").replace("cpu:", "cpunum:");
        let points = "WakeLatency,LDist\n4179,100\n";
        assert_eq!(series(&beside(points, &old).unwrap()), [("WakeLatency", 1, 4_179, 4_179)]);
        let ndl = "format_version: '1.3'\ntoolname: ndl\ntoolver: 1.3.12\n";
        let sheet = beside("RTD,LDist\n31.472,43318.157\n", ndl).unwrap();
        assert_eq!(series(&sheet), [("RTD", 1, 31_472, 31_472)]);
        assert_eq!(sheet.series[0].head.cpu, None);
    }

    #[test]
    fn a_damaged_row_is_refused_with_its_line() {
        for (from, to) in [
            ("37.55", "-37.55"),
            ("37.55", "nan"),
            ("37.55", "3e7"),
            ("37.55135960796328", "99999999999999999999"),
            ("37.55135960796328,", ""),
            ("42.53", "\"42.53\""),
            ("95.01\n", "95"),
        ] {
            assert!(POINTS.contains(from), "{from}");
            let error = beside(&POINTS.replace(from, to), INFO).unwrap_err();
            assert_eq!(error.line, Some(3), "{from} {to}: {error}");
        }
        let cut = POINTS.lines().next().unwrap();
        assert_eq!(beside(cut, INFO).unwrap_err().what, "it has no sample");
        let other = INFO.replace("toolname: wult", "toolname: ndl");
        assert_eq!(beside(POINTS, &other).unwrap_err().line, Some(1));
    }

    #[test]
    fn without_info_or_by_one_that_is_not_understood_nothing_is_read() {
        assert!(text(POINTS).unwrap_err().what.contains("it is missing beside it"));
        for (from, to, wanted) in [
            ("'1.2'", "'2.0'", "info.yml: line 5: format_version \"2.0\" is not known"),
            ("format_version: '1.2'\n", "", "info.yml: it has no format_version"),
            ("toolname: wult", "toolname: pbe", "info.yml: line 8: toolname \"pbe\""),
            ("cpu: 3", "cpu: -3", "info.yml: line 1: cpu \"-3\" is not a CPU"),
            ("cpu: 3", "cpu: [3]", "info.yml: line 1: \"cpu: [3]\" is not a plain value"),
            ("devid: tdt", "cpu: 4", "info.yml: line 4: \"cpu\" is there twice"),
            ("reportid: a-b", "reportid", "info.yml: line 6: \"reportid\" is not a line"),
            ("toolver: 1.9.8\n", "toolver: 1.9", "info.yml: line 9: its last line has no end"),
        ] {
            assert!(INFO.contains(from), "{from}");
            let error = beside(POINTS, &INFO.replace(from, to)).unwrap_err().to_string();
            assert!(error.starts_with(wanted), "{from} {to}: {error}");
        }
    }
}
