//! Files of the kernel that are opened by a path which was written down before, and is not believed
//! more than needed: no link is followed but the kernel's own, as sysfs has many, and what is
//! opened is of the file system that it should be of.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::fd::{AsFd, OwnedFd},
};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstatfs, openat, unlinkat};

use super::root::Root;

/// More than any file holds that is read here.
const LIMIT: u64 = 1 << 20;

const WRITTEN: OFlags = OFlags::WRONLY.union(OFlags::TRUNC);
const WITHIN: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A file system whose files are the kernel's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelFs {
    /// `/proc`
    Procfs,
    /// `/sys`
    Sysfs,
    /// `/sys/kernel/debug`
    Debugfs,
    /// `/sys/kernel/tracing`
    Tracefs,
    /// A hierarchy of cgroups, version 1 or 2.
    Cgroup,
}

impl KernelFs {
    fn of(file: impl AsFd) -> io::Result<Option<Self>> {
        Ok(match fstatfs(file)?.f_type {
            libc::PROC_SUPER_MAGIC => Some(Self::Procfs),
            libc::SYSFS_MAGIC => Some(Self::Sysfs),
            libc::DEBUGFS_MAGIC => Some(Self::Debugfs),
            libc::TRACEFS_MAGIC => Some(Self::Tracefs),
            libc::CGROUP_SUPER_MAGIC | libc::CGROUP2_SUPER_MAGIC => Some(Self::Cgroup),
            _ => None,
        })
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Procfs => "procfs",
            Self::Sysfs => "sysfs",
            Self::Debugfs => "debugfs",
            Self::Tracefs => "tracefs",
            Self::Cgroup => "a cgroup hierarchy",
        }
    }
}

/// Opens what the machine below `root` calls `path`. In a tree that stands for a machine no link is
/// followed, and its file system is not asked for.
///
/// # Errors
/// What the kernel says; `NotADirectory` or `ELOOP` for a link; a file of another file system.
fn open(root: &Root, path: &str, of: KernelFs, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mut directory = openat(CWD, root.path("/"), WITHIN, Mode::empty())?;
    let mut parts = path.split('/').filter(|part| !part.is_empty()).peekable();
    while let Some(part) = parts.next() {
        if part == "." || part == ".." {
            break;
        }
        if parts.peek().is_none() {
            let file = openat(&directory, part, flags, Mode::empty())?;
            if root.is_this_machine() && KernelFs::of(&file)? != Some(of) {
                return Err(io::Error::other(format!("it is not a file of {}", of.name())));
            }
            return Ok(file);
        }
        let is_kernels = root.is_this_machine() && KernelFs::of(&directory)?.is_some();
        let links = if is_kernels { OFlags::empty() } else { OFlags::NOFOLLOW };
        directory = openat(&directory, part, WITHIN | links, Mode::empty())?;
    }
    Err(io::Error::other("the path is not straight"))
}

/// The text of a setting without the white space at its end.
///
/// # Errors
/// It is not a readable file of this kernel file system, or its path contains links.
pub fn read(root: &Root, path: &str, of: KernelFs) -> io::Result<String> {
    text(open(root, path, of, OFlags::RDONLY)?)
}

/// Writes a setting that is there.
///
/// # Errors
/// As [`read`], or the kernel refuses the value.
pub fn write(root: &Root, path: &str, of: KernelFs, value: &str) -> io::Result<()> {
    File::from(open(root, path, of, WRITTEN)?).write_all(value.as_bytes())
}

fn text(file: OwnedFd) -> io::Result<String> {
    let mut text = String::new();
    File::from(file).take(LIMIT).read_to_string(&mut text)?;
    text.truncate(text.trim_end().len());
    Ok(text)
}

/// The directory of a cgroup, held open.
#[derive(Debug)]
pub struct CgroupDirectory(OwnedFd);

impl CgroupDirectory {
    /// Opens it.
    ///
    /// # Errors
    /// It is not a directory of a cgroup hierarchy, or its path contains links.
    pub fn open(root: &Root, path: &str) -> io::Result<Self> {
        open(root, path, KernelFs::Cgroup, WITHIN).map(Self)
    }

    /// As [`read()`], one of its files.
    ///
    /// # Errors
    /// As there.
    pub fn read(&self, name: &str) -> io::Result<String> {
        text(self.file(name, OFlags::RDONLY)?)
    }

    /// As [`write()`], one of its files.
    ///
    /// # Errors
    /// As there.
    pub fn write(&self, name: &str, value: &str) -> io::Result<()> {
        File::from(self.file(name, WRITTEN)?).write_all(value.as_bytes())
    }

    /// Removes the cgroup of this name in it.
    ///
    /// # Errors
    /// The kernel's error: it has tasks, or child cgroups.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    fn file(&self, name: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        Ok(openat(&self.0, name, flags, Mode::empty())?)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn a_setting_of_this_machine_is_read_through_the_kernels_own_links_alone() {
        let root = Root::default();
        let online = read(&root, "/sys/devices/system/cpu/online", KernelFs::Sysfs).unwrap();
        assert_eq!(Some(online), root.read("/sys/devices/system/cpu/online"));
        // `bus` has links into `devices`.
        let linked = "/sys/bus/cpu/devices/cpu0/topology/core_id";
        if root.path(linked).exists() {
            assert_eq!(read(&root, linked, KernelFs::Sysfs).ok(), root.read(linked));
        }
        let of_proc = read(&root, "/proc/sys/kernel/ostype", KernelFs::Procfs).unwrap();
        assert_eq!(of_proc, "Linux");
        let error = read(&root, "/proc/sys/kernel/ostype", KernelFs::Sysfs).unwrap_err();
        assert!(error.to_string().contains("not a file of sysfs"), "{error}");
    }

    #[test]
    fn what_is_no_file_of_the_kernel_or_behind_a_link_is_refused() {
        let root = Root::default();
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        fs::write(at("cpuset.cpus"), "0").unwrap();
        symlink("/sys/devices/system/cpu", at("cpu")).unwrap();
        symlink("/sys/devices/system/cpu/online", at("online")).unwrap();
        let error = read(&root, &at("cpuset.cpus"), KernelFs::Cgroup).unwrap_err();
        assert!(error.to_string().contains("not a file of a cgroup"), "{error}");
        for name in ["cpu/online", "online"] {
            assert!(root.path(at(name)).exists(), "it leads somewhere");
            read(&root, &at(name), KernelFs::Sysfs).unwrap_err();
        }
        for path in ["", "/", "/sys/../etc/passwd", "/sys/./kernel"] {
            read(&root, path, KernelFs::Sysfs).unwrap_err();
        }
        CgroupDirectory::open(&root, directory.path().to_str().unwrap()).unwrap_err();
    }

    #[test]
    fn in_a_tree_a_value_is_replaced_and_nothing_is_made() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        fs::create_dir(directory.path().join("group")).unwrap();
        fs::write(directory.path().join("group/tasks"), "longer\n").unwrap();
        write(&root, "/group/tasks", KernelFs::Cgroup, "1").unwrap();
        let group = CgroupDirectory::open(&root, "/group").unwrap();
        assert_eq!(group.read("tasks").unwrap(), "1");
        group.write("tasks", "2").unwrap();
        assert_eq!(read(&root, "/group/tasks", KernelFs::Cgroup).unwrap(), "2");
        assert_eq!(group.write("other", "2").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
