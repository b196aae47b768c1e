//! The result of a child: a run is accepted only from the directory that was made for it, and only
//! if it is the run that was requested.

use thiserror::Error;

use super::{
    author::Distrust, directory::RunDirectory, probes::DEFAULT_PROBE, reader::Run,
    record_file::OpenError,
};

/// Why the run in a directory is not accepted as the result of a child.
#[derive(Debug, Error)]
pub enum TakeError {
    /// It cannot be opened.
    #[error(transparent)]
    Unread(#[from] OpenError),
    /// Others can have written it.
    #[error("its run.json {0}")]
    Distrusted(Distrust),
    /// Another run, with this id.
    #[error("it holds another run than was begun there: {0}")]
    OtherRun(String),
    /// A run of another probe.
    #[error("it holds a run of {found}, and {wanted} was to be measured")]
    OtherProbe {
        /// The probe of the run.
        found: String,
        /// The probe that was requested.
        wanted: String,
    },
}

impl RunDirectory {
    /// Reads the run in it, if it is the caller's own and the one of this id that these words of
    /// `tardy run` measure. Its path leads there as long as this directory is open.
    ///
    /// # Errors
    /// It cannot be read, or it is another run. The caller says which directory it is.
    pub fn take_run(&self, id: Option<&str>, words: &[String]) -> Result<Run, TakeError> {
        // Its path means nothing to people, nor to anybody after this process.
        let run = Run::open(&self.path()).map_err(OpenError::in_held)?;
        if let Some(distrust) = run.author().and_then(|author| author.distrust()) {
            return Err(TakeError::Distrusted(distrust));
        }
        let found = &run.document.id;
        if id.is_some_and(|id| id != found) {
            return Err(TakeError::OtherRun(found.clone()));
        }
        let named = words.first().filter(|word| !word.starts_with('-'));
        let wanted = named.map_or(DEFAULT_PROBE.name, String::as_str);
        let found = run.document.probe.name();
        if found != wanted {
            let (found, wanted) = (found.to_owned(), wanted.to_owned());
            return Err(TakeError::OtherProbe { found, wanted });
        }
        Ok(run)
    }
}
