//! A run that is a cell of a plan or a block of a comparison: whoever starts it has made its
//! directory and holds it open, and knows it by its id.

use std::str::FromStr;

use anyhow::{Context as _, Result};

use crate::{run::RunDirectory, sys::child};

/// How the option begins.
const FLAG: &str = "--part-of=";

/// The longest id.
const LONGEST_ID: usize = 64;

/// The descriptor of the directory, and the id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PartOf {
    number: i32,
    /// The id of the run.
    pub id: String,
}

impl FromStr for PartOf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "it is given by tardy itself".to_owned();
        let (number, id) = text.split_once(':').ok_or_else(wrong)?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
        let is_id = !id.is_empty() && id.len() <= LONGEST_ID && id.bytes().all(is_plain);
        let number = number.parse().ok().filter(|_| is_id).ok_or_else(wrong)?;
        Ok(Self { number, id: id.into() })
    }
}

impl PartOf {
    /// The directory; to be taken once.
    ///
    /// # Errors
    /// The parent has left nothing open under this number, or it is not an empty directory that
    /// belongs to the caller.
    pub(super) fn directory(&self) -> Result<RunDirectory> {
        let open = child::take_over(self.number).and_then(RunDirectory::handed_over);
        open.context("--part-of: the directory that was handed over cannot be used")
    }
}

/// The command line as somebody can type it again.
pub(super) fn without(argv: Vec<String>) -> Vec<String> {
    argv.into_iter().filter(|word| !word.starts_with(FLAG)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_tardy_itself_gives_is_taken() {
        let id = "20261121-203055.042-1f0c";
        let own: PartOf = format!("5:{id}").parse().unwrap();
        assert_eq!(own, PartOf { number: 5, id: id.into() });
        for wrong in ["", "5", "5:", ":x", "x:y", "5:a/b", "5:a b", "5:\u{1b}"] {
            assert!(wrong.parse::<PartOf>().is_err(), "{wrong}");
        }
        assert!(PartOf { number: 0, id: "x".into() }.directory().is_err());
        assert!(PartOf { number: 1_000_000, id: "x".into() }.directory().is_err());
        let typed = ["tardy", "run", "--part-of=5:x", "--quiet"].map(str::to_owned).to_vec();
        assert_eq!(without(typed), ["tardy", "run", "--quiet"]);
    }
}
