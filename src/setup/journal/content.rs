//! What the journal's lines say.

use std::{
    fs::File,
    io::{self, Read as _},
};

use super::{Change, JournalPath, Owner};
use crate::limits::journal::LARGEST;

/// The owner where its line can be read, the changes, and what is wrong with other lines.
pub type JournalContent = (Option<Owner>, Vec<Change>, Vec<String>);

pub(super) fn read(path: &JournalPath, file: &mut File) -> io::Result<JournalContent> {
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(parse(&path.path().display().to_string(), &bytes))
}

/// Reads the bytes of the journal at `path`, as messages name it. A last line without its end was
/// never synced, so that its change was never made.
#[must_use]
pub fn parse(path: &str, bytes: &[u8]) -> JournalContent {
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let text = String::from_utf8_lossy(bytes.get(..whole).unwrap_or_default()).into_owned();
    let mut lines = text.lines();
    let owner = lines.next().and_then(|line| serde_json::from_str::<Owner>(line).ok());
    // An empty boot is of a version that could not read it.
    let owner = owner.filter(|owner| !owner.boot_id.is_empty());
    let (mut changes, mut damaged) = (Vec::new(), Vec::new());
    if owner.is_none() && whole > 0 {
        // Nor a boot: what follows may be what another one needed.
        damaged.push(format!("line 1 of {path} names no owner"));
        return (None, changes, damaged);
    }
    for (number, line) in lines.enumerate() {
        let wrong = match serde_json::from_str::<Change>(line) {
            Ok(change) if change.is_plausible() => {
                changes.push(change);
                continue;
            }
            Ok(_) => "is not a change that tardy makes",
            Err(_) => "is damaged",
        };
        damaged.push(format!("line {} of {path} {wrong}", number + 2));
    }
    (owner, changes, damaged)
}
