//! How exactly a stream keeps its schedule, against a bare loop that spins and sends.

use std::{net::UdpSocket, os::fd::AsRawFd, time::Duration};

use anyhow::{Context, Result};
use tardy::{
    analysis,
    setup::threads::ThreadConfig,
    sys::{memory, sched::Policy},
};
use tardy_hot::{
    clock::now_ns,
    packet::{self, Packet},
    ring::ring,
    stop::Stop,
    stream::{
        Counts, PacketPeriod, PacketSchedule, Packets, RecvOutcome, SpinPacing, StreamEnd,
        StreamLimits, Udp, send,
    },
};

use super::{
    Bench,
    sheet::{FigureRow, Section, interval},
};

/// Packets in 1,000 s.
const RATE: u64 = 50_000_000;

/// The share of the bare loop that ours may need.
const LIMIT: f64 = 1.05;

/// Between two loops of 0.3 s.
const REST: Duration = Duration::from_millis(700);

/// Notes how late each packet is sent, then sends it.
struct Noted<'a> {
    way: Udp,
    late_ns: &'a mut Vec<i64>,
}

impl Packets for Noted<'_> {
    fn send(&mut self, packet: &Packet) -> Result<(), i32> {
        self.late_ns.push(packet.sent_ns - packet.scheduled_ns);
        self.way.send(packet)
    }

    fn receive(&mut self) -> Result<RecvOutcome, i32> {
        self.way.receive()
    }

    fn wait(&mut self, until_ns: i64) -> Result<(), i32> {
        self.way.wait(until_ns)
    }
}

/// The loop of the `stream` probe.
fn ours(socket: &UdpSocket, packets: u64, late_ns: &mut Vec<i64>) {
    let way = Udp::new(socket.as_raw_fd(), packet::LEN, None);
    let (mut passages, _reader) = ring(2);
    let (counts, stop, enough) = (Counts::default(), Stop::new(), Stop::new());
    let mut noted = Noted { way, late_ns };
    let (port, passages, counts) = (&mut noted, &mut passages, &counts);
    let mut end = StreamEnd { port, pace: SpinPacing, session: 1, passages, counts };
    let (first_ns, period) = (now_ns() + 1_000_000, PacketPeriod::of_rate(RATE));
    let packets_due = PacketSchedule { first_ns, period, packets, recorded_from: 0, flow: 0 };
    let limits = StreamLimits { until_ns: i64::MAX, stop: &stop, enough: &enough };
    send(&mut end, &packets_due, limits);
}

/// Nothing but the clock and the system call.
fn bare(socket: &UdpSocket, packets: u64, late_ns: &mut Vec<i64>) {
    let bytes = [0; packet::LEN];
    let mut due_ns = now_ns() + 1_000_000;
    for _ in 0..packets {
        let mut now = now_ns();
        while now < due_ns {
            std::hint::spin_loop();
            now = now_ns();
        }
        late_ns.push(now - due_ns);
        let _ = socket.send(&bytes);
        due_ns += PacketPeriod::of_rate(RATE).ns;
    }
}

/// Median and 99th percentile, ns.
fn figures(late_ns: &mut [i64]) -> [f64; 2] {
    late_ns.sort_unstable();
    let at = |share: usize| late_ns.get(late_ns.len() * share / 100).copied().unwrap_or(0) as f64;
    [at(50), at(99)]
}

/// One after the other, in turns; per pair the figures of ours and of the bare one.
fn pairs(bench: &Bench) -> Result<Vec<[[f64; 2]; 2]>> {
    let cpu = bench.cpus.iter().last().context("no CPU")?;
    ThreadConfig { policy: Policy::Fifo, priority: 90, cpu, slack_ns: 1 }.apply()?;
    memory::touch_stack();
    let (near, far) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    near.connect(far.local_addr()?)?;
    let packets = bench.either(15_000, 2_000);
    let mut late_ns = vec![1; usize::try_from(packets)?];
    let mut measured = |what: fn(&UdpSocket, u64, &mut Vec<i64>)| {
        // The kernel throttles a real-time thread that spins longer: its gaps would be the figure.
        std::thread::sleep(REST);
        late_ns.clear();
        what(&near, packets, &mut late_ns);
        figures(&mut late_ns)
    };
    Ok((0..bench.either(11, 2)).map(|_| [measured(ours), measured(bare)]).collect())
}

/// Ratios of how late packets are sent.
pub(super) fn part(bench: &Bench) -> Result<Section> {
    let mut section = Section::new("Pacing of a stream, 50 kpps, spinning");
    let pairs = std::thread::scope(|scope| {
        let measured = scope.spawn(|| pairs(bench)).join();
        measured.unwrap_or_else(|_| anyhow::bail!("the thread died"))
    })?;
    for (place, name) in ["median", "99th percentile"].into_iter().enumerate() {
        let of = |who: usize| -> Vec<f64> { pairs.iter().map(|pair| pair[who][place]).collect() };
        let both: Vec<(f64, f64)> = of(0).into_iter().zip(of(1)).collect();
        let ratios: Vec<f64> = both.iter().map(|(own, bare)| own / bare.max(1.0)).collect();
        let ratio = analysis::median(&ratios, 0.95)?;
        let (own, bare) = (analysis::median(&of(0), 0.95)?, analysis::median(&of(1), 0.95)?);
        let (own, bare) = (interval(&own, 0), interval(&bare, 0));
        let measured =
            format!("{} of the bare loop's; {own} ns against {bare} ns", interval(&ratio, 3));
        let row = FigureRow::new(format!("lateness of sending, {name}"), measured);
        section.rows.push(row.judged(format!("{LIMIT}"), ratio.meets(LIMIT)));
    }
    section.note(format!(
        "{} pairs in turns, 0.3 s each, fifo 90 on one CPU, 0.7 s apart, UDP on loopback to a \
         socket that is not read; lateness is the clock read that ends the wait minus the \
         packet's time.",
        pairs.len()
    ));
    Ok(section)
}
