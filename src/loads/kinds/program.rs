//! Finds the programs that loads start.

use std::{
    env,
    path::{Path, PathBuf},
};

/// The program called `name`: a path, or a name that is looked for in `PATH`. `None` if no such
/// program may be started.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    let is_program = |path: &Path| {
        path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| is_program(path));
    }
    let places = env::var_os("PATH").unwrap_or_default();
    let mut found = env::split_paths(&places).map(|place| place.join(name));
    found.find(|path| is_program(path))
}
