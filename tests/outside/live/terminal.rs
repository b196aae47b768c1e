//! A terminal that a test makes: what a program shows on it, and how the program leaves it.

use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
    num::NonZero,
    os::{fd::AsFd as _, unix::fs::OpenOptionsExt as _, unix::process::CommandExt as _},
    path::PathBuf,
    process::{Child, Command},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::OFlags,
    process::{ioctl_tiocsctty, setsid},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    stdio::stdin,
    termios::{Winsize, tcgetattr, tcsetwinsize},
};
use vt100::Parser;

use super::super::support::{eventually, pause, signal};

/// The least that the view fits, and one with all columns; columns and lines.
pub(super) const SMALL: (u16, u16) = (80, 24);
pub(super) const LARGE: (u16, u16) = (160, 50);

/// What reads the terminal, and notes what it shows.
struct Reader {
    shown: Mutex<Parser>,
    reads: AtomicBool,
    /// It has noticed that it is not to read.
    rests: AtomicBool,
    is_over: AtomicBool,
}

/// A terminal.
pub(super) struct Terminal {
    keys: File,
    programs: File,
    path: PathBuf,
    before: String,
    reader: Arc<Reader>,
}

impl Terminal {
    pub(super) fn new(size: (u16, u16)) -> Self {
        let other = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&other).unwrap();
        unlockpt(&other).unwrap();
        let path: PathBuf = ptsname(&other, Vec::new()).unwrap().into_string().unwrap().into();
        let flags = OFlags::NOCTTY.bits().cast_signed();
        let programs =
            OpenOptions::new().read(true).write(true).custom_flags(flags).open(&path).unwrap();
        let reader = Arc::new(Reader {
            shown: Mutex::new(Parser::new(some(size.1), some(size.0), 0)),
            reads: AtomicBool::new(true),
            rests: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        });
        let keys = File::from(other);
        let (own, read) = (Arc::clone(&reader), keys.try_clone().unwrap());
        std::thread::spawn(move || own.read(read));
        let before = modes(&programs);
        let terminal = Self { keys, programs, path, before, reader };
        terminal.resize(size);
        terminal
    }

    /// Starts a program as the leader of a session that has this terminal.
    pub(super) fn start(self, mut command: Command) -> Viewed {
        let own = || self.programs.try_clone().unwrap();
        command.stdin(own()).stdout(own()).stderr(own());
        command.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
        // SAFETY: between fork and exec there are two system calls, which are allowed there.
        unsafe {
            command.pre_exec(|| {
                setsid()?;
                Ok(ioctl_tiocsctty(stdin())?)
            })
        };
        Viewed { child: command.spawn().unwrap(), terminal: self }
    }

    /// Another size; the foreground process gets a signal.
    pub(super) fn resize(&self, (columns, lines): (u16, u16)) {
        let size = Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        self.reader.shown().screen_mut().set_size(some(lines), some(columns));
        tcsetwinsize(&self.keys, size).unwrap();
    }

    pub(super) fn text(&self) -> String {
        self.reader.shown().screen().contents()
    }

    /// Whether a program has taken the screen: the other one is shown, and no cursor.
    pub(super) fn is_full_screen(&self) -> bool {
        let shown = self.reader.shown();
        shown.screen().alternate_screen() && shown.screen().hide_cursor()
    }

    /// Fills it, and reads no more.
    pub(super) fn stop_reading(&self) {
        self.reader.reads.store(false, Ordering::SeqCst);
        let flags = (OFlags::NOCTTY | OFlags::NONBLOCK).bits().cast_signed();
        let mut filler =
            OpenOptions::new().write(true).custom_flags(flags).open(&self.path).unwrap();
        // Before, the reader may be at its last read; then there is room once more.
        eventually("the reader rests", || self.reader.rests.load(Ordering::SeqCst));
        while filler.write(&[0; 64]).is_ok() {}
    }

    pub(super) fn read_on(&self) {
        self.reader.reads.store(true, Ordering::SeqCst);
    }

    /// Waits until its modes are as they were.
    pub(super) fn has_its_modes(&self) {
        eventually("the terminal has its modes again", || modes(&self.programs) == self.before);
    }

    /// Waits until it is as it was: its modes, the screen and the cursor.
    pub(super) fn is_given_back(&self) {
        self.has_its_modes();
        eventually("the screen and the cursor are back", || {
            let shown = self.reader.shown();
            !shown.screen().alternate_screen() && !shown.screen().hide_cursor()
        });
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.reader.is_over.store(true, Ordering::SeqCst);
    }
}

impl Reader {
    fn shown(&self) -> std::sync::MutexGuard<'_, Parser> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, mut from: File) {
        let mut bytes = [0; 4_096];
        let wait = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
        while !self.is_over.load(Ordering::SeqCst) {
            let rests = !self.reads.load(Ordering::SeqCst);
            self.rests.store(rests, Ordering::SeqCst);
            if rests {
                pause(Duration::from_millis(5));
                continue;
            }
            let mut asked = [PollFd::from_borrowed_fd(from.as_fd(), PollFlags::IN)];
            let _ = poll(&mut asked, Some(&wait));
            if !asked[0].revents().contains(PollFlags::IN) {
                continue;
            }
            let Ok(length) = from.read(&mut bytes) else { return };
            self.shown().process(&bytes[..length]);
        }
    }
}

fn some(cells: u16) -> NonZero<u16> {
    NonZero::new(cells).unwrap()
}

/// What tcgetattr(3) says.
fn modes(of: &File) -> String {
    format!("{:?}", tcgetattr(of).unwrap())
}

/// A program on a terminal, which is killed with the test.
pub(super) struct Viewed {
    child: Child,
    terminal: Terminal,
}

impl Viewed {
    pub(super) fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    pub(super) fn press(&self, keys: &[u8]) {
        (&self.terminal.keys).write_all(keys).unwrap();
    }

    pub(super) fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// The line that has this in it.
    #[track_caller]
    pub(super) fn line(&self, part: &str) -> String {
        let text = self.terminal.text();
        let line = text.lines().find(|line| line.contains(part));
        line.unwrap_or_else(|| panic!("no line has {part}:\n{text}")).to_owned()
    }

    /// Waits until all of these are on the screen at once.
    #[track_caller]
    pub(super) fn shows(&self, parts: &[&str]) {
        self.shows_where(&parts.join(", "), |text| parts.iter().all(|part| text.contains(part)));
    }

    /// Waits until the screen is such.
    #[track_caller]
    pub(super) fn shows_where(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let _said = OnPanic(&self.terminal);
        eventually(what, || is_so(&self.terminal.text()));
    }

    /// Waits for the end; its exit code.
    pub(super) fn ends(&mut self) -> Option<i32> {
        let _said = OnPanic(&self.terminal);
        let mut ended = None;
        let child = &mut self.child;
        eventually("it ends", || {
            ended = child.try_wait().unwrap();
            ended.is_some()
        });
        ended.and_then(|status| status.code())
    }

    /// Waits for the end, and until the terminal is as before.
    pub(super) fn ends_and_gives_back(mut self) -> Option<i32> {
        let code = self.ends();
        self.terminal.is_given_back();
        code
    }
}

impl std::ops::Deref for Viewed {
    type Target = Terminal;

    fn deref(&self) -> &Terminal {
        &self.terminal
    }
}

impl Drop for Viewed {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Says what a terminal shows where a test fails.
struct OnPanic<'a>(&'a Terminal);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = writeln!(std::io::stderr(), "the terminal shows:\n{}", self.0.text());
        }
    }
}
