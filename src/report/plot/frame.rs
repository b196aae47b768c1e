//! One panel: its place, its two axes, the lines behind the data, and marks on what matters.

use super::{
    axis::Axis,
    palette,
    picture::{Align, Colour, Picture, Point, Shape, Stroke, distance},
    text,
};

/// Height of the names at an axis.
pub(super) const SMALL: f64 = 11.0;

/// Words that are nearer than this to a point stand beside it.
const BESIDE: f64 = 12.0;

/// A rectangle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Area {
    /// Its left edge.
    pub left: f64,
    /// Its upper edge.
    pub top: f64,
    /// Its right edge.
    pub right: f64,
    /// Its lower edge.
    pub bottom: f64,
}

impl Area {
    /// From the left to the right edge.
    #[must_use]
    pub(super) fn width(&self) -> f64 {
        self.right - self.left
    }

    /// From the upper to the lower edge.
    #[must_use]
    pub(super) fn height(&self) -> f64 {
        self.bottom - self.top
    }

    fn holds(&self, other: &Self) -> bool {
        self.left <= other.left
            && self.right >= other.right
            && self.top <= other.top
            && self.bottom >= other.bottom
    }

    fn meets(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

/// A panel.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    /// Where the data is.
    pub area: Area,
    /// From left to right.
    pub x: &'a Axis,
    /// From below to above.
    pub y: &'a Axis,
    /// Whether the names of the y axis stand beside it, or beside its neighbour.
    pub names_y: bool,
    /// Whether the names of the x axis stand below it.
    pub names_x: bool,
}

impl Frame<'_> {
    /// The place of a pair of values.
    #[must_use]
    pub(super) fn at(&self, x: f64, y: f64) -> Point {
        self.at_share(self.x.share(x), self.y.share(y))
    }

    fn at_share(&self, x: f64, y: f64) -> Point {
        (self.area.left + x * self.area.width(), self.area.bottom - y * self.area.height())
    }

    /// Draws all but the data.
    pub(super) fn draw(&self, picture: &mut Picture) {
        let grid = Stroke { width: 0.7, colour: palette::GRID, dash: &[] };
        for tick in self.x.ticks.iter().filter(|tick| !tick.label.is_empty()) {
            let ends = vec![self.at_share(tick.share, 0.0), self.at_share(tick.share, 1.0)];
            picture.line(ends, grid);
        }
        for tick in self.y.ticks.iter().filter(|tick| !tick.label.is_empty()) {
            let ends = vec![self.at_share(0.0, tick.share), self.at_share(1.0, tick.share)];
            picture.line(ends, grid);
        }
        let axis = Stroke { width: 1.0, colour: palette::PALE_INK, dash: &[] };
        let corners = [(0.0, 1.0), (0.0, 0.0), (1.0, 0.0)];
        picture.line(corners.map(|(x, y)| self.at_share(x, y)).to_vec(), axis);
        self.draw_x(picture, axis);
        self.draw_y(picture, axis);
    }

    fn draw_x(&self, picture: &mut Picture, stroke: Stroke) {
        for tick in &self.x.ticks {
            let (x, y) = self.at_share(tick.share, 0.0);
            let length = if tick.label.is_empty() { 2.5 } else { 4.5 };
            picture.line(vec![(x, y), (x, y + length)], stroke);
            if self.names_x {
                let at = (x, y + 16.0);
                picture.text(at, Align::Centre, SMALL, palette::INK, &tick.label);
            }
        }
        if self.names_x {
            let at = (f64::midpoint(self.area.left, self.area.right), self.area.bottom + 33.0);
            picture.text(at, Align::Centre, SMALL, palette::INK, &self.x.title);
        }
    }

    fn draw_y(&self, picture: &mut Picture, stroke: Stroke) {
        for tick in &self.y.ticks {
            let (x, y) = self.at_share(0.0, tick.share);
            let length = if tick.label.is_empty() { 2.5 } else { 4.5 };
            picture.line(vec![(x, y), (x - length, y)], stroke);
            if self.names_y {
                let at = (x - 7.0, y + SMALL * 0.36);
                picture.text(at, Align::Right, SMALL, palette::INK, &tick.label);
            }
        }
        if self.names_y {
            let widths = self.y.ticks.iter().map(|tick| text::width(&tick.label, SMALL));
            let widest = widths.fold(0.0, f64::max);
            let middle = f64::midpoint(self.area.top, self.area.bottom);
            let at = (self.area.left - widest - 16.0, middle);
            picture.upward(at, SMALL, palette::INK, &self.y.title);
        }
    }
}

/// Words beside what they speak of, none over another.
#[derive(Debug, Default)]
pub(super) struct Labels {
    /// Where words stand.
    taken: Vec<Area>,
    /// Where data is.
    data: Vec<Area>,
}

impl Labels {
    /// Keeps words away from a line, as far as there is room elsewhere.
    pub(super) fn avoid(&mut self, line: &[Point]) {
        const STEP: f64 = 6.0;
        for pair in line.windows(2) {
            let &[from, to] = pair else { continue };
            let steps = (distance(from, to) / STEP).ceil().clamp(1.0, 1_000.0);
            for step in 0..=steps as u32 {
                let share = f64::from(step) / steps;
                self.avoid_point((
                    from.0 + (to.0 - from.0) * share,
                    from.1 + (to.1 - from.1) * share,
                ));
            }
        }
    }

    /// Keeps words away from a point.
    pub(super) fn avoid_point(&mut self, (x, y): Point) {
        let area = Area { left: x - 2.0, top: y - 2.0, right: x + 2.0, bottom: y + 2.0 };
        self.data.push(area);
    }

    /// Writes beside `point`, inside `bounds`.
    pub(super) fn put(
        &mut self,
        picture: &mut Picture,
        bounds: &Area,
        point: Point,
        label: &str,
        colour: Colour,
    ) {
        let label = text::cut(label, SMALL, bounds.width());
        let width = text::width(&label, SMALL);
        let place = self.place(bounds, point, width);
        let at = (place.left, place.bottom - 0.2 * SMALL);
        picture.text(at, Align::Left, SMALL, colour, &label);
        let near = (point.0.clamp(place.left, place.right), point.1.clamp(place.top, place.bottom));
        // What does not stand beside its point is tied to it.
        if distance(near, point) > BESIDE {
            let stroke = Stroke { width: 0.7, colour: palette::PALE_INK, dash: &[] };
            picture.line(vec![point, near], stroke);
        }
        self.taken.push(place);
    }

    fn place(&self, bounds: &Area, (x, y): Point, width: f64) -> Area {
        let at = |left: f64, base: f64| Area {
            left,
            top: base - SMALL,
            right: left + width,
            bottom: base + 0.2 * SMALL,
        };
        const OFFSETS: [f64; 14] = [
            -8.0, 4.0, 18.0, -22.0, 32.0, -36.0, 46.0, -50.0, 60.0, -64.0, 74.0, -78.0, -92.0,
            -106.0,
        ];
        let places = OFFSETS.into_iter().flat_map(|dy| {
            let beside = if dy.abs() < 5.0 { 9.0 } else { 5.0 };
            [at(x - width - beside, y + dy), at(x + beside, y + dy), at(x - width / 2.0, y + dy)]
        });
        let meets = |all: &[Area], place: &Area| all.iter().any(|area| area.meets(place));
        let near = Area { left: x, top: y - 5.0, right: x, bottom: y + 5.0 };
        let fits =
            |place: &Area| bounds.holds(place) && !near.meets(place) && !meets(&self.taken, place);
        let inside = (x - width).clamp(bounds.left, (bounds.right - width).max(bounds.left));
        let mut free = places.clone().filter(fits).filter(|place| !meets(&self.data, place));
        // Over data rather than over other words.
        let found = free.next().or_else(|| places.clone().find(fits));
        found.unwrap_or_else(|| at(inside, bounds.top + SMALL))
    }
}

/// A ring around the largest latency, so that one point among thousands is seen.
pub(super) fn ring(picture: &mut Picture, at: Point, colour: Colour) {
    picture.shapes.push(Shape::Ring { at, radius: 5.0, width: 1.3, colour });
}
