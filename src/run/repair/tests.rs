//! Repairs of runs that were left open, of damaged and of hostile ones.

use std::{
    fs,
    os::unix::fs::{chown, symlink},
};

use rustix::process::geteuid;
use tardy_hot::{ring::Sample, tally::Totals};
use tempfile::TempDir;

use super::*;
use crate::{
    run::{IntervalOf, RunWriter, hlog, hlog::IntervalSpan, spool},
    testing::names_in,
};

const NOBODY: u32 = 65_534;
const OPEN: &str = "samples/000001.spool";
const CLOSED: &str = "samples/000001.parquet";

/// A run of one series whose maker went away: ten samples were counted, these were kept.
fn left(kept: &[Sample]) -> (TempDir, PathBuf) {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1/timer");
    let mut document = Run::open(&fixture).unwrap().document;
    document.status = Status::Running;
    document.start_monotonic_ns = 1_000;
    document.series.truncate(1);
    let place = tempfile::tempdir().unwrap();
    let run = place.path().join("r");
    let mut maker = RunWriter::create(&run, &document, true).unwrap();
    maker.begin(&document).unwrap();
    let mut counts = hlog::empty();
    counts.record_n(5, 10).unwrap();
    let tag = document.series[0].name.clone();
    let span = IntervalSpan { tag, start_s: 0.0, length_s: 1.0 };
    let totals = Totals { count: 10, min_ns: 5, max_ns: 5, sum_ns: 50, ..Totals::NONE };
    maker.append_intervals(&[IntervalOf { span, counts, totals }]).unwrap();
    maker.append_samples(0, kept).unwrap();
    (place, run)
}

fn samples(count: i64) -> Vec<Sample> {
    (0..count).map(|at| Sample { t_ns: 2_000 + at, latency_ns: 5 }).collect()
}

fn read(run: &Path) -> Vec<Sample> {
    let mut read = Vec::new();
    Run::open(run).unwrap().samples(|_, sample| read.push(sample)).unwrap();
    read
}

#[test]
fn what_a_killed_maker_left_open_is_closed_and_a_second_repair_finds_nothing() {
    let (_place, run) = left(&samples(8));
    let record = fs::read(run.join(names::RUN)).unwrap();
    let done = repair(&run).unwrap();
    let spool = SpoolRepair {
        spool: OPEN.into(),
        closed: Some(CLOSED.into()),
        was_closed: false,
        samples: 8,
        until_ns: Some(1_012),
        unread_bytes: 0,
        strangers: 0,
        kept_as: None,
    };
    assert_eq!(done.spools, [spool]);
    assert_eq!((done.status, done.samples), (Status::Crashed, 8));
    assert_eq!((done.counted, done.missing), (10, 2));
    assert_eq!(names_in(&run.join("samples")), ["000001.parquet"]);
    assert_eq!(read(&run), samples(8));
    let again = repair(&run).unwrap();
    assert_eq!((again.spools.len(), again.samples, again.missing), (0, 8, 2));
    assert_eq!(fs::read(run.join(names::RUN)).unwrap(), record, "it stays a crashed run");
    assert_eq!(Run::open(&run).unwrap().document.status, Status::Crashed);
}

#[test]
fn a_damaged_spool_gives_its_good_beginning_and_is_kept_under_another_name() {
    let (_place, run) = left(&samples(3));
    let mut bytes = fs::read(run.join(OPEN)).unwrap();
    spool::append(&mut bytes, 0, &samples(5));
    bytes.pop();
    fs::write(run.join(OPEN), &bytes).unwrap();
    let done = repair(&run).unwrap();
    let [spool] = done.spools.as_slice() else { panic!("{done:?}") };
    // Length, checksum, series and 5 samples of 16 bytes, less one.
    assert_eq!((spool.samples, spool.unread_bytes), (3, 12 + 5 * 16 - 1));
    assert_eq!(spool.kept_as.as_deref(), Some("samples/.000001.damaged"));
    assert_eq!((read(&run), done.missing), (samples(3), 7));
    assert_eq!(fs::read(run.join("samples/.000001.damaged")).unwrap(), bytes);
    assert_eq!(repair(&run).unwrap().spools, []);
}

#[test]
fn a_spool_of_which_nothing_can_be_read_is_left_and_an_empty_one_removed() {
    let (_place, run) = left(&samples(3));
    fs::write(run.join(OPEN), "something else").unwrap();
    fs::write(run.join("samples/000002.spool"), "").unwrap();
    let done = repair(&run).unwrap();
    let odd = &done.spools[0];
    assert_eq!((odd.samples, odd.unread_bytes, odd.closed.as_deref()), (0, 14, None));
    assert_eq!(odd.kept_as.as_deref(), Some(OPEN));
    assert_eq!((done.spools[1].unread_bytes, &done.spools[1].kept_as), (0, &None));
    assert_eq!(names_in(&run.join("samples")), ["000001.spool"]);
}

#[test]
fn a_repair_or_a_maker_that_was_killed_between_its_steps_is_gone_on_with() {
    let (_place, run) = left(&samples(8));
    let open = fs::read(run.join(OPEN)).unwrap();
    repair(&run).unwrap();
    let closed = fs::read(run.join(CLOSED)).unwrap();
    // Killed before the spool was removed.
    fs::write(run.join(OPEN), &open).unwrap();
    let done = repair(&run).unwrap();
    assert!(done.spools[0].was_closed && !run.join(OPEN).exists(), "{done:?}");
    assert_eq!(fs::read(run.join(CLOSED)).unwrap(), closed);
    // A power cut that took what is in the closed file, or its end.
    for cut in [0, closed.len() / 2, closed.len() - 1] {
        fs::write(run.join(OPEN), &open).unwrap();
        fs::write(run.join(CLOSED), &closed[..cut]).unwrap();
        let done = repair(&run).unwrap();
        assert!(!done.spools[0].was_closed, "{cut}: {done:?}");
        assert_eq!((read(&run), done.unread), (samples(8), Vec::<String>::new()), "{cut}");
    }
    // The closed file has more than can be read of the spool.
    fs::write(run.join(OPEN), &open[..open.len() - 1]).unwrap();
    repair(&run).unwrap();
    assert_eq!(read(&run), samples(8));
}

#[test]
fn a_run_that_has_nothing_open_is_left_as_it_is() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1/timer");
    let before = names_in(&fixture);
    if geteuid().is_root() && RunDirectory::open(&fixture).unwrap().other_owner().unwrap().is_some()
    {
        return eprintln!("skipped: root, and the sources are another user's");
    }
    let done = repair(&fixture).unwrap();
    assert_eq!((done.status, done.spools.len()), (Status::Complete, 0));
    assert_eq!(names_in(&fixture), before);
}

#[test]
fn links_lead_nowhere_and_other_files_are_let_alone() {
    let (place, run) = left(&samples(8));
    let other = place.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("kept"), "kept").unwrap();
    // In the place of the closed file: it is replaced and not followed.
    symlink(other.join("kept"), run.join(CLOSED)).unwrap();
    symlink(run.join(OPEN), run.join("samples/000007.spool")).unwrap();
    fs::write(run.join("samples/x.spool"), "x").unwrap();
    assert_eq!(repair(&run).unwrap().spools.len(), 1);
    assert!(fs::symlink_metadata(run.join(CLOSED)).unwrap().is_file());
    assert_eq!(fs::read_to_string(other.join("kept")).unwrap(), "kept");
    assert!(run.join("samples/x.spool").exists());
    // A link to a run, with or without the slash by which the system follows it.
    let link = place.path().join("link");
    symlink(&run, &link).unwrap();
    for path in [link.clone(), link.join("")] {
        let error = repair(&path).unwrap_err();
        assert!(matches!(error, RepairError::NoDirectory(_)), "{error}");
    }
    // A link in the place of samples/.
    fs::rename(run.join("samples"), place.path().join("elsewhere")).unwrap();
    fs::write(place.path().join("elsewhere/000009.spool"), "").unwrap();
    symlink(place.path().join("elsewhere"), run.join("samples")).unwrap();
    let error = repair(&run).unwrap_err();
    assert!(matches!(error, RepairError::Refused { .. }), "{error}");
    assert!(place.path().join("elsewhere/000009.spool").exists());
}

#[test]
fn root_repairs_no_run_of_another_user() {
    if !geteuid().is_root() {
        return eprintln!("skipped: needs root");
    }
    let (_place, run) = left(&samples(8));
    for theirs in [run.join("samples"), run.clone()] {
        chown(&theirs, Some(NOBODY), None).unwrap();
        let error = repair(&run).unwrap_err().to_string();
        assert!(error.contains("belongs to user 65534"), "{error}");
        assert_eq!(names_in(&run.join("samples")), ["000001.spool"]);
    }
}

#[test]
fn what_is_no_run_is_named_as_the_user_did() {
    let place = tempfile::tempdir().unwrap();
    let error = repair(place.path()).unwrap_err().to_string();
    assert!(error.starts_with(&place.path().display().to_string()), "{error}");
    fs::write(place.path().join(names::RUN), "{").unwrap();
    let error = repair(place.path()).unwrap_err().to_string();
    assert!(error.contains("run.json is damaged") && !error.contains("/proc/"), "{error}");
    let error = repair(&place.path().join(names::RUN)).unwrap_err();
    assert!(matches!(error, RepairError::NoDirectory(_)), "{error}");
}
