//! `tardy lab kernels` in trouble: a full disk, kill -9, no apt, several at once. The package is
//! made here, with a kernel that has the header of one and would not boot.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde_json::Value;

use super::{
    full_disk::can_mount,
    support::{Said, Store, eventually, finish, list, pause, piped, signal},
};

const RELEASE: &str = "1.2-x";

/// MiB that the package has in it.
const SIZE_MIB: usize = 6;

/// The smallest file that passes for a bzImage: marks, protocol and a payload of unknown packing.
fn kernel() -> Vec<u8> {
    let mut bytes = vec![0x11; 4096];
    bytes[..2048].fill(0);
    bytes[0x1f1] = 3;
    bytes[0x1fe..0x208].copy_from_slice(b"\x55\xaa\0\0HdrS\x0f\x02");
    bytes[0x24d] = 4;
    bytes
}

/// Makes a package in the store's directory that says it takes `says_kib` unpacked.
fn package(store: &Store, says_kib: usize) -> PathBuf {
    let root = store.path().join("made");
    let modules = root.join("lib/modules").join(RELEASE).join("kernel");
    for directory in [&root.join("DEBIAN"), &root.join("boot"), &modules] {
        fs::create_dir_all(directory).unwrap();
    }
    let control = format!(
        "Package: linux-image-{RELEASE}\nVersion: 1\nArchitecture: all\nDescription: a test\n\
         Installed-Size: {says_kib}\nMaintainer: nobody <nobody@localhost>\n"
    );
    fs::write(root.join("DEBIAN/control"), control).unwrap();
    fs::write(root.join("boot").join(format!("vmlinuz-{RELEASE}")), kernel()).unwrap();
    for number in 0..SIZE_MIB {
        fs::write(modules.join(format!("{number}.bin")), vec![7; 1 << 20]).unwrap();
    }
    let deb = store.path().join("linux-image-1.2-x.deb");
    let mut command = Command::new("dpkg-deb");
    let made = command.args(["--build", "-Znone"]).arg(&root).arg(&deb).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    deb
}

/// With an apt that offers nothing: the real one takes a second of CPU for each list.
fn kernels(store: &Store, arguments: &[&str]) -> Command {
    let programs = store.path().join("programs");
    if !programs.exists() {
        fs::create_dir(&programs).unwrap();
        std::os::unix::fs::symlink("/bin/true", programs.join("apt-cache")).unwrap();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = [programs].into_iter().chain(std::env::split_paths(&path));
    let mut command = store.tardy(&[&["lab", "kernels"], arguments].concat());
    command.env("XDG_CACHE_HOME", store.path().join("cache"));
    command.env("PATH", std::env::join_paths(path).unwrap());
    command
}

fn said(store: &Store, arguments: &[&str]) -> Said {
    finish(piped(&mut kernels(store, arguments)))
}

fn listed(store: &Store) -> Value {
    let said = said(store, &["--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    serde_json::from_str(&said.out).unwrap()
}

/// Directories in the cache.
fn directories(cache: &Path) -> Vec<String> {
    let entries = fs::read_dir(cache.join("tardy/lab/kernels")).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.path().is_dir());
    directories.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

#[test]
fn a_fetch_that_is_killed_leaves_nothing_half_and_the_next_one_succeeds() {
    let store = Store::new();
    let deb = package(&store, SIZE_MIB << 10);
    let fetch = ["--fetch", deb.to_str().unwrap()];
    for delay_ms in [5, 20, 40, 80, 160] {
        let mut child = piped(&mut kernels(&store, &fetch));
        pause(Duration::from_millis(delay_ms));
        signal(&child, "KILL");
        child.wait().unwrap();
        eventually("what it had started ends too", || store.processes().is_empty());
        // Whatever has got its name is whole.
        for cached in list(&listed(&store)["kernels"]) {
            assert_eq!(cached["is_whole"], true, "after {delay_ms} ms: {cached}");
        }
    }
    let done = said(&store, &fetch);
    assert_eq!(done.code, Some(0), "{done:?}");
    let left = directories(&store.path().join("cache"));
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(listed(&store)["kernels"][0]["release"], RELEASE);
}

#[test]
fn several_that_fetch_the_same_find_one_whole_kernel() {
    let store = Store::new();
    let deb = package(&store, SIZE_MIB << 10);
    let fetch = ["--fetch", deb.to_str().unwrap(), "--json"];
    let children: Vec<_> = (0..4).map(|_| piped(&mut kernels(&store, &fetch))).collect();
    for child in children {
        let said = finish(child);
        assert_eq!(said.code, Some(0), "{said:?}");
        let document: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(list(&document["kernels"]).len(), 1, "{document}");
        assert_eq!(document["kernels"][0]["is_whole"], true);
        assert!(said.err.contains("no_direct_boot"), "what it lacks is named: {}", said.err);
    }
}

#[test]
fn a_disk_without_room_is_reported_before_or_meanwhile_and_stays_clean() {
    let store = Store::new();
    if !can_mount(&store) {
        return;
    }
    let needs = format!("needs {SIZE_MIB} MiB");
    for (says_kib, part) in [(SIZE_MIB << 10, needs.as_str()), (0, "No space left")] {
        let store = Store::new();
        let deb = package(&store, says_kib);
        fs::create_dir(store.path().join("disk")).unwrap();
        let script = "mount -t tmpfs -o size=3m tmpfs disk || exit 99
                      XDG_CACHE_HOME=$PWD/disk \"$0\" lab kernels --fetch \"$1\"
                      code=$?
                      ls disk/tardy/lab/kernels >left
                      exit $code";
        let tardy = store.tardy(&[""; 0]);
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script]).arg(tardy.get_program()).arg(&deb);
        let said = finish(piped(command.current_dir(store.path())));
        assert_eq!(said.code, Some(2), "{said:?}");
        let place = format!("{}/disk/tardy/lab/kernels", store.path().display());
        assert!(said.err.contains(part) && said.err.contains(&place), "{}", said.err);
        assert!(said.err.contains("MiB free") || said.err.contains("MiB are free"), "{}", said.err);
        assert_eq!(fs::read_to_string(store.path().join("left")).unwrap(), "lock\n");
    }
}

#[test]
fn without_apt_what_is_here_is_listed_and_a_fetch_names_the_way_out() {
    let store = Store::new();
    let nothing = store.path().join("nothing");
    let mut command = kernels(&store, &[]);
    let listed = finish(piped(command.env("PATH", &nothing)));
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(
        listed.out.contains("No kernels in ") && listed.err.contains("apt-cache"),
        "{listed:?}"
    );
    let mut command = kernels(&store, &["--fetch", "standard"]);
    let said = finish(piped(command.env("PATH", &nothing)));
    assert_eq!(said.code, Some(2), "{said:?}");
    for part in ["kernel standard", "no apt-cache here", "/path/to/bzImage"] {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
}

#[test]
fn a_name_that_is_none_is_refused_before_anything_is_fetched() {
    let store = Store::new();
    for (name, part) in [
        ("linux-headers-amd64", "neither standard nor rt"),
        ("standard+panic=1", "panic is what the lab itself"),
        ("/nowhere/bzImage", "/nowhere/bzImage"),
        ("./story", "not a bzImage: the file is text"),
    ] {
        fs::write(store.path().join("story"), "once upon a time\n").unwrap();
        let said = said(&store, &["--fetch", name]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains(part) && said.err.contains(name), "{}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    }
    assert_eq!(directories(&store.path().join("cache")), [""; 0]);
}
