//! The sentence of attached threads whose responses were judged: how many cycles missed the
//! deadline, and the worst response.

use super::sample_name;
use crate::{
    run::{CycleBegin, Document, JudgedCycles},
    units::{Nanos, count, many, share},
};

/// Number of cycles that missed the deadline, and the worst response with its cause, if known.
/// `None` if no deadline was judged.
pub(super) fn sentence(document: &Document, why: Option<&str>) -> Option<String> {
    let (stages, judged) = stages_and_others(document);
    if stages_lead(&stages, &judged)
        && let Some(text) = of_stages(&stages, why)
    {
        let others = of_timers(document, &judged, None).map(|others| format!(" {others}"));
        return Some(text + &others.unwrap_or_default());
    }
    let text = of_timers(document, &judged, why)?;
    let others = of_stages(&stages, None).map(|others| format!(" {others}"));
    Some(text + &others.unwrap_or_default())
}

/// The judged cycles that wake-ups by others begin, and those that timers begin.
fn stages_and_others(document: &Document) -> (Vec<JudgedCycles<'_>>, Vec<JudgedCycles<'_>>) {
    let is_stage = |own: &JudgedCycles<'_>| own.row.cycle_begin == CycleBegin::WakeUp;
    document.judged_cycles().into_iter().partition(is_stage)
}

/// Whether the stages come first: more of their cycles were late, or none of the others missed its
/// deadline.
fn stages_lead(stages: &[JudgedCycles<'_>], judged: &[JudgedCycles<'_>]) -> bool {
    let [of_stages, of_timers] = [stages, judged].map(|own| sum(own, |own| own.missed));
    of_timers == 0 || of_stages > of_timers
}

/// Of stages: a wake-up by others is not what made the work due.
fn of_stages(stages: &[JudgedCycles<'_>], why: Option<&str>) -> Option<String> {
    let worst = stages.iter().max_by_key(|own| own.response.max)?;
    let why = why.map(|why| format!(", {why}")).unwrap_or_default();
    let max = Nanos(worst.response.max.unwrap_or(0));
    let place = if stages.len() == 1 { String::new() } else { format!(", of {}", name(worst)) };
    Some(format!("{}; the longest took {max}{place}{why}.", words_of_stages(stages)?))
}

fn words_of_stages(stages: &[JudgedCycles<'_>]) -> Option<String> {
    let (cycles, over) = (sum(stages, |own| own.cycles), sum(stages, |own| own.missed));
    let whose = match stages {
        [] => return None,
        [one] => format!("of {}", name(one)),
        several => format!("of {} threads", count(several.len() as u64)),
    };
    let most = stages.iter().max_by_key(|own| own.missed).filter(|_| stages.len() > 1 && over > 0);
    let most = most.map_or_else(String::new, |own| {
        format!(", {} of them of {}", count(own.missed), name(own))
    });
    let part = match over {
        0 => String::new(),
        _ => format!(" ({})", share(over as f64 / cycles.max(1) as f64)),
    };
    let (over, deadline) = (count(over), deadline(stages));
    Some(format!(
        "{over} of {} {whose} took longer than {deadline}{part}{most}, from the wake-up by \
         another task to the next wait: earlier stages are not in them",
        many(cycles, "cycle")
    ))
}

fn of_timers(
    document: &Document,
    judged: &[JudgedCycles<'_>],
    why: Option<&str>,
) -> Option<String> {
    let beside = work_beside(document, judged);
    let mut text = words(document, judged)?;
    let worst = judged.iter().max_by_key(|own| own.response.max)?;
    let is_one = judged.len() == 1;
    let place = if is_one { String::new() } else { format!(", of {}", name(worst)) };
    let why = why.map(|why| format!(", {why}")).unwrap_or_default();
    let max = Nanos(worst.response.max.unwrap_or(0));
    text.push_str(&format!("; the worst response took {max}{place}{why}."));
    let late = judged.iter().filter_map(|own| own.row.lateness?.max).max();
    if let Some(late) = late {
        let its = if is_one { "Its" } else { "Their" };
        text.push_str(&format!(" {its} wake-ups were at most {} late.", Nanos(late)));
    }
    match sum(judged, |own| own.row.unmatched) {
        0 => {}
        1 => text.push_str(" At most 1 more cycle was not seen."),
        more => text.push_str(&format!(" At most {} more cycles were not seen.", count(more))),
    }
    text.push_str(&without_period(document, judged));
    text.extend(beside);
    Some(text)
}

/// Of event loops without a period, the longest work for others, if it took longer than the
/// deadline.
fn work_beside(document: &Document, judged: &[JudgedCycles<'_>]) -> Option<String> {
    let over = |own: &JudgedCycles<'_>| document.other_work_over(own.row, own.deadline_ns);
    let (most, longest_ns) = judged
        .iter()
        .filter_map(|own| Some((own, over(own)?)))
        .max_by_key(|(_, longest_ns)| *longest_ns)?;
    Some(format!(
        " But work of {} for others took up to {}, longer than its deadline: how late what fell \
         due meanwhile was is not known.",
        name(most),
        Nanos(longest_ns)
    ))
}

/// What is not known of threads that set their timer anew for each cycle, at no fixed distance:
/// a program that is behind its own schedule may do so.
fn without_period(document: &Document, judged: &[JudgedCycles<'_>]) -> String {
    let without = judged.iter().filter(|own| document.is_without_period(own.row));
    let names: Vec<String> = without.map(name).collect();
    let whose = match &names[..] {
        [] => return String::new(),
        [one] => one.clone(),
        several => many(several.len() as u64, "thread"),
    };
    format!(
        " No period was found in the timers of {whose}: what a cycle was late by before its timer \
         was set is not known."
    )
}

/// How many cycles missed the deadline, without the end of the sentence; `None` if no deadline was
/// judged.
pub(super) fn cycles(document: &Document) -> Option<String> {
    let (stages, judged) = stages_and_others(document);
    match stages_lead(&stages, &judged) {
        true => words_of_stages(&stages).or_else(|| words(document, &judged)),
        false => words(document, &judged),
    }
}

/// Page faults, where a quarter or more of the late cycles had some, of the thread with the most
/// late ones. They may be why these were late, and others behind them.
pub(super) fn faults(document: &Document) -> Option<String> {
    let judged = document.judged_cycles();
    let most = judged.iter().max_by_key(|own| own.row.over.map_or(0, |over| over.cycles))?;
    let over = most.row.over?;
    let faults = over.faults.filter(|faults| faults.cycles > over.cycles / 4)?;
    Some(format!(
        "{} of {} over the deadline had page faults, {} in all.",
        count(faults.cycles),
        many(over.cycles, "cycle"),
        count(faults.minor.saturating_add(faults.major))
    ))
}

fn words(document: &Document, judged: &[JudgedCycles<'_>]) -> Option<String> {
    let (cycles, missed) = (sum(judged, |own| own.cycles), sum(judged, |own| own.missed));
    let whose = match judged {
        [] => return None,
        [one] => format!(" of {}", name(one)),
        several => format!(" of {} threads", count(several.len() as u64)),
    };
    let deadline = deadline(judged);
    if missed == 0 {
        let seen = work_beside(document, judged).map_or("", |_| " that tardy saw");
        return Some(format!("All {}{whose}{seen} met {deadline}", many(cycles, "cycle")));
    }
    let most = judged.iter().max_by_key(|own| own.missed).filter(|_| judged.len() > 1);
    let most = most.map_or_else(String::new, |own| {
        format!(", {} of them of {}", count(own.missed), name(own))
    });
    Some(format!(
        "{} of {}{whose} missed {deadline} ({}){most}",
        count(missed),
        many(cycles, "cycle"),
        share(missed as f64 / cycles.max(1) as f64)
    ))
}

fn name(judged: &JudgedCycles<'_>) -> String {
    sample_name::series(&judged.row.series).into_owned()
}

fn sum(judged: &[JudgedCycles<'_>], of: impl Fn(&JudgedCycles<'_>) -> u64) -> u64 {
    judged.iter().map(of).fold(0, u64::saturating_add)
}

fn deadline(judged: &[JudgedCycles<'_>]) -> String {
    let first = judged.first().map_or(0, |own| own.deadline_ns);
    match judged.iter().all(|own| own.deadline_ns == first) {
        true => format!("the deadline of {}", Nanos(first).typed()),
        false => "their deadlines".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::faults;
    use crate::{
        report::{fixture, headline::headline},
        run::{AttachedCommand, AttachedFaults, CycleBegin, SeriesSummary},
    };

    fn names(series: Vec<&SeriesSummary>) -> Vec<&str> {
        series.iter().map(|own| own.name.as_str()).collect()
    }

    #[test]
    fn the_responses_of_judged_threads_lead_and_the_wake_ups_of_others() {
        let mut document = fixture::judged();
        assert_eq!(names(document.leading()), ["ctl/response", "log"]);
        let judged = document.judged_cycles();
        let counts: Vec<_> = judged.iter().map(|own| (own.cycles, own.missed)).collect();
        // Of 24 missed periods and 19 cycles that were not seen, 4 had no cycle for certain.
        assert_eq!(counts, [(2_980, 232)]);
        document.lead_by_responses();
        assert_eq!(names(document.wakeups().collect()), ["ctl/response", "log"]);
        assert_eq!(names(document.leading()), ["ctl/response", "log"]);
        assert_eq!(document.judged_cycles().len(), 1);
        let response = document.wakeups().next().unwrap();
        let row = document.attached_row(response).map(|row| row.series.as_str());
        assert_eq!(row, Some("ctl"));
    }

    #[test]
    fn the_work_of_threads_of_tardy_leads_nothing() {
        let mut document = fixture::of("timer", &["cpu0", "cpu0/response"]);
        document.parameters.deadline_ns = Some(1_000_000);
        document.series[1].stage = Some("response".into());
        assert_eq!(names(document.leading()), ["cpu0"]);
    }

    #[test]
    fn the_headline_counts_cycles_over_the_deadline_before_wake_ups() {
        let mut document = fixture::judged();
        assert_eq!(
            headline(&document),
            "232 of 2,980 cycles of ctl missed the deadline of 1ms (7.8%); the worst response \
             took 271 ms. Its wake-ups were at most 5.49 ms late. At most 19 more cycles were not \
             seen."
        );
        if let Some(record) = &mut document.attached {
            for row in &mut record.rows {
                (row.missed, row.unmatched) = (Some(0), 0);
                row.over.iter_mut().for_each(|over| over.cycles = 0);
            }
        }
        document.series[0].missed = Some(0);
        let said = headline(&document);
        assert!(said.starts_with("All 2,976 cycles of ctl met the deadline of 1ms; "), "{said}");
    }

    #[test]
    fn a_thread_without_a_period_may_be_later_than_its_cycles_say() {
        let mut document = fixture::judged();
        for row in document.attached.iter_mut().flat_map(|record| &mut record.rows) {
            (row.missed, row.period_ns) = (None, None);
        }
        let said = headline(&document);
        let last = "No period was found in the timers of ctl: what a cycle was late by before its \
                    timer was set is not known.";
        assert!(said.ends_with(last), "{said}");
    }

    #[test]
    fn work_for_others_beyond_the_deadline_leaves_open_what_fell_due_meanwhile() {
        let mut document = fixture::judged();
        for row in document.attached.iter_mut().flat_map(|record| &mut record.rows) {
            (row.missed, row.period_ns, row.unmatched) = (None, None, 0);
            row.over.iter_mut().for_each(|over| over.cycles = 0);
            row.other_work = row.lateness;
        }
        document.series[0].missed = Some(0);
        let said = headline(&document);
        let first = "All 2,976 cycles of ctl that tardy saw met the deadline of 1ms; ";
        assert!(said.starts_with(first), "{said}");
        let last = "But work of ctl for others took up to 5.49 ms, longer than its deadline: how \
                    late what fell due meanwhile was is not known.";
        assert!(said.ends_with(last), "{said}");
        // With a timer that counts its expiries that is known.
        for row in document.attached.iter_mut().flat_map(|record| &mut record.rows) {
            row.kept_waiting = row.lateness;
        }
        assert!(!headline(&document).contains("work of"));
    }

    #[test]
    fn page_faults_are_told_where_many_late_cycles_had_some() {
        let mut document = fixture::judged();
        let mut with = |cycles| {
            let rows = document.attached.iter_mut().flat_map(|record| &mut record.rows);
            for over in rows.filter_map(|row| row.over.as_mut()) {
                over.faults = Some(AttachedFaults { cycles, minor: 59_390, major: 2 });
            }
            faults(&document)
        };
        assert_eq!(with(57), None, "a quarter of them");
        let expected = "184 of 228 cycles over the deadline had page faults, 59,392 in all.";
        assert_eq!(with(184).as_deref(), Some(expected));
    }

    #[test]
    fn a_command_that_crashed_is_reported_before_what_was_measured() {
        let mut document = fixture::judged();
        let command = AttachedCommand {
            argv: vec!["./ctl".into()],
            ended: Some("signal 11".into()),
            exit_code: None,
            ended_by_tardy: false,
        };
        if let Some(record) = &mut document.attached {
            (record.command, record.ended_ns) = (Some(command), Some(1_200_000_000));
        }
        let said = headline(&document);
        let first = "The command was killed by signal 11 (SIGSEGV) after 1.20 s. 232 of 2,980 ";
        assert!(said.starts_with(first), "{said}");
    }

    #[test]
    fn of_several_threads_the_one_that_missed_most_is_named() {
        let mut document = fixture::judged();
        let mut other = document.clone();
        let rename = |text: &mut String| *text = text.replacen("ctl", "act", 1);
        other.series.truncate(2);
        for own in &mut other.series {
            rename(&mut own.name);
            own.stage_of.iter_mut().for_each(rename);
            own.max = Some(9_000_000);
        }
        let mut row = other.attached.unwrap().rows.remove(0);
        rename(&mut row.series);
        row.over.iter_mut().for_each(|over| (over.cycles, over.deadline_ns) = (3, 5_000_000));
        document.series.extend(other.series);
        document.attached.iter_mut().for_each(|record| record.rows.push(row.clone()));
        let said = headline(&document);
        assert!(
            said.starts_with(
                "239 of 5,960 cycles of 2 threads missed their deadlines (4.0%), 232 of them of \
                 ctl; the worst response took 271 ms, of ctl. Their wake-ups"
            ),
            "{said}"
        );
    }

    #[test]
    fn a_thread_that_works_otherwise_than_others_of_its_name_is_judged_by_itself() {
        let mut document = fixture::judged();
        let of_thread = |own: &SeriesSummary| own.name.starts_with("ctl/77");
        let mut series: Vec<_> =
            document.series.iter().filter(|own| of_thread(own)).cloned().collect();
        for own in &mut series {
            own.name = own.name.replace("77", "78");
        }
        document.series.extend(series);
        if let Some(record) = &mut document.attached {
            let mut row = record.rows[1].clone();
            (row.series, row.tid, row.cycle_begin) =
                ("ctl/78".into(), Some(78), CycleBegin::WakeUp);
            row.over.iter_mut().for_each(|over| over.cycles = 300);
            record.rows.push(row);
        }
        let said = headline(&document);
        let stage = "300 of 2,976 cycles of ctl/78 took longer than the deadline of 1ms";
        assert!(said.starts_with(stage), "{said}");
        assert!(said.contains(" 232 of 2,980 cycles of ctl missed the deadline of 1ms"), "{said}");
    }

    #[test]
    fn a_stage_is_over_the_deadline_or_not_and_never_meets_it() {
        let mut document = fixture::judged();
        for row in document.attached.iter_mut().flat_map(|record| &mut record.rows) {
            (row.cycle_begin, row.missed, row.period_ns) = (CycleBegin::WakeUp, None, None);
            row.lateness = None;
        }
        let said = headline(&document);
        assert!(
            said.starts_with(
                "228 of 2,976 cycles of ctl took longer than the deadline of 1ms (7.7%), from the \
                 wake-up by another task to the next wait: earlier stages are not in them; the \
                 longest took 271 ms."
            ),
            "{said}"
        );
        for row in document.attached.iter_mut().flat_map(|record| &mut record.rows) {
            row.over.iter_mut().for_each(|over| over.cycles = 0);
        }
        let said = headline(&document);
        assert!(said.starts_with("0 of 2,976 cycles of ctl took longer"), "{said}");
        assert!(!said.contains(" met "), "{said}");
    }
}
