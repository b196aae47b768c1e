//! Writes archives in the `newc` form of cpio, which the kernel unpacks as its first file system.

use std::io::{self, Write};

const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const CHARACTER_DEVICE: u32 = 0o020_000;

/// Every header and every file begins at a multiple of this.
const ALIGNMENT: usize = 4;

/// What lies under one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// Its permissions.
    Directory(u32),
    /// Its permissions and content.
    File(u32, Vec<u8>),
    /// Where it leads.
    Link(String),
    /// Major and minor number.
    CharacterDevice(u32, u32),
}

impl Node {
    fn mode(&self) -> u32 {
        match self {
            Self::Directory(permissions) => DIRECTORY | permissions,
            Self::File(permissions, _) => FILE | permissions,
            Self::Link(_) => LINK | 0o777,
            Self::CharacterDevice(..) => CHARACTER_DEVICE | 0o600,
        }
    }

    fn data(&self) -> &[u8] {
        match self {
            Self::File(_, data) => data,
            Self::Link(target) => target.as_bytes(),
            Self::Directory(_) | Self::CharacterDevice(..) => &[],
        }
    }

    fn device(&self) -> (u32, u32) {
        match self {
            Self::CharacterDevice(major, minor) => (*major, *minor),
            _ => (0, 0),
        }
    }
}

/// An archive that is being written; everything in it belongs to root.
pub struct CpioWriter<W> {
    out: W,
    entries: u32,
}

impl<W: Write> CpioWriter<W> {
    /// An archive without entries.
    pub fn new(out: W) -> Self {
        Self { out, entries: 0 }
    }

    /// Adds `node` as `path`, which has no slash at its beginning and comes after its directory.
    pub fn add(&mut self, path: &str, node: &Node) -> io::Result<()> {
        self.entries += 1;
        let links = if matches!(node, Node::Directory(_)) { 2 } else { 1 };
        self.entry(path, self.entries, node.mode(), links, node.device(), node.data())
    }

    /// Writes the end; without it the kernel would wait for more.
    pub fn finish(mut self) -> io::Result<W> {
        self.entry("TRAILER!!!", 0, 0, 1, (0, 0), &[])?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn entry(
        &mut self,
        path: &str,
        inode: u32,
        mode: u32,
        links: u32,
        device: (u32, u32),
        data: &[u8],
    ) -> io::Result<()> {
        let too_long = |_| io::Error::other(format!("{path} is too long for an archive"));
        let size = u32::try_from(data.len()).map_err(too_long)?;
        let name = u32::try_from(path.len() + 1).map_err(too_long)?;
        // inode, mode, user, group, links, time, size, device, device node, name, checksum
        let (major, minor) = device;
        let fields = [inode, mode, 0, 0, links, 0, size, 0, 0, major, minor, name, 0];
        let mut header = String::from("070701");
        for field in fields {
            header.push_str(&format!("{field:08x}"));
        }
        self.out.write_all(header.as_bytes())?;
        self.out.write_all(path.as_bytes())?;
        self.out.write_all(&[0])?;
        self.pad(header.len() + path.len() + 1)?;
        self.out.write_all(data)?;
        self.pad(data.len())
    }

    fn pad(&mut self, written: usize) -> io::Result<()> {
        let missing = written.next_multiple_of(ALIGNMENT) - written;
        self.out.write_all(&[0; ALIGNMENT][..missing])
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn archive(nodes: &[(&str, Node)]) -> Vec<u8> {
        let mut writer = CpioWriter::new(Vec::new());
        for (path, node) in nodes {
            writer.add(path, node).unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn a_file_is_laid_out_to_the_byte() {
        let written = archive(&[("a", Node::File(0o644, b"hello".into()))]);
        let header = "070701\
            00000001\
            000081a4\
            00000000\
            00000000\
            00000001\
            00000000\
            00000005\
            00000000\
            00000000\
            00000000\
            00000000\
            00000002\
            00000000";
        let expected = [header.as_bytes(), b"a\0", b"hello\0\0\0"].concat();
        assert_eq!(written[..expected.len()], expected);
        assert!(written[expected.len()..].starts_with(b"070701"), "the next begins at once");
        assert_eq!(written.len() % ALIGNMENT, 0);
        assert!(written.windows(11).any(|window| window == b"TRAILER!!!\0"));
    }

    #[test]
    fn every_length_of_name_and_data_is_aligned() {
        for name in ["a", "ab", "abc", "abcd", "abcde"] {
            for length in 0..5 {
                let written = archive(&[(name, Node::File(0o600, vec![7; length]))]);
                let data = (110 + name.len() + 1).next_multiple_of(4);
                assert_eq!(written[data..data + length], vec![7; length], "{name} {length}");
                let next = (data + length).next_multiple_of(4);
                assert!(written[next..].starts_with(b"070701"), "{name} {length}");
            }
        }
    }

    #[test]
    fn what_is_no_file_has_its_kind_its_target_and_its_numbers() {
        let text = |node| String::from_utf8(archive(&[("x", node)])).unwrap();
        let device = text(Node::CharacterDevice(5, 1));
        assert_eq!((&device[14..22], &device[78..94]), ("00002180", "0000000500000001"));
        let link = text(Node::Link("usr/bin".into()));
        assert_eq!(
            (&link[14..22], &link[54..62], &link[112..119]),
            ("0000a1ff", "00000007", "usr/bin")
        );
        let directory = text(Node::Directory(0o1777));
        assert_eq!((&directory[14..22], &directory[54..62]), ("000043ff", "00000000"));
    }

    #[test]
    fn another_reader_finds_the_same_files() {
        let Ok(mut reader) = Command::new("cpio")
            .args(["--list", "--quiet"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
        else {
            // The layout is held to the byte above; this only asks a second opinion.
            return;
        };
        let written = archive(&[
            ("etc", Node::Directory(0o755)),
            ("etc/passwd", Node::File(0o644, b"root:x:0:0::/:/bin/sh\n".into())),
            ("bin", Node::Link("usr/bin".into())),
        ]);
        reader.stdin.take().unwrap().write_all(&written).unwrap();
        let output = reader.wait_with_output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "etc\netc/passwd\nbin\n");
    }
}
