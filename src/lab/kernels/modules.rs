//! Kernel modules: their load order, from the kernel's own `modules.dep`, and their
//! content, unpacked.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use super::unpack;
use crate::limits::kernels::{LARGEST_LIST, LARGEST_MODULE as LARGEST};
use crate::{plain::cut, run::files};

/// What ext4 requests by name at mount, when a guest has no program to load it. 7.2 has no such
/// module: its ext4 asks for none.
pub const CHECKSUM: &str = "crc32c_generic";

/// Characters of such a list that an error quotes.
const LONGEST_QUOTE: usize = 200;

/// What `modules.dep` of a kernel says, and where its modules lie.
#[derive(Debug, Default)]
pub struct Modules {
    directory: PathBuf,
    /// By name: the file, and the files it needs, all relative to the directory.
    needs: BTreeMap<String, (String, Vec<String>)>,
    /// Names of those that are part of the kernel itself.
    builtin: Vec<String>,
}

impl Modules {
    /// Reads the lists in `directory` (`lib/modules/RELEASE`); a package that comes without
    /// `modules.dep` gets it from `depmod`.
    pub fn read(root: &Path, release: &str) -> Result<Self> {
        let directory = root.join("lib/modules").join(release);
        let (list, builtin) = (directory.join("modules.dep"), directory.join("modules.builtin"));
        if !list.exists() {
            make_list(root, release)?;
        }
        let text = |list: &Path| {
            read(list, LARGEST_LIST).map(|text| String::from_utf8_lossy(&text).into_owned())
        };
        let list = text(&list)?;
        let builtin = if builtin.exists() { text(&builtin)? } else { String::new() };
        let mut modules = Self::parse(&list, &builtin)?;
        modules.directory = directory;
        Ok(modules)
    }

    /// Reads the texts of `modules.dep` and `modules.builtin`.
    ///
    /// # Errors
    /// A line that is invalid, or names a file that lies elsewhere.
    pub fn parse(dependencies: &str, builtin: &str) -> Result<Self> {
        let mut needs = BTreeMap::new();
        for (number, line) in dependencies.lines().enumerate() {
            let Some((file, rest)) = line.split_once(':') else {
                let line = cut(line, LONGEST_QUOTE);
                bail!("modules.dep, line {}: no colon after the module: \"{line}\"", number + 1);
            };
            let mut all = std::iter::once(file).chain(rest.split_whitespace());
            if let Some(outside) = all.find(|file| !is_below(Path::new(file))) {
                let outside = cut(outside, LONGEST_QUOTE);
                bail!("modules.dep, line {}: {outside} leads out of its directory", number + 1);
            }
            let rest = rest.split_whitespace().map(str::to_owned).collect();
            needs.insert(name_of(file), (file.to_owned(), rest));
        }
        let builtin = builtin.lines().map(name_of).collect();
        Ok(Self { directory: PathBuf::new(), needs, builtin })
    }

    /// Where a module lies. A link may lead to the modules of another kernel beside this one, as
    /// some distributions have it, and nowhere else.
    fn file(&self, file: &str) -> Result<PathBuf> {
        let path = self.directory.join(file);
        let Ok(real) = path.canonicalize() else { return Ok(path) };
        let all = self.directory.parent().and_then(|all| all.canonicalize().ok());
        let is_inside = all.is_some_and(|all| real.starts_with(all));
        ensure!(is_inside, "{} is a link that leads to {}", path.display(), real.display());
        Ok(path)
    }

    /// Whether the kernel has a module of this name, as a file or built in.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let name = name_of(name);
        self.builtin.contains(&name) || self.needs.contains_key(&name)
    }

    /// The files to load for `wanted`, each once and after those that it needs. What the kernel has
    /// built in needs no file.
    pub fn closure(&self, wanted: &[&str]) -> Result<Vec<PathBuf>> {
        let mut order: Vec<String> = Vec::new();
        for name in wanted {
            let name = name_of(name);
            if self.builtin.contains(&name) {
                continue;
            }
            let Some((file, needs)) = self.needs.get(&name) else {
                bail!("this kernel has no module {name}, neither in modules.dep nor built in");
            };
            // modules.dep lists all that a module needs, the deepest last.
            for file in needs.iter().rev().chain([file]) {
                if !order.contains(file) {
                    order.push(file.clone());
                }
            }
        }
        order.into_iter().map(|file| self.file(&file)).collect()
    }
}

/// Whether a path stays below the directory that it is relative to.
fn is_below(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_)))
}

/// `kernel/net/veth.ko.xz` is `veth`; the kernel takes `-` and `_` for the same.
fn name_of(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.split(".ko").next().unwrap_or(name).replace('-', "_")
}

fn make_list(root: &Path, release: &str) -> Result<()> {
    let mut command = Command::new(crate::lab::program("depmod")?);
    let output = command.arg("-b").arg(root).arg(release).output().context("cannot run depmod")?;
    ensure!(
        output.status.success(),
        "depmod fails on {}: {}",
        root.display(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}

/// A module's content, ready for `finit_module` of any kernel.
///
/// # Errors
/// It cannot be read, or what it is packed with is damaged.
pub fn content(file: &Path) -> Result<Vec<u8>> {
    let bytes = read(file, LARGEST)?;
    if unpack::packing(&bytes).is_none() {
        return Ok(bytes);
    }
    unpack::unpack(&bytes).with_context(|| format!("cannot unpack {}", file.display()))
}

/// A file of at most `most` bytes; the path to it may contain links.
fn read(file: &Path, most: u64) -> Result<Vec<u8>> {
    let bytes = file.canonicalize().and_then(|real| files::read(&real, most));
    bytes.with_context(|| format!("cannot read {}", file.display()))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    const DEPENDENCIES: &str = "\
kernel/drivers/net/veth.ko:
kernel/drivers/virtio/virtio_pci.ko: kernel/drivers/virtio/virtio_pci_modern_dev.ko \
kernel/drivers/virtio/virtio.ko kernel/drivers/virtio/virtio_ring.ko
kernel/drivers/virtio/virtio.ko: kernel/drivers/virtio/virtio_ring.ko
kernel/drivers/virtio/virtio_ring.ko:
kernel/fs/nls/nls-ascii.ko.xz:
";

    fn closure(wanted: &[&str]) -> Vec<String> {
        let modules = Modules::parse(DEPENDENCIES, "kernel/lib/crc32.ko\n").unwrap();
        let files = modules.closure(wanted).unwrap();
        files.iter().map(|file| name_of(file.to_str().unwrap())).collect()
    }

    #[test]
    fn what_is_needed_comes_first_and_once() {
        let pci = ["virtio_ring", "virtio", "virtio_pci_modern_dev", "virtio_pci"];
        assert_eq!(closure(&["virtio_pci"]), pci);
        let both = [&["virtio_ring", "virtio"], &pci[2..], &["veth"]].concat();
        assert_eq!(closure(&["virtio", "virtio_pci", "veth", "veth"]), both);
    }

    #[test]
    fn a_name_may_be_written_either_way_and_what_is_built_in_has_no_file() {
        assert_eq!(closure(&["nls_ascii", "crc32"]), ["nls_ascii"]);
        assert_eq!(closure(&["nls-ascii"]), ["nls_ascii"]);
        let modules = Modules::parse(DEPENDENCIES, "kernel/lib/crc32.ko\n").unwrap();
        assert!(modules.has("nls-ascii") && modules.has("crc32") && !modules.has(CHECKSUM));
    }

    #[test]
    fn what_the_kernel_has_not_is_named() {
        let modules = Modules::parse(DEPENDENCIES, "").unwrap();
        let error = modules.closure(&["veth", "crc32"]).unwrap_err().to_string();
        assert!(error.contains("no module crc32"), "{error}");
        let error = Modules::parse("kernel/a.ko\n", "").unwrap_err().to_string();
        assert!(error.contains("line 1"), "{error}");
    }

    #[test]
    fn a_list_or_a_link_that_leads_out_of_its_directory_is_refused() {
        for list in ["../../etc/shadow:\n", "/etc/shadow:\n", "a.ko: ../b.ko\n"] {
            let error = Modules::parse(list, "").unwrap_err().to_string();
            assert!(error.contains("line 1") && error.contains("leads out of"), "{error}");
        }
        let directory = tempfile::tempdir().unwrap();
        let own = directory.path().join("lib/modules/1.2-x");
        let other = directory.path().join("lib/modules/1.1-x");
        [&own, &other].into_iter().for_each(|place| fs::create_dir_all(place).unwrap());
        fs::write(own.join("modules.dep"), "a.ko:\nb.ko:\nc.ko:\n").unwrap();
        fs::write(other.join("b.ko"), b"module").unwrap();
        fs::write(directory.path().join("secret"), b"secret").unwrap();
        std::os::unix::fs::symlink("../1.1-x/b.ko", own.join("b.ko")).unwrap();
        std::os::unix::fs::symlink("../../../secret", own.join("a.ko")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", own.join("c.ko")).unwrap();
        let modules = Modules::read(directory.path(), "1.2-x").unwrap();
        assert_eq!(content(&modules.closure(&["b"]).unwrap()[0]).unwrap(), b"module");
        for name in ["a", "c"] {
            let error = modules.closure(&[name]).unwrap_err().to_string();
            assert!(error.contains("is a link that leads to"), "{error}");
        }
        assert!(content(&own.join("c.ko")).is_err(), "a device has no end");
    }

    #[test]
    fn a_list_without_an_end_is_refused_by_its_name() {
        for (list, other) in
            [("modules.dep", "modules.builtin"), ("modules.builtin", "modules.dep")]
        {
            let directory = tempfile::tempdir().unwrap();
            let own = directory.path().join("lib/modules/1.2-x");
            fs::create_dir_all(&own).unwrap();
            fs::write(own.join(other), "").unwrap();
            // Lines, so that only its size is wrong; the rest is a hole, which takes no room.
            fs::write(own.join(list), "a.ko:\n").unwrap();
            Modules::read(directory.path(), "1.2-x").unwrap();
            let file = File::options().append(true).open(own.join(list)).unwrap();
            file.set_len(LARGEST_LIST + 1).unwrap();
            let error = format!("{:#}", Modules::read(directory.path(), "1.2-x").unwrap_err());
            assert!(error.contains(list) && error.contains("larger than 64 MiB"), "{error}");
        }
    }

    #[test]
    fn a_plain_module_is_as_it_lies_there_and_a_packed_one_is_unpacked() {
        let directory = tempfile::tempdir().unwrap();
        let plain = directory.path().join("a.ko");
        fs::write(&plain, b"module").unwrap();
        assert_eq!(content(&plain).unwrap(), b"module");
        let packed = Command::new("gzip").arg("-k").arg(&plain).status().unwrap();
        assert!(packed.success());
        assert_eq!(content(&directory.path().join("a.ko.gz")).unwrap(), b"module");
    }
}
