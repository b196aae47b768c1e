//! A disk that fills up while a run is in progress, or is full before. The disk is a small tmpfs in
//! its own mount namespace, which ends with the test.

use std::{path::Path, process::Command};

use serde_json::Value;

use super::{
    chance::{Campaign, repeats, some_of},
    support::{
        SHORT, Said, Store, codes, finish, in_histogram, is_root, list, piped, read_record, skip,
        whole,
    },
};

/// Whether tmpfs can be mounted where nobody else sees it.
pub(crate) fn can_mount(store: &Store) -> bool {
    let mount = "mount -t tmpfs -o size=1m tmpfs \"$0\"";
    let tried = Command::new("unshare").args(["-m", "sh", "-c", mount]).arg(store.path()).output();
    let can = is_root() && tried.is_ok_and(|output| output.status.success());
    if !can {
        skip("mounting a small tmpfs needs root and unshare");
    }
    can
}

/// Runs `script` with a disk of 3 MiB, as [`on_a_disk`] does.
fn on_a_small_disk(store: &Store, script: &str, arguments: &[&str]) -> Said {
    on_a_disk(store, "size=3m", script, arguments)
}

/// Runs `script` in a namespace with a tmpfs on `disk`, mounted with these options; `tardy` is the
/// program there, and what lies in `disk/r` afterwards is copied to `kept`.
fn on_a_disk(store: &Store, options: &str, script: &str, arguments: &[&str]) -> Said {
    std::fs::create_dir(store.path().join("disk")).unwrap();
    let script = format!(
        "mount -t tmpfs -o {options} tmpfs disk || exit 99
         tardy() {{ \"$0\" \"$@\"; }}
         fill() {{ cat /dev/zero >disk/fill 2>/dev/null; }}
         {script}
         code=$?
         wait
         rm -f disk/fill
         [ -d disk/r ] && cp -r disk/r kept
         ls -A disk >left
         exit $code"
    );
    let tardy = store.tardy(&[""; 0]);
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]).arg(tardy.get_program()).args(arguments);
    command.current_dir(store.path()).stdin(std::process::Stdio::null());
    for (name, value) in tardy.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    finish(piped(&mut command))
}

#[test]
fn a_disk_that_fills_up_costs_nothing_that_was_measured() {
    let store = Store::new();
    if !can_mount(&store) {
        return;
    }
    for raw in [false, true] {
        let store = Store::new();
        let mut arguments =
            [&SHORT[..], &["--duration", "60s", "-o", "disk/r", "--cpus", "0"]].concat();
        arguments.extend(raw.then_some("--raw"));
        // Not before the log has begun: that is the next test. Of the log something is written
        // every 100 ms, which is refused then.
        let script = "\"$0\" \"$@\" & tardy=$!
                      until grep -q ^Tag disk/r/series.hlog; do sleep 0.05; done 2>/dev/null
                      fill; sleep 1.5; kill -TERM $tardy; wait $tardy";
        let said = on_a_small_disk(&store, script, &arguments);
        assert_eq!(said.code, Some(0), "{said:?}");
        let kept = store.path().join("kept");
        let record = read_record(&kept);
        assert_eq!(record["status"], "interrupted", "{said:?}");
        assert!(codes(&record).contains(&"record_incomplete"), "{record}");
        assert_eq!(record["validity"], "weakened");
        let caveat = record["caveats"].to_string();
        assert!(caveat.contains("No space left on device"), "{caveat}");
        assert_counts(&store, &kept, &record);
    }
}

/// What memory held is in the record, and reached the log with the space that was held back.
pub(crate) fn assert_counts(store: &Store, run: &Path, record: &Value) {
    let page = store.page(&[run.to_str().unwrap()]);
    for (number, series) in list(&record["series"]).iter().enumerate() {
        let sum = whole(&series["count"]) + whole(&series["missed"]);
        // A busy machine may take longer to end than was asked for.
        let asked_ns = whole(&record["parameters"]["duration_ns"]);
        let periods = whole(&record["duration_ns"]).min(asked_ns) / 1_000_000;
        let beyond = 2 + whole(&series["max"]) / 1_000_000;
        assert!((sum - periods).abs() <= beyond, "{sum} of {periods}: {series}");
        let drawn: i64 = list(&page["runs"][0]["series"][number]["histogram"])
            .iter()
            .map(|bin| whole(&bin[1]))
            .sum();
        assert_eq!(drawn, in_histogram(series), "series.hlog has every sample");
    }
}

/// The number of pages of 4 KiB that exceeds what the run of the next test takes.
const PAGES: usize = 250;

/// Room for what is held back and the first record, and not for all with which a log begins.
const EDGE: [usize; 3] = [130, 131, 132];

/// A disk with room for some of what a run writes refuses each of its writes in turn. All sizes
/// only where there is time.
#[test]
fn a_disk_of_any_size_is_large_enough_or_is_said_to_be_full() {
    if !can_mount(&Store::new()) {
        return;
    }
    let mut campaign = Campaign::new("full disks");
    let edge = some_of(EDGE.into(), repeats(1, 3), &mut campaign.chance);
    let others = (1..=PAGES).filter(|pages| !EDGE.contains(pages)).collect();
    let others = some_of(others, repeats(3, PAGES), &mut campaign.chance);
    for pages in [edge, others].concat() {
        campaign.came(match is_complete_on(pages) {
            None => "refused",
            Some(false) => "an incomplete run that says so",
            Some(true) => "a whole run",
        });
    }
    campaign.end();
}

/// Whether a run on a disk of `pages` pages kept everything; `None` if it was refused.
fn is_complete_on(pages: usize) -> Option<bool> {
    let store = Store::new();
    let run = ["run", "fake", "--duration", "1s", "--warmup", "0s", "--cpus", "0", "--raw"];
    let arguments = [&run[..], &["-o", "disk/r"]].concat();
    let said = on_a_disk(&store, &format!("size={}k", 4 * pages), "tardy \"$@\"", &arguments);
    assert!(!said.err.contains("panicked"), "{pages} pages: {said:?}");
    if said.code == Some(2) {
        assert!(said.err.contains("No space left on device"), "{pages} pages: {said:?}");
        let left = std::fs::read_to_string(store.path().join("left")).unwrap();
        assert_eq!(left, "", "{pages} pages: nothing is left of the attempt");
        return None;
    }
    assert_eq!(said.code, Some(0), "{pages} pages: {said:?}");
    let kept = store.path().join("kept");
    let record = read_record(&kept);
    assert_eq!(record["status"], "complete", "{pages} pages: {record}");
    assert_counts(&store, &kept, &record);
    let caveats = list(&record["caveats"]);
    let incomplete = caveats.iter().find(|caveat| caveat["code"] == "record_incomplete");
    if let Some(caveat) = incomplete {
        assert!(caveat["text"].to_string().contains("No space left on device"), "{caveat}");
    }
    Some(incomplete.is_none())
}

#[test]
fn a_disk_that_is_full_from_the_start_is_an_error_that_says_so() {
    let store = Store::new();
    if !can_mount(&store) {
        return;
    }
    let arguments = [&SHORT[..], &["--duration", "1s", "-o", "disk/r"]].concat();
    let said = on_a_small_disk(&store, "fill; tardy \"$@\"", &arguments);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
    for word in ["disk/r", "No space left on device", "-o or --store"] {
        assert!(said.err.contains(word), "{word}: {said:?}");
    }
    let left = std::fs::read_to_string(store.path().join("left")).unwrap();
    assert_eq!(left, "", "nothing is left of the attempt");
}

#[test]
fn a_disk_that_fills_up_under_a_load_is_reported_as_what_it_is() {
    let store = Store::new();
    if !can_mount(&store) {
        return;
    }
    let load = "disk-write:dir=disk,size=2MiB";
    let arguments = [&SHORT[..], &["--duration", "60s", "--load", load, "--name", "r"]].concat();
    let script = "\"$0\" \"$@\" & tardy=$!
                  until grep -q ^Tag runs/r/series.hlog; do sleep 0.05; done 2>/dev/null
                  works() {
                      cat /proc/[0-9]*/status | awk -v tardy=$tardy '
                          /^State:/ { state = $2 }
                          /^PPid:/ && $2 == tardy && state != \"Z\" { found = 1 }
                          END { exit !found }'
                  }
                  while works; do cat /dev/zero >>disk/fill; sleep 0.1; done 2>/dev/null
                  kill -TERM $tardy; wait $tardy";
    let said = on_a_small_disk(&store, script, &arguments);
    assert_eq!(said.code, Some(4), "{said:?}");
    let record = store.show("r");
    assert_eq!(codes(&record)[0], "load_died", "{record}");
    let text = record["caveats"][0]["text"].to_string();
    assert!(text.contains("disk-write") && text.contains("No space left on device"), "{text}");
    let left = std::fs::read_to_string(store.path().join("left")).unwrap();
    assert_eq!(left, "", "nothing is left of the load");
}

#[test]
fn a_load_that_is_larger_than_the_disk_is_refused() {
    let store = Store::new();
    if !can_mount(&store) {
        return;
    }
    let arguments = [&SHORT[..], &["--load", "disk-copy:dir=disk,size=2MiB"]].concat();
    let said = on_a_small_disk(&store, "tardy \"$@\"", &arguments);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
    for word in ["disk-copy", "needs 4194304 bytes of free disk space", "with dir="] {
        assert!(said.err.contains(word), "{word}: {said:?}");
    }
}
