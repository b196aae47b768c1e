//! Lost shares: of this machine as far as they are the sum of their parts, and of a simulated one.

use tardy_hot::gaps::run_by;

use super::*;

fn plan(cpus: Cpus) -> Noise {
    Noise { cpus, over_ns: 1_000, policy: Policy::Other, priority: 0, slack_ns: 1 }
}

/// What a probe of one CPU leaves that measures from now on: values by figure.
fn measured(length_ns: i64, samples: u64) -> (Armed, Vec<Vec<f64>>) {
    let cpu = Cpus::allowed().unwrap().iter().take(1).collect();
    let (probe, stop) = (plan(cpu), Arc::new(Stop::new()));
    let mut armed = probe.arm(&ArmOptions::default(), &stop).unwrap();
    let start_ns = tardy_hot::clock::now_ns() + 5_000_000;
    let end_ns = start_ns.saturating_add(length_ns);
    let warmup_ns = start_ns;
    armed.start(Schedule { warmup_ns, start_ns, end_ns, samples, stop_over_ns: i64::MAX });
    while !armed.is_done() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let mut values = vec![Vec::new(); probe.figures().len()];
    for one in armed.figures.as_ref().unwrap().try_iter() {
        values[one.figure].push(one.value);
    }
    (armed, values)
}

#[test]
fn the_lost_share_is_the_sum_of_its_parts_and_of_the_gaps() {
    let (armed, values) = measured(200_000_000, u64::MAX);
    let totals = armed.recorded[0].series.tally.totals();
    let (lost, parts) = values.split_first().unwrap();
    assert!(!lost.is_empty() && lost.len() <= SLICES as usize);
    for (slice, lost) in lost.iter().enumerate() {
        let sum: f64 = parts.iter().map(|part| part[slice]).sum();
        assert!((lost - sum).abs() < 1e-6 && (0.0..=100.0).contains(lost), "{lost} {sum}");
    }
    assert_eq!(totals.sum_ns > 0, lost.iter().any(|share| *share > 0.0));
    assert_eq!(armed.finish().reports[0].ended, Ended::Done);
}

#[test]
fn the_duty_cycle_of_a_hog_is_the_lost_share() {
    const TURN_NS: i64 = 25;
    const PERIOD_NS: i64 = 10_000_000;
    // Each read of the clock takes 25 ns. Of each 10 ms a hog has 3 ms, as it has the end of
    // every second slice of 75 ms; and an interrupt has 5 us in the middle of the rest.
    let mut now_ns = 0;
    let mut read_ns = || {
        now_ns += TURN_NS;
        match now_ns % PERIOD_NS {
            5_000_000 => now_ns += 5_000,
            7_000_000 => now_ns += 3_000_000,
            _ => {}
        }
        now_ns
    };
    let (stop, series) = (Stop::new(), Arc::<Series>::default());
    let mut spin = Spin { before_ns: 0, turns: 0, over_ns: 1_000 };
    let schedule = Schedule {
        warmup_ns: 0,
        start_ns: 0,
        end_ns: 1_500_000_000,
        samples: u64::MAX,
        stop_over_ns: i64::MAX,
    };
    let mut slices = Vec::new();
    let inner = Counted(Arc::clone(&series));
    let ended = slice_by_slice(schedule, inner, &mut slices, &mut spin, |sink, spin, until| {
        run_by(&mut read_ns, spin, sink, until, &stop)
    });
    assert_eq!((ended, slices.len()), (Ended::Done, 20));
    // One turn is in each gap.
    let (hog_ns, interrupt_ns) = (3_000_000 + TURN_NS, 5_000 + TURN_NS);
    let totals = series.tally.totals();
    assert_eq!((totals.count, totals.sum_ns), (300, 150 * (hog_ns + interrupt_ns)));
    // All that the gaps leave is turns, but for the clock read behind each; the last ends the run.
    let undisturbed = (1_500_000_000 - totals.sum_ns) / TURN_NS - 299;
    let turns: u64 = slices.iter().map(|slice| slice.turns).sum();
    assert_eq!(turns, undisturbed.unsigned_abs() + totals.count);
    let lost_ns: Vec<i64> = slices.iter().map(|slice| slice.lost_ns.iter().sum()).collect();
    assert_eq!(lost_ns.iter().sum::<i64>(), totals.sum_ns, "all of it is in the slices");
    let shares: Vec<Vec<f64>> = lost_shares(&slices).map(|(_, all)| all.collect()).collect();
    let mean = |place: usize| shares.iter().map(|all| all[place]).sum::<f64>() / 20.0;
    let expected = [(hog_ns + interrupt_ns), interrupt_ns, 0, 0, hog_ns];
    for (place, ns) in expected.into_iter().enumerate() {
        let percent = ns as f64 / PERIOD_NS as f64 * 100.0;
        assert!((mean(place) - percent).abs() < 1e-9, "{place}: {} of {percent}", mean(place));
    }
}

#[test]
fn a_gap_over_the_end_of_a_slice_goes_on_in_those_that_follow() {
    assert_eq!(InterruptionCarryOver::before_first_turn(900, 1_000).ns, 0, "one turn of the loop");
    let mut over = InterruptionCarryOver { ns: 2_500_000, class: 3 };
    assert_eq!(over.take(1_000_000), [0, 0, 0, 1_000_000]);
    assert_eq!(over.take(1_000_000), [0, 0, 0, 1_000_000]);
    assert_eq!((over.take(1_000_000), over.ns), ([0, 0, 0, 500_000], 0));
    assert_eq!(over.take(1_000_000), [0; 4]);
    assert_eq!(InterruptionCarryOver::before_first_turn(50_000, 1_000).class, 1);
}

#[test]
fn a_number_of_gaps_ends_it_and_the_whole_is_one_slice() {
    let (armed, values) = measured(i64::MAX, 3);
    assert_eq!(armed.recorded[0].series.tally.totals().count, 3);
    assert!(values.iter().all(|values| values.len() == 1), "{values:?}");
}
