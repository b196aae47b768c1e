//! Events of the scheduler as text, of `perf sched script` and `perf script`: wake-up to running.
//!
//! ```text
//! # os release : 6.12.0
//!      perf   95 [000]   732.704235: sched:sched_waking: comm=a pid=18 prio=0 target_cpu=000
//!      perf   95 [000]   732.704246: sched:sched_switch: prev_comm=perf prev_pid=95 ... ==> ...
//! ```
//!
//! With the plugins of libtraceevent fields are `a:18 [0]`, with `--ns` times have nine digits, and
//! ftrace writes the same without `sched:`. The first of `sched_waking`, `sched_wakeup` and
//! `sched_wakeup_new` since a task left its CPU is its wake-up, as for `perf sched timehist`.

use std::collections::HashMap;

use super::{
    ImportOptions,
    imported_data::ImportedData,
    perf_tasks::{TaskSeries, TaskWakeUp},
    source::{ImportError, Source},
    times::seconds_ns,
};
use crate::{
    plain::cut,
    run::{FileLoss, ImportCaveat},
    units::many,
};

/// No kernel has tasks of higher numbers (`PID_MAX_LIMIT`).
const HIGHEST_TID: u32 = 1 << 22;

/// What begins the wait of a task.
const WAKE_UPS: [&str; 3] = ["sched_waking: ", "sched_wakeup: ", "sched_wakeup_new: "];

/// Of a time without decimals (`trace_print_context` of kernel/trace/trace_output.c).
const NO_SECONDS: &str = "its times are of a clock that does not count seconds (trace_clock \
                          counter, uptime or x86-tsc): record it by local or mono";

/// What ends it.
const SWITCH: &str = "sched_switch: ";

/// Whether it begins as such a file does.
pub(super) fn matches_format(head: &str) -> bool {
    let is_event = |line: &str| matches!(event(line), Some(Ok(_)));
    // A record may begin with wake-ups; a heading of others has neither.
    head.lines().any(|line| line.contains("==>") && is_event(line))
}

/// One event.
enum TaskEvent<'a> {
    Woken(u32),
    Switch { from: u32, to: (&'a str, u32) },
}

/// Reads it.
pub(super) fn read(
    source: &mut Source<'_>,
    _options: &ImportOptions,
) -> Result<ImportedData, ImportError> {
    let mut sheet = ImportedData::new("perf script", None);
    let mut found = Found::default();
    while let Some((number, line)) = source.text()? {
        if let Some(heading) = line.strip_prefix('#') {
            fact(heading, &mut sheet);
            continue;
        }
        // What a killed program leaves.
        if !source.is_whole() {
            break;
        }
        if let Some(lost) = lost_events(&line) {
            found.lost = found.lost.saturating_add(lost);
            // Tasks that were woken before may have run and slept since.
            found.woken.clear();
            continue;
        }
        let Some(event) = event(&line) else { continue };
        let (time, event) = event.map_err(|()| {
            let line = cut(line.trim(), 80);
            ImportError::at(number, format!("\"{line}\" is not an event of perf sched"))
        })?;
        found
            .take(time, event, &mut sheet)
            .map_err(|error| ImportError { line: Some(number), ..error })?;
    }
    if found.is_coarse {
        sheet.caveats.push(ImportCaveat::LatenciesRounded { step_ns: 1_000, down: false });
    }
    if found.lost > 0 {
        let what = format!("{} of the kernel lost", many(found.lost, "event"));
        sheet.caveats.push(ImportCaveat::Loss(FileLoss::Stated { what }));
    }
    found.tasks.finish(&mut sheet);
    Ok(sheet)
}

/// `CPU:0 [LOST 2 EVENTS]` of ftrace; `... PERF_RECORD_LOST lost 12` and `Processed 600 events and
/// lost 3 chunks!` of perf.
fn lost_events(line: &str) -> Option<u64> {
    if let Some((_, rest)) = line.split_once(" events and lost ") {
        return rest.split_whitespace().next()?.parse().ok();
    }
    let number = match line.split_once("[LOST ") {
        Some((before, rest)) if before.trim_start().starts_with("CPU:") => {
            rest.split_once(" EVENTS]")?.0
        }
        _ => {
            let (_, rest) = line.split_once("PERF_RECORD_LOST")?;
            rest.split_whitespace().rfind(|word| word.bytes().all(|c| c.is_ascii_digit()))?
        }
    };
    number.trim().parse().ok()
}

#[derive(Debug, Default)]
struct Found {
    tasks: TaskSeries,
    /// When those were woken that wait, ns.
    woken: HashMap<u32, i64>,
    /// Events that the file says were lost.
    lost: u64,
    /// Whether times have no more than six digits.
    is_coarse: bool,
}

impl Found {
    fn take(
        &mut self,
        time: &str,
        event: TaskEvent<'_>,
        sheet: &mut ImportedData,
    ) -> Result<(), ImportError> {
        if !time.contains('.') && time.bytes().all(|c| c.is_ascii_digit()) {
            return Err(ImportError::new(NO_SECONDS));
        }
        let t_ns = seconds_ns(time).filter(|ns| *ns >= 0).ok_or_else(|| {
            ImportError::new(format!("\"{}\" is not a time in seconds", cut(time, 40)))
        })?;
        self.is_coarse |= time.split_once('.').is_none_or(|(_, digits)| digits.len() < 9);
        match event {
            TaskEvent::Woken(tid) => {
                self.woken.entry(tid).or_insert(t_ns);
            }
            TaskEvent::Switch { from, to: (comm, tid) } => {
                // A wake-up of a task that runs, or that only goes to sleep, does not belong to a
                // sleeper.
                self.woken.remove(&from);
                if tid == 0 {
                    return Ok(());
                }
                match self.woken.remove(&tid).filter(|woken_ns| *woken_ns <= t_ns) {
                    None => self.tasks.add_unwoken(),
                    Some(woken_ns) => {
                        let delay_ns = t_ns - woken_ns;
                        let wake_up = TaskWakeUp { comm, tid: Some(tid), woken_ns, delay_ns };
                        self.tasks.add(sheet, wake_up)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// `# hostname : vm`, of `--header`.
fn fact(heading: &str, sheet: &mut ImportedData) {
    let Some((name, value)) = heading.split_once(" : ") else { return };
    let value = cut(value.trim(), 400);
    match name.trim() {
        "hostname" => sheet.facts.hostname = value,
        "os release" => sheet.facts.kernel = value,
        "arch" => sheet.facts.architecture = value,
        "cpudesc" => sheet.facts.cpu_model = Some(value),
        "perf version" => sheet.version = value,
        "cmdline" => sheet.command = value,
        _ => {}
    }
}

/// The time and the event of a line; `None` for any other line, and an error if it cannot be read.
fn event(line: &str) -> Option<Result<(&str, TaskEvent<'_>), ()>> {
    let named = |name: &str| {
        let at = line.find(name)?;
        let (before, fields) = (line.get(..at)?, line.get(at + name.len()..)?);
        let before = before.strip_suffix("sched:").unwrap_or(before);
        // Others have names that end alike.
        let time = before.ends_with(char::is_whitespace).then(|| before.trim_end())?;
        let time = time.strip_suffix(':')?.rsplit(char::is_whitespace).next()?;
        Some((time, fields))
    };
    if let Some((time, fields)) = named(SWITCH) {
        return Some(switch(fields).map(|event| (time, event)).ok_or(()));
    }
    let (time, fields) = WAKE_UPS.into_iter().find_map(named)?;
    let task = task(fields, "comm=", " pid=").map(|(_, tid)| TaskEvent::Woken(tid));
    Some(task.map(|event| (time, event)).ok_or(()))
}

fn switch(fields: &str) -> Option<TaskEvent<'_>> {
    let (from, to) = match fields.split_once(" ==> next_comm=") {
        Some((from, _)) => (from, fields.get(from.len() + 5..)?),
        None => fields.split_once(" ==> ")?,
    };
    let (_, from) = task(from, "prev_comm=", " prev_pid=")?;
    let to = task(to, "next_comm=", " next_pid=")?;
    Some(TaskEvent::Switch { from, to })
}

/// `comm=a b pid=18 prio=0`, or `a b:18 [0]`.
fn task<'a>(fields: &'a str, comm: &str, pid: &str) -> Option<(&'a str, u32)> {
    let fields = fields.trim();
    let (name, tid) = match fields.strip_prefix(comm) {
        Some(rest) => {
            let (name, rest) = rest.rsplit_once(pid)?;
            (name, rest.split_whitespace().next()?)
        }
        None => fields.rsplit_once(" [")?.0.rsplit_once(':')?,
    };
    Some((name, tid.parse().ok().filter(|tid| *tid <= HIGHEST_TID)?))
}

#[cfg(test)]
mod tests {
    use crate::exchange::import::tests::{caveats, series, text};

    const EVENTS: &str = "# hostname : rig\n# os release : 6.12.0-rt\n# perf version : 6.1.0\n#\n\
        \x20  perf    95 [000]   100.000100:       sched:sched_waking: comm=a b pid=18 prio=0 \
        target_cpu=000\n\
        \x20  perf    95 [000]   100.000102: sched:sched_stat_runtime: comm=perf pid=95 \
        runtime=331 [ns]\n\
        \x20  perf    95 [000]   100.000103:       sched:sched_wakeup: comm=a b pid=18 prio=0 \
        target_cpu=000\n\
        \x20  perf    95 [000]   100.000110:       sched:sched_switch: prev_comm=perf prev_pid=95 \
        prev_prio=120 prev_state=R ==> next_comm=a b next_pid=18 next_prio=0\n\
        \x20   a b    18 [000]   100.000150:       sched:sched_switch: prev_comm=a b prev_pid=18 \
        prev_prio=0 prev_state=S ==> next_comm=perf next_pid=95 next_prio=120\n\
        \x20  perf    95 [000]   100.000200:   sched:sched_wakeup_new: comm=c/1 pid=19 prio=120 \
        target_cpu=001\n\
        \x20  perf    95 [000]   100.000300:       sched:sched_waking: comm=a b pid=18 prio=0 \
        target_cpu=000\n\
        \x20 swapper    0 [001]   100.000500:       sched:sched_switch: prev_comm=swapper/1 \
        prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=c/1 next_pid=19 next_prio=120\n\
        \x20  perf    95 [000]   100.000350:       sched:sched_switch: prev_comm=perf prev_pid=95 \
        prev_prio=120 prev_state=S ==> next_comm=a b next_pid=18 next_prio=0\n\
        \x20   a b    18 [000]   100.000900:       sched:sched_switch: prev_comm=a b prev_pid=18 \
        prev_prio=0 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120\n";

    #[test]
    fn from_the_first_wake_up_to_the_switch_of_each_task() {
        let sheet = text(EVENTS).unwrap();
        let expected = [
            ("a%20b", 2, 10_000, 50_000),
            ("a%20b/18", 2, 10_000, 50_000),
            ("c%2F1", 1, 300_000, 300_000),
            ("c%2F1/19", 1, 300_000, 300_000),
        ];
        assert_eq!(series(&sheet), expected);
        assert_eq!((&*sheet.facts.hostname, &*sheet.facts.kernel), ("rig", "6.12.0-rt"));
        let said = caveats(&sheet);
        assert!(said.contains("1 row of the file is left out"), "perf continued: {said}");
        assert!(said.contains("in steps of 1"), "{said}");
    }

    #[test]
    fn times_may_have_nine_digits_and_fields_be_those_of_the_plugins() {
        let plugin = "a:18 [0] <idle>-0 [000] 100.000000100: sched_waking: a:18 [0] CPU:000\n\
            <idle>-0 [000] d... 100.000000350: sched_switch: x:y:95 [120] S ==> a:18 [0]\n";
        let sheet = text(plugin).unwrap();
        assert_eq!(series(&sheet), [("a", 1, 250, 250), ("a/18", 1, 250, 250)]);
        assert!(!caveats(&sheet).contains("latencies_rounded"));
    }

    #[test]
    fn a_time_without_decimals_counts_no_seconds() {
        let ticks = "<idle>-0 [000] dnh. 1524282358: sched_wakeup: comm=a pid=69 prio=49\n\
            <idle>-0 [000] d... 1524282376: sched_switch: prev_comm=x prev_pid=0 prev_prio=120 \
            prev_state=R ==> next_comm=a next_pid=69 next_prio=49\n";
        let error = text(ticks).unwrap_err().to_string();
        assert_eq!(error, format!("line 1: {}", super::NO_SECONDS));
    }

    #[test]
    fn a_wake_up_before_a_task_left_its_cpu_is_not_taken_for_a_later_one() {
        let woken = EVENTS.replace("100.000300: ", "100.000120: ");
        let mut lines: Vec<&str> = woken.lines().collect();
        lines.swap(10, 8);
        lines.swap(9, 10);
        assert!(lines[8].contains("100.000120") && lines[9].contains("100.000150"), "{lines:?}");
        let sheet = text(&(lines.join("\n") + "\n")).unwrap();
        assert_eq!(series(&sheet)[0], ("a%20b", 1, 10_000, 10_000));
        assert!(caveats(&sheet).contains("2 rows of the file are left out"));
    }

    #[test]
    fn a_damaged_event_is_refused_and_a_cut_one_passed_over() {
        for (from, to) in [
            ("next_pid=18", "next_pid=99999999"),
            ("next_pid=18", "next_pid=-18"),
            ("next_pid=18", "next_pi"),
            ("100.000110", "100,000110"),
            ("100.000110", "99999999999999.0"),
        ] {
            let error = text(&EVENTS.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.starts_with("line 8: "), "{from} {to}: {error}");
        }
        let cut = &EVENTS[..EVENTS.find("==> next_comm=swapper").unwrap()];
        assert_eq!(series(&text(cut).unwrap())[0].1, 2);
        let crlf = EVENTS.replace('\n', "\r\n");
        assert_eq!(series(&text(&crlf).unwrap())[0].1, 2);
    }
}
