//! The units of `deploy/systemd`, under systemd in a guest: installed by the commands of the
//! document, started, and compared with a service without protections.

use std::{fs, path::Path, process::Command};

use serde_json::Value;

use super::{
    documents::{commands_of, text_of},
    root_pod::OF_THE_PLACE,
    support::{TARDY, finish, in_guest, list, piped, skip},
};

const SERVICE: &str = include_str!("../../deploy/systemd/tardy-nightly.service");
const TIMER: &str = include_str!("../../deploy/systemd/tardy-nightly.timer");
const PROMETHEUS: &str = include_str!("../../deploy/systemd/prometheus.conf");
const FLEET: &str = include_str!("../../docs/how-to/fleet.md");

const UNITS: &str = "/etc/systemd/system";

/// The first process of new namespaces, which ends with its one service.
const BOOT: &str = "mkdir -p /sys/fs/cgroup/init && echo $$ >/sys/fs/cgroup/init/cgroup.procs
exec unshare --cgroup --mount --propagation private --pid --fork --kill-child --mount-proc sh -c '
umount /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup
container=test exec /usr/lib/systemd/systemd --unit=test.target --log-target=console'";

fn write(path: &str, text: &str) {
    fs::create_dir_all(Path::new(path).parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A short measurement in place of the suite.
fn short(name: &str) -> String {
    let run = "/usr/bin/tardy run timer --interval 10ms --duration 500ms --quiet";
    format!("[Service]\nExecStart=\nExecStart={run} --name {name}\n")
}

/// What of a run depends on what a service may do and see. In this PID namespace none is traced;
/// `root_pod` traces with the same capabilities, and with `/sys` as hidden.
fn doubts(name: &str) -> Vec<String> {
    let record = fs::read(format!("/var/lib/tardy/runs/{name}/run.json")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    let codes = list(&record["caveats"]).iter().map(|caveat| caveat["code"].as_str().unwrap());
    let is_of_place = |code: &&str| *code != "untraced" && OF_THE_PLACE.contains(code);
    codes.filter(is_of_place).map(str::to_owned).collect()
}

#[test]
fn the_nightly_service_sees_as_much_as_one_without_protections() {
    if !in_guest() || !Path::new("/usr/lib/systemd/systemd").exists() {
        return skip("only in a guest of cargo xtask vm, with systemd");
    }
    for target in ["sysinit", "basic", "shutdown", "timers"] {
        let unit = format!("[Unit]\nDescription={target}\nDefaultDependencies=no\n");
        write(&format!("{UNITS}/{target}.target"), &unit);
    }
    write(&format!("{UNITS}/test.target"), "[Unit]\nDescription=test\nWants=test.service\n");
    let unit = "[Unit]\nDescription=test\nSuccessAction=exit-force\nFailureAction=exit-force\n\
                [Service]\nType=oneshot\nExecStart=/bin/sh -ex /run/test.sh\n\
                StandardOutput=file:/run/test.out\nStandardError=inherit\n";
    write(&format!("{UNITS}/test.service"), unit);
    for (name, text) in [
        ("tardy-nightly.service", SERVICE),
        ("tardy-nightly.timer", TIMER),
        ("prometheus.conf", PROMETHEUS),
    ] {
        write(&format!("/run/source/deploy/systemd/{name}"), text);
    }
    let protections = SERVICE.find("NoNewPrivileges").unwrap();
    write(&format!("{UNITS}/plain.service"), &SERVICE[..protections]);
    write(&format!("{UNITS}/plain.service.d/short.conf"), &short("plain"));
    write("/run/short.conf", &short("night"));
    fs::create_dir_all("/var/lib/node_exporter").unwrap();
    // The guest has a link there, to where its service may not look.
    let _ = fs::remove_file("/usr/bin/tardy");
    fs::copy(TARDY, "/usr/bin/tardy").unwrap();
    let one = text_of(FLEET, "## One machine");
    let script = format!(
        "cd /run/source\n{}{}\
         cp /run/short.conf {UNITS}/tardy-nightly.service.d/\n\
         systemctl daemon-reload\n\
         systemctl is-enabled tardy-nightly.timer\n\
         systemctl is-active tardy-nightly.timer\n\
         systemctl start plain.service\n\
         systemctl start tardy-nightly.service\n",
        commands_of(one, 0),
        commands_of(one, 1),
    );
    write("/run/test.sh", &script);
    let said = finish(piped(Command::new("sh").args(["-c", BOOT])));
    let out = fs::read_to_string("/run/test.out").unwrap_or_default();
    assert!(out.contains("enabled\n") && out.contains("active\n"), "{out}\n{said:?}");
    assert!(Path::new("/var/lib/tardy/runs/night").exists(), "{out}\n{said:?}");
    assert_eq!((doubts("plain"), doubts("night")), (Vec::new(), Vec::new()));
    let metrics = fs::read_to_string("/var/lib/node_exporter/tardy.prom");
    assert!(metrics.as_ref().is_ok_and(|text| text.contains("tardy_")), "{out}\n{said:?}");
}
