//! Texts in the form of the kernel's rtla-timerlat-top.rst and of timerlat_aa.c, whose numbers are
//! made up.

use crate::{
    exchange::import::tests::{caveats, made, series, text},
    report::{
        causes::{page, words},
        why,
    },
    run::{
        ImportCaveat,
        peaks::{Basis, Cause, Part, Peak},
    },
};

const ANALYSIS: &str = include_str!("../../../../fuzz/seeds/import/rtla-analysis.txt");

/// It stopped in the timer's interrupt.
const IN_IRQ: &str = "## CPU 5 hit stop tracing, analyzing it ##\n\
    \x20 IRQ handler delay:                                     0.35 us (1.13 %)\n\
    \x20 IRQ latency:                                          31.07 us\n\
    \x20 Blocking thread:\n\
    \x20                        kworker/5:1:812\n\
    \x20   Blocking thread stacktrace\n\
    \x20               -> timerlat_irq\n\
    \x20               -> asm_sysvec_apic_timer_interrupt\n\
    \x20               -> _raw_spin_unlock_irq\n\
    \x20               -> worker_thread\n\
    \x20               -> drain_all_of_it\n\
    ------------------------------------------------------------------------\n\
    \x20   IRQ latency:                                        31.07 us (100%)\n";

const TOP: &str = "                                     Timer Latency\n\
    \x20 0 00:00:12   |      IRQ Timer Latency (us)        |     Thread Timer Latency (us)\n\
    CPU COUNT      |      cur       min       avg       max |      cur       min       avg       \
    max\n\
    \x20 1 #12322     |        0         0         1        15 |     10         3         9     \
    31\n\
    \x20 3 #12320     |       36         0         1        36 |     64         3        11     \
    64\n";

const HIST: &str = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n\
    # Duration:   0 00:00:12\nIndex   IRQ-003   Thr-003\n0            10         0\n\
    1             1        10\nover:         1         2\ncount:       12        12\n\
    min:          0         1\navg:          3         9\nmax:         36        64\n\
    ALL:        IRQ       Thr\ncount:       12        12\n";

/// Cause, name, task, ns and basis of each part.
fn blame(peak: &Peak) -> Vec<(Cause, &str, &str, u64, Basis)> {
    let one = |part: &'_ Part| (part.cause, part.ns, part.basis);
    let names = peak.blame.iter().map(|part| {
        let task = part.task.as_deref().unwrap_or_default();
        (part.name.as_str(), task)
    });
    let values = peak.blame.iter().map(one);
    names
        .zip(values)
        .map(|((name, task), (cause, ns, basis))| (cause, name, task, ns, basis))
        .collect()
}

/// The peak of a text that has one.
fn peak_of(analysis: &str) -> Peak {
    let mut sheet = text(analysis).unwrap();
    assert!(sheet.is_consistent());
    assert_eq!(sheet.peaks.len(), 1);
    sheet.peaks.remove(0)
}

#[test]
fn each_part_of_a_late_thread_has_its_cause_and_all_sum_to_its_latency() {
    use Basis::{Inferred, Measured, None};
    let peak = peak_of(ANALYSIS);
    assert_eq!((peak.cpu, peak.latency_ns, peak.series.as_str()), (3, 64_310, "cpu3"));
    assert_eq!((peak.at_ns, peak.stages), (Option::None, Option::None));
    let expected = [
        (Cause::IrqsOff, "percpu_counter_add_batch", "rsync/2471", 35_120, Inferred),
        (Cause::Nonpreemptible, "percpu_counter_add_batch", "rsync/2471", 9_800, Measured),
        (Cause::Hardirq, "timer interrupt", "", 7_450, Measured),
        (Cause::Softirq, "NET_RX", "", 3_020, Measured),
        (Cause::Hardirq, "nvme0q1", "", 2_500, Measured),
        (Cause::Hardirq, "local_timer", "", 2_100, Measured),
        (Cause::Thread, "migration/3", "migration/3/29", 1_720, Measured),
        (Cause::Unexplained, "in no part of the analysis", "", 1_710, None),
        (Cause::Softirq, "RCU", "", 890, Measured),
    ];
    assert_eq!(blame(&peak), expected);
    assert_eq!(peak.blame.iter().map(|part| part.ns).sum::<u64>(), 64_310);
    // What was interrupted; the timeline has the interrupt too.
    assert_eq!((peak.blame[0].stack.len(), peak.timeline[2].stack.len()), (6, 12));
    assert_eq!(peak.blame[0].stack[0], "_raw_spin_unlock_irqrestore");
    let evidence = "interrupted in _raw_spin_unlock_irqrestore, which enables them";
    assert_eq!(peak.blame[0].evidence.as_deref(), Some(evidence));
    let moments: Vec<_> =
        peak.timeline.iter().map(|own| (own.at, own.ns, own.what.as_str())).collect();
    let expected = [(0, "expiry"), (35_120, "vector"), (36_040, "stack"), (64_310, "woke")];
    let expected = expected.map(|(at, what)| (at, (what == "vector").then_some(7_450), what));
    assert_eq!(moments, expected);
}

#[test]
fn without_a_sign_nobody_is_blamed_for_the_interrupt() {
    let delay = |text: &str| {
        let peak = peak_of(text);
        let part = peak.blame.iter().find(|part| part.ns == 35_120).unwrap().clone();
        (part.cause, part.name, part.task, part.basis)
    };
    let late = (Cause::Unexplained, "interrupt late".to_owned(), None, Basis::None);
    // It was interrupted elsewhere; no stack; another interrupt came before it; in idle.
    let elsewhere = ANALYSIS.replace("_raw_spin_unlock_irqrestore", "ext4_es_lookup_extent");
    assert_eq!(delay(&elsewhere), late);
    let (from, to) = (ANALYSIS.find("    Blocking").unwrap(), ANALYSIS.find("  IRQ int").unwrap());
    let bare = format!("{}{}", &ANALYSIS[..from], &ANALYSIS[to..]);
    assert_eq!(delay(&bare), late);
    let bare = peak_of(&bare);
    let is_blocking = |part: &&Part| part.cause == Cause::Nonpreemptible;
    assert_eq!(bare.blame.iter().find(is_blocking).unwrap().name, "rsync");
    let previous = "  Previous IRQ interference:\t\t\t up to       2.40 us\n  IRQ handler delay";
    let previous = ANALYSIS.replace("  IRQ handler delay", previous);
    assert_eq!(delay(&previous), late);
    let idle = ANALYSIS.replace("rsync:2471", "swapper/3:0");
    assert_eq!(delay(&idle), late);
    let from_idle = idle.replace("delay:\t\t                ", "delay:\t\t(exit from idle)");
    assert_ne!(from_idle, idle);
    let expected = (Cause::IdleExit, "idle exit".to_owned(), None, Basis::Inferred);
    assert_eq!(delay(&from_idle), expected);
}

#[test]
fn where_it_stopped_in_the_interrupt_only_what_is_of_this_sample_is_taken() {
    let peak = peak_of(IN_IRQ);
    assert_eq!((peak.series.as_str(), peak.latency_ns), ("cpu5", 31_070));
    // Neither the delay, nor the name of the task.
    let expected = (Cause::IrqsOff, "drain_all_of_it", "task 812", 31_070, Basis::Inferred);
    assert_eq!(blame(&peak), [expected]);
    assert!(peak.timeline.iter().all(|moment| moment.what != "woke"));
    let sheet = text(IN_IRQ).unwrap();
    let said = caveats(&sheet);
    for (code, text) in [
        ("interrupts_only", "The program stopped in the timer's interrupt (cpu5)"),
        ("late_samples_only", "The file has only 1 sample"),
    ] {
        assert!(said.contains(&format!("{code}: {text}")), "{said}");
    }
    let idle = IN_IRQ.replace("delay:                 ", "delay: (exit from idle)");
    let idle = idle.replace("0.35 us", "29.30 us");
    let peak = peak_of(&idle);
    let causes: Vec<_> = peak.blame.iter().map(|part| (part.cause, part.ns)).collect();
    assert_eq!(causes, [(Cause::IdleExit, 29_300), (Cause::Unexplained, 1_770)]);
    // Beside the latencies of threads it is a stage.
    let both = text(&format!("{IN_IRQ}{ANALYSIS}")).unwrap();
    assert_eq!(series(&both), [("cpu5/irq", 1, 31_070, 31_070), ("cpu3", 1, 64_310, 64_310)]);
}

#[test]
fn a_table_comes_whole_with_the_analysis_behind_it_and_no_sample_counts_twice() {
    for (table, count, min_ns) in [(TOP, 12_320, 3_000), (HIST, 12, 1_000)] {
        let sheet = text(&format!("{table}{ANALYSIS}")).unwrap();
        let own = series(&sheet);
        let found = own.iter().find(|own| own.0 == "cpu3").unwrap();
        assert_eq!(*found, ("cpu3", count, min_ns, 64_310), "{table}");
        assert_eq!(sheet.peaks.len(), 1);
        assert!(sheet.is_consistent());
        let said = caveats(&sheet);
        assert!(said.contains("latencies_rounded") && !said.contains("late_samples"), "{said}");
        assert_eq!(sheet.duration_ns, Some(12_000_000_000));
    }
    // One that came after the table was drawn is one more.
    let later = TOP.replace("64\n", "23\n");
    let sheet = text(&format!("{later}{ANALYSIS}")).unwrap();
    assert!(series(&sheet).contains(&("cpu3", 12_321, 3_000, 64_310)));
    assert_eq!(text(TOP).unwrap().peaks, []);
    // With the return to user space, rtla stops at either.
    let user = TOP.replace("max\n", "max | cur min avg max\n");
    let user = user.replace("31\n", "31 | 10 3 9 40\n").replace("64\n", "64 | 70 3 9 70\n");
    let sheet = text(&format!("{user}{ANALYSIS}")).unwrap();
    assert_eq!(sheet.peaks[0].series, "cpu3/thread");
    let sheet = text(&format!("{TOP}{IN_IRQ}")).unwrap();
    assert!(series(&sheet).contains(&("cpu5/irq", 1, 31_070, 31_070)));
}

#[test]
fn the_run_of_it_says_why_and_of_no_peak_when() {
    let (_place, run, document) = made(&text(&format!("{TOP}{ANALYSIS}")).unwrap());
    let missing = document.caveats.iter().find(|own| own.code == "facts_missing").unwrap();
    assert!(missing.text.contains("when its late samples were"), "{}", missing.text);
    let (report, document) = why::document(&run).unwrap();
    assert_eq!(
        report.verdict,
        "Of the worst wake-up that was kept, 64.3 us on cpu3, 55% was probably interrupts off in \
         percpu_counter_add_batch; 15% was kernel work that cannot be preempted: \
         percpu_counter_add_batch; 12% was hard interrupt timer interrupt."
    );
    let view = why::PeakView::Timelines(3);
    let text = anstream::adapter::strip_str(&why::text(&report, &document, "r", view)).to_string();
    assert!(text.contains("1. 64.3 us late on cpu3\n"), "{text}");
    assert!(text.contains("its stages are not in the file"), "{text}");
    assert!(text.contains("softirq          NET_RX"), "{text}");
    assert!(!text.contains("into the run"), "{text}");
    let (total, _) = crate::report::causes::total(&run);
    let causes = crate::report::causes::Causes::of(&run, &total);
    let page = page::peaks(&causes, document.start_monotonic_ns);
    assert_eq!((page.peaks[0].t_s, page.peaks[0].at_ns), (None, None));
    let worst = words::worst_in_words(&document, &page);
    let expected = "probably while interrupts were off in percpu_counter_add_batch";
    assert_eq!(worst.as_deref(), Some(expected));
}

#[test]
fn parts_that_do_not_fit_are_rounding_or_nobodys() {
    let rounded = peak_of(&ANALYSIS.replace("64.31", "62.58"));
    assert_eq!(rounded.blame.iter().map(|part| part.ns).sum::<u64>(), 62_580);
    assert_eq!(rounded.blame[0].ns, 35_100, "20 ns too much by rounding");
    for huge in ["55.12", "18446744073709551.50"] {
        let peak = peak_of(&ANALYSIS.replace("35.12", huge));
        let all = (Cause::Unexplained, "the analysis has more time than the latency", "", 64_310);
        let found: Vec<_> = blame(&peak).into_iter().map(|(a, b, c, d, _)| (a, b, c, d)).collect();
        assert_eq!(found, [all]);
    }
}

#[test]
fn a_task_called_as_a_heading_is_no_heading() {
    let named = ANALYSIS.replace("migration/3:29", "IRQ latency::29");
    let peak = peak_of(&named);
    assert!(peak.blame.iter().any(|part| part.name == "IRQ latency:"), "{peak:?}");
}

#[test]
fn a_damaged_analysis_is_refused_with_its_line() {
    for (from, to, line) in [
        ("35.12 us", "35,12 us", 3),
        ("35.12 us", "35.12 ms", 3),
        ("36.04 us", "-36.04 us", 4),
        ("## CPU 3", "## CPU x", 2),
        ("rsync:2471", "rsync", 7),
        ("-> timerlat_irq", "timerlat_irq", 9),
        ("NET_RX:3", "NET_RX:", 25),
        ("NET_RX:3  \t\t\t     3.02 us", "NET_RX:3", 25),
        ("  Timerlat IRQ duration:", "  Timerlat IRQ:", 5),
        ("2.50 us", "20.50 us", 30),
        ("64.31 us (100%)", "64.3x us (100%)", 30),
    ] {
        assert!(ANALYSIS.contains(from), "{from:?}");
        let error = text(&ANALYSIS.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.starts_with(&format!("line {line}: ")), "{from:?} {to:?}: {error}");
    }
    // The heading stands in line 2, and 28 lines follow.
    let lines: Vec<&str> = ANALYSIS.lines().collect();
    for kept in 2..30 {
        let cut = lines[..kept].join("\n");
        let error = text(&cut).unwrap_err().to_string();
        assert!(error.starts_with("line 2: the analysis of CPU 3 has no latency"), "{error}");
        let error = text(&format!("{TOP}{cut}")).unwrap_err().to_string();
        assert!(error.contains("which was expected there"), "{error}");
    }
    for at in [2, 3, 4, 5, 6] {
        let left: Vec<&str> =
            lines.iter().enumerate().filter(|(n, _)| *n != at).map(|(_, line)| *line).collect();
        let error = text(&left.join("\n")).unwrap_err().to_string();
        assert!(error.contains("line"), "{at}: {error}");
    }
    let twice = ANALYSIS.replace("  IRQ latency", "  IRQ latency: 1.00 us\n  IRQ latency");
    assert!(text(&twice).unwrap_err().to_string().starts_with("line 5: \""));
    let irq = IN_IRQ.replace("thread:\n", "thread:   3.00 us\n");
    assert!(text(&irq).unwrap_err().to_string().starts_with("line 5: \""));
}

#[test]
fn a_table_without_distribution_gets_none_by_its_analysis() {
    // Its sample is larger than all of the table.
    let later = format!("{}{ANALYSIS}", TOP.replace("64\n", "23\n"));
    let (_place, run, document) = made(&text(&later).unwrap());
    let mut counted = 0;
    run.intervals(|_, _, counts| counted += counts.len()).unwrap();
    assert_eq!(counted, 0);
    assert!(document.series.iter().all(|series| series.percentiles.is_empty()));
    let whole = document.series.iter().find(|series| series.name == "cpu3").unwrap();
    assert_eq!((whole.count, whole.above, whole.max), (12_321, 12_321, Some(64_310)));
    let said = text(&later).unwrap().caveats;
    assert!(said.contains(&ImportCaveat::NoDistribution { samples: 24_643 }), "{said:?}");
}
