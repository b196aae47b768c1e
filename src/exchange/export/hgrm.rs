//! HdrHistogram's percentile distribution, ms, as `HistogramLogProcessor` and wrk2 write it, with a
//! row for every bucket that has a sample.

use std::io::{self, BufRead, BufReader, Read as _};

use super::{
    counted::{CountedRun, recorded},
    parquet::Output,
};
use crate::{
    limits::log::LONGEST_LINE,
    plain::plain_lines,
    run::{Run, files, hlog::SAMPLES_OF, names, series_name::is_called},
};

/// The series together, or one of them.
pub(super) fn write(run: &CountedRun, series: Option<&str>) -> io::Result<Vec<u8>> {
    let wanted = |name: &str| series.is_none_or(|wanted| is_called(wanted, name));
    let all = run.document.series.iter().enumerate();
    let own: Vec<usize> = all
        .filter(|(_, own)| wanted(&own.name) && (series.is_some() || !own.is_stage()))
        .map(|(number, _)| number)
        .collect();
    let counts = run.sum(own);
    let total = counts.len();
    let ms = |ns: f64| ns / 1e6;
    let [value, share, count] = ["Value", "Percentile", "TotalCount"];
    let mut out = format!("{value:>12} {share:>14} {count:>10} 1/(1-Percentile)\n\n");
    let mut before = 0_u64;
    for bucket in recorded(&counts) {
        before = before.saturating_add(bucket.count);
        let share = before as f64 / total.max(1) as f64;
        let beyond = match before < total {
            true => format!("{:14.2}", 1.0 / (1.0 - share)),
            false => format!("{:>14}", "inf"),
        };
        let value = ms(bucket.high_ns as f64);
        out.push_str(&format!("{value:12.6} {share:14.12} {before:10} {beyond}\n"));
    }
    let (mean, deviation) = if total == 0 { (0.0, 0.0) } else { (counts.mean(), counts.stdev()) };
    out.push_str(&format!(
        "#[Mean    = {:12.6}, StdDeviation   = {:12.6}]\n\
         #[Max     = {:12.6}, Total count    = {total:12}]\n\
         #[Buckets = {:12}, SubBuckets     = {:12}]\n",
        ms(mean),
        ms(deviation),
        ms(counts.max() as f64),
        counts.buckets(),
        2_048
    ));
    Ok(out.into_bytes())
}

/// The log of a run, which is an HdrHistogram log as it is, behind a comment that says what its
/// values are.
pub(super) fn copy_log(run: &Run, out: &mut dyn Output) -> io::Result<()> {
    if let Some(probe) = run.document.probe.info() {
        let interval = run.document.probe.interval_ns();
        let interval = interval.map(|ns| format!(" interval_ns={ns}")).unwrap_or_default();
        writeln!(out, "#[{SAMPLES_OF}{}{interval}]", probe.name)?;
    }
    copy_plain(BufReader::new(files::open(&run.path.join(names::SERIES))?), out)
}

/// Whoever made the run may have written anything into its log, also for a terminal.
fn copy_plain(mut log: impl BufRead, out: &mut dyn Output) -> io::Result<()> {
    let mut line = Vec::new();
    while (&mut log).take(LONGEST_LINE).read_until(b'\n', &mut line)? > 0 {
        write!(out, "{}", plain_lines(&String::from_utf8_lossy(&line)))?;
        line.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::exchange::{
        export::counted::tests::{measured, text},
        import,
    };

    #[test]
    fn a_log_comes_back_as_what_it_is_of() {
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1/timer");
        let run = Run::open(&place).unwrap();
        let mut log = Vec::new();
        copy_log(&run, &mut log).unwrap();
        let log = String::from_utf8(log).unwrap();
        assert!(log.starts_with("#[Samples of tardy: timer interval_ns="), "{log:.100}");
        let sheet = import::tests::text(&log).unwrap();
        let own = &run.document.series[0];
        let in_histogram = own.count - own.early - own.above;
        assert_eq!(import::tests::series(&sheet)[0].1, in_histogram);
    }

    #[test]
    fn a_log_steers_no_terminal() {
        let log = "Tag=cpu0\u{1b}]0;x\u{7},0.000,0.100,0.3,HISTF\n#[Basetime: 1]\u{9b}31m";
        let mut copied = Vec::new();
        copy_plain(log.as_bytes(), &mut copied).unwrap();
        let shown = r"Tag=cpu0\u{1b}]0;x\u{7},0.000,0.100,0.3,HISTF
#[Basetime: 1]\u{9b}31m";
        assert_eq!(String::from_utf8(copied).unwrap(), shown);
    }

    #[test]
    fn what_is_exported_is_imported_with_the_same_counts() {
        let run = measured();
        let written = text(write(&run, None));
        let sheet = import::tests::text(&written).unwrap();
        let own: Vec<usize> = run.wakeups().map(|(number, _)| number).collect();
        let counts = run.sum(own);
        let found = import::tests::series(&sheet);
        assert_eq!(found[0].1, counts.len());
        let max = i64::try_from(counts.max()).unwrap();
        assert!((found[0].3 - max).abs() <= 1, "{found:?} {max}");
        assert!(!import::tests::caveats(&sheet).contains("counts_differ"));
    }
}
