//! The sheet: the words above and below, the legend between, and the room that is left for panels.
//! Nothing of it ever covers data.

use super::{
    PlotError, Size,
    frame::{Area, SMALL},
    palette,
    picture::{Align, Colour, Picture, Shape, Stroke},
    range::LatencyRange,
    subject::RunLabel,
    text,
};
use crate::report::time_range::TimeRange;

/// The size for which widths and letters were chosen; others are scaled.
const LAYOUT: (f64, f64) = (900.0, 560.0);

const MARGIN: f64 = 14.0;
const LINE: f64 = 15.0;
/// Height of the letters of a title.
const TITLE: f64 = 17.0;

/// A panel below this shows nothing.
const LEAST_PANEL: (f64, f64) = (110.0, 70.0);

/// What stands before an entry of a legend.
#[derive(Debug, Clone, Copy)]
pub(super) enum Mark {
    /// A piece of its line.
    Line(&'static [f64]),
    /// One of its points.
    Dot,
}

/// An entry of a legend.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// Before its words.
    pub mark: Mark,
    /// The colour of the mark.
    pub colour: Colour,
    /// Its words.
    pub words: String,
}

/// A sheet that is being filled from above and from below.
#[derive(Debug)]
pub(super) struct Canvas {
    /// What is on it so far.
    pub picture: Picture,
    /// What is left.
    pub room: Area,
    /// The range of the latency axis.
    pub latency: LatencyRange,
    /// The range of the time axis.
    pub time: TimeRange,
    size: Size,
}

impl Canvas {
    /// An empty one.
    #[must_use]
    pub(super) fn new(size: Size) -> Self {
        let (width, height) = (f64::from(size.width), f64::from(size.height));
        let scale = (width / LAYOUT.0).min(height / LAYOUT.1).max(0.55);
        let picture = Picture::new(width / scale, height / scale);
        let room = Area {
            left: MARGIN,
            top: MARGIN - 4.0,
            right: picture.width - MARGIN,
            bottom: picture.height - MARGIN + 4.0,
        };
        Self { picture, room, latency: LatencyRange::ALL, time: TimeRange::ALL, size }
    }

    /// What the picture is called by who made it.
    pub(super) fn title(&mut self, title: &str) {
        let base = self.room.top + TITLE;
        let title = text::cut(title, TITLE, self.room.width());
        self.picture.text((self.room.left, base), Align::Left, TITLE, palette::INK, &title);
        self.room.top = base + 7.0;
    }

    /// A run's name and what was measured where, behind a piece of its line where it has one.
    pub(super) fn head(&mut self, subject: &RunLabel, colour: Option<Colour>, alone: bool) {
        let big = if alone { 15.0 } else { 12.0 };
        let mut left = self.room.left;
        let base = self.room.top + big;
        if let Some(colour) = colour {
            let (y, end) = (base - big * 0.36, left + 34.0);
            let stroke = Stroke { width: 2.6, colour, dash: &[] };
            self.picture.line(vec![(left, y), (end, y)], stroke);
            left = end + 8.0;
        }
        let name = text::cut(&subject.name, big, (self.room.right - left) * 0.9);
        self.picture.text((left, base), Align::Left, big, palette::INK, &name);
        self.room.top = base + 5.0;
        let (start, indent) = if alone {
            self.room.top += SMALL + 2.0;
            (self.room.top - 4.0, 0.0)
        } else {
            (base, text::width(&name, big) + 10.0)
        };
        let room = self.room.right - left;
        for (number, line) in text::wrap(&subject.line, SMALL, room, indent, 3).iter().enumerate() {
            let y = start + number as f64 * (SMALL + 3.0);
            let x = if number == 0 { left + indent } else { left };
            self.picture.text((x, y), Align::Left, SMALL, palette::PALE_INK, line);
            self.room.top = y + 5.0;
        }
    }

    /// Sentences at the foot.
    pub(super) fn foot(&mut self, notes: &[String]) {
        let notes: Vec<&str> =
            notes.iter().map(String::as_str).filter(|note| !note.is_empty()).collect();
        let lines = text::wrap(&notes.join(" "), SMALL, self.room.width(), 0.0, 6);
        self.room.bottom -= lines.len() as f64 * (SMALL + 3.0) + 4.0;
        for (number, line) in lines.iter().enumerate() {
            let y = self.room.bottom + 4.0 + (number + 1) as f64 * (SMALL + 3.0) - 4.0;
            let at = (self.room.left, y);
            self.picture.text(at, Align::Left, SMALL, palette::PALE_INK, line);
        }
    }

    /// The legend, in as many rows as it needs.
    pub(super) fn legend(&mut self, entries: &[Entry]) {
        let mut x = self.room.left;
        self.room.top += 4.0;
        for entry in entries {
            let words = text::cut(&entry.words, SMALL, self.room.width() - 40.0);
            let mark = if matches!(entry.mark, Mark::Dot) { 8.0 } else { 26.0 };
            let width = mark + 6.0 + text::width(&words, SMALL);
            if x > self.room.left && x + width > self.room.right {
                x = self.room.left;
                self.room.top += LINE;
            }
            let middle = self.room.top + LINE / 2.0;
            match entry.mark {
                Mark::Line(dash) => {
                    let stroke = Stroke { width: 2.2, colour: entry.colour, dash };
                    self.picture.line(vec![(x, middle), (x + mark, middle)], stroke);
                }
                // An area, so that all dots of a picture are points of its data.
                Mark::Dot => self.picture.shapes.push(Shape::Area {
                    points: vec![
                        (x, middle - 4.0),
                        (x + 8.0, middle - 4.0),
                        (x + 8.0, middle + 4.0),
                        (x, middle + 4.0),
                    ],
                    colour: entry.colour,
                }),
            }
            let at = (x + mark + 6.0, middle + SMALL * 0.36);
            self.picture.text(at, Align::Left, SMALL, palette::INK, &words);
            x += width + 20.0;
        }
        self.room.top += LINE;
    }

    /// Places for `number` panels of one size, the names of their axes beside the outer ones.
    ///
    /// # Errors
    /// They do not fit.
    pub(super) fn panels(
        &self,
        number: usize,
        names_width: f64,
        titled: bool,
    ) -> Result<Vec<Panel>, PlotError> {
        let columns = if number == 4 { 2 } else { number.clamp(1, 3) };
        let rows = number.div_ceil(columns);
        let (gap_x, title) = (22.0, if titled { 18.0 } else { 6.0 });
        let left = self.room.left + names_width;
        let bottom = self.room.bottom - 40.0;
        let width = (self.room.right - 12.0 - left + gap_x) / columns as f64 - gap_x;
        let gap_y = 8.0 + title;
        let height = (bottom - self.room.top - title + gap_y) / rows as f64 - gap_y;
        if width < LEAST_PANEL.0 || height < LEAST_PANEL.1 {
            return Err(PlotError::Small { size: self.size });
        }
        let panel = |index: usize| {
            let (row, column) = (index / columns, index % columns);
            let area_left = left + column as f64 * (width + gap_x);
            let top = self.room.top + title + row as f64 * (height + gap_y);
            let area =
                Area { left: area_left, top, right: area_left + width, bottom: top + height };
            // The last row may be shorter than the one above it.
            let is_lowest = index + columns >= number;
            Panel { area, names_y: column == 0, names_x: is_lowest }
        };
        Ok((0..number).map(panel).collect())
    }
}

/// A place for one panel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Panel {
    /// For the data.
    pub area: Area,
    /// See [`super::frame::Frame`].
    pub names_y: bool,
    /// See [`super::frame::Frame`].
    pub names_x: bool,
}
