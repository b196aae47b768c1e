//! What packages would install, laid where the lab looks for it: `boot/vmlinuz-RELEASE`,
//! `boot/config-RELEASE`, `lib/modules/RELEASE`. Debian's packages of 6.12 in trixie have modules
//! in `usr/lib`; those of 7.2 in sid have all of it in `usr/lib/modules/RELEASE`.

use std::{fs, io, path::Path};

/// Moves what lies in `from` to the same places in `to`. No links may be left in either.
pub(super) fn merge(from: &Path, to: &Path) -> io::Result<()> {
    if !(from.is_dir() && to.is_dir()) {
        return fs::rename(from, to);
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        merge(&entry.path(), &to.join(entry.file_name()))?;
    }
    fs::remove_dir(from)
}

/// Lays out what lies in `root`.
pub(super) fn arrange(root: &Path) -> io::Result<()> {
    let (installed, modules) = (root.join("usr/lib/modules"), root.join("lib/modules"));
    if installed.is_dir() {
        fs::create_dir_all(root.join("lib"))?;
        merge(&installed, &modules)?;
    }
    if !modules.is_dir() {
        return Ok(());
    }
    let boot = root.join("boot");
    for entry in fs::read_dir(&modules)? {
        let entry = entry?;
        for name in ["vmlinuz", "config"] {
            let (file, release) = (entry.path().join(name), entry.file_name());
            let there = boot.join(format!("{name}-{}", release.to_string_lossy()));
            if file.is_file() && !there.exists() {
                fs::create_dir_all(&boot)?;
                fs::rename(file, there)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(root: &Path, names: &[&str]) {
        for name in names {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), name).unwrap();
        }
    }

    #[test]
    fn a_kernel_in_one_package_or_in_three_lies_in_the_same_places() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        files(&at("a"), &["usr/lib/modules/7.2-x/vmlinuz"]);
        files(&at("b"), &["usr/lib/modules/7.2-x/kernel/a.ko", "usr/share/doc/b"]);
        files(&at("c"), &["usr/lib/modules/7.2-x/config", "usr/share/doc/c"]);
        for part in ["a", "b", "c"] {
            merge(&at(part), &at("root")).unwrap();
            assert!(!at(part).exists());
        }
        arrange(&at("root")).unwrap();
        for name in ["boot/vmlinuz-7.2-x", "boot/config-7.2-x", "lib/modules/7.2-x/kernel/a.ko"] {
            assert!(at("root").join(name).is_file(), "{name}");
        }
        assert!(at("root/usr/share/doc/b").is_file() && at("root/usr/share/doc/c").is_file());
        files(&at("old"), &["boot/vmlinuz-6-y", "usr/lib/modules/6-y/kernel/a.ko"]);
        arrange(&at("old")).unwrap();
        assert!(at("old/boot/vmlinuz-6-y").is_file());
        assert!(at("old/lib/modules/6-y/kernel/a.ko").is_file());
    }
}
