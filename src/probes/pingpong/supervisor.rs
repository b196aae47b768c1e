//! Supervises a ping-pong: gives up answers that do not arrive, and ends the run if the remote
//! endpoint has ended.

use std::{
    sync::Arc,
    thread::sleep,
    time::{Duration, Instant},
};

use tardy_hot::{
    clock::now_ns,
    stop::Stop,
    wakeup::{Ended, Series},
};

use super::near_end::sent;
use crate::{
    probes::{
        FarLoss, MessageEvidence, ProbeSupervisor, Schedule, SupervisorRecord, ThreadReport,
        far_end::RunningFarEnd,
    },
    run::{FarEndReason, FlowRecord, MessageRecord, OsError, messages::ROUND_TRIP},
    sys::signals,
    transports::page::Interrupter,
};

/// The answers in a row that may be given up before the run is: a peer that is gone says nothing,
/// and a run of many samples would continue for years.
const IN_A_ROW: u64 = 10;

/// How long a remote endpoint whose port has closed may take until its process has ended.
const LAST_WORD: Duration = Duration::from_millis(500);

/// Whether answers come, seen from outside the measuring thread.
#[derive(Debug)]
pub(super) struct Answers {
    series: Arc<Series>,
    scratch: Arc<Series>,
    tid: i32,
    interrupter: Option<Interrupter>,
    timeout_ns: i64,
    start_ns: i64,
    /// Messages so far, of which answered, and since when they are so many.
    seen: (u64, u64, i64),
    /// Given up since the last answer.
    in_a_row: u64,
}

impl Answers {
    pub(super) fn new(
        series: Arc<Series>,
        scratch: Arc<Series>,
        tid: i32,
        interrupter: Option<Interrupter>,
        timeout_ns: i64,
    ) -> Self {
        let seen = (0, 0, i64::MAX);
        Self { series, scratch, tid, interrupter, timeout_ns, start_ns: 0, seen, in_a_row: 0 }
    }

    fn start(&mut self, schedule: Schedule) {
        self.start_ns = schedule.start_ns;
        self.seen.2 = schedule.warmup_ns;
    }

    /// Looks how far it has come; whether an answer is overdue.
    fn is_overdue(&mut self, now_ns: i64) -> bool {
        let sent = sent(&self.series) + sent(&self.scratch);
        let answered = self.series.tally.totals().count + self.scratch.tally.totals().count;
        if sent == self.seen.0 {
            return now_ns.saturating_sub(self.seen.2) > self.timeout_ns;
        }
        let given_up = (sent - self.seen.0).saturating_sub(answered - self.seen.1);
        self.in_a_row = if answered == self.seen.1 { self.in_a_row + given_up } else { 0 };
        self.seen = (sent, answered, now_ns);
        false
    }

    /// Ends the wait for an answer. To be repeated: a nudge between two turns has no effect.
    fn nudge(&self) {
        signals::nudge(self.tid);
        if let Some(interrupter) = &self.interrupter {
            interrupter.interrupt();
        }
    }

    /// Why continuing is useless, if it is.
    fn silence(&self) -> Option<FarEndReason> {
        (self.in_a_row >= IN_A_ROW)
            .then_some(FarEndReason::Silent { answers: IN_A_ROW, timeout_ns: self.timeout_ns })
    }

    fn flow(&self) -> FlowRecord {
        let totals = self.series.tally.totals();
        FlowRecord {
            series: ROUND_TRIP.into(),
            sent: totals.count + totals.missed,
            received: totals.count,
            lost: totals.missed,
            ..FlowRecord::default()
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct PingSupervisor {
    /// `None` if it is not this tardy's.
    far_end: Option<RunningFarEnd>,
    answers: Answers,
    record: MessageRecord,
    /// How the remote endpoint went away, if it did.
    ended: Option<FarLoss>,
    /// No wait is ended but by the other end: see `tardy_hot::ports::pi_mutex`.
    held: bool,
}

impl PingSupervisor {
    pub(super) const fn new(
        far_end: Option<RunningFarEnd>,
        answers: Answers,
        record: MessageRecord,
        held: bool,
    ) -> Self {
        Self { far_end, answers, record, ended: None, held }
    }

    fn note_end(&mut self, reason: FarEndReason) {
        let at_ns = now_ns() - self.answers.start_ns;
        self.ended.get_or_insert(FarLoss { reason, at_ns });
    }

    /// A measuring thread whose port says that the other end is gone; the process there may take a
    /// little longer to be gone.
    fn why_failed(&mut self, errno: i32) -> Option<FarEndReason> {
        // The remote endpoint is there, and its answers are not what was agreed.
        match errno {
            libc::EMSGSIZE => return Some(FarEndReason::AnswerTooLong),
            libc::EBADMSG => return Some(FarEndReason::AnswerTooShort),
            _ => {}
        }
        let Some(far_end) = &mut self.far_end else {
            return Some(FarEndReason::TransportFailed { error: OsError::of(errno) });
        };
        let deadline = Instant::now() + LAST_WORD;
        loop {
            let how = far_end.poll();
            if how.is_some() || Instant::now() > deadline {
                return how.map(|how| FarEndReason::Gone { how });
            }
            sleep(Duration::from_millis(5));
        }
    }
}

impl ProbeSupervisor for PingSupervisor {
    fn start(&mut self, schedule: Schedule) {
        self.answers.start(schedule);
        if let Some(far_end) = &mut self.far_end {
            far_end.go(schedule);
        }
    }

    fn poll(&mut self, stop: &Stop) {
        let is_overdue = self.answers.is_overdue(now_ns());
        if is_overdue && self.held {
            // The local endpoint is freed by the remote one's end, and by nothing else.
            self.note_end(FarEndReason::Killed { timeout_ns: self.answers.timeout_ns });
            self.far_end.iter_mut().for_each(RunningFarEnd::kill);
        }
        if is_overdue || stop.is_set() {
            self.answers.nudge();
        }
        if self.ended.is_none() && !stop.is_set() {
            let gone = self.far_end.as_mut().and_then(RunningFarEnd::poll);
            let gone = gone.map(|how| FarEndReason::Gone { how });
            if let Some(reason) = gone.or_else(|| self.answers.silence()) {
                self.note_end(reason);
            }
        }
        if self.ended.is_some() {
            stop.set();
        }
    }

    fn closes_first(&self) -> bool {
        self.held
    }

    fn finish(mut self: Box<Self>, reports: &mut Vec<ThreadReport>) -> SupervisorRecord {
        for report in reports.iter_mut() {
            let Ended::Failed(errno) = report.ended else { continue };
            if self.ended.is_none()
                && let Some(reason) = self.why_failed(errno)
            {
                self.note_end(reason);
            }
            if self.ended.is_some() {
                report.ended = Ended::Stopped;
            }
        }
        if let Some(far_end) = self.far_end.take() {
            let mut report = far_end.finish().report;
            if let Some(report) = report.as_mut().filter(|_| self.held) {
                // It ended because the local endpoint did.
                report.ended = Ended::Stopped;
            }
            reports.extend(report);
        }
        self.record.flows.push(self.answers.flow());
        let evidence = MessageEvidence { far_loss: self.ended, ..MessageEvidence::default() };
        SupervisorRecord { messages: Some(self.record), evidence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers() -> (Answers, Arc<Series>) {
        let series = Arc::new(Series::default());
        let mut answers = Answers::new(Arc::clone(&series), Arc::default(), 0, None, 100);
        answers.seen.2 = 0;
        (answers, series)
    }

    #[test]
    fn an_answer_is_overdue_after_the_timeout_since_the_last_one_or_the_last_given_up() {
        let (mut answers, series) = answers();
        assert!(!answers.is_overdue(100) && answers.is_overdue(101));
        series.record(5);
        assert!(!answers.is_overdue(500) && !answers.is_overdue(600) && answers.is_overdue(601));
        series.tally.add_missed(1);
        assert!(!answers.is_overdue(602) && !answers.is_overdue(700));
    }

    #[test]
    fn ten_answers_in_a_row_that_do_not_come_are_the_end_and_one_that_comes_is_a_beginning() {
        let (mut answers, series) = answers();
        for turn in 0..9 {
            series.tally.add_missed(1);
            answers.is_overdue(turn);
        }
        assert_eq!(answers.silence(), None);
        series.record(5);
        answers.is_overdue(10);
        series.tally.add_missed(9);
        answers.is_overdue(11);
        assert_eq!(answers.silence(), None);
        series.tally.add_missed(1);
        answers.is_overdue(12);
        let ten = FarEndReason::Silent { answers: 10, timeout_ns: 100 };
        assert_eq!(answers.silence(), Some(ten));
        assert_eq!((answers.flow().sent, answers.flow().lost), (20, 19));
    }
}
