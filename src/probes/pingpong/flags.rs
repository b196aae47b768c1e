//! Options of the pingpong probe.

use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use clap::Args;

use super::{PingPong, PingpongPeer};
use crate::{
    probes::{
        message_ends::{Ends, check_policy, places},
        request::{MeasuredCpus, PlannedProbe, ProbeFlags, ProbeRequest, SharedOptions},
    },
    setup::threads::{ThreadConfig, describe},
    sys::{cpus::Cpus, sched::Policy},
    transports::{Transport, hello::read_token},
    units::{Nanos, cpus, typed::positive},
};

/// The shortest round trip at which no single sample is lost, ns.
const PACE_NS: i64 = 5_000;

/// The default time after which an answer counts as lost, ns.
const DEFAULT_TIMEOUT_NS: i64 = 1_000_000_000;

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Probe")]
pub(in crate::probes) struct PingpongFlags {
    /// Transport of the messages [default: tcp]
    ///
    /// zmq-tcp, zmq-ipc, zmq-inproc, tcp, udp, unix-stream, unix-dgram, pipe, eventfd, futex,
    /// posix-mq, sysv-sem, signal, pi-mutex, shm-spin.
    #[arg(long, value_name = "NAME")]
    transport: Option<String>,
    /// Size of one message in bytes [default: 1]
    #[arg(long, value_name = "BYTES")]
    size: Option<u64>,
    /// HOST:PORT of a tardy echo, or for zmq-tcp of any REP socket [default: started here]
    ///
    /// A peer that is not a tardy echo gets exactly --samples messages, including the warm-up,
    /// which is then at most a tenth of them.
    #[arg(long, value_name = "ADDRESS")]
    to: Option<String>,
    /// The other end is another program: no handshake, messages returned unchanged
    #[arg(long)]
    foreign: bool,
    /// File with a secret that both ends share; required beyond loopback
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Real-time priority of the remote endpoint [default: that of the local endpoint]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99))]
    far_priority: Option<u32>,
    /// Count an answer as lost after this time [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = positive)]
    timeout: Option<Nanos>,
}

impl ProbeFlags for PingpongFlags {}

impl ProbeRequest for PingpongFlags {
    fn check_policy(
        &self,
        policy: Policy,
        _: u32,
        _: &MeasuredCpus,
        _: &SharedOptions<'_>,
    ) -> Result<()> {
        check_policy("pingpong", policy)
    }

    fn cpus(&self, shared: &SharedOptions<'_>) -> Result<MeasuredCpus> {
        places("pingpong", shared, self.to.is_none())
    }

    fn plan(
        &self,
        terms: ThreadConfig,
        cpus: &MeasuredCpus,
        shared: &SharedOptions<'_>,
    ) -> Result<PlannedProbe> {
        Ok(PlannedProbe::new(self.pingpong(terms, cpus.far, shared.allowed)?, PACE_NS))
    }
}

impl PingpongFlags {
    /// The ping-pong; `far_cpu` is used where the remote endpoint is local.
    fn pingpong(&self, near: ThreadConfig, far_cpu: u32, allowed: &Cpus) -> Result<PingPong> {
        let transport = self.transport.as_deref().map_or(Ok(Transport::Tcp), transport)?;
        let size = self.size.unwrap_or(1);
        ensure!(
            transport.has_size() || self.size.is_none(),
            "--size is not supported with --transport {transport}, whose messages carry no bytes; \
             leave it out"
        );
        ensure!(size > 0, "--size 0: a message has at least 1 byte, for its number");
        let peer = match &self.to {
            Some(to) => self.peer_at(to, transport)?,
            None => {
                let ends = Ends::of(near.clone(), far_cpu, self.far_priority)?;
                check_spinning(transport, &ends, allowed)?;
                self.check_here()?;
                PingpongPeer::Here(ends.far_end)
            }
        };
        Ok(PingPong {
            transport,
            size: usize::try_from(size)?,
            near,
            peer,
            timeout_ns: self.timeout.map_or(DEFAULT_TIMEOUT_NS, |timeout| timeout.0),
        })
    }

    /// Flags that only apply to a remote endpoint.
    fn check_here(&self) -> Result<()> {
        for (flag, given) in
            [("--foreign", self.foreign), ("--token-file", self.token_file.is_some())]
        {
            ensure!(
                !given,
                "{flag} needs --to, as tardy starts the remote endpoint itself; add --to \
                 HOST:PORT, or leave it out"
            );
        }
        Ok(())
    }

    fn peer_at(&self, to: &str, transport: Transport) -> Result<PingpongPeer> {
        ensure!(
            transport.reaches_far(),
            "--to {to}: --transport {transport} reaches no further than this machine; use tcp, udp \
             or zmq-tcp"
        );
        ensure!(
            self.far_priority.is_none(),
            "--far-priority is not supported with --to: that end is set up where it runs, by \
             `tardy echo --priority`"
        );
        let to = to.to_owned();
        // The remote endpoint need not be a tardy echo: any REP socket works.
        if self.foreign || transport.is_zmq() {
            ensure!(
                self.token_file.is_none(),
                "--token-file is not supported with an end other than tardy echo; leave it out"
            );
            return Ok(PingpongPeer::Foreign { to });
        }
        let token = self.token_file.as_deref().map(read_token).transpose()?.unwrap_or_default();
        Ok(PingpongPeer::Echo { to, token })
    }
}

/// A transport of a ping-pong by its name.
///
/// # Errors
/// Lists all transports.
fn transport(name: &str) -> Result<Transport> {
    let known = Transport::ALL.into_iter().find(|known| known.as_str() == name);
    known.map_or_else(
        || {
            let all = Transport::ALL.map(Transport::as_str).join(", ");
            bail!("--transport {name}: no such transport; use one of {all}")
        },
        Ok,
    )
}

/// Two real-time ends that never sleep leave their CPUs to no other thread.
fn check_spinning(transport: Transport, ends: &Ends, allowed: &Cpus) -> Result<()> {
    let Ends { near, far_end } = ends;
    if !transport.spins() || near.policy == Policy::Other {
        return Ok(());
    }
    let policy = describe(near.policy, near.priority);
    ensure!(
        near.cpu != far_end.cpu,
        "--transport {transport} with --policy {policy}: both ends are on CPU {}, and the one that \
         spins there never lets the other answer; put them on two CPUs by --cpus, or use --policy \
         other",
        near.cpu
    );
    let own: Cpus = [near.cpu, far_end.cpu].into_iter().collect();
    ensure!(
        !allowed.without(&own).is_empty(),
        "--transport {transport} with --policy {policy} keeps {} busy, all that tardy may use, so \
         that nothing could record; leave a CPU free by --cpus, or use --policy other",
        cpus(&own)
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(flags: &PingpongFlags, policy: Policy, cpus: (u32, u32)) -> Result<PingPong> {
        let near = ThreadConfig { policy, priority: 0, cpu: cpus.0, slack_ns: 1 };
        flags.pingpong(near, cpus.1, &"0-1".parse().unwrap())
    }

    fn why(flags: &PingpongFlags) -> String {
        let refused = planned(flags, Policy::Other, (0, 1));
        refused.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn what_spins_everywhere_at_a_real_time_priority_is_refused() {
        let ends = |policy, cpus: (u32, u32)| {
            let terms = |cpu| ThreadConfig { policy, priority: 90, cpu, slack_ns: 1 };
            Ends { near: terms(cpus.0), far_end: terms(cpus.1) }
        };
        let check = |ends, allowed: &str| {
            check_spinning(Transport::ShmSpin, &ends, &allowed.parse().unwrap())
        };
        for (place, words) in [((0, 1), "nothing could record"), ((1, 1), "never lets the other")] {
            let said = check(ends(Policy::Fifo, place), "0-1").unwrap_err().to_string();
            assert!(said.contains(words) && said.contains("--policy other"), "{said}");
            check(ends(Policy::Other, place), "0-1").unwrap();
        }
        check(ends(Policy::Fifo, (0, 1)), "0-2").unwrap();
    }

    #[test]
    fn an_unknown_transport_is_refused_with_all_there_are() {
        assert_eq!(transport("pipe").unwrap(), Transport::Pipe);
        let error = transport("carrier-pigeon").unwrap_err().to_string();
        assert!(error.contains("shm-spin") && error.contains("zmq-tcp"), "{error}");
    }

    #[test]
    fn a_size_is_for_what_carries_bytes() {
        let sized = |transport: &str, size| PingpongFlags {
            transport: Some(transport.into()),
            size: Some(size),
            ..PingpongFlags::default()
        };
        assert!(why(&sized("futex", 1)).contains("--size is not supported"));
        assert!(why(&sized("tcp", 0)).contains("--size 0"));
        assert_eq!(planned(&sized("tcp", 9), Policy::Other, (0, 1)).unwrap().size, 9);
    }

    #[test]
    fn a_far_end_elsewhere_is_set_up_there() {
        let at = |transport: &str| PingpongFlags {
            transport: Some(transport.into()),
            to: Some("192.0.2.7:7117".into()),
            ..PingpongFlags::default()
        };
        let peer = |flags: &PingpongFlags| planned(flags, Policy::Other, (0, 0)).unwrap().peer;
        assert!(matches!(peer(&at("udp")), PingpongPeer::Echo { .. }));
        assert!(matches!(peer(&at("zmq-tcp")), PingpongPeer::Foreign { .. }));
        let foreign = PingpongFlags { foreign: true, ..at("tcp") };
        assert!(matches!(peer(&foreign), PingpongPeer::Foreign { .. }));
        assert!(why(&at("pipe")).contains("no further than this machine"));
        let far_priority = PingpongFlags { far_priority: Some(5), ..at("tcp") };
        assert!(why(&far_priority).contains("--far-priority is not supported with --to"));
        let alone = PingpongFlags { foreign: true, ..PingpongFlags::default() };
        assert!(why(&alone).contains("--foreign needs --to"));
    }
}
