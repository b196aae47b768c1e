//! Round trips beside other people's tools and beside bare loops: same CPUs, policy, priority and
//! size of messages, in turns.

pub(crate) mod bare;
mod sockperf;
mod zmq;

use std::{
    ffi::OsStr,
    fmt, fs,
    path::Path,
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;
use tardy::{
    analysis,
    run::{Run, hlog},
    setup::power::DmaLatency,
    units::Nanos,
};

pub(super) use self::{sockperf::read as sockperf_log, zmq::half_us};
use super::{
    Bench,
    process::{self, Used},
    say,
    sheet::{FigureRow, Section, interval},
};

/// Whom tardy is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Peer {
    Sockperf {
        tcp: bool,
    },
    Bare,
    /// `remote_lat`, which tells an average alone.
    Zmq,
}

/// A transport, its peer, and the most that tardy may take, as a share of the peer's time.
struct Way {
    transport: &'static str,
    /// Bytes of a message, where the transport carries any.
    size: usize,
    peer: Peer,
    limit: f64,
}

/// sockperf sends 14 bytes at the least.
const WAYS: [Way; 7] = [
    Way { transport: "tcp", size: 14, peer: Peer::Sockperf { tcp: true }, limit: 1.0 },
    Way { transport: "udp", size: 14, peer: Peer::Sockperf { tcp: false }, limit: 1.0 },
    Way { transport: "pipe", size: 1, peer: Peer::Bare, limit: 1.05 },
    Way { transport: "eventfd", size: 1, peer: Peer::Bare, limit: 1.05 },
    Way { transport: "futex", size: 1, peer: Peer::Bare, limit: 1.05 },
    Way { transport: "zmq-tcp", size: 1, peer: Peer::Zmq, limit: 1.0 },
    Way { transport: "zmq-ipc", size: 1, peer: Peer::Zmq, limit: 1.0 },
];

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sockperf { .. } => "sockperf",
            Self::Bare => "a bare loop",
            Self::Zmq => "local_lat and remote_lat",
        })
    }
}

/// The CPUs of both ends.
#[derive(Debug, Clone, Copy)]
struct Places {
    near: u32,
    far: u32,
}

impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.near == self.far { "one CPU" } else { "two CPUs" })
    }
}

/// One round's results of one side, ns.
#[derive(Debug, Clone, Copy, Default)]
struct Outcome {
    min: Option<f64>,
    p50: Option<f64>,
    p99: Option<f64>,
    mean: Option<f64>,
    /// CPU time of the end that measures, per round trip.
    cpu: Option<f64>,
}

/// What of an outcome is compared, and whether there is a limit for it.
type Figure = (&'static str, fn(&Outcome) -> Option<f64>, bool);

const FIGURES: [Figure; 4] = [
    ("min", |outcome| outcome.min, false),
    ("median", |outcome| outcome.p50, true),
    ("p99", |outcome| outcome.p99, true),
    ("CPU per round trip", |outcome| outcome.cpu, true),
];

/// All that a peer tells that keeps no single round trips.
const MEAN: [Figure; 1] = [("mean", |outcome| outcome.mean, true)];

impl Peer {
    const fn figures(self) -> &'static [Figure] {
        match self {
            Self::Zmq => &MEAN,
            Self::Sockperf { .. } | Self::Bare => &FIGURES,
        }
    }
}

/// How long after its start a side measures.
const BEGINS: Duration = Duration::from_millis(200);

/// How long each side runs, and how often.
struct Frame<'a> {
    bench: &'a Bench,
    seconds: u64,
    rounds: usize,
}

/// All transports with a peer, with both ends on two CPUs and on one.
pub(crate) fn part(bench: &Bench) -> Result<Section> {
    let mut section = Section::new("Round trips beside sockperf, bare loops and libzmq's tools");
    // For everybody alike.
    let _held = DmaLatency::hold();
    let cpus: Vec<u32> = bench.cpus.iter().collect();
    let near = cpus.first().copied().context("no CPU")?;
    let apart = cpus.get(1).map(|&far| Places { near, far });
    let frame = Frame { bench, seconds: bench.either(2, 1), rounds: bench.either(7, 6) };
    for places in apart.into_iter().chain([Places { near, far: near }]) {
        for way in &WAYS {
            frame.compare(way, places, &mut section);
        }
    }
    section.note(format!(
        "{} rounds; in each, tardy (`run pingpong --trace off --warmup 0us`) and its peer run once \
         for {} s, in turns there and back; both ends SCHED_FIFO 90 on separate CPUs or on \
         one, each end a process, `/dev/cpu_dma_latency` held at 0. Messages of 14 bytes beside \
         sockperf (`ping-pong --full-rtt --full-log`), which sends no shorter ones, otherwise \
         of 1.",
        frame.rounds, frame.seconds,
    ));
    section.note(
        "Whole round trips. All of them go through the same histogram (three digits) before \
         percentiles are read; the log of sockperf and the array of the bare loop are exact; \
         libzmq's tools print only a mean. CPU per round trip: of the thread that measures, as \
         under \"Timer wake-ups\", divided by the times it went to sleep.",
    );
    Ok(section)
}

impl Frame<'_> {
    fn compare(&self, way: &Way, places: Places, section: &mut Section) {
        let mut pairs: Vec<(Outcome, Outcome)> = Vec::new();
        let mut trouble = None;
        for round in 0..self.rounds {
            let ours = || self.tardy(way, places, round);
            let theirs = || self.peer(way, places, round);
            // There and back, so that running before the other side gives no advantage.
            let both = if round % 2 == 0 {
                ours().and_then(|ours| Ok((ours, theirs()?)))
            } else {
                theirs().and_then(|theirs| Ok((ours()?, theirs)))
            };
            match both {
                Ok(pair) => pairs.push(pair),
                Err(error) => trouble = Some(format!("{error:#}")),
            }
        }
        say(&format!("  {} on {places}: {} rounds", way.transport, pairs.len()));
        for (name, of, is_limited) in way.peer.figures() {
            let what = format!("{}, {places}: {name} against {}", way.transport, way.peer);
            let pairs: Vec<_> =
                pairs.iter().filter_map(|(ours, theirs)| Some((of(ours)?, of(theirs)?))).collect();
            let limit = is_limited.then_some(way.limit);
            section.rows.push(row(what, limit, &pairs, trouble.as_deref()));
        }
    }

    fn tardy(&self, way: &Way, places: Places, round: usize) -> Result<Outcome> {
        let place = self.bench.path(&format!("rtt-{}-{places}-{round}", way.transport));
        let mut words = format!(
            "run pingpong --transport {} --trace off --cpus {},{} --warmup 0us --duration {}s \
             --policy fifo --priority 90 --quiet",
            way.transport, places.near, places.far, self.seconds
        );
        if way.size > 1 {
            words += &format!(" --size {}", way.size);
        }
        let mut command = Command::new(&self.bench.tardy);
        command.args(words.split(' ')).arg("-o").arg(&place);
        let cpu_ns = self.watched(&mut command, BEGINS, |name, _| name == "tardy/rtt")?;
        let mut all = hlog::empty();
        Run::open(&place)?.intervals(|_, _, counts| {
            // Bounds are equal, so that nothing can be lost.
            let _ = all.add(&counts);
        })?;
        outcome(&all, cpu_ns)
    }

    fn peer(&self, way: &Way, places: Places, round: usize) -> Result<Outcome> {
        let place = self.bench.path(&format!("peer-{}-{places}-{round}", way.transport));
        let mut all = hlog::empty();
        let cpu_ns = match way.peer {
            Peer::Sockperf { tcp } => {
                let server = sockperf::Server::start(places, tcp)?;
                let mut client = server.client(places, way.size, self.seconds, &place);
                let cpu_ns = self.watched(&mut client, sockperf::BEGINS, |_, first| first)?;
                sockperf::read(&fs::read_to_string(&place)?, &mut all)?;
                cpu_ns
            }
            Peer::Zmq => {
                let (size, count) = (way.size, self.bench.either(20_000, 2_000));
                let mean = zmq::mean_ns(way.transport, places, size, count, &place)?;
                return Ok(Outcome { mean: Some(mean), ..Outcome::default() });
            }
            Peer::Bare => {
                let mut command = Command::new(&self.bench.own);
                let words = format!(
                    "bare-exchange {} {} {} {}",
                    way.transport,
                    places.near,
                    places.far,
                    self.seconds * 1_000_000_000
                );
                command.args(words.split(' ')).arg(&place);
                let cpu_ns = self.watched(&mut command, BEGINS, |_, first| first)?;
                read_bare(&place, &mut all)?;
                cpu_ns
            }
        };
        outcome(&all, cpu_ns)
    }

    /// Runs a side to its end; the CPU time of its measuring thread per round trip, ns, looked at
    /// twice after its start, when it has begun to measure.
    fn watched(
        &self,
        command: &mut Command,
        begins: Duration,
        counts: impl Fn(&str, bool) -> bool,
    ) -> Result<f64> {
        let begun = Instant::now();
        let mut child = process::start(command)?;
        let look = |part: f64| {
            let at = Duration::from_secs(self.seconds).mul_f64(part) + begins;
            sleep(at.saturating_sub(begun.elapsed()));
            Used::of(child.id(), &counts)
        };
        let (early, late) = (look(0.25), look(0.7));
        let ended = child.wait()?;
        ensure!(ended.success(), "{command:?} ended with {ended}");
        late?.per_wakeup_since(early?)
    }
}

/// A command at FIFO 90 on one CPU.
fn real_time(program: impl AsRef<OsStr>, cpu: u32) -> Command {
    let mut command = Command::new("chrt");
    command.args(["-f", "90", "taskset", "-c", &cpu.to_string()]).arg(program);
    command
}

fn outcome(all: &Histogram<u64>, cpu_ns: f64) -> Result<Outcome> {
    ensure!(all.len() > 100, "only {} round trips", all.len());
    let at = |quantile| all.value_at_quantile(quantile) as f64;
    Ok(Outcome {
        min: Some(all.min() as f64),
        p50: Some(at(0.5)),
        p99: Some(at(0.99)),
        mean: Some(all.mean()),
        cpu: Some(cpu_ns),
    })
}

fn read_bare(place: &Path, all: &mut Histogram<u64>) -> Result<()> {
    for taken in fs::read(place)?.chunks_exact(8) {
        all.record(u64::try_from(i64::from_ne_bytes(taken.try_into()?)).unwrap_or(0))?;
    }
    Ok(())
}

fn row(what: String, limit: Option<f64>, pairs: &[(f64, f64)], why: Option<&str>) -> FigureRow {
    let (ours, theirs): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let middle =
        |values: &[f64]| analysis::median(values, 0.95).map(|all| Nanos(all.median as i64));
    let limit_text = limit.map_or_else(String::new, |limit| format!("{limit:.2}"));
    match (analysis::paired(pairs, 0.95), middle(&ours), middle(&theirs)) {
        (Ok(ratio), Ok(ours), Ok(theirs)) => {
            let measured = format!("{}; {ours} against {theirs}", interval(&ratio, 3));
            match limit {
                Some(limit) => {
                    FigureRow::new(what, measured).judged(limit_text, ratio.meets(limit))
                }
                None => FigureRow::new(what, measured),
            }
        }
        (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => {
            FigureRow::not_measured(what, limit_text, why.unwrap_or(&error.to_string()))
        }
    }
}
