//! The limit of open files (`RLIMIT_NOFILE`).

use std::io;

use rustix::process::{self, Resource, Rlimit};

/// Lets the calling process open as many files as its hard limit allows.
///
/// # Errors
/// Those of `setrlimit`.
pub fn raise_open_files() -> io::Result<()> {
    let limit = process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    Ok(process::setrlimit(Resource::Nofile, raised)?)
}

/// What an error says, and what is to be done about a limit of open files, which it does not name.
#[must_use]
pub fn with_limit(mut error: String) -> String {
    let is_of_files = error.contains(&format!("(os error {})", libc::EMFILE));
    if is_of_files && !error.contains("ulimit") {
        error.push_str("; raise the limit of open files (`ulimit -n`)");
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_too_many_files_names_the_limit_once() {
        let limit = io::Error::from_raw_os_error(libc::EMFILE).to_string();
        let said = with_limit(limit);
        assert!(said.ends_with("(os error 24); raise the limit of open files (`ulimit -n`)"));
        assert_eq!(with_limit(said.clone()), said);
        let other = io::Error::from_raw_os_error(libc::EACCES).to_string();
        assert_eq!(with_limit(other.clone()), other);
    }
}
