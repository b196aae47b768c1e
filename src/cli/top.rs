//! `tardy top`: a run in progress, full screen; also what `tardy run --live` starts.

mod gather;
mod machine;
mod screen;

pub(super) use screen::{FAREWELL, give_back};

use std::{
    io::{self, IsTerminal as _},
    os::fd::AsFd as _,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use clap::Args;
use tardy_hot::clock::now_ns;

use super::{Exit, output};
use crate::{
    live::{self, Action, Ink, LiveView, ViewState},
    plain::plain_path,
    run::{Status, follow::RunFollower, names},
    store::Store,
    sys::{cpus::Cpus, notifier::Notifier, sched, signals, signals::Quit},
};
use gather::Gatherer;
use screen::Screen;

/// A look each second, this long after the maker of the run writes, ns.
const SECOND_NS: i64 = 1_000_000_000;
const AFTER_NS: i64 = 200_000_000;

/// Columns without a terminal.
const COLUMNS: u16 = 120;

/// View a run in progress: latencies, causes, loads, caveats
///
/// Also shows a run that another user or terminal started. It only reads the files of the run. q
/// quits, ? explains the other keys. When the run ends, the view shows its result.
#[derive(Debug, Args)]
pub(super) struct TopFlags {
    /// A path, a name, the beginning of an id, `last` or `last~1` [default: the running run]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Print one frame as text and end; also if standard output is not a terminal
    #[arg(long, help_heading = "Output")]
    once: bool,
    /// For `tardy run --live`: wait for the run in this directory, end with it
    #[arg(long, hide = true, value_name = "DIR")]
    of_run: Option<PathBuf>,
}

/// Shows the run.
pub(super) fn top(flags: &TopFlags, store: &Store) -> Result<Exit> {
    if let Some(directory) = &flags.of_run {
        return of_run(directory);
    }
    let directory = directory(flags, store)?;
    let gatherer = Gatherer::new(RunFollower::open(&directory)?);
    stand_back(&gatherer);
    if flags.once || !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return once(gatherer);
    }
    watch(gatherer, false)
}

/// The view of a run that another process of tardy is about to make.
fn of_run(directory: &Path) -> Result<Exit> {
    // It goes with its parent, and has no terminal to give back yet.
    while !directory.join(names::RUN).exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let gatherer = Gatherer::new(RunFollower::open(directory)?);
    stand_back(&gatherer);
    watch(gatherer, true)
}

fn directory(flags: &TopFlags, store: &Store) -> Result<PathBuf> {
    if let Some(run) = &flags.run {
        return Ok(store.find_place(run)?);
    }
    let Some(found) = store.going_on() else {
        bail!(
            "no run is running in {}; name one that is elsewhere (-o DIR) by its path, or write \
             `tardy top last` to see how the last one ended",
            plain_path(store.root())
        );
    };
    Ok(found)
}

/// Leaves measured CPUs alone where there are others, and goes behind all else.
fn stand_back(gatherer: &Gatherer) {
    let document = gatherer.follower().document();
    if document.status == Status::Running && machine::is_here(document) {
        let allowed = Cpus::allowed().unwrap_or_default();
        let others = allowed.without(&machine::measured(document));
        if !others.is_empty() {
            // Where this is refused it is bound elsewhere already.
            let _ = others.pin_this_thread();
        }
    }
    sched::stand_back();
    // Where it makes something late all the same, that has a name.
    let _ = rustix::thread::set_name(c"tardy/view");
}

/// One frame: two looks a second apart, as most of it is what changed between them.
fn once(mut gatherer: Gatherer) -> Result<Exit> {
    let mut view = gatherer.look();
    while view.read < 1.0 {
        view = gatherer.look();
    }
    if gatherer.follower().document().status == Status::Running {
        std::thread::sleep(std::time::Duration::from_millis(1_100));
        view = gatherer.look();
    }
    let width = match output::width() {
        Some(width) => u16::try_from(width).unwrap_or(COLUMNS),
        None => COLUMNS,
    };
    output::put(&live::text(&view, width, Ink { has_blocks: is_utf8(), ..Ink::PLAIN }))?;
    Ok(Exit::Done)
}

/// The view until it is left, or the run of which it is has ended.
fn watch(mut gatherer: Gatherer, of_run: bool) -> Result<Exit> {
    let bell = Notifier::new().context("cannot make an eventfd")?;
    let quit = Quit::listen().context("cannot set a signal handler")?;
    quit.rings(&bell).context("cannot set a signal handler")?;
    signals::ring_at_resize(&bell).context("cannot set a signal handler")?;
    let ink = Ink { has_colours: has_colours(), has_blocks: is_utf8() };
    let mut state = ViewState::new();
    let mut view = gatherer.look();
    let mut screen = Screen::take(quit.clone()).context("cannot use the terminal")?;
    let mut due_ns = now_ns();
    loop {
        if quit.seen().is_some() {
            break;
        }
        if now_ns() >= due_ns {
            let fresh = gatherer.look();
            due_ns = next_ns(&gatherer, &fresh);
            if !state.is_frozen {
                view = fresh;
            }
            if of_run && gatherer.follower().document().status != Status::Running {
                break;
            }
        }
        let shown = screen.show(&view, &state, ink);
        if quit.seen().is_some() {
            // Perhaps given up half-way, which is not an error then.
            break;
        }
        shown.context("cannot write to the terminal")?;
        let stdin = io::stdin();
        bell.wait_beside(Some(stdin.as_fd()), Some(due_ns - now_ns()));
        for key in screen::keys().context("cannot read from the terminal")? {
            match state.press(key, &view) {
                Action::Draw => {}
                Action::Quit => return Ok(Exit::Done),
                Action::Open(kept) => {
                    state.open("the worst sample that fits", &gatherer.timeline(&kept));
                }
            }
        }
    }
    Ok(Exit::Done)
}

/// When to look again: a little after the run writes, at once where there is more to be read, and
/// seldom after its end.
fn next_ns(gatherer: &Gatherer, view: &LiveView) -> i64 {
    let document = gatherer.follower().document();
    let now = now_ns();
    if view.read < 1.0 {
        return now + SECOND_NS / 20;
    }
    if document.status != Status::Running {
        return now + 60 * SECOND_NS;
    }
    let into = (now - document.start_monotonic_ns - AFTER_NS).rem_euclid(SECOND_NS);
    now + SECOND_NS - into
}

fn has_colours() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Whether the terminal shows more than ASCII, by the locale.
fn is_utf8() -> bool {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    let set = names.iter().find_map(|name| std::env::var(name).ok().filter(|set| !set.is_empty()));
    set.is_some_and(|set| {
        let set = set.to_ascii_lowercase();
        set.contains("utf-8") || set.contains("utf8")
    })
}
