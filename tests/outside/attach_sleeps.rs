//! What threads of others sleep for in the middle of their work.

use std::{
    fs,
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::PathBuf,
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use super::{
    attach::{Workers, attach, can_attach, row, series, work},
    attach_response::{explained, part, pin, sleep_until_next},
    support::{Store, codes, is_root, list, skip, whole},
};

const MS: i64 = 1_000_000;

#[test]
#[ignore = "live: twin replayed::a_wait_for_an_ordinary_mutex_is_a_futex_and_names_who_let_it_go"]
fn a_wait_for_an_ordinary_mutex_is_a_futex_and_says_who_let_it_go() {
    static MUTEX: Mutex<()> = Mutex::new(());
    if !can_attach() || !is_root() {
        return skip("it needs the rights to trace and to real time");
    }
    let _owner = Workers::start("slp-owner", 1, || {
        pin();
        sleep_until_next(50 * MS, 0);
        let _held = MUTEX.lock().unwrap();
        work(6 * MS);
    });
    // It comes 1 ms after the owner, before whom it goes, and works for 1 ms before it wants it.
    let _waiter = Workers::start("slp-waiter", 1, || {
        pin();
        tardy::sys::sched::set_this_thread(tardy::sys::sched::Policy::Fifo, 50).unwrap();
        sleep_until_next(50 * MS, MS);
        work(MS);
        drop(MUTEX.lock().unwrap());
    });
    let store = Store::new();
    let asked = ["--comm", "slp-waiter", "--duration", "2s", "--warmup", "100ms"];
    let (said, _) = attach(&store, &[&asked[..], &["--deadline", "3ms"]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    explained(&store, |peak| part(peak, "wait", "futex, woken by slp-owner") >= 3 * MS);
}

#[test]
#[ignore = "live: twin replayed::a_sleep_for_a_time_is_part_of_its_cycle_and_begins_none"]
fn a_sleep_for_a_time_in_the_midst_of_a_cycle_is_part_of_it_and_begins_none() {
    if !can_attach() {
        return skip("it needs the rights to trace");
    }
    let _worker = Workers::start("slp-within", 1, || {
        sleep_until_next(20 * MS, 0);
        work(MS);
        std::thread::sleep(std::time::Duration::from_millis(3));
        work(MS);
    });
    let store = Store::new();
    let asked = ["--comm", "slp-within", "--duration", "2s", "--warmup", "200ms"];
    let (said, record) = attach(&store, &[&asked[..], &["--deadline", "4ms"]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let row = row(&record, "slp-within");
    assert_eq!(row["period_ns"], 20 * MS, "{row}");
    let [count, asides, missed] = [&row["lateness"]["count"], &row["asides"], &row["missed"]];
    let [count, asides, missed] = [count, asides, missed].map(whole);
    // But for what was not seen.
    assert!((count - asides).abs() <= 2 + count / 10, "one in each period: {row}");
    let all = series(&record, "slp-within");
    assert_eq!((whole(&all["count"]), whole(&all["missed"])), (count, missed), "{all}");
    // The two parts of the work and the sleep between them are one cycle.
    assert!(whole(&row["response"]["p50"]) >= 5 * MS, "{row}");
    assert!(whole(&row["over"]["waits"]["other_ns"]) >= whole(&row["over"]["cycles"]) * 3 * MS);
    let text = store.run(&["show", "r"]).out;
    assert!(text.contains("in the middle of a cycle"), "{text}");
}

#[test]
#[ignore = "live: twin replayed::periods_that_a_thread_works_through_are_missed"]
fn periods_that_a_thread_passes_over_while_it_works_have_missed_their_deadline() {
    static CYCLES: AtomicU32 = AtomicU32::new(0);
    if !can_attach() {
        return skip("it needs the rights to trace");
    }
    // Every fifth cycle takes the time of two and a half, and it continues with the next that
    // comes.
    let _worker = Workers::start("slp-skips", 1, || {
        sleep_until_next(20 * MS, 0);
        let is_long = CYCLES.fetch_add(1, Ordering::Relaxed).is_multiple_of(5);
        work(if is_long { 50 * MS } else { MS });
    });
    let store = Store::new();
    let asked = ["--comm", "slp-skips", "--duration", "3s", "--warmup", "200ms"];
    let (said, record) = attach(&store, &[&asked[..], &["--deadline", "15ms"]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let row = row(&record, "slp-skips");
    let of = |path: &str| whole(row.pointer(path).unwrap());
    let (missed, over) = (of("/missed"), of("/over/cycles"));
    assert!(missed >= 2 * (over - 1) && over > 2, "two for each: {row}");
    let shown = store.show("r");
    let judged = &list(&shown["deadlines"])[0];
    assert_eq!(judged["series"], "slp-skips/response", "{judged}");
    // But for the last cycle, and what was not seen.
    let unserved = whole(&judged["missed"]) - over;
    let least = missed - 1 - of("/unmatched");
    assert!((least..=missed).contains(&unserved), "{unserved} of {missed}: {judged} {row}");
    assert_eq!(whole(&judged["periods"]), of("/response/count") + unserved, "{judged}");
}

#[test]
#[ignore = "live: twin a_thread_that_never_sleeps_is_named_and_a_slow_one_is_judged_by_its_timer"]
fn a_thread_that_never_sleeps_is_named_and_a_slow_one_is_told_by_more_than_one_wake_up() {
    if !can_attach() {
        return skip("it needs the rights to trace");
    }
    let _spins = Workers::start("slp-never", 1, || work(MS));
    let _sleeps = Workers::start("slp-slow", 1, || sleep_until_next(800 * MS, 0));
    let store = Store::new();
    let pid = std::process::id().to_string();
    let (said, record) = attach(&store, &["--pid", &pid, "--duration", "3s", "--warmup", "0s"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let never = list(&record["attached"]["never_slept"]).iter();
    let named = never.filter(|name| name.as_str().unwrap().starts_with("slp-never/"));
    assert_eq!(named.count(), 1, "{record}");
    assert!(codes(&record).contains(&"attach_never_slept"), "{record}");
    // The timer of its first wake-up was armed before it was looked at: that one decides nothing.
    assert_eq!(row(&record, "slp-slow")["latency"], "lateness", "{record}");
    assert_eq!(row(&record, "slp-slow")["policy"], "other", "{record}");
}

/// The thread of this name that woke up most.
fn busiest(record: &serde_json::Value, name: &str) -> serde_json::Value {
    let rows = list(&record["attached"]["rows"]).iter();
    let is_it =
        |row: &&serde_json::Value| row["series"].as_str().unwrap().starts_with(&format!("{name}/"));
    rows.filter(is_it).max_by_key(|row| whole(&row["wakeups"])).unwrap().clone()
}

#[test]
#[ignore = "live: twin replayed::a_thread_that_never_slept_and_has_ended_is_named"]
fn a_thread_that_never_slept_and_has_ended_is_named_and_a_policy_that_changed_is_told() {
    if !can_attach() {
        return skip("it needs the rights to trace");
    }
    let store = Store::new();
    let spins = "timeout 2 sh -c 'while :; do :; done'; true";
    let (said, record) = attach(&store, &["--duration", "9s", "--", "sh", "-c", spins]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(list(&record["attached"]["never_slept"]).len(), 1, "{record}");
    assert!(codes(&record).contains(&"attach_never_slept"), "{record}");
    let store = Store::new();
    let wakes = "i=0; while [ $i -lt 30 ]; do sleep 0.02; i=$((i+1)); done";
    let changes = format!("{wakes}; chrt -f -p 5 $$ && {wakes}");
    let (said, record) = attach(&store, &["--duration", "9s", "--", "sh", "-c", &changes]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let policy = busiest(&record, "sh")["policy"].as_str().unwrap().to_owned();
    assert!(policy.ends_with(", then fifo 5"), "{policy}");
}

/// Read past the memory, so that each read is of the device.
static FILE: OnceLock<PathBuf> = OnceLock::new();

/// Reads 8 MiB of it; whether that can be done.
fn read_device() -> std::io::Result<()> {
    const ALIGNED: usize = 4096;
    let path = FILE.get().ok_or(std::io::ErrorKind::NotFound)?;
    let file = fs::OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path)?;
    let mut memory = vec![0_u8; (8 << 20) + ALIGNED];
    let from = memory.as_ptr().align_offset(ALIGNED);
    file.read_exact_at(&mut memory[from..from + (8 << 20)], 0)
}

#[test]
#[ignore = "long: a read takes as long as the disk and the machine like"]
fn a_read_of_a_device_is_input_or_output() {
    if !can_attach() || !is_root() {
        return skip("it needs the rights to trace");
    }
    let store = Store::new();
    let on_disk = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let path = store.path().join("file");
    fs::write(&path, vec![7_u8; 8 << 20]).unwrap();
    fs::File::open(&path).unwrap().sync_all().unwrap();
    FILE.set(path).unwrap();
    // Of others the kernel may wait elsewhere.
    if !on_disk.contains(" - ext4 ") || read_device().is_err() {
        return skip("no file of a disk that can be read past the memory");
    }
    let _reader = Workers::start("slp-reader", 1, || {
        sleep_until_next(100 * MS, 0);
        work(MS);
        read_device().unwrap();
    });
    let asked = ["--comm", "slp-reader", "--duration", "2s", "--warmup", "100ms"];
    let (said, _) = attach(&store, &[&asked[..], &["--deadline", "1ms"]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    explained(&store, |peak| {
        list(&peak["blame"]).iter().any(|part| {
            let name = part["name"].as_str().unwrap_or_default();
            part["cause"] == "wait" && name.starts_with("I/O, ") && whole(&part["ns"]) > 0
        })
    });
}
