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
//! is the whole wait then (`timehist_update_runtime_stats`, tools/perf/builtin-sched.c). Both are
//! not wake-ups. All times are cut off below a microsecond, so that a wake-up may be printed as 0
//! too: the state in which the task left its CPU before tells them apart, or that this perf is a
//! newer one.

use std::collections::HashMap;

use super::{
    ImportOptions,
    imported_data::ImportedData,
    perf_tasks::{TaskSeries, TaskWakeUp},
    source::{ImportError, Source},
    times::{decimal, seconds_ns},
};
use crate::{plain::cut, run::ImportCaveat};

/// Whether it begins as such a file does.
pub(super) fn matches_format(head: &str) -> bool {
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
    /// The state in which the task left its CPU; an option adds it.
    state: Option<usize>,
}

impl Columns {
    /// Those of the heading.
    fn of(line: &str) -> Option<Self> {
        let name = line.find("task name")?;
        let titles = line.get(name..)?.split("  ").map(str::trim).filter(|title| !title.is_empty());
        let titles: Vec<&str> = titles.skip(1).collect();
        let place = |title: &str| titles.iter().position(|own| *own == title);
        let (wait, delay, run) = (place("wait time")?, place("sch delay")?, place("run time")?);
        Some(Self { name, wait, delay, run, state: place("state") })
    }
}

/// What a line is.
enum TimehistLine<'a> {
    /// Whose run ended, and how long he waited, waited after his wake-up, and ran.
    Row { comm: &'a str, tid: Option<u32>, times: RowTimes, was_ready: Option<bool> },
    /// The idle task, a wake-up or a migration, which options add.
    Other,
}

/// How long a task waited before its run, waited after its wake-up, and ran.
#[derive(Debug, Clone, Copy)]
struct RowTimes {
    wait_ns: i64,
    delay_ns: i64,
    run_ns: i64,
}

/// More runs of which it is not known yet how they began are not kept.
const MOST_UNCLEAR: usize = 1_000_000;

/// A run whose delay is printed as 0.
#[derive(Debug)]
struct UnclearRun {
    comm: String,
    tid: Option<u32>,
    began_ns: i64,
}

/// What tells wake-ups that are printed as 0 from runs that no wake-up began.
#[derive(Debug, Default)]
struct Beginnings {
    /// By task: whether it could have run on when it left its CPU last.
    was_ready: HashMap<u32, bool>,
    /// This perf counts the wait of a preempted task as its delay.
    counts_preemption: bool,
    unclear: Vec<UnclearRun>,
}

impl Beginnings {
    /// Whether a run with these times was begun by a wake-up; `None` if that is not known yet.
    fn is_wake_up(&mut self, tid: Option<u32>, times: RowTimes) -> Option<bool> {
        let RowTimes { wait_ns, delay_ns, .. } = times;
        if delay_ns > 0 {
            // No task slept for no time.
            self.counts_preemption |= delay_ns == wait_ns;
            return Some(delay_ns != wait_ns);
        }
        if wait_ns == 0 {
            return Some(false);
        }
        let known = tid.and_then(|tid| self.was_ready.get(&tid));
        known.map(|was_ready| !was_ready).or(self.counts_preemption.then_some(true))
    }

    /// The unclear runs, where they have turned out to be wake-ups.
    fn settled(&mut self) -> Vec<UnclearRun> {
        if self.counts_preemption { std::mem::take(&mut self.unclear) } else { Vec::new() }
    }
}

/// Reads it.
pub(super) fn read(
    source: &mut Source<'_>,
    _options: &ImportOptions,
) -> Result<ImportedData, ImportError> {
    let mut sheet = ImportedData::new("perf sched timehist", None);
    let (mut tasks, mut columns) = (TaskSeries::default(), None);
    let mut beginnings = Beginnings::default();
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
        take(&line, known, &mut sheet, (&mut tasks, &mut beginnings))
            .map_err(|error| ImportError { line: Some(number), ..error })?;
    }
    if columns.is_none() {
        let what = "it has no heading (time, cpu, task name, wait time, sch delay, run time)";
        return Err(ImportError::new(what));
    }
    beginnings.unclear.iter().for_each(|_| tasks.add_unwoken());
    tasks.finish(&mut sheet);
    sheet.caveats.push(ImportCaveat::LatenciesRounded { step_ns: 1_000, down: true });
    Ok(sheet)
}

fn take(
    line: &str,
    columns: &Columns,
    sheet: &mut ImportedData,
    (tasks, beginnings): (&mut TaskSeries, &mut Beginnings),
) -> Result<(), ImportError> {
    let row = || Some((seconds_ns(line.split_whitespace().next()?)?, parsed(line, columns)?));
    let Some((t_ns, found)) = row() else {
        let line = cut(line.trim(), 80);
        return Err(ImportError::new(format!("\"{line}\" is not a row of perf sched timehist")));
    };
    let TimehistLine::Row { comm, tid, times, was_ready } = found else { return Ok(()) };
    let began_ns = t_ns.saturating_sub(times.run_ns);
    let beginning = beginnings.is_wake_up(tid, times);
    if let (Some(tid), Some(was_ready)) = (tid, was_ready) {
        beginnings.was_ready.insert(tid, was_ready);
    }
    for run in beginnings.settled() {
        let UnclearRun { comm, tid, began_ns } = &run;
        tasks.add(sheet, TaskWakeUp { comm, tid: *tid, woken_ns: *began_ns, delay_ns: 0 })?;
    }
    match beginning {
        Some(true) => {
            let (delay_ns, woken_ns) = (times.delay_ns, began_ns.saturating_sub(times.delay_ns));
            return tasks.add(sheet, TaskWakeUp { comm, tid, woken_ns, delay_ns });
        }
        None if beginnings.unclear.len() < MOST_UNCLEAR => {
            beginnings.unclear.push(UnclearRun { comm: comm.to_owned(), tid, began_ns });
        }
        _ => tasks.add_unwoken(),
    }
    Ok(())
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
            let times = RowTimes { wait_ns, delay_ns, run_ns };
            let state = columns.state.and_then(|at| fields.get(at));
            let was_ready = state.map(|state| state.starts_with('R'));
            return Some(TimehistLine::Row { comm, tid, times, was_ready });
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
            ("a%20[b]%20c", 3, 0, 250_000),
            ("a%20[b]%20c/7002", 2, 0, 250_000),
            (":-1", 1, 75_000, 75_000),
            ("a%20[b]%20c/7003", 1, 50_000, 50_000),
        ];
        assert_eq!(series(&sheet), expected);
        // Woken at 100.000465, and the last at 100.003850.
        assert_eq!(sheet.times_ns(), Some((100_000_465_000, 100_003_850_000)));
        let said = caveats(&sheet);
        assert!(said.contains("1 row of the file is left out, as it tells of no"), "{said}");
        assert!(said.contains("latencies_rounded") && !said.contains("unit_assumed"), "{said}");
    }

    /// Rows of one task, each 1 ms after the one before, with these times and a state at the end.
    fn rows(rows: &[&str]) -> String {
        let head = "           time    cpu  task name  wait time  sch delay  run time  state\n\
            --------------- ------  ---------  ---------  ---------  -----\n";
        let row = |(n, times)| format!("    100.00{n}000 [0000]   app[7]  {times}\n");
        head.to_owned() + &rows.iter().enumerate().map(row).collect::<String>()
    }

    #[test]
    fn a_wake_up_that_is_printed_as_0_is_told_from_a_run_that_was_preempted_before() {
        let sheet = text(&rows(&["1.000 0.002 0.1 S", "0.9 0.000 0.1 R", "0.9 0.000 0.1 S"]));
        let sheet = sheet.unwrap();
        assert_eq!(series(&sheet)[0], ("app", 2, 0, 2_000), "it slept once, and was preempted");
        // No state: a perf that counts the wait of a preempted task tells it, also later.
        let newer = ["1.000 0.002 0.1", "0.9 0.000 0.1", "0.300 0.300 0.1"];
        let sheet = text(&rows(&newer)).unwrap();
        assert_eq!(series(&sheet)[0], ("app", 2, 0, 2_000));
        let sheet = text(&rows(&newer[..2])).unwrap();
        assert_eq!(series(&sheet)[0], ("app", 1, 2_000, 2_000), "an older one does not");
        assert!(caveats(&sheet).contains("1 row of the file"), "{}", caveats(&sheet));
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
