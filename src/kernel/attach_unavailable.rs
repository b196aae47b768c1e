//! Why threads of others cannot be looked at.

use thiserror::Error;

use super::TracingUnavailable;

/// Why no thread can be looked at; each text names the remedy.
#[derive(Debug, Error)]
pub enum AttachUnavailable {
    /// A right or the kernel's types are missing.
    #[error("cannot look at threads of others: {0}")]
    Bpf(#[from] TracingUnavailable),
    /// The kernel lacks a tracepoint.
    #[error(
        "cannot look at threads of others: the kernel has no tracepoint {tracepoint}, or one with \
         other arguments; use a kernel of 5.12 or later (arm64: 5.18), as distributions build them"
    )]
    NoTracepoint {
        /// Its name.
        tracepoint: String,
    },
    /// Anything else.
    #[error(
        "cannot look at threads of others: {what}: {why}; please report this with the version of \
         the kernel"
    )]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        why: String,
    },
}

/// Something that the kernel or the machine refused.
pub(super) fn system(what: &str, why: &dyn std::fmt::Display) -> AttachUnavailable {
    AttachUnavailable::System { what: what.to_owned(), why: why.to_string() }
}
