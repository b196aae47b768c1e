//! The configuration that the kernel was built with: /proc/config.gz or /boot/config-RELEASE.

use std::{fs::File, io::Read};

use flate2::read::GzDecoder;

use super::root::Root;

/// Far more than any configuration has.
const LIMIT: u64 = 4 << 20;

/// The first two numbers of the running kernel's release: 6 and 12 of `6.12.9-amd64`.
#[must_use]
pub fn release(root: &Root) -> Option<(u32, u32)> {
    let text = root.read("/proc/sys/kernel/osrelease")?;
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

/// Every option of the kernel, where its configuration can be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigOptions(Option<String>);

impl ConfigOptions {
    /// Reads it; empty where neither file is there.
    #[must_use]
    pub fn read(root: &Root) -> Self {
        let unpacked = || {
            let mut text = String::new();
            let packed = File::open(root.path("/proc/config.gz")).ok()?;
            GzDecoder::new(packed).take(LIMIT).read_to_string(&mut text).ok()?;
            Some(text)
        };
        let release = root.read("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self(unpacked().or_else(|| root.read(format!("/boot/config-{release}"))))
    }

    /// Whether the configuration is known at all.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        self.0.is_some()
    }

    /// The value of an option, named without `CONFIG_`; `None` if it is off or unknown.
    #[must_use]
    pub fn value(&self, option: &str) -> Option<&str> {
        let mut lines = self.0.as_deref()?.lines();
        lines.find_map(|line| line.strip_prefix("CONFIG_")?.strip_prefix(option)?.strip_prefix('='))
    }

    /// Whether an option is built in; `None` if the configuration is unknown.
    #[must_use]
    pub fn is_on(&self, option: &str) -> Option<bool> {
        self.is_known().then(|| self.value(option) == Some("y"))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    #[test]
    fn a_release_is_two_numbers_and_more() {
        let directory = tempfile::tempdir().unwrap();
        let kernel = directory.path().join("proc/sys/kernel");
        std::fs::create_dir_all(&kernel).unwrap();
        for (text, numbers) in [
            ("6.12.9-amd64", Some((6, 12))),
            ("6.6-rc1", Some((6, 6))),
            ("5.10.0-30-rt-amd64", Some((5, 10))),
            ("six", None),
        ] {
            std::fs::write(kernel.join("osrelease"), text).unwrap();
            assert_eq!(release(&Root::at(directory.path())), numbers, "{text}");
        }
    }

    const TEXT: &str = "# a comment\nCONFIG_HZ=250\nCONFIG_PREEMPT=y\n# CONFIG_KASAN is not set\n";

    fn assert_reads(config: &ConfigOptions) {
        assert_eq!(config.value("HZ"), Some("250"));
        assert_eq!(config.is_on("PREEMPT"), Some(true));
        assert_eq!((config.is_on("KASAN"), config.is_on("PREEMP")), (Some(false), Some(false)));
    }

    #[test]
    fn both_places_are_read_and_none_is_unknown() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        assert_eq!(ConfigOptions::read(&root).is_on("PREEMPT"), None);
        for folder in ["boot", "proc/sys/kernel"] {
            std::fs::create_dir_all(directory.path().join(folder)).unwrap();
        }
        std::fs::write(directory.path().join("proc/sys/kernel/osrelease"), "6.1.0\n").unwrap();
        std::fs::write(directory.path().join("boot/config-6.1.0"), TEXT).unwrap();
        assert_reads(&ConfigOptions::read(&root));
        std::fs::remove_file(directory.path().join("boot/config-6.1.0")).unwrap();
        let packed = File::create(directory.path().join("proc/config.gz")).unwrap();
        let mut packed = GzEncoder::new(packed, Compression::fast());
        packed.write_all(TEXT.as_bytes()).unwrap();
        packed.finish().unwrap();
        assert_reads(&ConfigOptions::read(&root));
    }
}
