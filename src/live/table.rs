//! The table of series: missed, now, p50, p99, max, the last minute, and in a wide terminal when
//! the worst came and who did it.

use ratatui::style::Style;

use super::{
    columns::{Pane, left, right},
    ink::Ink,
    state::{Sort, ViewState},
    strip::Scale,
    view::{KeptSample, LiveView, SeriesRow},
};
use crate::units::{Nanos, count};

/// Column widths of a latency and of a count.
const TIME: usize = 8;
const MISSED: usize = 7;
/// Column width of a time since the start: `1234.5 s`.
const WHEN: usize = 10;
/// Minimum width for the time and the cause of the worst sample.
const WIDE: usize = 120;
/// The longest name that is shown whole, in a narrow terminal and in a wide one.
const NAMES: (usize, usize) = (12, 24);

/// Column layout.
#[derive(Debug, Clone, Copy)]
struct Layout {
    name: usize,
    strip: usize,
    is_wide: bool,
}

impl Layout {
    fn of(rows: &[&SeriesRow], width: usize) -> Self {
        let is_wide = width >= WIDE;
        let most = if is_wide { NAMES.1 } else { NAMES.0 };
        let longest = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        let name = longest.clamp(7, most);
        let rest = width.saturating_sub(name + MISSED + 4 * TIME + 2);
        let strip = if is_wide { rest.saturating_sub(WHEN + 26) } else { rest };
        Self { name, strip: strip.min(60), is_wide }
    }
}

/// Draws the heading and `shown` rows, from the one that is scrolled to.
pub(super) fn draw(pane: &mut Pane, view: &LiveView, state: &ViewState, ink: Ink, shown: usize) {
    let rows = state.rows(view);
    let layout = Layout::of(&rows, pane.width());
    let scale = Scale::of(rows.iter().copied(), layout.strip);
    heading(pane, layout, scale, state, ink);
    let first = state.first.min(rows.len().saturating_sub(shown));
    for row in rows.iter().skip(first).take(shown) {
        one(pane, row, view, state, (layout, scale, ink));
    }
    if rows.is_empty() {
        let text = match view.rows.is_empty() {
            true => "no series yet",
            false => "no series fits the filters: f and c change them, esc takes them off",
        };
        pane.line(text, ink.dim());
    }
}

fn heading(pane: &mut Pane, layout: Layout, scale: Scale, state: &ViewState, ink: Ink) {
    let sorted = |name: &str, by: Sort| match state.sort == by {
        true => format!("{name}*"),
        false => name.to_owned(),
    };
    let mut pieces = vec![left(&sorted("series", Sort::Record), layout.name)];
    pieces.push(right(&sorted("missed", Sort::Missed), MISSED));
    pieces.push(right(&sorted("now", Sort::Now), TIME));
    pieces.push(right("p50", TIME));
    pieces.push(right(&sorted("p99", Sort::P99), TIME));
    pieces.push(right(&sorted("max", Sort::Max), TIME));
    if layout.is_wide {
        pieces.push(right("when", WHEN));
    }
    let room = pane.width().saturating_sub(layout.name + MISSED + 4 * TIME + 2);
    let legend = scale.legend(if layout.is_wide { layout.strip } else { room }, ink);
    pieces.push("  ".into());
    match layout.is_wide {
        true => pieces.extend([left(&legend, layout.strip), "  who".into()]),
        false => pieces.push(legend),
    }
    pane.put(pieces.into_iter().map(|piece| (piece, ink.head())));
}

fn one(
    pane: &mut Pane,
    row: &SeriesRow,
    view: &LiveView,
    state: &ViewState,
    (layout, scale, ink): (Layout, Scale, Ink),
) {
    let plain = Style::new();
    let time = |ns: Option<i64>| right(&latency(ns), TIME);
    let missed = row.missed.map_or_else(|| "-".into(), count);
    let mut pieces = vec![
        (left(&row.name, layout.name), ink.bold()),
        (right(&missed, MISSED), if row.missed.unwrap_or(0) > 0 { ink.doubtful() } else { plain }),
        (time(row.now_ns), plain),
        (time(row.p50_ns), plain),
        (time(row.p99_ns), plain),
        (time(row.max_ns), ink.bold()),
    ];
    let kept = state.kept(view).find(|kept| row.has(kept));
    if layout.is_wide {
        pieces.push((right(&moment(row, kept, state), WHEN), plain));
    }
    pieces.push(("  ".into(), plain));
    let cells = scale.cells(row, ink);
    let width = cells.len();
    pieces.extend(cells.into_iter().map(|(sign, style)| (sign.to_string(), style)));
    if layout.is_wide {
        pieces.push((" ".repeat(layout.strip.saturating_sub(width) + 2), plain));
        pieces.push((who(row, kept, state), plain));
    }
    pane.put(pieces);
}

/// When the worst came: of the kept sample, where that is the one, else to the interval.
fn moment(row: &SeriesRow, kept: Option<&KeptSample>, state: &ViewState) -> String {
    let is_it = |kept: &&KeptSample| state.cause.is_some() || Some(kept.latency_ns) == row.max_ns;
    match (kept.filter(is_it), row.max_s) {
        (Some(kept), _) => kept.at_s.map_or_else(String::new, |at_s| format!("{at_s:.1} s")),
        (None, Some((from_s, to_s))) => format!("{:.1} s", from_s.midpoint(to_s)),
        (None, None) => String::new(),
    }
}

/// Who did it, where the worst, or with a filter of causes one of that, was kept whole.
fn who(row: &SeriesRow, kept: Option<&KeptSample>, state: &ViewState) -> String {
    match kept {
        Some(kept) if Some(kept.latency_ns) == row.max_ns => crate::plain::plain(&kept.cause),
        Some(kept) if state.cause.is_some() => {
            crate::plain::plain(&format!("{} {}", Nanos(kept.latency_ns), kept.cause))
        }
        _ => "-".into(),
    }
}

/// A latency in a cell.
pub(super) fn latency(ns: Option<i64>) -> String {
    ns.map_or_else(|| "-".into(), |ns| Nanos(ns).to_string())
}
