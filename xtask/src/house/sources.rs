//! The sources of the product, without their tests.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::site::root;

/// A file, its path from the root of the project, and its text without tests.
pub(super) struct Source {
    pub path: String,
    pub text: String,
}

impl Source {
    /// Whether the word stands in it, also as part of a name.
    pub(super) fn names(&self, word: &str) -> bool {
        self.text.to_lowercase().contains(word)
    }

    /// How often the text stands in it, not as the end of a longer name.
    pub(super) fn mentions(&self, text: &str) -> usize {
        let found = self.text.match_indices(text);
        found.filter(|(at, _)| !self.text[..*at].ends_with(char::is_alphanumeric)).count()
    }

    pub(super) fn lines(&self) -> usize {
        self.text.lines().count()
    }
}

/// All of the product.
///
/// # Errors
/// A file cannot be read.
pub(super) fn product() -> Result<Vec<Source>> {
    let root = root();
    let mut found = Vec::new();
    for directory in ["src", "crates/tardy-hot/src"] {
        visit(&root, &root.join(directory), &mut found)?;
    }
    Ok(found)
}

fn visit(root: &Path, directory: &Path, found: &mut Vec<Source>) -> Result<()> {
    let cannot = || format!("cannot read {}", directory.display());
    let entries = fs::read_dir(directory).with_context(cannot)?;
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    paths.sort();
    for path in paths {
        let is_test = path.file_stem().is_some_and(|name| name == "tests" || name == "testing");
        if path.is_dir() && !is_test {
            visit(root, &path, found)?;
        } else if path.extension().is_some_and(|kind| kind == "rs") && !is_test {
            let text = fs::read_to_string(&path);
            let text = text.with_context(|| format!("cannot read {}", path.display()))?;
            let path = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            found.push(Source { path, text: without_tests(&text).to_owned() });
        }
    }
    Ok(())
}

/// The text up to the module of tests at its end.
fn without_tests(text: &str) -> &str {
    let mut at = 0;
    let mut marked = None;
    for line in text.split_inclusive('\n') {
        let is_module = line.contains("mod ") && line.trim_end().ends_with('{');
        match marked {
            Some(start) if is_module && !line.starts_with(' ') => return &text[..start],
            _ => marked = (line.trim_end() == "#[cfg(test)]").then_some(at),
        }
        at += line.len();
    }
    text
}

/// The directory with the most modules.
pub(super) struct Fullest {
    pub path: String,
    pub modules: usize,
}

pub(super) fn fullest_directory(product: &[Source]) -> Fullest {
    let mut modules: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in product {
        let path = Path::new(&source.path);
        for own in path.ancestors().take_while(|own| own.parent().is_some()) {
            let (Some(parent), Some(stem)) = (own.parent(), own.file_stem()) else { continue };
            let stem = stem.to_string_lossy().into_owned();
            if stem != "mod" {
                modules.entry(parent.display().to_string()).or_default().insert(stem);
            }
        }
    }
    let fullest = modules.into_iter().max_by_key(|(_, modules)| modules.len());
    let (path, modules) = fullest.unwrap_or_default();
    Fullest { path, modules: modules.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_of_tests_at_the_end_is_cut_off() {
        let text = "fn f() {}\n\n#[cfg(test)]\nuse x::y;\n\n#[cfg(test)]\nmod tests {\n}\n";
        assert_eq!(without_tests(text), "fn f() {}\n\n#[cfg(test)]\nuse x::y;\n\n");
        assert_eq!(without_tests("#[cfg(test)]\nmod tests;\nfn f() {}\n").lines().count(), 3);
    }

    #[test]
    fn a_file_and_its_directory_are_one_module() {
        let source = |path: &str| Source { path: path.into(), text: String::new() };
        let product =
            ["src/a.rs", "src/a/x.rs", "src/b.rs", "src/c/mod.rs", "src/a/y.rs"].map(source);
        let fullest = fullest_directory(&product);
        assert_eq!((fullest.path.as_str(), fullest.modules), ("src", 3));
    }
}
