//! What a deadline is to each series.

use super::{DIM, push_lines};
use crate::{
    report::{deadline::SeriesDeadline, sample_name, table::Table},
    run::series_name::is_response,
    units::{Nanos, count, percent, span},
};

/// Pushes the table, and what counts cannot say; `has_raw`: single samples could be kept.
pub(super) fn push(out: &mut String, found: &[SeriesDeadline], observed_s: f64, has_raw: bool) {
    let Some(first) = found.first() else { return };
    let is_same = found.iter().all(|own| own.deadline_ns == first.deadline_ns);
    let heading = match is_same {
        true => format!("deadline {}", Nanos(first.deadline_ns).typed()),
        false => "deadline".to_owned(),
    };
    let name = |own: &SeriesDeadline| match is_same {
        true => sample_name::series(&own.series).into_owned(),
        false => format!("{} {}", sample_name::series(&own.series), Nanos(own.deadline_ns).typed()),
    };
    let mut table =
        Table::new(1, &[&heading, "periods", "missed", "met", "95%", "in a row", "most in"]);
    for own in found {
        let windows = own.windows.iter();
        let windows =
            windows.map(|window| format!("{} of {}", window.most_missed, count(window.periods)));
        let share = own.share_met_low.zip(own.share_met_high);
        table.row(vec![
            name(own),
            count(own.periods),
            count(own.missed),
            own.share_met.map_or_else(|| "-".into(), never_all),
            share.map_or_else(
                || "-".into(),
                |(low, high)| format!("{}..{}", never_all(low), never_all(high)),
            ),
            own.longest_burst.map_or_else(|| "-".into(), count),
            if own.windows.is_empty() {
                "-".into()
            } else {
                windows.collect::<Vec<_>>().join(", ")
            },
        ]);
    }
    push_lines(out, &table.lines());
    for note in notes(found, observed_s, has_raw) {
        out.push_str(&format!("{DIM}{note}{DIM:#}\n"));
    }
    out.push('\n');
}

fn notes(found: &[SeriesDeadline], observed_s: f64, has_raw: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let met: Vec<&str> = found
        .iter()
        .filter(|own| own.missed == 0 && own.unseen == 0 && own.share_met.is_some())
        .map(|own| own.series.as_str())
        .collect();
    if !met.is_empty() {
        let third = span(observed_s / 3.0);
        let whose = match (met.len() == found.len(), &met[..]) {
            (true, _) => String::new(),
            (false, [one]) => format!("{}: ", sample_name::series(one)),
            (false, several) => format!("{} series: ", several.len()),
        };
        notes.push(format!(
            "{whose}none missed in {}: at 95%, less than one cluster of misses in {third} if the \
             load stays",
            span(observed_s)
        ));
    }
    notes.extend(unknown(found));
    let has_no_interval = |own: &SeriesDeadline| own.missed > 0 && own.share_met_low.is_none();
    if found.iter().any(|own| has_no_interval(own) && own.share_met.is_some()) {
        notes.push("- no interval: fewer than 10 independent misses".into());
    }
    for own in found.iter().filter(|own| own.unseen > 0) {
        let name = sample_name::series(&own.series);
        notes.push(format!(
            "- {name}: at most {} more, late ones perhaps, were not seen",
            count(own.unseen)
        ));
    }
    for own in found.iter().filter(|own| own.cycles_alone) {
        let name = sample_name::series(&own.series);
        notes.push(format!(
            "- {name}: cycles alone; a thread of it has no period, and what it skipped is in \
             no count"
        ));
    }
    if found.iter().any(|own| own.longest_burst.is_none()) {
        let mut in_counts = found.iter().filter(|own| own.longest_burst.is_none());
        // Of work there are counts alone, whatever a run keeps.
        let has_raw = has_raw && in_counts.any(|own| !is_response(&own.series));
        let remedy = if has_raw { ": --raw keeps every sample" } else { "" };
        notes.push(format!("how misses follow each other is not in counts{remedy}"));
    }
    let worst = found.iter().filter(|own| own.longest_burst.is_none()).filter_map(|own| {
        let worst = own.worst_interval?;
        Some((worst.missed, worst, &own.series))
    });
    if let Some((_, worst, series)) = worst.max_by_key(|(missed, ..)| *missed) {
        notes.push(format!(
            "most within one interval of the log: {} late of {}, on {}, at {:.1} s",
            count(worst.missed),
            count(worst.samples),
            sample_name::series(series),
            worst.start_s
        ));
    }
    notes
}

/// Why nobody knows whether the deadline was met.
fn unknown(found: &[SeriesDeadline]) -> Vec<String> {
    let mut notes = Vec::new();
    let stages = found.iter().filter(|own| own.from_wakeup);
    let stages: Vec<_> = stages.map(|own| sample_name::series(&own.series)).collect();
    if !stages.is_empty() {
        notes.push(format!(
            "- {}: from the wake-up to the next wait; earlier stages are not in it, so that \
             whether the work met the deadline is not known",
            stages.join(", ")
        ));
    }
    for (own, longest_ns) in found.iter().filter_map(|own| Some((own, own.other_work_ns?))) {
        notes.push(format!(
            "- {}: its work for others took up to {}, so that how late what fell due meanwhile was \
             is not known",
            sample_name::series(&own.series),
            Nanos(longest_ns)
        ));
    }
    notes
}

/// `99.950%`; what is not all is never rounded to it.
fn never_all(share: f64) -> String {
    let fewest =
        (3..9).find(|&decimals| share >= 1.0 || !percent(share, decimals).starts_with("100"));
    percent(share, fewest.unwrap_or(9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_that_is_not_all_is_not_called_all() {
        assert_eq!(never_all(1.0), "100.000%");
        assert_eq!(never_all(0.9995), "99.950%");
        assert_eq!(never_all(0.999_999_9), "99.99999%");
    }

    #[test]
    fn counts_say_what_they_cannot() {
        let own = SeriesDeadline {
            series: "cpu0".into(),
            deadline_ns: 500_000,
            periods: 10_000,
            missed: 3,
            unseen: 0,
            from_wakeup: false,
            cycles_alone: true,
            other_work_ns: None,
            share_met: Some(0.9997),
            share_met_low: None,
            share_met_high: None,
            longest_burst: None,
            windows: Vec::new(),
            worst_interval: None,
        };
        let of = |own: SeriesDeadline| {
            let mut out = String::new();
            push(&mut out, &[own], 60.0, true);
            anstream::adapter::strip_str(&out).to_string()
        };
        let text = of(own.clone());
        assert!(text.contains("99.970%"), "{text}");
        assert!(text.contains("fewer than 10 independent misses"), "{text}");
        assert!(text.contains("--raw keeps every sample"), "{text}");
        assert!(text.contains("cpu0: cycles alone"), "{text}");
        let unknown = SeriesDeadline { cycles_alone: false, share_met: None, ..own.clone() };
        let text = of(SeriesDeadline { from_wakeup: true, ..unknown.clone() });
        assert!(text.contains("earlier stages are not in it"), "{text}");
        assert!(!text.contains("99.970") && !text.contains("no interval"), "{text}");
        let text = of(SeriesDeadline { other_work_ns: Some(8_000_000), ..unknown });
        assert!(text.contains("cpu0: its work for others took up to 8.00 ms"), "{text}");
        let text = of(SeriesDeadline { series: "cpu0/response".into(), ..own });
        assert!(text.contains("is not in counts\n"), "--raw keeps none of work: {text}");
    }
}
