//! Activity of all CPUs in a time range, whether or not anything was late.

use std::{collections::BTreeMap, ops::Range};

use tardy_hot::stages::{Late, Stages};

use super::{
    BlameOptions, Blamer, EventSource, MeasuredThread, UsualStages, late_wakeup::LateWakeup,
    smis::SmiEvidence, state_history::StateHistory, timeline, way::Earlier,
};
use crate::run::recording::{MOST_MOMENTS, RecordedCpu, Recording};

/// Thread number that no task has.
const NOBODY: u32 = u32::MAX;

/// What `source` recorded of a time, `CLOCK_MONOTONIC` ns, as far as it is still there.
#[must_use]
pub(crate) fn recording(
    source: &dyn EventSource,
    wishes: &BlameOptions,
    time: Range<i64>,
) -> Recording {
    let nobody = MeasuredThread {
        series: String::new(),
        cpu: 0,
        tid: NOBODY,
        prio: 0,
        real_time: false,
        spins: false,
        works: false,
    };
    let late = whole(&time);
    let mut all = LateWakeup {
        me: &nobody,
        late: &late,
        wishes,
        source,
        smis: SmiEvidence::NotCounted,
        usual: UsualStages::default(),
        cpus: BTreeMap::new(),
        history: StateHistory::default(),
        ways: &[],
        followed: &[],
        route: None,
        earlier: Earlier::default(),
    };
    all.fetch(0..source.cpus());
    // CPUs that are offline have no events.
    all.cpus.retain(|_, cpu| !cpu.events.is_empty());
    let from = |cpu: &super::late_wakeup::Cpu| cpu.known_from_ns.max(time.start);
    let mut cpus: Vec<RecordedCpu> = all
        .cpus
        .iter()
        .map(|(number, cpu)| RecordedCpu { cpu: *number, from_ns: from(cpu) })
        .collect();
    let mut moments = Vec::new();
    let most = MOST_MOMENTS / cpus.len().max(1);
    for recorded in &mut cpus {
        let mut of_cpu = timeline::of_cpu(&all, recorded.cpu);
        if of_cpu.len() > most {
            of_cpu.drain(..of_cpu.len() - most);
            recorded.from_ns = of_cpu.first().map_or(time.end, |first| time.start + first.at);
        }
        moments.append(&mut of_cpu);
    }
    Recording { from_ns: time.start, until_ns: time.end, cpus, moments }
}

impl Blamer {
    /// What the CPUs did in a time, `CLOCK_MONOTONIC` ns.
    #[must_use]
    pub(crate) fn recording(&self, time: Range<i64>) -> Recording {
        recording(&*self.source, &self.wishes, time)
    }
}

/// The time range in the form of one wake-up.
const fn whole(time: &Range<i64>) -> Late {
    Late {
        t_ns: time.start,
        latency_ns: time.end - time.start,
        expires_ns: 0,
        stages: Stages { irq_ns: 0, softirq_ns: 0, handler_ns: 0, dispatch_ns: 0, user_ns: 0 },
        matched: false,
        cpus: (0, 0),
        stopped_ns: (0, 0),
    }
}
