//! What is to be injected next: kind, length, moment. Random, and the same for the same seed.

use std::{fmt, str::FromStr};

/// No delay is shorter, ns.
const SHORTEST_NS: f64 = 20_000.0;
/// No delay is longer, ns; the programs cut what is.
const LONGEST_NS: f64 = 4_900_000.0;

/// What a measured thread is delayed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DelayContext {
    /// A busy wait in the timer interrupt.
    Hardirq,
    /// A busy wait in a softirq.
    Softirq,
    /// A busy wait with interrupts off, in the middle of a switch between other tasks.
    Switch,
    /// A task of higher priority.
    Hog,
    /// A busy wait in a system call, where the task cannot be preempted.
    Nonpreemptible,
    /// The end of a big process.
    Exit,
    /// An interrupt with hundreds of timers.
    Storm,
    /// SIGSTOP, and SIGCONT a while later.
    Stop,
    /// To another CPU, and back.
    Migration,
    /// A busy wait in a page fault of the measured thread.
    PageFault,
    /// A busy wait in the middle of a switch from the idle task.
    FromIdle,
    /// The same to it.
    ToIdle,
    /// A busy wait with interrupts off where a task arms a timer, which no event shows.
    Masked,
    /// The same on the way into an idle state.
    MaskedIdle,
    /// A busy wait in the handler of an interrupt line.
    Device,
    /// A busy wait in a softirq that its own thread runs.
    SoftirqThread,
    /// A busy wait in the thread of an interrupt line, of higher priority.
    IrqThread,
    /// A busy wait of the measured thread itself before it arms its timer.
    Arming,
    /// A lock of the measured process, held by a task of lower priority.
    Lock,
    /// A busy wait in the timer interrupt within another delay.
    Overlap,
    /// A mutex with priority inheritance, held by a task of lower priority.
    PiMutex,
}

/// All kinds with their names in the log.
pub(super) const KINDS: [(DelayContext, &str); 21] = [
    (DelayContext::Hardirq, "hardirq"),
    (DelayContext::Softirq, "softirq"),
    (DelayContext::Switch, "switch"),
    (DelayContext::Hog, "hog"),
    (DelayContext::Nonpreemptible, "nonpreemptible"),
    (DelayContext::Exit, "exit"),
    (DelayContext::Storm, "storm"),
    (DelayContext::Stop, "stop"),
    (DelayContext::Migration, "migration"),
    (DelayContext::PageFault, "page_fault"),
    (DelayContext::FromIdle, "from_idle"),
    (DelayContext::ToIdle, "to_idle"),
    (DelayContext::Masked, "masked"),
    (DelayContext::MaskedIdle, "masked_idle"),
    (DelayContext::Device, "device"),
    (DelayContext::SoftirqThread, "softirq_thread"),
    (DelayContext::IrqThread, "irq_thread"),
    (DelayContext::Arming, "arming"),
    (DelayContext::Lock, "lock"),
    (DelayContext::Overlap, "overlap"),
    (DelayContext::PiMutex, "pi_mutex"),
];

impl fmt::Display for DelayContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = KINDS.iter().find(|(kind, _)| kind == self).map_or("", |(_, name)| name);
        f.write_str(name)
    }
}

impl FromStr for DelayContext {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = KINDS.iter().find(|(_, name)| *name == text);
        known.map(|(kind, _)| *kind).ok_or_else(|| {
            let names = KINDS.map(|(_, name)| name).join(", ");
            format!("\"{text}\" is not a kind of delay; there are {names}")
        })
    }
}

/// One delay to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct InjectedDelay {
    pub kind: DelayContext,
    /// How long.
    pub ns: u64,
    /// How long before the expiry it is aimed at it begins.
    pub lead_ns: u64,
    /// How long to do nothing before.
    pub gap_ns: u64,
}

/// Draws delays; SplitMix64, after <https://prng.di.unimi.it/splitmix64.c>.
#[derive(Debug)]
pub(super) struct DelayPlan {
    state: u64,
    kinds: Vec<DelayContext>,
}

impl DelayPlan {
    /// One plan for each CPU.
    pub(super) fn new(seed: u64, cpu: u32, kinds: Vec<DelayContext>) -> Self {
        Self { state: seed ^ (u64::from(cpu) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15), kinds }
    }

    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to 1, without 1.
    fn share(&mut self) -> f64 {
        (self.random() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The next delay. Lengths are log-uniform from 20 us to 4.9 ms. Half of all begin close to
    /// the expiry, the others anywhere up to their own length before. The gaps are 15 to 45 times
    /// the length, so that delays take a thirtieth of the time.
    pub(super) fn next(&mut self) -> InjectedDelay {
        let drawn = self.random() as usize % self.kinds.len();
        let kind = self.kinds[drawn];
        let length = SHORTEST_NS * (LONGEST_NS / SHORTEST_NS).powf(self.share());
        let reach = if self.share() < 0.5 { length.min(20_000.0) } else { length };
        let lead = self.share() * reach;
        let gap = length * (15.0 + 30.0 * self.share()) + 2e6 * self.share();
        InjectedDelay { kind, ns: length as u64, lead_ns: lead as u64, gap_ns: gap as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_the_same_delays_again_and_each_cpu_has_its_own() {
        let draw = |seed, cpu| {
            let mut plan =
                DelayPlan::new(seed, cpu, vec![DelayContext::Hardirq, DelayContext::Hog]);
            (0..50).map(|_| plan.next()).collect::<Vec<_>>()
        };
        assert_eq!(draw(7, 0), draw(7, 0));
        assert_ne!(draw(7, 0), draw(7, 1));
        assert_ne!(draw(7, 0), draw(8, 0));
    }

    #[test]
    fn delays_stay_within_their_limits_and_below_a_twentieth_of_the_time() {
        let mut plan = DelayPlan::new(1, 0, KINDS.map(|(kind, _)| kind).to_vec());
        let drawn: Vec<InjectedDelay> = (0..10_000).map(|_| plan.next()).collect();
        assert!(drawn.iter().all(|delay| (20_000..5_000_000).contains(&delay.ns)));
        assert!(drawn.iter().all(|delay| delay.lead_ns <= delay.ns));
        let delays: u64 = drawn.iter().map(|delay| delay.ns).sum();
        let gaps: u64 = drawn.iter().map(|delay| delay.gap_ns).sum();
        assert!(delays * 20 < gaps, "{delays} {gaps}");
        let short = drawn.iter().filter(|delay| delay.ns < 313_000).count();
        assert!((4_500..5_500).contains(&short), "half are below the middle: {short}");
    }

    #[test]
    fn kinds_have_the_names_of_the_log() {
        for (kind, name) in KINDS {
            assert_eq!(name.parse::<DelayContext>().unwrap(), kind);
            assert_eq!(kind.to_string(), name);
        }
        assert!("smi".parse::<DelayContext>().unwrap_err().contains("hardirq, softirq"));
    }
}
