//! What happened beside the measurement: the machine's figures, and the interrupts of each CPU.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
};

use tardy_hot::clock::now_ns;

use super::support::{Store, list, read_record, whole};

const SENT: usize = 8 << 20;

/// Sends `bytes` bytes over loopback to itself.
fn send(bytes: usize) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let sender = std::thread::spawn(move || {
        TcpStream::connect(address).unwrap().write_all(&vec![7; bytes]).unwrap();
    });
    let received = listener.accept().unwrap().0.read_to_end(&mut Vec::new()).unwrap();
    sender.join().unwrap();
    assert_eq!(received, bytes);
}

#[test]
fn what_goes_over_loopback_is_in_the_record_and_second_by_second() {
    let store = Store::new();
    let begun_ns = now_ns();
    let child = store.start_measuring("r", &[]);
    let run = store.runs().join("r");
    send(SENT);
    let (said, record) = store.interrupt("r", child);
    assert_eq!(said.code, Some(0), "{said:?}");
    let machine = &record["machine"];
    // The average is over less than the whole time that tardy lived.
    let seconds = (now_ns() - begun_ns) as f64 / 1e9;
    let sent = machine["loopback_bytes_per_s"].as_f64().unwrap() * seconds;
    assert!(sent >= SENT as f64, "{sent} of {SENT}: {machine}");
    assert!(machine["page_faults_per_s"].as_f64().unwrap() > 0.0, "the test itself makes some");
    let csv = fs::read_to_string(run.join("machine.csv")).unwrap();
    for what in ["page_faults", "major_faults", "disk_read_bytes", "disk_written_bytes"] {
        assert!(csv.contains(&format!(",{what},")), "{what}");
    }
    let peak = csv.lines().filter_map(|line| line.split_once(",loopback_bytes,")?.1.parse().ok());
    assert!(peak.fold(0.0, f64::max) > 0.0, "{csv}");
    let shown = store.run(&["show", "r"]).out;
    assert!(shown.contains("\nmachine: ") && shown.contains("B/s over loopback"), "{shown}");
}

#[test]
fn show_has_the_interrupts_of_each_cpu_beside_how_late_and_how_busy_it_was() {
    let store = Store::new();
    let run = store.measure("r", &["--duration", "1s"]);
    let record = read_record(&run);
    let without = store.run(&["show", "r"]).out;
    assert!(!without.contains("interrupts, per second"), "only where it is asked for: {without}");
    let shown = store.run(&["show", "r", "--interrupts"]).out;
    let table: Vec<&str> =
        shown.lines().skip_while(|line| !line.starts_with("interrupts, per second")).collect();
    let cells = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let head = cells(table[0]);
    for series in list(&record["series"]) {
        let name = format!("cpu{}", whole(&series["cpu"]));
        let column =
            head.iter().position(|cell| *cell == name).unwrap_or_else(|| panic!("{shown}"));
        // From the right, because names on the left have spaces in them.
        let from_end = head.len() - column;
        let worst = cells(table[2]);
        let us = whole(&series["max"]) as f64 / 1e3;
        let text = if us < 99.95 { format!("{us:.1}") } else { format!("{us:.0}") };
        assert_eq!(worst[worst.len() - from_end].replace(',', ""), text, "{shown}");
    }
    assert!(table[1].starts_with("latency p99, us") && table[3].starts_with("busy, %"), "{shown}");
    let sources = table[4..].iter().take_while(|line| !line.is_empty()).count();
    assert!((1..=13).contains(&sources), "a timer cannot fire without an interrupt: {shown}");
    // The table is one of the text alone.
    assert!(!store.run(&["show", "r", "--json"]).out.contains("interrupts, per second"));
}
