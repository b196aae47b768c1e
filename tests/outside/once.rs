//! What many tests read and one makes, also where each test is its own process. Test programs
//! include this file.

use std::{
    collections::BTreeMap,
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use tempfile::TempDir;

/// Names the directory that all tests of one `cargo xtask test` share, which removes it.
const SHARED: &str = "TARDY_TEST_SHARED";

/// The file or directory `name`, made by the first test that asks for it: `make` makes it at the
/// path that it is given. Nobody may change it.
pub(crate) fn made_once(name: &str, make: impl FnOnce(&Path)) -> PathBuf {
    match env::var_os(SHARED) {
        Some(shared) => for_processes(Path::new(&shared), name, make),
        None => for_this_process(name, make),
    }
}

fn for_processes(shared: &Path, name: &str, make: impl FnOnce(&Path)) -> PathBuf {
    let made = shared.join(name);
    let lock = File::create(shared.join(format!("{name}.lock"))).unwrap();
    lock.lock().unwrap();
    if !made.exists() {
        let draft = shared.join(format!("{name}.draft"));
        // Of a test that failed or was killed.
        let _ = fs::remove_dir_all(&draft);
        make(&draft);
        fs::rename(&draft, &made).unwrap();
    }
    made
}

fn for_this_process(name: &str, make: impl FnOnce(&Path)) -> PathBuf {
    static MADE: Mutex<BTreeMap<String, TempDir>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(directory) = made.get(name) {
        return directory.path().join(name);
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    make(&path);
    made.insert(name.to_owned(), directory);
    path
}
