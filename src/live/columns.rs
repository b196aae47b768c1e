//! Writes lines of text into columns of a screen buffer.

use ratatui::{buffer::Buffer, layout::Rect, style::Style};

use crate::plain::cut;

/// A part of the screen, filled line by line.
#[derive(Debug)]
pub(super) struct Pane<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
    /// The next line, from the top of the area.
    line: u16,
}

impl<'a> Pane<'a> {
    /// All of `area`, which lies in the buffer.
    pub(super) fn new(buffer: &'a mut Buffer, area: Rect) -> Self {
        Self { area: area.intersection(buffer.area), buffer, line: 0 }
    }

    /// Characters in a line.
    pub(super) fn width(&self) -> usize {
        self.area.width.into()
    }

    /// Writes pieces one after the other into the next line; what does not fit is left out, and
    /// lines below the area are, too.
    pub(super) fn put<T: AsRef<str>>(&mut self, pieces: impl IntoIterator<Item = (T, Style)>) {
        if self.line < self.area.height {
            let y = self.area.y + self.line;
            let (mut x, end) = (self.area.x, self.area.right());
            for (text, style) in pieces {
                let room = usize::from(end.saturating_sub(x));
                x = self.buffer.set_stringn(x, y, text.as_ref(), room, style).0;
            }
        }
        self.line = self.line.saturating_add(1);
    }

    /// A line of one style, foreign text in it shown as [`cut`] does.
    pub(super) fn line(&mut self, text: &str, style: Style) {
        let shown = cut(text, self.width());
        self.put([(shown, style)]);
    }

    /// A line with something at its right end, which stays whole.
    pub(super) fn spread(&mut self, left: (&str, Style), right: (&str, Style)) {
        let right_width = right.0.chars().count();
        let room = self.width().saturating_sub(right_width + 1);
        let shown = cut(left.0, room);
        let gap = self.width().saturating_sub(shown.chars().count() + right_width);
        self.put([(shown, left.1), (" ".repeat(gap), Style::new()), (right.0.to_owned(), right.1)]);
    }
}

/// Text at the left of a column, foreign characters as numbers.
pub(super) fn left(text: &str, width: usize) -> String {
    format!("{:<width$}", cut(text, width))
}

/// Text at the right of a column.
pub(super) fn right(text: &str, width: usize) -> String {
    format!("{:>width$}", cut(text, width))
}
