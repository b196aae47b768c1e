//! Which machine this is: its own id, and the labels that its owner gave it.

use std::{
    collections::BTreeMap,
    env,
    fs::OpenOptions,
    io::{self, ErrorKind, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use thiserror::Error;

use crate::sys::root::Root;

/// What makes the id tardy's: `systemd-id128 machine-id --app-specific=` prints the same for it.
const APPLICATION: u128 = 0x76fc_524a_e5f9_4b54_95b0_b1e8_f9f6_dc50;

/// Where labels are kept.
const LABELS: &str = "/etc/tardy/labels";

/// Variable with another file of labels.
const LABELS_VARIABLE: &str = "TARDY_LABELS";

/// More labels would make every metric long.
const MOST_LABELS: usize = 8;

/// Bytes from which on a file is too large.
const LARGEST: u64 = (64 << 10) + 1;

/// Characters of a name or a value.
const LONGEST: usize = 63;

/// Why a machine has no labels.
#[derive(Debug, Error)]
pub enum LabelsError {
    /// The file cannot be read.
    #[error("{}: cannot read the labels of this machine", .file.display())]
    Unread {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line of it is invalid.
    #[error("{}: {why}", .file.display())]
    Invalid {
        /// The file.
        file: PathBuf,
        /// Which line, and what to write instead.
        why: String,
    },
}

/// The machine's own id, which does not reveal `/etc/machine-id`: systemd asks programs not to show
/// that one to others (machine-id(5)). `None` if the machine has none.
pub(super) fn id(root: &Root) -> Option<String> {
    let text = root.read_shown("/etc/machine-id")?;
    let own = Some(text.trim()).filter(|text| text.len() == 32)?;
    let own = u128::from_str_radix(own, 16).ok().filter(|own| *own != 0)?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&own.to_be_bytes()).ok()?;
    mac.update(&APPLICATION.to_be_bytes());
    let first = mac.finalize().into_bytes().into_iter().take(16);
    let id = first.fold(0_u128, |id, byte| id << 8 | u128::from(byte));
    // Version 4, variant 1 of RFC 4122, as sd_id128_get_machine_app_specific(3) has it.
    let id = id & !(0xf << 76) & !(0b11 << 62) | 4 << 76 | 0b10 << 62;
    Some(format!("{id:032x}"))
}

/// Labels of this machine, by name: those of `/etc/tardy/labels`, or of the file that
/// `TARDY_LABELS` names.
///
/// # Errors
/// The file cannot be read, or a line of it is invalid. `/etc/tardy/labels` may be missing.
pub fn labels() -> Result<BTreeMap<String, String>, LabelsError> {
    let named = env::var_os(LABELS_VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from);
    let is_named = named.is_some();
    let file = named.unwrap_or_else(|| LABELS.into());
    match read(&file) {
        Ok(text) => parse(&text).map_err(|why| LabelsError::Invalid { file, why }),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_named => Ok(BTreeMap::new()),
        Err(error) => Err(LabelsError::Unread { file, source: error }),
    }
}

/// A file of labels. A FIFO has none, and would be waited for.
fn read(file: &Path) -> io::Result<String> {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(file)?;
    if !opened.metadata()?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidData, "it is not a file"));
    }
    let mut text = String::new();
    opened.take(LARGEST).read_to_string(&mut text)?;
    match text.len() as u64 {
        LARGEST => Err(io::Error::new(ErrorKind::InvalidData, "it is larger than 64 KiB")),
        _ => Ok(text),
    }
}

/// Lines `name=value`; empty ones and those that begin with `#` say nothing.
fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut labels = BTreeMap::new();
    for (line, number) in text.lines().map(str::trim).zip(1..) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = label(line).map_err(|why| format!("line {number}: {why}"))?;
        if labels.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(format!("line {number}: {name} is there twice; remove one"));
        }
    }
    match labels.len() {
        0..=MOST_LABELS => Ok(labels),
        count => Err(format!("{count} labels; keep at most {MOST_LABELS}")),
    }
}

/// Name and value.
fn label(line: &str) -> Result<(&str, &str), String> {
    let Some((name, value)) = line.split_once('=') else {
        return Err("not a label; write name=value, e.g. rack=r12".into());
    };
    let (name, value) = (name.trim(), value.trim());
    if !is_name(name) {
        return Err(format!(
            "invalid name of a label; use up to {LONGEST} small letters, digits and _, with a \
             letter first"
        ));
    }
    if !is_value(value) {
        return Err(format!(
            "invalid value of {name}; use 1 to {LONGEST} letters, digits and . _ - / :"
        ));
    }
    Ok((name, value))
}

fn is_name(name: &str) -> bool {
    let is_usual = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.len() <= LONGEST
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(is_usual)
}

fn is_value(value: &str) -> bool {
    let is_usual = |c: char| c.is_ascii_alphanumeric() || "._-/:".contains(c);
    (1..=LONGEST).contains(&value.len()) && value.chars().all(is_usual)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn what_is_no_short_file_has_no_labels_and_is_not_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let (fifo, large) = (place.path().join("fifo"), place.path().join("large"));
        mknodat(CWD, &fifo, FileType::Fifo, Mode::from(0o600), 0).unwrap();
        fs::write(&large, "#".repeat(1 << 20)).unwrap();
        let says = |file: &Path| read(file).unwrap_err().to_string();
        assert_eq!(says(&fifo), "it is not a file");
        assert_eq!(says(&large), "it is larger than 64 KiB");
        assert_eq!(says(Path::new("/dev/zero")), "it is not a file");
        fs::write(&large, "rack=r1\n").unwrap();
        assert_eq!(read(&large).unwrap(), "rack=r1\n");
    }

    #[test]
    fn the_id_is_that_of_systemd_and_needs_a_whole_machine_id() {
        let place = tempfile::tempdir().unwrap();
        let root = Root::at(place.path());
        let file = root.path("/etc/machine-id");
        assert_eq!(id(&root), None);
        fs::create_dir(file.parent().unwrap()).unwrap();
        for odd in ["", "uninitialized\n", "0123", &"0".repeat(32), &"x".repeat(32)] {
            fs::write(&file, odd).unwrap();
            assert_eq!(id(&root), None, "{odd}");
        }
        // systemd-id128 machine-id --app-specific=APPLICATION, on a machine with this id.
        fs::write(&file, "0123456789abcdef0123456789abcdef\n").unwrap();
        let known = Some("d7ef05febc2e430fb74a6f526e27b1a4");
        assert_eq!(id(&root).as_deref(), known);
        // The image of a container has an empty one.
        let host = root.path("/host/etc/machine-id");
        fs::create_dir_all(host.parent().unwrap()).unwrap();
        fs::rename(&file, host).unwrap();
        fs::write(&file, "").unwrap();
        assert_eq!(id(&root).as_deref(), known);
    }

    #[test]
    fn labels_are_read_line_by_line_and_an_odd_line_is_named() {
        let text = "# where it stands\nrack=r12\n\n role = db-1/a:b \n";
        let labels = parse(text).unwrap();
        let expected = [("rack", "r12"), ("role", "db-1/a:b")];
        assert!(labels.iter().map(|(name, value)| (&**name, &**value)).eq(expected));
        for (odd, said) in [
            ("rack", "line 1: not a label"),
            ("# x\nRack=1", "line 2: invalid name"),
            ("1a=1", "line 1: invalid name"),
            ("=1", "line 1: invalid name"),
            ("a=", "line 1: invalid value of a"),
            ("a=x y", "line 1: invalid value of a"),
            ("a=\"x\"", "line 1: invalid value of a"),
            ("a=1\na=2", "line 2: a is there twice"),
            (&(1..10).map(|n| format!("a{n}=1\n")).collect::<String>(), "9 labels; keep at most 8"),
            (&format!("a={}", "x".repeat(64)), "line 1: invalid value of a"),
        ] {
            let error = parse(odd).unwrap_err();
            assert!(error.starts_with(said), "{odd}: {error}");
        }
    }
}
