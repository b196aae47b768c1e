//! `tardy run stream`: from flags to the probe.

use anyhow::{Result, anyhow, bail, ensure};
use tardy_hot::{packet, stream::PacketPeriod};

use super::{Ends, MessageFlags};
use crate::{
    probes::stream::{PacketWait, RemoteEcho, Stream, StreamTransport},
    setup::threads::describe,
    sys::{cpus::Cpus, sched::Policy},
    transports::hello::read_token,
    units::{PacketRate, cpus},
};

/// The default rate.
const DEFAULT_RATE: PacketRate = PacketRate { per_1000_s: 1_000_000 };

/// The default packet size, bytes.
const DEFAULT_SIZE: u64 = 64;

/// The largest payload of a UDP datagram, bytes.
const UDP_MOST: u64 = 65_507;

/// The largest packet, bytes: socket buffers are to hold one second of them.
const MOST: u64 = 1 << 20;

/// The default of --late-over, ns.
const DEFAULT_LATE_NS: i64 = 1_000_000;

impl MessageFlags {
    /// The rate of a stream.
    ///
    /// # Errors
    /// It has no unit, or is not a rate.
    pub(crate) fn packet_rate(&self) -> Result<PacketRate> {
        let Some(text) = &self.rate else { return Ok(DEFAULT_RATE) };
        text.parse().map_err(|error| anyhow!("--rate {text}: {error}"))
    }

    /// Time between two packets of a stream, ns.
    ///
    /// # Errors
    /// As [`MessageFlags::packet_rate`].
    pub(crate) fn packet_period_ns(&self) -> Result<i64> {
        Ok(PacketPeriod::of_rate(self.packet_rate()?.per_1000_s).ns.max(1))
    }

    /// The stream that these flags describe.
    ///
    /// # Errors
    /// Names the flag that cannot be used, and the remedy.
    pub(crate) fn stream(&self, ends: Ends, allowed: &Cpus) -> Result<Stream> {
        let way = self.way()?;
        let rate = self.packet_rate()?;
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
    use crate::setup::threads::Terms;

    fn ends(policy: Policy, cpus: (u32, u32)) -> Ends {
        let terms = |cpu| Terms { policy, priority: 90, cpu, slack_ns: 1 };
        Ends { near: terms(cpus.0), far_end: terms(cpus.1) }
    }

    fn planned(flags: &MessageFlags, ends: Ends) -> Result<Stream> {
        flags.stream(ends, &"0-1".parse().unwrap())
    }

    fn why(flags: &MessageFlags) -> String {
        planned(flags, ends(Policy::Other, (0, 1))).unwrap_err().to_string()
    }

    fn text(text: &str) -> Option<String> {
        Some(text.into())
    }

    #[test]
    fn what_spins_everywhere_at_a_real_time_priority_is_refused() {
        let flags = MessageFlags { wait: text("spin"), ..MessageFlags::default() };
        for (place, words) in [((0, 1), "nothing could record"), ((1, 1), "never lets the other")] {
            let said = planned(&flags, ends(Policy::Fifo, place)).unwrap_err().to_string();
            assert!(said.contains(words) && said.contains("--policy other"), "{said}");
            planned(&flags, ends(Policy::Other, place)).unwrap();
        }
        let slow = |wait: &str| MessageFlags {
            wait: text(wait),
            rate: text("100pps"),
            ..MessageFlags::default()
        };
        planned(&slow("hybrid:2ms"), ends(Policy::Fifo, (0, 1))).unwrap();
        planned(&slow("hybrid:10ms"), ends(Policy::Fifo, (0, 1))).unwrap_err();
        let one = MessageFlags { far_wait: text("sleep"), ..flags };
        planned(&one, ends(Policy::Fifo, (0, 1))).unwrap();
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_its_flag() {
        let none = MessageFlags::default;
        let group = Some(std::net::Ipv4Addr::new(239, 1, 2, 3));
        let localhost = Some(std::net::Ipv4Addr::LOCALHOST);
        for (flags, words) in [
            (MessageFlags { rate: text("100"), ..none() }, "100 has no unit; write 100pps"),
            (MessageFlags { size: Some(55), ..none() }, "at least 56"),
            (MessageFlags { size: Some(65_508), ..none() }, "at most 65507"),
            (MessageFlags { wait: text("doze"), ..none() }, "--wait \"doze\""),
            (MessageFlags { far_wait: text("doze"), ..none() }, "--far-wait \"doze\""),
            (MessageFlags { transport: text("pipe"), ..none() }, "use udp, tcp"),
            (MessageFlags { transport: text("epgm"), ..none() }, "--group 239.1.2.3"),
            (MessageFlags { group: localhost, ..none() }, "is not a multicast address"),
            (MessageFlags { group, both_ways: true, ..none() }, "--both-ways"),
            (MessageFlags { group, transport: text("tcp"), ..none() }, "--group"),
            (MessageFlags { receivers: Some(2), ..none() }, "--receivers needs"),
            (
                MessageFlags { to: text("h:1"), far_wait: text("spin"), ..none() },
                "--far-wait is not supported with --to",
            ),
            (MessageFlags { to: text("h:1"), group, ..none() }, "--group is not supported"),
            (MessageFlags { token_file: Some("f".into()), ..none() }, "needs --to"),
        ] {
            let said = why(&flags);
            assert!(said.contains(words), "{said}");
        }
    }

    #[test]
    fn without_flags_a_thousand_small_datagrams_a_second_are_sent() {
        let stream = planned(&MessageFlags::default(), ends(Policy::Fifo, (0, 1))).unwrap();
        assert_eq!(
            (stream.way, stream.size, stream.rate.per_s()),
            (StreamTransport::Udp, 64, 1_000.0)
        );
        assert_eq!(
            (stream.waits, stream.late_over_ns),
            ((PacketWait::Sleep, PacketWait::Sleep), 1_000_000)
        );
        assert_eq!(MessageFlags::default().packet_period_ns().unwrap(), 1_000_000);
    }
}
