//! The end in this process: its thread sends, and receives what comes back.

use std::{
    os::fd::OwnedFd,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use tardy_hot::{
    clock::now_ns,
    ring::{Reader, Writer},
    stop::Stop,
    stream::{Counts, Passage},
    wakeup::Ended,
};

use super::{
    end::{self, EndPlan, OpenEnd},
    keeper::NearEnd,
};
use crate::{
    probes::{ArmError, Armed, Recorded, Report, Schedule},
    setup::threads::{Found, Terms},
    sys::{faults::Usage, memory, sched},
};

/// What the measuring thread is given.
pub struct Near {
    plan: EndPlan,
    socket: OwnedFd,
    terms: Terms,
    name: String,
    passages: Writer<Passage>,
    shared: Shared,
}

/// What others see of it.
pub struct Shared {
    counts: Arc<Counts>,
    stop: Arc<Stop>,
    enough: Arc<Stop>,
}

impl Shared {
    fn again(&self) -> Self {
        let Self { counts, stop, enough } = self;
        let (counts, stop, enough) = (Arc::clone(counts), Arc::clone(stop), Arc::clone(enough));
        Self { counts, stop, enough }
    }
}

impl Near {
    /// By its plan, with its socket; its report will be that of the series `name`.
    #[must_use]
    pub fn new(
        plan: EndPlan,
        socket: OwnedFd,
        terms: Terms,
        name: &str,
        stop: &Arc<Stop>,
    ) -> (Self, Reader<Passage>) {
        let (passages, taken) = plan.ring();
        let shared =
            Shared { counts: Arc::default(), stop: Arc::clone(stop), enough: Arc::default() };
        (Self { plan, socket, terms, name: name.into(), passages, shared }, taken)
    }

    /// Starts its thread.
    ///
    /// # Errors
    /// The thread cannot be made or set up.
    pub fn spawn(
        self,
        armed: &mut Armed,
        recorded: Recorded,
        passages: Reader<Passage>,
    ) -> Result<NearEnd, ArmError> {
        let Self { plan, socket, terms, name, passages: into, shared } = self;
        let (own, own_terms, own_plan) = (shared.again(), terms.clone(), plan.clone());
        let (series, own_name) = (name.clone(), name);
        let counts = Arc::clone(&shared.counts);
        let open = move || {
            let found = own_terms.apply().map_err(|source| ArmError::Terms { series, source })?;
            let end = OpenEnd::new(own_plan, socket, into, counts);
            Ok((found, end.map_err(ArmError::Transport)?))
        };
        armed.spawn_with(recorded, open, move |schedule, found, end| {
            measure(&own_name, &plan, end, &own, &schedule, (&terms, found))
        })?;
        let tid = armed.tids().last().copied().unwrap_or_default();
        let Shared { counts, enough, .. } = shared;
        Ok(NearEnd { counts, passages, enough, tid })
    }
}

fn measure(
    name: &str,
    plan: &EndPlan,
    end: &mut OpenEnd,
    shared: &Shared,
    schedule: &Schedule,
    (terms, found): (&Terms, &Found),
) -> Report {
    memory::touch_stack();
    let migrations_before = sched::migrations_of_this_thread();
    let before = Usage::of_this_thread();
    let ended = end.run(schedule, &shared.stop, &shared.enough);
    let usage = Usage::of_this_thread().since(before);
    let over_ns = end::end_of(&plan.course(schedule, plan.sends));
    // What it received afterwards was sent before.
    let ended_ns = match ended {
        Ended::Done if shared.counts.due.load(Relaxed) > 0 => now_ns().min(over_ns),
        _ => now_ns(),
    };
    let at_end = Found::of_this_thread().ok();
    let broken = terms.broken_by(found).or_else(|| terms.broken_by(&at_end?));
    let migrations =
        sched::migrations_of_this_thread().and_then(|after| after.checked_sub(migrations_before?));
    Report { usage, broken, migrations, ended_ns, ..Report::of(name, ended) }
}
