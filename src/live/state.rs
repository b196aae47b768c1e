//! View state that keys change: filter, sort order, frozen display, open panel.

use std::cmp::Reverse;

use ratatui::crossterm::event::KeyCode;

use super::view::{KeptSample, LiveView, SeriesRow};

/// By what the series are sorted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Sort {
    /// As in the record: by CPU.
    #[default]
    Record,
    /// The worst first.
    Max,
    /// By the 99th percentile.
    P99,
    /// By the largest of the last second.
    Now,
    /// By missed periods.
    Missed,
}

impl Sort {
    const fn next(self) -> Self {
        match self {
            Self::Record => Self::Max,
            Self::Max => Self::P99,
            Self::P99 => Self::Now,
            Self::Now => Self::Missed,
            Self::Missed => Self::Record,
        }
    }

    /// Name in the line of keys.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Record => "series",
            Self::Max => "max",
            Self::P99 => "p99",
            Self::Now => "now",
            Self::Missed => "missed",
        }
    }
}

/// What lies over the frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenPage {
    /// What it is.
    pub title: String,
    /// Its lines, foreign text in them made plain.
    pub lines: Vec<String>,
    /// The first line that is shown.
    pub first: usize,
}

/// What a key asks of whoever shows the view.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    /// To draw again.
    Draw,
    /// To leave.
    Quit,
    /// To open this sample, by [`ViewState::open`].
    Open(KeptSample),
}

/// What the user has chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ViewState {
    /// By what the series are sorted.
    pub(super) sort: Sort,
    /// Whether the values stand still.
    pub(crate) is_frozen: bool,
    /// Part of the name of a series, or its CPU; empty for all.
    pub(super) series: String,
    /// The kind of cause that is looked at; all otherwise.
    pub(super) cause: Option<String>,
    /// What is being typed as the filter of series.
    pub(super) typed: Option<String>,
    /// The first row that is shown.
    pub(super) first: usize,
    /// What lies over the frame.
    pub(super) page: Option<OpenPage>,
}

/// What the keys do.
const HELP: &str = "\
q            leave this view; the run continues
space        freeze the values, and let them continue
s            sort by series, max, p99, now, missed (* in the heading)
f or /       filter by series or CPU: type a part of a name, or a number
c            filter by cause: the next one, at the end all
enter        what happened around the worst sample that fits the filters
up, down     scroll; also page up, page down, home, end
esc          close this page; take the filters off
Ctrl-C       leave this view; in `tardy run --live` end the run early,
             and keep it whole

missed       periods without a sample
now          the largest latency of the last second
p50 p99 max  of the whole run so far
when         seconds into the run
last min     the largest of each second or two; heights are logarithmic
who          the main cause of the worst sample, and its part of it;
             - where no late sample was kept that is the worst
causes       what late samples of the last seconds were blamed on
CPU use      user, system, hard interrupts, softirqs, stolen by a
             hypervisor; * is measured
interrupts   sources that counted most in the last second, on all CPUs,
             and in brackets on measured ones";

impl ViewState {
    /// One that freezes nothing and filters nothing.
    #[must_use]
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The series that pass the filters, in the order that is asked for.
    #[must_use]
    pub(super) fn rows<'a>(&self, view: &'a LiveView) -> Vec<&'a SeriesRow> {
        let mut rows: Vec<_> = view.rows.iter().filter(|row| self.takes(row, view)).collect();
        let by = |key: fn(&SeriesRow) -> Option<i64>| move |row: &&SeriesRow| Reverse(key(row));
        match self.sort {
            // What answers the question first.
            Sort::Record => rows.sort_by_key(|row| !(row.is_response && row.leads)),
            Sort::Max => rows.sort_by_key(by(|row| row.max_ns)),
            Sort::P99 => rows.sort_by_key(by(|row| row.p99_ns)),
            Sort::Now => rows.sort_by_key(by(|row| row.now_ns)),
            Sort::Missed => rows.sort_by_key(by(|row| i64::try_from(row.missed?).ok())),
        }
        rows
    }

    /// Whether this series passes the filters.
    pub(super) fn takes(&self, row: &SeriesRow, view: &LiveView) -> bool {
        let is_named = self.takes_series(&row.name, row.cpu);
        let has_cause = self.cause.is_none() || self.kept(view).any(|kept| row.has(kept));
        is_named && has_cause
    }

    /// A number is a CPU where it is one, or else a part of a name.
    fn takes_series(&self, name: &str, cpu: Option<u32>) -> bool {
        match (self.series.parse::<u32>(), cpu) {
            _ if self.series.is_empty() => true,
            (Ok(wanted), Some(own)) => wanted == own,
            _ => name.contains(&self.series),
        }
    }

    /// The samples that pass the filters, the worst first.
    pub(super) fn kept<'a>(&self, view: &'a LiveView) -> impl Iterator<Item = &'a KeptSample> {
        let is_of = |kept: &&KeptSample| match &self.cause {
            Some(cause) => kept.kind == *cause,
            None => true,
        };
        let row_of = |name: &str| view.rows.iter().find(|row| row.name == name);
        let takes = |kept: &&KeptSample| {
            self.takes_series(&kept.series, row_of(&kept.series).and_then(|row| row.cpu))
        };
        let fitting: Vec<&KeptSample> = view.kept.iter().filter(is_of).filter(takes).collect();
        fitting.into_iter()
    }

    /// Whether causes of this series and kind pass the filters; without a kind, of any.
    pub(super) fn takes_cause(&self, series: &str, kind: Option<&str>, view: &LiveView) -> bool {
        let row = view.rows.iter().find(|row| row.name == series);
        let is_kind = kind.is_none() || self.cause.is_none() || self.cause.as_deref() == kind;
        is_kind && self.takes_series(series, row.and_then(|row| row.cpu))
    }

    /// Lays a page over the frame.
    pub(crate) fn open(&mut self, title: &str, text: &str) {
        let lines = crate::plain::plain_lines(text).lines().map(str::to_owned).collect();
        self.page = Some(OpenPage { title: title.into(), lines, first: 0 });
    }

    /// What a key does; `view` is what is shown.
    pub(crate) fn press(&mut self, key: KeyCode, view: &LiveView) -> Action {
        if self.typed.is_some() {
            self.type_on(key);
            return Action::Draw;
        }
        if self.page.is_some() {
            return self.turn(key);
        }
        let rows = self.rows(view).len();
        match key {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Char(' ') => self.is_frozen = !self.is_frozen,
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('f' | '/') => self.typed = Some(self.series.clone()),
            KeyCode::Char('c') => self.cause = self.next_cause(view),
            KeyCode::Char('?' | 'h') => self.open("keys and columns", HELP),
            KeyCode::Enter => return self.open_worst(view),
            KeyCode::Esc => (self.series, self.cause) = (String::new(), None),
            key => self.first = scrolled(self.first, key, rows),
        }
        Action::Draw
    }

    fn open_worst(&mut self, view: &LiveView) -> Action {
        if let Some(kept) = self.kept(view).next() {
            return Action::Open(kept.clone());
        }
        let why = match (view.kept.is_empty(), view.causes.is_empty()) {
            (false, _) => "No late sample that was kept fits the filters: esc takes them off.",
            (true, _) => {
                "No late sample was kept whole yet. They are where causes are traced: as root, or \
                 with the rights that `tardy check` names."
            }
        };
        self.open("the worst sample", why);
        Action::Draw
    }

    /// All causes that there are, one after the other, then all together.
    fn next_cause(&self, view: &LiveView) -> Option<String> {
        let mut kinds: Vec<&String> = view.kept.iter().map(|kept| &kept.kind).collect();
        kinds.extend(view.causes.iter().map(|row| &row.kind));
        kinds.retain(|kind| !kind.is_empty());
        kinds.sort();
        kinds.dedup();
        let Some(now) = &self.cause else { return kinds.first().map(|kind| (*kind).clone()) };
        kinds.into_iter().find(|kind| *kind > now).cloned()
    }

    fn type_on(&mut self, key: KeyCode) {
        let Some(typed) = &mut self.typed else { return };
        match key {
            KeyCode::Char(typing) if typed.chars().count() < 40 => typed.push(typing),
            KeyCode::Backspace => drop(typed.pop()),
            KeyCode::Enter => (self.series, self.typed) = (std::mem::take(typed), None),
            KeyCode::Esc => self.typed = None,
            _ => {}
        }
        self.first = 0;
    }

    fn turn(&mut self, key: KeyCode) -> Action {
        if matches!(key, KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q' | '?' | 'h')) {
            self.page = None;
        } else if let Some(page) = &mut self.page {
            page.first = scrolled(page.first, key, page.lines.len());
        }
        Action::Draw
    }
}

/// The line that a key scrolls to, among `lines` lines.
fn scrolled(first: usize, key: KeyCode, lines: usize) -> usize {
    let last = lines.saturating_sub(1);
    match key {
        KeyCode::Up => first.saturating_sub(1),
        KeyCode::Down => (first + 1).min(last),
        KeyCode::PageUp => first.saturating_sub(10),
        KeyCode::PageDown => (first + 10).min(last),
        KeyCode::Home => 0,
        KeyCode::End => last,
        _ => first,
    }
}
