//! Style as an ordinary test: lengths, leftovers, links, dead files, caveats without a word.
//!
//! Each rule is a function from text to offenders, and has a test that it finds one.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "tidy/live.rs"]
mod live;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use style::{files, root};

const LONGEST_FILE: usize = 400;
const LONGEST_FUNCTION: usize = 70;
const LONGEST_LINE: usize = 100;

/// Files of `src/` that are longer and not split yet. Only ever gets shorter.
const LONG_FILES: &[&str] = &[];

/// Functions (`path: name`) that are longer and not split yet. Only ever gets shorter.
/// `words` is a table: one arm a caveat.
const LONG_FUNCTIONS: &[&str] =
    &["src/run/caveat_kind/words.rs: words", "src/run/caveat_kind/incident.rs: words"];

/// The documents with a row for each caveat: what it means, and which test makes it appear.
const CAVEATS: &str = "docs/reference/caveats.md";
const CAVEAT_TESTS: &str = "docs/dev/caveat-tests.md";

/// Split, so that this file does not find itself.
const BANNED: [&str; 5] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("dbg", "!("),
    concat!("todo", "!("),
];

fn rust_files() -> Vec<PathBuf> {
    ["src", "crates", "tests", "xtask", "style", "benches", "fuzz"]
        .iter()
        .flat_map(|directory| files(directory, ".rs"))
        .collect()
}

fn text(path: &Path) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// Applies a rule to files; what it finds is named with its file.
fn offenders(files: Vec<PathBuf>, rule: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    assert!(!files.is_empty(), "there is something to look at");
    let name = |path: &Path, what: String| format!("{}: {what}", path.display());
    let of = |path: PathBuf| -> Vec<String> {
        rule(&text(&path)).into_iter().map(|what| name(&path, what)).collect()
    };
    files.into_iter().flat_map(of).collect()
}

fn assert_none(offenders: &[String]) {
    assert!(offenders.is_empty(), "\n{}", offenders.join("\n"));
}

fn long_lines(text: &str) -> Vec<String> {
    let long = |(number, line): (usize, &str)| {
        let length = line.chars().count();
        // What has no space in it cannot be broken.
        let is_breakable = line.trim().contains(' ');
        (length > LONGEST_LINE && is_breakable)
            .then(|| format!("line {} has {length} characters", number + 1))
    };
    text.lines().enumerate().filter_map(long).collect()
}

fn control_characters(text: &str) -> Vec<String> {
    let odd = |(number, line): (usize, &str)| {
        let found = line.chars().find(|c| c.is_control())?;
        Some(format!("line {} has the control character {found:?}", number + 1))
    };
    text.split('\n').enumerate().filter_map(odd).collect()
}

fn banned_words(text: &str) -> Vec<String> {
    let found = BANNED.iter().filter(|word| text.contains(**word));
    found.map(|word| format!("has {word:?}")).collect()
}

/// Examples in the documentation of code. Nothing runs them: the manifests of both crates have
/// `doctest = false`.
fn examples(text: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let Some(doc) = line.strip_prefix("//!").or_else(|| line.strip_prefix("///")) else {
            inside = false;
            continue;
        };
        let Some(language) = doc.trim_start().strip_prefix("```") else { continue };
        inside = !inside;
        if inside && language != "text" {
            found.push(format!("line {} begins an example, which nothing runs", number + 1));
        }
    }
    found
}

/// Lines without the tests at the end, which are not counted.
fn length_without_tests(text: &str) -> usize {
    let tests = text.lines().position(|line| line == "#[cfg(test)]");
    tests.unwrap_or_else(|| text.lines().count())
}

/// Functions that are too long, as rustfmt lays them out: from `fn` to the closing brace in the
/// same column.
fn long_functions(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = line.len() - line.trim_start().len();
        let close = format!("{}}}", " ".repeat(indent));
        let after = &lines[start..];
        // A declaration ends before any body does.
        let Some(length) = after.iter().position(|line| {
            **line == close || line.ends_with(';') && line.len() - line.trim_start().len() == indent
        }) else {
            continue;
        };
        if length + 1 > LONGEST_FUNCTION {
            found.push(name);
        }
    }
    found
}

fn function_name(line: &str) -> Option<String> {
    let mut words = line.trim_start().split(' ');
    let before = words.by_ref().take_while(|word| *word != "fn");
    let modifiers = ["pub", "pub(crate)", "pub(super)", "const", "unsafe", "async", "extern"];
    if !before.into_iter().all(|word| modifiers.contains(&word) || word.starts_with('"')) {
        return None;
    }
    let name = words.next()?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    line.contains("fn ").then(|| name[..end].to_owned())
}

/// Targets of relative links in Markdown, without their anchors.
fn relative_links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    for part in text.split("](").skip(1) {
        let Some(target) = part.split(')').next() else { continue };
        let target = target.split('#').next().unwrap_or_default().trim();
        let elsewhere = target.contains("://") || target.starts_with("mailto:");
        if !target.is_empty() && !elsewhere && !target.contains(char::is_whitespace) {
            links.push(target.to_owned());
        }
    }
    links
}

/// Names that a file declares as modules in separate files.
fn declared_modules(text: &str) -> BTreeSet<String> {
    let declared = |line: &str| {
        let line = line.trim_start().strip_suffix(';')?;
        let name = line.strip_prefix("mod ").or_else(|| Some(line.split_once(" mod ")?.1))?;
        name.chars().all(|c| c.is_alphanumeric() || c == '_').then(|| name.to_owned())
    };
    text.lines().filter_map(declared).collect()
}

/// The word that a document has for an effect.
fn displayed(effect: &str) -> Option<&'static str> {
    match effect {
        "Informs" => Some("info"),
        "Weakens" => Some("warning"),
        "Invalidates" => Some("error"),
        _ => None,
    }
}

/// Codes of caveats in the source of `Doubt::words`, the strings before an effect, with the
/// displayed word of the effect.
fn caveat_effects(text: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let code = |pair: &[&str]| {
        let effect = pair[1].strip_suffix(',')?;
        let code = pair[0].strip_prefix('"')?.strip_suffix("\",")?;
        Some((code.to_owned(), displayed(effect)?.to_owned()))
    };
    lines.windows(2).filter_map(code).collect()
}

/// Only the codes.
fn caveat_codes(text: &str) -> BTreeSet<String> {
    caveat_effects(text).into_iter().map(|(code, _)| code).collect()
}

#[test]
fn source_files_are_short_enough_to_read() {
    let long = |path: &PathBuf| {
        let length = length_without_tests(&text(path));
        let known = LONG_FILES.contains(&path.to_str().unwrap());
        (length > LONGEST_FILE && !known).then(|| format!("{}: {length} lines", path.display()))
    };
    assert_none(&files("src", ".rs").iter().filter_map(long).collect::<Vec<_>>());
}

#[test]
fn functions_are_short_enough_to_see() {
    let mut offenders = offenders(rust_files(), long_functions);
    offenders.retain(|offender| !LONG_FUNCTIONS.contains(&offender.as_str()));
    assert_none(&offenders);
}

#[test]
fn lines_fit_the_screen() {
    assert_none(&offenders(rust_files(), long_lines));
}

#[test]
fn sources_have_no_tabs_and_no_control_characters() {
    assert_none(&offenders(rust_files(), control_characters));
}

#[test]
fn nothing_is_left_over() {
    assert_none(&offenders(rust_files(), banned_words));
}

#[test]
fn documentation_has_no_examples_that_nothing_runs() {
    assert_none(&offenders(rust_files(), examples));
}

#[test]
fn every_file_says_what_it_is() {
    let silent = |text: &str| {
        let says = text.starts_with("//! ");
        if says { Vec::new() } else { vec!["does not begin with //!".to_owned()] }
    };
    assert_none(&offenders(rust_files(), silent));
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut broken = Vec::new();
    for path in files("", ".md") {
        let directory = root().join(&path).parent().unwrap().to_owned();
        for link in relative_links(&text(&path)) {
            if !directory.join(&link).exists() {
                broken.push(format!("{}: {link} is not there", path.display()));
            }
        }
    }
    assert_none(&broken);
}

/// Documents that the contents of the site do not name, or name twice.
fn not_once(contents: &str, documents: &[PathBuf]) -> Vec<String> {
    let named = relative_links(contents);
    let times = |path: &PathBuf| {
        let wanted = match path.strip_prefix("docs") {
            Ok(inside) => inside.to_owned(),
            Err(_) => Path::new("..").join(path),
        };
        named.iter().filter(|link| Path::new(link) == wanted).count()
    };
    let offends = |path: &&PathBuf| times(path) != 1;
    documents.iter().filter(offends).map(|path| format!("{}", path.display())).collect()
}

#[test]
fn the_contents_of_the_site_name_every_document_once() {
    let mut documents = files("docs", ".md");
    documents.retain(|path| !path.ends_with("SUMMARY.md"));
    documents
        .extend(["README.md", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md"].map(Into::into));
    assert_none(&not_once(&text(Path::new("docs/SUMMARY.md")), &documents));
    let documents = ["docs/a.md", "docs/b.md", "C.md"].map(PathBuf::from);
    assert_eq!(not_once("[A](a.md) [C](../C.md) [C](../C.md)", &documents), ["docs/b.md", "C.md"]);
}

#[test]
fn every_source_file_is_a_module_of_another() {
    let mut dead = Vec::new();
    for path in files("src", ".rs").into_iter().chain(files("tests", ".rs")) {
        let (directory, name) = (path.parent().unwrap(), path.file_stem().unwrap());
        let is_root = ["lib", "main"].iter().any(|own| name == *own)
            || path.parent() == Some(Path::new("tests"));
        if is_root {
            continue;
        }
        // A `mod.rs` belongs to its directory's parent.
        let (module, around) = if name == "mod" {
            (directory.file_name().unwrap(), directory.parent().unwrap())
        } else {
            (name, directory)
        };
        let by_directory = around.with_extension("rs");
        let owners = ["mod.rs", "lib.rs", "main.rs"].map(|owner| around.join(owner));
        let owners =
            owners.into_iter().chain([by_directory]).filter(|owner| root().join(owner).exists());
        let declares =
            |owner: PathBuf| declared_modules(&text(&owner)).contains(module.to_str().unwrap());
        if !owners.into_iter().any(declares) {
            dead.push(format!("{} is not reached by any mod", path.display()));
        }
    }
    assert_none(&dead);
}

#[test]
fn every_caveat_is_explained() {
    let codes: BTreeSet<String> = files("src/run/caveat_kind", ".rs")
        .iter()
        .flat_map(|path| caveat_codes(&text(path)))
        .collect();
    assert!(codes.len() >= 20, "the codes are found: {codes:?}");
    let explained = text(Path::new(CAVEATS));
    let is_missing = |code: &&String| !explained.contains(&format!("| `{code}` |"));
    let missing: Vec<&String> = codes.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "{CAVEATS} does not explain {missing:?}");
}

/// Rows of a table in Markdown whose first cell is a code: the code, and the last cell.
fn rows_of_codes(text: &str) -> Vec<(String, String)> {
    let row = |line: &str| {
        let line = line.strip_prefix("| `")?.strip_suffix(" |")?;
        let (code, rest) = line.split_once('`')?;
        let last = rest.rsplit(" | ").next()?;
        Some((code.to_owned(), last.trim_matches('`').to_owned()))
    };
    text.lines().filter_map(row).collect()
}

#[test]
fn every_caveat_is_explained_with_its_effect() {
    let explained = text(Path::new(CAVEATS));
    let sources = files("src/run/caveat_kind", ".rs");
    let mut wrong = sources.iter().flat_map(|path| caveat_effects(&text(path)));
    let wrong = wrong.find(|(code, effect)| !explained.contains(&format!("`{code}` | {effect} |")));
    assert_eq!(wrong, None, "{CAVEATS} has another effect of this one");
}

#[test]
fn every_caveat_names_a_test_that_is_there() {
    let codes: BTreeSet<String> = files("src/run/caveat_kind", ".rs")
        .iter()
        .flat_map(|path| caveat_codes(&text(path)))
        .collect();
    let named = text(Path::new(CAVEAT_TESTS));
    let sources: Vec<String> = rust_files().iter().map(|path| text(path)).collect();
    let mut rows = rows_of_codes(&named);
    rows.retain(|(code, _)| codes.contains(code));
    assert_eq!(rows.len(), codes.len(), "a row for each code: {rows:?}");
    let is_there = |(code, test): &(String, String)| {
        let (function, code) = (format!("\nfn {test}()"), format!("\"{code}\""));
        let inner = format!("    fn {test}()");
        // The file that has the test also has the code, if only in its own table.
        sources.iter().any(|source| {
            (source.contains(&function) || source.contains(&inner)) && source.contains(&code)
        })
    };
    let missing: Vec<_> = rows.iter().filter(|row| !is_there(row)).collect();
    assert!(missing.is_empty(), "no such test, or its file does not name the code: {missing:?}");
}

#[test]
fn each_rule_finds_an_offender() {
    assert_eq!(
        rows_of_codes("| code | test |\n| `a_b` | weakens | x \\| y | `a_test` |\n"),
        [("a_b".to_owned(), "a_test".to_owned())]
    );
    assert_eq!(long_lines(&"x ".repeat(51)).len(), 1);
    assert_eq!(long_lines(&"ü".repeat(100)).len(), 0);
    assert_eq!(
        control_characters("a\n\tb\n\u{7}"),
        ["line 2 has the control character '\\t'", "line 3 has the control character '\\u{7}'",]
    );
    assert_eq!(banned_words(concat!("// TO", "DO: later")).len(), 1);
    assert_eq!(examples("/// ```text\n/// a\n/// ```\nfn f() {}\n/// ```\n/// f();\n").len(), 1);
    assert_eq!(length_without_tests("a\nb\n#[cfg(test)]\nmod tests {}\n"), 2);
    assert_eq!(relative_links("[a](b.md#c) [d](https://e) [f](#g)"), ["b.md"]);
    assert_eq!(
        declared_modules("mod a;\npub mod b;\nmod c {\n}"),
        ["a", "b"].map(String::from).into()
    );
    assert_eq!(caveat_codes("(\n\"a_b\",\nWeakens,\n\"no\","), ["a_b".to_owned()].into());
}

#[test]
fn a_long_function_is_found_by_its_name_and_a_short_one_is_not() {
    let function = |lines: usize| {
        format!("    pub fn f(x: u8) {{\n{}    }}\n", "        g();\n".repeat(lines))
    };
    assert_eq!(long_functions(&function(LONGEST_FUNCTION)), ["f"]);
    assert_eq!(long_functions(&function(LONGEST_FUNCTION - 2)), [""; 0]);
    let declared = format!("    fn declared();\n{}", function(LONGEST_FUNCTION - 2));
    assert_eq!(long_functions(&declared), [""; 0]);
}
