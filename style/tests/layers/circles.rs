//! No circles of files: of two files or directories beside each other, at most one needs the other,
//! also by way of others.
//!
//! The rule, at each directory of `src/`: its files and directories are the nodes, and what lies
//! below a directory belongs to it. A path in `use` or in code leads from the node that has it to
//! the node that it names. A name that is taken from a parent which only passes it on (`use` or
//! `pub use` there) leads to where the parent has it from. A parent and its children are parts of
//! one thing and may use each other; so the file that declares a directory is not a node in it.
//!
//! Tests may look anywhere: `mod tests` is left out.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// Circles that are allowed: the directory, and what is in the circle. At present none.
const KNOWN: &[(&str, &[&str])] = &[];

/// A module by the names on its way from the crate.
type Module = Vec<String>;

/// What one file has to say of modules.
#[derive(Default)]
struct Source {
    /// Names that it takes from elsewhere, and the whole path of each.
    imports: BTreeMap<String, Vec<String>>,
    /// Every path in it that begins with `crate`, `self` or `super`, or is in a `use`.
    paths: Vec<Vec<String>>,
}

/// The modules of a tree of sources.
struct Tree(BTreeMap<Module, Source>);

impl Tree {
    fn read(root: &Path) -> Self {
        let mut modules = BTreeMap::new();
        for file in crate::sources(root) {
            let module = module_of(file.strip_prefix(root).unwrap());
            let is_test = module.iter().any(|name| name == "tests");
            if !is_test && module != ["main"] {
                modules.insert(module, source_of(&fs::read_to_string(&file).unwrap()));
            }
        }
        Self(modules)
    }

    #[cfg(test)]
    fn of(files: &[(&str, &str)]) -> Self {
        let source = |(path, text): &(&str, &str)| (module_of(Path::new(path)), source_of(text));
        Self(files.iter().map(source).collect())
    }

    /// The module whose file has what `path` names, as seen from `from`; absent for what is not of
    /// this crate.
    fn resolve(&self, from: &[String], path: &[String], depth: u8) -> Option<Module> {
        let mut at = match path.first()?.as_str() {
            "crate" => Vec::new(),
            "self" => from.to_vec(),
            "super" => from.split_last()?.1.to_vec(),
            child if self.0.contains_key(&joined(from, child)) => joined(from, child),
            _ => return None,
        };
        for name in &path[1..] {
            let below = joined(&at, name);
            if name == "super" {
                at.pop();
            } else if self.0.contains_key(&below) {
                at = below;
            } else {
                // What it is called may come from elsewhere.
                let passed_on = self.0.get(&at).and_then(|source| source.imports.get(name));
                let passed_on = passed_on.filter(|_| depth > 0);
                let origin = passed_on.and_then(|path| self.resolve(&at, path, depth - 1));
                return Some(origin.unwrap_or(at));
            }
        }
        Some(at)
    }

    /// Per directory: which of its nodes needs which.
    fn edges(&self) -> BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> {
        let mut edges: BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for (from, source) in &self.0 {
            for to in source.paths.iter().filter_map(|path| self.resolve(from, path, 8)) {
                let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
                // Of a parent and its child, one has no name left.
                let (Some(a), Some(b)) = (from.get(shared), to.get(shared)) else { continue };
                let level = edges.entry(from[..shared].to_vec()).or_default();
                level.entry(a.clone()).or_default().insert(b.clone());
            }
        }
        edges
    }

    /// Circles, each as its directory and all who are in it.
    fn circles(&self) -> BTreeSet<(String, Vec<String>)> {
        let mut circles = BTreeSet::new();
        for (level, edges) in self.edges() {
            let reach: BTreeMap<&String, BTreeSet<&String>> =
                edges.keys().map(|node| (node, reached(node, &edges))).collect();
            for (node, reached) in reach.iter().filter(|(node, reached)| reached.contains(*node)) {
                let back = |other: &&&String| {
                    reach.get(**other).is_some_and(|reached| reached.contains(*node))
                };
                let members = reached.iter().filter(back).map(|name| (*name).clone()).collect();
                circles.insert((level.join("/"), members));
            }
        }
        circles
    }
}

fn joined(module: &[String], name: &str) -> Module {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

fn reached<'a>(
    node: &String,
    edges: &'a BTreeMap<String, BTreeSet<String>>,
) -> BTreeSet<&'a String> {
    let (mut found, mut left) = (BTreeSet::new(), vec![node]);
    while let Some(next) = left.pop() {
        for other in edges.get(next).into_iter().flatten() {
            if found.insert(other) {
                left.push(other);
            }
        }
    }
    found
}

fn module_of(path: &Path) -> Module {
    let mut names: Module = path.iter().map(|name| name.to_str().unwrap().to_owned()).collect();
    let last = names.pop().unwrap();
    let name = last.trim_end_matches(".rs");
    if name != "mod" && name != "lib" {
        names.push(name.to_owned());
    }
    names
}

fn source_of(text: &str) -> Source {
    let tested = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let code = crate::code_of(&text[..tested]);
    let mut source = Source::default();
    for (at, word) in words(&code) {
        let after = &code[at + word.len()..];
        if word == "use" {
            let mut leaves = Vec::new();
            tree(after, &[], &mut leaves);
            for (path, name) in leaves {
                source.imports.insert(name, path.clone());
                source.paths.push(path);
            }
        } else if ["crate", "self", "super"].contains(&word)
            && after.starts_with("::")
            && !code[..at].ends_with("::")
        {
            let mut leaves = Vec::new();
            tree(&code[at..], &[], &mut leaves);
            source.paths.extend(leaves.into_iter().map(|(path, _)| path));
        }
    }
    source
}

/// Every word of the code, and where it begins.
fn words(code: &str) -> Vec<(usize, &str)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut start = None;
    for (at, c) in code.char_indices().chain([(code.len(), ' ')]) {
        match (start, is_part(c)) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                found.push((from, &code[from..at]));
                start = None;
            }
            _ => {}
        }
    }
    found
}

/// Reads a path or a tree of paths; each leaf with the name that it has here. What is left.
fn tree<'a>(text: &'a str, before: &[String], leaves: &mut Vec<(Vec<String>, String)>) -> &'a str {
    let mut text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = tree(rest, before, leaves).trim_start();
            match rest.strip_prefix(',') {
                Some(more) if !more.trim_start().starts_with('}') => rest = more,
                Some(more) => return more.trim_start().strip_prefix('}').unwrap_or(more),
                None => return rest.strip_prefix('}').unwrap_or(rest),
            }
        }
    }
    let Some(name) = crate::word(text) else {
        if let Some(rest) = text.strip_prefix('*') {
            leaves.push((before.to_vec(), "*".to_owned()));
            return rest;
        }
        return text;
    };
    text = &text[name.len()..];
    let path = match name.as_str() {
        // `a::{self, b}` names `a`.
        "self" if !before.is_empty() => before.to_vec(),
        _ => joined(before, &name),
    };
    if let Some(rest) = text.strip_prefix("::")
        // Not `f::<T>`.
        && !rest.starts_with('<')
    {
        return tree(rest, &path, leaves);
    }
    let mut own = path.last().cloned().unwrap_or_default();
    if let Some(alias) = text.trim_start().strip_prefix("as ") {
        own = crate::word(alias).unwrap_or_default();
        text = &alias[own.len()..];
    }
    leaves.push((path, own));
    text
}

#[test]
fn no_files_need_each_other() {
    let tree = Tree::read(&style::root().join("src"));
    assert!(tree.edges().len() > 10, "paths are found");
    let found = tree.circles();
    let known: BTreeSet<(String, Vec<String>)> = KNOWN
        .iter()
        .map(|(level, members)| {
            (level.to_string(), members.iter().map(|m| m.to_string()).collect())
        })
        .collect();
    let new: Vec<_> = found.difference(&known).collect();
    assert!(new.is_empty(), "new circles; move what both need to a separate file: {new:#?}");
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(gone.is_empty(), "no circles any more; take them from KNOWN: {gone:#?}");
}

#[test]
fn a_circle_is_found_in_every_form_of_path() {
    for (a, b) in [
        ("use super::b::B;", "use super::a::A;"),
        ("use crate::room::b::B;", "fn f() { super::a::f() }"),
        ("use super::{c::C, b::{self, B}};", "fn f(x: crate::room::a::A) {}"),
        ("use super::B;", "use super::A;"),
        ("use super::c::C;", "use super::a::A;"),
    ] {
        let parent = "mod a;\nmod b;\nmod c;\npub use self::a::A;\npub use b::B;";
        let tree = Tree::of(&[
            ("room/mod.rs", parent),
            ("room/a.rs", a),
            ("room/b.rs", b),
            ("room/c/mod.rs", "mod inner;"),
            ("room/c/inner.rs", "use crate::room::b;"),
        ]);
        let circles: Vec<_> = tree.circles().into_iter().collect();
        let [(level, members)] = circles.as_slice() else { panic!("{a} {b}: {circles:?}") };
        assert!(level == "room" && members.contains(&"a".to_owned()), "{a} {b}: {members:?}");
    }
}

#[test]
fn what_is_no_circle_is_none() {
    for (a, b) in [
        ("use super::b::B;", "use super::PARENTS;"),
        ("use super::b::B;", "//! [`super::a::A`]\nuse other::a::A;"),
        ("use super::b::B;", "#[cfg(test)]\nmod tests {\n    use super::super::a::A;\n}"),
    ] {
        let parent = "mod a;\nmod b;\nuse self::a::A;\nconst PARENTS: u8 = 0;";
        let tree = Tree::of(&[("room/mod.rs", parent), ("room/a.rs", a), ("room/b.rs", b)]);
        assert!(tree.circles().is_empty(), "{a} {b}: {:?}", tree.circles());
    }
}
