//! Watches a guest by what it writes to its ports, and tells when and why it must end.

use std::{
    fs::File,
    io::Read,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Result;

use super::console::{Console, Trouble};

/// The files that a guest writes to.
pub(super) const PORTS: [&str; 3] = ["console", "output", "files"];

/// What a guest may write to each of its ports, bytes: what it prints is kept in memory, and of
/// what it hands out more than its memory would be no run.
pub(super) const MOST: [usize; 3] = [64 << 20, 64 << 20, 1 << 30];

/// How long a guest in trouble may continue to print.
const GRACE: Duration = Duration::from_secs(2);

/// How long a guest is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How long it may take in all.
    pub limit: Duration,
    /// How long it may be silent.
    pub stall: Duration,
    /// How long its first process may take to send its hello.
    pub hello: Duration,
}

impl Patience {
    /// For a guest that may be silent, and take to come up, for as long as it may take in all.
    #[must_use]
    pub const fn in_all(limit: Duration) -> Self {
        Self { limit, stall: limit, hello: limit }
    }
}

/// How a guest ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuestEnd {
    /// It powered off.
    Off,
    /// Its kernel reported trouble.
    Trouble(Trouble),
    /// It was silent for so long.
    Silent(Duration),
    /// It took longer than it may.
    TimeUp(Duration),
    /// Its first process has not sent its hello in this time.
    NoHello(Duration),
    /// The caller stopped it.
    Stopped,
    /// It wrote more than any run does to this port.
    TooMuch {
        /// `console`, `output` or `files`.
        port: &'static str,
        /// How much it may, bytes.
        most: usize,
    },
    /// QEMU itself failed.
    Failed(String),
}

impl GuestEnd {
    /// Whether nobody knows what it was doing.
    pub const fn is_hang(&self) -> bool {
        matches!(self, Self::Silent(_) | Self::TimeUp(_) | Self::NoHello(_))
    }

    /// In words; nothing where all is well.
    pub fn words(&self) -> Option<String> {
        Some(match self {
            Self::Off => return None,
            Self::Trouble(Trouble::Panic(line)) => format!("the kernel broke: {line}"),
            Self::Trouble(Trouble::LockUp(line)) => format!("the kernel is stuck: {line}"),
            Self::Silent(time) => format!("the guest hangs: silent for {} s", time.as_secs()),
            Self::TimeUp(time) => format!("the guest did not end within {} s", time.as_secs()),
            Self::NoHello(time) => format!(
                "the kernel did not start its first process in {} s: it hangs, or cannot use an \
                 initramfs (CONFIG_BLK_DEV_INITRD)",
                time.as_secs()
            ),
            Self::Stopped => "the guest was ended early".into(),
            Self::TooMuch { port, most } => {
                format!("the guest wrote more than {} MiB to its port \"{port}\"", most >> 20)
            }
            Self::Failed(why) => format!("QEMU failed: {why}"),
        })
    }
}

/// What is known of a guest while it runs.
pub(super) struct GuestMonitor {
    /// What the first port printed.
    pub(super) console: Console,
    /// Console, output, and what is handed out.
    files: [File; 3],
    /// Bytes that each has received.
    received: [usize; 3],
    patience: Patience,
    began: Instant,
    last_word: Instant,
    trouble_since: Option<Instant>,
}

impl GuestMonitor {
    /// Of a guest whose ports are files in this directory.
    pub(super) fn new(directory: &Path, patience: Patience) -> Result<Self> {
        let open = |name: &str| File::open(directory.join(name));
        let now = Instant::now();
        Ok(Self {
            console: Console::default(),
            files: [open(PORTS[0])?, open(PORTS[1])?, open(PORTS[2])?],
            received: [0; 3],
            patience,
            began: now,
            last_word: now,
            trouble_since: None,
        })
    }

    /// Reads what all ports have received since the last time; of each no more than it may hold.
    pub(super) fn poll(&mut self) -> Result<()> {
        let mut bytes = Vec::new();
        for (at, file) in self.files.iter_mut().enumerate() {
            let known = bytes.len();
            // One more than it may, which tells that it is more.
            let room = (MOST[at] + 1).saturating_sub(self.received[at]);
            file.take(room as u64).read_to_end(&mut bytes)?;
            self.received[at] += bytes.len() - known;
            // What goes to the other ports is read at the end; here it is a sign of life.
            if at == 0 {
                self.console.feed(&bytes);
            }
        }
        let now = Instant::now();
        if !bytes.is_empty() {
            self.last_word = now;
        }
        if self.console.trouble().is_some() {
            self.trouble_since.get_or_insert(now);
        }
        Ok(())
    }

    /// Whether the guest must end, and why; the caller evaluates an exit of QEMU alone.
    pub(super) fn verdict(&self, now: Instant, has_ended: bool) -> Option<GuestEnd> {
        if let (Some(trouble), Some(since)) = (self.console.trouble(), self.trouble_since) {
            let is_over = has_ended || now - since >= GRACE;
            return is_over.then(|| GuestEnd::Trouble(trouble.clone()));
        }
        if let Some(at) = (0..3).find(|at| self.received[*at] > MOST[*at]) {
            return Some(GuestEnd::TooMuch { port: PORTS[at], most: MOST[at] });
        }
        if has_ended {
            return None;
        }
        if self.received[2] == 0 && now - self.began >= self.patience.hello {
            return Some(GuestEnd::NoHello(self.patience.hello));
        }
        if now - self.began >= self.patience.limit {
            return Some(GuestEnd::TimeUp(self.patience.limit));
        }
        (now - self.last_word >= self.patience.stall)
            .then_some(GuestEnd::Silent(self.patience.stall))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::{super::transfer::HELLO, *};

    const SECOND: Duration = Duration::from_secs(1);

    fn monitor(directory: &Path) -> (GuestMonitor, [File; 3]) {
        let ports = PORTS.map(|name| File::create(directory.join(name)).unwrap());
        let patience = Patience { limit: SECOND * 60, stall: SECOND * 10, hello: SECOND * 20 };
        (GuestMonitor::new(directory, patience).unwrap(), ports)
    }

    #[test]
    fn a_panic_ends_the_watch_after_a_grace_or_with_the_guest() {
        let directory = tempfile::tempdir().unwrap();
        let (mut monitor, mut ports) = monitor(directory.path());
        ports[0].write_all(b"[ 1.0] Kernel panic - not syncing: x\n").unwrap();
        monitor.poll().unwrap();
        let now = Instant::now();
        let panic = GuestEnd::Trouble(Trouble::Panic("Kernel panic - not syncing: x".into()));
        assert_eq!(monitor.verdict(now, false), None, "the rest may come yet");
        assert_eq!(monitor.verdict(now, true).as_ref(), Some(&panic));
        assert_eq!(monitor.verdict(now + GRACE, false).as_ref(), Some(&panic));
        let words = panic.words().unwrap();
        assert_eq!(words, "the kernel broke: Kernel panic - not syncing: x");
    }

    #[test]
    fn silence_ends_the_watch_and_a_word_on_either_port_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let (mut monitor, mut ports) = monitor(directory.path());
        let began = monitor.began;
        assert_eq!(monitor.verdict(began + SECOND * 9, false), None);
        assert_eq!(
            monitor.verdict(began + SECOND * 11, false),
            Some(GuestEnd::Silent(SECOND * 10))
        );
        assert_eq!(monitor.verdict(began + SECOND * 11, true), None, "it has ended by itself");
        for port in &mut ports {
            monitor.last_word = began;
            port.write_all(b".").unwrap();
            monitor.poll().unwrap();
            assert!(monitor.last_word > began);
        }
    }

    #[test]
    fn a_guest_that_talks_for_ever_meets_the_limit() {
        let directory = tempfile::tempdir().unwrap();
        let (mut monitor, _ports) = monitor(directory.path());
        monitor.last_word = monitor.began + SECOND * 60;
        monitor.received[2] = HELLO.len();
        let late = monitor.began + SECOND * 60;
        assert_eq!(monitor.verdict(late, false), Some(GuestEnd::TimeUp(SECOND * 60)));
    }

    #[test]
    fn a_kernel_has_a_time_to_come_to_its_first_process() {
        let directory = tempfile::tempdir().unwrap();
        let (mut monitor, mut ports) = monitor(directory.path());
        monitor.last_word = monitor.began + SECOND * 20;
        let late = monitor.began + SECOND * 20;
        assert_eq!(monitor.verdict(late, false), Some(GuestEnd::NoHello(SECOND * 20)));
        ports[2].write_all(HELLO).unwrap();
        monitor.poll().unwrap();
        monitor.last_word = late;
        assert_eq!(monitor.verdict(late, false), None);
    }

    #[test]
    fn a_guest_that_writes_without_end_is_ended_and_fills_no_memory() {
        for (at, port) in PORTS.into_iter().enumerate() {
            let directory = tempfile::tempdir().unwrap();
            let (mut monitor, ports) = monitor(directory.path());
            monitor.received[2] = HELLO.len();
            ports[at].set_len(MOST[at] as u64 - HELLO.len() as u64).unwrap();
            monitor.received[at] = MOST[at] - 1;
            monitor.poll().unwrap();
            let now = monitor.began;
            let too_much = Some(GuestEnd::TooMuch { port, most: MOST[at] });
            assert_eq!(monitor.received[at], MOST[at] + 1, "no more is read");
            assert_eq!(monitor.verdict(now, false), too_much);
            assert_eq!(monitor.verdict(now, true), too_much, "also where it has ended by then");
            assert!(monitor.console.tail(9).len() < 9);
        }
        let words = GuestEnd::TooMuch { port: "console", most: MOST[0] }.words().unwrap();
        assert_eq!(words, "the guest wrote more than 64 MiB to its port \"console\"");
    }
}
