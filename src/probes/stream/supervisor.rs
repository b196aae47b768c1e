//! Looks after a stream: takes what both ends received into the series, ends the run if a remote
//! endpoint has ended, and reports at the end what was delivered.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tardy_hot::{
    clock::now_ns,
    stop::Stop,
    stream::{Counts, TracedPassage},
    wakeup::Ended,
};

use super::{
    end::{self, LINGER_NS, PATIENCE_NS, SendPlan},
    far_end::FarEndCounts,
    flow::Flow,
    one_way::OneWay,
    passages::{self, PassageReader},
};
use crate::{
    probes::{
        FarLoss, MessageEvidence, ProbeSupervisor, Schedule, SupervisorRecord, ThreadReport,
        far_end::RunningFarEnd,
    },
    run::{EndCount, FarEndReason, FlowRecord, MessageRecord, OsError, SendRefusal},
    sys::signals,
};

/// A remote endpoint, and what it received.
#[derive(Debug)]
pub(super) struct Receiving {
    /// The end; absent once it has been asked for its report.
    pub far_end: Option<RunningFarEnd>,
    /// What it received.
    pub flow: Flow,
    /// Bytes of passages that are not whole yet.
    pub rest: Vec<u8>,
}

impl Receiving {
    fn drain(&mut self) {
        if let Some(far_end) = &mut self.far_end {
            far_end.fresh(&mut self.rest);
        }
        let is_traced = self.flow.stages.is_some();
        let flow = &mut self.flow;
        passages::read(&mut self.rest, is_traced, |traced| {
            let _ = flow.take_traced(&traced);
        });
    }
}

/// What comes back to this process.
#[derive(Debug)]
pub(super) struct Back {
    /// What it received.
    pub flow: Flow,
    /// What is sent.
    pub sending: SendPlan,
    /// By whom.
    pub sender: ReturnSender,
    /// Each way by itself, where packets went both.
    pub ways: Option<OneWay>,
}

impl Back {
    fn take(&mut self, traced: &TracedPassage) {
        let first = self.flow.take_traced(traced);
        if let (Some(is_recorded), Some(ways)) = (first, &mut self.ways) {
            ways.take(&traced.passage, is_recorded);
        }
    }
}

/// Who sends what comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReturnSender {
    /// The remote endpoint.
    Far,
    /// This end: an echo sends it back.
    Near,
}

/// The measuring thread, seen from outside.
#[derive(Debug)]
pub(super) struct StreamNearEnd {
    /// What it counts.
    pub counts: Arc<Counts>,
    /// What it received.
    pub passages: PassageReader,
    /// Set when all has come that it waits for.
    pub enough: Arc<Stop>,
    /// The kernel's number of it.
    pub tid: i32,
}

/// See the module.
#[derive(Debug)]
pub(super) struct StreamKeeper {
    /// Of both directions, packets in 1,000 s.
    pub per_1000_s: u64,
    /// The measuring thread.
    pub near: StreamNearEnd,
    /// The remote endpoints, in the order of their series.
    pub there: Vec<Receiving>,
    /// What comes back, where something does.
    pub back: Option<Back>,
    /// What is known of both ends.
    pub record: MessageRecord,
    /// What is known of the messages beside, so far.
    pub evidence: MessageEvidence,
    /// When it goes, once that is known.
    pub schedule: Option<Schedule>,
    /// How a remote endpoint went away, if one did.
    pub ended: Option<FarLoss>,
    /// How many packets were there when there were last more, and when that was, ns.
    pub progress: (u64, i64),
}

impl StreamKeeper {
    fn drain(&mut self) {
        self.there.iter_mut().for_each(Receiving::drain);
        let Some(back) = &mut self.back else { return };
        self.near.passages.drain(|traced| back.take(traced));
    }

    /// What took longer than the limit that ends the run, ns.
    fn over_ns(&self) -> Option<i64> {
        let limit_ns = self.schedule.map_or(i64::MAX, |schedule| schedule.stop_over_ns);
        let back = self.back.iter().map(|back| back.flow.worst_ns);
        let there = self.there.iter().map(|there| there.flow.worst_ns);
        there.chain(back).find(|worst_ns| *worst_ns > limit_ns)
    }

    /// Whether nothing has come for longer than a packet may be under way.
    fn is_quiet(&mut self) -> bool {
        let back = self.back.iter().map(|back| back.flow.known());
        let known = self.there.iter().map(|there| there.flow.known()).chain(back).sum();
        if known > self.progress.0 {
            self.progress = (known, now_ns());
        }
        now_ns() - self.progress.1 > LINGER_NS
    }

    /// Whether all has come back, or no more will.
    fn has_all_back(&mut self) -> bool {
        let is_quiet = self.is_quiet();
        let (Some(back), Some(schedule)) = (&self.back, &self.schedule) else { return true };
        let there = end::packet_schedule(self.per_1000_s, schedule, Some(back.sending));
        back.flow.known() >= there.packets || (is_quiet && now_ns() > end::end_of(&there))
    }

    /// Packets that the local endpoint has had to send.
    fn due(&self) -> u64 {
        FarEndCounts::of(&self.near.counts, 0).due
    }

    /// Waits for what is still under way to remote endpoints, as long as something may be.
    fn wait_for_the_last(&mut self) {
        // Those behind a stall come all at once, and are still under way until then.
        let deadline = Instant::now() + Duration::from_nanos(PATIENCE_NS.unsigned_abs());
        self.progress.1 = now_ns();
        let due = self.due();
        loop {
            self.drain();
            let is_whole = |there: &Receiving| there.far_end.is_none() || there.flow.known() >= due;
            let is_over = self.ended.is_some() || self.is_quiet() || Instant::now() > deadline;
            if is_over || self.there.iter().all(is_whole) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends the remote endpoints; what each of them counted.
    fn finish_far(&mut self, reports: &mut Vec<ThreadReport>) -> Vec<Option<FarEndCounts>> {
        let ended_ns = reports.iter().map(|report| report.ended_ns).max();
        let mut counts = Vec::new();
        for there in &mut self.there {
            let Some(far_end) = there.far_end.take() else { continue };
            let end = far_end.finish();
            there.rest.extend_from_slice(&end.fresh);
            there.drain();
            counts.push(serde_json::from_value(end.value).ok());
            if let Some(mut report) = end.report {
                // It waited for the last packet and for a word; the run was over before.
                report.ended_ns = report.ended_ns.min(ended_ns.unwrap_or(report.ended_ns));
                if self.ended.is_some() && matches!(report.ended, Ended::Failed(_)) {
                    report.ended = Ended::Stopped;
                }
                reports.push(report);
            }
        }
        counts
    }

    /// Packets of the schedule that an end has not even tried to send, added to those that its
    /// socket did not take.
    fn with_untried(&self, counted: FarEndCounts, sending: Option<SendPlan>) -> FarEndCounts {
        let planned = |schedule| end::packet_schedule(self.per_1000_s, schedule, sending);
        let packets = self.schedule.as_ref().map_or(0, |schedule| planned(schedule).packets);
        FarEndCounts { unsent: counted.unsent + packets.saturating_sub(counted.due), ..counted }
    }

    fn flows(
        &self,
        near: &FarEndCounts,
        far_end: &[Option<FarEndCounts>],
        was_stopped: bool,
    ) -> Vec<FlowRecord> {
        let Some(schedule) = &self.schedule else { return Vec::new() };
        let wanted = self.per_1000_s as f64 / 1e3;
        let planned = |sending| end::packet_schedule(self.per_1000_s, schedule, sending);
        let none = FarEndCounts::default();
        let mut flows = Vec::new();
        let packets = |sending, due: u64| {
            // What was due and never came to be sent is lost to the end that waits for it.
            let planned = planned(sending);
            let due = if was_stopped { due } else { planned.packets };
            due.saturating_sub(planned.recorded_from)
        };
        let sent = packets(None, near.due);
        for (there, counted) in self.there.iter().zip(far_end) {
            flows.push(there.flow.record(sent, counted.as_ref().unwrap_or(&none), wanted));
        }
        if let Some(back) = &self.back {
            // Of what was sent after this end stopped only what arrived is known.
            let sent = packets(Some(back.sending), back.flow.numbers_seen());
            flows.push(back.flow.record(sent, near, wanted));
        }
        flows
    }
}

/// The ends of which there are some, and how many.
fn counts(ends: &[(&str, FarEndCounts)], of: fn(&FarEndCounts) -> u64) -> Vec<EndCount> {
    let counts =
        ends.iter().map(|(end, counted)| EndCount { end: (*end).into(), count: of(counted) });
    counts.filter(|of| of.count > 0).collect()
}

/// Packets that the system refused to an end, if it did.
fn refusal((end, counted): &(&str, FarEndCounts)) -> Option<SendRefusal> {
    let error = Some(OsError::of(counted.errno));
    (counted.failed > 0).then(|| SendRefusal { end: (*end).into(), packets: counted.failed, error })
}

impl ProbeSupervisor for StreamKeeper {
    fn start(&mut self, schedule: Schedule) {
        self.schedule = Some(schedule);
        let from =
            |sending| end::packet_schedule(self.per_1000_s, &schedule, sending).recorded_from;
        let (there, back) = (from(None), self.back.as_ref().map(|back| from(Some(back.sending))));
        for receiving in &mut self.there {
            receiving.flow.begin(there);
            if let Some(far_end) = &mut receiving.far_end {
                far_end.go(schedule);
            }
        }
        if let (Some(back), Some(from)) = (&mut self.back, back) {
            back.flow.begin(from);
        }
    }

    fn poll(&mut self, stop: &Stop) {
        self.drain();
        if self.ended.is_none() && !stop.is_set() {
            let gone = self.there.iter_mut().find_map(|there| there.far_end.as_mut()?.poll());
            if let Some(how) = gone {
                let start_ns = self.schedule.map_or(0, |schedule| schedule.start_ns);
                let reason = FarEndReason::Gone { how };
                self.ended = Some(FarLoss { reason, at_ns: now_ns() - start_ns });
                stop.set();
            }
        }
        if let Some(over_ns) = self.over_ns() {
            stop.set_over(over_ns);
        }
        if self.back.is_some() && self.has_all_back() {
            self.near.enough.set();
            signals::nudge(self.near.tid);
        }
    }

    fn finish(mut self: Box<Self>, reports: &mut Vec<ThreadReport>) -> SupervisorRecord {
        let was_stopped = reports.iter().any(|report| report.ended != Ended::Done);
        self.wait_for_the_last();
        let mut far_end = self.finish_far(reports);
        self.drain();
        if let Some(ways) = self.back.as_mut().and_then(|back| back.ways.as_mut()) {
            ways.settle();
            self.record.clock = ways.record();
            self.evidence.clock = Some(ways.evidence());
        }
        let mut near = FarEndCounts::of(&self.near.counts, self.near.passages.dropped());
        let flows = self.flows(&near, &far_end, was_stopped);
        if !was_stopped {
            near = self.with_untried(near, None);
            let by_far = self.back.as_ref().filter(|back| back.sender == ReturnSender::Far);
            if let (Some(back), Some(Some(counted))) = (by_far, far_end.first_mut()) {
                *counted = self.with_untried(*counted, Some(back.sending));
            }
        }
        let names: Vec<String> = self.record.ends.iter().map(|end| end.name.clone()).collect();
        let known = std::iter::once(Some(near)).chain(far_end);
        let ends: Vec<(&str, FarEndCounts)> = names
            .iter()
            .zip(known)
            .filter_map(|(name, counted)| Some((name.as_str(), counted?)))
            .collect();
        self.record.flows = flows;
        let evidence = MessageEvidence {
            far_loss: self.ended.take(),
            unsent: counts(&ends, |counted| counted.unsent),
            refused: ends.iter().filter_map(refusal).collect(),
            unrecorded: counts(&ends, |counted| counted.dropped),
            ..self.evidence
        };
        SupervisorRecord { messages: Some(self.record), evidence }
    }
}
