//! What is in a kernel's file: the header of a bzImage, the ELF file packed in it, and the
//! configuration that some have with them.
//!
//! Formats: "The Linux/x86 Boot Protocol" in the kernel's documentation, and the ELF note by which
//! a hypervisor finds the entry for PVH.

use anyhow::{Context, Result, bail, ensure};
use object::{
    LittleEndian, elf,
    read::elf::{FileHeader, ProgramHeader},
};

use super::{LARGEST_CONFIG, unpack};
use crate::analysis::kernel_config::KernelConfig;

/// Places in the header.
pub(super) const SETUP_SECTORS: usize = 0x1f1;
pub(super) const BOOT_FLAG: usize = 0x1fe;
pub(super) const MAGIC: usize = 0x202;
pub(super) const PROTOCOL: usize = 0x206;
pub(super) const RELEASE: usize = 0x20e;
pub(super) const PAYLOAD: usize = 0x248;
pub(super) const PAYLOAD_LENGTH: usize = 0x24c;

/// The protocol that has the payload in its header: Linux 2.6.26.
const WITH_PAYLOAD: u16 = 0x208;

/// 64 bits, little endian.
pub(super) type Elf = elf::FileHeader64<LittleEndian>;

/// The note with the address where PVH begins (`XEN_ELFNOTE_PHYS32_ENTRY`), and its owner.
pub(super) const PVH_NOTE: elf::NoteType = elf::NoteType(18);
pub(super) const PVH_OWNER: &[u8] = b"Xen";

/// A kernel's file, read.
#[derive(Debug)]
pub struct Contents {
    /// `6.1.0-56-amd64`, where the file contains it.
    pub release: Option<String>,
    /// The ELF file, where it could be unpacked.
    pub elf: Result<Vec<u8>>,
    /// What the kernel keeps of its configuration; most keep nothing.
    pub config: Option<KernelConfig>,
}

/// Takes a kernel's file apart.
///
/// # Errors
/// It is neither a bzImage nor an ELF file for x86-64; the error names what it is instead.
pub fn read(bytes: &[u8]) -> Result<Contents> {
    if bytes.starts_with(&elf::ELFMAG) {
        check_machine(bytes)?;
        let release = banner(bytes);
        return Ok(Contents { release, elf: Ok(bytes.to_vec()), config: kept_config(bytes) });
    }
    let is_image = bytes.get(BOOT_FLAG..BOOT_FLAG + 2) == Some(&[0x55, 0xaa])
        && bytes.get(MAGIC..MAGIC + 4) == Some(b"HdrS");
    if !is_image {
        bail!("not a bzImage: {}", instead(bytes));
    }
    let elf = payload(bytes).and_then(unpacked);
    let config = elf.as_ref().ok().and_then(|elf| kept_config(elf));
    Ok(Contents { release: release(bytes), elf, config })
}

/// The packed kernel in a bzImage.
fn payload(bytes: &[u8]) -> Result<&[u8]> {
    let protocol = u16_at(bytes, PROTOCOL).unwrap_or(0);
    ensure!(protocol >= WITH_PAYLOAD, "its boot protocol {protocol:#x} is too old");
    let sectors = match bytes.get(SETUP_SECTORS) {
        // The protocol's own rule.
        Some(0) | None => 4,
        Some(sectors) => usize::from(*sectors),
    };
    let offset = u32_at(bytes, PAYLOAD).unwrap_or(0) as usize;
    let length = u32_at(bytes, PAYLOAD_LENGTH).unwrap_or(0) as usize;
    let begin = (sectors + 1) * 512 + offset;
    bytes.get(begin..begin + length).filter(|payload| !payload.is_empty()).with_context(|| {
        format!(
            "the file is cut off: the kernel lies at {begin}..{}, and there are {} bytes",
            begin + length,
            bytes.len()
        )
    })
}

fn unpacked(payload: &[u8]) -> Result<Vec<u8>> {
    let elf =
        if payload.starts_with(&elf::ELFMAG) { payload.to_vec() } else { unpack::unpack(payload)? };
    ensure!(elf.starts_with(&elf::ELFMAG), "its payload is not an ELF file");
    check_machine(&elf)?;
    ensure!(has_pvh(&elf), "it has no entry for PVH (CONFIG_PVH)");
    Ok(elf)
}

fn check_machine(elf: &[u8]) -> Result<()> {
    let is_own = Elf::parse(elf).is_ok_and(|header| {
        header.is_little_endian() && header.e_machine(LittleEndian) == elf::EM_X86_64
    });
    ensure!(is_own, "an ELF file, but not for x86-64");
    Ok(())
}

/// What a file that is not a kernel is instead, in a few words.
fn instead(bytes: &[u8]) -> String {
    let begin = bytes.get(..bytes.len().min(512)).unwrap_or_default();
    let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    if bytes.is_empty() {
        return "the file is empty".into();
    }
    if let Some(packing) = unpack::packing(bytes) {
        return format!("the file is packed ({packing:?}); unpack it first").to_lowercase();
    }
    let known: [(&[u8], &str); 4] = [
        (b"MZ", "the file is a kernel or program for EFI, without the header of a bzImage"),
        (b"!<arch>\n", "the file is a package or an archive; a package ends in .deb"),
        (b"070701", "the file is a cpio archive (an initramfs?)"),
        (b"#!", "the file is a script"),
    ];
    let found = known.iter().find(|(magic, _)| bytes.starts_with(magic));
    match found {
        Some((_, what)) => (*what).into(),
        None if begin.iter().all(is_text) => "the file is text".into(),
        None => "the file has no kernel's header".into(),
    }
}

/// The first word of the version in the header.
fn release(bytes: &[u8]) -> Option<String> {
    let at = usize::from(u16_at(bytes, RELEASE).filter(|at| *at != 0)?) + 0x200;
    plain_word(bytes.get(at..)?)
}

/// The release in the first message of a booting kernel.
fn banner(elf: &[u8]) -> Option<String> {
    const BEGIN: &[u8] = b"Linux version ";
    let at = find(elf, BEGIN)? + BEGIN.len();
    plain_word(elf.get(at..)?)
}

/// It becomes part of paths.
fn plain_word(bytes: &[u8]) -> Option<String> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._+~".contains(byte);
    let length = bytes.iter().take(128).position(|byte| !is_plain(byte))?;
    let word = String::from_utf8(bytes.get(..length)?.to_vec()).ok()?;
    word.starts_with(|c: char| c.is_ascii_digit()).then_some(word)
}

/// Whether an ELF file says where PVH begins.
#[must_use]
pub fn has_pvh(elf: &[u8]) -> bool {
    let segments = Elf::parse(elf).and_then(|header| header.program_headers(LittleEndian, elf));
    let notes = |segment: &elf::ProgramHeader64<_>| segment.notes(LittleEndian, elf).ok().flatten();
    segments
        .unwrap_or_default()
        .iter()
        .filter_map(notes)
        .flatten()
        .flatten()
        .any(|note| note.n_type(LittleEndian) == PVH_NOTE && note.name() == PVH_OWNER)
}

/// The configuration between the two marks of CONFIG_IKCONFIG.
fn kept_config(elf: &[u8]) -> Option<KernelConfig> {
    const BEGIN: &[u8] = b"IKCFG_ST\x1f\x8b";
    let at = find(elf, BEGIN)? + BEGIN.len() - 2;
    let text = unpack::unpack_within(elf.get(at..)?, LARGEST_CONFIG).ok()?;
    let config = KernelConfig::parse(&String::from_utf8_lossy(&text));
    (!config.is_empty()).then_some(config)
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = *wanted.first()?;
    // By the first byte, which is rare: a kernel has tens of MiB.
    let mut at = 0;
    while let Some(step) = bytes.get(at..)?.iter().position(|byte| *byte == first) {
        at += step;
        if bytes[at..].starts_with(wanted) {
            return Some(at);
        }
        at += 1;
    }
    None
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::{
        super::made::{elf, image},
        *,
    };

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(content).unwrap();
        packer.finish().unwrap()
    }

    #[test]
    fn the_elf_file_in_an_image_is_found_packed_or_not() {
        let elf = elf(true);
        for payload in [elf.clone(), gzip(&elf), zstd::encode_all(&elf[..], 1).unwrap()] {
            let contents = read(&image(&payload)).unwrap();
            assert_eq!(contents.release.as_deref(), Some("1.2-x+"));
            assert_eq!(contents.elf.unwrap(), elf);
            assert_eq!(contents.config, None);
        }
    }

    #[test]
    fn a_vmlinux_is_taken_as_it_is() {
        let contents = read(&elf(true)).unwrap();
        assert_eq!(contents.release.as_deref(), Some("7.8.9-made"));
        assert!(has_pvh(&contents.elf.unwrap()) && !has_pvh(&elf(false)));
        let mut arm = elf(true);
        arm[0x12] = 183;
        assert!(read(&arm).unwrap_err().to_string().contains("not for x86-64"));
    }

    #[test]
    fn without_the_entry_or_the_packing_the_image_is_still_one() {
        let why = |payload: &[u8]| format!("{:#}", read(&image(payload)).unwrap().elf.unwrap_err());
        assert!(why(&gzip(&elf(false))).contains("CONFIG_PVH"));
        assert!(why(&gzip(b"no kernel")).contains("not an ELF file"));
        assert!(why(&[2, 0x21, 0x4c, 0x18, 0]).contains("none of gzip, xz and zstd"));
        let whole = image(&gzip(&elf(true)));
        let cut = read(&whole[..whole.len() - 1]).unwrap().elf.unwrap_err();
        assert!(format!("{cut:#}").contains("cut off"));
    }

    #[test]
    fn what_is_no_kernel_is_named() {
        for (bytes, what) in [
            (&b""[..], "is empty"),
            (b"once upon a time\n", "is text"),
            (b"#!/bin/sh\n", "is a script"),
            (b"MZ\0\0", "EFI"),
            (b"!<arch>\ndebian-binary", ".deb"),
            (b"\x1f\x8b\x08\0\0", "is packed (gzip)"),
            (&[0; 4096], "no kernel's header"),
        ] {
            let error = read(bytes).unwrap_err().to_string();
            assert!(error.starts_with("not a bzImage: ") && error.contains(what), "{error}");
        }
    }

    #[test]
    fn a_configuration_that_the_kernel_keeps_is_read() {
        let mut elf = elf(true);
        elf.extend(b"IKCFG_ST is a mark, too\0IKCFG_ST");
        elf.extend(gzip(b"CONFIG_SMP=y\nCONFIG_HZ=250\n"));
        elf.extend(b"IKCFG_ED");
        let config = read(&image(&gzip(&elf))).unwrap().config.unwrap();
        assert_eq!((config.is_on("SMP"), config.get("HZ")), (true, Some("250")));
    }

    #[test]
    fn a_configuration_that_grows_beyond_any_is_left_out() {
        let lines = LARGEST_CONFIG as usize / 11 + 2;
        let mut elf = elf(true);
        elf.extend(b"IKCFG_ST");
        elf.extend(gzip("CONFIG_A=y\n".repeat(lines).as_bytes()));
        let contents = read(&image(&gzip(&elf))).unwrap();
        assert!(contents.elf.is_ok() && contents.config.is_none());
    }

    #[test]
    fn nonsense_in_a_header_is_no_panic() {
        let base = image(&gzip(&elf(true)));
        for at in (0x1f1..0x250).chain(2048..2100) {
            for value in [0, 0x7f, 0xff] {
                let mut bytes = base.clone();
                bytes[at] = value;
                drop(read(&bytes));
            }
        }
        let base = elf(true);
        for at in 0..base.len() {
            let mut bytes = base.clone();
            bytes[at] = 0xff;
            let _ = has_pvh(&bytes);
            drop(read(&bytes[..at]));
        }
    }
}
