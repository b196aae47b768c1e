//! Round trips beside sockperf and libzmq's own tools, both ends on one CPU.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, ensure};
use tardy::{lab::program, run::hlog};

use super::{
    CountedBench,
    guest::{CountedGuest, OUT},
    ratio::{Pair, Peer, mean_row, rows},
    timer::recorded,
};
use crate::bench::{
    messages::{half_us, sockperf_log},
    sheet::{FigureRow, Section},
};

/// How often both sides run.
const ROUNDS: usize = 3;

/// How long, s.
const LENGTH_S: u32 = 1;

/// Round trips of libzmq's tools, which count instead.
const ZMQ_TRIPS: u32 = 10_000;

const SOCKPERF: Peer = Peer { name: "sockperf", maximum_limit: 1.5 };

const PORT: u16 = 20_001;

/// What messages go through, and with whom tardy is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Tcp,
    Udp,
    Zmq,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Zmq => "zmq-tcp",
        })
    }
}

/// All kernels and transports.
pub(super) fn part(bench: &CountedBench) -> Result<Section> {
    let mut section = Section::new("Round trips beside sockperf and libzmq's tools");
    for kernel in &bench.kernels {
        for way in [Way::Tcp, Way::Udp, Way::Zmq] {
            let name = format!("{}, {way}", kernel.asked);
            section.rows.extend(way.rows(&name, &bench.guest(kernel)));
        }
    }
    section.note(format!(
        "{ROUNDS} rounds in one guest, tardy (`run pingpong --trace off --warmup 200ms`) and its \
         peer in turns, there and back, {LENGTH_S} s each after a warm-up, which sockperf has too; \
         both ends SCHED_FIFO 90 on the one CPU, each a process. Whole round trips: messages of \
         14 bytes beside sockperf (`ping-pong --full-rtt --full-log`), of 1 byte beside libzmq's \
         tools, which print only the mean of {ZMQ_TRIPS}.",
    ));
    Ok(section)
}

impl Way {
    fn rows(self, name: &str, guest: &CountedGuest) -> Vec<FigureRow> {
        let left = self.measure(guest);
        let pairs = || left.as_ref().map_err(|error| anyhow!("{error:#}"));
        match self {
            Self::Zmq => {
                vec![mean_row(name, "libzmq's tools", pairs().and_then(|left| means(left)))]
            }
            Self::Tcp | Self::Udp => {
                rows(name, &SOCKPERF, pairs().and_then(|left| round_trips(left)))
            }
        }
    }

    fn measure(self, guest: &CountedGuest) -> Result<PathBuf> {
        let mut script = String::new();
        for round in 0..ROUNDS {
            let both = [self.tardy(round), self.peer(round)];
            let at = |place: usize| both.get((place + round) % 2).map_or("", String::as_str);
            // There and back, so that running before the other side gives no advantage.
            script += &format!("{}\n{}\n", at(0), at(1));
        }
        let programs: &[&str] = match self {
            Self::Tcp | Self::Udp => &["sockperf"],
            Self::Zmq => {
                program("local_lat").context("they are built from libzmq's sources, its perf/")?;
                &["local_lat", "remote_lat"]
            }
        };
        guest.run(&format!("pingpong-{self}"), programs, &script)
    }

    fn tardy(self, round: usize) -> String {
        let size = if self == Self::Zmq { "" } else { " --size 14" };
        format!(
            "tardy run pingpong --transport {self} --trace off --cpus 0,0 --warmup 200ms \
             --duration {LENGTH_S}s --policy fifo --priority 90{size} --quiet \
             -o {OUT}/ours-{round} >/dev/null"
        )
    }

    fn peer(self, round: usize) -> String {
        let tcp = if self == Self::Tcp { " --tcp" } else { "" };
        match self {
            // In the kernel's tables in capital hexadecimal digits.
            Self::Tcp | Self::Udp => format!(
                "chrt -f 90 sockperf server -i 127.0.0.1 -p {PORT}{tcp} >/dev/null & p=$!\n\
                 until grep -q '0100007F:{PORT:04X} 00000000:0000' /proc/net/{self}; do\n\
                 sleep 0.05\ndone\n\
                 chrt -f 90 sockperf ping-pong -i 127.0.0.1 -p {PORT} -m 14 -t {LENGTH_S}{tcp} \
                 --full-rtt --full-log {OUT}/theirs-{round} >/dev/null\n\
                 kill $p\nwait $p || true"
            ),
            Self::Zmq => format!(
                "chrt -f 90 local_lat tcp://127.0.0.1:{PORT} 1 {ZMQ_TRIPS} >/dev/null & p=$!\n\
                 chrt -f 90 remote_lat tcp://127.0.0.1:{PORT} 1 {ZMQ_TRIPS} \
                 >{OUT}/theirs-{round}\n\
                 wait $p || true"
            ),
        }
    }
}

fn round_trips(left: &Path) -> Result<Vec<Pair>> {
    let pair = |round| {
        let ours = recorded(&left.join(format!("ours-{round}")))?;
        let mut theirs = hlog::empty();
        sockperf_log(&fs::read_to_string(left.join(format!("theirs-{round}")))?, &mut theirs)?;
        ensure!(theirs.len() > 1_000, "sockperf has only {} round trips", theirs.len());
        Ok(Pair { ours, theirs })
    };
    (0..ROUNDS).map(pair).collect()
}

/// Of both sides, ns, for each round.
fn means(left: &Path) -> Result<Vec<(f64, f64)>> {
    let pair = |round| {
        let ours = recorded(&left.join(format!("ours-{round}")))?.mean();
        let said = fs::read_to_string(left.join(format!("theirs-{round}")))?;
        let half = half_us(&said).context("remote_lat printed no average")?;
        Ok((ours, half * 2e3))
    };
    (0..ROUNDS).map(pair).collect()
}
