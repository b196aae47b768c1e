//! All that is in a store: runs, the runs of plans, comparisons and plans.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::{
    Store,
    campaigns::{CELLS, CampaignKind, StoredCampaign},
    index::Index,
    listed_run::ListedRun,
};
use crate::run::{OpenError, names};

/// What is in a store.
#[derive(Debug)]
pub(crate) struct Listing {
    root: PathBuf,
    index: Index,
    /// The runs, those of plans too, the one that started first before the others.
    pub runs: Vec<ListedRun>,
    /// Comparisons and plans.
    pub campaigns: Vec<StoredCampaign>,
    /// Why the rest cannot be opened.
    pub damaged: Vec<String>,
}

impl Listing {
    /// What is in `store`; its index is brought up to date where that may be written.
    pub(super) fn of(store: &Store) -> Self {
        Self::by(store, SystemTime::now)
    }

    fn by(store: &Store, clock: fn() -> SystemTime) -> Self {
        let root = store.root().to_owned();
        let index = Index::open(&root, clock);
        let (runs, campaigns, damaged) = (Vec::new(), Vec::new(), Vec::new());
        let mut listing = Self { root, index, runs, campaigns, damaged };
        for name in directories(store.root()) {
            listing.add(name);
        }
        // Of two that started at the same moment, or at none, the id decides.
        listing.runs.sort_by_cached_key(|run| (run.entry.start(), run.entry.id.clone()));
        listing.campaigns.sort_by_cached_key(|campaign| (campaign.start(), campaign.id.clone()));
        listing.index.save(&listing.root, &listing.runs);
        listing
    }

    /// Files of runs that were read, as the index did not have them.
    #[must_use]
    pub(crate) const fn reads(&self) -> u64 {
        self.index.reads
    }

    /// Reads of the runs that are meant what the files beside their records say.
    pub(crate) fn add_details(&mut self, is_meant: impl Fn(&ListedRun) -> bool) {
        for run in self.runs.iter_mut().filter(|run| is_meant(run)) {
            self.index.add_details(run);
        }
        self.index.save(&self.root, &self.runs);
    }

    fn add(&mut self, name: PathBuf) {
        let path = self.root.join(&name);
        let error = match self.index.run(&self.root, name.clone()) {
            Ok(run) => return self.runs.push(run),
            Err(error) => error,
        };
        let is_absent = matches!(&error, OpenError::NoRun { .. });
        match CampaignKind::of(&path).filter(|_| is_absent) {
            Some(kind) => self.add_campaign(kind, &path, &name),
            // A stray directory is not a damaged run.
            None if is_absent => {}
            None => self.damaged.push(error.to_string()),
        }
    }

    fn add_campaign(&mut self, kind: CampaignKind, path: &Path, name: &Path) {
        let mut called = BTreeMap::new();
        match StoredCampaign::read(kind, path) {
            Ok(campaign) => {
                called.clone_from(&campaign.cells);
                self.campaigns.push(campaign);
            }
            Err(error) => self.damaged.push(error.to_string()),
        }
        if kind != CampaignKind::Plan {
            return;
        }
        for cell in directories(&path.join(CELLS)) {
            let within = Path::new(CELLS).join(cell);
            if !path.join(&within).join(names::RUN).exists() {
                continue;
            }
            let within_text = within.to_string_lossy();
            // One that the record does not name is of a cell that was begun again.
            let cell = called.get(&*within_text).map_or(&*within_text, String::as_str).to_owned();
            match self.index.run(&self.root, name.join(&within)) {
                Ok(run) => self.runs.push(ListedRun { cell: Some(cell), ..run }),
                Err(error) => self.damaged.push(error.to_string()),
            }
        }
    }
}

fn directories(place: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    // A link may lead to a run.
    let may_be = |entry: &fs::DirEntry| !entry.file_type().is_ok_and(|kind| kind.is_file());
    entries.filter(may_be).map(|entry| PathBuf::from(entry.file_name())).collect()
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, thread, time::Duration};

    use serde_json::json;

    use super::*;
    use crate::{run::PLAN, store::index::INDEX};

    fn write(store: &Store, place: &str, max: i64) {
        let record = json!({
            "schema_version": 2, "id": place, "name": place, "status": "complete",
            "validity": "valid", "probe": {"name": "timer", "parameters": {}}, "loads": [],
            "started_at": "2026-10-01T00:00:00Z", "duration_ns": 1,
            "series": [{"name": "cpu0", "count": 1, "max": max}],
        });
        fs::create_dir_all(store.place(place)).unwrap();
        fs::write(store.place(place).join(names::RUN), record.to_string()).unwrap();
    }

    /// The store when none of its files was written within the last tick of the clock.
    fn later(store: &Store) -> Listing {
        Listing::by(store, || SystemTime::now() + Duration::from_secs(1))
    }

    /// A store of 120 runs.
    fn store() -> (tempfile::TempDir, Store) {
        let place = tempfile::tempdir().unwrap();
        let store = Store::at(Some(place.path().into())).unwrap();
        (0..120).for_each(|number| write(&store, &format!("run-{number}"), 7));
        (place, store)
    }

    fn reads(store: &Store) -> u64 {
        let listing = later(store);
        assert_eq!(listing.damaged, [""; 0]);
        listing.reads()
    }

    #[test]
    fn a_record_is_read_once_and_again_when_it_changed() {
        let (_place, store) = store();
        assert_eq!(reads(&store), 120);
        assert_eq!(reads(&store), 0);
        let before = later(&store).runs;
        // Of another size: the time of its change may be the same.
        write(&store, "run-7", 88);
        fs::remove_dir_all(store.place("run-9")).unwrap();
        let listing = later(&store);
        assert_eq!((listing.reads(), listing.runs.len()), (1, 119));
        let max = |name: &str| {
            listing.runs.iter().find(|run| run.entry.name == name).map(|run| run.entry.max())
        };
        assert_eq!(
            (max("run-7"), max("run-8"), max("run-9")),
            (Some(Some(88)), Some(Some(7)), None)
        );
        let kept = before.iter().find(|run| run.entry.name == "run-8").unwrap();
        let again = listing.runs.iter().find(|run| run.entry.name == "run-8").unwrap();
        assert_eq!(kept.entry, again.entry, "from the file as from the record");
    }

    #[test]
    fn a_record_that_was_written_just_now_is_read_once_more() {
        thread_local!(static NOW: Cell<SystemTime> = Cell::new(SystemTime::now()));
        let (_place, store) = store();
        let reads = |now: SystemTime| {
            NOW.set(now);
            Listing::by(&store, || NOW.get()).reads()
        };
        let record = fs::metadata(store.place("run-119").join(names::RUN)).unwrap();
        let written = record.modified().unwrap();
        let just_now = written + Duration::from_millis(50);
        assert_eq!(reads(just_now), 120);
        let again = reads(just_now);
        assert!((1..=120).contains(&again), "{again}");
        let later = written + Duration::from_secs(1);
        assert_eq!([reads(later), reads(later)], [again, 0]);
    }

    #[test]
    fn an_index_that_cannot_be_believed_or_written_is_done_without() {
        let (_place, store) = store();
        let index = store.place(INDEX);
        assert_eq!(reads(&store), 120);
        let text = fs::read_to_string(&index).unwrap();
        for odd in ["", "{}", "\0\0", &text.replacen("\"tardy\":\"", "\"tardy\":\"0.0.", 1)] {
            fs::write(&index, odd).unwrap();
            assert_eq!(reads(&store), 120, "{odd:.40}");
        }
        // Cut off in the middle of a line.
        fs::write(&index, &text[..text.len() - 100]).unwrap();
        assert_eq!(reads(&store), 1);
        fs::remove_file(&index).unwrap();
        fs::create_dir(&index).unwrap();
        assert_eq!((reads(&store), reads(&store)), (120, 120));
    }

    #[test]
    fn a_draft_of_the_index_that_a_kill_left_goes_with_the_next_one_but_no_young_one() {
        let (place, store) = store();
        let draft = |name: &str, age_s: u64| {
            let file = fs::File::create(place.path().join(name)).unwrap();
            file.set_modified(std::time::SystemTime::now() - Duration::from_secs(age_s)).unwrap();
        };
        draft("..tardy-index.0123456789abcdef.tmp", 4_000);
        draft("..tardy-index.1123456789abcdef.tmp", 1_000);
        draft(".other.0123456789abcdef.tmp", 4_000);
        assert_eq!(reads(&store), 120);
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        let left = fs::read_dir(place.path()).unwrap().flatten().map(name);
        let mut drafts: Vec<String> = left.filter(|name| name.ends_with(".tmp")).collect();
        drafts.sort();
        let expected = ["..tardy-index.1123456789abcdef.tmp", ".other.0123456789abcdef.tmp"];
        assert_eq!(drafts, expected);
    }

    #[test]
    fn two_that_list_at_the_same_time_leave_a_whole_index() {
        let (_place, store) = store();
        thread::scope(|scope| {
            let listing = || {
                for _ in 0..5 {
                    let _ = fs::remove_file(store.place(INDEX));
                    assert_eq!(later(&store).runs.len(), 120);
                }
            };
            scope.spawn(listing);
            scope.spawn(listing);
        });
        reads(&store);
        assert_eq!(reads(&store), 0);
        let names = fs::read_dir(store.root()).unwrap().flatten().map(|entry| entry.file_name());
        let hidden: Vec<_> = names.filter(|name| name.as_encoded_bytes()[0] == b'.').collect();
        assert_eq!(hidden, [INDEX], "no draft is left");
    }

    #[test]
    fn a_few_runs_have_no_index_and_those_of_a_plan_are_found() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::at(Some(place.path().into())).unwrap();
        write(&store, "nightly/cells/idle-1", 7);
        fs::create_dir(store.place("nightly/cells/came-to-nothing")).unwrap();
        fs::write(store.place("nightly").join(PLAN), "{").unwrap();
        let listing = store.listing().unwrap();
        let cells: Vec<_> = listing.runs.iter().map(|run| run.cell()).collect();
        assert_eq!(cells, [Some(("nightly", "cells/idle-1"))]);
        assert!(listing.damaged[0].contains("plan.json is damaged"), "{:?}", listing.damaged);
        assert!(!store.place(INDEX).exists());
    }
}
