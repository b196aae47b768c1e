//! Caveats of threads of others that were looked at.

use crate::run::{
    AttachCaveat, AttachParameters, AttachRecord, AttachedRow, CaveatKind, MissedPeriods,
    ProbeRecord,
};

/// One wake-up of so many that is not seen is worth a word.
const UNSEEN: u64 = 100;

pub(super) fn caveats(
    probe: Option<&ProbeRecord>,
    record: Option<&AttachRecord>,
) -> Vec<CaveatKind> {
    let (Some(ProbeRecord::Attach(asked)), Some(record)) = (probe, record) else {
        return Vec::new();
    };
    let found = [
        ended(asked, record),
        failed(record),
        no_room(record),
        never_slept(record),
        unjudged(asked, record),
        unseen(record),
        periods_unseen(record),
    ];
    found.into_iter().flatten().map(CaveatKind::from).collect()
}

/// A command ends as it likes.
fn ended(asked: &AttachParameters, record: &AttachRecord) -> Option<AttachCaveat> {
    let what = match asked.by.as_str() {
        "pid" => format!("process {}", asked.target),
        "tid" => format!("thread {}", asked.target),
        _ => return None,
    };
    record.ended_ns.map(|at_ns| AttachCaveat::TargetEnded { what, at_ns })
}

fn failed(record: &AttachRecord) -> Option<AttachCaveat> {
    let command = record.command.as_ref().filter(|command| !command.ended_by_tardy)?;
    let ended = command.ended.clone().filter(|_| command.exit_code != Some(0))?;
    Some(AttachCaveat::CommandFailed { ended })
}

fn no_room(record: &AttachRecord) -> Option<AttachCaveat> {
    let &AttachRecord { no_room: threads, gave_way, room: most, .. } = record;
    let is_short = threads > 0 || gave_way > 0;
    is_short.then_some(AttachCaveat::ThreadsWithoutRoom { threads, gave_way, most })
}

fn never_slept(record: &AttachRecord) -> Option<AttachCaveat> {
    let threads = record.never_slept.clone();
    (!threads.is_empty()).then_some(AttachCaveat::NeverSlept { threads })
}

/// Names with a deadline that no thread had.
fn unjudged(asked: &AttachParameters, record: &AttachRecord) -> Option<AttachCaveat> {
    let named = record.rows.iter().filter(|row| row.tid.is_none());
    let known: Vec<String> = named.map(|row| row.series.clone()).collect();
    let is_unknown = |name: &&String| !known.contains(name);
    let names = asked.deadlines.iter().map(|own| &own.name).filter(is_unknown).cloned();
    let names: Vec<String> = names.collect();
    (!names.is_empty()).then_some(AttachCaveat::DeadlineOfNoThread { names, known })
}

fn unseen(record: &AttachRecord) -> Option<AttachCaveat> {
    let of_names = || record.rows.iter().filter(|row| row.tid.is_none());
    let unseen: u64 = of_names().map(|row| row.unmatched).sum();
    let wakeups: u64 = of_names().map(|row| row.wakeups).sum();
    (unseen > wakeups / UNSEEN && unseen > 1)
        .then_some(AttachCaveat::WakeupsUnseen { unseen, wakeups })
}

/// As many as are worth a word where they were missed.
fn periods_unseen(record: &AttachRecord) -> Option<AttachCaveat> {
    let with_period = || {
        let own = record.rows.iter().filter(|row| row.tid.is_some());
        own.filter(|row| row.period_ns.is_some())
    };
    let unseen: u64 = with_period().filter_map(|row| row.unsure_periods).sum();
    let missed: u64 = with_period().filter_map(|row| row.missed).sum();
    let met: u64 = with_period().map(AttachedRow::expiries).sum();
    let periods = met + missed + unseen;
    MissedPeriods::are_material(unseen, periods)
        .then_some(AttachCaveat::PeriodsUnseen { unseen, periods })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{AttachedCommand, Caveat, ThreadDeadline};

    fn codes(by: &str, record: &AttachRecord) -> Vec<(String, String)> {
        codes_with(by, Vec::new(), record)
    }

    fn codes_with(
        by: &str,
        deadlines: Vec<ThreadDeadline>,
        record: &AttachRecord,
    ) -> Vec<(String, String)> {
        let (by, target) = (by.into(), "12".into());
        let asked = AttachParameters { by, target, only: None, deadlines };
        let found = caveats(Some(&ProbeRecord::Attach(asked)), Some(record));
        let found = found.into_iter().map(Caveat::from);
        found.map(|caveat| (caveat.code, caveat.text)).collect()
    }

    #[test]
    fn a_deadline_of_a_name_that_no_thread_had_makes_the_run_invalid() {
        let row: AttachedRow = serde_json::from_str(
            r#"{"series": "ctl", "tid": null, "wakeups": 9, "by_timer": 9, "by_interrupt": 0,
            "by_ipi": 0, "by_task": 0, "by_own_timer": 9, "in_slack": 0, "preempted": 0,
            "unmatched": 0, "run": {"count": 0}, "ready": {"count": 0}, "blocked": {"count": 0}}"#,
        )
        .unwrap();
        let record = AttachRecord { rows: vec![row], ..AttachRecord::default() };
        let own = |name: &str| ThreadDeadline { name: name.into(), deadline_ns: 1_000_000 };
        let found = codes_with("command", vec![own("ctl"), own("act")], &record);
        assert_eq!((found.len(), found[0].0.as_str()), (1, "attach_deadline_of_no_thread"));
        assert!(found[0].1.contains("called act woke up"), "{found:?}");
        assert!(found[0].1.contains("that did are ctl."), "{found:?}");
        assert!(codes_with("command", vec![own("ctl")], &record).is_empty());
    }

    #[test]
    fn what_was_not_seen_of_attached_threads_is_reported() {
        let row = |series: &str, tid, wakeups, unmatched| {
            let text = format!(
                r#"{{"series": "{series}", "tid": {tid}, "wakeups": {wakeups},
                "by_timer": 0, "by_interrupt": 0, "by_ipi": 0, "by_task": 0, "by_own_timer": 0,
                "in_slack": 0, "preempted": 0, "unmatched": {unmatched}, "run": {{"count": 0}},
                "ready": {{"count": 0}}, "blocked": {{"count": 0}}}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        let rows = vec![row("app", "null", 1_000, 11), row("app/7", "7", 1_000, 11)];
        let seen = AttachRecord { rows, no_room: 3, room: 511, ..AttachRecord::default() };
        let found = codes("comm", &seen);
        let expected = ["attach_threads_without_room", "attach_wakeups_unseen"];
        assert_eq!(found.iter().map(|one| one.0.as_str()).collect::<Vec<_>>(), expected);
        assert!(found[0].1.contains("3 more threads") && found[0].1.contains("511"), "{found:?}");
        assert!(!found[0].1.contains("part of the time"), "{found:?}");
        let gave_way = AttachRecord { gave_way: 2, no_room: 0, ..seen };
        let found = codes("comm", &gave_way);
        assert!(found[0].1.contains("2 threads were measured for a part"), "{found:?}");
        assert!(!found[0].1.contains("no room"), "{found:?}");
        assert!(found[1].1.contains("11 times") && found[1].1.contains("1,000"), "{found:?}");
        let rows = vec![row("app", "null", 1_000, 10)];
        assert!(codes("comm", &AttachRecord { rows, ..AttachRecord::default() }).is_empty());
    }

    #[test]
    fn periods_of_which_nothing_is_known_are_told_from_missed_ones_where_they_are_many() {
        let row = |tid: u32, unsure: u64| {
            let text = format!(
                r#"{{"series": "app/{tid}", "tid": {tid}, "wakeups": 1000, "by_timer": 1000,
                "by_interrupt": 0, "by_ipi": 0, "by_task": 0, "by_own_timer": 990, "in_slack": 0,
                "period_ns": 1000000, "missed": 4, "unsure_periods": {unsure}, "preempted": 0,
                "unmatched": 1, "run": {{"count": 0}}, "ready": {{"count": 0}},
                "blocked": {{"count": 0}}}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        let of = |rows| codes("comm", &AttachRecord { rows, ..AttachRecord::default() });
        let found = of(vec![row(7, 6), row(8, 0)]);
        assert_eq!((found.len(), found[0].0.as_str()), (1, "attach_periods_unseen"));
        assert!(found[0].1.contains("6 of 1,994 periods are unsure"), "{found:?}");
        assert!(of(vec![row(7, 1), row(8, 0)]).is_empty());
    }

    #[test]
    fn an_end_is_told_of_a_process_and_of_a_command_only_where_it_failed() {
        let ended = AttachRecord { ended_ns: Some(2_000_000_000), ..AttachRecord::default() };
        assert!(codes("pid", &ended)[0].1.contains("process 12 ended 2.00 s after"));
        assert!(codes("command", &ended).is_empty() && codes("cgroup", &ended).is_empty());
        let of = |exit_code: Option<i32>, ended_by_tardy| {
            let ended = Some("signal 15".into());
            let argv = vec!["x".into()];
            let command = AttachedCommand { argv, ended, exit_code, ended_by_tardy };
            codes("command", &AttachRecord { command: Some(command), ..AttachRecord::default() })
        };
        assert_eq!(of(None, false)[0].0, "attach_command_failed");
        assert!(of(Some(0), false).is_empty() && of(None, true).is_empty());
    }
}
