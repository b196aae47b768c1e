//! On what threads spent their own CPU time in cycles that missed their deadline, by samples.

use std::{cmp::Reverse, collections::BTreeMap};

use serde::{Deserialize, Serialize};

use crate::{
    plain::plain,
    report::{causes::words::percent, table::Table},
    run::{
        profile::{CpuContext, KERNEL_MODULE, Profile},
        series_name::name_of_task,
    },
    units::{count, many},
};

/// With fewer samples nothing is said of where they were.
const FEWEST_SAMPLES: u64 = 20;
/// The number of places in the sentence, none with less than this share.
const MOST_NAMED: usize = 5;
const LEAST_SHARE: f64 = 0.02;

/// What has no symbol in a profile.
const UNKNOWN: &str = "[unknown]";

/// What system calls of x86-64 and arm64 begin with in the kernel.
const SYSTEM_CALLS: [&str; 3] = ["__x64_sys_", "__ia32_sys_", "__arm64_sys_"];
/// Functions that only page faults go through: x86-64, arm64, and both.
const PAGE_FAULTS: [&str; 4] =
    ["exc_page_fault", "do_user_addr_fault", "do_page_fault", "handle_mm_fault"];

/// Where the threads of one name were in their late cycles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OwnTime {
    /// The threads.
    pub series: String,
    /// Samples taken while they worked in such a cycle.
    pub samples: u64,
    /// Where they were, those with the most samples first; empty with fewer than 20 samples, which
    /// say nothing.
    pub places: Vec<OwnTimePlace>,
}

/// A function of the program, or what the kernel did for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OwnTimePlace {
    /// `filter_block`, `system call write`, `page faults of fill_buffer`, `kernel`.
    pub name: String,
    /// Its samples.
    pub samples: u64,
    /// Its share of the samples, 0 to 1.
    pub share: f64,
}

/// Of each name, those with the most samples first; nothing without late cycles.
#[must_use]
pub fn own_time(profile: &Profile) -> Vec<OwnTime> {
    let mut sums: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for row in profile.late.iter().flat_map(|late| &late.rows) {
        let task = profile.tasks.get(row.1 as usize);
        let Some(task) = task.filter(|task| !task.name.is_empty()) else { continue };
        let places = sums.entry(name_of_task(task.name.as_bytes())).or_default();
        *places.entry(place(profile, row.2, row.node())).or_default() += row.4;
    }
    let of_name = |(series, places): (String, BTreeMap<String, u64>)| {
        let samples: u64 = places.values().sum();
        let share = |own: u64| own as f64 / samples.max(1) as f64;
        let mut places: Vec<OwnTimePlace> = places
            .into_iter()
            .map(|(name, own)| OwnTimePlace { name, samples: own, share: share(own) })
            .collect();
        places.sort_by_key(|place| Reverse(place.samples));
        places.retain(|_| samples >= FEWEST_SAMPLES);
        OwnTime { series, samples, places }
    };
    let mut found: Vec<OwnTime> = sums.into_iter().map(of_name).collect();
    found.sort_by_key(|own| Reverse(own.samples));
    found
}

/// The innermost function of the program; in the kernel what it was asked for.
fn place(profile: &Profile, context: CpuContext, node: Option<usize>) -> String {
    let frames = || profile.stack(node).map(|frame| profile.frame(frame));
    let in_program = || {
        let mut own = frames().filter(|(_, module)| *module != KERNEL_MODULE);
        own.next().map(|(name, module)| named(name, module))
    };
    if context == CpuContext::User {
        return in_program().unwrap_or_else(|| UNKNOWN.to_owned());
    }
    let in_kernel = || frames().filter(|(_, module)| *module == KERNEL_MODULE);
    if in_kernel().any(|(name, _)| PAGE_FAULTS.contains(&name)) {
        return match in_program() {
            Some(name) => format!("page faults of {name}"),
            None => "page faults".to_owned(),
        };
    }
    let call = in_kernel()
        .find_map(|(name, _)| SYSTEM_CALLS.iter().find_map(|prefix| name.strip_prefix(prefix)));
    call.map_or_else(|| "kernel".to_owned(), |call| format!("system call {call}"))
}

/// Code without a symbol has the name of its file, as `[vdso]` or `[libc.so.6]`.
fn named(name: &str, module: &str) -> String {
    let file = module.rsplit('/').next().unwrap_or_default().trim_matches(['[', ']']);
    match (name, file) {
        (UNKNOWN, "" | "unknown") => UNKNOWN.to_owned(),
        (UNKNOWN, file) => format!("[{file}]"),
        (name, _) => name.to_owned(),
    }
}

impl OwnTime {
    /// What it says, in one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Self { series, samples, places } = self;
        if places.is_empty() {
            return format!(
                "The CPU time of {series} in its late cycles was not sampled: {} of the \
                 {FEWEST_SAMPLES} that it takes. A longer run or a higher rate has more: \
                 --profile=997",
                many(*samples, "sample")
            );
        }
        let named = places.iter().filter(|place| place.share >= LEAST_SHARE).take(MOST_NAMED);
        let named: Vec<String> =
            named.map(|place| format!("{} {}", percent(place.share), place.name)).collect();
        format!(
            "The CPU time of {series} in its late cycles ({} samples): {}",
            count(*samples),
            named.join(", ")
        )
    }
}

/// A table for each name, of at most `most` places.
#[must_use]
pub fn own_time_text(found: &[OwnTime], most: usize) -> String {
    let mut out = String::new();
    for own in found {
        if own.places.is_empty() {
            out.push_str(&format!("{}\n\n", plain(&own.sentence())));
            continue;
        }
        let heading = format!("CPU time of {} in its late cycles", own.series);
        let mut table = Table::new(1, &[&heading, "share", "samples"]);
        for place in own.places.iter().take(most) {
            table.row(vec![place.name.clone(), percent(place.share), count(place.samples)]);
        }
        out.push_str(&format!("{}\n\n", table.lines().join("\n")));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::profile::{LateRows, ProfileRow, ProfiledTask};

    /// Context, stack with the innermost function first, each with its module, and samples.
    type MadeRow<'a> = (CpuContext, &'a [(&'a str, &'a str)], u64);

    /// A profile with these rows in late cycles.
    fn late(rows: &[MadeRow<'_>]) -> Profile {
        let mut profile = super::super::tests::sampled();
        (profile.functions, profile.modules) = (Vec::new(), Vec::new());
        (profile.frames, profile.nodes) = (Vec::new(), Vec::new());
        profile.tasks = vec![ProfiledTask { name: "ctl".into(), pid: 7, tid: 7 }];
        let mut found = Vec::new();
        for (context, stack, samples) in rows {
            let mut node = 0;
            for (function, module) in stack.iter().rev() {
                let number = u32::try_from(profile.frames.len()).unwrap();
                profile.functions.push((*function).into());
                profile.modules.push((*module).into());
                profile.frames.push((number, number));
                profile.nodes.push((node, number));
                node = u32::try_from(profile.nodes.len()).unwrap();
            }
            found.push(ProfileRow(0, 0, *context, node, *samples, *samples));
        }
        profile.late = Some(LateRows { cycles: 3, rows: found });
        profile
    }

    #[test]
    fn own_time_is_told_by_function_of_the_program_and_by_system_call() {
        let (kernel, ctl, libc) = (KERNEL_MODULE, "/usr/bin/ctl", "/usr/lib/libc.so.6");
        let fault = [("clear_page", kernel), ("handle_mm_fault", kernel), ("fill", ctl)];
        let write =
            [("copy", kernel), ("__x64_sys_write", kernel), ("write", libc), ("log_line", ctl)];
        let profile = late(&[
            (CpuContext::User, &[("filter", ctl), ("main", ctl)], 12),
            (CpuContext::User, &[("filter", ctl), ("other", ctl)], 12),
            (CpuContext::Kernel, &fault, 8),
            (CpuContext::Kernel, &write, 6),
            (CpuContext::Kernel, &[("ret_from_fork", kernel)], 2),
        ]);
        let found = own_time(&profile);
        let places: Vec<_> =
            found[0].places.iter().map(|place| (place.name.as_str(), place.samples)).collect();
        let wanted =
            [("filter", 24), ("page faults of fill", 8), ("system call write", 6), ("kernel", 2)];
        assert_eq!(places, wanted);
        assert_eq!(
            found[0].sentence(),
            "The CPU time of ctl in its late cycles (40 samples): 60% filter, 20% page faults of \
             fill, 15% system call write, 5.0% kernel"
        );
    }

    #[test]
    fn code_without_a_symbol_has_the_name_of_its_file() {
        let modules = [("[vdso]", "[vdso]"), ("/lib/libc.so.6", "[libc.so.6]"), (UNKNOWN, UNKNOWN)];
        for (module, wanted) in modules {
            let found = own_time(&late(&[(CpuContext::User, &[(UNKNOWN, module)], 20)]));
            assert_eq!(found[0].places[0].name, wanted);
        }
    }

    #[test]
    fn a_few_samples_say_nothing() {
        let own = |samples| own_time(&late(&[(CpuContext::User, &[("f", "/a")], samples)]));
        let few = own(19).remove(0);
        assert!(few.places.is_empty(), "{few:?}");
        assert!(few.sentence().contains("not sampled: 19 samples of the 20"), "{few:?}");
        assert_eq!(own(20)[0].places.len(), 1);
        assert_eq!(own_time(&super::super::tests::sampled()), []);
    }
}
