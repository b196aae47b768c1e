//! Many runs in one place: where they lie, and how a user names one.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use crate::run::{OpenError, Run, names};

/// Why a run was not found.
#[derive(Debug, Error)]
pub enum FindError {
    /// Nothing of that name.
    #[error(
        "no run \"{name}\": it is no directory, and no name or id in {}; `tardy list` shows \
         what is there", .store.display()
    )]
    NotFound {
        /// As typed.
        name: String,
        /// The store.
        store: PathBuf,
    },
    /// More than one.
    #[error("\"{name}\" could be any of {candidates}; write more of it")]
    Ambiguous {
        /// As typed.
        name: String,
        /// The ids it could be.
        candidates: String,
    },
    /// It is there but cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// No place for runs.
    #[error("no place for runs: set HOME, XDG_DATA_HOME or TARDY_STORE, or use --store")]
    NoPlace,
}

/// A directory of run directories.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
}

impl Store {
    /// The store in `root`; without one, `$TARDY_STORE`, `$XDG_DATA_HOME/tardy/runs` or
    /// `~/.local/share/tardy/runs`.
    ///
    /// # Errors
    /// None of them is known.
    pub fn at(root: Option<PathBuf>) -> Result<Self, FindError> {
        let set =
            |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let root = root
            .or_else(|| set("TARDY_STORE"))
            .or_else(|| set("XDG_DATA_HOME").map(|data| data.join("tardy/runs")))
            .or_else(|| set("HOME").map(|home| home.join(".local/share/tardy/runs")))
            .ok_or(FindError::NoPlace)?;
        Ok(Self { root })
    }

    /// Where it is.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where a new run of this name goes; it may be taken.
    #[must_use]
    pub fn place(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// All runs, oldest first, and those that cannot be opened with the reason.
    #[must_use]
    pub fn list(&self) -> (Vec<Run>, Vec<OpenError>) {
        let (mut runs, mut damaged) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let path = entry.path();
            match Run::open(&path) {
                Ok(run) => runs.push(run),
                // A stray directory is nobody's damaged run.
                Err(OpenError::NoRun { source, .. })
                    if source.kind() != io::ErrorKind::PermissionDenied => {}
                Err(error) => damaged.push(error),
            }
        }
        runs.sort_by(|a, b| a.document.id.cmp(&b.document.id));
        (runs, damaged)
    }

    /// The run that the user means: a path, a name, the beginning of an id, `last` or `last~N`.
    ///
    /// # Errors
    /// None, more than one, or one that cannot be opened.
    pub fn find(&self, name: &str) -> Result<Run, FindError> {
        let path = Path::new(name);
        if path.join(names::RUN).exists() || (name.contains('/') && path.is_dir()) {
            return Ok(Run::open(path)?);
        }
        let named = self.place(name);
        if is_plain(name) && named.join(names::RUN).exists() {
            return Ok(Run::open(&named)?);
        }
        let not_found = || FindError::NotFound { name: name.into(), store: self.root.clone() };
        let mut runs = self.list().0;
        if let Some(back) = steps_back(name) {
            let at = runs.len().checked_sub(1 + back).ok_or_else(not_found)?;
            return Ok(runs.swap_remove(at));
        }
        runs.retain(|run| run.document.name == name || run.document.id.starts_with(name));
        match runs.len() {
            0 => Err(not_found()),
            1 => Ok(runs.swap_remove(0)),
            _ => {
                let ids: Vec<_> = runs.iter().map(|run| run.document.id.as_str()).collect();
                Err(FindError::Ambiguous { name: name.into(), candidates: ids.join(", ") })
            }
        }
    }
}

/// Whether `name` is one part of a path, so that it cannot lead out of the store.
#[must_use]
pub fn is_plain(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0'])
}

/// `last` is 0, `last~2` is 2.
fn steps_back(name: &str) -> Option<usize> {
    let rest = name.strip_prefix("last")?;
    if rest.is_empty() { Some(0) } else { rest.strip_prefix('~')?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_counts_backwards() {
        assert_eq!(steps_back("last"), Some(0));
        assert_eq!(steps_back("last~3"), Some(3));
        assert_eq!(steps_back("lasting"), None);
        assert_eq!(steps_back("last~-1"), None);
    }

    #[test]
    fn an_empty_store_finds_nothing_and_says_where_it_looked() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::at(Some(directory.path().into())).unwrap();
        for name in ["last", "last~9", "x", "", "..", "/nonexistent"] {
            let error = store.find(name).unwrap_err().to_string();
            assert!(error.contains(directory.path().to_str().unwrap()), "{error}");
        }
    }
}
