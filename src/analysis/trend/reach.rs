//! How near the first or last day a change may be and still be found, and which alarms a change
//! stands beside.

use jiff::civil::Date;

use super::{FALSE_DISCOVERIES, TrendChange, TrendRow};
use crate::analysis::change_points::fewest_beside;

/// Days within which an alarm and a change are of the same step: a small one is placed less well by
/// the nights that were there when the alarm was raised.
const WEEK: i32 = 7;

/// The number of days that must lie on either side of a change of the longest row for it to be
/// found, however large it is, if it is the only one of all figures. `None` if no number is enough.
#[must_use]
pub fn days_beside(rows: &[TrendRow]) -> Option<usize> {
    let figures = rows.iter().flat_map(|row| &row.figures).filter(|figure| !figure.is_too_short);
    let lengths: Vec<usize> = figures.map(|figure| figure.points.len()).collect();
    let level = FALSE_DISCOVERIES / lengths.len().max(1) as f64;
    fewest_beside(lengths.into_iter().max()?, level)
}

/// Whether one of these is that which an alarm saw.
pub(super) fn has_change(changes: &[TrendChange], since: &str, is_worse: bool) -> bool {
    let Ok(since) = since.parse::<Date>() else { return false };
    changes.iter().any(|change| {
        let day = change.day.parse::<Date>();
        let days = day.map(|day| since.duration_until(day).as_hours().abs() / 24);
        (change.ratio > 1.0) == is_worse && days.is_ok_and(|days| days <= i64::from(WEEK))
    })
}
