//! Late samples on their way from the measuring threads to the blame, and what is usual for them.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use tardy_hot::{
    stages::Late,
    traced::StageSeries,
    trips::{Backlog, LateLeg, LatePacket, LateTrip},
    wakeup::Series,
};

use super::quantiles::{ENOUGH, quantile};
use crate::{
    peaks::{Blamer, MeasuredThread, MessageWay, TypicalLeg, UsualStages, WayKind},
    probes::{TracedSamples, TracedThread},
    run::{CYCLE, peaks::PACING},
};

/// The threads as the blamer knows them.
pub(super) fn followed(threads: &[TracedThread]) -> Vec<MeasuredThread> {
    threads.iter().map(measured).collect()
}

/// One of them.
pub(super) fn measured(thread: &TracedThread) -> MeasuredThread {
    MeasuredThread {
        series: thread.name.clone(),
        cpu: thread.cpu,
        tid: thread.tid.unsigned_abs(),
        prio: thread.priority.0,
        real_time: thread.priority.1,
        spins: matches!(thread.samples, TracedSamples::Gaps { .. }),
        works: matches!(thread.samples, TracedSamples::Cycles { .. } | TracedSamples::Work { .. }),
    }
}

/// Hands over what thread `number` has found late.
pub(super) fn collect(blamer: &mut Blamer, number: usize, samples: &mut TracedSamples) {
    match samples {
        TracedSamples::WakeUps(_, late)
        | TracedSamples::Work { late, .. }
        | TracedSamples::Gaps { late, .. } => {
            late.drain(|late| blamer.add(number, late));
        }
        TracedSamples::Attached { usual, late } | TracedSamples::Cycles { usual, late } => {
            blamer.set_prio(number, usual.prio.load(Ordering::Relaxed) as i16);
            late.drain(|late| blamer.add(number, late));
        }
        TracedSamples::RoundTrips(_, late) => {
            late.drain(|trip| blamer.add_message(number, whole(&trip), ways(number, &trip).into()));
        }
        TracedSamples::Packets { late, way, sender, .. } => {
            let (way, sender) = (*way, *sender);
            late.drain(|packet| {
                let ways = ways_of_packet((way, sender, number), &packet);
                blamer.add_message(number, whole_packet(&packet), ways);
            });
        }
        // Late is what has been matched.
        TracedSamples::ToMatch { .. } | TracedSamples::None => {}
    }
}

/// Lets what is usual for thread `number` follow the medians of its parts.
pub(super) fn follow(blamer: &mut Blamer, number: usize, samples: &TracedSamples) {
    match samples {
        TracedSamples::WakeUps(stages, _)
        | TracedSamples::Work { stages, .. }
        | TracedSamples::ToMatch { stages, .. } => {
            if let Some(usual) = usual(stages) {
                blamer.set_usual(number, usual);
            }
        }
        TracedSamples::RoundTrips(parts, _) => {
            if parts.iter().all(|part| part.tally.totals().count >= ENOUGH) {
                blamer.set_usual_ways(number, usual_ways(parts).into());
            }
        }
        TracedSamples::Packets { parts, sender, .. } => {
            if parts.iter().all(|part| part.tally.totals().count >= ENOUGH) {
                // The sender sends what it is behind with as it sends the others.
                let ways = if sender.is_some() { 2 } else { 1 };
                blamer.set_usual_ways(number, vec![usual_way(parts); ways]);
            }
        }
        TracedSamples::Attached { usual, .. } | TracedSamples::Cycles { usual, .. } => {
            let of = |ns: &AtomicI64| ns.load(Ordering::Relaxed);
            let (irq_ns, dispatch_ns) = (of(&usual.irq_ns), of(&usual.dispatch_ns));
            blamer.set_usual(number, UsualStages { irq_ns, dispatch_ns, user_ns: 0 });
        }
        TracedSamples::Gaps { .. } | TracedSamples::None => {}
    }
}

/// From where on every sample of the thread is late, ns; `None` if that follows from the others:
/// what a gap took is lost, however short it was, and work that is done in time is not late.
pub(super) fn least(samples: &TracedSamples) -> Option<i64> {
    match samples {
        TracedSamples::Gaps { over_ns, .. } => Some(*over_ns),
        TracedSamples::Work { deadline_ns, .. } => *deadline_ns,
        // By its own histogram, which is not among the series of measuring threads.
        TracedSamples::Attached { usual, .. } | TracedSamples::Cycles { usual, .. } => {
            Some(usual.p99_ns.load(Ordering::Relaxed))
        }
        _ => None,
    }
}

/// Whether the thread has samples that can be late.
pub(super) const fn is_judged(samples: &TracedSamples) -> bool {
    !matches!(samples, TracedSamples::None)
}

fn whole(trip: &LateTrip) -> Late {
    let matched = trip.there.waking_ns != 0 && trip.back.waking_ns != 0;
    Late { t_ns: trip.t_ns, latency_ns: trip.latency_ns, matched, ..Late::default() }
}

fn whole_packet(packet: &LatePacket) -> Late {
    let LatePacket { t_ns, latency_ns, sent_ns, way, .. } = *packet;
    let (matched, cpus) = (way.waking_ns >= sent_ns, way.cpus);
    Late { t_ns, latency_ns, matched, cpus, ..Late::default() }
}

/// The way of a packet to `receiver`, under its name; before it the time in which its sender was
/// late with it, where the sender is followed.
fn ways_of_packet(
    (name, sender, receiver): (&'static str, Option<usize>, usize),
    packet: &LatePacket,
) -> Vec<MessageWay> {
    let end_ns = packet.t_ns.saturating_add(packet.latency_ns);
    let sent_ns = packet.sent_ns.clamp(packet.t_ns, end_ns.max(packet.t_ns));
    let way = MessageWay {
        name,
        kind: WayKind::Message,
        since_ns: 0,
        begins: match (sender, name) {
            (Some(_), _) => "packet sent",
            (None, CYCLE) => "cycle due",
            (None, _) => "packet stamped",
        },
        from_ns: sent_ns,
        to_ns: end_ns,
        sender,
        receiver,
        seen: packet.way,
        backlog: packet.received_before,
        follows_later: packet.follows_later,
    };
    let pacing = |sender| MessageWay {
        name: PACING,
        kind: WayKind::Pacing,
        begins: "packet due",
        since_ns: packet.behind_since_ns,
        from_ns: packet.t_ns,
        to_ns: sent_ns,
        sender: Some(sender),
        receiver: sender,
        seen: LateLeg { stopped_ns: packet.sender_stopped_ns, ..LateLeg::default() },
        // It continues sending those until it comes to this one.
        backlog: Backlog { until_ns: sent_ns, ..packet.sent_before },
        follows_later: packet.follows_later,
    };
    sender.map(pacing).into_iter().chain([way]).collect()
}

/// There and back; the remote endpoint is the thread after the local one.
fn ways(near: usize, trip: &LateTrip) -> [MessageWay; 2] {
    let end_ns = trip.t_ns.saturating_add(trip.latency_ns);
    let turned_ns = trip.turned_ns.clamp(trip.t_ns, end_ns.max(trip.t_ns));
    let far = near + 1;
    let way = |name, begins, seen: LateLeg| MessageWay {
        name,
        kind: WayKind::Message,
        since_ns: 0,
        begins,
        from_ns: trip.t_ns,
        to_ns: end_ns,
        sender: Some(near),
        receiver: far,
        seen,
        backlog: Backlog::default(),
        follows_later: false,
    };
    let there = way("there", "message sent", trip.there);
    let back = way("back", "remote endpoint answers", trip.back);
    [
        MessageWay { to_ns: turned_ns, ..there },
        MessageWay { from_ns: turned_ns, sender: Some(far), receiver: near, ..back },
    ]
}

/// The medians of a thread's stages; absent with too few samples.
fn usual(stages: &StageSeries) -> Option<UsualStages> {
    (stages.user.tally.totals().count >= ENOUGH).then(|| UsualStages {
        irq_ns: median_ns(&stages.irq),
        dispatch_ns: median_ns(&stages.dispatch),
        user_ns: median_ns(&stages.user),
    })
}

fn usual_ways([a, b, c, d, e, f]: &[Arc<Series>; 6]) -> [TypicalLeg; 2] {
    [[a, b, c], [d, e, f]].map(|parts| usual_way(&parts.map(Arc::clone)))
}

fn usual_way(parts: &[Arc<Series>; 3]) -> TypicalLeg {
    let [send_ns, dispatch_ns, receive_ns] = parts.each_ref().map(|part| median_ns(part));
    TypicalLeg { send_ns, dispatch_ns, receive_ns }
}

fn median_ns(series: &Series) -> i64 {
    quantile(series, 500)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_of_a_schedule_is_late_at_its_sender_first_and_one_with_a_stamp_is_not() {
        let packet = LatePacket {
            t_ns: 100,
            latency_ns: 90,
            sent_ns: 130,
            way: LateLeg { waking_ns: 140, switch_ns: 150, cpus: (0, 1), stopped_ns: (0, 0) },
            behind_since_ns: 90,
            sender_stopped_ns: (7, 8),
            sent_before: Backlog { packets: 2, until_ns: 120 },
            received_before: Backlog { packets: 3, until_ns: 180 },
            follows_later: true,
        };
        let [pacing, there] = ways_of_packet(("there", Some(0), 1), &packet)[..] else {
            panic!("two ways")
        };
        assert_eq!(
            (pacing.from_ns, pacing.to_ns, there.from_ns, there.to_ns),
            (100, 130, 130, 190)
        );
        assert_eq!((pacing.kind, pacing.receiver, there.receiver), (WayKind::Pacing, 0, 1));
        assert_eq!((pacing.since_ns, there.since_ns), (90, 0));
        assert_eq!((pacing.seen.stopped_ns, there.seen), ((7, 8), packet.way));
        assert_eq!(pacing.backlog, Backlog { packets: 2, until_ns: 130 });
        assert!(there.follows_later);
        assert_eq!(there.backlog, packet.received_before);
        let stamped = LatePacket { sent_ns: 100, ..packet };
        let [way] = ways_of_packet(("packet", None, 0), &stamped)[..] else { panic!("one way") };
        assert_eq!((way.from_ns, way.to_ns, way.begins), (100, 190, "packet stamped"));
        assert_eq!(whole_packet(&packet).cpus, (0, 1));
    }
}
