//! The units of `deploy/systemd`, as systemd-analyze reads them. `root_systemd` starts them.

use std::{path::Path, process::Command};

use super::support::{finish, piped, skip};

#[test]
fn the_units_are_valid_and_expose_little() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return skip("no systemd-analyze");
    }
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/systemd");
    let analyze = |words: &[&str]| {
        let mut command = Command::new("systemd-analyze");
        finish(piped(command.args(words).current_dir(&directory)))
    };
    let verified =
        analyze(&["--man=no", "verify", "./tardy-nightly.service", "./tardy-nightly.timer"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert!(!verified.err.contains("tardy-nightly.service:"), "{verified:?}");
    // Tenths of its exposure, from 0 to 100.
    let offline = ["security", "--offline=yes", "--threshold=48", "./tardy-nightly.service"];
    let exposed = analyze(&offline);
    assert_eq!(exposed.code, Some(0), "{exposed:?}");
}
