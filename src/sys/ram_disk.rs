//! A block device whose disk is memory: a loop device over a file without a name.
//!
//! The kernel removes it by itself once it is neither open nor mounted, however its users ended;
//! and the mount that is made here belongs to no directory and ends with its last descriptor. So
//! nothing is left after a kill, and no other process ever sees it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen,
};

/// Gives out free loop devices.
pub const CONTROL: &str = "/dev/loop-control";

/// Of `linux/loop.h`: find a free device; set one up; let it go with its last user.
const GET_FREE: libc::c_ulong = 0x4C82;
const CONFIGURE: libc::c_ulong = 0x4C0A;
const AUTOCLEAR: u32 = 4;

/// The number of attempts: between asking for a free device and taking it, others may take it
/// first.
const ATTEMPTS: usize = 20;

/// `struct loop_info64`.
#[repr(C)]
struct Info {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config`.
#[repr(C)]
struct Config {
    file: u32,
    block_size: u32,
    info: Info,
    reserved: [u64; 8],
}

const _: () = assert!(size_of::<Info>() == 232);
const _: () = assert!(size_of::<Config>() == 304);

/// A file in memory of that size, bytes; what is not written takes none. Its name is seen nowhere
/// but in `/proc` and `/sys`.
///
/// # Errors
/// Those of memfd and of setting its size.
pub fn memory(name: &str, bytes: u64) -> io::Result<File> {
    let file = File::from(memfd_create(name, MemfdFlags::CLOEXEC)?);
    file.set_len(bytes)?;
    Ok(file)
}

/// A disk that lives in memory.
#[derive(Debug)]
pub struct RamDisk {
    path: PathBuf,
    /// Keeps the device from being taken down.
    _device: File,
}

impl RamDisk {
    /// Makes what is in `memory` a disk with blocks of `block_bytes`.
    ///
    /// # Errors
    /// `NotFound` where the kernel has no loop devices, `PermissionDenied` without root, and what
    /// else the kernel says.
    pub fn make(memory: &File, block_bytes: u32) -> io::Result<Self> {
        let control = open(CONTROL.into())?;
        let mut result = Err(io::ErrorKind::ResourceBusy.into());
        for _ in 0..ATTEMPTS {
            // SAFETY: this call takes no argument and touches no memory of ours.
            let number = unsafe { libc::ioctl(control.as_raw_fd(), GET_FREE as _) };
            if number < 0 {
                return Err(io::Error::last_os_error());
            }
            result = Self::take(PathBuf::from(format!("/dev/loop{number}")), memory, block_bytes);
            let is_taken = |error: &io::Error| error.raw_os_error() == Some(libc::EBUSY);
            if !result.as_ref().is_err_and(is_taken) {
                break;
            }
        }
        result
    }

    fn take(path: PathBuf, memory: &File, block_bytes: u32) -> io::Result<Self> {
        let device = open(path.clone())?;
        let file = u32::try_from(memory.as_raw_fd()).map_err(io::Error::other)?;
        let config = config(file, block_bytes);
        // SAFETY: the kernel reads one `Config`, whose layout is asserted above, and keeps its own
        // reference to the file that it names.
        let failed = unsafe { libc::ioctl(device.as_raw_fd(), CONFIGURE as _, &raw const config) };
        if failed != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { path, _device: device })
    }

    /// Mounts the file system of that kind on it, in no directory: paths are relative to the
    /// descriptor. It is unmounted when the last copy of the descriptor is closed.
    ///
    /// # Errors
    /// `ENODEV` where the kernel does not know the kind, and what else it says.
    pub fn mount(&self, kind: &str) -> io::Result<OwnedFd> {
        let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_set_string(&context, "source", &self.path)?;
        fsconfig_create(&context)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOSUID;
        Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
    }
}

fn open(path: PathBuf) -> io::Result<File> {
    let opened = OpenOptions::new().read(true).write(true).open(&path);
    opened.map_err(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
        // The device file of a driver that is not loaded.
        Some(Errno::NODEV | Errno::NXIO) => io::ErrorKind::NotFound.into(),
        _ => error,
    })
}

fn config(file: u32, block_size: u32) -> Config {
    let info = Info {
        device: 0,
        inode: 0,
        rdevice: 0,
        offset: 0,
        size_limit: 0,
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags: AUTOCLEAR,
        file_name: [0; 64],
        crypt_name: [0; 64],
        encrypt_key: [0; 32],
        init: [0; 2],
    };
    Config { file, block_size, info, reserved: [0; 8] }
}
