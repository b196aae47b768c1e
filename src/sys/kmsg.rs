//! The kernel's log, read from /dev/kmsg without waiting for more.

use std::{fs::OpenOptions, io::Read, os::unix::fs::OpenOptionsExt};

use super::root::Root;

/// The first message in the log that holds `text`; absent without the right to read the log, and
/// where the message has been overwritten by later ones.
#[must_use]
pub fn find(text: &str) -> Option<String> {
    find_in(&Root::default(), text)
}

/// [`find`] for the machine below `root`; there the log is an ordinary file of such records.
#[must_use]
pub fn find_in(root: &Root, text: &str) -> Option<String> {
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).ok()?;
    let mut log =
        OpenOptions::new().read(true).custom_flags(flags).open(root.path("/dev/kmsg")).ok()?;
    let mut record = [0; 8192];
    loop {
        let length = match log.read(&mut record) {
            Ok(0) => return None,
            Ok(length) => length,
            // A record was overwritten between two reads; the next one is there.
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => continue,
            Err(_) => return None,
        };
        // "6,123,456789,-;the message\n KEY=value\n"
        let records = String::from_utf8_lossy(record.get(..length)?).into_owned();
        let message = |line: &'_ str| Some(line.split_once(';')?.1.to_owned());
        let lines = records.lines().filter(|line| !line.starts_with(' '));
        if let Some(line) = lines.filter_map(message).find(|message| message.contains(text)) {
            return Some(line);
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
        assert_eq!(find_in(&root, "second").as_deref(), Some("second: two"));
        assert_eq!(find_in(&root, "third"), None);
        assert_eq!(find_in(&Root::at("/nowhere"), "first"), None);
    }
}
