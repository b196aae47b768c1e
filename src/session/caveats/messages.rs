//! Caveats of messages: what did not arrive, and which end stopped.

use crate::{
    probes::{FarLoss, MessageEvidence, OneThread, ReceiveEvidence},
    run::{
        AudioCaveat, CaveatKind, EndBuffer, LostMessages, MessageCaveat, MessageRecord,
        ReceiveCaveat, SeriesSummary,
    },
};

pub(super) fn caveats(
    messages: Option<&MessageRecord>,
    probe: &MessageEvidence,
    series: &[SeriesSummary],
) -> Vec<CaveatKind> {
    let Some(messages) = messages else { return Vec::new() };
    let mut found: Vec<CaveatKind> = of_far(probe).into_iter().map(CaveatKind::from).collect();
    if let Some(receive) = &probe.receive {
        found.extend(of_received(messages, receive).into_iter().map(CaveatKind::from));
    }
    found.extend(of_flows(messages, probe).into_iter().map(CaveatKind::from));
    let sends = probe.one_thread.as_ref().and_then(|thread| of_thread(thread, series));
    found.extend(sends.map(CaveatKind::from));
    found
}

/// The server of an audio client, which has no messages.
pub(super) fn of_server(probe: &MessageEvidence) -> Vec<CaveatKind> {
    let lost = probe.server_loss;
    let lost = lost.map(|loss| AudioCaveat::ServerLost { reason: loss.reason, at_ns: loss.at_ns });
    let count = probe.grids_anew;
    let anew = (count > 0).then_some(AudioCaveat::GridLaidAnew { count });
    lost.into_iter().chain(anew).map(CaveatKind::from).collect()
}

/// Ends that send and receive in one thread, where packets came as late as its next sending.
fn of_thread(thread: &OneThread, series: &[SeriesSummary]) -> Option<MessageCaveat> {
    let OneThread { ends, series: own, meets_ns, period_ns } = thread.clone();
    let reaches = |of: &SeriesSummary| {
        let one_percent_ns = of.percentiles.get("99").copied().unwrap_or(0);
        i128::from(one_percent_ns) >= i128::from(meets_ns) && own.contains(&of.name)
    };
    let series: Vec<String> =
        series.iter().filter(|of| reaches(of)).map(|of| of.name.clone()).collect();
    let met = !series.is_empty();
    met.then_some(MessageCaveat::ReceiverSends { ends, series, meets_ns, period_ns })
}

/// The remote endpoint, and its clock.
fn of_far(probe: &MessageEvidence) -> Vec<MessageCaveat> {
    let ended = probe.far_loss.clone();
    let ended = ended.map(|FarLoss { reason, at_ns }| MessageCaveat::FarEnded { reason, at_ns });
    let clock = probe.clock.filter(|clock| clock.steps > 0 || clock.unknown_periods > 0);
    let unsteady = clock.map(|clock| MessageCaveat::ClockUnsteady {
        steps: clock.steps,
        unknown_periods: clock.unknown_periods,
        periods: clock.periods,
    });
    ended.into_iter().chain(unsteady).collect()
}

/// What was sent, and did not arrive.
fn of_flows(messages: &MessageRecord, probe: &MessageEvidence) -> Vec<MessageCaveat> {
    let lost = messages.flows.iter().filter(|flow| flow.lost > 0);
    let lost: Vec<LostMessages> = lost
        .map(|flow| LostMessages { series: flow.series.clone(), lost: flow.lost, sent: flow.sent })
        .collect();
    let mut found = Vec::new();
    let mut note = |is_some: bool, caveat| found.extend(is_some.then_some(caveat));
    let unsent = probe.unsent.clone();
    note(!lost.is_empty(), MessageCaveat::MessagesLost { series: lost, unsent });
    let ends = probe.refused.clone();
    note(!ends.is_empty(), MessageCaveat::SendRefused { ends });
    let ends = probe.unrecorded.clone();
    note(!ends.is_empty(), MessageCaveat::PacketsUnrecorded { ends });
    let needed_bytes = probe.needed_bytes.unwrap_or(0);
    let ends = small_buffers(messages, needed_bytes);
    note(!ends.is_empty(), MessageCaveat::BufferSmall { ends, needed_bytes });
    if let Some((packet_bytes, mtu_bytes)) = probe.frame_bytes {
        let caveat = MessageCaveat::PacketsFragmented { packet_bytes, mtu_bytes };
        note(packet_bytes > mtu_bytes, caveat);
    }
    found
}

fn small_buffers(messages: &MessageRecord, needed_bytes: u64) -> Vec<EndBuffer> {
    let buffers = messages.ends.iter().filter_map(|end| {
        let bytes = end.receive_buffer_bytes?;
        Some(EndBuffer { end: end.name.clone(), bytes })
    });
    buffers.filter(|buffer| buffer.bytes < needed_bytes).collect()
}

/// Stamps of received packets, and whose packets they were.
fn of_received(messages: &MessageRecord, receive: &ReceiveEvidence) -> Vec<ReceiveCaveat> {
    let ReceiveEvidence { seen, step_ns, could_poll } = *receive;
    let near = messages.ends.first();
    let address = near.and_then(|near| near.address.clone()).unwrap_or_default();
    let foreign: u64 = messages.flows.iter().map(|flow| flow.foreign).sum();
    let (unstamped, packets) = (seen.unstamped, seen.packets);
    let mut found = Vec::new();
    let mut note = |is_some: bool, caveat| found.extend(is_some.then_some(caveat));
    note(step_ns != 0, ReceiveCaveat::ClockStepped { step_ns, left_out: seen.stepped });
    note(unstamped > 0, ReceiveCaveat::PacketsUnstamped { unstamped, packets });
    note(packets == 0, ReceiveCaveat::NothingReceived { address: address.clone() });
    note(foreign > 0, ReceiveCaveat::PacketsForeign { packets: foreign, address });
    note(could_poll == Some(false) && packets > 0, ReceiveCaveat::BusyPollVain);
    found
}
