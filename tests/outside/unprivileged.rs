//! Without root: tardy still runs, and says what that leaves out.

use serde_json::Value;

use super::support::{LIGHT_LOAD, SHORT, Store, codes, finish, is_root, list, piped, skip, whole};

fn measured(store: &Store, limits: &str, more: &[&str]) -> Value {
    let arguments = [&SHORT[..], &["--duration", "500ms", "--name", "r"], more].concat();
    let said = finish(piped(&mut store.shell(limits, &arguments)));
    assert_eq!(said.code, Some(0), "{said:?}");
    store.show("r")
}

#[test]
fn a_run_without_rights_is_weakened_and_every_lack_has_its_remedy() {
    let store = Store::unprivileged();
    let record = measured(&store, "ulimit -r 0; ulimit -l 64; ulimit -e 0", &[]);
    if !is_root() && record["setup"]["found"]["policy"] != "other" {
        return skip("this user may have real-time threads");
    }
    assert_eq!(record["validity"], "weakened", "{record}");
    let codes = codes(&record);
    for code in ["no_real_time", "memory_not_locked", "helpers_not_real_time"] {
        assert!(codes.contains(&code), "{code}: {codes:?}");
    }
    for caveat in list(&record["caveats"]) {
        assert!(!caveat["remedy"].as_str().unwrap().is_empty(), "{caveat}");
    }
    let found = &record["setup"]["found"];
    assert_eq!(found["policy"], "other");
    assert_eq!(found["memory_lock"]["locked"], "none");
    for thread in list(&found["threads"]) {
        assert_eq!((&thread["policy"], whole(&thread["priority"])), (&"other".into(), 0));
        assert_eq!(whole(&thread["timer_slack_ns"]), 1, "slack needs no rights: {thread}");
    }
    assert!(list(&record["series"]).iter().all(|series| whole(&series["count"]) > 0));
    let asked = &record["setup"]["asked"];
    assert_eq!((&asked["policy"], &asked["policy_explicit"]), (&"fifo".into(), &false.into()));
}

#[test]
fn a_device_that_only_root_may_open_is_a_caveat() {
    let store = Store::unprivileged();
    let device = std::path::Path::new("/dev/cpu_dma_latency");
    let other = std::fs::metadata(device)
        .map(|device| std::os::unix::fs::MetadataExt::mode(&device) & 0o006 == 0o006);
    if !other.is_ok_and(|everybody| !everybody) || (!is_root() && can_open(device)) {
        return skip("no /dev/cpu_dma_latency, or everybody may open it");
    }
    let record = measured(&store, ":", &[]);
    assert!(codes(&record).contains(&"dma_latency_not_held"), "{record}");
    assert!(record["setup"]["found"]["dma_latency_us"].is_null());
    let second = Store::unprivileged();
    let record = measured(&second, ":", &["--no-dma-latency"]);
    assert!(!codes(&record).contains(&"dma_latency_not_held"), "what is not wanted is not missed");
}

fn can_open(device: &std::path::Path) -> bool {
    std::fs::File::options().write(true).open(device).is_ok()
}

#[test]
fn memory_that_fits_into_the_limit_is_locked_without_rights() {
    let store = Store::unprivileged();
    let cpu = first_cpu();
    let length = ["--duration", "300ms", "--cpus", &cpu, "--name", "r"];
    let arguments = [&SHORT[..], &length].concat();
    let said = finish(piped(&mut store.may_lock(1 << 30, &arguments)));
    // Root itself cannot raise it where CAP_SYS_RESOURCE was taken away, in a container say.
    if said.code == Some(9) || said.err.starts_with("prlimit: failed to set") {
        return skip("the limit of locked memory cannot be raised to 1 GiB here");
    }
    assert_eq!(said.code, Some(0), "{said:?}");
    let record = store.show("r");
    let locked = &record["setup"]["found"]["memory_lock"];
    // Not all: locking the future under a limit would make later allocations fail.
    assert_eq!(locked["locked"], "what existed when armed", "{record}");
    assert!(whole(&locked["bytes"]) > 0, "{record}");
    assert!(!codes(&record).contains(&"memory_not_locked"));
}

fn first_cpu() -> String {
    let allowed = tardy::sys::cpus::Cpus::allowed().unwrap();
    allowed.iter().next().unwrap().to_string()
}

#[test]
fn policy_other_that_was_asked_for_is_no_doubt() {
    let store = Store::unprivileged();
    let record = measured(&store, "ulimit -r 0", &["--policy", "other"]);
    assert!(!codes(&record).contains(&"no_real_time"), "{record}");
    assert_eq!(record["setup"]["asked"]["policy_explicit"], true);
}

#[test]
fn a_load_works_without_rights() {
    let store = Store::unprivileged();
    let record = measured(&store, "ulimit -r 0", &["--load", LIGHT_LOAD]);
    assert!(whole(&record["loads"][0]["proof"]["operations"]) > 0, "{record}");
}

#[test]
fn what_takes_rights_and_was_asked_for_is_an_error_with_its_remedy() {
    let store = Store::unprivileged();
    let cpu = first_cpu();
    let run = ["run", "timer", "--cpus", &cpu, "--duration", "200ms"];
    for wish in [
        &["--shield"][..],
        &["--governor", "performance"],
        &["--max-idle-latency", "10us"],
        &["--policy", "deadline"],
    ] {
        if wish[0] == "--max-idle-latency" && !is_root() {
            continue;
        }
        let said = store.run(&[&run[..], wish].concat());
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{wish:?}: {said:?}");
        assert!(said.err.contains(wish[0]), "it names the flag: {said:?}");
        assert!(said.err.to_lowercase().contains("root"), "{wish:?}: {said:?}");
    }
    let said = store.run(&["shield", &cpu, "--", "true"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("Run as root"), "{said:?}");
    let said = store.run(&["restore"]);
    assert!(said.code == Some(0) || said.err.contains("alive"), "{said:?}");
}

#[test]
fn wishes_that_cannot_be_meant_are_refused_by_name() {
    let store = Store::new();
    let cpu = first_cpu();
    let run = ["run", "timer", "--duration", "200ms", "--cpus", &cpu];
    for (wish, word) in [
        (&["--deadline-params", "1us/1ms/1ms"][..], "--policy deadline"),
        (&["--deadline-params", "1us"], "RUNTIME/DEADLINE/PERIOD"),
        (&["--policy", "deadline", "--priority", "5"], "--priority is not supported"),
        (&["--shield", "--housekeeping", &cpu], "is measured"),
        (&["--housekeeping", "1023"], "--housekeeping 1023 is not available"),
        (&["--max-idle-latency", "10us", "--no-dma-latency"], "--no-dma-latency"),
        (&["--max-idle-latency", "10"], "unit"),
    ] {
        let said = store.run(&[&run[..], wish].concat());
        assert_eq!(said.code, Some(2), "{wish:?}: {said:?}");
        assert!(said.err.contains(word), "{wish:?}: {said:?}");
    }
}
