//! Where the tests of style find the sources. They read files and link nothing of tardy, so that a
//! change of the library does not build them again.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

/// The root of the workspace whose tests run. A copied build directory has tests that were built in
/// another worktree, and cargo does not build them again.
pub fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let package = std::env::var_os("CARGO_MANIFEST_DIR");
        let package = package.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        Path::new(&package).join("..")
    });
    &ROOT
}

/// Files below `directory` whose names end in `ending`; both paths are relative to the root. Built,
/// hidden and foreign files are left out.
pub fn files(directory: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join(directory)).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if directory.is_empty() { name.clone() } else { format!("{directory}/{name}") };
        let skip = name.starts_with('.') || ["target", "node_modules"].contains(&name.as_str());
        if entry.path().is_dir() && !skip {
            found.extend(files(&path, ending));
        } else if name.ends_with(ending) && entry.path().is_file() {
            found.push(path.into());
        }
    }
    found
}
