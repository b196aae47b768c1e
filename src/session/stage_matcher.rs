//! The stages of wake-ups out of the kernel's own trace: every sample is handed over, and waits
//! until what was traced has come as far as its end.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use tardy_hot::stages::{Late, Stages, ThreadRecord};

use crate::{
    kernel::tracefs::{TimerWakeup, TracefsTracer},
    probes::{TracedSamples, TracedThread},
    run::LostEvents,
};

/// What a thread's samples wait in.
#[derive(Debug, Default)]
struct Waiting {
    samples: VecDeque<Late>,
    /// Those for which there was no room, as counted before.
    dropped: u64,
}

/// Finds the stages of all threads.
#[derive(Debug)]
pub(super) struct StageMatcher {
    /// What is read.
    pub(super) tracer: TracefsTracer,
    waiting: Vec<Waiting>,
}

impl StageMatcher {
    pub(super) const fn new(tracer: TracefsTracer) -> Self {
        Self { tracer, waiting: Vec::new() }
    }

    /// What the tracer lost.
    pub(super) fn lost_on(&self) -> Vec<LostEvents> {
        let lost = self.tracer.lost().into_iter();
        lost.map(|lost| LostEvents { cpu: lost.cpu, events: lost.events }).collect()
    }

    /// Takes what the threads have handed over, in the order in which the tracer follows them,
    /// reads what has come, and records the stages of those samples that it reaches; `late` gets
    /// those over their thread's threshold. Where all is over, so do all samples.
    pub(super) fn look(
        &mut self,
        threads: &mut [TracedThread],
        is_over: bool,
        mut late: impl FnMut(usize, Late),
    ) {
        self.waiting.resize_with(threads.len(), Waiting::default);
        for (thread, waiting) in threads.iter_mut().zip(&mut self.waiting) {
            if let TracedSamples::ToMatch { all, .. } = &mut thread.samples {
                all.drain(|sample| waiting.samples.push_back(sample));
                add(thread_unmatched(thread), waiting.new_drops(&thread.samples));
            }
        }
        let until_ns = self.tracer.poll(is_over);
        for (number, thread) in threads.iter().enumerate() {
            let Some(waiting) = self.waiting.get_mut(number) else { continue };
            while let Some(sample) = waiting.samples.front().copied() {
                let ended_ns = sample.t_ns.saturating_add(sample.latency_ns).max(0).cast_unsigned();
                if ended_ns > until_ns {
                    break;
                }
                waiting.samples.pop_front();
                let sample = matched(&mut self.tracer, number, thread, sample, ended_ns);
                if sample.latency_ns > thread.control.late_over_ns.load(Relaxed) {
                    late(number, sample);
                }
            }
        }
    }
}

impl Waiting {
    fn new_drops(&mut self, samples: &TracedSamples) -> u64 {
        let TracedSamples::ToMatch { all, .. } = samples else { return 0 };
        let before = std::mem::replace(&mut self.dropped, all.dropped());
        self.dropped.saturating_sub(before)
    }
}

fn thread_unmatched(thread: &TracedThread) -> &AtomicU64 {
    &thread.control.unmatched
}

/// One writer: a load and a store suffice.
fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Relaxed) + more, Relaxed);
}

/// The sample with its stages, which are recorded; without where its wake-up was not seen whole.
fn matched(
    tracer: &mut TracefsTracer,
    number: usize,
    thread: &TracedThread,
    sample: Late,
    ended_ns: u64,
) -> Late {
    let TracedSamples::ToMatch { stages, softirq, within_ns, .. } = &thread.samples else {
        return sample;
    };
    let from_ns = sample.t_ns.max(0).cast_unsigned();
    let wakeup = tracer.matching(number, (from_ns, *within_ns), ended_ns);
    let Some((found, wakeup)) = wakeup.and_then(|it| Some((parts(&it, sample, *within_ns)?, it)))
    else {
        add(thread_unmatched(thread), 1);
        return sample;
    };
    stages.irq.record(found.irq_ns);
    let rest_ns = softirq.as_ref().map_or(found.softirq_ns, |series| {
        series.record(found.softirq_ns);
        0
    });
    stages.handler.record(found.handler_ns + rest_ns);
    stages.dispatch.record(found.dispatch_ns);
    stages.user.record(found.user_ns);
    let expires_ns = wakeup.expires_ns.cast_signed();
    Late { expires_ns, stages: found, matched: true, cpus: wakeup.cpus, ..sample }
}

/// By the rule that holds for the BPF side.
fn parts(wakeup: &TimerWakeup, sample: Late, within_ns: u64) -> Option<Stages> {
    let record = ThreadRecord::default();
    for (field, value) in [
        (&record.expires_ns, wakeup.expires_ns),
        (&record.entry_ns, wakeup.entry_ns),
        (&record.callback_ns, wakeup.callback_ns),
        (&record.waking_ns, wakeup.waking_ns),
        (&record.switch_ns, wakeup.switch_ns),
    ] {
        field.store(value, Relaxed);
    }
    record.in_softirq.store(wakeup.in_softirq.into(), Relaxed);
    record.stages(sample.t_ns, sample.latency_ns, within_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wakeup_has_the_parts_of_its_sample() {
        let wakeup = TimerWakeup {
            expires_ns: 1000,
            entry_ns: 1005,
            callback_ns: 1010,
            in_softirq: true,
            waking_ns: 1030,
            switch_ns: 1100,
            cpus: (0, 1),
        };
        let sample = Late { t_ns: 1000, latency_ns: 150, ..Late::default() };
        let found = parts(&wakeup, sample, 0).unwrap();
        let all = [found.irq_ns, found.softirq_ns, found.handler_ns, found.dispatch_ns];
        assert_eq!((all, found.user_ns), ([5, 5, 20, 70], 50));
        let hard = TimerWakeup { in_softirq: false, ..wakeup };
        assert_eq!(parts(&hard, sample, 0).unwrap().handler_ns, 25);
        let other = Late { t_ns: 999, ..sample };
        assert_eq!(parts(&wakeup, other, 0), None);
    }
}
