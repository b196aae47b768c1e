//! The configurations of kernels, and what differs between them: what matters to latency first.

use std::collections::BTreeMap;

/// Beginnings of the names of options that make wake-ups early or late. Those that matter most come
/// first; of options with the same beginning, the shorter name.
const LATENCY: [&str; 36] = [
    "PREEMPT",
    "HZ",
    "NO_HZ",
    "HIGH_RES_TIMERS",
    "RCU_",
    "TASKS_RCU",
    "SCHED_",
    "FAIR_GROUP_SCHED",
    "RT_GROUP_SCHED",
    "CGROUP_SCHED",
    "IRQ_FORCED_THREADING",
    "IRQ_TIME_ACCOUNTING",
    "VIRT_CPU_ACCOUNTING",
    "TICK_CPU_ACCOUNTING",
    "CPU_FREQ",
    "CPU_IDLE",
    "CPU_ISOLATION",
    "TRANSPARENT_HUGEPAGE",
    "NUMA_BALANCING",
    "LOCKDEP",
    "LOCK_STAT",
    "PROVE_",
    "DEBUG_",
    "KASAN",
    "KCSAN",
    "KFENCE",
    "UBSAN",
    "SLUB_DEBUG",
    "FTRACE",
    "FUNCTION_TRACER",
    "IRQSOFF_TRACER",
    "PREEMPT_TRACER",
    "HARDENED_",
    "INIT_ON_",
    "MITIGATION_",
    "PAGE_TABLE_ISOLATION",
];

/// Names that begin like those and say only how the kernel was built, or what it could have had.
const SILENT: [&str; 4] = ["DEBUG_INFO", "SCHED_OMIT_", "HZ_PERIODIC_", "DEBUG_FS"];

/// Options that are shown with their values; the others are counted.
const MOST_SHOWN: usize = 1_000;

/// A kernel's options, without `CONFIG_` before their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelConfig(BTreeMap<String, String>);

impl KernelConfig {
    /// Reads a `.config`: lines `CONFIG_NAME=VALUE`; what is not set is not there.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let option = |line: &str| {
            let (name, value) = line.trim().strip_prefix("CONFIG_")?.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        };
        Self(text.lines().filter_map(option).collect())
    }

    /// As a `.config` has it, in the order of names.
    #[must_use]
    pub fn text(&self) -> String {
        self.0.iter().map(|(name, value)| format!("CONFIG_{name}={value}\n")).collect()
    }

    /// Whether it has no option at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of an option (`y`, `m`, a number, a quoted text); none if it is not set.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Whether an option is built into the kernel.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name) == Some("y")
    }

    /// The preemption model that the kernel has unless its command line says another: `none`,
    /// `voluntary`, `full`, `lazy` or `rt`.
    #[must_use]
    pub fn preemption(&self) -> Option<&'static str> {
        let models = [
            ("PREEMPT_RT", "rt"),
            ("PREEMPT_RT_FULL", "rt"),
            ("PREEMPT_NONE", "none"),
            ("PREEMPT_VOLUNTARY", "voluntary"),
            ("PREEMPT", "full"),
            // Last: the real-time patches of 6.1 have an option of that name beside PREEMPT_RT.
            ("PREEMPT_LAZY", "lazy"),
        ];
        models.into_iter().find(|(option, _)| self.is_on(option)).map(|(_, model)| model)
    }
}

/// An option that is not the same in all kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionDifference {
    /// Its name, with `CONFIG_`.
    pub option: String,
    /// Its value in each kernel, in their order; none if it is not set.
    pub values: Vec<Option<String>>,
}

/// What differs between kernels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differences {
    /// The kernels, as they were named.
    pub kernels: Vec<String>,
    /// What matters to latency, most important first.
    pub latency: Vec<OptionDifference>,
    /// How many others differ: drivers, file systems, protocols.
    pub others: usize,
}

/// What differs between the configurations of these kernels (name, configuration). One that is
/// empty is unknown, and is left out.
#[must_use]
pub fn differences(kernels: &[(&str, &KernelConfig)]) -> Differences {
    let known: Vec<_> = kernels.iter().filter(|(_, config)| !config.is_empty()).collect();
    // The value of an option in the first kernel that has it, and how many have the same.
    let mut options: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
    for (name, value) in known.iter().flat_map(|(_, config)| &config.0) {
        let (first, same) = options.entry(name).or_insert((value.as_str(), 0));
        *same += usize::from(*first == value.as_str());
    }
    let differing = options.into_iter().filter(|(_, (_, same))| *same < known.len());
    let (mut latency, mut others) = (Vec::new(), 0);
    for (name, _) in differing {
        match rank(name) {
            Some(rank) => latency.push((rank, name.len(), name)),
            None => others += 1,
        }
    }
    latency.sort_unstable();
    others += latency.len().saturating_sub(MOST_SHOWN);
    latency.truncate(MOST_SHOWN);
    let difference = |(_, _, name): (usize, usize, &str)| OptionDifference {
        option: format!("CONFIG_{name}"),
        values: known.iter().map(|(_, config)| config.0.get(name).cloned()).collect(),
    };
    Differences {
        kernels: known.iter().map(|(name, _)| (*name).to_owned()).collect(),
        latency: latency.into_iter().map(difference).collect(),
        others,
    }
}

/// Where an option stands among those that matter; none where it does not matter.
fn rank(name: &str) -> Option<usize> {
    if SILENT.iter().any(|silent| name.starts_with(silent)) {
        return None;
    }
    LATENCY.iter().position(|begin| match name.strip_prefix(begin) {
        // A whole word: HZ and HZ_250, not HZ of another name.
        Some(rest) => rest.is_empty() || begin.ends_with('_') || rest.starts_with('_'),
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANDARD: &str = "# Linux/x86 6.1 Kernel Configuration\nCONFIG_PREEMPT_VOLUNTARY=y\n\
        # CONFIG_PREEMPT_RT is not set\nCONFIG_PREEMPT_DYNAMIC=y\nCONFIG_HZ=250\nCONFIG_SMP=y\n\
        CONFIG_CC_VERSION_TEXT=\"gcc = 12\"\nCONFIG_VETH=m\nCONFIG_DEBUG_INFO_BTF=y\n";
    const RT: &str = "CONFIG_PREEMPT_RT=y\nCONFIG_PREEMPT_LAZY=y\nCONFIG_HZ=1000\nCONFIG_SMP=y\n\
        CONFIG_CC_VERSION_TEXT=\"gcc = 13\"\n";

    fn config(text: &str) -> KernelConfig {
        KernelConfig::parse(text)
    }

    #[test]
    fn options_are_read_with_their_values_and_what_is_not_set_is_not_there() {
        let config = config(STANDARD);
        assert!(config.is_on("SMP") && !config.is_on("VETH") && !config.is_on("PREEMPT_RT"));
        assert_eq!(config.get("CC_VERSION_TEXT"), Some("\"gcc = 12\""));
        assert_eq!(config.get("PREEMPT_RT"), None);
        assert!(KernelConfig::parse("no configuration\n").is_empty());
        assert_eq!(KernelConfig::parse(&config.text()), config);
    }

    #[test]
    fn the_model_without_a_word_on_the_command_line_is_known() {
        for (text, model) in [
            (STANDARD, Some("voluntary")),
            (RT, Some("rt")),
            ("CONFIG_PREEMPT_NONE=y\n", Some("none")),
            ("CONFIG_PREEMPT=y\n", Some("full")),
            ("CONFIG_PREEMPT_LAZY=y\n", Some("lazy")),
            ("CONFIG_SMP=y\n", None),
        ] {
            assert_eq!(config(text).preemption(), model, "{text}");
        }
    }

    #[test]
    fn what_matters_comes_first_and_the_rest_is_counted() {
        let (standard, rt) = (config(STANDARD), config(RT));
        let found = differences(&[("standard", &standard), ("rt", &rt)]);
        let options: Vec<&str> = found.latency.iter().map(|one| one.option.as_str()).collect();
        let expected = [
            "CONFIG_PREEMPT_RT",
            "CONFIG_PREEMPT_LAZY",
            "CONFIG_PREEMPT_DYNAMIC",
            "CONFIG_PREEMPT_VOLUNTARY",
            "CONFIG_HZ",
        ];
        assert_eq!(options, expected);
        assert_eq!(found.latency[0].values, [None, Some("y".to_owned())]);
        assert_eq!(found.latency[4].values, [Some("250".to_owned()), Some("1000".to_owned())]);
        assert_eq!(found.others, 3, "the compiler, veth, BTF");
        assert_eq!(found.kernels, ["standard", "rt"]);
    }

    #[test]
    fn kernels_that_are_the_same_or_unknown_do_not_differ() {
        let (standard, unknown) = (config(STANDARD), KernelConfig::default());
        let found = differences(&[("a", &standard), ("b", &standard), ("c", &unknown)]);
        assert_eq!((found.latency.len(), found.others), (0, 0));
        assert_eq!(found.kernels, ["a", "b"]);
        assert_eq!(differences(&[]), Differences::default());
    }

    #[test]
    fn only_whole_words_of_a_name_count() {
        assert!(rank("PREEMPT").is_some() && rank("PREEMPT_RCU").is_some());
        assert!(rank("PREEMPTIRQ_DELAY_TEST").is_none() && rank("HZAP").is_none());
        assert!(rank("DEBUG_INFO_DWARF5").is_none() && rank("DEBUG_PREEMPT").is_some());
    }
}
