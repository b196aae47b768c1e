//! Many runs in one place: where they lie, how a user names one, and what all of them are asked.

mod campaigns;
mod index;
mod listed_run;
mod listing;
mod question;
mod stamp;

use std::{
    fs, io,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Component, Path, PathBuf},
};

use anyhow::ensure;
use rustix::process::geteuid;
use thiserror::Error;

pub(crate) use self::{
    campaigns::{CampaignKind, StoredCampaign},
    listed_run::ListedRun,
    listing::Listing,
    question::Where,
};
use crate::{
    plain::plain,
    run::{Calibration, OpenError, Run, RunHead, Status, names},
};

/// Runs that are looked through for what tracing costs: those that started last.
const MOST_CALIBRATIONS: usize = 200;

/// Why a run was not found.
#[derive(Debug, Error)]
pub(crate) enum FindError {
    /// Nothing of that name.
    #[error(
        "no run \"{name}\": no name or id in {}; `tardy list` shows what is there{beside}",
        .store.display()
    )]
    NotFound {
        /// As typed.
        name: String,
        /// The store.
        store: PathBuf,
        /// What lies in the working directory under that name, and how it is named; else empty.
        beside: String,
    },
    /// A path that leads to none.
    #[error("no run \"{name}\": no such directory")]
    NoDirectory {
        /// As typed.
        name: String,
    },
    /// Many runs in one directory.
    #[error(
        "\"{name}\" is {what} and no run: `tardy report {name} -o FILE.html` makes its page, and \
         its runs are in {}", .runs.display()
    )]
    Campaign {
        /// As typed.
        name: String,
        /// What it is: "a plan".
        what: &'static str,
        /// Where its runs are.
        runs: PathBuf,
    },
    /// More than one.
    #[error("\"{name}\" could be any of {candidates}; write more of it")]
    Ambiguous {
        /// As typed.
        name: String,
        /// The ids it could be.
        candidates: String,
    },
    /// Not the whole name of a run that is to be named in full.
    #[error("\"{name}\" is only the beginning of {id}; write all of it")]
    Beginning {
        /// As typed.
        name: String,
        /// The id.
        id: String,
    },
    /// It is there but cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store itself.
    #[error(
        "the store {} cannot be read: {source}; name a directory that can be read, with --store \
         or TARDY_STORE", .store.display()
    )]
    Unreadable {
        /// The store.
        store: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No place for runs.
    #[error("no place for runs: set HOME, XDG_DATA_HOME or TARDY_STORE, or use --store")]
    SlotError,
}

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

    /// The comparison or plan that the user means: a path, or the whole name of its directory.
    #[must_use]
    pub(crate) fn find_campaign(&self, name: &str) -> Option<PathBuf> {
        let place = self.place_of(Path::new(name))?;
        CampaignKind::of(&place).map(|_| place)
    }

    /// The directory that the user means: a path where there is a slash, else that of this name in
    /// the store. What others put into the working directory is not meant by a name. Nothing where
    /// it is neither.
    #[must_use]
    pub(crate) fn place_of(&self, asked: &Path) -> Option<PathBuf> {
        if is_path(asked) {
            return Some(asked.to_owned());
        }
        let is_name = matches!(asked.components().next(), Some(Component::Normal(_)));
        is_name.then(|| self.root.join(asked))
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

    /// The run that started `back` runs before the last one; those that cannot be opened do not
    /// count, nor do those of strangers.
    fn back<T>(&self, back: usize, open: impl Fn(&Path) -> Result<T, OpenError>) -> Option<T> {
        let mut heads = self.heads();
        let owner = owner_of(&self.root);
        let is_known = |uid: u32| uid == 0 || uid == geteuid().as_raw() || Some(uid) == owner;
        heads.retain(|head| {
            let is_own = !head.is_received && owner_of(&head.path).is_some_and(is_known);
            is_own && may_be_last(head.status)
        });
        heads.sort_by_cached_key(|head| (head.start(), head.id.clone()));
        heads.iter().rev().filter_map(|head| open(&head.path).ok()).nth(back)
    }

    /// As [`Store::find`], but the beginning of an id will not do: for what cannot be taken back.
    ///
    /// # Errors
    /// As [`Store::find`].
    pub(crate) fn find_whole(&self, name: &str) -> Result<Run, FindError> {
        let run = self.find(name)?;
        let is_place = self.place_of(Path::new(name)).is_some_and(|place| place.is_dir());
        let own = [&run.document.id, &run.document.name];
        if is_place || own.into_iter().any(|own| own == name) || steps_back(name).is_some() {
            return Ok(run);
        }
        Err(FindError::Beginning { name: name.into(), id: run.document.id })
    }

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

    /// The run in progress, of several the one that started last.
    #[must_use]
    pub(crate) fn going_on(&self) -> Option<PathBuf> {
        let mut heads = self.heads();
        heads.retain(|head| head.status == Status::Running && head.has_maker());
        heads.sort_by_cached_key(|head| (head.start(), head.id.clone()));
        heads.pop().map(|head| head.path)
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
        let not_found = || FindError::NotFound {
            name: name.into(),
            store: self.root.clone(),
            beside: beside(asked).unwrap_or_default(),
        };
        if let Some(back) = steps_back(name) {
            return self.back(back, open).ok_or_else(not_found);
        }
        let mut heads = self.heads();
        heads.retain(|head| head.name == name || head.id.starts_with(name));
        match heads.as_slice() {
            [] => Err(not_found()),
            [head] => Ok(open(&head.path)?),
            _ => {
                let mut ids: Vec<String> = heads.iter().map(|head| head.id.clone()).collect();
                ids.sort();
                ids.dedup();
                if ids.len() == 1 {
                    // One run that was imported more than once.
                    ids = heads.into_iter().map(|head| head.name).collect();
                }
                Err(FindError::Ambiguous { name: name.into(), candidates: ids.join(", ") })
            }
        }
    }
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

/// What to say of an entry of the working directory that is named without a slash; `None` without
/// such an entry.
#[must_use]
pub(crate) fn beside(asked: &Path) -> Option<String> {
    let is_there = !is_path(asked) && fs::symlink_metadata(typed(asked)).is_ok();
    let shown = plain(&typed(asked).display().to_string());
    is_there.then(|| format!("; what is in the working directory is named by its path: {shown}"))
}

/// Refuses a new name that leads out of the store, or means another run there.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check_name(name: &str) -> anyhow::Result<()> {
    let is_plain = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0']);
    ensure!(is_plain, "--name {name:?}: a name may not contain /, be empty, or be . or ..");
    ensure!(!name.starts_with('.'), "--name {name:?}: a name that begins with a dot is hidden");
    ensure!(steps_back(name).is_none(), "--name {name}: it means an earlier run; choose another");
    Ok(())
}

/// `last` is 0, `last~2` is 2.
fn steps_back(name: &str) -> Option<usize> {
    let rest = name.strip_prefix("last")?;
    if rest.is_empty() { Some(0) } else { rest.strip_prefix('~')?.parse().ok() }
}

#[cfg(test)]
mod tests;
