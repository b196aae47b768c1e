//! The kernel's log, without waiting for more: from /dev/kmsg, or by syslog(2) where a container
//! has no such device.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
};

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
    match OpenOptions::new().read(true).custom_flags(flags).open(root.path("/dev/kmsg")) {
        Ok(log) => search_records(log, text),
        Err(_) if root.is_this_machine() => Some(search_lines(&whole_log().ok()?, text)),
        Err(_) => None,
    }
}

fn search_records(mut log: File, text: &str) -> Option<Searched> {
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

/// Lines as syslog(2) has them: `<6>[    0.000000] Linux version`, without the time where the
/// kernel prints none.
fn search_lines(log: &str, text: &str) -> Searched {
    let message = |line: &str| {
        let line = line.split_once('>').map_or(line, |(_, line)| line);
        let timed = line.strip_prefix('[').and_then(|line| line.split_once("] "));
        timed.map_or(line, |(_, line)| line).to_owned()
    };
    let mut lines = log.lines().map(message).peekable();
    // Nothing numbers the lines; this one is among the first that a kernel prints.
    let is_whole = lines.peek().is_some_and(|first| first.starts_with("Linux version "));
    Searched { found: lines.find(|line| line.contains(text)), is_whole }
}

/// Bytes of the log at most: `log_buf_len=` may ask for more, and then its end is read.
const LONGEST: usize = 64 << 20;

/// The whole log, or its end.
///
/// # Errors
/// `EPERM` without `CAP_SYSLOG`, unless `kernel.dmesg_restrict` is 0.
fn whole_log() -> io::Result<String> {
    const READ_ALL: i32 = 3;
    const SIZE_BUFFER: i32 = 10;
    // SAFETY: without a buffer, whose size is asked for.
    let size = unsafe { libc::klogctl(SIZE_BUFFER, core::ptr::null_mut(), 0) };
    let size = usize::try_from(size).map_err(|_| io::Error::last_os_error())?;
    // The buffer of the kernel has each message without its level and time.
    let mut log = vec![0_u8; size.saturating_mul(4).min(LONGEST)];
    let length = i32::try_from(log.len()).unwrap_or(i32::MAX);
    // SAFETY: `log` is writable and has at least `length` bytes.
    let read = unsafe { libc::klogctl(READ_ALL, log.as_mut_ptr().cast(), length) };
    log.truncate(usize::try_from(read).map_err(|_| io::Error::last_os_error())?);
    Ok(String::from_utf8_lossy(&log).into_owned())
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

    #[test]
    fn lines_of_syslog_are_searched_as_records_are() {
        let log =
            "<5>[    0.000000] Linux version 6.1\n<4>[   12.3] sched: RT throttling activated\n";
        let found = search_lines(log, "RT throttling");
        assert_eq!(found.found.as_deref(), Some("sched: RT throttling activated"));
        assert!(found.is_whole && search_lines(log, "nothing").found.is_none());
        let rest = search_lines("<6>eth0 up\n<6>[x] y\n", "up");
        assert_eq!(rest, Searched { found: Some("eth0 up".into()), is_whole: false });
    }

    #[test]
    fn without_its_device_the_log_of_this_machine_is_read_all_the_same() {
        let Ok(log) = whole_log() else { return };
        let records = search(&Root::default(), "").is_some_and(|log| log.found.is_some());
        assert_eq!(search_lines(&log, "").found.is_some(), records);
    }
}
