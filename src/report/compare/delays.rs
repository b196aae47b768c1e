//! Wake-up to running of the threads of a name, by perf and by `tardy run attach`: one thing,
//! measured by different programs.
//!
//! Of the same seconds (two runs of 6 s on Linux 6.18, perf 6.1) perf's events and attach had the
//! same wake-ups up to 1%, and medians that differed by up to 5%; perf sched timehist cuts off
//! what is below a microsecond, and had medians of 5.0 us for 5.5 us. So they are described beside
//! each other, and not judged.

use std::collections::BTreeSet;

use crate::run::{Document, ProbeRecord};

/// Programs whose imported runs are such delays, as their importers call them.
const OF_PERF: [&str; 2] = ["perf sched timehist", "perf script"];

/// What has this name in an attach run beside its lateness.
const DISPATCH: &str = "dispatch";

/// What the lateness is called where the dispatch stands in its place.
const LATENESS: &str = "lateness";

fn is_of_perf(document: &Document) -> bool {
    matches!(&document.probe, ProbeRecord::Other(other) if OF_PERF.contains(&other.name.as_str()))
}

/// Whether all of these are such delays, and not all of one program: they are comparable, and not
/// judged.
pub(super) fn are_of_several_programs<'a>(
    documents: impl IntoIterator<Item = &'a Document>,
) -> bool {
    let (mut names, mut perf, mut are_all) = (BTreeSet::new(), false, true);
    for document in documents {
        names.insert(document.probe.name().to_owned());
        perf |= is_of_perf(document);
        are_all &= is_of_perf(document) || matches!(document.probe, ProbeRecord::Attach(_));
    }
    perf && are_all && names.len() > 1
}

/// Of a run of attach: puts the dispatch of all wake-ups of a name in the place of the lateness of
/// those by its own timers. Series keep their names, by which the log has them.
pub(super) fn by_dispatch(document: &mut Document) {
    if !matches!(document.probe, ProbeRecord::Attach(_)) {
        return;
    }
    let wholes: Vec<String> = document.wakeups().map(|series| series.name.clone()).collect();
    for whole in wholes {
        let is_it = |of: &Option<String>| of.as_deref() == Some(whole.as_str());
        let mut series = document.series.iter_mut();
        let dispatch =
            series.find(|own| is_it(&own.stage_of) && own.stage.as_deref() == Some(DISPATCH));
        // Without one its latency is the dispatch.
        let Some(dispatch) = dispatch else { continue };
        (dispatch.stage, dispatch.stage_of) = (None, None);
        if let Some(own) = document.series.iter_mut().find(|own| own.name == whole) {
            (own.stage, own.stage_of) = (Some(LATENESS.into()), Some(whole));
        }
    }
}

/// Gives the series that [`by_dispatch`] has put elsewhere the names of their places, once the log
/// has been read.
pub(super) fn rename(document: &mut Document) {
    for own in &mut document.series {
        if own.stage.as_deref() == Some(LATENESS) {
            own.name = format!("{}/{LATENESS}", own.name);
        } else if own.stage.is_none()
            && let Some(whole) = own.name.strip_suffix("/dispatch")
        {
            own.name = whole.to_owned();
        }
    }
}

/// What is to be known of a comparison of several programs.
pub(super) fn remark(documents: &[&Document]) -> Option<String> {
    are_of_several_programs(documents.iter().copied()).then(|| {
        let timehist = documents.iter().any(|document| document.probe.name() == OF_PERF[0]);
        let cut = match timehist {
            true => {
                " perf sched timehist cuts off what is below a microsecond, and wake-ups with \
                      less than that are not in it."
            }
            false => "",
        };
        format!(
            "Described, not judged: these are delays from the wake-up to running, of attach the \
             dispatch, as different programs measured them. Of the same seconds their medians \
             differ by up to 5%, as each records for itself and slows what it records.{cut} To \
             judge, take runs of one program on both sides."
        )
    })
}
