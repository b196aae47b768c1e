//! Two nodes in one guest: messages go from one to the other, on a standard and on a real-time
//! kernel, and come out the same twice.

use tardy::lab::guest::nodes;

use super::*;

/// A cell whose near box runs `probe`, with few messages: most of the time is the kernel's boot.
fn cell(place: &Place, probe: &str, arguments: &[&str]) -> Cell {
    let way = nodes::way(probe);
    let way = way.iter().map(String::as_str);
    let common = ["--samples=300", "--warmup=20ms", "--trace=off"];
    let words: Vec<&str> =
        [probe].iter().chain(arguments).chain(&common).copied().chain(way).collect();
    Cell { far: nodes::echo(Vec::new()), ..place.cell(&words) }
}

/// A stream in the near box whose packets the echo sends back: something to receive.
fn traffic() -> String {
    let way = nodes::way("stream").join(" ");
    format!(
        "--load-command=exec /init run stream {way} --priority=80 --duration=1h --trace=off \
         --quiet -o /run/sender"
    )
}

fn assert_answered(document: &Document) {
    let messages = document.messages.as_ref().unwrap();
    let far = messages.ends.iter().find(|end| end.name == "far").unwrap();
    assert_eq!((far.place.as_str(), far.address.as_deref()), ("machine", Some("192.0.2.2:7117")));
    let series = &document.series[0];
    assert_eq!((series.name.as_str(), series.count), ("rtt", 300));
    // Over the wire and back is more than a wait of any kind, and less than a lost packet.
    let median = series.percentiles["50"];
    assert!((20_000..1_000_000).contains(&median), "{median} ns");
}

#[test]
#[ignore = "long: two guests"]
fn messages_come_back_from_the_second_box_and_the_same_ones_twice() {
    let Some(place) = Place::new() else { return };
    let udp = ["--transport=udp"];
    let cells = [
        (&place, cell(&place, "pingpong", &udp), "one"),
        (&place, cell(&place, "pingpong", &udp), "again"),
    ];
    let documents = run_all(&cells);
    documents.iter().for_each(assert_answered);
    assert_eq!(files(&place.path("one")), files(&place.path("again")));
    let facts = documents[0].facts.lab.as_ref().unwrap();
    assert_eq!(facts.far, nodes::echo(Vec::new()));
    place.assert_nothing_left();
}

#[test]
#[ignore = "long: a guest more, with the real-time kernel"]
fn messages_come_back_from_the_second_box_of_a_real_time_kernel() {
    let Some(rt) = Place::with("rt") else { return };
    let documents = run_all(&[(&rt, cell(&rt, "pingpong", &["--transport=tcp"]), "rt")]);
    documents.iter().for_each(assert_answered);
    rt.assert_nothing_left();
}

#[test]
#[ignore = "long: two guests, for what the ping-pong between boxes shares"]
fn a_stream_goes_to_the_second_box_and_what_comes_off_the_wire_is_received() {
    let (Some(place), Some(rt)) = (Place::new(), Place::with("rt")) else { return };
    let traffic = traffic();
    let receive = cell(&place, "receive", &["--iface=eth0", "--sender=none", &traffic]);
    let stream = cell(&rt, "stream", &[]);
    let documents = run_all(&[(&place, receive, "received"), (&rt, stream, "streamed")]);
    let (received, streamed) = (&documents[0], &documents[1]);
    let flow = &received.messages.as_ref().unwrap().flows[0];
    assert_eq!((flow.series.as_str(), flow.received, flow.lost), ("receive", 300, 0));
    let of = |name: &str| {
        let found = streamed.series.iter().find(|series| series.name == name).unwrap();
        assert_eq!(found.count, 300, "{name}");
        found.percentiles["50"]
    };
    // The ways there and back are parts of the whole, and each takes its time.
    let (whole, there, back) = (of("rtt"), of("there"), of("back"));
    assert!(there > 10_000 && back > 10_000, "{there} and {back} ns");
    assert!(there.max(back) < whole && whole < 1_000_000, "{there} and {back} of {whole} ns");
    place.assert_nothing_left();
    rt.assert_nothing_left();
}

#[test]
#[ignore = "long: a guest for one error"]
fn a_second_box_that_cannot_listen_is_reported_in_its_own_words() {
    let Some(place) = Place::new() else { return };
    let mut cell = cell(&place, "pingpong", &[]);
    cell.far.push("--max-size=0".into());
    let error = format!("{:#}", place.run(&cell, "run").unwrap_err());
    assert!(error.contains("second box") && error.contains("--max-size"), "{error}");
    place.assert_nothing_left();
}
