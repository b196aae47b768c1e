//! The same cell is the same run, and another cell another.

use std::fs;

use tardy::{lab::cell::verify, run::LabFacts};

use super::*;

/// Few samples, so that most of the time is the kernel's boot.
const SHORT: [&str; 7] = [
    "timer",
    "--interval=200us",
    "--samples=500",
    "--warmup=10ms",
    "--load",
    "signals",
    "--trace=off",
];

#[test]
fn a_later_guest_has_the_same_samples_and_one_with_another_seed_has_others() {
    let Some(place) = Place::new() else { return };
    let cell = place.cell(&SHORT);
    let start = StartPhase::draw(1, 1, false);
    let other = Cell { seed: 1, start, ..cell.clone() };
    let documents = run_all(&[(&place, cell, "one"), (&place, other, "other")]);
    let hashes = [&documents[0], &documents[1]].map(sample_hash);
    assert!(hashes[0].is_some() && hashes[0] != hashes[1], "{hashes:?}");
    assert_ne!(documents[0].id, documents[1].id);
    complete(&place, &documents[0]);
    again(&place);
    place.assert_nothing_left();
}

fn sample_hash(document: &Document) -> Option<&str> {
    document.facts.lab.as_ref()?.sample_hash.as_deref()
}

#[test]
#[ignore = "long: two guests, where the repetition compares the samples"]
fn two_at_once_are_the_same_run_byte_for_byte() {
    let Some(place) = Place::new() else { return };
    let cell = || place.cell(&SHORT);
    run_all(&[(&place, cell(), "one"), (&place, cell(), "two")]);
    assert_eq!(files(&place.path("one")), files(&place.path("two")));
    place.assert_nothing_left();
}

/// What stands in the record of such a run.
fn complete(place: &Place, document: &Document) {
    let lab = document.facts.lab.as_ref().unwrap();
    assert_eq!((lab.mode.as_str(), lab.shift, lab.seed), ("deterministic", Some(1), 0));
    assert_eq!(lab.key, place.runner.key(&place.cell(&SHORT)).unwrap());
    assert_eq!(document.series[0].count, 500);
    assert_ne!(document.facts.preemption.model, "unknown", "the guest finds out");
    let codes: Vec<&str> = document.caveats.iter().map(|caveat| caveat.code.as_str()).collect();
    assert!(codes.contains(&"counted_time") && !codes.contains(&"virtual_machine"), "{codes:?}");
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/run.schema.json");
    let schema = serde_json::from_slice(&fs::read(schema).unwrap()).unwrap();
    let record = serde_json::to_value(document).unwrap();
    jsonschema::validate(&schema, &record).unwrap();
}

/// The repetition, from the run alone.
fn again(place: &Place) {
    let run = open(&place.path("one"));
    let facts = verify::facts(&run).unwrap();
    let verified = |facts: &LabFacts| {
        verify::verify(facts, place.kernel.clone(), LIMIT, &place.runner, &|| false)
    };
    assert!(verified(facts).unwrap().is_same());
    let mut changed = facts.clone();
    changed.program_hash = "00".into();
    let error = verified(&changed).unwrap_err().to_string();
    assert!(error.contains("tardy with its libraries was 00, and is "), "{error}");
    changed = facts.clone();
    changed.seed = 7;
    assert!(verified(&changed).is_err(), "another seed has another key");
}

#[test]
#[ignore = "long: a guest"]
fn a_kernel_that_permits_no_ports_hands_its_run_out_by_the_serial_line() {
    let Some(place) = Place::new() else { return };
    let mut cell = place.cell(&SHORT);
    cell.kernel.append = "lockdown=integrity".into();
    let document = place.run(&cell, "run").unwrap();
    assert_eq!(document.series[0].count, 500);
    let cmdline = document.facts.kernel_cmdline.unwrap();
    assert!(cmdline.contains("lockdown=integrity"), "{cmdline}");
    place.assert_nothing_left();
}

#[test]
fn only_a_run_of_the_lab_whose_samples_are_whole_can_be_repeated() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run");
    let text = path.to_str().unwrap();
    let made = tardy(&["run", "fake", "--duration=200ms", "--raw", "--quiet", "-o", text]);
    assert!(made.status.success(), "{}", said(&made));
    let refused = |part: &str| {
        let output = tardy(&["lab", "verify", text]);
        assert_eq!(output.status.code(), Some(2));
        assert!(said(&output).contains(part), "{part}: {}", said(&output));
    };
    refused("not measured by the lab");
    let edit = |mode: &str, hash: Option<&str>| {
        let mut document = open(&path).document;
        let (mode, sample_hash) = (mode.into(), hash.map(str::to_owned));
        let lab = LabFacts { mode, sample_hash, ..Default::default() };
        document.facts.lab = Some(lab);
        fs::write(path.join("run.json"), serde_json::to_vec(&document).unwrap()).unwrap();
    };
    edit("emulated", None);
    refused("mode emulated");
    edit("deterministic", None);
    refused("no sample_hash");
    edit("deterministic", Some("00"));
    refused("are not those");
    let file = directory.path().join("figures.json");
    let file = file.to_str().unwrap();
    let output = tardy(&["lab", "publish", text, "-o", file]);
    assert!(output.status.code() == Some(2) && said(&output).contains("are not those"));
    assert!(!Path::new(file).exists());
}

#[test]
fn a_file_that_was_not_published_is_refused_by_what_is_wrong_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("figures.json");
    let file = file.to_str().unwrap();
    for (text, part) in [
        ("", "`tardy lab publish` writes such files"),
        ("{\"published_version\": 1, \"cells\": []}", "cells is empty"),
        ("{\"published_version\": 9, \"cells\": []}", "published_version 9 is newer"),
    ] {
        fs::write(file, text).unwrap();
        let output = tardy(&["lab", "verify", "--published", file]);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(said(&output).contains(part), "{part}: {}", said(&output));
    }
}
