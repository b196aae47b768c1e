//! Plans that somebody else wrote, beside each other.

use std::fs;

use serde_json::Value;

use super::{STEERING, in_colour, steering, texts};
use crate::support::Store;

const TINY: &str = "name = \"tiny\"\nprobe = \"fake\"\n[run]\ncpus = \"0\"\n\
    interval = \"10us\"\nunpaced = true\nsamples = 100\nwarmup = \"0s\"\n\
    [[load]]\nname = \"a\"\nuse = []\n[[load]]\nname = \"b\"\nuse = []\n";

#[test]
fn names_in_plans_steer_no_terminal() {
    let store = Store::new();
    let file = store.path().join("plan.toml");
    fs::write(&file, TINY).unwrap();
    for name in ["x", "y"] {
        let said = store.run(&["plan", file.to_str().unwrap(), "--name", name, "--quiet"]);
        assert_eq!(said.code, Some(0), "{said:?}");
    }
    let records = ["x", "y"].map(|name| store.runs().join(name).join("plan.json"));
    let whole = records
        .each_ref()
        .map(|file| -> Value { serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap() });
    let mut places = Vec::new();
    texts(&whole[1], "", &mut places);
    let compare = || {
        let said = in_colour(&store, &["compare", "x", "y"]);
        for text in [&said.out, &said.err] {
            assert_eq!(steering(text), None, "{text}");
        }
        said
    };
    // Each text by itself, as a name or as an error that quotes it.
    let odd = |record: &mut Value, place: &str| {
        let text = record.pointer_mut(place).unwrap();
        *text = format!("{}{STEERING}", text.as_str().unwrap()).into();
    };
    for place in &places {
        let mut one = whole[1].clone();
        odd(&mut one, place);
        fs::write(&records[1], one.to_string()).unwrap();
        compare();
    }
    // All that two plans have the same, so that their rows are compared.
    let is_name = |place: &&String| {
        let ends = ["/name", "/plan", "/row", "/column"];
        let lists = ["/rows/", "/columns/"];
        ends.iter().any(|end| place.ends_with(end)) || lists.iter().any(|at| place.starts_with(at))
    };
    for (file, record) in records.iter().zip(&whole) {
        let mut all = record.clone();
        places.iter().filter(is_name).for_each(|place| odd(&mut all, place));
        fs::write(file, all.to_string()).unwrap();
    }
    let said = compare();
    assert!(said.out.contains("\\u{1b}]52"), "a name is shown: {said:?}");
    for arguments in [&["list"][..], &["report", "y", "-o", "page.html"]] {
        let said = in_colour(&store, arguments);
        for text in [&said.out, &said.err] {
            assert_eq!(steering(text), None, "{arguments:?}: {text}");
        }
    }
}
