//! Bundles of real files, and damaged or hostile ones.

use std::{fs, path::PathBuf};

use super::*;
use crate::{report::fixture, run::Status};

/// A run with a late sample, a log, a table and samples, in `place`.
fn measured(place: &Path) -> Run {
    let mut document = fixture::of("probed", &["cpu0"]);
    document.facts.hostname = "rack7".into();
    document.argv = ["/home/eve/tardy", "run", "--name", "secret"].map(str::to_owned).to_vec();
    fs::create_dir_all(place.join("samples")).unwrap();
    let peak = r#"{"series": "cpu0", "task": "trader/7", "evidence": "in /home/eve/bin",
        "stack": ["eves_function+0x1"]}"#;
    for (name, text) in [
        ("run.json", serde_json::to_string(&document).unwrap().as_str()),
        ("series.hlog", "#[Logged on rack7]\nTag=cpu0,0.000,1.000,1.0,HISTFAAA/rack7/x\n"),
        ("machine.csv", "t_s,what,value\n1.0,interrupts,2\n"),
        ("peaks.jsonl", &peak.replace('\n', "")),
        ("profile.json", "eves_function"),
        ("load.log", "eves words"),
        ("notes.txt", "of the user's own"),
        ("samples/000001.parquet", "samples"),
        ("samples/notes", "of the user's own"),
    ] {
        fs::write(place.join(name), text).unwrap();
    }
    Run::open(place).unwrap()
}

fn bundle(run: &Run, redacts: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(run, redacts, &mut bytes).unwrap();
    zstd::stream::decode_all(&bytes[..]).unwrap()
}

/// The run of a bundle in a new directory, with its files; nothing else is left there.
fn taken(bytes: &[u8]) -> (Result<Option<Document>>, Vec<PathBuf>) {
    let above = tempfile::tempdir().unwrap();
    let made = read(bytes, |_| {
        let directory = RunDirectory::make(&above.path().join(".draft"))?;
        Ok(Some(BundlePlace { directory, name: "taken".into() }))
    });
    assert!(!above.path().join(".draft").exists());
    let place = above.path().join("taken");
    let files = if place.exists() { kept_files(&place).unwrap() } else { Vec::new() };
    (made, files)
}

/// A bundle of these files, each with its kind and content.
fn made_up(files: &[(&str, EntryType, &str)]) -> Vec<u8> {
    let mut archive = Builder::new(Vec::new());
    for (name, kind, text) in files {
        let mut header = header(text.len() as u64);
        header.set_entry_type(*kind);
        // Paths that the builder refuses, too.
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        archive.append(&header, text.as_bytes()).unwrap();
    }
    archive.into_inner().unwrap()
}

const HEAD_TEXT: &str = r#"{"bundle_version": 1, "tardy_version": "9", "id": "i", "name": "n"}"#;

#[test]
fn what_is_taken_is_the_same_run_that_came_from_elsewhere() {
    let place = tempfile::tempdir().unwrap();
    let run = measured(place.path());
    let bytes = bundle(&run, false);
    assert!(is_bundle(&mut &bytes[..]).unwrap());
    let (made, files) = taken(&bytes);
    let made = made.unwrap().unwrap();
    assert_eq!((made.name.as_str(), made.provenance.received), ("taken", true));
    assert_eq!((made.series, made.argv), (run.document.series, run.document.argv));
    let expected = [
        "load.log",
        "machine.csv",
        "peaks.jsonl",
        "profile.json",
        "samples/000001.parquet",
        "series.hlog",
    ];
    assert_eq!(files, expected.map(PathBuf::from), "and nothing of the user's own");
}

#[test]
fn a_redacted_bundle_has_nothing_of_the_machine_and_of_other_programs() {
    let place = tempfile::tempdir().unwrap();
    let run = measured(place.path());
    let bytes = bundle(&run, true);
    let text = String::from_utf8_lossy(&bytes);
    for secret in ["/home", "eves_function", "eves words", "secret", "Logged on rack7"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    assert!(text.contains("trader/7"), "threads are causes");
    assert!(text.contains("HISTFAAA/rack7/x"), "a packed histogram is whole");
    let made = taken(&bytes).0.unwrap().unwrap();
    assert_eq!(made.facts.hostname, "redacted-i");
    assert_eq!(made.argv, ["tardy", "(redacted)", "--name", "(redacted)"]);
}

#[test]
fn nothing_but_files_of_a_run_is_taken() {
    let plain = EntryType::Regular;
    let head = (HEAD, plain, HEAD_TEXT);
    for (name, kind) in [
        ("../run.json", plain),
        ("/etc/passwd", plain),
        ("samples/../../x.parquet", plain),
        ("samples/1.parquet/x", plain),
        ("samples/x.parquet", plain),
        ("samples", EntryType::Directory),
        ("series.hlog", EntryType::Symlink),
        ("series.hlog", EntryType::Link),
        ("series.hlog", EntryType::Char),
        ("series.hlog", EntryType::GNULongName),
        ("series.hlog", EntryType::XHeader),
        ("live.json", plain),
        (HEAD, plain),
    ] {
        let (made, files) = taken(&made_up(&[head, ("machine.csv", plain, ""), (name, kind, "x")]));
        let error = made.unwrap_err().to_string();
        assert!(error.contains("which does not belong to a run"), "{name}: {error}");
        assert_eq!(files, Vec::<PathBuf>::new(), "{name}: nothing is left");
    }
}

#[test]
fn damage_is_an_error_and_leaves_nothing() {
    let plain = EntryType::Regular;
    let place = tempfile::tempdir().unwrap();
    let mut document = measured(place.path()).document;
    document.id = "other".into();
    let other = serde_json::to_string(&document).unwrap();
    document.id = "i".into();
    let own = serde_json::to_string(&document).unwrap();
    let head = (HEAD, plain, HEAD_TEXT);
    for (files, why) in [
        (vec![], "it is empty"),
        (vec![(HEAD, plain, "{")], "tardy-bundle.json in it is damaged"),
        (vec![(HEAD, plain, &HEAD_TEXT.replace(": 1,", ": 2,"))], "a bundle of version 2"),
        (vec![head, ("machine.csv", plain, "x")], "its end is missing"),
        (vec![head, ("machine.csv", plain, ""), ("machine.csv", plain, "")], "is in it twice"),
        (vec![head, ("run.json", plain, "{}")], "is damaged"),
        (vec![head, ("run.json", plain, &other)], "of another run"),
        (vec![head, ("run.json", plain, &own)], "its histograms, series.hlog, are missing"),
        (vec![head, ("run.json", plain, &own), ("load.log", plain, "")], "not belong to a run"),
        (vec![(HEAD, plain, &HEAD_TEXT.replace("\"i\"", "\"../x\""))], "not one of tardy"),
    ] as [(Vec<(&str, EntryType, &str)>, &str); 10]
    {
        let (made, left) = taken(&made_up(&files));
        let error = format!("{:#}", made.unwrap_err());
        assert!(error.contains(why), "{why}: {error}");
        assert_eq!(left, Vec::<PathBuf>::new(), "{why}");
    }
    let whole = bundle(&measured(place.path()), false);
    for end in [700, 1_600, whole.len() - 1_536] {
        let (made, left) = taken(&whole[..end]);
        assert!(made.is_err() && left.is_empty(), "{end}");
    }
}

#[test]
fn two_bundles_in_one_file_are_not_taken_for_one() {
    let place = tempfile::tempdir().unwrap();
    let whole = bundle(&measured(place.path()), false);
    let (made, left) = taken(&[&whole[..], &whole].concat());
    assert!(made.unwrap_err().to_string().contains("something follows its run"));
    assert!(left.is_empty());
}

#[test]
fn a_bit_that_flips_is_found_by_the_checksum() {
    let place = tempfile::tempdir().unwrap();
    let mut bytes = Vec::new();
    write(&measured(place.path()), false, &mut bytes).unwrap();
    for at in (8..bytes.len()).step_by(97) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        let unpacked = zstd::stream::read::Decoder::new(&damaged[..]).unwrap();
        let made = read(unpacked, |_| {
            let directory = RunDirectory::make(&place.path().join(".draft"))?;
            Ok(Some(BundlePlace { directory, name: "taken".into() }))
        });
        assert!(made.is_err(), "{at}");
    }
}

#[test]
fn a_run_that_was_killed_is_handed_on_with_what_it_has() {
    let place = tempfile::tempdir().unwrap();
    let mut document = measured(place.path()).document;
    document.status = Status::Running;
    fs::write(place.path().join("run.json"), serde_json::to_string(&document).unwrap()).unwrap();
    fs::write(place.path().join("machine.csv"), b"t_s,what,value\n\xff").unwrap();
    let peaks = fs::read_to_string(place.path().join("peaks.jsonl")).unwrap();
    fs::write(place.path().join("peaks.jsonl"), peaks + "\n{\"series\": \"cp").unwrap();
    let run = Run::open(place.path()).unwrap();
    assert_eq!(run.document.status, Status::Crashed);
    for redacts in [false, true] {
        let made = taken(&bundle(&run, redacts)).0.unwrap().unwrap();
        assert_eq!(made.status, Status::Crashed, "{redacts}");
    }
}
