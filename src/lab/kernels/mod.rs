//! The kernels: Debian's packages, downloaded and unpacked into a cache and never
//! installed, and files of the user's own.
//!
//! A package's directory in the cache holds `root` (what it would install), `vmlinux` (the kernel
//! proper, unpacked from its bzImage) and `sums`, the checksums of what boots. What lies there and
//! does not fit its checksums is made again.
//!
//! - [`source`], [`variant`]: a kernel's name as typed
//! - [`apt`]: Debian's packages; [`package`]: their names; the content of one, by dpkg, is in
//!   `archive`, and where its files are laid in `layout`
//! - `own`: a kernel in a file of the user's
//! - [`cache`]: what is on the disk, whole or not at all
//! - [`bzimage`]: the content of a kernel's file
//! - [`missing_feature`]: what a kernel lacks
//! - [`list`]: the content of the cache
//! - [`modules`]: what must be loaded into a kernel; [`mod@unpack`]: what it is packed with

pub(crate) use crate::limits::kernels::LARGEST_CONFIG;
use crate::limits::kernels::{LARGEST, LONGEST_RELEASE};

pub mod apt;
mod archive;
pub mod bzimage;
pub mod cache;
pub mod missing_feature;
mod layout;
pub mod list;
#[cfg(test)]
pub(crate) mod made;
pub mod modules;
mod own;
pub mod package;
pub mod source;
pub mod unpack;
pub mod variant;

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use self::{apt::Apt, cache::Cache, missing_feature::MissingFeature, variant::Variant};
use super::{Notify, program};
use crate::{analysis::kernel_config::KernelConfig, run::files};

pub use self::source::{Base, KernelSource};

/// The directory of the lab's cache that holds kernels.
pub const DIRECTORY: &str = "kernels";

/// The kernel proper, in a directory of the cache.
const ELF: &str = "vmlinux";

/// Or why it is not there.
const NO_ELF: &str = "no-vmlinux";

/// A kernel that can be booted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kernel {
    /// As it was asked for, with its variants: `standard+preempt=full`.
    pub asked: String,
    /// Its release (`6.1.0-56-amd64`), or the file's name where that is all there is.
    pub name: String,
    /// The compressed kernel; or a vmlinux, where that was given.
    pub image: PathBuf,
    /// What QEMU is given: the kernel proper, which boots faster and without random numbers; the
    /// image if that is not available (then there is a lack `no_direct_boot`).
    pub boot: PathBuf,
    /// What has `lib/modules` with its modules, where they came along.
    pub root: Option<PathBuf>,
    /// What the variants say, for its command line.
    pub append: String,
    /// SHA-256 of the image, hexadecimal.
    pub hash: String,
    /// Its configuration; empty if it is not known.
    pub config: KernelConfig,
    /// What it lacks.
    pub lacks: Vec<MissingFeature>,
}

impl Kernel {
    /// The preemption model that it will have, as far as its variants and configuration tell.
    #[must_use]
    pub fn preemption(&self) -> Option<&str> {
        let asked = self.append.split(' ').rev().find_map(|word| word.strip_prefix("preempt="));
        asked.or_else(|| self.config.preemption())
    }

    /// Whether it can be run in the lab at all.
    ///
    /// # Errors
    /// It lacks what nothing works without; what that is.
    pub fn check(&self) -> Result<()> {
        let fatal = self.lacks.iter().find(|lack| lack.is_fatal);
        match fatal {
            Some(lack) => bail!("kernel {}: {}; {}", self.name, lack.what, lack.remedy),
            None => Ok(()),
        }
    }
}

/// Makes the kernel ready in `cache`, fetching it if it is missing. Several callers may request the
/// same one at once: the second one waits, and finds it.
///
/// # Errors
/// A file that is not there or no kernel; a package that apt does not know, cannot be fetched, or
/// has no kernel; no room; a variant that the kernel would ignore; `host`, which is not booted.
pub fn get(source: &KernelSource, cache: &Path, notify: Notify) -> Result<Kernel> {
    // What needs no cache fails without one.
    let kernel = match &source.base {
        Base::Host => bail!("kernel host: the machine's own; it does not boot in a guest"),
        Base::Image { file, modules } => own::image(file, modules.as_deref(), cache, notify)?,
        Base::Deb(file) => deb(file, cache, notify)?,
        Base::Package { .. } => packaged(&source.base, cache, notify)?,
    };
    varied(kernel, source)
}

/// The kernel of a record, which may come from anywhere: a package that lies in `cache`, by the
/// checksum of its image. Nothing else is read, and nothing fetched, whatever it is called.
///
/// # Errors
/// A name that is not a package's; a kernel that does not exist.
pub fn known(asked: &str, hash: &str, cache: &Path) -> Result<Kernel> {
    let source = KernelSource::parse_foreign(asked)?;
    let kernel = list::with_hash(cache, hash).with_context(|| {
        format!(
            "kernel {asked}, as the run had it, is not in {}: give it with --kernel, or fetch it \
             first with `tardy lab kernels --fetch NAME`",
            cache.display()
        )
    })?;
    varied(kernel, &source)
}

/// The kernel with its variants.
fn varied(kernel: Kernel, source: &KernelSource) -> Result<Kernel> {
    for variant in source.variants.iter().filter(|_| !kernel.config.is_empty()) {
        variant.check(&kernel.name, &kernel.config)?;
    }
    let append = source.variants.iter().map(Variant::word).collect::<Vec<_>>().join(" ");
    Ok(Kernel { asked: source.asked.clone(), append, ..kernel })
}

/// A package in a file. By its checksum, too: who builds kernels gives many the same name.
fn deb(file: &Path, cache: &Path, notify: Notify) -> Result<Kernel> {
    let named = || format!("kernel {}", file.display());
    ensure!(file.is_file(), "{}: no such file", named());
    let hash = cache::sha256(file)?;
    let cache = Cache::open(cache, notify)?;
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let place = cache.at(format!("{stem}_{}", hash.get(..16).unwrap_or(&hash)));
    if !cache::is_whole(&place) {
        cache.need(archive::size_of(file)?)?;
        unpack(&[file.to_owned()], &place, &cache).with_context(named)?;
    }
    kernel_in(&place)
}

fn packaged(base: &Base, cache: &Path, notify: Notify) -> Result<Kernel> {
    let Base::Package { typed, pattern, suite } = base else { bail!("no package") };
    let cache = Cache::open(cache, notify)?;
    let last = cache.at(format!("last-{typed}"));
    let apt = || match suite {
        Some(suite) => Apt::of_suite(suite, &cache.at(format!("apt-{suite}")), notify),
        None => Apt::of_machine(),
    };
    let place = match apt().and_then(|apt| newest(&apt, pattern, &cache, notify)) {
        Ok(place) => place,
        Err(error) if cache::is_whole(&last) => {
            notify(&format!("{error:#}; continuing with the one fetched before"));
            return kernel_in(&last.canonicalize()?);
        }
        Err(error) => return Err(error.context(format!("kernel {typed}"))),
    };
    let _ = fs::remove_file(&last);
    // Relative: the cache may be moved.
    let name = place.file_name().unwrap_or_default();
    symlink(name, &last).with_context(|| format!("cannot link {}", last.display()))?;
    kernel_in(&place)
}

/// Where the kernel lies that apt would install, fetched where it was not there yet. apt's lists
/// may be empty or too old; where it fails, it tries again with new ones.
fn newest(apt: &Apt, pattern: &str, cache: &Cache, notify: Notify) -> Result<PathBuf> {
    let renewed = || -> Result<apt::Candidate> {
        apt.update()?;
        apt.find(pattern)
    };
    let mut found = apt.find(pattern).or_else(|_| renewed())?;
    let mut place = cache.at(found.directory());
    if cache::is_whole(&place) {
        return Ok(place);
    }
    cache.need(found.bytes)?;
    let scratch = cache.scratch()?;
    notify(&format!("fetching {} {}", found.kernel.package, found.kernel.version));
    let debs = match apt.download(&found, scratch.path()) {
        Ok(debs) => debs,
        Err(_) => {
            found = renewed()?;
            place = cache.at(found.directory());
            apt.download(&found, scratch.path())?
        }
    };
    if !cache::is_whole(&place) {
        let named = || format!("package {} {}", found.kernel.package, found.kernel.version);
        unpack(&debs, &place, cache).with_context(named)?;
    }
    Ok(place)
}

/// Unpacks the packages of a kernel, and the kernel in them, beside `place`, and moves it there
/// when it is whole.
fn unpack(debs: &[PathBuf], place: &Path, cache: &Cache) -> Result<()> {
    let scratch = cache.scratch()?;
    let root = scratch.path().join("root");
    for deb in debs {
        // Each by itself, so that none goes through a link of another.
        let part = scratch.path().join("part");
        archive::extract(deb, &part, cache, archive::LIMITS)?;
        package::keep_files(&part)?;
        let named = || format!("cannot put together the files of {}", deb.display());
        layout::merge(&part, &root).with_context(named)?;
    }
    layout::arrange(&root).context("cannot lay out the files of the package")?;
    let (release, image) = release_in(&root)?;
    let bytes = fs::read(&image).with_context(|| format!("cannot read {}", image.display()))?;
    let contents = bzimage::read(&bytes).with_context(|| format!("vmlinuz-{release}"))?;
    let (name, content) = match contents.elf {
        Ok(elf) => (ELF, elf),
        Err(why) => (NO_ELF, format!("{why:#}").into_bytes()),
    };
    let written = fs::write(scratch.path().join(name), content);
    written.with_context(|| format!("cannot write to {}", cache.room()))?;
    let mut files = vec![name.into(), Path::new("root/boot").join(format!("vmlinuz-{release}"))];
    let modules = Path::new("root/lib/modules").join(&release);
    if scratch.path().join(&modules).is_dir() {
        make_list(&root, &release)?;
        files.push(modules.join("modules.dep"));
    }
    let config = Path::new("root/boot").join(format!("config-{release}"));
    files.extend(scratch.path().join(&config).exists().then_some(config));
    cache.settle(scratch, &files, place)
}

/// Which modules need which; packages come without that.
fn make_list(root: &Path, release: &str) -> Result<()> {
    let depmod =
        program("depmod").context("which lists a kernel's modules; apt-get install kmod")?;
    package::run(Command::new(depmod).arg("-b").arg(root).args(["--", release]))?;
    Ok(())
}

/// The kernel in a directory of the cache.
fn kernel_in(place: &Path) -> Result<Kernel> {
    let root = place.join("root");
    let (name, image) = release_in(&root)?;
    let text = files::read(&root.join(format!("boot/config-{name}")), LARGEST_CONFIG);
    let config = KernelConfig::parse(&String::from_utf8_lossy(&text.unwrap_or_default()));
    let mut lacks = missing_feature::of_config(&config);
    let elf = place.join(ELF);
    let boot = if elf.exists() {
        elf
    } else {
        lacks.push(missing_feature::no_elf(
            &fs::read_to_string(place.join(NO_ELF)).unwrap_or_default(),
        ));
        image.clone()
    };
    let has_modules = root.join("lib/modules").join(&name).is_dir();
    if !has_modules {
        lacks.push(missing_feature::no_module_files());
    }
    let sums = cache::sums(place).unwrap_or_default();
    let own = sums.into_iter().find(|(_, file)| place.join(file) == image);
    let hash = own.map_or_else(|| cache::sha256(&image), |(sum, _)| Ok(sum))?;
    let root = has_modules.then_some(root);
    Ok(Kernel { name, image, boot, root, hash, config, lacks, ..Kernel::default() })
}

/// The release and the file of the one kernel below `root`.
fn release_in(root: &Path) -> Result<(String, PathBuf)> {
    let boot = root.join("boot");
    let none = || {
        "this package has no kernel in it (no /boot/vmlinuz-...); linux-image-... packages have \
         one, or depend on a linux-binary-... that has it"
    };
    let entries = fs::read_dir(&boot).with_context(none)?;
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(release) = name.strip_prefix("vmlinuz-") {
            ensure!(
                is_release(release),
                "boot/{name} of this package names no release of a kernel: that has letters, \
                 digits and -_.+~, and begins with a letter or digit"
            );
            // Not what a link leads to, which may have no end.
            let about = entry.metadata().with_context(none)?;
            ensure!(about.is_file(), "boot/{name} of this package is not a file");
            ensure!(about.len() <= LARGEST, "boot/{name} of this package: larger than any kernel");
            return Ok((release.to_owned(), entry.path()));
        }
    }
    bail!("{}", none())
}

/// It becomes part of paths, and an argument of programs.
fn is_release(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.+~".contains(c);
    text.len() <= LONGEST_RELEASE
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(is_plain)
}

#[cfg(test)]
mod tests;
