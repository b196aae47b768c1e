//! Reads a guest's console for messages of a kernel in trouble.

/// Why a guest cannot be trusted any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The kernel has stopped, or reports an internal error.
    Panic(String),
    /// A CPU or a task makes no progress.
    LockUp(String),
}

/// Messages of kernels, and whether they mean that a CPU or task is stuck.
const SIGNS: [(&str, bool); 13] = [
    ("Kernel panic", false),
    ("soft lockup", true),
    ("hard LOCKUP", true),
    ("workqueue lockup", true),
    ("blocked for more than", true),
    ("detected stall", true),
    ("self-detected stall", true),
    ("RCU grace-period kthread stack dump", true),
    ("Oops:", false),
    ("BUG:", false),
    ("kernel BUG at", false),
    ("general protection fault", false),
    ("Out of memory: Killed", false),
];

/// Lines so far; fed as they come.
#[derive(Debug, Default)]
pub struct Console {
    text: String,
    /// Up to where it was searched: whole lines.
    searched: usize,
    trouble: Option<Trouble>,
    /// Where its line begins.
    trouble_at: usize,
    /// The first, and how many.
    warnings: (Option<String>, u32),
}

/// Begins a line of a kernel that found something wrong and continues.
const WARNING: &str = "WARNING: CPU:";

impl Console {
    /// Takes what came since the last time.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.text.push_str(&String::from_utf8_lossy(bytes));
        let Some(end) = self.text.rfind('\n').map(|at| at + 1) else { return };
        // An end may lie in what was searched before.
        let lines = self.text.get(self.searched..end).unwrap_or_default();
        for line in lines.lines().filter(|line| has_words(line, WARNING)) {
            self.warnings.0.get_or_insert_with(|| without_time(line.trim()).to_owned());
            self.warnings.1 += 1;
        }
        if self.trouble.is_none() {
            let mut at = self.searched;
            for line in lines.split_inclusive('\n') {
                if let Some(trouble) = trouble_in(line) {
                    self.trouble = Some(trouble);
                    self.trouble_at = at;
                    break;
                }
                at += line.len();
            }
        }
        self.searched = self.searched.max(end);
    }

    /// The first trouble; what follows from it is only in the text.
    pub fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }

    /// How often the kernel warned, and of what first; nothing where it did not.
    #[must_use]
    pub fn warnings(&self) -> Option<(u32, &str)> {
        let (first, count) = &self.warnings;
        Some((*count, first.as_deref()?))
    }

    /// Whether anything was written at all.
    pub fn is_silent(&self) -> bool {
        self.text.is_empty()
    }

    /// The most useful lines, at most `count`: those from the first trouble on, or the last ones
    /// without any trouble.
    #[must_use]
    pub fn excerpt(&self, count: usize) -> String {
        if self.trouble.is_none() {
            return self.tail(count);
        }
        let lines = self.text.get(self.trouble_at..).unwrap_or_default().lines();
        lines.take(count).map(str::trim_end).collect::<Vec<_>>().join("\n")
    }

    /// The last lines, as many as `count`.
    pub fn tail(&self, count: usize) -> String {
        let lines: Vec<&str> = self.text.lines().map(str::trim_end).collect();
        lines[lines.len().saturating_sub(count)..].join("\n")
    }
}

fn trouble_in(line: &str) -> Option<Trouble> {
    let line = line.trim();
    let (_, is_stuck) = SIGNS.iter().find(|(sign, _)| has_words(line, sign))?;
    let make = if *is_stuck { Trouble::LockUp } else { Trouble::Panic };
    Some(make(without_time(line).to_owned()))
}

/// Whether `words` stand in the line, not as the end of a longer word: `DEBUG:` does not match
/// `BUG:`.
fn has_words(line: &str, words: &str) -> bool {
    let mut places = line.match_indices(words);
    places.any(|(at, _)| !line[..at].ends_with(char::is_alphanumeric))
}

/// The line without the kernel's time stamp: `[   12.345678] `.
fn without_time(line: &str) -> &str {
    let rest = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    let is_time = |text: &str| text.trim().chars().all(|c| c.is_ascii_digit() || c == '.');
    match rest {
        Some((time, rest)) if is_time(time) => rest,
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble(text: &str) -> Option<Trouble> {
        let mut console = Console::default();
        console.feed(text.as_bytes());
        console.trouble().cloned()
    }

    #[test]
    fn a_panic_is_seen_and_reported_without_its_time() {
        let text =
            "[    1.5] fine\r\n[    2.5] Kernel panic - not syncing: sysrq triggered crash\r\n";
        let expected = "Kernel panic - not syncing: sysrq triggered crash";
        assert_eq!(trouble(text), Some(Trouble::Panic(expected.into())));
    }

    #[test]
    fn each_way_of_being_stuck_is_a_lock_up() {
        for line in [
            "[   60.0] watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [tardy:77]",
            "[   60.0] watchdog: Watchdog detected hard LOCKUP on cpu 0",
            "[  240.0] INFO: task tardy:77 blocked for more than 120 seconds.",
            "[   60.0] rcu: INFO: rcu_preempt self-detected stall on CPU",
            "[   60.0] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
            "[   60.0] BUG: workqueue lockup - pool cpus=1 node=0 flags=0x0 nice=0",
        ] {
            assert!(matches!(trouble(&format!("{line}\n")), Some(Trouble::LockUp(_))), "{line}");
        }
    }

    #[test]
    fn a_broken_kernel_is_as_good_as_a_panic() {
        for line in [
            "BUG: unable to handle page fault for address: ffff",
            "BUG: kernel NULL pointer dereference, address: 0000000000000008",
            "BUG: scheduling while atomic: tardy/77/0x00000002",
            "kernel BUG at mm/slub.c:435!",
            "Oops: 0002 [#1] PREEMPT SMP PTI",
            "general protection fault, probably for non-canonical address 0x1: 0000 [#1]",
            "Out of memory: Killed process 77 (tardy)",
        ] {
            assert!(matches!(trouble(&format!("{line}\n")), Some(Trouble::Panic(_))), "{line}");
        }
    }

    #[test]
    fn the_first_trouble_counts_and_ordinary_lines_are_none() {
        let first = "BUG: unable to handle page fault";
        let text = format!("{first}\nKernel panic - not syncing: Fatal exception\n");
        assert_eq!(trouble(&text), Some(Trouble::Panic(first.into())));
        assert_eq!(trouble("debug: on\nDEBUG: x\nno oops here\ntest lockups ... ok\n"), None);
    }

    #[test]
    fn an_excerpt_begins_at_the_trouble_and_without_any_it_is_the_end() {
        let mut console = Console::default();
        console.feed(b"a\nb\nc\n");
        assert_eq!(console.excerpt(2), "b\nc");
        console.feed(b"d\n[ 1.0] Kernel panic - not syncing: x\r\ne\nf\ng\n");
        assert_eq!(console.excerpt(3), "[ 1.0] Kernel panic - not syncing: x\ne\nf");
    }

    #[test]
    fn warnings_are_counted_and_no_trouble() {
        let mut console = Console::default();
        assert_eq!(console.warnings(), None);
        console.feed(b"[ 1.0] WARNING: CPU: 0 PID: 1 at kernel/x.c:7 f+0x1/0x2\nx\n");
        let first = "WARNING: CPU: 0 PID: 1 at kernel/x.c:7 f+0x1/0x2";
        assert_eq!(console.warnings(), Some((1, first)));
        console.feed(b"WARNING: CPU: 0 again\n");
        assert_eq!(console.warnings(), Some((2, first)));
        assert_eq!(console.trouble(), None);
    }

    #[test]
    fn a_line_that_comes_in_pieces_is_seen_once_it_is_whole() {
        let mut console = Console::default();
        for piece in ["x\n[ 1.0] Kernel pa", "nic - not"] {
            console.feed(piece.as_bytes());
            assert_eq!(console.trouble(), None);
        }
        console.feed(b" syncing\nmore");
        assert_eq!(console.trouble(), Some(&Trouble::Panic("Kernel panic - not syncing".into())));
        assert_eq!(console.tail(2), "[ 1.0] Kernel panic - not syncing\nmore");
    }
}
