//! Where the kernel's files are looked for: below `/`, or below a directory that stands for it.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
};

use super::text;

/// Where a container has files of its host that it hides in their usual places, by convention.
pub const SHOWN: &str = "/host";

/// The directory in which `proc`, `sys` and `dev` lie. Another one than `/` stands for a machine
/// that is not at hand: what reads settings can then be asked about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Default for Root {
    fn default() -> Self {
        Self("/".into())
    }
}

impl Root {
    /// The machine whose files lie below `directory`.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// Whether this is the machine that tardy runs on.
    #[must_use]
    pub fn is_this_machine(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// Where the file lies that the machine calls `path`, which is absolute: `/proc/stat`.
    #[must_use]
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The text of a file without the white space at its end; `None` if it cannot be read.
    #[must_use]
    pub fn read(&self, path: impl AsRef<Path>) -> Option<String> {
        text::read(self.path(path))
    }

    /// The text of a file that a container may hide under an empty one: then that of the same file
    /// below [`SHOWN`], if the container has it there.
    #[must_use]
    pub fn read_shown(&self, path: &str) -> Option<String> {
        let usual = self.read(path);
        let shown = || self.read(format!("{SHOWN}{path}")).filter(|text| !text.is_empty());
        usual.clone().filter(|text| !text.is_empty()).or_else(shown).or(usual)
    }

    /// The same in pieces, with a `pause` before each: [`text::read_in_pieces`].
    #[must_use]
    pub fn read_in_pieces(
        &self,
        path: impl AsRef<Path>,
        pause: &mut dyn FnMut(),
    ) -> Option<String> {
        text::read_in_pieces(self.path(path), pause)
    }

    /// The names in a directory, sorted; none where it cannot be read.
    #[must_use]
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// A file that holds one value.
    #[must_use]
    pub fn value<T: FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        text::value(self.path(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_below_its_root() {
        assert_eq!(Root::default().path("/proc/stat"), Path::new("/proc/stat"));
        assert_eq!(Root::at("/tmp/x").path("/proc/stat"), Path::new("/tmp/x/proc/stat"));
        assert!(Root::default().is_this_machine() && !Root::at("/tmp/x").is_this_machine());
        assert_eq!(Root::at("/nowhere").read("/proc/stat"), None);
    }

    #[test]
    fn a_file_that_a_container_hides_is_read_where_it_is_shown() {
        let place = tempfile::tempdir().unwrap();
        let root = Root::at(place.path());
        let write = |path: &str, text: &str| {
            let path = root.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let read = || root.read_shown("/proc/interrupts");
        assert_eq!(read(), None);
        write("/proc/interrupts", "");
        assert_eq!(read().as_deref(), Some(""), "hidden, and not shown");
        write("/host/proc/interrupts", "shown\n");
        assert_eq!(read().as_deref(), Some("shown"));
        write("/proc/interrupts", "own\n");
        assert_eq!(read().as_deref(), Some("own"));
    }
}
