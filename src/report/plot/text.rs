//! Text on pictures: the one font, its widths, and how long texts fit a place.
//!
//! The font is part of tardy, so that a PNG looks the same on a target without fonts. An SVG names
//! the generic family; the widths are those of our font, which is among the wider ones. A PDF
//! carries the font.

use std::sync::OnceLock;

use plotters::style::{FontDesc, FontFamily, FontStyle, register_font};

/// The letters of the basic scripts of Europe, and punctuation.
pub(super) static FONT: &[u8] = include_bytes!("font/DejaVuSans-subset.ttf");

/// The height that the font library calls the size, in units of the font's em.
pub(super) const HEIGHT_PER_EM: f64 = 2384.0 / 2048.0;

/// Makes the font known; false if it is not readable.
pub(super) fn prepare() -> bool {
    static READY: OnceLock<bool> = OnceLock::new();
    *READY.get_or_init(|| register_font("sans-serif", FontStyle::Normal, FONT).is_ok())
}

/// The font at a size as the library counts it.
#[must_use]
pub(super) fn font(size: f64) -> FontDesc<'static> {
    FontDesc::new(FontFamily::SansSerif, size, FontStyle::Normal)
}

/// Whether our font has it; others are drawn as boxes in a PNG, and by another font in an SVG.
const fn is_known(c: char) -> bool {
    matches!(c, ' '..='\u{45f}' | '\u{2000}'..='\u{206f}')
}

/// The width of a text.
#[must_use]
pub(super) fn width(text: &str, size: f64) -> f64 {
    const FINE: f64 = 1000.0;
    let known: String = text.chars().filter(|c| is_known(*c)).collect();
    let unknown = text.chars().filter(|c| !is_known(*c)).count() as f64;
    let fallback = known.chars().count() as f64 * 0.6;
    prepare();
    let measured = font(FINE * HEIGHT_PER_EM).box_size(&known);
    let ems = measured.map_or(fallback, |(width, _)| f64::from(width) / FINE);
    (ems + unknown) * size
}

/// Without what would break a line, a file or the order of reading.
#[must_use]
pub(super) fn clean(text: &str) -> String {
    let is_bad = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2066}'..='\u{2069}')
            || matches!(c, '\u{feff}' | '\u{fffe}' | '\u{ffff}')
    };
    text.chars().map(|c| if is_bad(c) { '\u{fffd}' } else { c }).collect()
}

/// The text, or as much of it as fits with three points behind it.
#[must_use]
pub(super) fn cut(text: &str, size: f64, room: f64) -> String {
    let is_short = text.chars().nth(most_that_fit(size, room)).is_none();
    if is_short && width(text, size) <= room {
        return text.into();
    }
    let shown = |length: usize| {
        let short: String = text.chars().take(length).collect();
        format!("{}...", short.trim_end())
    };
    // The longest that fits lies between one that does and one that does not.
    let (mut fits, mut fits_not) = (0, most_that_fit(size, room));
    while fits + 1 < fits_not {
        let middle = usize::midpoint(fits, fits_not);
        if width(&shown(middle), size) <= room { fits = middle } else { fits_not = middle }
    }
    if fits == 0 { String::new() } else { shown(fits) }
}

/// More characters than this are wider than the room: none is narrower than a fifth of an em.
fn most_that_fit(size: f64, room: f64) -> usize {
    (room.max(0.0) / size * 5.0) as usize + 1
}

/// Lines that fit the room, broken at spaces, the first one shorter by `indent`; at most `most`,
/// the last one cut.
#[must_use]
pub(super) fn wrap(text: &str, size: f64, room: f64, indent: f64, most: usize) -> Vec<String> {
    let text: String = text.chars().take(most_that_fit(size, room) * (most + 1)).collect();
    let mut lines: Vec<String> = Vec::new();
    let mut words = text.split(' ').peekable();
    let mut line = String::new();
    while let Some(word) = words.next() {
        let left = if lines.is_empty() { room - indent } else { room };
        let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if width(&longer, size) <= left {
            line = longer;
            continue;
        }
        if lines.len() + 1 == most {
            let rest: Vec<&str> = words.collect();
            let all = format!("{longer} {}", rest.join(" "));
            lines.push(cut(all.trim_end(), size, left));
            return lines;
        }
        // Nothing fits beside what is there already; a word that is too long is cut.
        lines.push(std::mem::replace(&mut line, cut(word, size, room)));
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_that_is_built_in_can_be_read() {
        assert!(prepare());
        let em = width("mmmmmmmmmm", 10.0) / 100.0;
        assert!((0.9..1.05).contains(&em), "{em}");
    }

    #[test]
    fn texts_fit_their_room_or_are_cut() {
        let long = "a run with a very long name ".repeat(10);
        assert!(width(&cut(&long, 12.0, 200.0), 12.0) <= 200.0);
        let lines = wrap(&long, 12.0, 200.0, 50.0, 3);
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| width(line, 12.0) <= 200.0), "{lines:?}");
        assert!(lines[2].ends_with("..."), "{lines:?}");
        assert_eq!(wrap(&"x".repeat(300), 12.0, 200.0, 0.0, 3).len(), 2);
        assert_eq!(wrap("ab 6.18.44", 12.0, 100.0, 99.0, 3), ["", "ab 6.18.44"]);
        assert_eq!(cut("anything", 12.0, 1.0), "");
        assert_eq!(cut("i", 12.0, 4.0), "i");
        let endless = "i".repeat(3_000_000);
        assert!((150.0..=200.0).contains(&width(&cut(&endless, 12.0, 200.0), 12.0)));
        assert!(wrap(&endless.replace("iii", "ii "), 12.0, 200.0, 0.0, 3)[2].ends_with("..."));
    }

    #[test]
    fn hostile_characters_become_a_mark() {
        assert_eq!(clean("a\nb\u{1}c\u{202e}d"), "a\u{fffd}b\u{fffd}c\u{fffd}d");
    }
}
