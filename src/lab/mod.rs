//! The lab: kernels in virtual machines.
//!
//! Kernels come from packages that are unpacked and never installed; a guest's file system is made
//! from programs of this machine; nothing here needs root or changes the machine. What lies in the
//! cache may be shared by several labs at once.
//!
//! - [`kernels`]: the kernels, and how they get into the cache
//! - [`modules`]: what must be loaded into them; [`unpack`]: what those are packed with
//! - [`image`], [`cpio`]: a guest's file system
//! - [`guest`]: its first process, inside; [`result_port`], [`transfer`]: how a run gets out of it
//! - [`qemu`], [`acpi`]: its machine, outside; [`nodes`]: two nodes in one guest, and their wire
//! - [`console`]: detects a kernel in trouble by its messages
//! - [`cell`], [`guest_runner`], [`parts`]: one run of one kernel; [`phase`]: when it begins;
//!   [`guest_record`]: what is added to its record; [`verify`]: whether a repetition is identical
//! - [`plan`]: what to measure; [`scheduler`]: runs all cells; [`results`]: known outcomes
//! - [`cell_runner`], [`host`]: measure the cells, in guests and on this machine

pub mod acpi;
pub mod guest_record;
pub mod cell_runner;
pub mod guest_runner;
pub mod nodes;
pub mod cell;
pub mod scheduler;
pub mod console;
pub mod cpio;
pub mod guest;
pub mod host;
pub mod image;
pub mod kernels;
pub mod modules;
pub mod parts;
pub mod phase;
pub mod plan;
pub mod qemu;
pub mod results;
pub mod transfer;
pub mod unpack;
pub mod verify;
pub mod result_port;

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
    let found = places.find(|place| image::is_executable(&place.join(name)));
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
