//! Phrases that a plainer one replaces, and where they are.

use std::{
    collections::HashMap,
    fmt::{Display, Formatter, Result},
    path::Path,
    sync::LazyLock,
};

/// Words with their alternatives, what may not follow (its beginning; the empty text is a mark or
/// the end), and what to write instead. No space is between the words, so that this file does not
/// find itself.
struct Phrase(&'static str, &'static [&'static str], &'static str);

const PHRASES: &[Phrase] = &[
    Phrase("is/no", &["", "longer", "more", "need", "way", "reason"], "is not a; invalid"),
    Phrase("are/no", &["", "longer", "more"], "are not; invalid"),
    Phrase("has/no/meaning", &[], "is not supported by"),
    Phrase("is|are|was|were/none", &[], "there are none; does not exist"),
    Phrase("absent/where", &[], "None if"),
    Phrase("where/none", &[], "if there are none"),
    Phrase("where/it|that/is/not", &[], "if it is not"),
    Phrase("where/there/is/none", &[], "if there is none"),
    Phrase("so/many|long|much|often", &["as", "that", ""], "the number, the time"),
    Phrase("goes|went|go/on", &[], "continues"),
    Phrase("is|are|was|were/passed/over", &[], "is skipped"),
    Phrase("held/against", &[], "compared with"),
    Phrase("puts|put/back", &[], "restores"),
    Phrase("who|whoever/listens|waits|wants|enters|knocks|receives|traces", &[], "name the actor"),
    Phrase("who|whoever/looks|asks|comes|has|is|was", &["to blame"], "name the actor"),
    Phrase("in/the/midst/of", &[], "during"),
    Phrase("of/its|their/own", &[], "own"),
    Phrase("more/seldom", &[], "less often"),
    Phrase("mend|mends|mended|mending", &[], "fix"),
    Phrase("went|goes|go/first", &[], "ran first"),
    Phrase("by/much|far/too|the", &[], "much"),
    Phrase("count|counts/as/nothing", &[], "is ignored"),
];

/// A phrase behind its first word.
struct Rest {
    /// The words that follow, with their alternatives.
    words: Vec<Vec<&'static str>>,
    phrase: &'static Phrase,
}

/// Phrases by their first word.
static BY_WORD: LazyLock<HashMap<&str, Vec<Rest>>> = LazyLock::new(|| {
    let mut found: HashMap<_, Vec<_>> = HashMap::new();
    for phrase in PHRASES {
        let mut words = phrase.0.split('/').map(|any| any.split('|').collect::<Vec<_>>());
        let first = words.next().unwrap_or_default();
        let words: Vec<_> = words.collect();
        for word in first {
            found.entry(word).or_default().push(Rest { words: words.clone(), phrase });
        }
    }
    found
});

/// A phrase in a line of a file.
pub(crate) struct Place {
    file: String,
    line: usize,
    found: String,
    instead: &'static str,
}

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Self { file, line, found, instead } = self;
        write!(f, "{file}:{line}: \"{found}\": {instead}")
    }
}

/// Those in the lines of a document.
pub(crate) fn in_text(file: &str, text: &str) -> Vec<Place> {
    let lines = text.lines().enumerate();
    lines.flat_map(|(number, line)| in_line(file, number + 1, line)).collect()
}

/// Those in the comments and strings of a source file.
pub(crate) fn in_source(file: &Path, text: &str) -> Vec<Place> {
    let file = file.to_str().unwrap();
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let parts = comment(line).into_iter().chain(strings(line));
        found.extend(parts.flat_map(|part| in_line(file, number + 1, part)));
    }
    found
}

fn in_line(file: &str, line: usize, text: &str) -> Vec<Place> {
    let lower = text.to_lowercase();
    let words = words(&lower);
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        for Rest { words: rest, phrase } in BY_WORD.get(word).into_iter().flatten() {
            let Phrase(_, exceptions, instead) = phrase;
            let (behind, end) = (&words[at + 1..], at + 1 + rest.len());
            let is_there = behind.len() >= rest.len()
                && rest.iter().zip(behind).all(|(any, word)| any.contains(word));
            if is_there && !exceptions.iter().any(|own| follows(own, &words[end..])) {
                found.push(Place {
                    file: file.into(),
                    line,
                    found: words[at..end].join(" "),
                    instead,
                });
            }
        }
    }
    found
}

/// Whether these words begin so; nothing is the end, or a mark.
fn follows(exception: &str, words: &[&str]) -> bool {
    match exception {
        "" => words.first().is_none_or(|word| !word.starts_with(char::is_alphanumeric)),
        exception => words.join(" ").starts_with(exception),
    }
}

/// Words of a text. A mark between two words is a word too, so that no phrase spans it.
fn words(text: &str) -> Vec<&str> {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let end = match is_letter(first) {
            true => rest.find(|c: char| !is_letter(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        if first != ' ' {
            found.push(&rest[..end]);
        }
        rest = &rest[end..];
    }
    found
}

/// What follows `//`, unless that is a part of an address or of a string.
fn comment(line: &str) -> Option<&str> {
    let starts = line.match_indices("//").map(|(at, _)| at);
    let is_comment = |at: &usize| !line[..*at].ends_with([':', '"', '\'']);
    starts.filter(is_comment).map(|at| line[at + 2..].trim_start_matches(['/', '!'])).next()
}

/// Strings that begin and end in this line, and are long enough for a sentence.
fn strings(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut start, mut is_escaped) = (None, false);
    for (at, c) in line.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = start.is_some(),
            '"' => match start.take() {
                None => start = Some(at + 1),
                Some(from) => found.push(&line[from..at]),
            },
            _ => {}
        }
    }
    found.retain(|string| string.chars().count() >= 12);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    // `=` stands for a space, so that this file does not find itself.
    fn count(text: &str) -> usize {
        in_text("a.md", &text.replace('=', " ")).len()
    }

    #[test]
    fn phrases_are_found_in_any_case_and_exceptions_are_not() {
        assert_eq!(count("It is=no list. There Are=None.\nIt goes=on, so=long it can."), 4);
        assert_eq!(count("It is=no longer so=long as that. He who=is to blame."), 0);
        assert_eq!(count("this no; is. no island, demanded"), 0);
        let place = in_text("a.md", &"x\nit went=first".replace('=', " ")).remove(0);
        assert!(place.to_string().starts_with("a.md:2: "), "{place}");
    }

    #[test]
    fn comments_and_strings_of_a_source_are_read_and_its_code_is_not() {
        let source = |line: &str| in_source(Path::new("a.rs"), &line.replace('=', " ")).len();
        assert_eq!(source("go.on(); // it goes=on"), 1);
        assert_eq!(source("a(\"short\"); b(\"there is=none of it\"); // so=many of them"), 2);
        assert_eq!(source("url(\"https://goes=on\");"), 1);
        assert_eq!(source("goes=on;"), 0);
    }
}
