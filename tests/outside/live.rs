//! The full-screen view as a user has it: in its own terminal, with keys, signals, other sizes and
//! other ends than the good one.

mod terminal;

use std::{fs, time::Duration};

use rustix::process::{Pid, Signal, kill_process};

use super::{
    support::{LONG, Store, eventually, finish, is_stopped, pause, signal},
    why::made_up,
};
use terminal::{LARGE, SMALL, Terminal, Viewed};

/// A run in progress until it is ended, with its view.
const RUN: [&str; 9] = ["run", "fake", "--live", "--warmup", "0s", "--cpus", "0", "--name", "r"];

fn run_live(store: &Store, size: (u16, u16)) -> Viewed {
    let mut command = store.tardy(&RUN);
    command.args(["--duration", LONG]);
    let viewed = Terminal::new(size).start(command);
    viewed.shows(&["running", " left", "cpu0"]);
    viewed
}

/// A run that another process makes, and a view of it.
fn top_of(store: &Store) -> (Measuring, Viewed) {
    let measuring = Measuring::start(store);
    let viewed = Terminal::new(SMALL).start(store.tardy(&["top", "r"]));
    viewed.shows(&["running", " left", "cpu0"]);
    (measuring, viewed)
}

/// A run that is killed with the test.
struct Measuring(Option<std::process::Child>);

impl Measuring {
    fn start(store: &Store) -> Self {
        let run = ["run", "fake", "--warmup", "0s", "--cpus", "0", "--name", "r"];
        let child = store.start(&[&run[..], &["--duration", LONG]].concat());
        let measuring = Self(Some(child));
        store.wait_measuring("r");
        measuring
    }

    fn end(mut self, store: &Store) {
        store.interrupt("r", self.0.take().unwrap());
    }
}

impl Drop for Measuring {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits until the run has more samples.
fn goes_on(store: &Store) {
    let before = store.count("r");
    eventually("the run continues", || store.count("r") > before);
}

fn status(store: &Store) -> String {
    store.show("r")["status"].as_str().unwrap().to_owned()
}

#[test]
fn a_run_is_shown_with_its_series_and_the_time_left_at_any_size() {
    let store = Store::new();
    let viewed = run_live(&store, SMALL);
    assert!(viewed.is_full_screen(), "{}", viewed.text());
    viewed.shows(&["series*", "missed", "now", "p50", "p99", "max", "last min"]);
    viewed.shows(&["tardy: r, fake", "causes", "CPU, %", "loads", "caveats", "q quit"]);
    assert!(!viewed.text().contains("who"), "{}", viewed.text());
    // Name, missed; then now, p50, p99 and max, each with its unit.
    viewed.shows_where("a 99th percentile", |text| {
        let row = text.lines().find(|line| line.starts_with("cpu0")).unwrap_or_default();
        let words: Vec<&str> = row.split_whitespace().collect();
        let p99 = words.get(6).and_then(|word| word.parse::<f64>().ok());
        p99.is_some_and(|p99| p99 > 0.0) && words.get(7) == Some(&"us")
    });

    viewed.resize(LARGE);
    viewed.shows(&["series*", "when", "who", "cpu0"]);
    viewed.shows_where("the keys are in the last line", |text| {
        text.lines().nth(49).is_some_and(|line| line.contains("q quit"))
    });
    viewed.resize((60, 10));
    viewed.shows(&["This terminal is 60x10", "80x24"]);
    viewed.resize(SMALL);
    viewed.shows(&["series*", "cpu0", "q quit"]);

    viewed.press(b"\x03");
    let code = viewed.ends_and_gives_back();
    assert_eq!((code, status(&store).as_str()), (Some(0), "interrupted"));
}

#[test]
fn keys_sort_filter_freeze_and_open_and_escape_takes_back() {
    let store = Store::new();
    let viewed = run_live(&store, SMALL);
    viewed.press(b"s");
    viewed.shows(&["s sort: max", "max*"]);
    viewed.press(b"s");
    viewed.shows(&["s sort: p99", "p99*"]);

    viewed.press(b"fno-such");
    viewed.shows(&["series or CPU: no-such_"]);
    viewed.press(b"\r");
    viewed.shows(&["f series: no-such", "no series fits the filters"]);
    viewed.press(b"\x1b");
    viewed.shows(&["f series: all", "cpu0"]);

    viewed.press(b"\r");
    viewed.shows(&["the worst sample", "No late sample was kept whole yet", "esc back"]);
    viewed.press(b"\x1b");
    viewed.shows(&["q quit", "cpu0"]);
    viewed.press(b"?");
    viewed.shows(&["keys and columns", "freeze the values"]);
    viewed.press(b"q");
    viewed.shows(&["q quit", "cpu0"]);

    viewed.press(b" ");
    viewed.shows(&["FROZEN", "space continue"]);
    let frozen = viewed.line("FROZEN");
    goes_on(&store);
    goes_on(&store);
    viewed.press(b"s");
    viewed.shows(&["s sort: now"]);
    assert_eq!(viewed.line("FROZEN"), frozen, "a later frame has the same values");
    viewed.press(b" ");
    viewed.shows_where("it continues", |text| text.contains("running") && !text.contains("FROZEN"));

    viewed.press(b"q");
    viewed.shows_where("the usual line", |text| {
        text.lines().any(|line| line.contains(" left | worst cpu0"))
    });
    assert!(!viewed.is_full_screen());
    goes_on(&store);
    viewed.signal("TERM");
    let code = viewed.ends_and_gives_back();
    assert_eq!((code, status(&store).as_str()), (Some(0), "interrupted"));
}

#[test]
fn the_worst_peak_is_opened_with_what_happened_around_it() {
    let store = Store::new();
    let run = made_up();
    let run = run.to_str().unwrap();
    let viewed = Terminal::new(LARGE).start(store.tardy(&["top", run]));
    viewed.shows(&["q quit", "cpu"]);
    viewed.press(b"\r");
    viewed.shows(&["the worst sample that fits", " late on cpu", "esc back"]);
    viewed.press(b"\x1b");
    viewed.shows(&["q quit"]);
    viewed.press(b"q");
    assert_eq!(viewed.ends_and_gives_back(), Some(0));
}

#[test]
fn a_view_of_anothers_run_ends_by_key_and_by_signal_and_the_run_knows_nothing_of_it() {
    let store = Store::new();
    let (measuring, first) = top_of(&store);
    assert!(first.is_full_screen());
    first.press(b"q");
    assert_eq!(first.ends_and_gives_back(), Some(0));
    for name in ["Ctrl-C", "TERM", "HUP"] {
        let viewed = Terminal::new(SMALL).start(store.tardy(&["top", "r"]));
        viewed.shows(&["running", "cpu0"]);
        match name {
            "Ctrl-C" => viewed.press(b"\x03"),
            name => viewed.signal(name),
        }
        assert_eq!(viewed.ends_and_gives_back(), Some(0), "{name}");
    }
    goes_on(&store);
    measuring.end(&store);
}

#[test]
fn a_view_of_anothers_run_shows_how_that_ended() {
    let store = Store::new();
    let (measuring, viewed) = top_of(&store);
    measuring.end(&store);
    viewed.shows_where("how it ended", |text| {
        text.lines().next().is_some_and(|line| line.contains("ENDED early"))
    });
    assert!(viewed.is_full_screen(), "it stays until it is left");
    viewed.press(b"q");
    assert_eq!(viewed.ends_and_gives_back(), Some(0));
}

#[test]
fn missed_periods_are_a_caveat_while_the_run_goes_on() {
    let store = Store::new();
    let timer = ["--interval", "1ms", "--cpus", "0", "--policy", "other"];
    let measuring = Measuring(Some(store.start_measuring("r", &timer)));
    // Wide enough for a caveat in one line.
    let viewed = Terminal::new((400, 50)).start(store.tardy(&["top", "r"]));
    viewed.shows(&["running", "cpu0"]);
    // Hundreds of periods pass in which it cannot wake up.
    let child = measuring.0.as_ref().unwrap();
    signal(child, "STOP");
    eventually("it stands still", || is_stopped(child.id()));
    pause(Duration::from_millis(300));
    signal(child, "CONT");
    viewed.shows(&["running", "Many periods had no wake-up", "% on cpu0"]);
    measuring.end(&store);
}

#[test]
fn the_terminal_is_given_back_where_the_run_or_its_view_is_killed() {
    let store = Store::new();
    let viewed = run_live(&store, SMALL);
    goes_on(&store);
    viewed.signal("KILL");
    viewed.ends_and_gives_back();
    eventually("the view goes with its run", || store.processes().is_empty());
    assert_eq!(status(&store), "crashed");
    assert!(store.count("r") > 0);

    fs::remove_dir_all(store.runs()).unwrap();
    let viewed = run_live(&store, SMALL);
    let view = store.processes().into_iter().find(|pid| *pid != viewed.pid()).unwrap();
    kill_process(Pid::from_raw(view).unwrap(), Signal::KILL).unwrap();
    viewed.shows_where("the usual line", |text| text.contains(" left | worst cpu0"));
    viewed.is_given_back();
    viewed.signal("TERM");
    assert_eq!(viewed.ends_and_gives_back(), Some(0));
}

#[test]
fn on_a_terminal_that_nobody_reads_a_signal_ends_the_view_and_its_end_the_run() {
    let store = Store::new();
    let (measuring, mut viewed) = top_of(&store);
    viewed.stop_reading();
    // A complete frame, which does not fit.
    viewed.resize(LARGE);
    goes_on(&store);
    goes_on(&store);
    viewed.signal("TERM");
    // What is to leave the screen can only be written where somebody reads.
    assert_eq!(viewed.ends(), Some(0));
    viewed.has_its_modes();
    measuring.end(&store);
    fs::remove_dir_all(store.runs()).unwrap();

    let mut command = store.tardy(&RUN);
    command.args(["--duration", "4s"]);
    let mut viewed = Terminal::new(SMALL).start(command);
    viewed.shows(&["running", "cpu0"]);
    viewed.stop_reading();
    viewed.resize(LARGE);
    // What it says at its end waits for the terminal.
    eventually("the run is whole", || status(&store) == "complete");
    viewed.has_its_modes();
    viewed.read_on();
    assert_eq!(viewed.ends(), Some(0));
}

#[test]
fn without_a_terminal_there_is_a_line_now_and_then() {
    let store = Store::new();
    let said = finish(store.start(&[&RUN[..], &["--duration", "11s"]].concat()));
    assert_eq!(said.code, Some(0), "{said:?}");
    let why = "--live: no terminal; progress is a line after 10 s";
    assert!(said.err.contains(why), "{said:?}");
    let has_beat = said.err.lines().any(|line| line.contains(" left | ") && line.contains("worst"));
    assert!(has_beat, "{said:?}");
    assert!(!said.err.contains('\u{1b}') && !said.out.contains('\u{1b}'), "{said:?}");
}
