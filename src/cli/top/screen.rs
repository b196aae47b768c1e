//! The terminal while the view has it, and everything by which it gets it back.

use std::{
    io::{self, BufWriter},
    mem::ManuallyDrop,
    os::fd::AsFd as _,
    time::Duration,
};

use ratatui::{
    Terminal,
    backend::CrosstermBackend,
    crossterm::{
        cursor::{Hide, Show},
        event::{self, Event, KeyCode, KeyEventKind},
        execute, queue,
        terminal::{EnterAlternateScreen, LeaveAlternateScreen},
    },
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr},
};

use crate::{
    live::{self, Ink, LiveView, ViewState},
    sys::{signals::Quit, timeout_writer::TimeoutWriter},
};

/// How long a terminal that nobody reads is waited for by those who want to leave it.
pub(in crate::cli) const FAREWELL: Duration = Duration::from_millis(100);

/// A write that waits continues waiting until the view is to end: over a slow line that is all
/// right, and on a terminal that nobody reads SIGTERM still ends it.
type WriteDeadline = Box<dyn FnMut(Duration) -> bool>;
type Out = BufWriter<TimeoutWriter<WriteDeadline>>;

/// A terminal in full-screen mode; when it goes the terminal is as before.
pub(super) struct Screen {
    /// Never dropped: it would say on a terminal that is gone that it is gone, and panic over that.
    /// What it has to restore is restored here.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Out>>>,
    before: Termios,
}

impl Screen {
    /// Takes the terminal: keys come one by one and are not shown, Ctrl-C stays a signal to all
    /// who are in the foreground, and Ctrl-Z and Ctrl-\ do nothing. After `quit` no write waits for
    /// long.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn take(quit: Quit) -> io::Result<Self> {
        let before = tcgetattr(io::stdin().as_fd())?;
        let gives_up: WriteDeadline =
            Box::new(move |waited| quit.seen().is_some() && waited > FAREWELL);
        let out = BufWriter::new(TimeoutWriter::new(io::stdout(), gives_up)?);
        let terminal = Terminal::new(CrosstermBackend::new(out))?;
        restore_at_panic(before.clone());
        let mut raw = before.clone();
        raw.make_raw();
        raw.local_modes.insert(LocalModes::ISIG);
        for unused in [SpecialCodeIndex::VSUSP, SpecialCodeIndex::VQUIT] {
            // _POSIX_VDISABLE.
            raw.special_codes[unused] = 0;
        }
        let mut screen = Self { terminal: ManuallyDrop::new(terminal), before };
        tcsetattr(io::stdin().as_fd(), OptionalActions::Flush, &raw)?;
        execute!(screen.terminal.backend_mut(), EnterAlternateScreen, Hide)?;
        Ok(screen)
    }

    /// Shows a frame: only what changed is sent.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(super) fn show(&mut self, view: &LiveView, state: &ViewState, ink: Ink) -> io::Result<()> {
        self.terminal.draw(|frame| live::draw(frame.buffer_mut(), view, state, ink)).map(drop)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // What is left of a frame runs first, so that the terminal takes the rest as it is meant.
        give_back(self.terminal.backend_mut(), &self.before);
    }
}

/// As it was before: also for who finds that a view has died.
pub(in crate::cli) fn give_back(out: &mut impl io::Write, before: &Termios) {
    let _ = queue!(out, LeaveAlternateScreen, Show).and_then(|()| out.flush());
    let _ = tcsetattr(io::stdin().as_fd(), OptionalActions::Now, before);
}

/// What a panic says must be seen, and on a screen that stays.
fn restore_at_panic(before: Termios) {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |what| {
        if let Ok(mut out) = TimeoutWriter::new(io::stdout(), |waited| waited > FAREWELL) {
            give_back(&mut out, &before);
        }
        say(what);
    }));
}

/// Refuses a terminal that was closed: there is always something to read of it then, which is
/// nothing, and a reader of keys would read it for ever.
///
/// # Errors
/// The terminal is gone.
fn refuse_gone() -> io::Result<()> {
    let stdin = io::stdin();
    let mut asked = [PollFd::new(&stdin, PollFlags::empty())];
    poll(&mut asked, Some(&Timespec::default()))?;
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    if asked[0].revents().intersects(gone) {
        return Err(io::Error::other("it was closed"));
    }
    Ok(())
}

/// The keys that were pressed since the last time; none is waited for.
///
/// # Errors
/// The terminal is gone.
pub(super) fn keys() -> io::Result<Vec<KeyCode>> {
    let mut keys = Vec::new();
    refuse_gone()?;
    while event::poll(Duration::ZERO)? {
        if let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
        {
            keys.push(key.code);
        }
        refuse_gone()?;
    }
    Ok(keys)
}
