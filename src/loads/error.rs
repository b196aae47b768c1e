//! What can go wrong with a load: each error names the object and the remedy.

use std::io;
use std::time::Duration;

/// What can go wrong with a load.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No load has that name.
    #[error("unknown load `{name}`: {}use one of {known}", asked(nearest))]
    UnknownLoad {
        /// As typed.
        name: String,
        /// The load that may have been meant.
        nearest: Option<&'static str>,
        /// All loads.
        known: String,
    },
    /// The load has no such parameter.
    #[error("load {load}: unknown parameter `{key}`: {known}")]
    UnknownParameter {
        /// The load.
        load: String,
        /// As typed.
        key: String,
        /// What it has instead, as a remedy.
        known: String,
    },
    /// Text that is not `key=value`.
    #[error("load {load}: `{text}` is not KEY=VALUE: write for example {example}")]
    NoPair {
        /// The load.
        load: String,
        /// As typed.
        text: String,
        /// A valid pair.
        example: String,
    },
    /// The same parameter twice.
    #[error("load {load}: `{key}` is given twice: give it only once")]
    Twice {
        /// The load.
        load: String,
        /// The parameter.
        key: String,
    },
    /// A value out of range or of the wrong kind.
    #[error("load {load}: {key}={value} is not {expected}: write for example {key}={example}")]
    BadValue {
        /// The load.
        load: String,
        /// The parameter.
        key: String,
        /// As typed.
        value: String,
        /// The range or the words.
        expected: String,
        /// A valid value.
        example: String,
    },
    /// The description that the supervisor was started with is damaged.
    #[error("the load's description `{text}` is unreadable: {why}; start loads with `tardy load`")]
    BadDescription {
        /// The description.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// The machine has less than the load needs.
    #[error("load {load} needs {needed} {what}, only {available} are available: {remedy}")]
    TooLarge {
        /// The load.
        load: String,
        /// How many it needs.
        needed: u64,
        /// Of what.
        what: &'static str,
        /// How many are available.
        available: u64,
        /// What to do.
        remedy: &'static str,
    },
    /// A system call failed.
    #[error("load {load}: cannot {action}: {source}; {remedy}")]
    System {
        /// The load.
        load: String,
        /// What was tried, on which object.
        action: String,
        /// The error that the system returned.
        source: io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// A program or a right that the load cannot do without.
    #[error("load {load} needs {what}: {remedy}")]
    Missing {
        /// The load.
        load: String,
        /// What is missing.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// It reported that it cannot start, or ended before its work began.
    #[error("load {load} did not start: {why}")]
    NotStarted {
        /// The load.
        load: String,
        /// In its own words.
        why: String,
    },
    /// It is still starting.
    #[error(
        "load {load} is not ready after {waited:?}: make it smaller, or leave it more of the \
         machine"
    )]
    NotReady {
        /// The load.
        load: String,
        /// How long it was waited for.
        waited: Duration,
    },
    /// It was asked to end while it was still starting.
    #[error("load {load} was stopped before it had started: start it again")]
    Cancelled {
        /// The load.
        load: String,
    },
}

/// The question whether another word was meant.
fn asked(nearest: &Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |name| format!("did you mean {name}? Else "))
}
