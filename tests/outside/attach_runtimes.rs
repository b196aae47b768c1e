//! Programs with a runtime, which makes many threads itself.

use std::{fs, process::Command};

use super::{
    attach::{attach, can_attach, row, series},
    chance,
    support::{Store, skip, whole},
};

/// One thread has a schedule and says how late it was by that; another sleeps as it likes; both
/// leave garbage.
const SOURCE: &str = r#"
import java.util.*;
import java.util.concurrent.*;

public class Ticks {
    static volatile Object garbage;

    public static void main(String[] none) throws Exception {
        ScheduledExecutorService pool = Executors.newSingleThreadScheduledExecutor(work -> {
            Thread thread = new Thread(work, "att-ticker");
            thread.setDaemon(true);
            return thread;
        });
        List<Long> late = Collections.synchronizedList(new ArrayList<>());
        long period = 10_000_000, start = System.nanoTime();
        pool.scheduleAtFixedRate(() -> {
            late.add(System.nanoTime() - start - period * (late.size() + 1));
            garbage = new byte[1 << 20];
        }, period, period, TimeUnit.NANOSECONDS);
        Thread other = new Thread(() -> {
            for (int i = 0; i < 300; i++) {
                garbage = new byte[1 << 16];
                try { Thread.sleep(7 + i * i % 6); } catch (InterruptedException e) { return; }
            }
        }, "att-irregular");
        other.start();
        other.join();
        pool.shutdownNow();
        List<Long> sorted = new ArrayList<>(late);
        Collections.sort(sorted);
        System.err.println("median " + sorted.get(sorted.size() / 2) + " of " + sorted.size());
    }
}
"#;

#[test]
fn the_threads_of_a_jvm_have_their_names_and_no_period_but_that_of_their_schedule() {
    if !chance::is_long() {
        return skip("a JVM takes too long for each change; set TARDY_TEST_LONG=1");
    }
    if !can_attach() {
        return;
    }
    let store = Store::new();
    fs::write(store.path().join("Ticks.java"), SOURCE).unwrap();
    let mut compiler = Command::new("javac");
    compiler.arg("-d").arg(store.path()).arg(store.path().join("Ticks.java"));
    if !compiler.status().is_ok_and(|status| status.success()) {
        return skip("no compiler of Java is installed, or it does not work here");
    }
    let classes = store.path().to_str().unwrap().to_owned();
    let java = ["--", "java", "-Xmx64m", "-XX:+UseSerialGC", "-cp", &classes, "Ticks"];
    let (said, record) = attach(&store, &java);
    assert_eq!(said.code, Some(0), "{said:?}");
    let line = said.err.lines().find(|line| line.starts_with("median ")).unwrap();
    let words: Vec<i64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    let ticker = row(&record, "att-ticker");
    assert_eq!((&ticker["latency"], &ticker["threads"]), (&"lateness".into(), &1.into()));
    // The runtime computes each expiry from clocks that it reads one after the other: where they
    // are further apart than a thousandth of the period, none can be found.
    let period_ns = ticker["period_ns"].as_i64();
    assert!(period_ns.is_none_or(|ns| (ns - 10_000_000).abs() <= 10_000), "{ticker}");
    // It was woken by its timer for each turn for which it was in time.
    assert!(whole(&ticker["by_own_timer"]) * 10 >= words[1] * 5, "{ticker} {line}");
    // Its own figure has the slack of the timer and its way to user space in it too.
    let seen = whole(&series(&record, "att-ticker")["percentiles"]["50"]);
    assert!(seen > 0 && seen <= words[0] + words[0] / 20, "{seen}: {line}");
    let irregular = row(&record, "att-irregular");
    assert!(whole(&irregular["by_own_timer"]) > 100, "{irregular}");
    assert!(irregular["period_ns"].is_null(), "{irregular}");
    // Of the runtime: its collector runs when others ask for it, or when it has waited a second;
    // its clock by a timer, 50 ms after the last time.
    assert!(whole(&row(&record, "VM%20Thread")["wakeups"]) > 0, "{record}");
    let clock = row(&record, "VM%20Periodic%20Tas");
    assert_eq!(clock["latency"], "lateness", "{clock}");
    let period_ns = clock["period_ns"].as_i64();
    assert!(period_ns.is_none_or(|ns| ns >= 50_000_000), "{clock}");
}
