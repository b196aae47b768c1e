//! Options of the stream probe.

use std::path::PathBuf;

use anyhow::{Result, anyhow, bail, ensure};
use clap::Args;
use tardy_hot::{packet, stream::PacketPeriod};

use super::{PacketWait, RemoteEcho, Stream, StreamTransport};
use crate::{
    probes::{
        message_ends::{Ends, check_policy, packet_period_ns, packet_rate, places},
        request::{MeasuredCpus, PlannedProbe, ProbeFlags, ProbeRequest, SharedOptions},
    },
    setup::threads::{ThreadConfig, describe},
    sys::{cpus::Cpus, sched::Policy},
    transports::hello::read_token,
    units::{Nanos, PacketRate, cpus, typed::positive},
};

/// The default packet size, bytes.
const DEFAULT_SIZE: u64 = 64;

/// The largest payload of a UDP datagram, bytes.
const UDP_MOST: u64 = 65_507;

/// The largest packet, bytes: socket buffers are to hold one second of them.
const MOST: u64 = 1 << 20;

/// The default of --late-over, ns.
const DEFAULT_LATE_NS: i64 = 1_000_000;

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Probe")]
pub(in crate::probes) struct StreamFlags {
    /// Transport of the packets: udp, tcp, zmq-pubsub or epgm [default: udp]
    #[arg(long, value_name = "NAME")]
    transport: Option<String>,
    /// Size of one packet in bytes [default: 64]
    #[arg(long, value_name = "BYTES")]
    size: Option<u64>,
    /// Packets per second, as 100pps or 10kpps [default: 1kpps]
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// Also send packets from the remote endpoint, at the same rate
    #[arg(long)]
    both_ways: bool,
    /// How to wait: sleep, spin or hybrid:TIME [default: sleep]
    ///
    /// hybrid:2ms sleeps until 2 ms before the scheduled time of a packet, then spins.
    #[arg(long, value_name = "HOW")]
    wait: Option<String>,
    /// How the remote endpoint waits [default: as --wait]
    #[arg(long, value_name = "HOW")]
    far_wait: Option<String>,
    /// Count a packet as late when it arrives this long after its scheduled time [default: 1ms]
    #[arg(long, value_name = "TIME", value_parser = positive)]
    late_over: Option<Nanos>,
    /// Send to this multicast group
    #[arg(long, value_name = "ADDRESS")]
    group: Option<std::net::Ipv4Addr>,
    /// How many receivers join the group [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    receivers: Option<u32>,
    /// HOST:PORT of a tardy echo [default: started here]
    #[arg(long, value_name = "ADDRESS")]
    to: Option<String>,
    /// File with a secret that both ends share; required beyond loopback
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Real-time priority of the remote endpoint [default: that of the local endpoint]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99))]
    far_priority: Option<u32>,
}

impl ProbeFlags for StreamFlags {}

impl ProbeRequest for StreamFlags {
    fn check_policy(
        &self,
        policy: Policy,
        _: u32,
        _: &MeasuredCpus,
        _: &SharedOptions<'_>,
    ) -> Result<()> {
        check_policy("stream", policy)
    }

    fn cpus(&self, shared: &SharedOptions<'_>) -> Result<MeasuredCpus> {
        places("stream", shared, self.to.is_none())
    }

    fn plan(
        &self,
        terms: ThreadConfig,
        cpus: &MeasuredCpus,
        shared: &SharedOptions<'_>,
    ) -> Result<PlannedProbe> {
        let ends = Ends::of(terms, cpus.far, self.far_priority)?;
        let pace_ns = packet_period_ns(self.rate.as_deref())?;
        Ok(PlannedProbe::new(self.stream(ends, shared.allowed)?, pace_ns))
    }
}

impl StreamFlags {
    fn stream(&self, ends: Ends, allowed: &Cpus) -> Result<Stream> {
        let way = self.way()?;
        let rate = packet_rate(self.rate.as_deref())?;
        let wait = |flag: &str, text: &Option<String>| {
            let read = |text: &String| text.parse().map_err(|error| anyhow!("{flag} {error}"));
            text.as_ref().map(read).transpose()
        };
        let near_wait: PacketWait = wait("--wait", &self.wait)?.unwrap_or(PacketWait::Sleep);
        let far_wait = wait("--far-wait", &self.far_wait)?.unwrap_or(near_wait);
        let waits = (near_wait, far_wait);
        let echo = self.echo(way)?;
        check_spinning(&ends, waits, rate, allowed, echo.is_none())?;
        check_library(way, &ends, waits)?;
        Ok(Stream {
            way,
            size: self.packet_size(way)?,
            rate,
            both_ways: self.both_ways,
            waits,
            late_over_ns: self.late_over.map_or(DEFAULT_LATE_NS, |late| late.0),
            near: ends.near,
            far_end: ends.far_end,
            echo,
        })
    }

    fn echo(&self, way: StreamTransport) -> Result<Option<RemoteEcho>> {
        let Some(to) = &self.to else {
            ensure!(
                self.token_file.is_none(),
                "--token-file needs --to, as tardy starts the remote endpoint itself; \
                 add --to HOST:PORT, or leave it out"
            );
            return Ok(None);
        };
        ensure!(
            !matches!(way, StreamTransport::Multicast { .. } | StreamTransport::Epgm { .. }),
            "--group is not supported with --to: an echo is not a group; leave one of them out"
        );
        ensure!(
            matches!(way, StreamTransport::Udp | StreamTransport::Tcp),
            "--transport {} is not supported with --to: an echo speaks udp and tcp; use one of \
             them, or leave --to out",
            way.as_str()
        );
        for (flag, given) in [
            ("--far-wait", self.far_wait.is_some()),
            ("--far-priority", self.far_priority.is_some()),
        ] {
            ensure!(
                !given,
                "{flag} is not supported with --to: that end is set up where it runs, by `tardy \
                 echo`"
            );
        }
        let token = self.token_file.as_deref().map(read_token).transpose()?.unwrap_or_default();
        Ok(Some(RemoteEcho { to: to.clone(), token }))
    }

    fn way(&self) -> Result<StreamTransport> {
        let name = self.transport.as_deref().unwrap_or("udp");
        match (name, self.group) {
            ("udp" | "epgm", Some(group)) => {
                ensure!(
                    group.is_multicast(),
                    "--group {group} is not a multicast address; use one of 239.0.0.0 to \
                     239.255.255.255"
                );
                ensure!(
                    !self.both_ways,
                    "--both-ways is not supported with --group: a group does not answer; leave one \
                     of them out"
                );
                let receivers = self.receivers.unwrap_or(1);
                Ok(match name {
                    "epgm" => StreamTransport::Epgm { group, receivers },
                    _ => StreamTransport::Multicast { group, receivers },
                })
            }
            ("epgm", None) => bail!(
                "--transport epgm sends to a group: name one of 239.0.0.0 to 239.255.255.255, as \
                 in --group 239.1.2.3"
            ),
            (_, Some(_)) => {
                bail!("--group is not supported with --transport {name}; use udp or epgm")
            }
            (_, None) if self.receivers.is_some() => {
                bail!("--receivers needs the group that they join: --group 239.1.2.3")
            }
            ("udp", None) => Ok(StreamTransport::Udp),
            ("tcp", None) => Ok(StreamTransport::Tcp),
            ("zmq-pubsub", None) => Ok(StreamTransport::ZmqPubSub),
            _ => bail!(
                "--transport {name}: no such transport for a stream; use udp, tcp, \
                 zmq-pubsub or epgm"
            ),
        }
    }

    fn packet_size(&self, way: StreamTransport) -> Result<usize> {
        let size = self.size.unwrap_or(DEFAULT_SIZE);
        let least = packet::LEN as u64;
        ensure!(
            size >= least,
            "--size {size}: a packet of a stream has at least {least} bytes, for its number and \
             scheduled time"
        );
        let most = if matches!(way, StreamTransport::Tcp | StreamTransport::ZmqPubSub) {
            MOST
        } else {
            UDP_MOST
        };
        ensure!(
            size <= most,
            "--size {size}: a packet over {} has at most {most} bytes",
            way.as_str()
        );
        Ok(usize::try_from(size)?)
    }
}

/// ZeroMQ's own threads have the CPU and priority of their end, so they only run when it sleeps.
fn check_library(way: StreamTransport, ends: &Ends, waits: (PacketWait, PacketWait)) -> Result<()> {
    let spins = waits.0 == PacketWait::Spin || waits.1 == PacketWait::Spin;
    ensure!(
        !matches!(way, StreamTransport::ZmqPubSub | StreamTransport::Epgm { .. })
            || !spins
            || ends.near.policy == Policy::Other,
        "--wait spin with --transport {} and a real-time policy: the threads of ZeroMQ's library \
         could never run beside an end that spins; use --wait sleep or hybrid:TIME, or --policy \
         other",
        way.as_str()
    );
    Ok(())
}

/// Real-time ends that never sleep leave their CPUs to no other thread.
fn check_spinning(
    ends: &Ends,
    waits: (PacketWait, PacketWait),
    rate: PacketRate,
    allowed: &Cpus,
    is_far_here: bool,
) -> Result<()> {
    let Ends { near, far_end } = ends;
    if near.policy == Policy::Other {
        return Ok(());
    }
    let period_ns = PacketPeriod::of_rate(rate.per_1000_s).ns;
    let never_sleeps = |wait| match wait {
        PacketWait::Sleep => false,
        PacketWait::Spin => true,
        PacketWait::Hybrid(ns) => ns >= period_ns,
    };
    let busy: Cpus = [(near.cpu, waits.0), (far_end.cpu, waits.1)]
        .into_iter()
        .take(if is_far_here { 2 } else { 1 })
        .filter(|(_, wait)| never_sleeps(*wait))
        .map(|(cpu, _)| cpu)
        .collect();
    let policy = describe(near.policy, near.priority);
    ensure!(
        busy.is_empty() || near.cpu != far_end.cpu || !is_far_here,
        "--wait {} with --policy {policy}: both ends are on CPU {}, and the one that spins there \
         never lets the other run; put them on two CPUs by --cpus, or use --policy other",
        waits.0,
        near.cpu
    );
    ensure!(
        busy.is_empty() || !allowed.without(&busy).is_empty(),
        "--wait {} with --policy {policy} keeps {} busy, all that tardy may use, so that nothing \
         could record; leave a CPU free by --cpus, let one end sleep by --far-wait sleep, or use \
         --policy other",
        waits.0,
        cpus(&busy)
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::threads::ThreadConfig;

    fn ends(policy: Policy, cpus: (u32, u32)) -> Ends {
        let terms = |cpu| ThreadConfig { policy, priority: 90, cpu, slack_ns: 1 };
        Ends { near: terms(cpus.0), far_end: terms(cpus.1) }
    }

    fn planned(flags: &StreamFlags, ends: Ends) -> Result<Stream> {
        flags.stream(ends, &"0-1".parse().unwrap())
    }

    fn why(flags: &StreamFlags) -> String {
        planned(flags, ends(Policy::Other, (0, 1))).unwrap_err().to_string()
    }

    fn text(text: &str) -> Option<String> {
        Some(text.into())
    }

    #[test]
    fn what_spins_everywhere_at_a_real_time_priority_is_refused() {
        let flags = StreamFlags { wait: text("spin"), ..StreamFlags::default() };
        for (place, words) in [((0, 1), "nothing could record"), ((1, 1), "never lets the other")] {
            let said = planned(&flags, ends(Policy::Fifo, place)).unwrap_err().to_string();
            assert!(said.contains(words) && said.contains("--policy other"), "{said}");
            planned(&flags, ends(Policy::Other, place)).unwrap();
        }
        let slow = |wait: &str| StreamFlags {
            wait: text(wait),
            rate: text("100pps"),
            ..StreamFlags::default()
        };
        planned(&slow("hybrid:2ms"), ends(Policy::Fifo, (0, 1))).unwrap();
        planned(&slow("hybrid:10ms"), ends(Policy::Fifo, (0, 1))).unwrap_err();
        let one = StreamFlags { far_wait: text("sleep"), ..flags };
        planned(&one, ends(Policy::Fifo, (0, 1))).unwrap();
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_its_flag() {
        let none = StreamFlags::default;
        let group = Some(std::net::Ipv4Addr::new(239, 1, 2, 3));
        let localhost = Some(std::net::Ipv4Addr::LOCALHOST);
        for (flags, words) in [
            (StreamFlags { rate: text("100"), ..none() }, "100 has no unit; write 100pps"),
            (StreamFlags { size: Some(55), ..none() }, "at least 56"),
            (StreamFlags { size: Some(65_508), ..none() }, "at most 65507"),
            (StreamFlags { wait: text("doze"), ..none() }, "--wait \"doze\""),
            (StreamFlags { far_wait: text("doze"), ..none() }, "--far-wait \"doze\""),
            (StreamFlags { transport: text("pipe"), ..none() }, "use udp, tcp"),
            (StreamFlags { transport: text("epgm"), ..none() }, "--group 239.1.2.3"),
            (StreamFlags { group: localhost, ..none() }, "is not a multicast address"),
            (StreamFlags { group, both_ways: true, ..none() }, "--both-ways"),
            (StreamFlags { group, transport: text("tcp"), ..none() }, "--group"),
            (StreamFlags { receivers: Some(2), ..none() }, "--receivers needs"),
            (
                StreamFlags { to: text("h:1"), far_wait: text("spin"), ..none() },
                "--far-wait is not supported with --to",
            ),
            (StreamFlags { to: text("h:1"), group, ..none() }, "--group is not supported"),
            (StreamFlags { token_file: Some("f".into()), ..none() }, "needs --to"),
        ] {
            let said = why(&flags);
            assert!(said.contains(words), "{said}");
        }
    }

    #[test]
    fn without_flags_a_thousand_small_datagrams_a_second_are_sent() {
        let stream = planned(&StreamFlags::default(), ends(Policy::Fifo, (0, 1))).unwrap();
        assert_eq!(
            (stream.way, stream.size, stream.rate.per_s()),
            (StreamTransport::Udp, 64, 1_000.0)
        );
        assert_eq!(
            (stream.waits, stream.late_over_ns),
            ((PacketWait::Sleep, PacketWait::Sleep), 1_000_000)
        );
        assert_eq!(packet_period_ns(None).unwrap(), 1_000_000);
    }
}
