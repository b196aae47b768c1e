//! One public type, one name: two types of one name cannot be distinguished in a search or a list
//! of imports. And no name that says nothing to who knows kernels and performance but not tardy.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

/// Names that several types have today. It only ever gets shorter: a name that only one type has
/// left must go from here.
const DOUBLED: &[&str] = &[];

/// Words that were names of items here, and that nobody could guess: each stood for a thing that
/// has a name in its field. `Guest`, `gate` and `bench` mean what they mean elsewhere by now.
const UNGUESSABLE: &[&str] = &[
    "Maker",
    "Doubt",
    "Keeper",
    "Keep",
    "Pace",
    "crew",
    "bury",
    "obituary",
    "last_words",
    "ARRIVED",
    "turns",
    "blank",
    "hall",
    "door",
    "Door",
    "Caller",
    "ear",
    "Fate",
    "Account",
    "bed",
    "conduct",
    "boxes",
    "way_out",
    "adopt",
    "scene",
    "course",
    "covers",
    "overlaps",
    "Watch",
    "Watcher",
    "Watching",
    "Watched",
    "noun",
    "glance",
    "beats",
    "Told",
];

/// Names of items, whoever can use them.
fn items(text: &str) -> Vec<String> {
    const KEYWORDS: [&str; 9] =
        ["fn", "struct", "enum", "trait", "type", "union", "mod", "const", "static"];
    let name = |line: &str| {
        let mut words = line.split_whitespace();
        words.find(|word| KEYWORDS.contains(word))?;
        // `const fn`, `static mut`.
        let name = words.find(|word| !KEYWORDS.contains(word) && *word != "mut")?;
        crate::word(name)
    };
    crate::code_of(text).lines().filter_map(name).collect()
}

/// Names of types that others than their own file and its children can use.
fn public_types(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let line = line.trim_start();
        let rest = line.strip_prefix("pub ").or_else(|| line.strip_prefix("pub(crate) "))?;
        let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
        let (keyword, rest) = rest.split_once(' ')?;
        ["struct", "enum", "trait", "type", "union"]
            .contains(&keyword)
            .then(|| crate::word(rest))
            .flatten()
    };
    crate::code_of(text).lines().filter_map(name).collect()
}

fn doubled(names: impl IntoIterator<Item = (String, String)>) -> BTreeMap<String, Vec<String>> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, place) in names {
        places.entry(name).or_default().push(place);
    }
    places.retain(|_, places| places.len() > 1);
    places
}

#[test]
fn no_two_public_types_have_one_name() {
    let root = style::root();
    let mut names = Vec::new();
    for directory in ["src", "crates/tardy-hot/src"] {
        for file in crate::sources(&root.join(directory)) {
            let place = file.strip_prefix(root).unwrap().display().to_string();
            let types = public_types(&fs::read_to_string(&file).unwrap());
            names.extend(types.into_iter().map(|name| (name, place.clone())));
        }
    }
    assert!(names.len() > 200, "types are found: {}", names.len());
    let mut doubled = doubled(names);
    let gone: BTreeSet<&str> =
        DOUBLED.iter().copied().filter(|name| doubled.remove(*name).is_none()).collect();
    assert!(doubled.is_empty(), "choose other names: {doubled:#?}");
    assert!(gone.is_empty(), "only one type is called so now; take it from DOUBLED: {gone:?}");
}

#[test]
fn types_are_found_whatever_they_are() {
    let text = "pub struct A;\npub(crate) enum B {}\n    pub type C = u8;\npub unsafe trait D {}\n\
                struct E;\npub(super) struct F;\n// pub struct G;\npub fn h() {}\npub union I {}";
    assert_eq!(public_types(text), ["A", "B", "C", "D", "I"]);
    let names = [("A", "x"), ("B", "y"), ("A", "z")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(doubled(names), [("A".to_owned(), vec!["x".to_owned(), "z".to_owned()])].into());
}

#[test]
fn no_item_has_a_name_that_cannot_be_guessed() {
    let root = style::root();
    let (mut seen, mut found) = (0, Vec::new());
    for directory in ["src", "crates/tardy-hot", "xtask", "tests/outside", "tests/lab"] {
        for file in crate::sources(&root.join(directory)) {
            let names = items(&fs::read_to_string(&file).unwrap());
            seen += names.len();
            let bad = names.into_iter().filter(|name| UNGUESSABLE.contains(&name.as_str()));
            found.extend(bad.map(|name| format!("{}: {name}", file.display())));
        }
    }
    assert!(seen > 3_000, "items are found: {seen}");
    assert!(found.is_empty(), "use the field's words: {found:#?}");
}

#[test]
fn items_are_found_whatever_they_are() {
    let text = "pub(super) const fn course() {}\nenum Fate {}\nstatic mut A: u8 = 0;\n\
                pub mod hall;\nlet far = 1;\n// fn bury() {}\n    pub async fn c<T>() {}";
    assert_eq!(items(text), ["course", "Fate", "A", "hall", "c"]);
}
