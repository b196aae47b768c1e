//! Supervises the reader and the sender: waits that nothing ends, a sender that has ended, a clock
//! that is stepped.

use std::sync::{Arc, PoisonError, atomic::Ordering};

use tardy_hot::{clock::now_ns, receive::Own, stop::Stop, wakeup::Ended};

use super::{
    FAR, SERIES,
    near_end::{ReceiveOutcome, ReceiveShared},
    nic::NicLatency,
};
use crate::{
    probes::{
        FarLoss, MessageEvidence, ProbeSupervisor, ReceiveEvidence, Schedule, SupervisorRecord,
        ThreadReport,
        far_end::{FarEndResult, RunningFarEnd},
    },
    run::{FarEndReason, FlowRecord, MessageRecord, SendRefusal},
    sys::{clock::realtime_offset_ns, signals},
    transports::streams::second_of,
};

/// See the module.
#[derive(Debug)]
pub(super) struct ReceiveKeeper {
    far_end: Option<RunningFarEnd>,
    tid: i32,
    shared: Arc<ReceiveShared>,
    record: MessageRecord,
    /// Packets per second that were asked for.
    per_s: Option<f64>,
    start_ns: i64,
    /// After this the sender has nothing to do any more.
    end_ns: i64,
    steps: Steps,
    nic: Option<NicLatency>,
    /// How the sender went away, if it did.
    ended: Option<FarLoss>,
}

/// How far `CLOCK_REALTIME` was ahead at first, and is now.
#[derive(Debug, Default)]
pub(super) struct Steps {
    known_ns: i64,
    /// The largest step, ns; 0 for none.
    pub largest_ns: i64,
}

/// Less is the error of comparing two clocks, ns.
const STEP_NS: i64 = 10_000;

impl Steps {
    fn poll(&mut self, offset_ns: i64) {
        let step_ns = offset_ns - self.known_ns;
        if step_ns.abs() > STEP_NS {
            self.known_ns = offset_ns;
            self.note(step_ns);
        }
    }

    fn note(&mut self, step_ns: i64) {
        if step_ns.unsigned_abs() > self.largest_ns.unsigned_abs() {
            self.largest_ns = step_ns;
        }
    }
}

impl ReceiveKeeper {
    pub(super) fn new(
        far_end: Option<RunningFarEnd>,
        tid: i32,
        shared: Arc<ReceiveShared>,
        record: MessageRecord,
        per_s: Option<f64>,
    ) -> Self {
        let (steps, ended) = (Steps::default(), None);
        Self {
            far_end,
            tid,
            shared,
            record,
            per_s,
            start_ns: 0,
            end_ns: 0,
            steps,
            nic: None,
            ended,
        }
    }

    /// Looks after stamps of a NIC too.
    pub(super) fn with_nic(self, nic: Option<NicLatency>) -> Self {
        Self { nic, ..self }
    }

    fn flow(&self, outcome: &ReceiveOutcome, sent: Option<u64>, end_ns: i64) -> FlowRecord {
        let mut flow = FlowRecord { series: SERIES.into(), ..FlowRecord::default() };
        match &outcome.own {
            Some(own) => of_sender(&mut flow, own, sent.filter(|_| outcome.is_out_of_time)),
            None => {
                let (first, last) = outcome.seen.dropped.unwrap_or_default();
                flow.received = outcome.seen.packets;
                flow.lost = u64::from(last.wrapping_sub(first));
                flow.sent = flow.received + flow.lost;
            }
        }
        let length_s = (end_ns - self.start_ns) as f64 / 1e9;
        flow.wanted_per_s = self.per_s;
        flow.achieved_per_s = (length_s > 0.0).then(|| flow.sent as f64 / length_s);
        flow
    }
}

/// Without the number that were `sent`, the last that came is taken for the last one: then the
/// reader ended before the sender.
fn of_sender(flow: &mut FlowRecord, own: &Own, sent: Option<u64>) {
    let order = own.order;
    let spanned = order.span.map_or(0, |(lowest, next)| next - lowest);
    flow.sent = sent.unwrap_or(spanned);
    flow.received = order.received;
    flow.lost = flow.sent.saturating_sub(flow.received);
    flow.duplicated = order.duplicated;
    flow.reordered = order.reordered;
    flow.foreign = own.foreign;
}

impl ProbeSupervisor for ReceiveKeeper {
    fn start(&mut self, schedule: Schedule) {
        (self.start_ns, self.end_ns) = (schedule.start_ns, schedule.end_ns);
        self.steps.known_ns = realtime_offset_ns();
        if let Some(far_end) = &mut self.far_end {
            far_end.go(schedule);
        }
    }

    fn poll(&mut self, stop: &Stop) {
        self.steps.poll(realtime_offset_ns());
        if let Some(nic) = &mut self.nic {
            nic.poll();
        }
        let now_ns = now_ns();
        let until_ns = self.shared.waits_until_ns.load(Ordering::Relaxed);
        if until_ns != 0 && now_ns >= until_ns {
            // Again and again: a nudge between two turns has no effect.
            signals::nudge(self.tid);
        }
        if stop.is_set() || now_ns >= self.end_ns || self.ended.is_some() {
            return;
        }
        if let Some(how) = self.far_end.as_mut().and_then(RunningFarEnd::poll) {
            let reason = FarEndReason::Gone { how };
            self.ended = Some(FarLoss { reason, at_ns: now_ns - self.start_ns });
            stop.set();
        }
    }

    fn finish(mut self: Box<Self>, reports: &mut Vec<ThreadReport>) -> SupervisorRecord {
        self.steps.poll(realtime_offset_ns());
        let near = reports
            .first()
            .map_or((Ended::Stopped, now_ns()), |report| (report.ended, report.ended_ns));
        let end = self.far_end.take().map(RunningFarEnd::finish);
        let value =
            end.as_ref().map(|FarEndResult { value, .. }| value.clone()).unwrap_or_default();
        reports.extend(end.and_then(|end| end.report));
        let outcome = std::mem::take(
            &mut *self.shared.outcome.lock().unwrap_or_else(PoisonError::into_inner),
        );
        self.steps.note(outcome.seen.step_ns);
        let flow = self.flow(&outcome, value["sent"].as_u64(), near.1);
        let size = usize::try_from(self.record.size).unwrap_or(usize::MAX);
        let packets = value["refused"].as_u64().unwrap_or(0);
        let refused = SendRefusal { end: FAR.into(), packets, error: None };
        let evidence = MessageEvidence {
            far_loss: self.ended,
            refused: Some(refused).filter(|refused| refused.packets > 0).into_iter().collect(),
            needed_bytes: self.per_s.map(|per_s| second_of(size, per_s) as u64),
            receive: Some(ReceiveEvidence {
                seen: outcome.seen,
                step_ns: self.steps.largest_ns,
                could_poll: outcome.could_poll,
            }),
            ..MessageEvidence::default()
        };
        self.record.flows.push(flow);
        if let Some(nic) = &mut self.nic {
            nic.poll();
            self.record.clock = nic.record();
        }
        SupervisorRecord { messages: Some(self.record), evidence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_step_is_reported_and_noise_is_none() {
        let mut steps = Steps { known_ns: 5, largest_ns: 0 };
        for offset_ns in [105, 7_000, -3] {
            steps.poll(offset_ns);
        }
        assert_eq!(steps.largest_ns, 0);
        for offset_ns in [3_000_000, -4_000_000, -3_000_000] {
            steps.poll(offset_ns);
        }
        assert_eq!(steps.largest_ns, -7_000_000);
    }

    #[test]
    fn what_was_sent_after_the_reader_ended_is_not_lost() {
        let mut own = Own { foreign: 3, ..Own::default() };
        for number in [10, 11, 13, 13, 12, 15] {
            own.order.note(number);
        }
        let of = |sent| {
            let mut flow = FlowRecord::default();
            of_sender(&mut flow, &own, sent);
            (flow.sent, flow.received, flow.lost, flow.duplicated, flow.reordered, flow.foreign)
        };
        assert_eq!(of(None), (6, 5, 1, 1, 1, 3));
        assert_eq!(of(Some(20)), (20, 5, 15, 1, 1, 3));
    }
}
