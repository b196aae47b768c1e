//! Why packets of a stream were late: what a traced run leaves, and whether delays of a known cause
//! come back, also of packets that waited behind a late one. Needs the rights to trace.

use tardy::{run::peaks::Peak, sys::cpus::Cpus};

use super::{
    message_peaks::{assert_sums, can_trace, hog_ns, is_hog_named, with_hog, with_peaks},
    schema::{faults, schema},
    support::{Store, eventually, is_root, list, skip, whole},
    why,
};

const TRACED: [&str; 8] =
    ["run", "stream", "--trace", "peaks", "--warmup", "200ms", "--rate", "2kpps"];

#[test]
fn late_packets_are_kept_whole_with_the_time_until_they_were_sent_and_explained() {
    if !can_trace() {
        return skip("packets cannot be traced here");
    }
    for (more, flows) in [
        (&["--both-ways"][..], ["there", "back"]),
        (&["--transport", "tcp", "--both-ways"], ["there", "back"]),
        (&["--group", "239.11.12.14", "--receivers", "2"], ["there", "there2"]),
    ] {
        let (store, record, peaks) = with_peaks(&[&TRACED[..], more].concat());
        assert_eq!(faults(&schema(), &record), [""; 0], "{record}");
        assert_eq!(record["trace"]["found"], "peaks", "{record}");
        let series = list(&record["series"]);
        let parts = ["", "/pacing", "/transit", "/send", "/dispatch", "/receive"];
        let expected = flows.iter().flat_map(|flow| parts.map(|part| format!("{flow}{part}")));
        let names: Vec<&str> = series.iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(names, expected.collect::<Vec<_>>());
        let count = |at: usize| whole(&series[at]["count"]);
        assert!(count(3) > 0 && count(9) > 0, "{record}");
        let split = count(3) + count(9) + whole(&record["trace"]["unmatched"]);
        assert_eq!(split, count(0) + count(6), "{record}");
        peaks.iter().for_each(assert_sums);
        let is_whole = |peak: &&Peak| !peak.ways.is_empty();
        for peak in peaks.iter().filter(is_whole) {
            let ways: Vec<&str> = peak.ways.iter().map(|way| way.way.as_str()).collect();
            assert_eq!(ways, ["pacing", peak.series.trim_end_matches('2')], "{peak:?}");
        }
        assert_eq!(why::document(&store)["sample"], "packet");
        let text = store.run(&["why", "r", "--peaks", "3"]).out;
        assert!(text.contains("packets") && text.contains("us past schedule"), "{text}");
        assert!(text.contains("until it was sent") && !text.contains("after stamp"), "{text}");
    }
}

#[test]
fn a_task_of_higher_priority_at_either_end_is_named_also_by_packets_behind_the_first() {
    let cpus: Vec<u32> = Cpus::allowed().unwrap().iter().take(2).collect();
    let [near, far] = cpus[..] else { return skip("needs two CPUs") };
    if !can_trace() || !is_root() {
        return skip("needs root, to trace and for real-time priorities");
    }
    for (transport, cpu) in [("udp", far), ("udp", near), ("tcp", far)] {
        let asked = [&TRACED[..], &["--transport", transport]].concat();
        // A busy machine may delay everything meanwhile.
        eventually(&format!("{transport}, CPU {cpu}: packets behind a burst name it"), || {
            let (peaks, bursts) = with_hog(&asked, (near, far), cpu);
            let is_named = bursts.iter().any(|burst| is_hog_named(&peaks, *burst));
            is_named && bursts.iter().any(|burst| is_named_behind(&peaks, *burst))
        });
    }
}

/// Whether a packet that was due within the burst names it for most of what was left of it.
fn is_named_behind(peaks: &[Peak], (from_ns, to_ns): (i64, i64)) -> bool {
    // The period is a quarter of the burst: the first of them is due before this.
    let behind = from_ns + (to_ns - from_ns) / 3..to_ns;
    let mut due = peaks.iter().filter(|peak| behind.contains(&peak.at_ns.unwrap()));
    due.any(|peak| hog_ns(peak) >= (to_ns - peak.at_ns.unwrap()).unsigned_abs() * 8 / 10)
}

#[test]
fn a_stream_to_another_machine_or_to_an_end_that_spins_is_refused_with_the_reason() {
    let store = Store::new();
    for (more, words) in [
        (["--to", "127.0.0.1:1"], "to another machine (--to)"),
        (["--far-wait", "spin"], "where an end spins that receives"),
    ] {
        let other = ["--policy", "other", "--duration", "200ms"];
        let said = store.run(&[&TRACED[..], &other, &more].concat());
        assert!(said.code == Some(2) && said.err.contains(words), "{said:?}");
    }
    let plain = ["run", "stream", "--warmup", "0s", "--duration", "200ms", "--name", "r"];
    store.run(&plain);
    let record = store.show("r");
    assert_eq!(record["trace"]["found"], "off", "{record}");
    assert!(record["trace"]["why_not"].as_str().unwrap().contains("--trace stages"), "{record}");
    let said = store.run(&["why", "r"]);
    assert!(said.code == Some(2) && said.err.contains("packets of r"), "{said:?}");
}

#[test]
fn the_page_shows_the_ways_of_late_packets() {
    if !can_trace() {
        return skip("packets cannot be traced here");
    }
    let (store, ..) = with_peaks(&TRACED);
    let page = store.page(&["r"]);
    let peaks = list(&page["runs"][0]["peaks"]["peaks"]);
    let with_ways = peaks.iter().find(|peak| !list(&peak["ways"]).is_empty());
    let ways = list(&with_ways.unwrap()["ways"]);
    assert_eq!((ways.len(), &ways[0]["way"]), (2, &"pacing".into()), "{ways:?}");
}
