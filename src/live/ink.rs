//! How things look: colours where the terminal is to have them, and never as the only sign.

use ratatui::style::{Color, Modifier, Style};

/// What a terminal is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ink {
    /// Whether colours are wanted.
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

    /// What matters less.
    pub(super) fn dim(self) -> Style {
        self.of(Color::DarkGray)
    }

    /// What is read first.
    pub(super) const fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What is as it should be.
    pub(super) fn good(self) -> Style {
        self.of(Color::Green)
    }

    /// What is to be looked at.
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
