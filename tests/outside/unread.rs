//! A terminal that nobody reads.

use std::{
    fs::{File, OpenOptions},
    io::Write as _,
    os::{fd::OwnedFd, unix::fs::OpenOptionsExt as _},
    path::Path,
    process::Stdio,
};

use rustix::{
    fs::OFlags,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};

use super::support::{Store, eventually};

/// A terminal that has no room any more, with its other end.
fn full_terminal() -> (OwnedFd, File) {
    let other = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&other).unwrap();
    unlockpt(&other).unwrap();
    let path = ptsname(&other, Vec::new()).unwrap();
    let path = Path::new(path.to_str().unwrap());
    let flags = OFlags::NOCTTY.bits().cast_signed();
    let open = |more: OFlags| {
        let more = more.bits().cast_signed();
        OpenOptions::new().write(true).custom_flags(flags | more).open(path).unwrap()
    };
    let mut filler = open(OFlags::NONBLOCK);
    while filler.write(&[b'x'; 64]).is_ok() {}
    (other, open(OFlags::empty()))
}

#[test]
fn a_run_ends_whole_though_nobody_reads_its_terminal() {
    let store = Store::new();
    let (_other, terminal) = full_terminal();
    let mut command = store.tardy(&["run", "timer", "--duration", "1s", "--name", "r"]);
    command.args(["--trace", "off", "--load", "burn"]).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.stderr(terminal).spawn().unwrap();
    let is_whole = || {
        let said = store.run(&["show", "r", "--json"]);
        let record: Option<serde_json::Value> = serde_json::from_str(&said.out).ok();
        record.is_some_and(|record| record["status"] == "complete")
    };
    eventually("the run is whole", is_whole);
    // What it has to say at the end waits for the terminal; that does not concern the run.
    child.kill().unwrap();
    child.wait().unwrap();
}
