//! The smallest files that pass for kernels, for tests.

use object::elf;

use super::bzimage::{
    BOOT_FLAG, MAGIC, PAYLOAD, PAYLOAD_LENGTH, PROTOCOL, PVH_NOTE, PVH_OWNER, RELEASE,
    SETUP_SECTORS,
};

fn put(bytes: &mut Vec<u8>, at: usize, value: &[u8]) {
    bytes.resize(bytes.len().max(at + value.len()), 0);
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// The smallest ELF file that passes for a kernel, with or without the note.
pub(crate) fn elf(pvh: bool) -> Vec<u8> {
    // 64 bits, little endian, the current version.
    let mut bytes = [&elf::ELFMAG[..], &[2, 1, 1]].concat();
    put(&mut bytes, 0x12, &elf::EM_X86_64.0.to_le_bytes());
    put(&mut bytes, 0x20, &0x40_u64.to_le_bytes());
    put(&mut bytes, 0x36, &56_u16.to_le_bytes());
    put(&mut bytes, 0x38, &2_u16.to_le_bytes());
    // The second one has the notes, and the second note is it.
    let header = 0x40 + 56;
    put(&mut bytes, header, &elf::PT_NOTE.0.to_le_bytes());
    put(&mut bytes, header + 8, &0x100_u64.to_le_bytes());
    put(&mut bytes, header + 0x20, &40_u64.to_le_bytes());
    let kind = if pvh { PVH_NOTE.0 } else { 1 };
    for (at, kind) in [(0x100, 3_u32), (0x100 + 20, kind)] {
        put(&mut bytes, at, &4_u32.to_le_bytes());
        put(&mut bytes, at + 4, &4_u32.to_le_bytes());
        put(&mut bytes, at + 8, &kind.to_le_bytes());
        put(&mut bytes, at + 12, PVH_OWNER);
    }
    put(&mut bytes, 0x200, b"%s Linux version 7.8.9-made (somebody)");
    bytes
}

/// A bzImage with this in it.
pub(crate) fn image(payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 2048];
    bytes[SETUP_SECTORS] = 3;
    put(&mut bytes, BOOT_FLAG, &[0x55, 0xaa]);
    put(&mut bytes, MAGIC, b"HdrS");
    put(&mut bytes, PROTOCOL, &0x20f_u16.to_le_bytes());
    put(&mut bytes, RELEASE, &0x100_u16.to_le_bytes());
    put(&mut bytes, 0x300, b"1.2-x+ (somebody@somewhere) #1\0");
    put(&mut bytes, PAYLOAD, &16_u32.to_le_bytes());
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    put(&mut bytes, PAYLOAD_LENGTH, &length.to_le_bytes());
    put(&mut bytes, 2048 + 16, payload);
    bytes
}
