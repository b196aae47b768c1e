//! Token files: the secret that an echo and its peers share.

use std::{
    fs,
    io::Read as _,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
};

use rustix::fs::{OFlags, fcntl_setfl};

use super::connect::HelloError;

/// The shortest token that is worth the name, and the longest that is read.
const TOKEN_BYTES: std::ops::RangeInclusive<usize> = 8..=1024;

/// Reads a token; white space at its end does not belong to it.
///
/// # Errors
/// The file cannot be read, or holds too little or too much.
pub fn read_token(file: &Path) -> Result<Vec<u8>, HelloError> {
    let named = |why: String| HelloError::TokenFile { file: file.display().to_string(), why };
    let mut bytes = Vec::new();
    let most = *TOKEN_BYTES.end() as u64 + 1;
    // A FIFO of somebody else would wait for its writer before it can be refused.
    let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let open = fs::OpenOptions::new().read(true).custom_flags(nonblocking).open(file);
    let open = open.map_err(|error| named(error.to_string()))?;
    // Of what was opened, not of the name, which may mean another file by now.
    let about = open.metadata().map_err(|error| named(error.to_string()))?;
    refuse_shared(&about).map_err(named)?;
    fcntl_setfl(&open, OFlags::empty()).map_err(|error| named(error.to_string()))?;
    let read = open.take(most).read_to_end(&mut bytes);
    read.map_err(|error| named(error.to_string()))?;
    let token = bytes.trim_ascii_end();
    if !TOKEN_BYTES.contains(&token.len()) {
        let (least, most) = (TOKEN_BYTES.start(), TOKEN_BYTES.end());
        return Err(named(format!(
            "a token has {least} to {most} bytes, not {}; make one with \
             `(umask 077; head -c 32 /dev/urandom | base64 > FILE)`",
            token.len()
        )));
    }
    Ok(token.to_owned())
}

/// A token that others may read or change is not secret. A private pipe, as `<(pass show x)` makes
/// it, will do.
fn refuse_shared(about: &fs::Metadata) -> Result<(), String> {
    let (mode, owner) = (about.mode() & 0o777, about.uid());
    if mode & 0o077 != 0 {
        return Err(format!("others may read or change it (mode {mode:03o}); `chmod 600 FILE`"));
    }
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return Err(format!("it belongs to user {owner}; make one of your own, mode 600"));
    }
    Ok(())
}
