//! Lists the content of the kernels' cache.

use std::{
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::{Context, Result};

use super::{Kernel, cache, kernel_in};

/// Begins the names of directories with what was unpacked of a file of the user's.
pub const OWN: &str = "image-";

/// A package in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cached {
    /// The package's name.
    pub package: String,
    /// Where it lies.
    pub place: PathBuf,
    /// The kernel in it.
    pub kernel: Kernel,
    /// What it takes on the disk, bytes.
    pub bytes: u64,
    /// When it was put there.
    pub fetched_at: Option<SystemTime>,
    /// Whether it still is what was put there; if not, it will be made again when it is used.
    pub is_whole: bool,
}

/// What lies in the cache.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content {
    /// Packages, by release.
    pub packages: Vec<Cached>,
    /// How many kernels of the user's own were unpacked.
    pub own: usize,
    /// What those take on the disk, bytes.
    pub own_bytes: u64,
}

/// Reads the cache, without waiting for a process that writes to it.
///
/// # Errors
/// It is there and cannot be read.
pub fn content(cache: &Path) -> Result<Content> {
    let mut content = Content::default();
    if !cache.exists() {
        return Ok(content);
    }
    let entries = fs::read_dir(cache);
    let entries = entries.with_context(|| format!("cannot read {}", cache.display()))?;
    for place in entries.flatten().map(|entry| entry.path()) {
        let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if place.is_symlink() || cache::sums(&place).is_none() {
            continue;
        }
        if name.starts_with(OWN) {
            content.own += 1;
            content.own_bytes += size(&place);
        } else if let Ok(kernel) = kernel_in(&place) {
            content.packages.push(Cached {
                package: name.split('_').next().unwrap_or(&name).to_owned(),
                bytes: size(&place),
                fetched_at: place.metadata().and_then(|about| about.modified()).ok(),
                is_whole: cache::is_whole(&place),
                kernel,
                place,
            });
        }
    }
    content.packages.sort_by(|a, b| (&a.kernel.name, &a.place).cmp(&(&b.kernel.name, &b.place)));
    Ok(content)
}

/// The kernel of a package in the cache by the checksum of its image, if it is whole.
#[must_use]
pub fn with_hash(cache: &Path, hash: &str) -> Option<Kernel> {
    let entries = fs::read_dir(cache).into_iter().flatten().flatten();
    let places = entries.map(|entry| entry.path()).filter(|place| !place.is_symlink());
    let kernels = places.filter_map(|place| Some((kernel_in(&place).ok()?, place)));
    let mut own = kernels.filter(|(kernel, _)| kernel.hash == hash);
    own.find(|(_, place)| cache::is_whole(place)).map(|(kernel, _)| kernel)
}

/// The bytes of all files below a directory; links are not followed.
fn size(place: &Path) -> u64 {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| {
        let about = entry.metadata().ok()?;
        Some(if about.is_dir() { size(&entry.path()) } else { about.len() })
    });
    sizes.sum()
}
