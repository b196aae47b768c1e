//! The lab: kernels in virtual machines.
//!
//! Kernels come from packages that are unpacked and never installed; a guest's file system is made
//! from programs of this machine; nothing here needs root or changes the machine. What lies in the
//! cache may be shared by several labs at once.
//!
//! - [`kernels`]: the kernels, how they get into the cache, and what must be loaded into them
//! - [`guest`]: a guest, its machine and its file system
//! - [`cell`]: one run of one kernel in one guest
//! - [`matrix`]: a plan, its cells, and their outcomes

pub mod cell;
pub mod guest;
pub mod kernels;
pub mod matrix;

use std::path::PathBuf;

use anyhow::{Context, Result};

/// Receives progress messages about slow steps, a line at a time.
pub type Notify<'a> = &'a dyn Fn(&str);

/// Where the lab keeps what can be made again: `$XDG_CACHE_HOME/tardy/lab`, or
/// `~/.cache/tardy/lab`.
///
/// # Errors
/// Where neither XDG_CACHE_HOME nor HOME is set.
pub fn cache() -> Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let place = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    let place = place.context("no place for the lab's cache: set HOME or XDG_CACHE_HOME")?;
    Ok(place.join("tardy/lab"))
}

/// A program of this machine, by its name.
///
/// # Errors
/// Where no directory of PATH, nor of those where root's programs lie, has it.
pub fn program(name: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Directories of root's programs, which other users do not have in their PATH.
    let more = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut places = std::env::split_paths(&path).chain(more);
    let found = places.find(|place| guest::image::is_executable(&place.join(name)));
    found.map(|place| place.join(name)).with_context(|| format!("program {name} is not installed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_also_where_only_root_looks() {
        assert!(program("sh").unwrap().is_absolute());
        let error = program("no-such-program").unwrap_err().to_string();
        assert!(error.contains("no-such-program"), "{error}");
    }
}
