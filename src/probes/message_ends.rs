//! What the probes that exchange messages have in common: two ends, each on a CPU.

use anyhow::{Result, anyhow, bail, ensure};
use tardy_hot::stream::PacketPeriod;

use super::request::{MeasuredCpus, SharedOptions};
use crate::{
    setup::{
        Choice, SetupError,
        threads::{self, ThreadConfig},
    },
    sys::sched::Policy,
    units::PacketRate,
};

/// Policy, priority and CPU of both ends on this machine.
#[derive(Debug, Clone)]
pub(in crate::probes) struct Ends {
    /// The end that measures.
    pub near: ThreadConfig,
    /// The remote endpoint.
    pub far_end: ThreadConfig,
}

impl Ends {
    /// Both ends, derived from the local endpoint; the remote one has its own CPU and priority.
    ///
    /// # Errors
    /// The priority of the remote endpoint is refused, or is not supported.
    pub(super) fn of(near: ThreadConfig, far_cpu: u32, far_priority: Option<u32>) -> Result<Self> {
        if near.policy == Policy::Other && far_priority.is_some() {
            bail!("--far-priority is not supported with --policy other; leave one of them out");
        }
        let priority = far_priority.unwrap_or(near.priority);
        let wish = Choice::new(far_priority, priority);
        match threads::settle(Choice::new(Some(near.policy), near.policy), wish) {
            Err(SetupError::Policy { why, remedy, .. }) => {
                let flags = format!("--far-priority {priority}");
                Err(SetupError::Policy { flags, why, remedy }.into())
            }
            Err(error) => Err(error.into()),
            Ok(_) => {
                let far_end = ThreadConfig { priority, cpu: far_cpu, ..near.clone() };
                Ok(Self { near, far_end })
            }
        }
    }
}

/// Refuses a policy that an end which waits for messages cannot have.
///
/// # Errors
/// It is `deadline`.
pub(super) fn check_policy(probe: &str, policy: Policy) -> Result<()> {
    ensure!(
        !matches!(policy, Policy::Deadline(_)),
        "--policy deadline is not supported with {probe}: an end that waits for messages has no \
         period; use fifo, rr or other"
    );
    Ok(())
}

/// The CPUs of the local and the remote endpoint: the first two of `--cpus`, in the order as given.
/// With one CPU, both ends share it. Without `--cpus`, the first two allowed CPUs.
///
/// # Errors
/// `--cpus` has more CPUs than there are ends.
pub(super) fn places(
    probe: &str,
    shared: &SharedOptions<'_>,
    is_far_here: bool,
) -> Result<MeasuredCpus> {
    let asked = shared.cpus;
    let all: Vec<u32> = match asked {
        Some(asked) => asked.in_order.clone(),
        None => shared.allowed.iter().take(2).collect(),
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
        return Ok(MeasuredCpus::one(near));
    }
    Ok(MeasuredCpus::ends(near, all.get(1).copied().unwrap_or(near)))
}

/// The default rate.
const DEFAULT_RATE: PacketRate = PacketRate { per_1000_s: 1_000_000 };

/// The rate of `--rate`.
///
/// # Errors
/// It has no unit, or is not a rate.
pub(super) fn packet_rate(text: Option<&str>) -> Result<PacketRate> {
    let Some(text) = text else { return Ok(DEFAULT_RATE) };
    text.parse().map_err(|error| anyhow!("--rate {text}: {error}"))
}

/// Time between two packets at that rate, ns.
///
/// # Errors
/// As [`packet_rate`].
pub(super) fn packet_period_ns(text: Option<&str>) -> Result<i64> {
    Ok(PacketPeriod::of_rate(packet_rate(text)?.per_1000_s).ns.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probes::request::tests::on_cpus;

    #[test]
    fn ends_lie_where_they_were_put() {
        let ends = |asked, allowed, is_far_here| {
            let found = on_cpus(asked, allowed, |shared| places("pingpong", shared, is_far_here))?;
            Ok::<_, anyhow::Error>((found.near, found.far))
        };
        assert_eq!(ends(None, "2-5", true).unwrap(), (2, 3));
        assert_eq!(ends(Some("4"), "2-5", true).unwrap(), (4, 4));
        assert_eq!(ends(Some("5,2"), "2-5", true).unwrap(), (5, 2));
        assert_eq!(ends(Some("4-5"), "2-5", true).unwrap(), (4, 5));
        assert_eq!(ends(None, "3", true).unwrap(), (3, 3));
        assert_eq!(ends(None, "2-5", false).unwrap(), (2, 2));
        let error = ends(Some("2-4"), "2-5", true).unwrap_err().to_string();
        assert!(error.contains("--cpus 2-4") && error.contains("one or two"), "{error}");
    }
}
