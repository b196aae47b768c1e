//! The sections below the table, side by side.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    columns::Pane,
    ink::Ink,
    sections::{self, Section},
    state::ViewState,
    view::LiveView,
};

/// Minimum width for three columns.
const THREE: u16 = 120;
/// Gap between columns.
const GAP: u16 = 2;

/// Draws them into `area`.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, view: &LiveView, state: &ViewState, ink: Ink) {
    let areas = columns(area);
    let width = |number: usize| areas.get(number).map_or(0, |area| usize::from(area.width));
    let causes = sections::causes(view, state, width(0), ink);
    let loads = sections::loads(view, ink);
    let cpus = |number| sections::cpus(view, width(number), ink);
    let interrupts = |number| sections::interrupts(view, width(number), ink);
    let caveats = |number| sections::caveats(view, width(number), ink);
    let columns = match areas.len() {
        2 => vec![vec![causes, loads, caveats(0)], vec![cpus(1), interrupts(1)]],
        _ => vec![vec![causes], vec![cpus(1), interrupts(1)], vec![loads, caveats(2)]],
    };
    for (area, sections) in areas.into_iter().zip(columns) {
        column(buffer, area, &sections, ink);
    }
}

/// Total height of the sections at this width.
#[must_use]
pub(super) fn wanted(view: &LiveView, state: &ViewState, width: u16) -> usize {
    let area = Rect::new(0, 0, width, 1);
    let areas = columns(area);
    let of = |number: usize| areas.get(number).map_or(0, |area| usize::from(area.width));
    let ink = Ink::PLAIN;
    let causes = sections::causes(view, state, of(0), ink).height();
    let loads = sections::loads(view, ink).height();
    let cpus = sections::cpus(view, of(1), ink).height();
    let interrupts = sections::interrupts(view, of(1), ink).height();
    let caveats = sections::caveats(view, of(areas.len().saturating_sub(1) & 2), ink).height();
    let right = cpus + interrupts + 1;
    match areas.len() {
        2 => right.max(causes + loads + caveats + 2),
        _ => right.max(causes).max(loads + caveats + 1),
    }
}

fn columns(area: Rect) -> Vec<Rect> {
    let number = if area.width >= THREE { 3 } else { 2 };
    // That of CPUs needs no more, and causes have long names.
    let gaps = GAP * (number - 1);
    let middle = (area.width / number).clamp(sections::CPUS, 50);
    let rest = area.width.saturating_sub(gaps + middle);
    let widths = match number {
        2 => [rest, middle, 0],
        _ => [rest / 2 + rest % 2, middle, rest / 2],
    };
    let mut x = area.x;
    let mut areas = Vec::new();
    for width in widths.into_iter().take(number.into()) {
        areas.push(Rect { x, width, ..area });
        x += width + GAP;
    }
    areas
}

/// Draws sections one below the other, each as long as there is room for.
fn column(buffer: &mut Buffer, area: Rect, sections: &[Section], ink: Ink) {
    let heights = heights(sections, usize::from(area.height));
    let mut y = area.y;
    for (section, height) in sections.iter().zip(heights) {
        let height = u16::try_from(height).unwrap_or(0);
        let mut pane = Pane::new(buffer, Rect { y, height, ..area });
        let lines = usize::from(height).saturating_sub(1);
        let hidden = section.lines.len().saturating_sub(lines);
        let title = match hidden {
            0 => section.title.clone(),
            hidden => format!("{} (+{hidden} more)", section.title),
        };
        pane.line(&title, ink.head());
        section.lines.iter().take(lines).for_each(|line| pane.put(line.clone()));
        y += height;
        // One empty line between two, where there is room for all.
        let is_roomy = sections.iter().map(Section::height).sum::<usize>() + sections.len()
            <= usize::from(area.height) + 1;
        y += u16::from(is_roomy);
    }
}

/// Lines of each section: first the heading and two lines each, then one more line in turn.
fn heights(sections: &[Section], room: usize) -> Vec<usize> {
    let wanted: Vec<usize> = sections.iter().map(Section::height).collect();
    let mut heights = vec![0; sections.len()];
    let mut left = room;
    let mut give = |number: usize, heights: &mut Vec<usize>, most: usize| {
        let wants = wanted.get(number).copied().unwrap_or(0).min(most);
        let Some(own) = heights.get_mut(number) else { return };
        let more = wants.saturating_sub(*own).min(left);
        *own += more;
        left -= more;
    };
    for number in 0..sections.len() {
        give(number, &mut heights, 2);
    }
    for most in 3..=room.max(3) {
        for number in 0..sections.len() {
            give(number, &mut heights, most);
        }
    }
    heights
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(lines: usize) -> Section {
        Section { title: String::new(), lines: vec![Vec::new(); lines] }
    }

    #[test]
    fn room_is_given_in_turn_and_none_is_wasted() {
        let sections = [section(20), section(1), section(5)];
        assert_eq!(heights(&sections, 60), [21, 2, 6]);
        assert_eq!(heights(&sections, 12), [5, 2, 5]);
        assert_eq!(heights(&sections, 5), [2, 2, 1]);
        assert_eq!(heights(&sections, 1), [1, 0, 0]);
        assert_eq!(heights(&sections, 0), [0, 0, 0]);
    }
}
