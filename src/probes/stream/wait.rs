//! How the ends of a stream wait, and the loop that follows from it: chosen once, before it begins.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use tardy_hot::{
    stream::{
        self, Arrivals, Hybrid, Pacing, PacketSchedule, Packets, Sleep, SpinPacing, StreamEnd,
        StreamLimits,
    },
    wakeup::Ended,
};

use crate::units::Nanos;

/// How an end waits for the time of its next packet, and for those of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PacketWait {
    /// Sleeps.
    Sleep,
    /// Keeps its CPU busy.
    Spin,
    /// Sleeps until this number of ns before its own packet is due, then spins. For packets of
    /// others it sleeps: it is not known when they come.
    Hybrid(i64),
}

impl PacketWait {
    /// Whether it keeps its CPU busy all the time.
    #[must_use]
    pub const fn spins(self) -> bool {
        matches!(self, Self::Spin)
    }
}

impl FromStr for PacketWait {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "sleep" => return Ok(Self::Sleep),
            "spin" => return Ok(Self::Spin),
            _ => {}
        }
        let Some(time) = text.strip_prefix("hybrid:") else {
            return Err(format!("{text:?} is not a wait mode; use sleep, spin or hybrid:2ms"));
        };
        match time.parse::<Nanos>() {
            Ok(Nanos(1..)) => time.parse().map(|Nanos(ns)| Self::Hybrid(ns)).map_err(message),
            Ok(_) => Err(format!("{text}: a spin time of 0 is the same as sleep; use sleep")),
            Err(error) => Err(format!("{text}: {error}")),
        }
    }
}

fn message(error: crate::units::UnitError) -> String {
    error.to_string()
}

impl fmt::Display for PacketWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sleep => f.write_str("sleep"),
            Self::Spin => f.write_str("spin"),
            Self::Hybrid(ns) => {
                write!(f, "hybrid:{}", Nanos(*ns).to_string().replace(' ', ""))
            }
        }
    }
}

/// What an end does.
#[derive(Debug, Clone, Copy)]
pub(super) enum EndRole {
    /// Sends these packets.
    Send(PacketSchedule),
    /// Receives.
    Receive,
    /// Sends these packets, and receives meanwhile and afterwards.
    Both(PacketSchedule),
}

/// Does it.
pub(super) fn run<P: Packets, A: Arrivals>(
    end: StreamEnd<'_, P, PacketWait, A>,
    role: &EndRole,
    limits: StreamLimits<'_>,
) -> Ended {
    match end.pace {
        PacketWait::Sleep => with(paced(end, Sleep), role, limits),
        PacketWait::Spin => with(paced(end, SpinPacing), role, limits),
        PacketWait::Hybrid(ns) => with(paced(end, Hybrid(ns)), role, limits),
    }
}

fn paced<'a, P, W, A>(end: StreamEnd<'a, P, PacketWait, A>, pace: W) -> StreamEnd<'a, P, W, A> {
    let StreamEnd { port, session, passages, counts, .. } = end;
    StreamEnd { port, pace, session, passages, counts }
}

fn with<P: Packets, W: Pacing, A: Arrivals>(
    mut end: StreamEnd<'_, P, W, A>,
    role: &EndRole,
    limits: StreamLimits<'_>,
) -> Ended {
    match role {
        EndRole::Send(schedule) => stream::send(&mut end, schedule, limits),
        EndRole::Receive => stream::receive(&mut end, limits),
        EndRole::Both(schedule) => stream::both(&mut end, schedule, limits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_to_wait_are_read_and_written_alike() {
        for (text, wait) in [
            ("sleep", PacketWait::Sleep),
            ("spin", PacketWait::Spin),
            ("hybrid:2.00ms", PacketWait::Hybrid(2_000_000)),
        ] {
            assert_eq!(text.parse(), Ok(wait));
            assert_eq!(wait.to_string(), text);
        }
        for text in ["", "doze", "hybrid", "hybrid:2", "hybrid:0ms", "spin:1ms"] {
            let error = text.parse::<PacketWait>().unwrap_err();
            assert!(!error.is_empty());
        }
    }
}
