//! Frames, as a terminal of that size shows them.

use ratatui::{buffer::Buffer, crossterm::event::KeyCode, layout::Rect, style::Style};

use super::*;

fn row(name: &str, cpu: Option<u32>, max_ns: i64) -> SeriesRow {
    let mut minute = vec![None; 40];
    minute.extend((0..20).map(|second| Some(3_000 + max_ns * second / 20)));
    SeriesRow {
        name: name.into(),
        pooled_in: None,
        is_response: false,
        leads: true,
        cpu,
        samples: 20_000,
        missed: cpu.map(|cpu| cpu.into()),
        now_ns: Some(max_ns / 2),
        p50_ns: Some(3_000),
        p99_ns: Some(9_000),
        max_ns: Some(max_ns),
        max_s: Some((12.0, 13.0)),
        minute,
    }
}

fn kept(series: &str, latency_ns: i64, kind: &str) -> KeptSample {
    KeptSample {
        series: series.into(),
        at_s: Some(12.5),
        latency_ns,
        kind: kind.into(),
        cause: format!("61% {kind}: NET_RX"),
    }
}

fn cause(series: &str, kind: &str, ns: u64) -> CauseRow {
    let (series, cause) = (series.into(), format!("{kind}: name"));
    CauseRow { series, kind: kind.into(), cause, samples: 7, ns }
}

fn view(rows: Vec<SeriesRow>) -> LiveView {
    let cpus = rows.iter().filter_map(|row| row.cpu);
    let shares = |cpu| CpuShares { cpu, is_measured: cpu == 0, user: 0.25, ..CpuShares::default() };
    LiveView {
        name: "nightly".into(),
        probe: "timer every 1 ms, fifo 90".into(),
        status: LiveStatus::Running,
        elapsed_s: 20.0,
        left_s: Some(40.0),
        sample: ("wake-up", "wake-ups"),
        read: 1.0,
        cpus: cpus.map(shares).collect(),
        rows,
        kept: vec![kept("cpu1", 80_000, "softirq"), kept("cpu0", 40_000, "host")],
        causes: vec![cause("cpu1", "softirq", 600), cause("cpu0", "host", 400)],
        causes_of: ", last 10 s".into(),
        causes_are: "14 wake-ups that were late".into(),
        interrupts: vec![MovedInterrupt {
            source: "irq 24 virtio0".into(),
            per_s: 1_234.0,
            measured_per_s: 7.0,
        }],
        no_machine: None,
        loads: vec![
            LoadState { name: "sound".into(), proof: "375 periods/s".into(), fails: false },
            LoadState { name: "hackbench".into(), proof: "DIED: signal 9".into(), fails: true },
        ],
        caveats: vec![CaveatLine { effect: "warning", text: "One thing or another.".into() }],
        own_share: Some(0.004),
    }
}

fn two_cpus() -> LiveView {
    view(vec![row("cpu0", Some(0), 40_000), row("cpu1", Some(1), 80_000)])
}

fn buffer(view: &LiveView, state: &ViewState, (width, height): (u16, u16), ink: Ink) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    draw(&mut buffer, view, state, ink);
    buffer
}

fn shown(view: &LiveView, state: &ViewState, size: (u16, u16)) -> String {
    frame::lines(&buffer(view, state, size, Ink::PLAIN))
}

#[track_caller]
fn has(text: &str, wanted: &[&str]) {
    for one in wanted {
        assert!(text.contains(one), "{one:?} is missing:\n{text}");
    }
}

const SMALL: (u16, u16) = (80, 24);
const LARGE: (u16, u16) = (160, 50);

#[test]
fn the_smallest_terminal_has_every_part() {
    let text = shown(&two_cpus(), &ViewState::new(), SMALL);
    has(&text, &["tardy: nightly, timer every 1 ms, fifo 90", "running 20 s, 40 s left"]);
    has(&text, &["40,000 wake-ups; worst 80.0 us on cpu1 at 12.5 s, 61% sof", "view 0.4%"]);
    has(
        &text,
        &["series* missed     now     p50     p99     max  last min, 2 s ▁3.00 us █79.0 us"],
    );
    has(&text, &["cpu1         1 40.0 us 3.00 us 9.00 us 80.0 us"]);
    has(&text, &["causes, last 10 s", " 60%    7x  softirq: name", "all 2      25     0"]);
    has(
        &text,
        &["cpu0*", "irq 24 virtio0", "1,234 (7)", "hackbench DIED: signal 9", "warning: One"],
    );
    has(&text, &["q quit  space freeze  s sort: series  f series: all  c cause: all  enter  ?"]);
    let cut: Vec<&str> = text.lines().filter(|line| line.contains("..")).collect();
    assert_eq!(cut.len(), 1, "nothing is cut but the second line: {cut:?}");
    assert!(text.find("DIED") < text.find("375 periods"), "what fails comes first");
}

#[test]
fn a_wide_one_says_of_each_series_when_its_worst_came_and_who_did_it() {
    let text = shown(&two_cpus(), &ViewState::new(), LARGE);
    let line = text.lines().find(|line| line.starts_with("cpu1")).unwrap();
    has(line, &["12.5 s", "61% softirq: NET_RX", "█"]);
    let mut unknown = two_cpus();
    unknown.kept.clear();
    let text = shown(&unknown, &ViewState::new(), LARGE);
    let line = text.lines().find(|line| line.starts_with("cpu1")).unwrap();
    assert!(line.contains("12.5 s") && line.ends_with('-'), "{line}");
}

#[test]
fn of_64_cpus_some_are_shown_and_the_rest_is_scrolled_to() {
    let rows = (0..64).map(|cpu| row(&format!("cpu{cpu}"), Some(cpu), 10_000 + i64::from(cpu)));
    let many = view(rows.collect());
    let mut state = ViewState::new();
    for (size, rows) in [(SMALL, 9), (LARGE, 30)] {
        let text = shown(&many, &state, size);
        let shown_rows = text.lines().filter(|line| line.starts_with("cpu")).count();
        assert_eq!(shown_rows, rows, "{text}");
        has(&text, &[&format!("1-{rows} of 64"), "all 64", "caveats", "loads"]);
    }
    assert_eq!(state.press(KeyCode::End, &many), Action::Draw);
    has(&shown(&many, &state, SMALL), &["cpu63 ", "56-64 of 64"]);
    let mut state = ViewState::new();
    state.press(KeyCode::Char('s'), &many);
    let text = shown(&many, &state, SMALL);
    assert!(text.lines().nth(3).unwrap().starts_with("cpu63"), "the worst first: {text}");
    assert_eq!(text::lines_of(&super::text(&many, 120, Ink::PLAIN)), 64, "all of them as text");
}

mod text {
    pub(super) fn lines_of(text: &str) -> usize {
        text.lines().filter(|line| line.starts_with("cpu")).count()
    }
}

#[test]
fn threads_and_messages_have_no_cpu_and_may_have_no_schedule() {
    let mut threads = view(vec![row("my-app/1234", None, 9_000), row("rtt", None, 7_000)]);
    threads.sample = ("round trip", "round trips");
    (threads.left_s, threads.cpus) = (None, Vec::new());
    threads.no_machine = Some("the run is on other, not here".into());
    threads.interrupts.clear();
    let text = shown(&threads, &ViewState::new(), SMALL);
    has(&text, &["my-app/1234      -", "rtt              -", "running 20 s, no end set"]);
    has(&text, &["round trips", "the run is on other, not here"]);
}

#[test]
fn keys_freeze_sort_filter_open_and_leave() {
    let view = two_cpus();
    let mut state = ViewState::new();
    state.press(KeyCode::Char(' '), &view);
    assert!(state.is_frozen);
    has(&shown(&view, &state, SMALL), &["FROZEN, running", "space continue"]);
    for key in ['f', '1'] {
        state.press(KeyCode::Char(key), &view);
    }
    has(&shown(&view, &state, SMALL), &["series or CPU: 1_"]);
    state.press(KeyCode::Enter, &view);
    let text = shown(&view, &state, SMALL);
    assert!(text.contains("f series: 1") && !text.contains("\ncpu0 "), "{text}");
    assert!(text.contains("100%    7x  softirq"), "causes are filtered too: {text}");
    assert_eq!(state.press(KeyCode::Enter, &view), Action::Open(view.kept[0].clone()));
    state.press(KeyCode::Esc, &view);
    state.press(KeyCode::Char('c'), &view);
    has(&shown(&view, &state, LARGE), &["c cause: host", "61% host: NET_RX", " 40%", "\ncpu0 "]);
    assert_eq!(state.press(KeyCode::Enter, &view), Action::Open(view.kept[1].clone()));
    state.press(KeyCode::Char('c'), &view);
    state.press(KeyCode::Char('c'), &view);
    has(&shown(&view, &state, LARGE), &["c cause: all", "\ncpu0 ", "\ncpu1 "]);
    for expected in ["sort: max", "sort: p99", "sort: now", "sort: missed", "sort: series"] {
        state.press(KeyCode::Char('s'), &view);
        has(&shown(&view, &state, SMALL), &[expected]);
    }
    assert_eq!(state.press(KeyCode::Char('q'), &view), Action::Quit);
}

#[test]
fn a_page_lies_over_the_frame_and_is_scrolled_and_closed() {
    let view = two_cpus();
    let mut state = ViewState::new();
    state.press(KeyCode::Char('?'), &view);
    has(
        &shown(&view, &state, SMALL),
        &["keys and columns", "Ctrl-C       leave this view", "1-21 of"],
    );
    state.press(KeyCode::Char('q'), &view);
    state.open("the worst", &"a line\n".repeat(50));
    state.press(KeyCode::End, &view);
    has(&shown(&view, &state, SMALL), &["30-50 of 50"]);
    state.press(KeyCode::Esc, &view);
    has(&shown(&view, &state, SMALL), &["cpu0"]);
    let mut untraced = two_cpus();
    untraced.kept.clear();
    assert_eq!(state.press(KeyCode::Enter, &untraced), Action::Draw);
    has(&shown(&untraced, &state, SMALL), &["No late sample was kept whole yet."]);
}

#[test]
fn a_small_terminal_is_told_so_and_no_size_is_too_odd() {
    let text = shown(&two_cpus(), &ViewState::new(), (60, 20));
    has(&text, &["This terminal is 60x20.", "tardy needs 80x24"]);
    let states = [ViewState::new(), {
        let mut state = ViewState::new();
        state.open("x", "y");
        state
    }];
    let empty = LiveView { cpus: Vec::new(), ..view(Vec::new()) };
    for size in [(0, 0), (1, 1), (79, 24), (80, 23), (80, 24), (81, 25), (119, 24), (120, 24)] {
        for state in &states {
            shown(&two_cpus(), state, size);
            shown(&empty, state, size);
        }
    }
    has(&shown(&empty, &states[0], SMALL), &["no series yet"]);
}

#[test]
fn each_status_is_said_in_words() {
    let of = |status: LiveStatus, elapsed_s: f64, read: f64| {
        let view = LiveView { status, elapsed_s, read, ..two_cpus() };
        shown(&view, &ViewState::new(), SMALL)
    };
    has(&of(LiveStatus::Arranging, 0.0, 1.0), &["getting ready"]);
    has(&of(LiveStatus::WarmUp, -0.5, 1.0), &["warm-up, 500 ms left"]);
    has(&of(LiveStatus::Running, 9.0, 0.25), &["reading what came before, 25%"]);
    has(&of(LiveStatus::Ended("CRASHED after 9 s".into()), 9.0, 1.0), &["CRASHED after 9 s"]);
}

#[test]
fn colours_say_nothing_that_is_not_there_without_them() {
    let (view, state) = (two_cpus(), ViewState::new());
    let coloured = buffer(&view, &state, LARGE, Ink { has_colours: true, ..Ink::PLAIN });
    let plain = buffer(&view, &state, LARGE, Ink::PLAIN);
    assert_eq!(frame::lines(&coloured), frame::lines(&plain));
    let is_plain = |style: Style| style.fg == Style::reset().fg && style.bg == Style::reset().bg;
    assert!(plain.content.iter().all(|cell| is_plain(cell.style())));
    assert!(!coloured.content.iter().all(|cell| is_plain(cell.style())));
    let ascii = Ink { has_blocks: false, ..Ink::PLAIN };
    assert!(frame::lines(&buffer(&view, &state, SMALL, ascii)).is_ascii());
}

#[test]
fn names_from_elsewhere_steer_no_terminal() {
    let mut odd = view(vec![row("a\u{1b}[2Jb\u{202e}", None, 9_000)]);
    odd.name = "n\u{1b}]52;c;aGk=\u{7}".into();
    odd.causes = vec![cause("a\u{1b}[2Jb\u{202e}", "x\u{9b}", 5)];
    odd.loads[0].proof = "\r\nlie".into();
    let mut state = ViewState::new();
    for size in [SMALL, LARGE] {
        let text = shown(&odd, &state, size);
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        assert!(!text.contains('\u{202e}') && text.contains("\\u{1b}"), "{text}");
    }
    state.open("title", "line\n\u{1b}[8mhidden");
    has(&shown(&odd, &state, SMALL), &["\\u{1b}[8mhidden"]);
}

#[test]
fn threads_and_responses_of_wakeups_are_counted_with_them_once() {
    let one = |name: &str, pool: Option<&str>| SeriesRow {
        pooled_in: pool.map(str::to_owned),
        is_response: name.ends_with("response"),
        leads: !name.ends_with("response"),
        ..row(name, None, 50_000)
    };
    let mut view = view(vec![
        one("app", None),
        one("app/7", Some("app")),
        one("app/response", None),
        one("app/7/response", Some("app/response")),
    ]);
    view.kept = vec![kept("app", 50_000, "host"), kept("app/response", 70_000, "thread")];
    let text = shown(&view, &ViewState::new(), LARGE);
    has(&text, &["20,000 wake-ups; worst 50.0 us on app/7 at 12.5 s, 61% host: NET_RX"]);
    let own: Vec<&str> = text.lines().filter(|line| line.starts_with("app")).collect();
    assert!(own[1].contains("61% host"), "{text}");
    assert!(!own[2].contains("61%"), "its worst is not kept: {text}");
}

#[test]
fn responses_of_attached_threads_with_a_deadline_lead() {
    let one = |name: &str, leads: bool, max_ns: i64| SeriesRow {
        is_response: name.ends_with("response"),
        leads,
        ..row(name, None, max_ns)
    };
    let view = view(vec![
        one("ctl", false, 60_000),
        one("log", true, 9_000_000),
        one("ctl/response", true, 5_400_000),
    ]);
    let text = shown(&view, &ViewState::new(), LARGE);
    has(&text, &["20,000 responses, 20,000 wake-ups; worst 5.40 ms on ctl/response"]);
    let rows = || text.lines().filter(|line| line.starts_with("ctl") || line.starts_with("log"));
    assert!(rows().next().is_some_and(|line| line.starts_with("ctl/response")), "{text}");
    assert_eq!(rows().count(), 3);
}
