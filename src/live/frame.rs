//! One frame: what the run is, the table, the sections below it, and the keys.

use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
    style::Style,
};

use super::{
    columns::Pane,
    ink::Ink,
    panels,
    state::{OpenPage, ViewState},
    table,
    view::{LiveStatus, LiveView},
};
use crate::{
    plain::plain,
    units::{Nanos, many, span},
};

/// The smallest terminal that it fits.
const LEAST: (u16, u16) = (80, 24);
/// Lines that the sections have at least.
const LEAST_PANELS: usize = 10;
/// Lines above the rows, with the heading of the table.
const HEAD: usize = 3;

/// Draws a frame into all of a buffer.
pub(crate) fn draw(buffer: &mut Buffer, view: &LiveView, state: &ViewState, ink: Ink) {
    let area = buffer.area;
    if area.width < LEAST.0 || area.height < LEAST.1 {
        return too_small(buffer);
    }
    if let Some(page) = &state.page {
        return over(buffer, page, ink);
    }
    let rows = state.rows(view).len().max(1);
    let room = usize::from(area.height).saturating_sub(HEAD + 2);
    let wanted = panels::wanted(view, state, area.width).max(LEAST_PANELS);
    let shown = rows.min(room.saturating_sub(wanted.min(LEAST_PANELS.max(room / 3))));
    whole(buffer, view, state, ink, shown);
    let y = area.bottom().saturating_sub(1);
    keys(&mut Pane::new(buffer, Rect { y, height: 1, ..area }), state, rows, shown, ink);
}

/// A frame as lines of text, as high as it needs to be, without the keys.
#[must_use]
pub(crate) fn text(view: &LiveView, width: u16, ink: Ink) -> String {
    let state = ViewState::new();
    let width = width.max(LEAST.0);
    let rows = view.rows.len().max(1);
    let height = HEAD + rows + 1 + panels::wanted(view, &state, width);
    // More than any machine has lines for.
    let height = u16::try_from(height).unwrap_or(u16::MAX).min(u16::MAX / width.max(1));
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    whole(&mut buffer, view, &state, ink, rows);
    lines(&buffer)
}

/// What a buffer shows, without styles.
#[must_use]
pub(super) fn lines(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in buffer.area.top()..buffer.area.bottom() {
        let cells = (buffer.area.left()..buffer.area.right())
            .filter_map(|x| buffer.cell(Position::new(x, y)))
            .map(ratatui::buffer::Cell::symbol);
        out.push_str(cells.collect::<String>().trim_end());
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// All but the keys, with `shown` rows of the table.
fn whole(buffer: &mut Buffer, view: &LiveView, state: &ViewState, ink: Ink, shown: usize) {
    let area = buffer.area;
    let mut top = Pane::new(buffer, area);
    head(&mut top, view, state, ink);
    table::draw(&mut top, view, state, ink, shown);
    let used = u16::try_from(HEAD + shown.max(1) + 1).unwrap_or(u16::MAX);
    let y = area.y.saturating_add(used).min(area.bottom());
    let height = area.bottom().saturating_sub(y.saturating_add(1));
    panels::draw(buffer, Rect { y, height, ..area }, view, state, ink);
}

/// What it is and how far; then how much it measured, and the worst.
fn head(pane: &mut Pane, view: &LiveView, state: &ViewState, ink: Ink) {
    let what = format!("tardy: {}, {}", plain(&view.name), plain(&view.probe));
    let (status, style) = progress(view, ink);
    let status = if state.is_frozen { format!("FROZEN, {status}") } else { status };
    pane.spread((&what, ink.bold()), (&status, style));
    let (left, right) = (measured(view), own(view));
    pane.spread((&left, Style::new()), (&right, ink.dim()));
}

fn progress(view: &LiveView, ink: Ink) -> (String, Style) {
    if view.read < 1.0 {
        return (format!("reading what came before, {:.0}%", view.read * 1e2), ink.doubtful());
    }
    match &view.status {
        LiveStatus::Arranging => ("getting ready".into(), ink.doubtful()),
        LiveStatus::WarmUp => (format!("warm-up, {} left", span(-view.elapsed_s)), ink.doubtful()),
        LiveStatus::Running => {
            let elapsed = span(view.elapsed_s);
            let text = match view.left_s {
                Some(left) => format!("running {elapsed}, {} left", span(left.max(0.0))),
                None => format!("running {elapsed}, no end set"),
            };
            (text, ink.good())
        }
        LiveStatus::Ended(how) => (how.clone(), ink.bold()),
    }
}

/// `34,567 wake-ups; worst 1.2 ms on cpu1 at 12.3 s, 61% softirq: NET_RX`
fn measured(view: &LiveView) -> String {
    let once = || view.rows.iter().filter(|row| row.pooled_in.is_none() && row.leads);
    let sum = |of_responses: bool| {
        let those = once().filter(|row| row.is_response == of_responses);
        those.fold(0_u64, |sum, row| sum.saturating_add(row.samples))
    };
    let mut text = match (sum(true), sum(false)) {
        (0, samples) => many(samples, view.sample.0),
        (responses, 0) => many(responses, "response"),
        (responses, samples) => {
            format!("{}, {}", many(responses, "response"), many(samples, view.sample.0))
        }
    };
    // What has a deadline comes first, however late others were.
    let rows = || view.rows.iter().filter(|row| row.max_ns.is_some() && row.leads);
    let worst = |of_responses: bool| {
        rows().filter(|row| row.is_response == of_responses).max_by_key(|row| row.max_ns)
    };
    let worst = worst(true).or_else(|| worst(false));
    if let Some(row) = worst
        && let Some(max_ns) = row.max_ns
    {
        let of = |kept: &&super::view::KeptSample| row.has(kept) && kept.latency_ns == max_ns;
        let (at_s, why) = match view.kept.iter().find(of) {
            Some(kept) => (kept.at_s, format!(", {}", plain(&kept.cause))),
            None => (row.max_s.map(|(from, to)| from.midpoint(to)), String::new()),
        };
        let at = at_s.map_or_else(String::new, |at| format!(" at {at:.1} s"));
        text.push_str(&format!("; worst {} on {}{at}{why}", Nanos(max_ns), plain(&row.name)));
    }
    text
}

/// What this view costs.
fn own(view: &LiveView) -> String {
    let share = |share: f64| format!("view {:.1}% of a CPU", share * 1e2);
    view.own_share.map_or_else(String::new, share)
}

fn keys(pane: &mut Pane, state: &ViewState, rows: usize, shown: usize, ink: Ink) {
    if let Some(typed) = &state.typed {
        let text = format!(" series or CPU: {}_  (enter takes it, esc leaves it)", plain(typed));
        return pane.spread((&text, ink.keys()), ("", ink.keys()));
    }
    let series = if state.series.is_empty() { "all" } else { &state.series };
    let cause = state.cause.as_deref().unwrap_or("all");
    let freeze = if state.is_frozen { "continue" } else { "freeze" };
    let text = format!(
        " q quit  space {freeze}  s sort: {}  f series: {series}  c cause: {cause}  enter  ?",
        state.sort.name()
    );
    let first = state.first.min(rows.saturating_sub(shown));
    let part = match shown < rows {
        true => format!("{}-{} of {rows} ", first + 1, first + shown),
        false => String::new(),
    };
    pane.spread((&text, ink.keys()), (&part, ink.keys()));
}

/// A page instead of the frame.
fn over(buffer: &mut Buffer, page: &OpenPage, ink: Ink) {
    let area = buffer.area;
    let mut pane = Pane::new(buffer, area);
    let room = usize::from(area.height).saturating_sub(3);
    let first = page.first.min(page.lines.len().saturating_sub(room));
    pane.line(&page.title, ink.head());
    pane.line("", Style::new());
    page.lines.iter().skip(first).take(room).for_each(|line| pane.line(line, Style::new()));
    let y = area.bottom().saturating_sub(1);
    let mut pane = Pane::new(buffer, Rect { y, height: 1, ..area });
    let last = (first + room).min(page.lines.len());
    let part = format!("{}-{last} of {} ", first + 1, page.lines.len());
    let part = if room < page.lines.len() { part } else { String::new() };
    pane.spread((" esc back  up, down scroll", ink.keys()), (&part, ink.keys()));
}

fn too_small(buffer: &mut Buffer) {
    let area = buffer.area;
    let mut pane = Pane::new(buffer, area);
    let (width, height) = LEAST;
    pane.line(&format!("This terminal is {}x{}.", area.width, area.height), Style::new());
    pane.line(&format!("tardy needs {width}x{height}:"), Style::new());
    pane.line("make it larger,", Style::new());
    pane.line("or press q.", Style::new());
}
