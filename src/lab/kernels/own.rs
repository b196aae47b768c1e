//! A kernel in a file of the user's own, with what lies beside it. The file is what the user has
//! named; its directory may be anybody's.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};

use super::{
    ELF, Kernel, LARGEST, LARGEST_CONFIG, bzimage,
    cache::{self, Cache},
    list, missing_feature,
};
use crate::{analysis::kernel_config::KernelConfig, lab::Notify, run::files};

/// A kernel in a file of the user's own. Only what is unpacked of it goes into the cache.
pub(super) fn image(
    file: &Path,
    modules: Option<&Path>,
    cache: &Path,
    notify: Notify,
) -> Result<Kernel> {
    let named = || format!("kernel {}", file.display());
    let about = fs::metadata(file).with_context(named)?;
    ensure!(about.is_file(), "{}: not a file; give the bzImage itself", named());
    ensure!(about.len() <= LARGEST, "{}: larger than any kernel", named());
    let image = file.canonicalize().with_context(named)?;
    let bytes = files::read(&image, LARGEST).with_context(named)?;
    let contents = bzimage::read(&bytes).with_context(named)?;
    let hash = cache::sha256(&image)?;
    let file_name = image.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let root = match (modules, contents.release.as_deref()) {
        (Some(modules), Some(release)) => Some(root_of(modules, release)?),
        (Some(_), None) => bail!("{}: modules= cannot be used: the file has no release", named()),
        (None, release) => release.and_then(|release| beside(&image, release)),
    };
    let release = contents.release.unwrap_or_default();
    let config = contents.config.unwrap_or_else(|| {
        let beside = image.with_file_name(format!("config-{release}"));
        let in_root = root.as_ref().map(|root| root.join(format!("boot/config-{release}")));
        let mut places = std::iter::once(beside).chain(in_root);
        places.find_map(|place| config_in(&place, notify)).unwrap_or_default()
    });
    let mut lacks = missing_feature::of_config(&config);
    if root.is_none() {
        lacks.push(missing_feature::no_module_files());
    }
    let boot = match contents.elf {
        // As it is: nothing to unpack.
        Ok(_) if bytes.starts_with(b"\x7fELF") => {
            let has_entry = bzimage::has_pvh(&bytes);
            ensure!(
                has_entry,
                "{}: this vmlinux cannot boot: no CONFIG_PVH; give its bzImage",
                named()
            );
            image.clone()
        }
        Ok(elf) => keep_elf(&elf, &hash, cache, notify)?,
        Err(why) => {
            lacks.push(missing_feature::no_elf(&format!("{why:#}")));
            image.clone()
        }
    };
    let name = if release.is_empty() { file_name } else { release };
    Ok(Kernel { name, image, boot, root, hash, config, lacks, ..Kernel::default() })
}

/// The configuration in a file; `None` if the file is missing. The directory may be anybody's: a
/// FIFO may have this name, or a link to a file that its owner cannot read.
fn config_in(file: &Path, notify: Notify) -> Option<KernelConfig> {
    match files::read(file, LARGEST_CONFIG) {
        Ok(text) => Some(KernelConfig::parse(&String::from_utf8_lossy(&text))),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(_) => {
            let (name, most) = (file.display(), LARGEST_CONFIG >> 20);
            notify(&format!("{name} is not used: it is not a readable file of {most} MiB at most"));
            None
        }
    }
}

/// Keeps what was unpacked of an image, by the image's checksum.
fn keep_elf(elf: &[u8], hash: &str, cache: &Path, notify: Notify) -> Result<PathBuf> {
    let cache = Cache::open(cache, notify)?;
    let place = cache.at(format!("{}{}", list::OWN, hash.get(..16).unwrap_or(hash)));
    if !cache::is_whole(&place) {
        cache.need(elf.len() as u64)?;
        let scratch = cache.scratch()?;
        let file = scratch.path().join(ELF);
        fs::write(&file, elf).with_context(|| format!("cannot write to {}", cache.room()))?;
        cache.settle(scratch, &[ELF.into()], &place)?;
    }
    Ok(place.join(ELF))
}

/// What has `lib/modules/RELEASE`: the directory itself, or one that is part of that path.
fn root_of(modules: &Path, release: &str) -> Result<PathBuf> {
    let given = modules.canonicalize();
    let given = given.with_context(|| format!("modules={}", modules.display()))?;
    let root = given.ancestors().take(4).find(|root| {
        let directory = root.join("lib/modules").join(release);
        directory.is_dir() && (directory.starts_with(&given) || given.starts_with(&directory))
    });
    let root = root.with_context(|| {
        format!(
            "modules={}: no lib/modules/{release} there; `make modules_install \
             INSTALL_MOD_PATH=DIR` makes it",
            modules.display()
        )
    })?;
    let list = root.join("lib/modules").join(release).join("modules.dep");
    ensure!(
        list.exists(),
        "modules={}: no {}; `depmod -b {} {release}` makes it",
        modules.display(),
        list.display(),
        root.display()
    );
    Ok(root.to_owned())
}

/// The modules of an installed kernel: `/lib/modules` beside its `/boot`.
fn beside(image: &Path, release: &str) -> Option<PathBuf> {
    let boot = image.parent().filter(|boot| boot.ends_with("boot"))?;
    let root = boot.parent()?;
    root.join("lib/modules").join(release).join("modules.dep").exists().then(|| root.to_owned())
}
