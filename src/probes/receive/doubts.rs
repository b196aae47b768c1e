//! What a run of received packets gives reason to doubt.

use super::{FAR, SERIES, near::Outcome};
use crate::{
    run::{Doubt, FlowRecord, MessageDoubt, ReceiveDoubt},
    units::Nanos,
};

/// What is known at the end.
pub(super) struct Facts<'a> {
    pub outcome: &'a Outcome,
    pub flow: &'a FlowRecord,
    /// The largest step of the clock, ns; 0 for none.
    pub step_ns: i64,
    /// Packets that the kernel would not send.
    pub refused: u64,
    /// What was listened to.
    pub address: Option<String>,
    /// What it holds unread.
    pub room_bytes: u64,
    /// What a second of the sender's packets needs; absent without one.
    pub needed_bytes: Option<u64>,
}

/// The doubts that follow.
pub(super) fn of(facts: &Facts<'_>) -> Vec<Doubt> {
    let Facts { outcome, flow, step_ns, refused, address, room_bytes, needed_bytes } = facts;
    let seen = outcome.seen;
    let mut doubts: Vec<Doubt> = Vec::new();
    if *step_ns != 0 {
        let way = if *step_ns > 0 { "forward" } else { "back" };
        let by = Nanos(step_ns.saturating_abs());
        let what = format!("{by} {way}; {} packets left out", seen.stepped);
        doubts.push(ReceiveDoubt::ClockStepped { what }.into());
    }
    if seen.unstamped > 0 {
        let what = format!("{} of {}", seen.unstamped, seen.packets);
        doubts.push(ReceiveDoubt::PacketsUnstamped { what }.into());
    }
    let place = address.clone().unwrap_or_default();
    if seen.packets == 0 {
        doubts.push(ReceiveDoubt::NothingReceived { place: place.clone() }.into());
    }
    if flow.foreign > 0 {
        let what = format!("{} at {place}", flow.foreign);
        doubts.push(ReceiveDoubt::PacketsForeign { what }.into());
    }
    if flow.lost > 0 {
        let what = format!("{} of {} on {SERIES}", flow.lost, flow.sent);
        doubts.push(MessageDoubt::MessagesLost { what }.into());
    }
    if *refused > 0 {
        let what = format!("{FAR}: {refused} packets");
        doubts.push(MessageDoubt::SendRefused { what }.into());
    }
    if let Some(needed) = needed_bytes.filter(|needed| needed > room_bytes) {
        let what = format!("near: {} KiB of {}", room_bytes >> 10, needed >> 10);
        doubts.push(MessageDoubt::BufferSmall { what }.into());
    }
    if outcome.could_poll == Some(false) && seen.packets > 0 {
        doubts.push(ReceiveDoubt::BusyPollVain.into());
    }
    doubts
}

#[cfg(test)]
mod tests {
    use tardy_hot::receive::Seen;

    use super::*;
    use crate::run::Caveat;

    fn codes(outcome: &Outcome, flow: &FlowRecord, step_ns: i64) -> Vec<(String, String)> {
        let address = Some("lo".into());
        let (refused, room_bytes, needed_bytes) = (0, 1 << 10, None);
        let facts = Facts { outcome, flow, step_ns, refused, address, room_bytes, needed_bytes };
        let caveats = of(&facts).into_iter().map(Caveat::from);
        caveats.map(|caveat| (caveat.code, caveat.text)).collect()
    }

    #[test]
    fn a_stepped_clock_is_told_with_what_was_left_out_for_it() {
        let seen = Seen { packets: 9, stepped: 4, ..Seen::default() };
        let outcome = Outcome { seen, ..Outcome::default() };
        let told = codes(&outcome, &FlowRecord::default(), -1_500_000_000);
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].0, "clock_stepped");
        assert!(told[0].1.contains("1.50 s back; 4 packets"), "{told:?}");
        assert!(codes(&outcome, &FlowRecord::default(), 0).is_empty());
    }

    #[test]
    fn what_was_not_sent_and_a_buffer_that_is_small_are_told() {
        let seen = Seen { packets: 9, ..Seen::default() };
        let (outcome, flow) = (Outcome { seen, ..Outcome::default() }, FlowRecord::default());
        let facts = |refused, needed_bytes| Facts {
            outcome: &outcome,
            flow: &flow,
            step_ns: 0,
            refused,
            address: None,
            room_bytes: 4 << 10,
            needed_bytes: Some(needed_bytes),
        };
        assert_eq!(of(&facts(0, 4 << 10)), []);
        let told = of(&facts(3, 5 << 10)).into_iter().map(|doubt| Caveat::from(doubt).text);
        let told: Vec<String> = told.collect();
        assert!(told[0].contains("far: 3 packets"), "{told:?}");
        assert!(told[1].contains("near: 4 KiB of 5"), "{told:?}");
    }

    #[test]
    fn what_did_not_come_and_what_had_no_stamp_are_told() {
        let silent = codes(&Outcome::default(), &FlowRecord::default(), 0);
        assert_eq!(silent[0].0, "nothing_received");
        let seen = Seen { packets: 9, unstamped: 2, ..Seen::default() };
        let outcome = Outcome { seen, could_poll: Some(false), ..Outcome::default() };
        let flow = FlowRecord { lost: 1, sent: 10, foreign: 3, ..FlowRecord::default() };
        let told = codes(&outcome, &flow, 0);
        let names: Vec<&str> = told.iter().map(|(code, _)| code.as_str()).collect();
        let all = ["packets_unstamped", "packets_foreign", "messages_lost", "busy_poll_vain"];
        assert_eq!(names, all);
        assert!(told[0].1.contains("2 of 9") && told[2].1.contains("1 of 10"), "{told:?}");
    }
}
