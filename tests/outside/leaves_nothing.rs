//! After a run the machine is as it was, and meanwhile nobody holds what only tardy should.

use std::fs;

use super::support::{
    LIGHT_LOAD, LONG, SHORT, SHORTLY_LOGGED, Store, contents, eventually, finish, is_root, list,
    piped, signal, skip,
};

#[test]
fn after_a_run_no_process_and_no_scrap_of_a_file_is_left() {
    let store = Store::new();
    let arguments = ["--duration", "200ms", "--load", "hackbench:groups=1", "--raw", "--name", "r"];
    let said = store.run(&[&SHORT[..], &arguments].concat());
    assert!(matches!(said.code, Some(0 | 4)), "{said:?}");
    assert_eq!(store.processes(), [0; 0], "everything had ended when tardy did");
    let run = store.runs().join("r");
    for (path, _) in contents(store.path()) {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(path.starts_with(&run), "{} lies outside of the run", path.display());
        let is_scrap = name.starts_with('.') || name.ends_with(".tmp") || name == "live.hlog";
        assert!(!is_scrap && !name.ends_with(".spool"), "{name} is left");
    }
}

#[test]
fn only_tardy_itself_holds_the_request_for_shallow_idle_states() {
    let device = "/dev/cpu_dma_latency";
    if !is_root() || fs::metadata(device).is_err() {
        return skip("needs root and /dev/cpu_dma_latency");
    }
    let store = Store::new();
    // Long enough to be looked at on any machine; ended when that is done.
    let arguments = ["--duration", SHORTLY_LOGGED, "--load", "hackbench:groups=1", "--name", "r"];
    let child = store.start(&[&SHORT[..], &arguments].concat());
    store.wait_measuring("r");
    let processes = store.processes();
    assert!(processes.len() > 40, "tardy, the supervisor and 40 workers: {processes:?}");
    let holders: Vec<i32> = processes
        .into_iter()
        .filter(|pid| open_files(*pid).iter().any(|file| file == device))
        .collect();
    // Closed with the process, and so let go of, however that ends.
    assert_eq!(holders, [i32::try_from(child.id()).unwrap()]);
    signal(&child, "INT");
    assert_eq!(finish(child).code, Some(0));
    assert_eq!(store.processes(), [0; 0]);
}

#[test]
fn a_device_that_is_not_wanted_is_not_opened() {
    let store = Store::new();
    let arguments = ["--duration", LONG, "--no-dma-latency", "--name", "r"];
    let child = store.start(&[&SHORT[..], &arguments].concat());
    store.wait_measuring("r");
    let files = open_files(i32::try_from(child.id()).unwrap());
    assert!(!files.is_empty() && !files.iter().any(|file| file.contains("dma")), "{files:?}");
    signal(&child, "INT");
    assert_eq!(finish(child).code, Some(0));
}

fn open_files(pid: i32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let target = |entry: fs::DirEntry| Some(fs::read_link(entry.path()).ok()?.to_str()?.to_owned());
    entries.filter_map(target).collect()
}

#[test]
fn a_load_that_cannot_start_leaves_neither_process_nor_run() {
    let store = Store::new();
    // Tracing has files open too.
    let arguments =
        ["run", "timer", "--trace=off", "--load", "idle", "--load", "hackbench:groups=9,fds=200"];
    let said = finish(piped(&mut store.shell("ulimit -n 60", &arguments)));
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
    assert!(said.err.contains("hackbench") && said.err.contains("open files"), "{said:?}");
    assert_eq!(store.processes(), [0; 0]);
    assert!(contents(store.path()).is_empty(), "an empty run would only be in the way");
}

#[test]
fn standard_output_has_the_result_alone_and_quiet_is_quiet() {
    let store = Store::new();
    let arguments = ["--duration", "500ms", "--load", LIGHT_LOAD, "--quiet", "--json"];
    let said = store.run(&[&SHORT[..], &arguments].concat());
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    let record: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert!(!list(&record["series"]).is_empty());
    let text =
        store.run(&[&SHORT[..], &["--duration", "100ms", "--quiet", "--name", "r"]].concat());
    assert_eq!(text.err, "");
    let lines: Vec<&str> = text.out.lines().collect();
    assert_eq!(lines.len(), 2, "the verdict and the headline: {text:?}");
    assert!(lines[0].starts_with("r: ") && lines[1].contains("the worst was"), "{text:?}");
    // Caveats are part of a text result; beside JSON they go to standard error.
    let loud = store.run(&[&SHORT[..], &arguments[..4], &["--json"]].concat());
    let record: serde_json::Value = serde_json::from_str(&loud.out).unwrap();
    for caveat in list(&record["caveats"]) {
        assert!(loud.err.contains(caveat["code"].as_str().unwrap()), "{loud:?}");
    }
}

#[test]
fn an_interrupt_in_the_warm_up_ends_in_order() {
    let store = Store::new();
    let child = store.start(&[
        "run",
        "timer",
        "--warmup",
        "1h",
        "--duration",
        "1s",
        "--load",
        LIGHT_LOAD,
        "--name",
        "r",
    ]);
    eventually("the warm-up", || store.runs().join("r/series.hlog").exists());
    signal(&child, "INT");
    let said = finish(child);
    assert_eq!(store.processes(), [0; 0]);
    let record = store.show("r");
    assert_eq!(record["status"], "interrupted", "{said:?}");
    // Nothing was measured, which is more than an early end.
    assert_eq!((said.code, &record["validity"]), (Some(4), &"invalid".into()), "{said:?}");
}
