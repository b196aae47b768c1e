//! `tardy hwlatdetect`: the kernel's tracer of hardware latency, and everything as it was after it.

use std::process::Command;

use super::{
    super::support::{eventually, finish, signal},
    INSTANCES, MOUNT, Machine, has_instance,
};

/// What `script` prints where tracefs is mounted.
fn printed(script: &str) -> String {
    let script = format!("{MOUNT}; cd {INSTANCES}/.. && {script}");
    let said = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output().unwrap();
    assert!(said.status.success(), "{said:?}");
    String::from_utf8(said.stdout).unwrap()
}

/// Threshold, window and width.
fn settings() -> Vec<String> {
    let text = printed("cat tracing_thresh hwlat_detector/window hwlat_detector/width");
    text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn hwlatdetect_restores_everything_and_without_the_tracer_names_another_way() {
    let Some(machine) = Machine::new() else { return };
    let is_there = printed("cat available_tracers").split_whitespace().any(|own| own == "hwlat");
    if !is_there {
        let said = machine.shell("", &["hwlatdetect", "--duration", "1"]);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
        assert!(said.err.contains("no hwlat tracer"), "{said:?}");
        assert!(said.err.contains("`tardy run noise`"), "{said:?}");
        return;
    }
    let before = settings();
    let asked = ["--threshold", "7", "--window", "40ms", "--width", "10ms"];

    let said = machine.shell("", &[&["hwlatdetect", "--duration", "1"][..], &asked].concat());
    let is_over = !said.out.contains("Max Latency: Below threshold\n");
    assert_eq!(said.code, Some(i32::from(is_over)), "{said:?}");
    for line in [
        "hwlatdetect:  test duration 1 seconds\n",
        "        Latency threshold: 7us\n",
        "        Sample window:      40000us\n",
        "        Sample width:      10000us\n",
        "\nStarting test\ntest finished\n",
        "\nSamples recorded: ",
        "\nSamples exceeding threshold: ",
    ] {
        assert!(said.out.contains(line), "{line:?}: {said:?}");
    }
    assert_eq!(said.out.contains("\nts: "), is_over, "{said:?}");
    assert_eq!(settings(), before);

    let child = machine.start(&[&["hwlatdetect", "--duration", "1h"][..], &asked].concat());
    let pid = child.id();
    eventually("the settings are changed", || settings() == ["7", "40000", "10000"]);
    assert!(has_instance(pid));
    signal(&child, "KILL");
    finish(child);
    assert!(has_instance(pid), "it is the kernel's by now");
    let said = machine.shell("", &["restore"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains(&format!("/instances/tardy-{pid}")), "{said:?}");
    assert!(!has_instance(pid));
    assert_eq!(settings(), before);
}
