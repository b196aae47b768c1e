//! Where the tests of style find the sources. They read files and link nothing of tardy, so that a
//! change of the library does not build them again.

use std::path::Path;

/// The root of the workspace.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
