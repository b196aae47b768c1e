//! One public type, one name: two types of one name cannot be distinguished in a search or a list
//! of imports.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// Names that several types have today. It only ever gets shorter: a name that only one type has
/// left must go from here.
const DOUBLED: &[&str] = &[];

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
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
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
