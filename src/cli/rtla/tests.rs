//! What is typed to rtla, and what becomes of it.

use std::ffi::OsString;

use super::{others::REFUSED, *};
use crate::cli::command;

/// The words as they are parsed.
fn words(line: &str) -> Vec<OsString> {
    with_mode(line.split_whitespace().map(OsString::from).collect())
}

fn parsed(line: &str) -> clap::error::Result<RtlaFlags> {
    let matches = command().try_get_matches_from(words(&format!("tardy rtla {line}")))?;
    let Verb::Rtla(flags) = Cli::from_arg_matches(&matches)?.verb else { panic!("{line}") };
    Ok(flags)
}

fn plan(line: &str) -> RtlaPlan {
    parsed(line).unwrap().plan().unwrap()
}

fn run_words(line: &str) -> String {
    plan(line).words.join(" ")
}

#[test]
fn what_suites_type_becomes_a_run() {
    // The documents of rtla.
    let words = run_words("timerlat hist -d 10m -c 0-4 -P d:100us:1ms -p 1000 --no-aa");
    assert_eq!(
        words,
        "tardy run timer --policy deadline --deadline-params 100us/1ms/1ms --duration 600s \
         --warmup 0s --cpus 0-4 --interval 1000us --trace stages --no-dma-latency"
    );
    let words = run_words("timerlat -a 40 -c 1-23 -q");
    for wanted in ["--policy fifo --priority 95", "--stop-over 40us", "--trace auto", "--quiet"] {
        assert!(words.contains(wanted), "{words}");
    }
    // Its own tests.
    let words = run_words("timerlat top -P F:1 -c 0 -d 10s -q");
    assert!(words.contains("--policy fifo --priority 1 --duration 10s"), "{words}");
    assert!(run_words("timerlat top -s 3 -T 10").contains("--trace peaks --stop-over 10us"));
    assert!(run_words("timerlat top --aa-only 5").contains("--stop-over 5us"));
    assert!(run_words("timerlat hist -c 0 --no-irq").contains("--trace off"));
    let words = run_words("osnoise hist -P F:1 -c 0 -d 1M -b 10 -E 25 -s 30 -T 1");
    assert!(words.starts_with("tardy run noise --policy fifo --priority 1 --duration 60s"));
    assert!(words.contains("--gap-over 999ns --trace off --stop-over 30us"), "{words}");
    assert!(run_words("osnoise hist").contains("--gap-over 4999ns"));
    assert!(run_words("osnoise hist -a 10").contains("--gap-over 999ns --trace peaks"));
    let words =
        run_words("timerlat hist --warm-up 2 -H 0 -c 1 -P r:3 --dma-latency 0 --run-name night");
    assert!(words.contains("--warmup 2s --cpus 1 --housekeeping 0 --name night"), "{words}");
    assert!(words.contains("--policy rr --priority 3 "), "{words}");
    assert!(words.ends_with("--trace auto --max-idle-latency 0us"), "{words}");
}

#[test]
fn what_is_given_to_tardy_run_is_understood_by_it() {
    for line in [
        "timerlat hist -d 5 -c 0 -P d:100000:1000000 -T 50 --dma-latency 10 -q --run-name x",
        "timerlat -H 0 -c 1 -a 5",
        "osnoise hist -c 0 -a 5 -d 1h",
    ] {
        let words = plan(line).words;
        assert!(command().try_get_matches_from(&words).is_ok(), "{words:?}");
    }
}

#[test]
fn the_form_is_that_which_was_asked_for() {
    let hist = plan("timerlat hist -n -b 5 -E 100 --no-thread --no-header --with-zeros");
    assert_eq!((hist.form, hist.style.unit_ns), (RtlaForm::Histogram, 1));
    assert_eq!((hist.style.bucket, hist.style.entries), (5, 100));
    assert_eq!(hist.style.columns, [RtlaColumn::Irq]);
    assert!(!hist.style.has_header && hist.style.has_zeros && hist.style.has_summary);
    assert_eq!(plan("timerlat").form, RtlaForm::Summary);
    assert_eq!(plan("timerlat top --aa-only 5").form, RtlaForm::Cause);
    assert!(plan("timerlat -T 5").is_explained && !plan("timerlat -T 5 --no-aa").is_explained);
    assert_eq!(plan("osnoise hist").style.columns, [RtlaColumn::Noise]);
}

#[test]
fn what_cannot_be_is_refused_by_the_option_that_was_typed() {
    for (line, says) in [
        ("timerlat -p 0", "-p 0: write 1 to"),
        ("timerlat -T 0", "-T 0: write 1 to"),
        ("timerlat hist -b 0", "-b 0: write 1 to 999999"),
        ("timerlat hist -E 9", "-E 9: write 10 to 9999999"),
        ("timerlat hist --no-irq --no-thread", "--no-irq --no-thread: no column is left"),
        ("timerlat --aa-only 5 --no-aa", "--aa-only --no-aa: nothing is left"),
        ("timerlat -d 0", "-d 0: 0 leaves no time"),
        ("timerlat -d 5y", "-d 5y: "),
        ("timerlat -P f:0", "-P f:0: priorities are 1 to 99"),
        ("timerlat -P o:5", "-P o:5: tardy measures ordinary threads at nice 0"),
        ("timerlat -P d:5", "-P d:5: write f:PRIO"),
        ("timerlat -P x", "-P x: write f:PRIO"),
        ("osnoise hist -r 900000", "-r 900000: the thread spins all the time, for 1000000 us"),
    ] {
        let refused = parsed(line).unwrap().plan().err().unwrap();
        assert!(format!("{refused:#}").starts_with(says), "{line}: {refused:#}");
    }
    let error = anyhow!("--cpus 9: CPU 9 is not online");
    assert_eq!(threads::as_typed(&error).to_string(), "-c 9: CPU 9 is not online");
}

#[test]
fn other_words_of_rtla_are_refused_with_the_way_of_tardy() {
    let says = |line: &str| with_tip(parsed(line).unwrap_err()).to_string();
    for own in &REFUSED {
        for flag in [own.short, own.long].into_iter().filter(|flag| !flag.is_empty()) {
            let tool = if own.short == "-S" { "osnoise hist" } else { "timerlat hist" };
            assert!(says(&format!("{tool} {flag}")).contains(own.way), "{flag}");
        }
    }
    assert!(says("hwnoise").contains("tardy hwlatdetect"), "{}", says("hwnoise"));
    assert!(says("osnoise -q").contains("tardy rtla osnoise hist"), "{}", says("osnoise -q"));
}
