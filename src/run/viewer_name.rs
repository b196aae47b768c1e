//! The name of the script that draws all pages of one directory.

/// What the name begins with. A hash of the content follows.
pub const VIEWER_BEGIN: &str = "tardy-viewer-";

/// What it ends with.
pub const VIEWER_END: &str = ".js";

/// Hexadecimal digits of the hash.
pub const VIEWER_DIGITS: usize = 16;

/// Whether this is the name of a viewer, of this tardy or another.
#[must_use]
pub fn is_viewer(name: &str) -> bool {
    let hash = name.strip_prefix(VIEWER_BEGIN).and_then(|rest| rest.strip_suffix(VIEWER_END));
    let is_hash = |hash: &str| {
        hash.len() == VIEWER_DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    hash.is_some_and(is_hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_hash_names_a_viewer() {
        assert!(is_viewer("tardy-viewer-0123456789abcdef.js"));
        for name in ["tardy-viewer-.js", "tardy-viewer-0123456789abcdeg.js", "x.js", "0.html"] {
            assert!(!is_viewer(name), "{name}");
        }
    }
}
