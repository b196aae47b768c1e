//! Which run, comparison or plan a name means.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use rustix::process::geteuid;

use super::{
    Store,
    campaigns::{CampaignKind, StoredCampaign},
    find_error::FindError,
    is_path,
    places::{PlaceKind, StoredPlace},
    typed,
};
use crate::{
    plain::{plain, plain_path, shell_word},
    run::{OpenError, Run, RunHead, Status, names},
};

/// Ids that an error lists.
const MOST_CANDIDATES: usize = 8;

/// Among what `last` is sought: what the verb takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Candidates {
    /// Runs, but not those of plans and comparisons: what `tardy list` shows.
    Runs,
    /// Plans.
    Plans,
    /// Runs, plans and comparisons.
    All,
}

impl Candidates {
    const fn has(self, kind: PlaceKind) -> bool {
        match self {
            Self::Runs => matches!(kind, PlaceKind::Run),
            Self::Plans => matches!(kind, PlaceKind::Campaign(CampaignKind::Plan)),
            Self::All => true,
        }
    }
}

/// A place with what decides which of several is the last.
struct DatedPlace {
    place: StoredPlace,
    start: Option<Timestamp>,
    id: String,
}

impl Store {
    /// The run that the user means: a path, a name, the beginning of an id, `last` or `last~N`.
    ///
    /// # Errors
    /// None, more than one, or one that cannot be opened.
    pub(crate) fn find(&self, name: &str) -> Result<Run, FindError> {
        self.find_by(name, Run::open)
    }

    /// As [`Store::find`], its directory alone: no more than its head is read.
    ///
    /// # Errors
    /// As [`Store::find`]; damage behind the head is not noticed.
    pub(crate) fn find_place(&self, name: &str) -> Result<PathBuf, FindError> {
        self.find_by(name, |path| RunHead::read(path).map(|head| head.path))
    }

    /// The run, comparison or plan that the user means; `last` is one of the candidates.
    ///
    /// # Errors
    /// As [`Store::find`].
    pub(crate) fn find_any(&self, name: &str, among: Candidates) -> Result<StoredPlace, FindError> {
        if let Some(back) = steps_back(name) {
            self.check_readable()?;
            return self.back(back, among).ok_or_else(|| self.no_last(name, among));
        }
        let place = self.place_of(Path::new(name));
        match place.and_then(|place| StoredPlace::of(&place)) {
            Some(place) if place.kind != PlaceKind::Lab => Ok(place),
            _ => Ok(StoredPlace { kind: PlaceKind::Run, path: self.find_place(name)? }),
        }
    }

    /// As [`Store::find_any`] of everything, but the beginning of an id will not do: for what
    /// cannot be taken back.
    ///
    /// # Errors
    /// As [`Store::find`].
    pub(crate) fn find_whole(&self, name: &str) -> Result<StoredPlace, FindError> {
        let found = self.find_any(name, Candidates::All)?;
        let is_place = self.place_of(Path::new(name)).is_some_and(|place| place.is_dir());
        if is_place || steps_back(name).is_some() {
            return Ok(found);
        }
        let head = RunHead::read(&found.path)?;
        match head.id == name || head.name == name {
            true => Ok(found),
            false => Err(FindError::Beginning { name: name.into(), id: head.id }),
        }
    }

    /// The thing that started `back` things before the last one; runs that cannot be opened do not
    /// count.
    fn back(&self, back: usize, among: Candidates) -> Option<StoredPlace> {
        let is_there =
            |place: &StoredPlace| place.kind != PlaceKind::Run || Run::open(&place.path).is_ok();
        self.newest_first(among).filter(is_there).nth(back)
    }

    /// Runs, comparisons and plans of the store, the one that started last before the others;
    /// without those of strangers, and runs that were imported.
    fn newest_first(&self, among: Candidates) -> impl Iterator<Item = StoredPlace> {
        let owner = owner_of(&self.root);
        let is_known = |uid: u32| uid == 0 || uid == geteuid().as_raw() || Some(uid) == owner;
        let own = self.paths().filter(|path| owner_of(path).is_some_and(is_known));
        let mut found: Vec<DatedPlace> = own.filter_map(|path| dated(path, among)).collect();
        found.sort_by(|a, b| (a.start, &a.id).cmp(&(b.start, &b.id)));
        found.into_iter().rev().map(|dated| dated.place)
    }

    fn not_found(&self, name: &str) -> FindError {
        FindError::NotFound {
            name: name.into(),
            store: self.root.clone(),
            beside: beside(Path::new(name)).unwrap_or_default(),
        }
    }

    /// The error if the store has fewer candidates than `last~N` counts back.
    fn no_last(&self, name: &str, among: Candidates) -> FindError {
        let found = self.newest_first(among).count();
        let (one, more, rest) = match among {
            Candidates::Runs => ("run", "runs", " outside plans and comparisons"),
            Candidates::Plans => ("plan", "plans", ""),
            Candidates::All => ("run", "runs, plans and comparisons", ""),
        };
        let there = match found {
            0 => format!("no {one} measured by you{rest}"),
            1 => format!("only 1 {one} measured by you{rest}"),
            _ => format!("only {found} {more} measured by you{rest}"),
        };
        let newest = match (among, found) {
            (Candidates::Runs, 0) => self.newest_first(Candidates::All).find_map(newest),
            _ => None,
        };
        FindError::NoLast {
            name: name.into(),
            store: self.root.clone(),
            there,
            newest: newest.unwrap_or_else(|| "; `tardy list` shows what is there".into()),
            beside: beside(Path::new(name)).unwrap_or_default(),
        }
    }

    fn find_by<T>(
        &self,
        name: &str,
        open: impl Fn(&Path) -> Result<T, OpenError>,
    ) -> Result<T, FindError> {
        let asked = Path::new(name);
        // What is called `last` is not the last run: older versions of tardy allowed the name.
        if let Some(place) = self.place_of(asked).filter(|_| steps_back(name).is_none()) {
            if place.join(names::RUN).exists() {
                return Ok(open(&place)?);
            }
            if let Some(error) = campaign(name, &place) {
                return Err(error);
            }
            if is_path(asked) && place.is_dir() {
                return Ok(open(&place)?);
            }
        }
        if is_path(asked) {
            return Err(FindError::NoDirectory { name: name.into() });
        }
        self.check_readable()?;
        if let Some(back) = steps_back(name) {
            let runs = self.newest_first(Candidates::Runs);
            let mut opened = runs.filter_map(|place| open(&place.path).ok());
            return opened.nth(back).ok_or_else(|| self.no_last(name, Candidates::Runs));
        }
        let all = self.heads().into_iter().chain(self.heads_of_campaigns());
        let meant = all.filter(|head| head.name == name || head.id.starts_with(name));
        match meant.collect::<Vec<_>>().as_slice() {
            [] => Err(self.not_found(name)),
            [head] => Ok(open(&head.path)?),
            several => Err(FindError::Ambiguous {
                name: name.into(),
                candidates: candidates(&self.root, several),
            }),
        }
    }

    /// The heads of the runs of plans and comparisons.
    fn heads_of_campaigns(&self) -> impl Iterator<Item = RunHead> {
        let runs = |path: PathBuf| Some(path.join(CampaignKind::of(&path)?.runs()));
        let directories = self.paths().filter_map(runs);
        let entries = directories.flat_map(|path| fs::read_dir(path).into_iter().flatten());
        entries.flatten().filter_map(|entry| RunHead::read(&entry.path()).ok())
    }
}

/// What to say of the newest plan or comparison where no other run is there.
fn newest(place: StoredPlace) -> Option<String> {
    let PlaceKind::Campaign(kind) = place.kind else { return None };
    let name = place.path.file_name()?;
    let shown = plain(&name.to_string_lossy());
    Some(match kind {
        CampaignKind::Plan => {
            let mut question = OsString::from("plan=");
            question.push(name);
            let question = shell_word(Path::new(&question));
            format!(
                "; the newest plan is {shown}, and `tardy list --where {question}` shows its runs"
            )
        }
        CampaignKind::Comparison => {
            format!(
                "; the newest comparison is {shown}, and its runs are in {}",
                plain_path(&place.path.join(kind.runs()))
            )
        }
    })
}

/// What is in this directory of the store and when it started, if it is one of the candidates and
/// can be the last.
fn dated(path: PathBuf, among: Candidates) -> Option<DatedPlace> {
    let place = StoredPlace::of(&path).filter(|place| among.has(place.kind))?;
    match place.kind {
        PlaceKind::Run => {
            let head = RunHead::read(&path).ok()?;
            let may_be = !head.is_received && may_be_last(head.status);
            may_be.then(|| DatedPlace { place, start: head.start(), id: head.id })
        }
        PlaceKind::Campaign(kind) => {
            let campaign = StoredCampaign::read(kind, &path).ok()?;
            Some(DatedPlace { place, start: campaign.start(), id: campaign.id })
        }
        PlaceKind::Lab => None,
    }
}

/// What tells these runs apart: their ids, else their names, else their places. Not all of many.
fn candidates(store: &Path, heads: &[RunHead]) -> String {
    let place = |head: &RunHead| {
        plain(&head.path.strip_prefix(store).unwrap_or(&head.path).display().to_string())
    };
    let ways: [&dyn Fn(&RunHead) -> String; 3] =
        [&|head| head.id.clone(), &|head| head.name.clone(), &place];
    let mut words = Vec::new();
    for way in ways {
        words = heads.iter().map(way).collect();
        words.sort();
        words.dedup();
        // A run may have been imported twice, and a plan may have been copied.
        if words.len() == heads.len() {
            break;
        }
    }
    let more = words.len().saturating_sub(MOST_CANDIDATES);
    words.truncate(MOST_CANDIDATES);
    let rest = (more > 0).then(|| format!("{more} more"));
    words.into_iter().chain(rest).collect::<Vec<_>>().join(", ")
}

/// The user to whom an entry of a store belongs: of a link the one who made it.
pub(crate) fn owner_of(entry: &Path) -> Option<u32> {
    fs::symlink_metadata(entry).ok().map(|about| about.uid())
}

/// What a directory is that has runs in it.
fn campaign(name: &str, place: &Path) -> Option<FindError> {
    let kind = CampaignKind::of(place)?;
    let (what, runs) = (kind.called(), place.join(kind.runs()));
    Some(FindError::Campaign { name: name.into(), what, runs })
}

/// Whether `last` can mean a run of this status: the last run is the last that was measured, so
/// that a status which says otherwise is named here.
const fn may_be_last(status: Status) -> bool {
    match status {
        Status::Running
        | Status::Complete
        | Status::Interrupted
        | Status::StoppedOver
        | Status::Crashed => true,
        Status::Imported => false,
    }
}

/// What to say of an entry of the working directory that is named without a slash; `None` without
/// such an entry.
#[must_use]
pub(crate) fn beside(asked: &Path) -> Option<String> {
    let is_there = !is_path(asked) && fs::symlink_metadata(typed(asked)).is_ok();
    let shown = plain(&typed(asked).display().to_string());
    is_there.then(|| format!("; what is in the working directory is named by its path: {shown}"))
}

/// Whether this means the last thing, or one before it.
#[must_use]
pub(crate) fn is_last(name: &str) -> bool {
    steps_back(name).is_some()
}

/// `last` is 0, `last~2` is 2.
pub(super) fn steps_back(name: &str) -> Option<usize> {
    let rest = name.strip_prefix("last")?;
    if rest.is_empty() { Some(0) } else { rest.strip_prefix('~')?.parse().ok() }
}
