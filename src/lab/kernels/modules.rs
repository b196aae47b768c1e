//! Kernel modules: their load order, from the kernel's own `modules.dep`, and their
//! content, unpacked.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use super::unpack;

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
        let list = directory.join("modules.dep");
        if !list.exists() {
            make_list(root, release)?;
        }
        let text =
            fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))?;
        let builtin = fs::read_to_string(directory.join("modules.builtin")).unwrap_or_default();
        let mut modules = Self::parse(&text, &builtin)?;
        modules.directory = directory;
        Ok(modules)
    }

    fn parse(dependencies: &str, builtin: &str) -> Result<Self> {
        let mut needs = BTreeMap::new();
        for (number, line) in dependencies.lines().enumerate() {
            let Some((file, rest)) = line.split_once(':') else {
                bail!("modules.dep, line {}: no colon after the module: \"{line}\"", number + 1);
            };
            let rest = rest.split_whitespace().map(str::to_owned).collect();
            needs.insert(name_of(file), (file.to_owned(), rest));
        }
        let builtin = builtin.lines().map(name_of).collect();
        Ok(Self { directory: PathBuf::new(), needs, builtin })
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
        Ok(order.into_iter().map(|file| self.directory.join(file)).collect())
    }
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
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    if unpack::packing(&bytes).is_none() {
        return Ok(bytes);
    }
    unpack::unpack(&bytes).with_context(|| format!("cannot unpack {}", file.display()))
}

#[cfg(test)]
mod tests {
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
