//! Caveats of messages and of received packets.

use super::*;
use crate::{probes::ServerLoss, run::ServerLossReason};

/// Messages over two ends, of which the local one holds 4096 bytes unread.
fn of_messages(flow: FlowRecord, probe: MessageEvidence) -> impl FnOnce(&mut Evidence) {
    let near = EndRecord {
        name: "near".into(),
        address: Some("lo".into()),
        receive_buffer_bytes: Some(4_096),
        ..EndRecord::default()
    };
    let far = EndRecord { name: "far".into(), ..EndRecord::default() };
    let messages = MessageRecord {
        transport: "udp".into(),
        size: 64,
        ends: vec![near, far],
        flows: vec![FlowRecord { series: "rtt".into(), ..flow }],
        clock: None,
    };
    |evidence| {
        evidence.messages = Some(messages);
        evidence.probe = probe;
    }
}

fn of_probe(probe: MessageEvidence) -> impl FnOnce(&mut Evidence) {
    of_messages(FlowRecord::default(), probe)
}

#[test]
fn messages_that_did_not_arrive_are_reported_with_those_that_were_not_sent() {
    assert_eq!(codes(of_probe(MessageEvidence::default())), [""; 0]);
    let flow = FlowRecord { lost: 3, sent: 10, ..FlowRecord::default() };
    let unsent = vec![EndCount { end: "near".into(), count: 2 }];
    let values = json!({
        "series": [{"series": "rtt", "lost": 3, "sent": 10}],
        "unsent": [{"end": "near", "count": 2}],
    });
    assert_one(
        of_messages(flow, MessageEvidence { unsent, ..MessageEvidence::default() }),
        "messages_lost",
        &values,
        "rtt: 3 of 10 (of these, near could not send 2).",
    );
}

#[test]
fn packets_that_were_refused_or_came_too_fast_are_reported_by_end() {
    let refused = |error| {
        let refusal = SendRefusal { end: "far".into(), packets: 3, error };
        of_probe(MessageEvidence { refused: vec![refusal], ..MessageEvidence::default() })
    };
    let values = json!({"ends": [{"end": "far", "packets": 3, "error": null}]});
    assert_one(refused(None), "send_refused", &values, "far: 3 packets");
    let error = OsError::of(libc::ENETUNREACH);
    let values = json!({"ends": [{"end": "far", "packets": 3, "error": error}]});
    let words = "far: Network is unreachable, 3 packets";
    assert_one(refused(Some(error)), "send_refused", &values, words);
    let unrecorded = vec![EndCount { end: "far".into(), count: 1_200 }];
    assert_one(
        of_probe(MessageEvidence { unrecorded, ..MessageEvidence::default() }),
        "packets_unrecorded",
        &json!({"ends": [{"end": "far", "count": 1_200}]}),
        "far: 1,200",
    );
}

#[test]
fn a_buffer_that_is_small_and_packets_that_take_several_frames_are_reported() {
    let needs = |bytes| {
        of_probe(MessageEvidence { needed_bytes: Some(bytes), ..MessageEvidence::default() })
    };
    assert_eq!(codes(needs(4_096)), [""; 0]);
    let values = json!({"ends": [{"end": "near", "bytes": 4_096}], "needed_bytes": 4_097});
    let words = "near: 4096 bytes instead of 4097 bytes";
    assert_one(needs(4_097), "buffer_small", &values, words);
    let frames = |packet_bytes| {
        let frame_bytes = Some((packet_bytes, 1_500));
        of_probe(MessageEvidence { frame_bytes, ..MessageEvidence::default() })
    };
    assert_eq!(codes(frames(1_500)), [""; 0]);
    let values = json!({"packet_bytes": 1_501, "mtu_bytes": 1_500});
    assert_one(frames(1_501), "packets_fragmented", &values, "1501 bytes, frames of at most 1500");
}

#[test]
fn packets_that_come_while_their_receiver_sends_are_reported_where_they_are_that_late() {
    let of = |back_ns: u64| {
        let thread = OneThread {
            ends: vec!["near".into(), "far".into()],
            series: vec!["back".into(), "there".into()],
            meets_ns: 50_000,
            period_ns: 100_000,
        };
        let probe = MessageEvidence { one_thread: Some(thread), ..MessageEvidence::default() };
        let change = of_probe(probe);
        move |evidence: &mut Evidence| {
            change(evidence);
            let totals = Totals { count: 10_000, ..Totals::NONE };
            let one = |name: &str, p99_ns: u64| SeriesSummary {
                percentiles: [("99".to_owned(), p99_ns)].into(),
                ..summary(name, totals)
            };
            evidence.series = vec![one("there", 49_999), one("back", back_ns), one("rtt", 90_000)];
        }
    };
    assert_eq!(codes(of(49_999)), [""; 0]);
    let values = json!({
        "ends": ["near", "far"], "series": ["back"], "meets_ns": 50_000, "period_ns": 100_000,
    });
    let words = "of back are therefore rare shortly after 50.0 us, and again every 100 us,";
    assert_one(of(50_000), "receiver_sends", &values, words);
}

#[test]
fn a_far_end_that_broke_off_is_reported_with_the_reason_and_the_moment() {
    let timeout_ns = 20_000_000;
    for (reason, values, words) in [
        (
            FarEndReason::Gone { how: "far (process): signal 9".into() },
            json!({"reason": "gone", "how": "far (process): signal 9", "at_ns": 1_500_000_000}),
            "far (process): signal 9, at 1.5 s.",
        ),
        (
            FarEndReason::Silent { answers: 10, timeout_ns },
            json!({
                "reason": "silent", "answers": 10, "timeout_ns": timeout_ns,
                "at_ns": 1_500_000_000
            }),
            "10 answers in a row did not arrive within 20",
        ),
        (
            FarEndReason::Killed { timeout_ns },
            json!({"reason": "killed", "timeout_ns": timeout_ns, "at_ns": 1_500_000_000}),
            "; the remote endpoint was killed",
        ),
        (
            FarEndReason::AnswerTooLong,
            json!({"reason": "answer_too_long", "at_ns": 1_500_000_000}),
            "longer than --size",
        ),
    ] {
        let far_loss = Some(FarLoss { reason, at_ns: 1_500_000_000 });
        let ended = of_probe(MessageEvidence { far_loss, ..MessageEvidence::default() });
        assert_one(ended, "far_ended", &values, words);
    }
}

#[test]
fn a_server_that_went_away_and_cycles_at_other_times_are_reported() {
    let of = |probe| |evidence: &mut Evidence| evidence.probe = probe;
    let values = |reason: &str| json!({"reason": reason, "at_ns": 1_500_000_000});
    for (reason, name, words) in [
        (ServerLossReason::Ended, "ended", "it ended, or put tardy's client out, at 1.5 s"),
        (ServerLossReason::Silent, "silent", "no cycle for 5 s"),
        (ServerLossReason::PeriodChanged, "period_changed", "the frames of a cycle"),
        (ServerLossReason::RateChanged, "rate_changed", "its sample rate"),
        (ServerLossReason::Freewheels, "freewheels", "began to freewheel"),
    ] {
        let server_loss = Some(ServerLoss { reason, at_ns: 1_500_000_000 });
        let lost = MessageEvidence { server_loss, ..MessageEvidence::default() };
        assert_one(of(lost), "server_lost", &values(name), words);
    }
    let anew = MessageEvidence { grids_anew: 2, ..MessageEvidence::default() };
    assert_one(of(anew), "grid_laid_anew", &json!({"count": 2}), "at other times, 2 times");
}

#[test]
fn a_clock_that_was_set_or_badly_known_is_reported() {
    let of = |steps, unknown_periods| {
        let clock = Some(ClockEvidence { steps, unknown_periods, periods: 9 });
        of_probe(MessageEvidence { clock, ..MessageEvidence::default() })
    };
    assert_eq!(codes(of(0, 0)), [""; 0]);
    let values =
        |steps, unknown: u64| json!({"steps": steps, "unknown_periods": unknown, "periods": 9});
    assert_one(of(0, 2), "clock_unsteady", &values(0, 2), "in 2 of 9 periods it was too uncertain");
    assert_one(of(1, 2), "clock_unsteady", &values(1, 2), "a clock was set (seen once)");
}

fn of_received(receive: ReceiveEvidence, flow: FlowRecord) -> impl FnOnce(&mut Evidence) {
    of_messages(flow, MessageEvidence { receive: Some(receive), ..MessageEvidence::default() })
}

fn seen(packets: u64) -> ReceiveEvidence {
    let mut receive = ReceiveEvidence::default();
    receive.seen.packets = packets;
    receive
}

#[test]
fn a_stepped_clock_is_reported_with_what_was_left_out_for_it() {
    let mut receive = ReceiveEvidence { step_ns: -1_500_000_000, ..seen(9) };
    receive.seen.stepped = 4;
    let values = json!({"step_ns": -1_500_000_000, "left_out": 4});
    let stepped = of_received(receive, FlowRecord::default());
    assert_one(stepped, "clock_stepped", &values, "1.50 s back; 4 packets");
    assert_eq!(codes(of_received(seen(9), FlowRecord::default())), [""; 0]);
}

#[test]
fn what_did_not_come_and_what_had_no_stamp_are_reported() {
    let silent = of_received(seen(0), FlowRecord::default());
    assert_one(silent, "nothing_received", &json!({"address": "lo"}), "No packet arrived at lo");
    let mut unstamped = seen(9);
    unstamped.seen.unstamped = 2;
    let unstamped = of_received(unstamped, FlowRecord::default());
    let values = json!({"unstamped": 2, "packets": 9});
    assert_one(unstamped, "packets_unstamped", &values, "2 of 9");
    let foreign = of_received(seen(9), FlowRecord { foreign: 3, ..FlowRecord::default() });
    let values = json!({"packets": 3, "address": "lo"});
    assert_one(foreign, "packets_foreign", &values, "3 at lo");
    let vain = ReceiveEvidence { could_poll: Some(false), ..seen(9) };
    let vain = of_received(vain, FlowRecord::default());
    assert_one(vain, "busy_poll_vain", &json!({}), "Busy polling did nothing");
}
