//! Flags of the probes that exchange messages, and which of them each probe takes.

mod pingpong;
mod receive;
mod stream;

use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use clap::Args;

use self::pingpong::PACE_NS;
use super::flags::{CpuList, positive};
use crate::{
    probes::Probe,
    setup::{
        SetupError, Wish,
        threads::{self, Terms},
    },
    sys::{cpus::Cpus, sched::Policy},
    transports::Transport,
    units::Nanos,
};

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Messages (pingpong, receive, stream)")]
pub(super) struct MessageFlags {
    /// Transport of the messages [default: tcp for pingpong, udp for stream]
    ///
    /// pingpong: zmq-tcp, zmq-ipc, zmq-inproc, tcp, udp, unix-stream, unix-dgram, pipe, eventfd,
    /// futex, posix-mq, sysv-sem, signal, pi-mutex, shm-spin. stream: udp, tcp, zmq-pubsub, epgm.
    #[arg(long, value_name = "NAME")]
    pub transport: Option<String>,
    /// Size of one message in bytes [default: 1 for pingpong, 64 for stream and receive]
    #[arg(long, value_name = "BYTES")]
    pub size: Option<u64>,
    /// HOST:PORT of a tardy echo, or for zmq-tcp of any REP socket [default: started here]
    ///
    /// A peer that is not a tardy echo gets exactly --samples messages, including the warm-up,
    /// which is then at most a tenth of them.
    #[arg(long, value_name = "ADDRESS")]
    pub to: Option<String>,
    /// The other end is another program: no handshake, messages returned unchanged
    #[arg(long)]
    pub foreign: bool,
    /// File with a secret that both ends share; required beyond loopback
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Real-time priority of the remote endpoint [default: that of the local endpoint]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99))]
    pub far_priority: Option<u32>,
    /// Count an answer as lost after this time [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = positive)]
    pub timeout: Option<Nanos>,
    /// Packets per second, as 100pps or 10kpps [default: 1kpps]
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,
    /// Also send packets from the remote endpoint, at the same rate
    #[arg(long)]
    pub both_ways: bool,
    /// How to wait: sleep, spin, hybrid:TIME; receive: block, ppoll, epoll, busy-poll
    ///
    /// hybrid:2ms sleeps until 2 ms before the scheduled time of a packet, then spins.
    #[arg(long, value_name = "HOW")]
    pub wait: Option<String>,
    /// How the remote endpoint waits [default: as --wait]
    #[arg(long, value_name = "HOW")]
    pub far_wait: Option<String>,
    /// Send to this multicast group
    #[arg(long, value_name = "ADDRESS")]
    pub group: Option<std::net::Ipv4Addr>,
    /// How many receivers join the group [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub receivers: Option<u32>,
    /// Count a packet as late when it arrives this long after its scheduled time [default: 1ms]
    #[arg(long, value_name = "TIME", value_parser = positive)]
    pub late_over: Option<Nanos>,
    /// Measure packets that arrive at this UDP port
    #[arg(long, value_name = "PORT", conflicts_with = "iface")]
    pub listen: Option<u16>,
    /// Measure all packets that arrive at this network interface
    #[arg(long, value_name = "NAME")]
    pub iface: Option<String>,
    /// Sender of the packets: builtin, or none [default: builtin with --listen, else none]
    #[arg(long, value_name = "WHO")]
    pub sender: Option<String>,
}

/// A flag, whether the user gave it, and the probes that use it.
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

    /// Refuses flags that `probe` does not use.
    ///
    /// # Errors
    /// Names the flag and the probes that take it.
    pub(super) fn check(&self, probe: &str) -> Result<()> {
        let vain = |(_, given, probes): &&Use| *given && !probes.contains(&probe);
        if let Some((flag, _, probes)) = self.uses().iter().find(vain) {
            let probes = probes.join(", ");
            bail!("{flag} is not supported with {probe}; leave it out, or measure {probes}");
        }
        Ok(())
    }
}

impl MessageFlags {
    /// The probe called `name`, and the approximate time between its samples, ns. One arm for each
    /// probe that exchanges messages.
    ///
    /// # Errors
    /// Names the flag that cannot be used, and the remedy.
    pub(super) fn probe(
        &self,
        name: &str,
        near: Terms,
        far_cpu: u32,
        allowed: &Cpus,
    ) -> Result<(Box<dyn Probe>, i64)> {
        Ok(match name {
            "pingpong" => (Box::new(self.pingpong(near, far_cpu, allowed)?), PACE_NS),
            "receive" => {
                let receive = self.receive(self.ends(near, far_cpu)?, allowed)?;
                (Box::new(receive), self.receive_pace_ns()?)
            }
            "stream" => {
                let stream = self.stream(self.ends(near, far_cpu)?, allowed)?;
                (Box::new(stream), self.packet_period_ns()?)
            }
            _ => bail!("no constructor for the probe {name}"),
        })
    }
}

/// A transport of a ping-pong by its name.
///
/// # Errors
/// Lists all transports.
pub(super) fn transport(name: &str) -> Result<Transport> {
    let known = Transport::ALL.into_iter().find(|known| known.as_str() == name);
    known.map_or_else(
        || {
            let all = Transport::ALL.map(Transport::as_str).join(", ");
            bail!("--transport {name}: no such transport; use one of {all}")
        },
        Ok,
    )
}

/// Policy, priority and CPU of both ends on this machine.
#[derive(Debug, Clone)]
pub(super) struct Ends {
    /// The end that measures.
    pub near: Terms,
    /// The remote endpoint.
    pub far_end: Terms,
}

impl MessageFlags {
    /// Both ends, derived from the local endpoint; each has its own flags for CPU and priority.
    ///
    /// # Errors
    /// The priority of the remote endpoint is refused, or is not supported.
    pub(super) fn ends(&self, near: Terms, far_cpu: u32) -> Result<Ends> {
        if near.policy == Policy::Other && self.far_priority.is_some() {
            bail!("--far-priority is not supported with --policy other; leave one of them out");
        }
        let priority = self.far_priority.unwrap_or(near.priority);
        let wish = Wish::new(self.far_priority, priority);
        match threads::settle(Wish::new(Some(near.policy), near.policy), wish) {
            Err(SetupError::Policy { why, .. }) => {
                Err(SetupError::Policy { flags: format!("--far-priority {priority}"), why }.into())
            }
            Err(error) => Err(error.into()),
            Ok(_) => {
                let far_end = Terms { priority, cpu: far_cpu, ..near.clone() };
                Ok(Ends { near, far_end })
            }
        }
    }
}

/// A policy that an end which waits for messages can have.
///
/// # Errors
/// It cannot be `deadline`.
pub(super) fn check_policy(probe: &str, policy: Policy) -> Result<()> {
    ensure!(
        !matches!(policy, Policy::Deadline(_)),
        "--policy deadline is not supported with {probe}: an end that waits for messages has no \
         period; use fifo, rr or other"
    );
    Ok(())
}

/// The CPUs of the local and the remote endpoint: the first two of `asked`, in the order as given.
/// With one CPU, both ends share it. Without `asked`, the first two allowed CPUs.
///
/// # Errors
/// `asked` has more CPUs than there are ends.
pub(super) fn places(
    probe: &str,
    asked: Option<&CpuList>,
    allowed: &Cpus,
    is_far_here: bool,
) -> Result<(u32, u32)> {
    let all: Vec<u32> = match asked {
        Some(asked) => asked.in_order.clone(),
        None => allowed.iter().take(2).collect(),
    };
    if let (3.., Some(asked)) = (all.len(), asked) {
        bail!(
            "--cpus {}: each of the two ends of {probe} runs on one CPU; name one or two",
            asked.cpus
        );
    }
    let near = all.first().copied().unwrap_or(0);
    if !is_far_here {
        if let (2.., Some(asked)) = (all.len(), asked) {
            bail!("--cpus {}: only the local endpoint is here with --to; name one CPU", asked.cpus);
        }
        return Ok((near, near));
    }
    Ok((near, all.get(1).copied().unwrap_or(near)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::probes::{PROBES, ProbeInfo, Rhythm};

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
    fn flags_are_for_probes_that_are_in_the_table() {
        let exchange = |probe: &&ProbeInfo| probe.rhythm == Rhythm::Messages;
        let known: Vec<&str> = PROBES.iter().filter(exchange).map(|probe| probe.name).collect();
        for (flag, _, probes) in MessageFlags::default().uses() {
            assert!(probes.iter().all(|probe| known.contains(probe)), "{flag}: {probes:?}");
            assert!(flag != "--size" || probes.len() == known.len(), "{flag}: {probes:?}");
        }
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
        let places = |asked: Option<&str>, allowed: &Cpus| {
            let asked: Option<CpuList> = asked.map(|text| text.parse().unwrap());
            places("pingpong", asked.as_ref(), allowed, true)
        };
        assert_eq!(places(None, &allowed).unwrap(), (2, 3));
        assert_eq!(places(Some("4"), &allowed).unwrap(), (4, 4));
        assert_eq!(places(Some("5,2"), &allowed).unwrap(), (5, 2));
        assert_eq!(places(Some("4-5"), &allowed).unwrap(), (4, 5));
        assert_eq!(places(None, &"3".parse().unwrap()).unwrap(), (3, 3));
        assert_eq!(super::places("pingpong", None, &allowed, false).unwrap(), (2, 2));
        let error = places(Some("2-4"), &allowed).unwrap_err().to_string();
        assert!(error.contains("--cpus 2-4") && error.contains("one or two"), "{error}");
    }
}
