//! Foreign text for a terminal: what records, file names, parsers, guests and other programs say.
//!
//! A run may come from anywhere, and a terminal obeys what it is sent: an escape sequence clears
//! the screen, sets the clipboard (OSC 52) or hides a line. So foreign text is shown with what
//! could steer a terminal as numbers: [`plain`] where a line is composed, [`styled`] as the last
//! door in front of standard output, which lets nothing pass but colours and line ends.

use std::{borrow::Cow, path::Path};

/// One line of foreign text: control characters and those that are invisible or turn the direction
/// of writing are shown as their numbers, line ends too.
#[must_use]
pub(crate) fn plain(text: &str) -> String {
    escaped(text, |_| false)
}

/// A path as [`plain`] text: whoever made a directory may have called it anything.
#[must_use]
pub(crate) fn plain_path(path: &Path) -> String {
    plain(&path.display().to_string())
}

/// A path as one word of a command that a shell takes as it is printed: in quotes where it needs
/// some.
#[must_use]
pub(crate) fn shell_word(path: &Path) -> String {
    let text = plain_path(path);
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "/._-+:,=@%".contains(c);
    if !text.is_empty() && text.chars().all(is_bare) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Foreign text of several lines: as [`plain`], but line ends stay.
#[must_use]
pub(crate) fn plain_lines(text: &str) -> String {
    escaped(text, |c| c == '\n')
}

/// As [`plain`], at most `most` characters of it: a parser may quote all of a file.
#[must_use]
pub(crate) fn cut(text: &str, most: usize) -> String {
    // An escaped character is one at least, so that what is behind `most` is not needed.
    let behind = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
    let begin = plain(text.get(..behind).unwrap_or(text));
    if behind == text.len() && begin.chars().count() <= most {
        return begin;
    }
    begin.chars().take(most.saturating_sub(2)).chain("..".chars()).collect()
}

/// Text that tardy composed: colours and line ends pass, and nothing else that could steer a
/// terminal.
#[must_use]
pub(crate) fn styled(text: &str) -> Cow<'_, str> {
    let is_odd = |c: char| c != '\n' && is_steering(c);
    if !text.contains(is_odd) {
        return Cow::Borrowed(text);
    }
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, odd)) = rest.find(is_odd).and_then(|at| rest.split_at_checked(at)) {
        out.push_str(before);
        let (shown, behind) = match colour(odd) {
            Some((colour, behind)) => (Cow::Borrowed(colour), behind),
            None => first_escaped(odd),
        };
        out.push_str(&shown);
        rest = behind;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// JSON with the characters that JSON does not escape by itself, but [`plain`] does, as escapes of
/// JSON: the same values to a program, and harmless on a terminal. They only stand in strings.
#[must_use]
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    let is_odd = |c: char| c != '\n' && is_steering(c);
    if !text.contains(is_odd) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_odd(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

fn escaped(text: &str, passes: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_steering(c) && !passes(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// The first character as its number, and what is behind it.
fn first_escaped(text: &str) -> (Cow<'_, str>, &str) {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.escape_unicode().collect::<String>());
    (Cow::Owned(first.unwrap_or_default()), chars.as_str())
}

/// A sequence that sets colours and weights (SGR of ECMA-48) at the beginning of `text`, and what
/// is behind it.
fn colour(text: &str) -> Option<(&str, &str)> {
    const BEGIN: &str = "\u{1b}[";
    let body = text.strip_prefix(BEGIN)?;
    let end = body.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    body.get(end..)?.starts_with('m').then(|| text.split_at_checked(BEGIN.len() + end + 1))?
}

/// Control characters (C0, DEL and C1 of ECMA-48), and what is invisible or moves what stands
/// beside it (Unicode's format characters, line and paragraph separator).
fn is_steering(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    const OSC: &str = "\u{1b}]52;c;aGk=\u{7}";

    #[test]
    fn a_path_in_a_command_is_one_word_of_a_shell() {
        let word = |path: &str| shell_word(Path::new(path));
        assert_eq!(word("/a/b-1_c.d"), "/a/b-1_c.d");
        for path in ["a b", "a'b", "$(id)", "a;b", "a\"b", "~", ""] {
            let echoed = std::process::Command::new("sh")
                .args(["-c", &format!("printf %s {}", word(path))])
                .output();
            assert_eq!(String::from_utf8(echoed.unwrap().stdout).unwrap(), path);
        }
    }

    #[test]
    fn what_comes_from_a_run_cannot_steer_a_terminal() {
        assert_eq!(plain("a\u{1b}[2J\u{9b}b\u{202e}"), "a\\u{1b}[2J\\u{9b}b\\u{202e}");
        assert_eq!(plain(&format!("{OSC}\n")), "\\u{1b}]52;c;aGk=\\u{7}\\u{a}");
        assert_eq!(plain_lines("a\r\n\tb"), "a\\u{d}\n\\u{9}b");
        assert_eq!(plain("Zürich, 5 µs, 東京"), "Zürich, 5 µs, 東京");
    }

    #[test]
    fn a_path_cannot_either() {
        let path = Path::new("/tmp").join("a\nb\u{1b}[32m");
        assert_eq!(plain_path(&path), "/tmp/a\\u{a}b\\u{1b}[32m");
    }

    #[test]
    fn a_text_is_cut_after_it_was_escaped() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcd..");
        assert_eq!(cut("\n\n\n", 6), "\\u{a..");
        assert_eq!(cut(&"µ".repeat(9), 4), "µµ..");
    }

    #[test]
    fn of_what_tardy_styled_only_colours_and_line_ends_pass() {
        let own = "\u{1b}[1mname\u{1b}[0m: \u{1b}[38;5;9mvalid\u{1b}[0m\n";
        assert!(matches!(styled(own), Cow::Owned(text) if text == own));
        assert!(matches!(styled("no colour\n"), Cow::Borrowed(_)));
        let foreign = format!("{own}{OSC}\u{1b}[2J\u{1b}[\u{9b}31m\r\u{1b}");
        let shown = "\\u{1b}]52;c;aGk=\\u{7}\\u{1b}[2J\\u{1b}[\\u{9b}31m\\u{d}\\u{1b}";
        assert_eq!(styled(&foreign), format!("{own}{shown}"));
    }

    #[test]
    fn json_says_the_same_and_steers_nothing() {
        let value = serde_json::json!({"a": "\u{9b}2J\u{7f}\u{202e}\u{e0041}", "b": OSC});
        let text = serde_json::to_string_pretty(&value).unwrap();
        let shown = json(&text);
        assert!(!shown.contains(|c| c != '\n' && is_steering(c)), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        assert!(matches!(json("{\n}"), Cow::Borrowed(_)));
    }
}
