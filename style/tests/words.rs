//! How plain the texts are: lengths of sentences in the documents, and phrases to replace, in the
//! documents and in comments and strings of the sources.
//!
//! `style/words.txt` has the limit of each figure. A limit may only fall. When a figure has fallen,
//! `STYLE_WRITE_WORDS=1 cargo test -p style --test words` writes the lower limit, and
//! `STYLE_LIST_WORDS=1` with `--nocapture` prints each place.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "words/phrases.rs"]
mod phrases;
#[path = "words/prose.rs"]
mod prose;

use std::{env, fs, path::Path};

use phrases::{Place, in_source, in_text};
use prose::Prose;
use style::{files, root};

const LIMITS: &str = "style/words.txt";

/// Documents that are measured: not the changes, and nothing below these directories.
const NOT_MEASURED: [&str; 4] = ["CHANGELOG.md", "licenses/", "fuzz/", "tests/"];

const SOURCES: [&str; 4] = [".rs", ".ts", ".c", ".h"];

/// A figure and its value now.
struct Figure {
    name: &'static str,
    value: f64,
    /// Whether its limit follows it down. Those of the documents' sentences do not: an edit may
    /// change them a little.
    is_counted: bool,
}

fn text(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(root().join(path)).unwrap()).into_owned()
}

/// Every place with a phrase: in the documents, and in the sources.
fn places() -> (Vec<Place>, Vec<Place>) {
    let documents = documents().into_iter();
    let in_documents = documents.flat_map(|path| in_text(&path, &text(Path::new(&path))));
    let sources = SOURCES.iter().flat_map(|ending| files("", ending));
    let in_sources = sources.flat_map(|path| in_source(&path, &text(&path)));
    (in_documents.collect(), in_sources.collect())
}

fn documents() -> Vec<String> {
    let names = files("", ".md").into_iter().map(|path| path.to_str().unwrap().to_owned());
    names.filter(|name| !NOT_MEASURED.iter().any(|start| name.starts_with(start))).collect()
}

fn figures(in_documents: usize, in_sources: usize) -> Vec<Figure> {
    let mut prose = Prose::default();
    documents().iter().for_each(|path| prose.add(&text(Path::new(path))));
    let measured = |name, value| Figure { name, value, is_counted: false };
    let counted = |name, value: usize| Figure { name, value: value as f64, is_counted: true };
    vec![
        measured("words in a sentence, on average", prose.mean_words()),
        measured("sentences over 40 words, %", prose.long_share()),
        measured("clauses of what, in 1,000 words", prose.what_clauses()),
        measured("clauses of which, in 1,000 words", prose.which_clauses()),
        measured("words of the longest paragraph", prose.longest_paragraph as f64),
        counted("phrases in documents", in_documents),
        counted("phrases in comments and strings", in_sources),
    ]
}

/// The limits of a file with one `NAME: NUMBER` a line.
fn limit(limits: &str, name: &str) -> Option<f64> {
    limits.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.parse().ok())
}

#[test]
fn texts_get_plainer_and_never_less_so() {
    let (in_documents, in_sources) = places();
    let figures = figures(in_documents.len(), in_sources.len());
    if env::var_os("STYLE_LIST_WORDS").is_some() {
        in_documents.iter().chain(&in_sources).for_each(|place| println!("{place}"));
        figures.iter().for_each(|figure| println!("{}: {:.1}", figure.name, figure.value));
    }
    let path = root().join(LIMITS);
    let mut limits = fs::read_to_string(&path).unwrap();
    if env::var_os("STYLE_WRITE_WORDS").is_some() {
        for figure in figures.iter().filter(|figure| figure.is_counted) {
            let old = limit(&limits, figure.name).unwrap();
            let line = |value| format!("{}: {value}\n", figure.name);
            limits = limits.replace(&line(old), &line(old.min(figure.value)));
        }
        fs::write(&path, &limits).unwrap();
    }
    for Figure { name, value, .. } in figures {
        let limit = limit(&limits, name).unwrap();
        assert!(
            value <= limit,
            "{name}: {value:.1}, over the limit of {limit} in {LIMITS}; list the places with \
             `STYLE_LIST_WORDS=1 cargo test -p style --test words -- --nocapture`"
        );
    }
}

#[test]
fn a_limit_is_found_by_its_name() {
    assert_eq!(limit("a: 2\na, b: 1.5\n", "a, b"), Some(1.5));
    assert_eq!(limit("a, b: 1.5\n", "a"), None);
}
