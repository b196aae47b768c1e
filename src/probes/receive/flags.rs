//! Options of the receive probe.

use anyhow::{Result, anyhow, bail, ensure};
use clap::Args;

use super::{BUSY_POLL, LEAST_BYTES, MOST_BYTES, PacketSource, Receive, ReceiveWait, SenderPlan};
use crate::{
    probes::{
        message_ends::{Ends, check_policy, packet_period_ns, packet_rate, places},
        request::{MeasuredCpus, PlannedProbe, ProbeFlags, ProbeRequest, SharedOptions},
    },
    setup::threads::{ThreadConfig, describe},
    sys::{cpus::Cpus, interface::Interface, nic_clock::NicClock, sched::Policy},
    units::Nanos,
};

/// The default packet size, bytes.
const DEFAULT_SIZE: u64 = 64;

/// The shortest time between foreign packets at which no single sample is lost, ns.
const PACE_NS: i64 = 5_000;

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Probe")]
pub(in crate::probes) struct ReceiveFlags {
    /// Measure packets that arrive at this UDP port
    #[arg(long, value_name = "PORT", conflicts_with = "iface")]
    listen: Option<u16>,
    /// Measure all packets that arrive at this network interface
    #[arg(long, value_name = "NAME")]
    iface: Option<String>,
    /// How to wait: block, spin, ppoll, epoll, busy-poll or busy-poll:TIME [default: block]
    #[arg(long, value_name = "HOW")]
    wait: Option<String>,
    /// Sender of the packets: builtin, or none [default: builtin with --listen, else none]
    #[arg(long, value_name = "WHO")]
    sender: Option<String>,
    /// Size of one packet of the sender in bytes [default: 64]
    #[arg(long, value_name = "BYTES")]
    size: Option<u64>,
    /// Packets per second, as 100pps or 10kpps [default: 1kpps]
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// Real-time priority of the remote endpoint [default: that of the local endpoint]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99))]
    far_priority: Option<u32>,
}

impl ProbeFlags for ReceiveFlags {}

impl ProbeRequest for ReceiveFlags {
    fn check_policy(
        &self,
        policy: Policy,
        _: u32,
        _: &MeasuredCpus,
        _: &SharedOptions<'_>,
    ) -> Result<()> {
        check_policy("receive", policy)
    }

    fn cpus(&self, shared: &SharedOptions<'_>) -> Result<MeasuredCpus> {
        places("receive", shared, true)
    }

    fn plan(
        &self,
        terms: ThreadConfig,
        cpus: &MeasuredCpus,
        shared: &SharedOptions<'_>,
    ) -> Result<PlannedProbe> {
        let ends = Ends::of(terms, cpus.far, self.far_priority)?;
        Ok(PlannedProbe::new(self.receive(ends, shared.allowed)?, self.pace_ns()?))
    }
}

impl ReceiveFlags {
    fn receive(&self, ends: Ends, allowed: &Cpus) -> Result<Receive> {
        let source = match (&self.listen, &self.iface) {
            (Some(port), _) => PacketSource::Port(*port),
            (None, Some(name)) => PacketSource::Interface(name.clone()),
            (None, None) => bail!(
                "receive needs a source of packets: --listen PORT for those of a UDP port \
                 (--listen 0 takes a free port and the builtin sender), or --iface NAME for all \
                 of a network interface"
            ),
        };
        let has_sender = self.has_sender()?;
        self.check_sender(&source, has_sender)?;
        let wait = self.receive_wait()?;
        check_spinning(&ends, wait, has_sender, allowed)?;
        let Ends { near, far_end } = ends;
        let sending = if has_sender {
            Some(SenderPlan {
                size: self.sent_size()?,
                rate: packet_rate(self.rate.as_deref())?,
                terms: far_end,
            })
        } else {
            None
        };
        let by_nic = match &source {
            // If the NIC's clock cannot be read, the kernel's stamps are still used.
            PacketSource::Interface(name) => matches!(NicClock::of(name), Ok(Some(_))),
            PacketSource::Port(_) => false,
        };
        Ok(Receive { source, wait, near, by_nic, sending })
    }

    /// Time between two packets, ns; an assumed one where others send.
    ///
    /// # Errors
    /// `--rate` cannot be read.
    fn pace_ns(&self) -> Result<i64> {
        if !self.has_sender()? {
            return Ok(PACE_NS);
        }
        packet_period_ns(self.rate.as_deref())
    }

    /// Whether this tardy sends the packets: to an interface only if asked.
    fn has_sender(&self) -> Result<bool> {
        match self.sender.as_deref() {
            Some("builtin") => Ok(true),
            Some("none") => Ok(false),
            Some(other) => bail!("--sender {other}: no such sender; use builtin or none"),
            None => Ok(self.iface.is_none()),
        }
    }

    fn check_sender(&self, source: &PacketSource, has_sender: bool) -> Result<()> {
        if has_sender {
            // An interface that does not exist is reported when it is opened.
            if let PacketSource::Interface(name) = source
                && Interface::find(name).is_ok_and(|found| !found.is_loopback)
            {
                bail!(
                    "--sender builtin is not supported with --iface {name}: what this machine \
                     sends to itself never comes in there; use --iface lo, or send from another \
                     machine"
                );
            }
            return Ok(());
        }
        let given = [
            ("--size", self.size.is_some()),
            ("--rate", self.rate.is_some()),
            ("--far-priority", self.far_priority.is_some()),
        ];
        if let Some((flag, _)) = given.iter().find(|(_, given)| *given) {
            bail!("{flag} is for the builtin sender; leave it out, or add --sender builtin");
        }
        ensure!(
            *source != PacketSource::Port(0),
            "--listen 0 takes any port that is free, which no sender knows; name one with \
             --sender none"
        );
        Ok(())
    }

    fn receive_wait(&self) -> Result<ReceiveWait> {
        let text = self.wait.as_deref().unwrap_or("block");
        let (name, time) =
            text.split_once(':').map_or((text, None), |(name, time)| (name, Some(time)));
        let wait = match name {
            "busy-poll" => {
                let time = time.map_or(Ok(BUSY_POLL), str::parse::<Nanos>);
                let time = time.map_err(|error| anyhow!("--wait {text}: {error}"))?;
                let us = u32::try_from(time.0 / 1_000).ok().filter(|us| (1..=100_000).contains(us));
                let us = us.ok_or_else(|| {
                    anyhow!("--wait {text}: busy polling lasts from 1us to 100ms, in whole us")
                })?;
                return Ok(ReceiveWait::BusyPoll(us));
            }
            "block" => ReceiveWait::Block,
            "ppoll" => ReceiveWait::Ppoll,
            "epoll" => ReceiveWait::Epoll,
            "spin" => ReceiveWait::Spin,
            _ => bail!(
                "--wait {text}: receive has no such way to wait; there are block, ppoll, epoll, \
                 busy-poll (or busy-poll:TIME) and spin"
            ),
        };
        ensure!(time.is_none(), "--wait {text}: only busy-poll has a time; use {name}");
        Ok(wait)
    }

    fn sent_size(&self) -> Result<usize> {
        let size = self.size.unwrap_or(DEFAULT_SIZE);
        ensure!(
            (LEAST_BYTES..=MOST_BYTES).contains(&size),
            "--size {size}: a packet of the sender has from {LEAST_BYTES} bytes, which say whose \
             it is, to {MOST_BYTES}"
        );
        Ok(usize::try_from(size)?)
    }
}

/// A real-time reader that never sleeps leaves its CPU to no other thread.
fn check_spinning(ends: &Ends, wait: ReceiveWait, has_sender: bool, allowed: &Cpus) -> Result<()> {
    let Ends { near, far_end } = ends;
    if wait != ReceiveWait::Spin || near.policy == Policy::Other {
        return Ok(());
    }
    let policy = describe(near.policy, near.priority);
    ensure!(
        !has_sender || near.cpu != far_end.cpu || far_end.priority > near.priority,
        "--wait spin with --policy {policy}: the sender is on CPU {} too, which the reader never \
         leaves; put them on two CPUs by --cpus, or use --policy other",
        near.cpu
    );
    let own: Cpus = [near.cpu].into_iter().collect();
    ensure!(
        !allowed.without(&own).is_empty(),
        "--wait spin with --policy {policy} keeps CPU {own} busy, which is all that tardy may use, \
         so that nothing could record; use another --wait, or --policy other"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::threads::ThreadConfig;

    fn read(flags: ReceiveFlags) -> Result<Receive> {
        placed(flags, (0, 1), "0-1")
    }

    fn placed(flags: ReceiveFlags, cpus: (u32, u32), allowed: &str) -> Result<Receive> {
        let terms = |cpu| ThreadConfig { policy: Policy::Fifo, priority: 90, cpu, slack_ns: 1 };
        let ends = Ends { near: terms(cpus.0), far_end: terms(cpus.1) };
        flags.receive(ends, &allowed.parse().unwrap())
    }

    fn listen(change: impl FnOnce(&mut ReceiveFlags)) -> ReceiveFlags {
        let mut flags = ReceiveFlags { listen: Some(5000), ..ReceiveFlags::default() };
        change(&mut flags);
        flags
    }

    fn why(flags: ReceiveFlags) -> String {
        read(flags).unwrap_err().to_string()
    }

    #[test]
    fn a_port_has_a_sender_of_its_own_and_an_interface_has_none() {
        let port = read(listen(|_| {})).unwrap();
        let sending = port.sending.unwrap();
        assert_eq!((port.source, port.wait), (PacketSource::Port(5000), ReceiveWait::Block));
        assert_eq!((sending.size, sending.period_ns()), (64, 1_000_000));
        let flags = ReceiveFlags { iface: Some("lo".into()), ..ReceiveFlags::default() };
        assert_eq!(read(flags).unwrap().sending, None);
        assert!(why(ReceiveFlags::default()).contains("--listen PORT"));
        assert!(why(listen(|flags| flags.sender = Some("me".into()))).contains("--sender me"));
    }

    #[test]
    fn what_is_for_a_sender_wants_one() {
        let none = |change: fn(&mut ReceiveFlags)| {
            why(listen(|flags| {
                flags.sender = Some("none".into());
                change(flags);
            }))
        };
        assert!(none(|flags| flags.size = Some(64)).contains("--size is for the builtin"));
        assert!(none(|flags| flags.rate = Some("1kpps".into())).contains("--rate is for"));
        assert!(none(|flags| flags.listen = Some(0)).contains("--listen 0"));
    }

    #[test]
    fn sizes_rates_and_ways_to_wait_have_bounds() {
        for size in [0, 55, 65_508] {
            assert!(why(listen(|flags| flags.size = Some(size))).contains("--size"), "{size}");
        }
        assert!(why(listen(|flags| flags.rate = Some("1000".into()))).contains("1000pps"));
        for wait in ["poll", "spin:1ms", "busy-poll:1", "busy-poll:0us", "busy-poll:1s"] {
            let said = why(listen(|flags| flags.wait = Some(wait.into())));
            assert!(said.starts_with(&format!("--wait {wait}: ")), "{said}");
        }
        let wait = |text: &str| read(listen(|flags| flags.wait = Some(text.into()))).unwrap().wait;
        assert_eq!(wait("busy-poll"), ReceiveWait::BusyPoll(50));
        assert_eq!(wait("busy-poll:1ms"), ReceiveWait::BusyPoll(1_000));
    }

    #[test]
    fn a_real_time_reader_that_spins_leaves_a_cpu_to_others() {
        let spin = || listen(|flags| flags.wait = Some("spin".into()));
        placed(spin(), (0, 1), "0-1").unwrap();
        let error = placed(spin(), (0, 0), "0-1").unwrap_err().to_string();
        assert!(error.contains("the sender is on CPU 0 too"), "{error}");
        let alone = listen(|flags| {
            flags.wait = Some("spin".into());
            flags.sender = Some("none".into());
        });
        let error = placed(alone, (0, 0), "0").unwrap_err().to_string();
        assert!(error.contains("nothing could record"), "{error}");
    }
}
