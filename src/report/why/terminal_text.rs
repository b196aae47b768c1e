//! Lines of text for a terminal.

use anstyle::Style;

use crate::{plain::plain, report::table::Table};

/// How what matters less is shown.
pub(super) const DIM: Style = Style::new().dimmed();

/// Lines for a terminal, in which nothing that came from a run can steer it.
#[derive(Default)]
pub(super) struct TerminalText {
    out: String,
}

impl TerminalText {
    /// A line of one style.
    pub(super) fn line(&mut self, style: Style, text: &str) {
        self.out.push_str(&format!("{style}{}{style:#}\n", plain(text)));
    }

    /// A line that is styled already, and in which nothing came from a run unescaped.
    pub(super) fn styled(&mut self, line: &str) {
        self.out.push_str(line);
        self.out.push('\n');
    }

    /// Lines of at most 80 columns of one style.
    pub(super) fn wrapped(&mut self, style: Style, text: &str) {
        let mut line = String::new();
        for word in plain(text).split(' ') {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > 80 {
                self.line(style, &line);
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        self.line(style, &line);
    }

    /// All lines.
    pub(super) fn done(self) -> String {
        self.out
    }

    /// An empty line.
    pub(super) fn gap(&mut self) {
        self.out.push('\n');
    }

    /// A table, its heading dimmed.
    pub(super) fn table(&mut self, table: &Table, indent: &str) {
        for (number, line) in table.lines().into_iter().enumerate() {
            let style = if number == 0 { DIM } else { Style::new() };
            self.line(style, &format!("{indent}{line}"));
        }
    }
}
