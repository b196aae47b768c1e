//! What the machine does meanwhile: rates from the kernel's counters, second by second.

use crate::{
    run::{
        conditions::{CpuUse, MachineRecord},
        tracks::{InterruptCount, MachineRow},
    },
    sys::{
        counters::{CpuTicks, InterruptSource, Stat, interrupt_sources},
        root::Root,
    },
};

/// The counters at the last look.
#[derive(Debug)]
pub(super) struct MachineCounters {
    root: Root,
    before: (i64, Stat),
}

impl MachineCounters {
    /// Begins at `at_ns`.
    #[must_use]
    pub(super) fn new(root: Root, at_ns: i64) -> Self {
        let before = (at_ns, Stat::read(&root));
        Self { root, before }
    }

    /// What happened since the last look, with a `pause` before each system call that takes long;
    /// `start_ns` is the zero of `t_s`.
    pub(super) fn poll(
        &mut self,
        now_ns: i64,
        start_ns: i64,
        pause: &mut dyn FnMut(),
    ) -> Vec<MachineRow> {
        let now = (now_ns, Stat::read_in_pieces(&self.root, pause));
        let record = averages((self.before.0, &self.before.1), (now_ns, &now.1));
        self.before = now;
        rows(&record, (now_ns - start_ns) as f64 / 1e9)
    }
}

fn averages((from_ns, before): (i64, &Stat), (to_ns, now): (i64, &Stat)) -> MachineRecord {
    let took_s = (to_ns - from_ns).max(1) as f64 / 1e9;
    let rate = |of: fn(&Stat) -> u64| (of(now).saturating_sub(of(before)) as f64 / took_s).round();
    MachineRecord {
        interrupts_per_s: rate(|stat| stat.interrupts),
        softirqs_per_s: rate(|stat| stat.softirqs),
        context_switches_per_s: rate(|stat| stat.context_switches),
        forks_per_s: rate(|stat| stat.forks),
        page_faults_per_s: rate(|stat| stat.page_faults),
        major_faults_per_s: rate(|stat| stat.major_faults),
        disk_read_bytes_per_s: rate(|stat| stat.disk_bytes.0),
        disk_written_bytes_per_s: rate(|stat| stat.disk_bytes.1),
        network_received_bytes_per_s: rate(|stat| stat.network_bytes.0),
        network_sent_bytes_per_s: rate(|stat| stat.network_bytes.1),
        loopback_bytes_per_s: rate(|stat| stat.loopback_bytes),
        // A CPU that came online meanwhile has no past here.
        cpus: now
            .cpus
            .iter()
            .filter_map(|cpu| Some((before.cpus.iter().find(|known| known.cpu == cpu.cpu)?, cpu)))
            .filter_map(|(before, now)| shares(before, now))
            .collect(),
    }
}

fn shares(before: &CpuTicks, now: &CpuTicks) -> Option<CpuUse> {
    let ticks = now.all.saturating_sub(before.all);
    let share = |before: u64, now: u64| {
        // Counters of idle CPUs go back at times: no share is more than all.
        let share = (now.saturating_sub(before) as f64 / ticks as f64).min(1.0);
        (share * 1e3).round() / 1e3
    };
    (ticks > 0).then(|| CpuUse {
        cpu: now.cpu,
        busy: share(before.busy, now.busy),
        steal: share(before.steal, now.steal),
    })
}

fn rows(record: &MachineRecord, t_s: f64) -> Vec<MachineRow> {
    let t_s = (t_s * 1e3).round() / 1e3;
    let row = |what: &str, value: f64| MachineRow { t_s, what: what.into(), value };
    let mut rows: Vec<MachineRow> = [
        ("interrupts", record.interrupts_per_s),
        ("softirqs", record.softirqs_per_s),
        ("context_switches", record.context_switches_per_s),
        ("forks", record.forks_per_s),
        ("page_faults", record.page_faults_per_s),
        ("major_faults", record.major_faults_per_s),
        ("disk_read_bytes", record.disk_read_bytes_per_s),
        ("disk_written_bytes", record.disk_written_bytes_per_s),
        ("network_received_bytes", record.network_received_bytes_per_s),
        ("network_sent_bytes", record.network_sent_bytes_per_s),
        ("loopback_bytes", record.loopback_bytes_per_s),
    ]
    .map(|(what, value)| row(what, value))
    .into();
    rows.extend(record.cpus.iter().map(|cpu| row(&format!("cpu{}", cpu.cpu), cpu.busy)));
    rows
}

/// What the machine counts over the measured time alone: what divides by that time must not have
/// the warm-up in it, nor what comes after the last loop. Where no CPU is free it begins a little
/// earlier, and the time that it divides by as well.
#[derive(Debug)]
pub(super) struct MeasuredCounts {
    root: Root,
    begin_ns: i64,
    first: Option<Counts>,
}

/// The kernel's counters, and when they were read.
#[derive(Debug)]
struct Counts {
    at_ns: i64,
    stat: Stat,
    interrupts: Vec<InterruptSource>,
}

/// What the counters grew by.
#[derive(Debug, Default)]
pub(super) struct Counted {
    /// On average; `None` if the measured time never began.
    pub machine: Option<MachineRecord>,
    /// Every source on every CPU where it ever fired.
    pub interrupts: Vec<InterruptCount>,
    /// Between the two readings, ns; `None` if the measured time never began.
    pub counted_ns: Option<u64>,
}

impl MeasuredCounts {
    /// Will count from `begin_ns` on.
    #[must_use]
    pub(super) const fn new(root: Root, begin_ns: i64) -> Self {
        Self { root, begin_ns, first: None }
    }

    /// Whether it is time to begin to count.
    pub(super) const fn is_due(&self, now_ns: i64) -> bool {
        self.first.is_none() && now_ns >= self.begin_ns
    }

    /// Begins to count, once it is time.
    pub(super) fn poll(&mut self, now_ns: i64) {
        if self.is_due(now_ns) {
            self.first = Some(Counts::read(&self.root, now_ns));
        }
    }

    /// The next look in `next_in_ns`, or before that where it must begin to count.
    #[must_use]
    pub(super) fn next_in_ns(&self, next_in_ns: Option<i64>, now_ns: i64) -> Option<i64> {
        let begin_in_ns = self.first.is_none().then(|| self.begin_ns - now_ns);
        next_in_ns.into_iter().chain(begin_in_ns).min()
    }

    /// What came since.
    #[must_use]
    pub(super) fn end(self, now_ns: i64) -> Counted {
        let Some(first) = self.first else { return Counted::default() };
        let last = Counts::read(&self.root, now_ns);
        Counted {
            machine: Some(averages((first.at_ns, &first.stat), (last.at_ns, &last.stat))),
            interrupts: differences(&first.interrupts, last.interrupts),
            counted_ns: u64::try_from(last.at_ns - first.at_ns).ok(),
        }
    }
}

impl Counts {
    fn read(root: &Root, at_ns: i64) -> Self {
        Self { at_ns, stat: Stat::read(root), interrupts: interrupt_sources(root) }
    }
}

fn differences(before: &[InterruptSource], after: Vec<InterruptSource>) -> Vec<InterruptCount> {
    let mut rows = Vec::new();
    for source in after {
        let known = before.iter().find(|old| old.kind == source.kind && old.name == source.name);
        for (cpu, after) in source.counts {
            let old = known.and_then(|old| old.counts.iter().find(|(was, _)| *was == cpu));
            let before = old.map_or(0, |(_, count)| *count);
            if after == 0 {
                continue;
            }
            rows.push(InterruptCount {
                kind: source.kind.into(),
                source: source.name.clone(),
                description: source.description.clone(),
                cpu,
                before,
                after,
                difference: after.saturating_sub(before),
            });
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(cpu: u32, busy: u64, steal: u64, all: u64) -> CpuTicks {
        CpuTicks { cpu, busy, steal, all }
    }

    #[test]
    fn rates_are_per_second_and_shares_of_time() {
        let before = Stat { interrupts: 100, cpus: vec![ticks(0, 10, 0, 100)], ..Stat::default() };
        let now = Stat {
            interrupts: 1_100,
            disk_bytes: (4_096, 0),
            cpus: vec![ticks(0, 35, 10, 150), ticks(1, 5, 0, 5)],
            ..Stat::default()
        };
        let record = averages((0, &before), (500_000_000, &now));
        assert_eq!(record.cpus, [CpuUse { cpu: 0, busy: 0.5, steal: 0.2 }], "1 was not there");
        let rows = rows(&record, 1.5);
        let value = |what: &str| rows.iter().find(|row| row.what == what).map(|row| row.value);
        assert_eq!((value("interrupts"), value("disk_read_bytes")), (Some(2_000.0), Some(8_192.0)));
        assert_eq!((value("cpu0"), value("cpu1")), (Some(0.5), None));
        assert!(rows.iter().all(|row| row.t_s == 1.5));
    }

    #[test]
    fn what_came_in_the_warm_up_is_in_no_rate() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("proc")).unwrap();
        let come = |count: u64| {
            let stat = format!("ctxt {count}\ncpu0 {count} 0 0 0 0 0 0 0\n");
            std::fs::write(directory.path().join("proc/stat"), stat).unwrap();
            let interrupts = format!("  CPU0\nLOC: {count} Local timer interrupts\n");
            std::fs::write(directory.path().join("proc/interrupts"), interrupts).unwrap();
        };
        let second = 1_000_000_000;
        let mut counts = MeasuredCounts::new(Root::at(directory.path()), 3 * second);
        come(1_000);
        counts.poll(second);
        come(7_000);
        counts.poll(3 * second);
        come(7_300);
        counts.poll(4 * second);
        come(7_400);
        let counted = counts.end(7 * second);
        assert_eq!(counted.counted_ns, Some(4_000_000_000));
        let [row] = counted.interrupts.as_slice() else { panic!("{counted:?}") };
        assert_eq!((row.before, row.after, row.difference), (7_000, 7_400, 400));
        assert_eq!(counted.machine.unwrap().context_switches_per_s, 100.0);
    }

    #[test]
    fn nobody_sleeps_past_the_moment_to_begin_to_count() {
        let mut counts = MeasuredCounts::new(Root::at("/nowhere"), 50);
        let next = |counts: &MeasuredCounts| {
            [None, Some(10), Some(40)].map(|next_in_ns| counts.next_in_ns(next_in_ns, 20))
        };
        assert_eq!(next(&counts), [Some(30), Some(10), Some(30)]);
        counts.poll(50);
        assert_eq!(next(&counts), [None, Some(10), Some(40)]);
    }

    #[test]
    fn a_run_that_ends_in_its_warm_up_has_no_rates() {
        let mut counts = MeasuredCounts::new(Root::default(), 5);
        counts.poll(4);
        let counted = counts.end(6);
        assert_eq!((counted.machine, counted.interrupts, counted.counted_ns), (None, vec![], None));
    }
}
