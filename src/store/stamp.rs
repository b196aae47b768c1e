//! Whether a file is as it was when it was read.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};

use crate::run::RunDetails;

/// Two changes of a file within a tick of the kernel's clock have the same time.
const TICK: Duration = Duration::from_millis(100);

/// How a file was when it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    inode: u64,
    changed_s: i64,
    changed_ns: i64,
    size: u64,
}

impl Stamp {
    /// The stamp of the file at `path`; `None` without such a file.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let about = fs::symlink_metadata(path).ok()?;
        Some(Self {
            inode: about.ino(),
            changed_s: about.ctime(),
            changed_ns: about.ctime_nsec(),
            size: about.size(),
        })
    }

    /// Whether the file could change once more, now, without another stamp.
    pub(super) fn is_young(&self, now: SystemTime) -> bool {
        let changed = u64::try_from(self.changed_s).unwrap_or(0);
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(changed);
        let changed = changed + Duration::from_nanos(u64::try_from(self.changed_ns).unwrap_or(0));
        now.duration_since(changed).is_ok_and(|age| age < TICK)
    }
}

/// What was read of the files beside the record, and how they were.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct KeptDetails {
    pub stamps: [Option<Stamp>; 2],
    pub details: RunDetails,
}
