//! Late samples on their way from the measuring threads to the blame, and what is usual for them.

use std::sync::Arc;

use tardy_hot::{
    stages::Late,
    traced::StageSeries,
    trips::{LatePacket, LateTrip, LateWay},
    wakeup::Series,
};

use super::quantiles::{ENOUGH, quantile};
use crate::{
    peaks::{Blamer, MessageWay, UsualStages, UsualWay},
    probes::TracedSamples,
};

/// Hands over what thread `number` has found late.
pub(super) fn collect(blamer: &mut Blamer, number: usize, samples: &mut TracedSamples) {
    match samples {
        TracedSamples::WakeUps(_, late) => {
            late.drain(|late| blamer.add(number, late));
        }
        TracedSamples::RoundTrips(_, late) => {
            late.drain(|trip| blamer.add_message(number, whole(&trip), ways(number, &trip).into()));
        }
        TracedSamples::Packets(_, late) => {
            late.drain(|packet| {
                let way = way_of_packet(number, &packet);
                blamer.add_message(number, whole_packet(&packet), vec![way]);
            });
        }
        TracedSamples::None => {}
    }
}

/// Lets what is usual for thread `number` follow the medians of its parts.
pub(super) fn follow(blamer: &mut Blamer, number: usize, samples: &TracedSamples) {
    match samples {
        TracedSamples::WakeUps(stages, _) => {
            if let Some(usual) = usual(stages) {
                blamer.set_usual(number, usual);
            }
        }
        TracedSamples::RoundTrips(parts, _) => {
            if parts.iter().all(|part| part.tally.totals().count >= ENOUGH) {
                blamer.set_usual_ways(number, usual_ways(parts).into());
            }
        }
        TracedSamples::Packets(parts, _) => {
            if parts.iter().all(|part| part.tally.totals().count >= ENOUGH) {
                blamer.set_usual_ways(number, vec![usual_way(parts)]);
            }
        }
        TracedSamples::None => {}
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
    let LatePacket { t_ns, latency_ns, way } = *packet;
    Late { t_ns, latency_ns, matched: way.waking_ns != 0, ..Late::default() }
}

/// From the stamp to the thread that reads; who sent it is not followed.
fn way_of_packet(reader: usize, packet: &LatePacket) -> MessageWay {
    MessageWay {
        name: "packet",
        begins: "packet stamped",
        from_ns: packet.t_ns,
        to_ns: packet.t_ns.saturating_add(packet.latency_ns),
        sender: None,
        receiver: reader,
        seen: packet.way,
    }
}

/// There and back; the far end is the thread after the near one.
fn ways(near: usize, trip: &LateTrip) -> [MessageWay; 2] {
    let end_ns = trip.t_ns.saturating_add(trip.latency_ns);
    let turned_ns = trip.turned_ns.clamp(trip.t_ns, end_ns.max(trip.t_ns));
    let far = near + 1;
    let way = |name, begins, seen: LateWay| MessageWay {
        name,
        begins,
        from_ns: trip.t_ns,
        to_ns: end_ns,
        sender: Some(near),
        receiver: far,
        seen,
    };
    let there = way("there", "message sent", trip.there);
    let back = way("back", "far end answers", trip.back);
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

fn usual_ways([a, b, c, d, e, f]: &[Arc<Series>; 6]) -> [UsualWay; 2] {
    [[a, b, c], [d, e, f]].map(|parts| usual_way(&parts.map(Arc::clone)))
}

fn usual_way(parts: &[Arc<Series>; 3]) -> UsualWay {
    let [send_ns, dispatch_ns, receive_ns] = parts.each_ref().map(|part| median_ns(part));
    UsualWay { send_ns, dispatch_ns, receive_ns }
}

fn median_ns(series: &Series) -> i64 {
    quantile(series, 500)
}
