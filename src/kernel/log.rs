//! What libbpf prints, kept instead.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use libbpf_rs::{PrintLevel, set_print};

/// Lines kept; a refused program has a log of thousands, whose end says why.
const LINES: usize = 200;

static SAID: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

fn said() -> MutexGuard<'static, VecDeque<String>> {
    SAID.lock().unwrap_or_else(PoisonError::into_inner)
}

fn keep(_: PrintLevel, text: String) {
    add(&mut said(), &text);
}

fn add(said: &mut VecDeque<String>, text: &str) {
    for line in text.lines() {
        said.push_back(line.to_owned());
    }
    let surplus = said.len().saturating_sub(LINES);
    said.drain(..surplus);
}

/// From now on the loader's warnings are kept; what was kept before is forgotten.
pub(super) fn listen() {
    said().clear();
    set_print(Some((PrintLevel::Warn, keep)));
}

/// What was said since [`listen`].
pub(super) fn lines() -> Vec<String> {
    said().iter().cloned().collect()
}

/// The program that was refused, where libbpf names one.
pub(super) fn refused(lines: &[String]) -> Option<String> {
    lines.iter().rev().find_map(|line| {
        let (_, rest) = line.split_once("prog '")?;
        let (name, rest) = rest.split_once('\'')?;
        rest.contains("failed").then(|| name.to_owned())
    })
}

/// The last lines that carry a reason, in one line.
pub(super) fn reason(lines: &[String]) -> String {
    let noise = |line: &&String| {
        let line = line.trim();
        !line.is_empty()
            && !line.starts_with("processed ")
            && !line.contains("-- END PROG LOAD LOG")
            && !line.contains("failed to load object")
    };
    let mut last: Vec<&str> = lines.iter().rev().filter(noise).take(3).map(|l| l.trim()).collect();
    last.reverse();
    last.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> Vec<String> {
        let text = "libbpf: prog 'on_ipi_send_cpu': BPF program load failed: -EINVAL\n\
                    libbpf: prog 'on_ipi_send_cpu': -- BEGIN PROG LOAD LOG --\n\
                    R1 type=scalar expected=fp\n\
                    processed 12 insns (limit 1000000)\n\
                    -- END PROG LOAD LOG --\n\
                    libbpf: prog 'on_ipi_send_cpu': failed to load: -EINVAL\n\
                    libbpf: failed to load object 'tardy'";
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_refused_program_and_the_reason_are_found_in_the_loaders_words() {
        assert_eq!(refused(&log()).as_deref(), Some("on_ipi_send_cpu"));
        assert!(reason(&log()).contains("R1 type=scalar expected=fp"), "{}", reason(&log()));
        assert_eq!((refused(&[]), reason(&[])), (None, String::new()));
    }

    #[test]
    fn only_the_end_of_a_long_log_is_kept() {
        let mut said = VecDeque::new();
        add(&mut said, &("line\n".repeat(1000) + "last"));
        assert_eq!((said.len(), said.back().map(String::as_str)), (LINES, Some("last")));
    }
}
