//! Lines that fit a terminal: broken between words, and what follows set in.

/// What stays beside the number before it.
const UNITS: [&str; 11] = ["ns", "us", "ms", "s", "min", "h", "d", "B/s", "kB/s", "MB/s", "GB/s"];

/// Breaks each line that is longer than `width` between words; what follows is set in by two more
/// than the line was. A number keeps its unit. What has no space in it, a
/// path say, stays whole, so that it can be copied.
#[must_use]
pub fn fold(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        push_line(&mut out, line, width);
        out.push_str(end);
    }
    out
}

fn push_line(out: &mut String, line: &str, width: usize) {
    if visible(line) <= width {
        out.push_str(line);
        return;
    }
    let begin = line.trim_start_matches(' ');
    let indent = line.len() - begin.len();
    let hanging = (indent + 2).min(width / 2);
    out.push_str(&" ".repeat(indent));
    let mut used = indent;
    for (number, word) in words(begin).iter().enumerate() {
        let length = visible(word);
        if number > 0 && used + 1 + length > width {
            out.push('\n');
            out.push_str(&" ".repeat(hanging));
            used = hanging;
        } else if number > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
    }
}

/// What no line end may come into.
fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in line.split(' ') {
        match words.last_mut() {
            Some(before) if belongs(before, word) => {
                before.push(' ');
                before.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// Whether a word is the unit of the number before it.
fn belongs(before: &str, word: &str) -> bool {
    let bare = word.trim_end_matches(['.', ',', ';', ':', ')']);
    before.ends_with(|c: char| c.is_ascii_digit()) && UNITS.contains(&bare)
}

/// Characters that take room; colours take none.
fn visible(text: &str) -> usize {
    let (mut chars, mut count) = (text.chars(), 0);
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            chars.by_ref().take_while(|c| *c != 'm').for_each(drop);
        } else {
            count += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_break_between_words_and_what_follows_is_set_in() {
        let text = "info steal_time: The hypervisor took more than that.\n  Measure elsewhere.\n";
        let folded = "info steal_time: The\n  hypervisor took more\n  than that.\n  Measure \
                      elsewhere.\n";
        assert_eq!(fold(text, Some(24)), folded);
        assert_eq!(fold(text, None), text);
        assert_eq!(fold(text, Some(80)), text);
    }

    #[test]
    fn a_number_keeps_its_unit() {
        let folded = "within\n  3.14 ms;\n  99.9% late";
        assert_eq!(fold("within 3.14 ms; 99.9% late", Some(13)), folded);
    }

    #[test]
    fn colours_take_no_room_and_paths_stay_whole() {
        let text = "\u{1b}[1mbold words\u{1b}[0m here";
        assert_eq!(fold(text, Some(15)), text);
        let path = format!("run /{}", "x".repeat(40));
        assert_eq!(fold(&path, Some(20)), format!("run\n  /{}", "x".repeat(40)));
    }

    proptest! {
        #[test]
        fn words_stay_as_they_are_and_no_line_is_too_wide(
            words in proptest::collection::vec("[a-z]{1,9}", 1..40), width in 20_usize..100
        ) {
            let folded = fold(&words.join(" "), Some(width));
            prop_assert!(folded.lines().all(|line| line.chars().count() <= width), "{folded}");
            let back: Vec<&str> = folded.split_whitespace().collect();
            prop_assert_eq!(back, words);
        }
    }
}
