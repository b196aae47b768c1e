//! What latencies are to keep: all of a run, and cycles of attached threads by their names.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// What the cycles of threads of one name are to keep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ThreadDeadline {
    /// The name, as series have it.
    pub name: String,
    /// Ns.
    pub deadline_ns: i64,
}

/// The deadlines of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deadlines {
    /// Of all that have no separate one, ns; `None` for none.
    pub all_ns: Option<i64>,
    /// Of attached threads, by name; each name once.
    pub of_threads: Vec<ThreadDeadline>,
}

impl Deadlines {
    /// One for all.
    #[must_use]
    pub const fn of_all(all_ns: Option<i64>) -> Self {
        Self { all_ns, of_threads: Vec::new() }
    }

    /// Whether nothing has one.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.all_ns.is_none() && self.of_threads.is_empty()
    }

    /// That of the threads, or the series, of this name, ns.
    #[must_use]
    pub fn of(&self, name: &str) -> Option<i64> {
        let own = self.of_threads.iter().find(|own| own.name == name);
        own.map(|own| own.deadline_ns).or(self.all_ns)
    }

    /// As it is typed: `ctl=1ms,act=5ms`.
    #[must_use]
    pub fn typed(&self) -> String {
        let all = self.all_ns.map(|ns| Nanos(ns).typed().to_string());
        let own = |own: &ThreadDeadline| format!("{}={}", own.name, Nanos(own.deadline_ns).typed());
        all.into_iter().chain(self.of_threads.iter().map(own)).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_its_own_deadline_or_that_of_all() {
        let ctl = ThreadDeadline { name: "ctl".into(), deadline_ns: 1_000_000 };
        let named = Deadlines { all_ns: None, of_threads: vec![ctl.clone()] };
        assert_eq!((named.of("ctl"), named.of("ctl2")), (Some(1_000_000), None));
        assert_eq!(named.typed(), "ctl=1ms");
        let both = Deadlines { all_ns: Some(5_000_000), of_threads: vec![ctl] };
        assert_eq!((both.of("ctl"), both.of("act")), (Some(1_000_000), Some(5_000_000)));
        assert_eq!(both.typed(), "5ms,ctl=1ms");
        assert!(Deadlines::default().is_empty() && !both.is_empty());
    }
}
