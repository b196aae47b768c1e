//! Folded stacks: a line a stack, as Brendan Gregg's flamegraph.pl, inferno and speedscope read it:
//! functions from the outermost to the innermost, with a `;` between them, and its weight.

use std::{collections::BTreeMap, io};

use crate::{
    plain::plain,
    report::profile::INTERRUPTS,
    run::profile::{CpuContext, KERNEL_MODULE, Profile},
};

/// The stacks of a profile; the outermost name is the task's, functions of the kernel end in
/// `_[k]`, and the number is the count of samples.
pub(super) fn write(profile: &Profile) -> io::Result<Vec<u8>> {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for row in &profile.rows {
        let task = match row.2 {
            CpuContext::Softirq | CpuContext::Hardirq => INTERRUPTS,
            _ => profile.tasks.get(row.1 as usize).map_or("", |task| &task.name),
        };
        let mut names = vec![if task.is_empty() { "[other]".into() } else { harmless(task) }];
        let mut stack: Vec<u32> = profile.stack(row.node()).collect();
        stack.reverse();
        names.extend(stack.into_iter().map(|frame| {
            let (name, module) = profile.frame(frame);
            let mark = if module == KERNEL_MODULE { "_[k]" } else { "" };
            harmless(name) + mark
        }));
        let count = lines.entry(names.join(";")).or_default();
        *count = count.saturating_add(row.4);
    }
    let line = |(stack, count)| format!("{stack} {count}\n");
    Ok(lines.into_iter().map(line).collect::<String>().into_bytes())
}

/// A name that is one name: a `;` would begin another.
fn harmless(name: &str) -> String {
    plain(name).replace(';', ":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::profile::tests::sampled;

    #[test]
    fn stacks_are_folded_from_the_outermost_function_on() {
        let text = String::from_utf8(write(&sampled()).unwrap()).unwrap();
        let expected = "[interrupts];net_rx_[k] 1\n\
                        burn;main 1\n\
                        burn;main;spin;spin 2\n\
                        swapper;do_idle_[k];halt_[k] 4\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_name_neither_divides_a_stack_nor_ends_its_line() {
        let mut profile = sampled();
        profile.functions[2] = "a;b\n9".into();
        let text = String::from_utf8(write(&profile).unwrap()).unwrap();
        assert!(text.contains("burn;a:b\\u{a}9 1\n"), "{text}");
        assert_eq!(text.lines().count(), 4);
    }
}
