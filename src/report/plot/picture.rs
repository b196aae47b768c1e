//! A picture as a list of shapes: what the drawing code makes, and what `paint` turns into a file.
//!
//! Lengths are in layout units, which the painter scales; nothing here knows a file format.

use super::text;

/// Right and down from the upper left corner.
pub(super) type Point = (f64, f64);

/// From one point to the other. Lengths of a picture are far from where their squares overflow.
pub(super) fn distance(from: Point, to: Point) -> f64 {
    let (right, down) = (to.0 - from.0, to.1 - from.1);
    (right * right + down * down).sqrt()
}

/// A colour, and how much of it covers what is below.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Colour {
    /// Red, green, blue.
    pub rgb: (u8, u8, u8),
    /// 1 covers all.
    pub alpha: f64,
}

/// Where a text stands relative to its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    /// Begins there.
    Left,
    /// Has its middle there.
    Centre,
    /// Ends there.
    Right,
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stroke {
    /// Its width.
    pub width: f64,
    /// Its colour.
    pub colour: Colour,
    /// Lengths drawn and left out in turn; none for a line without gaps.
    pub dash: &'static [f64],
}

/// One thing on the picture.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    /// A line through points.
    Line {
        /// At least two.
        points: Vec<Point>,
        /// Width.
        width: f64,
        /// Colour.
        colour: Colour,
    },
    /// A filled polygon.
    Area {
        /// Its corners.
        points: Vec<Point>,
        /// Colour.
        colour: Colour,
    },
    /// A filled rectangle: one cell of a heat map.
    Cell {
        /// Upper left.
        from: Point,
        /// Lower right.
        to: Point,
        /// Colour.
        colour: Colour,
    },
    /// A filled circle.
    Dot {
        /// Centre.
        at: Point,
        /// Radius.
        radius: f64,
        /// Colour.
        colour: Colour,
    },
    /// A circle around something.
    Ring {
        /// Centre.
        at: Point,
        /// Radius.
        radius: f64,
        /// Width of the line.
        width: f64,
        /// Colour.
        colour: Colour,
    },
    /// A line of text.
    Text {
        /// On its base line.
        at: Point,
        /// Without control characters.
        text: String,
        /// Height of the font.
        size: f64,
        /// Which part of it is at the point.
        align: Align,
        /// Read from below.
        upward: bool,
        /// Colour.
        colour: Colour,
    },
}

/// Shapes, the first one lowest.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Picture {
    /// Layout units.
    pub width: f64,
    /// Layout units.
    pub height: f64,
    /// What is on it.
    pub shapes: Vec<Shape>,
}

impl Picture {
    /// An empty one.
    #[must_use]
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self { width, height, shapes: Vec::new() }
    }

    /// Adds a line, in pieces where it is dashed.
    pub(super) fn line(&mut self, points: Vec<Point>, stroke: Stroke) {
        let Stroke { width, colour, dash } = stroke;
        let pieces = if dash.is_empty() { vec![points] } else { dashed(&points, dash) };
        let whole = pieces.into_iter().filter(|points| points.len() > 1);
        self.shapes.extend(whole.map(|points| Shape::Line { points, width, colour }));
    }

    /// Adds a line of text that is read from the left.
    pub(super) fn text(&mut self, at: Point, align: Align, size: f64, colour: Colour, text: &str) {
        let text = text::clean(text);
        self.shapes.push(Shape::Text { at, text, size, align, upward: false, colour });
    }

    /// Adds a line of text that is read from below, its middle at the point.
    pub(super) fn upward(&mut self, at: Point, size: f64, colour: Colour, text: &str) {
        let (text, align) = (text::clean(text), Align::Centre);
        self.shapes.push(Shape::Text { at, text, size, align, upward: true, colour });
    }
}

/// The drawn pieces of a dashed line.
fn dashed(points: &[Point], dash: &[f64]) -> Vec<Vec<Point>> {
    let mut lengths = dash.iter().copied().cycle();
    let mut left = lengths.next().unwrap_or(1.0);
    let mut drawing = true;
    let mut pieces = Vec::new();
    let mut piece: Vec<Point> = points.first().copied().into_iter().collect();
    for pair in points.windows(2) {
        let &[mut from, to] = pair else { continue };
        loop {
            let rest = distance(from, to);
            if rest <= left {
                left -= rest;
                piece.push(to);
                break;
            }
            let share = left / rest;
            from = (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share);
            piece.push(from);
            let done = std::mem::replace(&mut piece, vec![from]);
            if drawing {
                pieces.push(done);
            }
            drawing = !drawing;
            left = lengths.next().unwrap_or(1.0).max(0.5);
        }
    }
    if drawing {
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_follow_the_line_around_corners() {
        let pieces = dashed(&[(0.0, 0.0), (6.0, 0.0), (6.0, 6.0)], &[4.0, 4.0]);
        assert_eq!(pieces, [vec![(0.0, 0.0), (4.0, 0.0)], vec![(6.0, 2.0), (6.0, 6.0)]]);
    }

    #[test]
    fn a_line_of_no_length_is_no_endless_loop() {
        assert_eq!(dashed(&[(1.0, 1.0), (1.0, 1.0)], &[4.0, 4.0]).len(), 1);
        assert!(dashed(&[], &[4.0, 4.0])[0].is_empty());
    }
}
