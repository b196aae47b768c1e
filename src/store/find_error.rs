//! Why a name leads to no run.

use std::{io, path::PathBuf};

use thiserror::Error;

use crate::run::OpenError;

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
    /// `last~N`, and the store has fewer.
    #[error("no run \"{name}\": {} has {there}{newest}{beside}", .store.display())]
    NoLast {
        /// As typed.
        name: String,
        /// The store.
        store: PathBuf,
        /// What it has instead.
        there: String,
        /// The newest plan or comparison, where runs were meant; else how all is listed.
        newest: String,
        /// As in [`FindError::NotFound`].
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

impl FindError {
    /// Whether there is something, which is not a run.
    #[must_use]
    pub(crate) const fn is_no_run(&self) -> bool {
        matches!(self, Self::Open(OpenError::NoRun { .. }))
    }
}
