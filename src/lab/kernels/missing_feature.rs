//! What a kernel lacks: known from its configuration before it is booted.

use serde::Serialize;

use crate::analysis::kernel_config::KernelConfig;

/// Something that a kernel lacks, and what follows from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingFeature {
    /// Stable name, explained in `docs/how-to/lab.md`.
    pub code: String,
    /// What is missing, and what follows.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
    /// Whether it cannot be run in the lab at all.
    pub is_fatal: bool,
}

/// Options without which a guest does not reach its first process, or its output is lost.
const NEEDED: [(&str, &str); 6] = [
    ("BLK_DEV_INITRD", "it cannot use an initial file system in memory"),
    ("SERIAL_8250_CONSOLE", "it cannot write to the serial port, so its output is lost"),
    ("BINFMT_ELF", "it cannot start programs"),
    ("PROC_FS", "it has no /proc"),
    ("SYSFS", "it has no /sys"),
    ("DEVTMPFS", "it has no /dev"),
];

/// Options that are useful, with code and consequence.
const USEFUL: [(&str, &str, &str); 3] = [
    ("DEBUG_INFO_BTF", "no_btf", "BPF programs cannot trace it"),
    ("HIGH_RES_TIMERS", "no_high_res_timers", "every wake-up waits for the next tick"),
    ("MODULES", "no_modules", "it can load no drivers"),
];

/// Options of kernels with debug checks, which slow down every step.
const CHECKING: [&str; 7] = [
    "PROVE_LOCKING",
    "LOCKDEP",
    "KASAN",
    "KCSAN",
    "DEBUG_PREEMPT",
    "DEBUG_ATOMIC_SLEEP",
    "DEBUG_OBJECTS",
];

fn lack(code: &str, what: String, remedy: &str) -> MissingFeature {
    MissingFeature { code: code.into(), what, remedy: remedy.into(), is_fatal: false }
}

/// Reads what is missing from the configuration.
#[must_use]
pub fn of_config(config: &KernelConfig) -> Vec<MissingFeature> {
    if config.is_empty() {
        let what = "its configuration is unknown, and so is what it lacks".to_owned();
        return vec![lack("no_config", what, "put config-RELEASE beside the kernel")];
    }
    let missing = NEEDED.iter().filter(|(option, _)| !config.is_on(option));
    let needed = missing.map(|(option, why)| {
        let what = format!("no CONFIG_{option}: {why}");
        let remedy = format!("build it with CONFIG_{option}=y");
        MissingFeature { is_fatal: true, ..lack("cannot_boot", what, &remedy) }
    });
    let missing = USEFUL.iter().filter(|(option, ..)| !config.is_on(option));
    let useful = missing.map(|(option, code, why)| {
        let remedy = format!("build it with CONFIG_{option}=y");
        lack(code, format!("no CONFIG_{option}: {why}"), &remedy)
    });
    let on: Vec<&str> = CHECKING.into_iter().filter(|option| config.is_on(option)).collect();
    let checking = (!on.is_empty()).then(|| {
        let what = format!("it checks itself (CONFIG_{}), which is slow", on.join(", CONFIG_"));
        lack("checks_itself", what, "compare kernels that are built alike")
    });
    needed.chain(useful).chain(checking).collect()
}

/// The ELF file to boot is missing; `why` says why.
#[must_use]
pub fn no_elf(why: &str) -> MissingFeature {
    let what = format!(
        "the kernel proper cannot be taken out of its bzImage ({why}): its boot code has random \
         numbers, so that two boots may differ"
    );
    lack("no_direct_boot", what, "pack it with gzip, xz or zstd, and build it with CONFIG_PVH=y")
}

/// It came without modules.
#[must_use]
pub fn no_module_files() -> MissingFeature {
    let what = "it came without modules: drivers that are not built in are missing".to_owned();
    lack("no_module_files", what, "give their directory: /path/to/bzImage,modules=DIR")
}

/// A module that a load needs, and that the kernel has neither as a file nor built in.
#[must_use]
pub fn no_module(name: &str) -> MissingFeature {
    let what = format!("no module {name}, neither as a file nor built in");
    lack("no_module", what, "leave out what needs it, or build the kernel with it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(text: &str) -> Vec<(String, bool)> {
        let lacks = of_config(&KernelConfig::parse(text));
        lacks.into_iter().map(|lack| (lack.code, lack.is_fatal)).collect()
    }

    fn complete() -> String {
        let needed = NEEDED.iter().map(|(option, _)| *option);
        let options = needed.chain(USEFUL.iter().map(|(option, ..)| *option));
        options.map(|option| format!("CONFIG_{option}=y\n")).collect()
    }

    #[test]
    fn an_ordinary_kernel_lacks_nothing() {
        assert_eq!(codes(&complete()), []);
    }

    #[test]
    fn each_missing_option_is_reported_and_some_are_fatal() {
        for (option, _) in NEEDED {
            let text = complete().replace(&format!("CONFIG_{option}=y"), "");
            assert_eq!(codes(&text), [("cannot_boot".to_owned(), true)], "{option}");
        }
        for (option, code, _) in USEFUL {
            let text = complete().replace(&format!("CONFIG_{option}=y"), "");
            assert_eq!(codes(&text), [(code.to_owned(), false)], "{option}");
        }
    }

    #[test]
    fn a_kernel_that_checks_itself_or_says_nothing_is_reported() {
        let text = complete() + "CONFIG_KASAN=y\nCONFIG_LOCKDEP=y\n";
        assert_eq!(codes(&text), [("checks_itself".to_owned(), false)]);
        assert_eq!(codes(""), [("no_config".to_owned(), false)]);
    }
}
