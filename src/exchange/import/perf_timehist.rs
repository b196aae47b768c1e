//! The table of `perf sched timehist`: a row whenever a task leaves its CPU.
//!
//! ```text
//!            time    cpu  task name                       wait time  sch delay   run time
//!                         [tid/pid]                          (msec)     (msec)     (msec)
//! --------------- ------  ------------------------------  ---------  ---------  ---------
//!      732.704271 [0000]  migration/0[18]                     0.000      0.010      0.025
//!      732.705864 [0000]  lto cgu.08[13784/13329]             0.570      0.000      1.592
//! ```
//!
//! Options add columns, so that the heading decides. The delay is from the wake-up to the run that
//! the row ends. It is 0 where the task was preempted and continued; in newer versions of perf it
//! is the whole wait then. Both are not wake-ups. All times are cut off below a microsecond.

use super::{
    ImportOptions,
    perf_tasks::{TaskSeries, TaskWakeUp},
    sheet::Sheet,
    source::{ImportError, Source},
    times::{decimal, seconds_ns},
};
use crate::{plain::cut, run::ImportCaveat};

/// Whether it begins as such a file does.
pub(super) fn is_it(head: &str) -> bool {
    head.lines().any(|line| Columns::of(line).is_some())
}

/// Where the columns are.
#[derive(Debug)]
struct Columns {
    /// Where the name of the task begins.
    name: usize,
    /// Which of the fields behind it is what.
    wait: usize,
    delay: usize,
    run: usize,
}

impl Columns {
    /// Those of the heading.
    fn of(line: &str) -> Option<Self> {
        let name = line.find("task name")?;
        let titles = line.get(name..)?.split("  ").map(str::trim).filter(|title| !title.is_empty());
        let titles: Vec<&str> = titles.skip(1).collect();
        let place = |title: &str| titles.iter().position(|own| *own == title);
        let (wait, delay, run) = (place("wait time")?, place("sch delay")?, place("run time")?);
        Some(Self { name, wait, delay, run })
    }
}

/// What a line is.
enum TimehistLine<'a> {
    /// Whose run ended, and how long he waited, waited after his wake-up, and ran.
    Row { comm: &'a str, tid: Option<u32>, wait_ns: i64, delay_ns: i64, run_ns: i64 },
    /// The idle task, a wake-up or a migration, which options add.
    Other,
}

/// Reads it.
pub(super) fn read(
    source: &mut Source<'_>,
    _options: &ImportOptions,
) -> Result<Sheet, ImportError> {
    let mut sheet = Sheet::new("perf sched timehist", None);
    let (mut tasks, mut columns) = (TaskSeries::default(), None);
    while let Some((number, line)) = source.text()? {
        let Some(known) = &columns else {
            columns = Columns::of(&line);
            continue;
        };
        // Of run times, of waits, of idle times.
        if line.trim_end().ends_with("-time summary") || line.trim() == "Runtime summary" {
            break;
        }
        let is_rest = ["[tid/pid]", "----"].iter().any(|begin| line.trim().starts_with(begin));
        // What a killed program leaves: the number may have had more digits.
        if line.trim().is_empty() || is_rest || !source.is_whole() {
            continue;
        }
        take(&line, known, &mut sheet, &mut tasks)
            .map_err(|error| ImportError { line: Some(number), ..error })?;
    }
    if columns.is_none() {
        let what = "it has no heading (time, cpu, task name, wait time, sch delay, run time)";
        return Err(ImportError::new(what));
    }
    tasks.finish(&mut sheet);
    sheet.caveats.push(ImportCaveat::LatenciesRounded { step_ns: 1_000, down: true });
    Ok(sheet)
}

fn take(
    line: &str,
    columns: &Columns,
    sheet: &mut Sheet,
    tasks: &mut TaskSeries,
) -> Result<(), ImportError> {
    let row = || Some((seconds_ns(line.split_whitespace().next()?)?, parsed(line, columns)?));
    let Some((t_ns, found)) = row() else {
        let line = cut(line.trim(), 80);
        return Err(ImportError::new(format!("\"{line}\" is not a row of perf sched timehist")));
    };
    let TimehistLine::Row { comm, tid, wait_ns, delay_ns, run_ns } = found else { return Ok(()) };
    if delay_ns == 0 || delay_ns == wait_ns {
        tasks.add_unwoken();
        return Ok(());
    }
    let woken_ns = t_ns.saturating_sub(run_ns).saturating_sub(delay_ns);
    tasks.add(sheet, TaskWakeUp { comm, tid, woken_ns, delay_ns })
}

fn parsed<'a>(line: &'a str, columns: &Columns) -> Option<TimehistLine<'a>> {
    let rest = line.get(columns.name..)?;
    if rest.starts_with("<idle>") {
        return Some(TimehistLine::Other);
    }
    // A name may contain brackets: it ends where the numbers follow.
    for (end, _) in rest.match_indices(']') {
        let fields: Vec<&str> = rest.get(end + 1..)?.split_whitespace().take(8).collect();
        let ns = |at: usize| decimal(fields.get(at)?, 6).filter(|ns| *ns >= 0);
        let times = (ns(columns.wait), ns(columns.delay), ns(columns.run));
        if let (Some(wait_ns), Some(delay_ns), Some(run_ns)) = times {
            let (comm, numbers) = rest.get(..end)?.rsplit_once('[')?;
            let tid = numbers.split('/').next()?.parse().ok();
            return Some(TimehistLine::Row { comm, tid, wait_ns, delay_ns, run_ns });
        }
    }
    let has_none = ["awakened: ", "migrated: "].iter().any(|what| rest.contains(what));
    has_none.then_some(TimehistLine::Other)
}

#[cfg(test)]
mod tests {
    use crate::exchange::import::tests::{caveats, series, text};

    const TABLE: &str = "Samples do not have callchains.\n\
        \x20          time    cpu  task name  wait time  sch delay  run time\n\
        \x20                       [tid/pid]  (msec)  (msec)  (msec)\n\
        --------------- ------  -----  ---------  ---------  ---------\n\
        \x20    100.000500 [0000]  migration/0[18]  0.000  0.010  0.025 \n\
        \x20    100.001500 [0001]  a [b] c[7002/7001]  0.570  0.000  0.990 \n\
        \x20    100.002000 [0000]  a [b] c[7002/7001]  2.000  0.250  0.100 \n\
        \x20    100.002500 [0000]  a [b] c[7003/7001]  0.300  0.300  0.100 \n\
        \x20    100.003000 [0001]  :-1[-1/12707]  1.000  0.075  0.100 \n\
        \x20    100.004000 [0001]  a [b] c[7003/7001]  1.000  0.050  0.100 \n";

    #[test]
    fn each_run_that_a_wake_up_began_is_a_sample_of_its_task_and_of_its_name() {
        let sheet = text(TABLE).unwrap();
        let expected = [
            ("migration%2F0", 1, 10_000, 10_000),
            ("migration%2F0/18", 1, 10_000, 10_000),
            ("a%20[b]%20c", 2, 50_000, 250_000),
            ("a%20[b]%20c/7002", 1, 250_000, 250_000),
            (":-1", 1, 75_000, 75_000),
            ("a%20[b]%20c/7003", 1, 50_000, 50_000),
        ];
        assert_eq!(series(&sheet), expected);
        // Woken at 100.000465, and the last at 100.003850.
        assert_eq!(sheet.times_ns(), Some((100_000_465_000, 100_003_850_000)));
        let said = caveats(&sheet);
        assert!(said.contains("2 rows of the file are left out, as each tells of no"), "{said}");
        assert!(said.contains("latencies_rounded") && !said.contains("unit_assumed"), "{said}");
    }

    #[test]
    fn columns_that_options_add_are_found_by_the_heading() {
        let wide = "           time    cpu  012  task name  prio  wait time  \
            sch delay   run time  state\n\
            --------------- ------  ---  -----  --------  ---------  \
            ---------  ---------  -----\n\
            \x20    100.000235 [0000]       perf[95]  \
            \x20    awakened: migration/0[18]\n\
            \x20    100.000246 [0000]  i    <idle>  \
            \x20         0.100\n\
            \x20    100.000250 [0000]  s    perf[95]  120  1.000  \
            0.020      0.005      D  next: migration/0[18]\r\n\nRuntime summary\nanything\n";
        let sheet = text(wide).unwrap();
        assert_eq!(series(&sheet), [("perf", 1, 20_000, 20_000), ("perf/95", 1, 20_000, 20_000)]);
    }

    #[test]
    fn a_row_that_is_damaged_is_refused_and_one_that_was_cut_passed_over() {
        for (from, to) in [("0.250", "0,250"), ("0.250", "-0.250"), ("[0000]  a", "[0000]  ]a")] {
            let odd = TABLE.replace(from, to).replace("]a [b] c[7002/7001]", "]a b c");
            let error = text(&odd).unwrap_err().to_string();
            assert!(error.starts_with("line 7: \"100.002000 [0000]"), "{error}");
        }
        let huge = TABLE.replace("0.250", "99999999999999999999.0");
        assert!(text(&huge).unwrap_err().to_string().starts_with("line 7: "));
        let cut = &TABLE[..TABLE.len() - 20];
        assert_eq!(text(cut).unwrap().series.len(), 5);
        assert!(
            text(&TABLE[..TABLE.find("--\n").unwrap() + 3])
                .unwrap_err()
                .to_string()
                .contains("it has no sample")
        );
        let noise = TABLE.replace("100.003000 [0001]", "rubbish");
        assert!(text(&noise).unwrap_err().to_string().starts_with("line 9: "));
    }
}
