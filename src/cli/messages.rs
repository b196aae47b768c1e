//! Flags of the probes that exchange messages, and which of them each probe takes.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;

use super::flags::positive;
use crate::{sys::cpus::Cpus, transports::Transport, units::Nanos};

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Messages (pingpong, receive, stream)")]
pub struct MessageFlags {
    /// What carries messages [default: tcp for pingpong, udp for stream]
    ///
    /// pingpong: zmq-tcp, zmq-ipc, zmq-inproc, tcp, udp, unix-stream, unix-dgram, pipe, eventfd,
    /// futex, posix-mq, sysv-sem, signal, pi-mutex, shm-spin. stream: udp, tcp, zmq-pubsub, epgm.
    #[arg(long, value_name = "NAME")]
    pub transport: Option<String>,
    /// Bytes of one message [default: 1 for pingpong, 64 for stream and receive]
    #[arg(long, value_name = "BYTES")]
    pub size: Option<u64>,
    /// HOST:PORT of a tardy echo, or for zmq-tcp of any REP socket [default: a far end started here]
    #[arg(long, value_name = "ADDRESS")]
    pub to: Option<String>,
    /// The far end is no tardy: any program that sends back what it gets
    #[arg(long)]
    pub foreign: bool,
    /// File whose content both ends know; an echo beyond loopback answers nobody without it
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Real-time priority of the far end [default: that of the near one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99))]
    pub far_priority: Option<u32>,
    /// Give an answer up after this [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = positive)]
    pub timeout: Option<Nanos>,
    /// Packets per second, as 100pps or 10kpps [default: 1kpps]
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,
    /// Send as many back, on a schedule of their own
    #[arg(long)]
    pub both_ways: bool,
    /// How to wait: stream sleep, spin or hybrid:TIME; receive block, ppoll, epoll, busy-poll, spin
    ///
    /// hybrid:2ms sleeps until 2 ms before a packet's time, then spins.
    #[arg(long, value_name = "HOW")]
    pub wait: Option<String>,
    /// The same for the far end [default: as --wait]
    #[arg(long, value_name = "HOW")]
    pub far_wait: Option<String>,
    /// Send to this multicast group
    #[arg(long, value_name = "ADDRESS")]
    pub group: Option<std::net::Ipv4Addr>,
    /// How many receive what is sent to the group [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub receivers: Option<u32>,
    /// A packet that arrives later than this after its time counts as late [default: 1ms]
    #[arg(long, value_name = "TIME", value_parser = positive)]
    pub late_over: Option<Nanos>,
    /// Measure packets that come to this UDP port
    #[arg(long, value_name = "PORT", conflicts_with = "iface")]
    pub listen: Option<u16>,
    /// Measure all packets that come to this network interface
    #[arg(long, value_name = "NAME")]
    pub iface: Option<String>,
    /// Who sends what is received: builtin, or none [default: builtin with --listen]
    #[arg(long, value_name = "WHO")]
    pub sender: Option<String>,
}

/// A flag, whether the user gave it, and the probes that it means something to.
type Use = (&'static str, bool, &'static [&'static str]);

impl MessageFlags {
    fn uses(&self) -> [Use; 17] {
        const ALL: &[&str] = &["pingpong", "receive", "stream"];
        const EXCHANGE: &[&str] = &["pingpong", "stream"];
        const PACED: &[&str] = &["receive", "stream"];
        [
            ("--transport", self.transport.is_some(), EXCHANGE),
            ("--size", self.size.is_some(), ALL),
            ("--to", self.to.is_some(), EXCHANGE),
            ("--foreign", self.foreign, &["pingpong"]),
            ("--token-file", self.token_file.is_some(), EXCHANGE),
            ("--far-priority", self.far_priority.is_some(), ALL),
            ("--timeout", self.timeout.is_some(), &["pingpong"]),
            ("--rate", self.rate.is_some(), PACED),
            ("--both-ways", self.both_ways, &["stream"]),
            ("--wait", self.wait.is_some(), PACED),
            ("--far-wait", self.far_wait.is_some(), &["stream"]),
            ("--group", self.group.is_some(), &["stream"]),
            ("--receivers", self.receivers.is_some(), &["stream"]),
            ("--late-over", self.late_over.is_some(), &["stream"]),
            ("--listen", self.listen.is_some(), &["receive"]),
            ("--iface", self.iface.is_some(), &["receive"]),
            ("--sender", self.sender.is_some(), &["receive"]),
        ]
    }

    /// Refuses what means nothing to `probe`.
    ///
    /// # Errors
    /// Names the flag and the probes that take it.
    pub fn check(&self, probe: &str) -> Result<()> {
        let vain = |(_, given, probes): &&Use| *given && !probes.contains(&probe);
        if let Some((flag, _, probes)) = self.uses().iter().find(vain) {
            let probes = probes.join(", ");
            bail!("{flag} has no meaning with {probe}; leave it out, or measure {probes}");
        }
        Ok(())
    }
}

/// A transport of a ping-pong by its name.
///
/// # Errors
/// Names all there are.
pub fn transport(name: &str) -> Result<Transport> {
    let known = Transport::ALL.into_iter().find(|known| known.as_str() == name);
    known.map_or_else(
        || {
            let all = Transport::ALL.map(Transport::as_str).join(", ");
            bail!("--transport {name}: there is no such transport; there are {all}")
        },
        Ok,
    )
}

/// The CPUs of the near and of the far end: the first two of those named, in the order in which
/// they were; both are the same where only one was. Without any, the first two allowed.
#[must_use]
pub fn places(asked: Option<&str>, allowed: &Cpus) -> (u32, u32) {
    let named: Vec<u32> =
        asked.unwrap_or_default().split(',').filter_map(|part| part.trim().parse().ok()).collect();
    let all: Vec<u32> = if named.is_empty() { allowed.iter().collect() } else { named };
    let near = all.first().copied().unwrap_or(0);
    (near, all.get(1).copied().unwrap_or(near))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_of_another_probe_is_refused_by_name() {
        let flags = MessageFlags { rate: Some("1kpps".into()), ..MessageFlags::default() };
        flags.check("stream").unwrap();
        let error = flags.check("pingpong").unwrap_err().to_string();
        assert!(error.contains("--rate") && error.contains("receive, stream"), "{error}");
        assert!(flags.check("timer").is_err());
        MessageFlags::default().check("timer").unwrap();
    }

    #[test]
    fn an_unknown_transport_is_refused_with_all_there_are() {
        assert_eq!(transport("pipe").unwrap(), Transport::Pipe);
        let error = transport("carrier-pigeon").unwrap_err().to_string();
        assert!(error.contains("shm-spin") && error.contains("zmq-tcp"), "{error}");
    }

    #[test]
    fn ends_lie_where_they_were_put() {
        let allowed: Cpus = "2-5".parse().unwrap();
        assert_eq!(places(None, &allowed), (2, 3));
        assert_eq!(places(Some("4"), &allowed), (4, 4));
        assert_eq!(places(Some("5,2"), &allowed), (5, 2));
        assert_eq!(places(None, &"3".parse().unwrap()), (3, 3));
    }
}
