//! Who may import whom: every path in `src/` compared with the table of `docs/dev/architecture.md`.
//!
//! Makers write runs, readers read them; they meet in `run` alone. A module that needs an edge that
//! is not here is in the wrong place, or the table is; the table changes together with its text.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "layers/circles.rs"]
mod circles;
#[path = "layers/names.rs"]
mod names;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// A module and those it may import. `cli` may import all; `tardy_hot` is another crate.
const ALLOWED: &[(&str, &[&str])] = &[
    ("campaign", &["analysis", "run", "plain", "sys", "units"]),
    (
        "session",
        &["analysis", "probes", "loads", "peaks", "kernel", "setup", "run", "sys", "units"],
    ),
    ("probes", &["transports", "kernel", "run", "setup", "sys", "units"]),
    ("echo", &["transports", "setup", "sys", "units"]),
    ("transports", &["sys", "units"]),
    ("peaks", &["kernel", "run", "sys", "units", "testing"]),
    ("kernel", &["sys", "units", "testing"]),
    ("loads", &["run", "sys", "units"]),
    ("check", &["run", "setup", "sys", "units"]),
    ("setup", &["limits", "run", "draft", "sys", "units"]),
    ("plan", &["limits", "loads", "analysis", "run", "units"]),
    ("lab", &["limits", "plan", "run", "store", "analysis", "draft", "plain", "sys", "units"]),
    ("store", &["limits", "run", "draft", "plain", "units"]),
    ("live", &["plain", "units"]),
    ("exchange", &["analysis", "limits", "report", "run", "plain", "units"]),
    ("report", &["limits", "run", "analysis", "plain", "units", "testing"]),
    ("analysis", &["run", "units", "testing"]),
    ("run", &["limits", "draft", "plain", "units", "testing"]),
    ("draft", &["testing"]),
    ("limits", &[]),
    ("plain", &[]),
    ("sys", &[]),
    ("units", &[]),
    ("testing", &[]),
];

/// Who may use the measuring loops and their types: makers, `run` for what they leave, `exchange`,
/// which makes runs of files, and `sys` where it makes ports: only there may pointers be handed
/// over.
const MAY_USE_HOT: [&str; 11] = [
    "session",
    "probes",
    "transports",
    "echo",
    "peaks",
    "kernel",
    "loads",
    "setup",
    "run",
    "exchange",
    "sys",
];

fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            files.push(path);
        }
    }
    files
}

/// The module of a file below `src`: its first directory, or its own name.
fn module_of(path: &Path) -> String {
    let first = path.iter().next().unwrap().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

/// The source without comments, so that documentation may link wherever it likes.
fn code_of(text: &str) -> String {
    let code = |line: &str| match line.find("//") {
        // Not a URL in a string.
        Some(at) if !line[..at].ends_with(':') => line[..at].to_owned(),
        _ => line.to_owned(),
    };
    text.lines().map(code).collect::<Vec<_>>().join("\n")
}

/// Modules that `crate::...` paths lead to, also in groups: `crate::{a::B, c::{D, E}}`.
fn imports(text: &str) -> BTreeSet<String> {
    let code = code_of(text);
    let mut found = BTreeSet::new();
    for (at, start) in code.match_indices("crate::") {
        // `$crate::` and `crate::` both; not `other_crate::`.
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        found.extend(first_segments(&code[at + start.len()..]));
    }
    found
}

/// The first name, or of a group in braces the first name of each of its members.
fn first_segments(rest: &str) -> Vec<String> {
    let Some(group) = rest.trim_start().strip_prefix('{') else {
        return word(rest).into_iter().collect();
    };
    let (mut depth, mut start, mut names) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                names.extend(word(&group[start..at]));
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.extend(word(&group[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    names
}

fn word(text: &str) -> Option<String> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    (end > 0).then(|| text[..end].to_owned())
}

/// What a file of `module` with this text imports against the table.
fn violations(module: &str, text: &str) -> Vec<String> {
    if ["cli", "main", "lib"].contains(&module) {
        return Vec::new();
    }
    let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == module) else {
        return vec![format!("{module} is not in the table of style/tests/layers.rs")];
    };
    let of_modules = imports(text)
        .into_iter()
        .filter(|import| import != module && !allowed.contains(&import.as_str()))
        .map(|import| format!("{module} imports {import}"));
    let uses_hot = code_of(text).contains("tardy_hot::") && !MAY_USE_HOT.contains(&module);
    of_modules.chain(uses_hot.then(|| format!("{module} imports tardy_hot"))).collect()
}

#[test]
fn no_file_imports_against_the_table_of_layers() {
    let root = style::root().join("src");
    let mut offenders = Vec::new();
    let files = sources(&root);
    assert!(files.len() > 40, "the sources are found: {}", files.len());
    for file in files {
        let path = file.strip_prefix(&root).unwrap();
        for violation in violations(&module_of(path), &fs::read_to_string(&file).unwrap()) {
            offenders.push(format!("src/{}: {violation}", path.display()));
        }
    }
    assert!(offenders.is_empty(), "{}", offenders.join("\n"));
}

#[test]
fn modules_are_imported_and_so_the_checker_sees_something() {
    let root = style::root().join("src");
    let session = imports(&fs::read_to_string(root.join("session/mod.rs")).unwrap());
    for module in ["loads", "probes", "run", "setup", "sys"] {
        assert!(session.contains(module), "{module}: {session:?}");
    }
}

#[test]
fn a_planted_violation_is_found_in_every_form_of_import() {
    for text in [
        "use crate::session::Plan;",
        "use crate::{run::Document, session};",
        "use crate::{\n    run::{Document, names},\n    session::Plan,\n};",
        "pub use crate::session as s;",
        "fn f() { crate::session::f() }",
        "let x: crate :: session;\nuse crate::session;",
        "#[cfg(test)] mod tests { use crate::session::Plan; }",
    ] {
        assert_eq!(violations("report", text), ["report imports session"], "{text}");
    }
}

#[test]
fn the_checker_holds_each_edge_by_itself() {
    assert_eq!(violations("probes", "use crate::loads::LoadSpec;"), ["probes imports loads"]);
    assert_eq!(violations("loads", "use crate::{probes, setup};").len(), 2);
    assert_eq!(violations("run", "use crate::{sys::clock, units::Nanos};"), ["run imports sys"]);
    assert_eq!(violations("sys", "use crate::units::Nanos;"), ["sys imports units"]);
    assert_eq!(violations("units", "use tardy_hot::clock;"), ["units imports tardy_hot"]);
    assert_eq!(violations("report", "x(tardy_hot::clock::now_ns())"), ["report imports tardy_hot"]);
    assert_eq!(violations("nosuch", "").len(), 1, "a new module needs a line in the table");
    assert_eq!(violations("store", "use crate::report::words;"), ["store imports report"]);
}

#[test]
fn what_is_allowed_or_no_import_is_no_violation() {
    for (module, text) in [
        ("session", "use crate::{loads::LoadSpec, run::{Document, hlog}, sys};"),
        ("report", "use crate::{run::Run, units::{Nanos, count}};\nuse super::words;"),
        ("report", "//! Not like [`crate::session::Plan`], which measures."),
        ("report", "/// See [`crate::session`].\nuse crate::run::Run; // not crate::session"),
        ("report", "use other_crate::session::Plan;"),
        ("run", "use tardy_hot::tally::Totals;\nuse crate::run::caveat;"),
        ("cli", "use crate::{session::Session, report::terminal};"),
    ] {
        assert_eq!(violations(module, text), [""; 0], "{text}");
    }
}
