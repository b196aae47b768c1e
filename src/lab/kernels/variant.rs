//! Boot variants of a kernel: words for its command line.

use anyhow::{Result, bail, ensure};

use crate::{analysis::kernel_config::KernelConfig, lab::guest::qemu};

/// What the lab says itself and a variant may change all the same: it says nothing about where the
/// output goes or how a guest ends.
const FREE: [&str; 1] = ["mitigations"];

/// What decides how a guest boots and ends, and is not among the lab's own words in each mode.
const KEPT: [&str; 8] =
    ["console", "init", "rdinit", "root", "panic", "nokaslr", "kaslr", "initrd"];

/// The preemption models that `preempt=` knows.
const MODELS: [&str; 4] = ["none", "voluntary", "full", "lazy"];

/// One word for a kernel's command line: `nosmt`, `preempt=full`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant(String);

impl Variant {
    /// Reads what stands behind a `+`.
    ///
    /// # Errors
    /// It is empty, has characters that the kernel would not take as one word, or is what the lab
    /// decides.
    pub fn parse(word: &str) -> Result<Self> {
        let name = name_of(word);
        ensure!(
            !name.is_empty(),
            "\"+{word}\": a word for the kernel's command line is missing, as in +preempt=full"
        );
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let is_plain = |c: char| is_name(c) || "=,:/@%".contains(c);
        if let Some(odd) =
            name.chars().find(|c| !is_name(*c)).or_else(|| word.chars().find(|c| !is_plain(*c)))
        {
            bail!(
                "\"+{word}\": {odd:?} is not possible there; letters, digits and -_.=,:/@% are, as \
                 in +maxcpus=1"
            );
        }
        let is_own = KEPT.contains(&name)
            || qemu::APPEND.split_whitespace().any(|own| name_of(own) == name)
                && !FREE.contains(&name);
        ensure!(
            !is_own,
            "\"+{word}\": {name} is what the lab itself tells every kernel; leave it out"
        );
        let model = word.strip_prefix("preempt=");
        if let Some(model) = model.filter(|model| !MODELS.contains(model)) {
            // The kernel would ignore it, and the result would look like an answer.
            bail!("\"+{word}\": no preemption model {model}; there are {}", MODELS.join(", "));
        }
        Ok(Self(word.to_owned()))
    }

    /// As the kernel reads it.
    #[must_use]
    pub fn word(&self) -> &str {
        &self.0
    }

    /// What the kernel would make of it, as far as its configuration tells.
    ///
    /// # Errors
    /// The kernel would ignore it.
    pub fn check(&self, release: &str, config: &KernelConfig) -> Result<()> {
        let Some(model) = self.0.strip_prefix("preempt=") else { return Ok(()) };
        ensure!(
            config.is_on("PREEMPT_DYNAMIC"),
            "+{}: {release} is built without CONFIG_PREEMPT_DYNAMIC and would ignore it; leave it \
             out, or take a kernel that has it (Debian's standard ones)",
            self.0
        );
        ensure!(
            model != "lazy" || config.is_on("ARCH_HAS_PREEMPT_LAZY"),
            "+{}: {release} does not know this model; it came with Linux 6.13",
            self.0
        );
        Ok(())
    }
}

fn name_of(word: &str) -> &str {
    word.split('=').next().unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(word: &str) -> String {
        Variant::parse(word).unwrap_err().to_string()
    }

    #[test]
    fn ordinary_words_pass_as_they_are() {
        for word in ["preempt=full", "maxcpus=1", "nosmt", "mitigations=auto", "isolcpus=domain,1"]
        {
            assert_eq!(Variant::parse(word).unwrap().word(), word);
        }
    }

    #[test]
    fn what_the_lab_decides_is_refused_by_name() {
        for word in
            ["console=tty0", "rdinit=/bin/sh", "panic=5", "nokaslr", "root=/dev/sda", "tsc=x"]
        {
            let error = error(word);
            assert!(error.contains(name_of(word)) && error.contains("the lab itself"), "{error}");
        }
    }

    #[test]
    fn what_is_no_word_is_refused_with_the_reason() {
        assert!(error("").contains("is missing"), "{}", error(""));
        assert!(error("=1").contains("is missing"), "{}", error("=1"));
        for word in ["a b", "a\"b", "x;y", "a=b$c", "a:b"] {
            assert!(error(word).contains("is not possible"), "{}", error(word));
        }
        assert!(error("preempt=ful").contains("none, voluntary, full, lazy"));
    }

    #[test]
    fn a_model_that_the_kernel_would_ignore_is_an_error() {
        let check = |config: &str| {
            let config = KernelConfig::parse(config);
            let variant = Variant::parse("preempt=full").unwrap();
            variant.check("6.1-x", &config).map_err(|error| error.to_string())
        };
        assert_eq!(check("CONFIG_PREEMPT_DYNAMIC=y\n"), Ok(()));
        assert!(check("CONFIG_PREEMPT_RT=y\n").unwrap_err().contains("6.1-x"));
        let lazy = Variant::parse("preempt=lazy").unwrap();
        let error = lazy.check("6.1-x", &KernelConfig::parse("CONFIG_PREEMPT_DYNAMIC=y\n"));
        assert!(error.unwrap_err().to_string().contains("6.13"));
        assert!(Variant::parse("nosmt").unwrap().check("x", &KernelConfig::default()).is_ok());
    }
}
