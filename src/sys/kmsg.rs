//! The kernel's log, read from /dev/kmsg without waiting for more.

use std::{fs::OpenOptions, io::Read, os::unix::fs::OpenOptionsExt};

use super::root::Root;

/// The result of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Searched {
    /// The first message that holds the text.
    pub found: Option<String>,
    /// Whether the log has every message since boot: what is not found was never said.
    pub is_whole: bool,
}

/// The first message in the log that holds `text`; absent without the right to read the log, and
/// where the message has been overwritten by later ones.
#[must_use]
pub fn find(text: &str) -> Option<String> {
    search(&Root::default(), text)?.found
}

/// Looks for a message in the log of the machine below `root`, where the log may be an ordinary
/// file of such records; `None` if it cannot be read.
#[must_use]
pub fn search(root: &Root, text: &str) -> Option<Searched> {
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).ok()?;
    let mut log =
        OpenOptions::new().read(true).custom_flags(flags).open(root.path("/dev/kmsg")).ok()?;
    let mut record = [0; 8192];
    let mut searched: Option<Searched> = None;
    loop {
        let length = match log.read(&mut record) {
            Ok(0) => return searched,
            Ok(length) => length,
            // A record was overwritten between two reads; the next one is there.
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => continue,
            Err(_) => return searched,
        };
        // "6,123,456789,-;the message\n KEY=value\n"; the second number counts from 0 since boot.
        let records = String::from_utf8_lossy(record.get(..length)?).into_owned();
        let is_first = || records.split(',').nth(1) == Some("0");
        let known = searched
            .get_or_insert_with(|| Searched { is_whole: is_first(), ..Searched::default() });
        let message = |line: &'_ str| Some(line.split_once(';')?.1.to_owned());
        let lines = records.lines().filter(|line| !line.starts_with(' '));
        if let Some(line) = lines.filter_map(message).find(|message| message.contains(text)) {
            known.found = Some(line);
            return searched;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_found_and_its_annotations_are_not() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("dev")).unwrap();
        let log = "4,1,5,-;first: one\n SUBSYSTEM=x;second\n6,2,9,-;second: two\n";
        std::fs::write(directory.path().join("dev/kmsg"), log).unwrap();
        let root = Root::at(directory.path());
        let result = |found: Option<&str>| {
            Some(Searched { found: found.map(str::to_owned), is_whole: false })
        };
        assert_eq!(search(&root, "second"), result(Some("second: two")));
        assert_eq!(search(&root, "third"), result(None), "its beginning was overwritten");
        assert_eq!(search(&Root::at("/nowhere"), "first"), None);
        std::fs::write(directory.path().join("dev/kmsg"), "5,0,0,-;Linux version\n").unwrap();
        assert!(search(&root, "third").unwrap().is_whole);
    }
}
