//! Directories that are made under a name that no run has, and what is left of them.

use std::{io, path::Path};

use rustix::fs::{RenameFlags, renameat_with};

use super::{RunDirectory, entries::empty};

impl RunDirectory {
    /// Gives the directory itself its name, where it was made under another one.
    ///
    /// # Errors
    /// Something has that name; it was there before it was opened; or what the disk says.
    pub fn take_name(&mut self, name: &str) -> io::Result<()> {
        let (above, old) = self.made.as_mut().ok_or(io::ErrorKind::NotFound)?;
        let flags = RenameFlags::NOREPLACE;
        renameat_with(&**above, old.as_os_str(), &**above, name, flags)?;
        *old = name.into();
        Ok(())
    }

    /// Removes the directory at `path`, with what is in it, which its maker has left.
    ///
    /// # Errors
    /// It is a link, or another user's where root removes it; or what the disk says.
    pub fn remove_left(path: &Path) -> io::Result<()> {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let above = Self::around(above)?;
        empty(&above.entered(name)?.open);
        above.remove_directory(name)
    }
}
