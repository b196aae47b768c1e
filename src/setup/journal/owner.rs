//! Who holds the machine changed: the first line of the journal.

use std::os::unix::fs::MetadataExt as _;

use serde::{Deserialize, Serialize};

use crate::sys::{root::Root, tasks};

/// Who holds the machine changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The boot in which it runs.
    pub boot_id: String,
    /// Its number, in its own PID namespace.
    pub pid: i32,
    /// Clock ticks from boot to its start: a number alone may be another process by now.
    pub start: u64,
    /// The number of its PID namespace; `None` if it was not known, and of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid_namespace: Option<u64>,
    /// What was typed.
    pub command: String,
}

impl Owner {
    /// `None` if the boot cannot be told from others.
    pub(super) fn this_process(root: &Root, command: &str) -> Option<Self> {
        let pid = own_pid();
        // Of itself, also where another tree stands for the machine.
        let start = tasks::start(&Root::default(), pid).unwrap_or(0);
        let (pid_namespace, command) = (own_namespace(), command.into());
        Some(Self { boot_id: boot_id(root)?, pid, start, pid_namespace, command })
    }

    /// Whether it is of the boot that continues; `None` if that is not known.
    pub(super) fn is_of_this_boot(&self, root: &Root) -> Option<bool> {
        Some(self.boot_id == boot_id(root)?)
    }

    /// Whether it is a process that can be seen from here. One of another PID namespace cannot, and
    /// may be alive.
    #[must_use]
    pub fn is_seen(&self) -> bool {
        tasks::start(&Root::default(), self.pid) == Some(self.start)
    }

    /// Whether it is this process, before it was replaced by another program (execve(2)).
    pub(super) fn is_this_process(&self) -> bool {
        self.pid == own_pid() && self.pid_namespace == own_namespace() && self.is_seen()
    }

    /// Whether it started this process, or started who did.
    #[must_use]
    pub fn is_ancestor(&self) -> bool {
        /// Parents are followed so far up.
        const GENERATIONS: usize = 64;
        let root = Root::default();
        let line = std::iter::successors(Some(own_pid()), |pid| tasks::parent(&root, *pid));
        let is_above = line.skip(1).take(GENERATIONS).any(|pid| pid == self.pid);
        is_above && self.pid_namespace == own_namespace() && self.is_seen()
    }

    /// Whether it is of the PID namespace of this process and cannot be seen: it was killed, and
    /// the kernel has not taken all of it away yet.
    pub(super) fn is_ending(&self) -> bool {
        self.pid_namespace.is_some() && self.pid_namespace == own_namespace() && !self.is_seen()
    }

    /// "process 7 (tardy shield 3)"
    #[must_use]
    pub fn words(&self) -> String {
        // Without /proc nothing can be seen, and nothing is said.
        let sees = tasks::start(&Root::default(), own_pid()).is_some();
        let space = match () {
            () if !sees || self.is_seen() => "",
            () if self.is_ending() => ", which is ending",
            () => " of another PID namespace",
        };
        format!("process {}{space} ({})", self.pid, self.command)
    }

    /// " (kill 7)", where that is the right process.
    #[must_use]
    pub fn how_to_end(&self) -> String {
        if self.is_seen() { format!(" (kill {})", self.pid) } else { String::new() }
    }
}

/// The number of this process's PID namespace; absent without /proc.
fn own_namespace() -> Option<u64> {
    std::fs::metadata("/proc/self/ns/pid").map(|about| about.ino()).ok()
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

fn boot_id(root: &Root) -> Option<String> {
    root.read("/proc/sys/kernel/random/boot_id").filter(|boot| !boot.is_empty())
}
