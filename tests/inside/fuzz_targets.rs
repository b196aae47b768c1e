//! The targets of `fuzz/`, each with what `tools/fuzz` begins with and with some of it damaged at
//! random: so they compile on each change, and what is easily found is found at once. `make fuzz`
//! looks for as long as it is told to, and follows what the code does with its input.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::chance::{Campaign, Chance, repeats};

#[path = "../../fuzz/fuzz_targets/echo.rs"]
mod echo;
#[path = "../../fuzz/fuzz_targets/hello.rs"]
mod hello;
#[path = "../../fuzz/fuzz_targets/hlog.rs"]
mod hlog;
#[path = "../../fuzz/fuzz_targets/import.rs"]
mod import;
#[path = "../../fuzz/fuzz_targets/journal.rs"]
mod journal;
#[path = "../../fuzz/fuzz_targets/kernel.rs"]
mod kernel;
#[path = "../../fuzz/fuzz_targets/lab_record.rs"]
mod lab_record;
#[path = "../../fuzz/fuzz_targets/modules.rs"]
mod modules;
#[path = "../../fuzz/fuzz_targets/pingpong.rs"]
mod pingpong;
#[path = "../../fuzz/fuzz_targets/plan.rs"]
mod plan;
#[path = "../../fuzz/fuzz_targets/run.rs"]
mod run;
#[path = "../../fuzz/fuzz_targets/samples.rs"]
mod samples;
#[path = "../../fuzz/fuzz_targets/stream.rs"]
mod stream;
#[path = "../../fuzz/fuzz_targets/trace.rs"]
mod trace;
#[path = "../../fuzz/fuzz_targets/tracks.rs"]
mod tracks;
#[path = "../../fuzz/fuzz_targets/transfer.rs"]
mod transfer;
#[path = "../../fuzz/fuzz_targets/wult.rs"]
mod wult;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files in a directory of the sources; none if it is not there.
fn files(directory: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(directory)).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect()
}

/// Runs that are kept as they were written long ago.
fn fixtures() -> impl Iterator<Item = PathBuf> {
    let runs = ["interrupted", "pingpong", "receive", "stream", "timer"];
    runs.into_iter().map(|run| root().join("tests/fixtures/v1").join(run))
}

/// A profile of one sample.
const PROFILE: &str = r#"{"version":1,"event":"cpu-clock","unit":"ns","hz":99,"from_ns":0,
"until_ns":9,"tells_interrupts":true,"samples":1,"lost":0,"other":0,
"cost":{"samples":1,"program_ns":9,"helper_ns":9},"modules":["[kernel]"],"functions":["a","b"],
"frames":[[0,0],[1,0]],"nodes":[[0,0],[1,1]],"tasks":[{"name":"t","pid":1,"tid":1}],
"rows":[[0,0,"kernel",2,1,9]]}"#;

/// What a target begins with.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let of_runs = |name: &'static str| fixtures().map(move |run| run.join(name)).collect();
    let kept = match target {
        "hlog" => of_runs("series.hlog"),
        "tracks" => of_runs("machine.csv"),
        "plan" => files("lab"),
        "samples" => return vec![b"tardysp1".to_vec(), real_samples()],
        "run" => return fixtures().flat_map(|run| [whole(&run), running(&run)]).collect(),
        other => files(&format!("fuzz/seeds/{other}")),
    };
    let mut seeds: Vec<Vec<u8>> = kept.into_iter().map(|path| fs::read(path).unwrap()).collect();
    if seeds.is_empty() {
        seeds.push(b"tardy 0123456789".repeat(20));
    }
    seeds
}

/// The files of a run as the target takes them.
fn whole(run: &Path) -> Vec<u8> {
    let parts = ["run.json", "series.hlog", "peaks.jsonl", "blame.json"];
    parts.map(|name| fs::read(run.join(name)).unwrap_or_default()).join(&0xff)
}

/// The same of one that has not ended, with an interval in progress.
fn running(run: &Path) -> Vec<u8> {
    let record = fs::read_to_string(run.join("run.json")).unwrap();
    let at = record.find("\"status\": \"").unwrap() + 11;
    let end = at + record[at..].find('"').unwrap();
    let record = [&record[..at], "running", &record[end..]].concat().into_bytes();
    let log = fs::read(run.join("series.hlog")).unwrap();
    [record, log.clone(), Vec::new(), Vec::new(), log, PROFILE.as_bytes().to_vec()].join(&0xff)
}

/// A file of samples as tardy writes it.
fn real_samples() -> Vec<u8> {
    let place = tempfile::tempdir().unwrap();
    let run = place.path().join("r");
    let words = ["run", "fake", "--unpaced", "--samples", "2k", "--warmup", "0s", "--cpus", "0"];
    let mut tardy = Command::new(env!("CARGO_BIN_EXE_tardy"));
    let made = tardy.args(words).args(["--raw", "--quiet", "-o"]).arg(&run).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    fs::read(run.join("samples/000001.parquet")).unwrap()
}

/// Changes some bytes, cuts some out, or says some twice.
fn damage(bytes: &mut Vec<u8>, chance: &mut Chance) {
    for _ in 0..=chance.below(4) {
        if bytes.is_empty() {
            return;
        }
        let from = chance.below(bytes.len());
        let to = (from + 1 + chance.below(40)).min(bytes.len());
        match chance.below(4) {
            0 => bytes[from] = chance.next().to_le_bytes()[0],
            1 => bytes[from] ^= 1 << chance.below(8),
            2 => drop(bytes.drain(from..to)),
            _ => {
                let again = bytes[from..to].to_vec();
                bytes.splice(from..from, again);
            }
        }
    }
}

fn holds(target: &'static str, name: &'static str, once: fn(&[u8])) {
    let seeds = seeds(target);
    seeds.iter().for_each(|seed| once(seed));
    let mut campaign = Campaign::new(name);
    for _ in 0..repeats(40, 2_000) {
        let mut bytes = seeds[campaign.chance.below(seeds.len())].clone();
        damage(&mut bytes, &mut campaign.chance);
        once(&bytes);
        campaign.came("no fault");
    }
    campaign.end();
}

#[test]
fn the_lock_file_of_the_targets_knows_every_dependency() {
    let table = |file| toml::from_str::<toml::Table>(&fs::read_to_string(file).unwrap()).unwrap();
    let (manifest, lock) = (table("Cargo.toml"), table("fuzz/Cargo.lock"));
    let packages = lock["package"].as_array().unwrap();
    let tardy = packages.iter().find(|package| package["name"].as_str() == Some("tardy")).unwrap();
    let known: Vec<&str> = tardy["dependencies"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|name| name.as_str()?.split_whitespace().next())
        .collect();
    let wanted = manifest["dependencies"].as_table().unwrap().keys();
    let missing: Vec<&String> = wanted.filter(|name| !known.contains(&name.as_str())).collect();
    assert!(missing.is_empty(), "`cd fuzz && cargo update -p tardy`: {missing:?}");
}

macro_rules! targets {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                let name = stringify!($name);
                holds(name, concat!("damaged inputs of ", stringify!($name)), $name::once);
            }
        )*

        #[test]
        fn no_target_is_missing_here() {
            let mut named: Vec<String> = [$(stringify!($name)),*].map(str::to_owned).into();
            let path = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
            let mut there: Vec<String> =
                files("fuzz/fuzz_targets").into_iter().map(path).collect();
            (named.sort(), there.sort());
            assert_eq!(named, there);
        }
    };
}

targets! {
    echo hello hlog import journal kernel lab_record modules pingpong plan run samples stream trace
    tracks transfer wult
}
