//! Many runs in one place: where they lie, how a user names one, and what all of them are asked.

mod campaigns;
mod find;
mod find_error;
mod index;
mod listed_run;
mod listing;
mod places;
mod question;
mod stamp;

use std::{
    fs, io,
    os::unix::ffi::OsStrExt as _,
    path::{Component, Path, PathBuf},
};

use anyhow::ensure;

pub(crate) use self::{
    campaigns::{CampaignKind, StoredCampaign},
    find::{Candidates, beside, is_last, owner_of},
    find_error::FindError,
    listed_run::ListedRun,
    listing::Listing,
    places::{PlaceKind, PlacesBelow, StoredPlace},
    question::Where,
};
use crate::run::{Calibration, RunHead, Status};

/// Runs that are looked through for what tracing costs: those that started last.
const MOST_CALIBRATIONS: usize = 200;

/// The home directory: of the account where the environment names none, as under a service manager
/// or a runner of containers.
fn home() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| !home.as_os_str().is_empty())
}

/// A directory of run directories.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    root: PathBuf,
}

impl Store {
    /// The store in `root`; without one, `$TARDY_STORE`, `$XDG_DATA_HOME/tardy/runs` or
    /// `~/.local/share/tardy/runs`.
    ///
    /// # Errors
    /// None of them is known.
    pub(crate) fn at(root: Option<PathBuf>) -> Result<Self, FindError> {
        let set =
            |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let root = root
            .or_else(|| set("TARDY_STORE"))
            .or_else(|| set("XDG_DATA_HOME").map(|data| data.join("tardy/runs")))
            .or_else(|| home().map(|home| home.join(".local/share/tardy/runs")))
            .ok_or(FindError::SlotError)?;
        Ok(Self { root })
    }

    /// Where it is.
    #[must_use]
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where a new run of this name goes; it may be taken.
    #[must_use]
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Where a new run of this name goes: under the name, or where something is there already under
    /// the first of NAME-2, NAME-3 and so on where nothing is. And that name.
    #[must_use]
    pub(crate) fn free_place(&self, name: &str) -> (PathBuf, String) {
        let further = (2_u64..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(further);
        // A link that leads nowhere is something, too.
        let is_free = |name: &String| fs::symlink_metadata(self.place(name)).is_err();
        let name = names.find(is_free).unwrap_or_else(|| name.to_owned());
        (self.place(&name), name)
    }

    /// The name of the run with this id.
    #[must_use]
    pub(crate) fn name_of(&self, id: &str) -> Option<String> {
        self.heads().into_iter().find(|head| head.id == id).map(|head| head.name)
    }

    /// All that is in it.
    ///
    /// # Errors
    /// It is there, and cannot be read.
    pub(crate) fn listing(&self) -> Result<Listing, FindError> {
        self.check_readable()?;
        Ok(Listing::of(self))
    }

    /// A store that does not exist has no runs yet.
    fn check_readable(&self) -> Result<(), FindError> {
        match fs::read_dir(&self.root) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(FindError::Unreadable { store: self.root.clone(), source })
            }
            _ => Ok(()),
        }
    }

    /// The directory that the user means: a path where there is a slash, else that of this name in
    /// the store. What others put into the working directory is not meant by a name. A path may
    /// also be that of a run of a plan or comparison, from the store, if it leads nowhere from the
    /// working directory. Nothing where it is neither.
    #[must_use]
    pub(crate) fn place_of(&self, asked: &Path) -> Option<PathBuf> {
        if is_path(asked) {
            return Some(self.run_of_campaign(asked).unwrap_or_else(|| asked.to_owned()));
        }
        let is_name = matches!(asked.components().next(), Some(Component::Normal(_)));
        is_name.then(|| self.root.join(asked))
    }

    /// `nightly/cells/0001` of the store, unless the working directory has it.
    fn run_of_campaign(&self, asked: &Path) -> Option<PathBuf> {
        let mut parts = asked.components();
        let Some(Component::Normal(first)) = parts.next() else { return None };
        let is_below = parts.clone().next().is_some();
        let stays = parts.all(|part| matches!(part, Component::Normal(_)));
        let place = self.root.join(asked);
        let is_run = is_below && stays && place.is_dir() && fs::symlink_metadata(asked).is_err();
        (is_run && CampaignKind::of(&self.root.join(first)).is_some()).then_some(place)
    }

    fn paths(&self) -> impl Iterator<Item = PathBuf> + use<> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        entries.map(|entry| entry.path())
    }

    /// The heads of all runs that have one.
    fn heads(&self) -> Vec<RunHead> {
        self.paths().filter_map(|path| RunHead::read(&path).ok()).collect()
    }

    /// What runs of late found that tracing costs, the last of them first.
    #[must_use]
    pub(crate) fn calibrations(&self) -> Vec<Calibration> {
        let mut heads = self.heads();
        heads.sort_by_cached_key(|head| (head.start(), head.id.clone()));
        let last = heads.iter().rev().take(MOST_CALIBRATIONS);
        last.filter_map(|head| Calibration::read(&head.path)).collect()
    }

    /// The run in progress, of several the one that started last.
    #[must_use]
    pub(crate) fn going_on(&self) -> Option<PathBuf> {
        let mut heads = self.heads();
        heads.retain(|head| head.status == Status::Running && head.has_maker());
        heads.sort_by_cached_key(|head| (head.start(), head.id.clone()));
        heads.pop().map(|head| head.path)
    }
}

/// Whether a run is named by its path: by a slash, or as the working directory or the one above.
#[must_use]
pub(crate) fn is_path(asked: &Path) -> bool {
    let bytes = asked.as_os_str().as_bytes();
    bytes.contains(&b'/') || bytes == b"." || bytes == b".."
}

/// A path as it is typed, so that it is not taken for a name.
#[must_use]
pub(crate) fn typed(place: &Path) -> PathBuf {
    if is_path(place) { place.to_owned() } else { Path::new(".").join(place) }
}

/// Refuses a new name that leads out of the store, or means another run there.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check_name(name: &str) -> anyhow::Result<()> {
    let is_plain = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0']);
    ensure!(is_plain, "--name {name:?}: a name may not contain /, be empty, or be . or ..");
    ensure!(!name.starts_with('.'), "--name {name:?}: a name that begins with a dot is hidden");
    ensure!(!is_last(name), "--name {name}: it means an earlier run; choose another");
    Ok(())
}

#[cfg(test)]
mod tests;
