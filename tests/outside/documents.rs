//! Commands of the documents, for tests that run them as they are written.

use std::{fs, path::Path};

/// The first block of shell commands below this line of a document.
pub(crate) fn commands(document: &str, heading: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
    let text = fs::read_to_string(path).unwrap();
    let below = text.split_once(&format!("\n{heading}\n")).map(|(_, below)| below);
    let below = below.unwrap_or_else(|| panic!("{document} has no line {heading}"));
    let block = below.split("```sh\n").nth(1).and_then(|block| block.split("```").next());
    block.unwrap_or_else(|| panic!("{document} has no commands below {heading}")).to_owned()
}
