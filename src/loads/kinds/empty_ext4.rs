//! An empty ext4 file system, made without mkfs: a guest of the lab has none, and the same one
//! everywhere makes runs comparable.
//!
//! One group of blocks, one table of inodes, a journal, `lost+found`; no checksums, no backups.
//! Written after the kernel's own description of the layout
//! (<https://docs.kernel.org/filesystems/ext4/>). After a change, run e2fsck on it: the test
//! below does where there is one.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// A block, bytes.
pub(super) const BLOCK_BYTES: u32 = 4096;

/// What one group can hold: a bit in one block for each of its blocks.
pub(super) const LARGEST_BYTES: u64 = BLOCKS_PER_GROUP as u64 * BLOCK_BYTES as u64;

const BLOCKS_PER_GROUP: u32 = 8 * BLOCK_BYTES;
const INODES: u32 = 1024;
const INODE_BYTES: u32 = 256;

// The layout, in blocks. The superblock is in the middle of block 0.
const DESCRIPTORS: u32 = 1;
const BLOCK_MAP: u32 = 2;
const INODE_MAP: u32 = 3;
const INODE_TABLE: u32 = 4;
const ROOT: u32 = INODE_TABLE + INODES * INODE_BYTES / BLOCK_BYTES;
const LOST_AND_FOUND: u32 = ROOT + 1;
const JOURNAL: u32 = LOST_AND_FOUND + 1;
/// The smallest that the kernel takes.
const JOURNAL_BLOCKS: u32 = 1024;
const FIRST_FREE: u32 = JOURNAL + JOURNAL_BLOCKS;

const ROOT_INODE: u32 = 2;
const JOURNAL_INODE: u32 = 8;
/// `lost+found`, the first that is not reserved.
const LAST_INODE: u32 = 11;

const DIRECTORY: u16 = 0o040_755;
const PLAIN_FILE: u16 = 0o100_600;

/// Any constant will do; one that changed would change what the kernel does with it.
const UUID: [u8; 16] = *b"tardy ext4 load.";

/// Bytes that the file system needs for itself.
pub(super) const OWN_BYTES: u64 = FIRST_FREE as u64 * BLOCK_BYTES as u64;

/// Writes an empty file system of `bytes`, a multiple of [`BLOCK_BYTES`] and no more than
/// [`LARGEST_BYTES`], into a file of that size that holds zeros.
///
/// # Errors
/// Those of writing.
pub(super) fn write(into: &File, bytes: u64) -> io::Result<()> {
    let blocks = u32::try_from(bytes / u64::from(BLOCK_BYTES)).map_err(io::Error::other)?;
    let put = |block: u32, offset: u32, part: &Part| {
        into.write_all_at(&part.0, u64::from(block) * u64::from(BLOCK_BYTES) + u64::from(offset))
    };
    put(0, 1024, &superblock(blocks))?;
    put(DESCRIPTORS, 0, &descriptor(blocks))?;
    put(BLOCK_MAP, 0, &map(FIRST_FREE, blocks))?;
    put(INODE_MAP, 0, &map(LAST_INODE, INODES))?;
    let inodes = [
        (ROOT_INODE, inode(DIRECTORY, 3, ROOT, 1)),
        (JOURNAL_INODE, inode(PLAIN_FILE, 1, JOURNAL, JOURNAL_BLOCKS)),
        (LAST_INODE, inode(DIRECTORY, 2, LOST_AND_FOUND, 1)),
    ];
    for (number, inode) in inodes {
        put(INODE_TABLE, (number - 1) * INODE_BYTES, &inode)?;
    }
    let names = [(ROOT_INODE, "."), (ROOT_INODE, ".."), (LAST_INODE, "lost+found")];
    put(ROOT, 0, &directory(&names))?;
    put(LOST_AND_FOUND, 0, &directory(&[(LAST_INODE, "."), (ROOT_INODE, "..")]))?;
    put(JOURNAL, 0, &journal())
}

/// Bytes that are filled in field by field.
struct Part(Vec<u8>);

impl Part {
    fn of(bytes: u32) -> Self {
        Self(vec![0; usize::try_from(bytes).unwrap_or(0)])
    }

    fn set(&mut self, at: usize, field: &[u8]) {
        // All places are constants below, and inside.
        if let Some(place) = self.0.get_mut(at..at + field.len()) {
            place.copy_from_slice(field);
        }
    }

    fn u16s(&mut self, fields: &[(usize, u16)]) {
        for (at, value) in fields {
            self.set(*at, &value.to_le_bytes());
        }
    }

    fn u32s(&mut self, fields: &[(usize, u32)]) {
        for (at, value) in fields {
            self.set(*at, &value.to_le_bytes());
        }
    }
}

fn superblock(blocks: u32) -> Part {
    let mut part = Part::of(1024);
    part.u32s(&[
        (0x00, INODES),
        (0x04, blocks),
        (0x0C, blocks - FIRST_FREE),
        (0x10, INODES - LAST_INODE),
        // Blocks and clusters of 2^(10 + 2) bytes.
        (0x18, 2),
        (0x1C, 2),
        (0x20, BLOCKS_PER_GROUP),
        (0x24, BLOCKS_PER_GROUP),
        (0x28, INODES),
        // The second revision, whose sizes are variable.
        (0x4C, 1),
        (0x54, LAST_INODE),
        // Can do: has a journal.
        (0x5C, 0x4),
        // Must do: kinds in directories, extents.
        (0x60, 0x2 | 0x40),
        // Must do to write: sparse backups, large files, larger inodes.
        (0x64, 0x1 | 0x2 | 0x40),
        (0xE0, JOURNAL_INODE),
    ]);
    part.u16s(&[
        // Never to be checked for its age.
        (0x36, 0xFFFF),
        (0x38, 0xEF53),
        // Clean; errors are ignored.
        (0x3A, 1),
        (0x3C, 1),
        (0x58, 256),
        (0x15C, 32),
        (0x15E, 32),
    ]);
    part.set(0x68, &UUID);
    part.set(0xEC, &UUID);
    // How names are hashed: half of MD4.
    part.set(0xFC, &[1]);
    part
}

fn descriptor(blocks: u32) -> Part {
    let short = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
    let mut part = Part::of(32);
    part.u32s(&[(0x0, BLOCK_MAP), (0x4, INODE_MAP), (0x8, INODE_TABLE)]);
    part.u16s(&[(0xC, short(blocks - FIRST_FREE)), (0xE, short(INODES - LAST_INODE)), (0x10, 2)]);
    part
}

/// A block of bits: the first `used` are taken, and so is what lies behind the end.
fn map(used: u32, all: u32) -> Part {
    let mut part = Part::of(BLOCK_BYTES);
    let mut bit = 0_u32;
    for byte in &mut part.0 {
        for place in 0..8 {
            let is_taken = bit < used || bit >= all;
            *byte |= u8::from(is_taken) << place;
            bit += 1;
        }
    }
    part
}

/// An inode whose content is one run of blocks.
fn inode(mode: u16, links: u16, first_block: u32, blocks: u32) -> Part {
    let mut part = Part::of(INODE_BYTES);
    part.u16s(&[
        (0x00, mode),
        (0x1A, links),
        // The head of the extents: a magic number, one of at most four.
        (0x28, 0xF30A),
        (0x2A, 1),
        (0x2C, 4),
        (0x28 + 16, u16::try_from(blocks).unwrap_or(0)),
        // What is used behind the first 128 bytes.
        (0x80, 32),
    ]);
    // Its size; in sectors; that it has extents; where its extent begins.
    let sectors = blocks * (BLOCK_BYTES / 512);
    part.u32s(&[
        (0x04, blocks * BLOCK_BYTES),
        (0x1C, sectors),
        (0x20, 0x8_0000),
        (0x28 + 20, first_block),
    ]);
    part
}

/// A directory of directories.
fn directory(entries: &[(u32, &str)]) -> Part {
    let mut part = Part::of(BLOCK_BYTES);
    let mut at = 0_usize;
    for (number, (inode, name)) in entries.iter().enumerate() {
        let is_last = number + 1 == entries.len();
        let length = if is_last { part.0.len() - at } else { (8 + name.len()).next_multiple_of(4) };
        part.u32s(&[(at, *inode)]);
        part.u16s(&[(at + 4, u16::try_from(length).unwrap_or(0))]);
        part.set(at + 6, &[u8::try_from(name.len()).unwrap_or(0), 2]);
        part.set(at + 8, name.as_bytes());
        at += length;
    }
    part
}

/// The first block of an empty journal; its numbers have the other byte order.
fn journal() -> Part {
    let mut part = Part::of(1024);
    let fields = [
        (0x00, 0xC03B_3998_u32),
        // A superblock of the second version.
        (0x04, 4),
        (0x0C, BLOCK_BYTES),
        (0x10, JOURNAL_BLOCKS),
        // The first block for entries, and the number that they begin with.
        (0x14, 1),
        (0x18, 1),
        (0x40, 1),
    ];
    for (at, value) in fields {
        part.set(at, &value.to_be_bytes());
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn it_is_marked_as_what_it_is_and_the_rest_is_free() {
        let image = tempfile::NamedTempFile::new().unwrap();
        for bytes in [16 << 20, 64 << 20, LARGEST_BYTES] {
            image.as_file().set_len(0).unwrap();
            image.as_file().set_len(bytes).unwrap();
            write(image.as_file(), bytes).unwrap();
            let mut magic = [0; 2];
            image.as_file().read_exact_at(&mut magic, 1024 + 0x38).unwrap();
            assert_eq!(u16::from_le_bytes(magic), 0xEF53);
            let mut bits = [0; BLOCK_BYTES as usize];
            image.as_file().read_exact_at(&mut bits, u64::from(BLOCK_MAP * BLOCK_BYTES)).unwrap();
            let taken: u32 = bits.iter().map(|byte| byte.count_ones()).sum();
            let blocks = u32::try_from(bytes / 4096).unwrap();
            assert_eq!(BLOCKS_PER_GROUP - taken, blocks - FIRST_FREE);
            check(image.path());
        }
    }

    /// By the file system's own checker, where the machine has it.
    fn check(image: &std::path::Path) {
        let mut e2fsck = Command::new("/usr/sbin/e2fsck");
        let Ok(output) = e2fsck.args(["-f", "-n"]).arg(image).output() else { return };
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    }
}
