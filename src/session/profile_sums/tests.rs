//! Made-up samples, summed up.

mod replayed;

use super::*;

fn sample(tid: u32, kernel: &[u64]) -> TaskSample {
    TaskSample {
        at_ns: 1,
        period: 10,
        cpu: 0,
        tid,
        pid: tid,
        comm: format!("task{tid}"),
        context: SampledContext::Kernel,
        tells_interrupts: true,
        kernel: kernel.to_vec(),
        user: Vec::new(),
        is_cut: false,
    }
}

fn profile(limits: SumLimits, samples: Vec<TaskSample>) -> Profile {
    let mut sums = ProfileSums::new(Symbols::default(), limits, LateSamples::default());
    sums.add(samples);
    sums.into_profile(crate::session::profiling::head(99))
}

#[test]
fn what_is_sampled_twice_is_one_row_and_stacks_share_their_callers() {
    let cut = |task, is_cut| TaskSample { is_cut, ..sample(task, &[5]) };
    let found = profile(SumLimits::USUAL, vec![cut(1, true), cut(1, true), cut(2, false)]);
    assert_eq!((found.samples, found.other, found.weight()), (3, 0, 30));
    let counts: Vec<u64> = found.rows.iter().map(|row| row.4).collect();
    assert_eq!((counts, found.nodes.len()), (vec![2, 1], 3));
    let stack: Vec<&str> =
        found.stack(found.rows[0].node()).map(|frame| found.frame(frame).0).collect();
    assert_eq!(stack, [UNKNOWN, CUT]);
    assert_eq!(found.tasks[1].name, "task1");
}

#[test]
fn what_has_no_room_is_counted_with_its_cpu_and_context() {
    let limits = SumLimits { stacks: 2, frames: 2, rows: 2 };
    let deep = sample(1, &[1, 2, 3]);
    let samples = vec![sample(1, &[5]), deep, sample(2, &[5]), sample(3, &[5])];
    let found = profile(limits, samples);
    assert_eq!((found.samples, found.other), (4, 3));
    assert_eq!(found.rows.iter().map(|row| row.4).sum::<u64>(), 4);
    let nobody: u64 = found.rows.iter().filter(|row| row.1 == 0).map(|row| row.4).sum();
    assert_eq!(nobody, 2);
}

#[test]
fn samples_in_late_cycles_are_rows_of_their_own_besides() {
    let (ends, ended) = std::sync::mpsc::channel();
    let late = LateSamples::of(Some(ended));
    let mut sums = ProfileSums::new(Symbols::default(), SumLimits::USUAL, late);
    let at = |at_ns, tid| TaskSample { at_ns, ..sample(tid, &[5]) };
    let softirq = TaskSample { context: SampledContext::Softirq, ..at(60, 1) };
    sums.add(vec![at(50, 1), at(60, 1), softirq, at(60, 2), at(90, 1)]);
    ends.send(crate::probes::LateCycle { tid: 1, begin_ns: 40, end_ns: 70 }).unwrap();
    let found = sums.into_profile(crate::session::profiling::head(99));
    let late = found.late.as_ref().unwrap();
    assert_eq!((found.samples, late.cycles), (5, 1));
    let rows: Vec<_> = late.rows.iter().map(|row| (row.1, row.2, row.4, row.5)).collect();
    assert_eq!(rows, [(1, CpuContext::Kernel, 2, 20)]);
}

#[test]
fn names_beyond_the_limit_become_the_first() {
    let mut names = Numbered::new("x", 2);
    assert_eq!(["a", "b", "a", "x"].map(|name| names.number(name)), [1, 0, 1, 0]);
}
