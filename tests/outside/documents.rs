//! Commands of the documents, for tests that run them as they are written.

use std::{fs, path::Path};

/// The first block of shell commands below this line of a document.
pub(crate) fn commands(document: &str, heading: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
    let text = fs::read_to_string(path).unwrap();
    commands_of(text_of(&text, heading), 0).to_owned()
}

/// What comes below this line.
pub(crate) fn text_of<'a>(document: &'a str, heading: &str) -> &'a str {
    let below = document.split_once(&format!("\n{heading}\n")).map(|(_, below)| below);
    below.unwrap_or_else(|| panic!("no line {heading}"))
}

/// A block of shell commands, by its number from 0.
pub(crate) fn commands_of(text: &str, number: usize) -> &str {
    let block = text.split("```sh\n").nth(number + 1).and_then(|block| block.split("```").next());
    block.unwrap_or_else(|| panic!("no block {number} of commands"))
}
