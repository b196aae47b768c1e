//! Unpacks compressed kernels and modules. One stream each; what follows it (a
//! kernel's payload ends with its length) is ignored.

use std::io::Read;

use crate::limits::kernels::LARGEST;
use anyhow::{Context, Result, bail, ensure};

/// How something is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// gzip
    Gzip,
    /// xz
    Xz,
    /// zstd
    Zstd,
}

/// How `bytes` are packed, by how they begin; none of these where it is something else.
#[must_use]
pub fn packing(bytes: &[u8]) -> Option<Packing> {
    let begins: [(&[u8], Packing); 3] = [
        (&[0x1f, 0x8b, 8], Packing::Gzip),
        (&[0xfd, b'7', b'z', b'X', b'Z', 0], Packing::Xz),
        (&[0x28, 0xb5, 0x2f, 0xfd], Packing::Zstd),
    ];
    begins.into_iter().find(|(begin, _)| bytes.starts_with(begin)).map(|(_, packing)| packing)
}

/// The content of the first stream.
///
/// # Errors
/// It is packed by something else, is damaged, or grows beyond 1 GiB.
pub fn unpack(bytes: &[u8]) -> Result<Vec<u8>> {
    unpack_within(bytes, LARGEST)
}

/// The same, of at most `most` bytes.
///
/// # Errors
/// It is packed by something else, is damaged, or grows beyond that.
pub fn unpack_within(bytes: &[u8], most: u64) -> Result<Vec<u8>> {
    match packing(bytes) {
        Some(Packing::Gzip) => all(flate2::bufread::GzDecoder::new(bytes), most).context("gzip"),
        Some(Packing::Xz) => all(liblzma::bufread::XzDecoder::new(bytes), most).context("xz"),
        Some(Packing::Zstd) => {
            all(zstd::Decoder::with_buffer(bytes)?.single_frame(), most).context("zstd")
        }
        None => bail!("packed with none of gzip, xz and zstd"),
    }
}

fn all(reader: impl Read, most: u64) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    reader.take(most + 1).read_to_end(&mut content).context("damaged or cut off")?;
    ensure!(content.len() as u64 <= most, "it grows beyond {} MiB", most >> 20);
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        process::{Command, Stdio},
    };

    use super::*;

    /// What the ordinary programs make of `content`.
    fn packed(program: &str, content: &[u8]) -> Vec<u8> {
        let mut command = Command::new(program);
        command.args(["-c", "-q"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(content).unwrap();
        child.wait_with_output().unwrap().stdout
    }

    #[test]
    fn what_each_program_packs_is_unpacked_whatever_follows() {
        let content: Vec<u8> = (0..30_000_u32).flat_map(u32::to_le_bytes).collect();
        for program in ["gzip", "xz", "zstd"] {
            let mut bytes = packed(program, &content);
            assert!(packing(&bytes).is_some(), "{program}");
            assert_eq!(unpack(&bytes).unwrap(), content, "{program}");
            bytes.extend([0x40, 0xd4, 1, 0]);
            assert_eq!(unpack(&bytes).unwrap(), content, "{program}, with a length behind it");
        }
    }

    #[test]
    fn what_is_cut_off_or_damaged_is_an_error_that_says_what_it_was() {
        let content: Vec<u8> = (0..30_000_u32).flat_map(u32::to_le_bytes).collect();
        for program in ["gzip", "xz", "zstd"] {
            let mut bytes = packed(program, &content);
            let half = format!("{:#}", unpack(&bytes[..bytes.len() / 2]).unwrap_err());
            assert!(half.starts_with(program), "{half}");
            // Its checksum, or what it is made of.
            let last = bytes.len() / 2;
            bytes[last..].iter_mut().for_each(|byte| *byte ^= 0x55);
            assert!(unpack(&bytes).is_err(), "{program}");
        }
        assert!(unpack(b"plain text").unwrap_err().to_string().contains("none of"));
    }
}
