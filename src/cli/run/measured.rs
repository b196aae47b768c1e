//! A run, from its plan to its record.

use anyhow::{Context as _, Result};

use crate::{
    cli::{
        output,
        progress::{RunStatus, signal_name},
    },
    run::{Document, RunDirectory},
    session::{CALIBRATION_NS, RunPlan, RunProgress, Session},
    sys::signals::{self, Quit},
    units::span,
};

/// What SIGUSR1 does to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UserSignal {
    /// It ends it.
    Ends,
    /// It shows how far it is, as in cyclictest.
    ShowsStatus,
}

/// Measures and records.
///
/// # Errors
/// What is in the way, or went wrong.
pub(super) fn measure(
    plan: RunPlan,
    quiet: bool,
    live: bool,
    user_signal: UserSignal,
) -> Result<(Document, RunDirectory)> {
    let handler = "cannot set a signal handler";
    let (quit, asked) = match user_signal {
        UserSignal::Ends => (Quit::listen().context(handler)?, None),
        UserSignal::ShowsStatus => {
            let quit = Quit::listen_without_user_signal().context(handler)?;
            (quit, Some(signals::note_user_signal().context(handler)?))
        }
    };
    // Before any thread that measures, and before memory is locked.
    let live = live.then(|| RunStatus::live(&plan.directory));
    let session = Session::arm(plan)?;
    if session.calibrates() && !quiet && live.is_none() {
        let length = span(CALIBRATION_NS as f64 / 1e9);
        output::notice(&format!("First measuring the cost of tracing, for {length}."));
    }
    let held = session.directory();
    let mut status = live.unwrap_or_else(|| RunStatus::new(quiet)).answering(asked);
    quit.rings(session.bell()).context(handler)?;
    let pace = status.pace();
    let each = |elapsed_ns: i64, now: &dyn Fn() -> RunProgress| status.show(elapsed_ns, now);
    let document = session.run(|| quit.seen().map(signal_name), pace.map(|pace| (pace, each)))?;
    status.clear();
    Ok((document, held))
}
