//! Styles. Color is optional, and never the only sign.

use ratatui::style::{Color, Modifier, Style};

/// Capabilities of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ink {
    /// Whether to use colors.
    pub has_colours: bool,
    /// Whether blocks of Unicode are shown: `▁` to `█`; else digits.
    pub has_blocks: bool,
}

impl Ink {
    /// For text without a terminal.
    pub(crate) const PLAIN: Self = Self { has_colours: false, has_blocks: true };

    fn of(self, colour: Color) -> Style {
        if self.has_colours { Style::new().fg(colour) } else { Style::new() }
    }

    /// Style of secondary text.
    pub(super) fn dim(self) -> Style {
        self.of(Color::DarkGray)
    }

    /// Style of headings.
    pub(super) const fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Style of good values.
    pub(super) fn good(self) -> Style {
        self.of(Color::Green)
    }

    /// Style of values that need attention.
    pub(super) fn doubtful(self) -> Style {
        self.of(Color::Yellow)
    }

    /// What is wrong.
    pub(super) fn bad(self) -> Style {
        self.of(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// The head of a section.
    pub(super) fn head(self) -> Style {
        self.of(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// The line of keys.
    pub(super) const fn keys(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}
