//! Many machines by `deploy/ansible`, with local connections, as docs/how-to/fleet.md says.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use super::{
    documents::commands,
    foreign_readers::python,
    support::{Said, Store, TARDY, finish, finish_within, is_root, patience, piped, skip},
};

/// A copy of what the documents speak of, with a short plan.
struct Fleet {
    store: Store,
    /// Lines of the inventory.
    machines: Vec<String>,
}

impl Fleet {
    fn new() -> Self {
        let fleet = Self { store: Store::new(), machines: Vec::new() };
        for part in ["deploy", "examples"] {
            let from = Path::new(env!("CARGO_MANIFEST_DIR")).join(part);
            let copied = Command::new("cp").arg("-r").arg(from).arg(fleet.place("")).status();
            assert!(copied.unwrap().success());
        }
        let example = fleet.place("examples/fifo-other.toml");
        let plan = fs::read_to_string(&example).unwrap().replace("60s", "100ms");
        fs::write(example, plan.replace("pause = \"2s\"", "").replace("repeat = 3", "")).unwrap();
        fleet
    }

    fn place(&self, name: &str) -> PathBuf {
        self.store.path().join(name)
    }

    fn machine(&mut self, name: &str, more: &str) {
        let runs = self.place(&format!("{name}/runs"));
        let own = format!("tardy_program={TARDY} tardy_store={}", runs.display());
        self.machines.push(format!("{name} {own} {more}"));
    }

    /// Does what the document says, with this inventory.
    fn measure(&self) -> Said {
        self.measure_within(None)
    }

    /// Unpacks and exports as the document says; the rows.
    fn export(&self) -> PathBuf {
        let lines = "Unpack the archives into a directory for each machine, and export all of them \
                     together:";
        let script = commands("docs/how-to/fleet.md", lines);
        let bin = self.place("bin");
        fs::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink(TARDY, bin.join("tardy")).unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-ec", &script]).current_dir(self.place("deploy/ansible")).env("PATH", path);
        let said = finish(piped(&mut shell));
        assert_eq!(said.code, Some(0), "{said:?}");
        self.collected("fleet.parquet")
    }

    /// The same after these commands in a mount namespace, which get an empty directory.
    fn measure_within(&self, before: Option<&str>) -> Said {
        let vars = "[all:vars]\nansible_connection=local\nansible_python_interpreter=python3\n";
        let inventory = format!("{vars}[all]\n{}\n", self.machines.join("\n"));
        fs::write(self.place("deploy/ansible/inventory"), inventory).unwrap();
        // The tools of the Python that tests use come first; local connections need no sudo.
        let python = PathBuf::from(python().get_program());
        let tools = python.parent().unwrap().display().to_string();
        let path = format!("{tools}:{}", std::env::var("PATH").unwrap());
        let script = commands("docs/how-to/fleet.md", "## Many machines");
        let namespace = ["unshare", "--mount", "--propagation", "private", "sh", "-ec"];
        let words = if before.is_some() { &namespace[..] } else { &namespace[4..] };
        let script = format!("{}\n{script}", before.unwrap_or_default());
        let memory = self.place("memory");
        fs::create_dir_all(&memory).unwrap();
        let mut shell = Command::new(words[0]);
        shell
            .args(&words[1..])
            .arg(script)
            .arg("sh")
            .arg(memory)
            .current_dir(self.store.path())
            .env("PATH", path);
        shell.env("ANSIBLE_LOCALHOST_WARNING", "False").env("ANSIBLE_FORKS", "2");
        finish_within(piped(&mut shell), patience() * 4)
    }

    fn collected(&self, name: &str) -> PathBuf {
        self.place("deploy/ansible/collected/night-1").join(name)
    }

    fn report(&self, machine: &str) -> Value {
        let text = fs::read(self.collected(&format!("{machine}.json"))).unwrap();
        serde_json::from_slice(&text).unwrap()
    }
}

fn has_ansible() -> bool {
    let words = ["-c", "import ansible"];
    let there = python().args(words).output().is_ok_and(|output| output.status.success());
    if !there || !is_root() {
        skip("it takes root, and ansible-core of tests/python/requirements.txt");
    }
    there && is_root()
}

#[test]
#[ignore = "long: Ansible takes half a minute"]
fn each_machine_reports_or_says_what_failed_and_nothing_goes_on_measuring() {
    if !has_ansible() {
        return;
    }
    let mut fleet = Fleet::new();
    fleet.machine("good", "");
    let slow = fleet.place("slow.toml");
    fs::write(&slow, "name = \"slow\"\n[run]\nduration = \"1h\"\n[[load]]\nname = \"idle\"\n")
        .unwrap();
    fleet.machine("slow", &format!("tardy_timeout=3 tardy_plan={}", slow.display()));
    let wrong = fleet.place("wrong.toml");
    fs::write(&wrong, "nonsense = 1\n").unwrap();
    fleet.machine("wrong", &format!("tardy_plan={}", wrong.display()));
    fleet.machine("bare", "tardy_program=/nowhere/tardy");
    fleet.machine("far", "ansible_connection=ssh ansible_host=127.0.0.1 ansible_port=9");
    let said = fleet.measure();
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.out.contains("1 of 5 machines reported; missing: slow, wrong, bare, far"));
    assert_eq!(
        fs::read_to_string(fleet.collected("silent.txt")).unwrap(),
        "slow\nwrong\nbare\nfar\n"
    );

    assert_eq!(fleet.report("good")["reported"], true);
    assert!(fleet.collected("good.tar.gz").exists());
    let failed = |machine: &str| fleet.report(machine)["failed"].as_str().unwrap().to_owned();
    assert!(failed("slow").contains("did not end within 3 s"), "{}", failed("slow"));
    assert!(failed("wrong").contains("exit code 2"), "{}", failed("wrong"));
    let errors = fleet.report("wrong")["stderr"].as_str().unwrap().to_owned();
    assert!(errors.contains("nonsense"), "{errors}");
    assert!(failed("bare").contains("/nowhere/tardy is missing on bare"), "{}", failed("bare"));
    assert!(failed("far").starts_with("Reach the machine: "), "{}", failed("far"));
    // What was ended has ended, properly.
    let record = fs::read(fleet.place("slow/runs/night-1/plan.json")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    assert_eq!(record["status"], "interrupted", "{record}");
    assert_eq!(fleet.measuring(), [""; 0]);

    // Without those the same name measures nothing twice, and the play succeeds.
    fleet.machines.truncate(1);
    let plan = fs::read(fleet.place("good/runs/night-1/plan.json")).unwrap();
    let said = fleet.measure();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("1 of 1 machines reported"), "{said:?}");
    assert_eq!(fs::read(fleet.place("good/runs/night-1/plan.json")).unwrap(), plan);
    assert!(fs::metadata(fleet.export()).unwrap().len() > 1_000);
}

impl Fleet {
    /// Command lines of processes that measure into the stores of its machines.
    fn measuring(&self) -> Vec<String> {
        let place = self.store.path().to_str().unwrap().to_owned();
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
        let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
        lines.filter(|line| line.contains(&place) && line.contains("plan")).collect()
    }
}

/// File systems over those of this machine, whose changes lie in memory: what is installed goes
/// with the namespace.
const OVERLAYS: &str = "mount -t tmpfs none \"$1\"
for place in etc opt usr var; do
    mkdir \"$1/$place\" \"$1/$place.work\"
    lower=lowerdir=/$place,upperdir=$1/$place,workdir=$1/$place.work
    mount -t overlay -o \"$lower\" overlay \"/$place\"
done
shift";

#[test]
#[ignore = "long: Ansible takes half a minute"]
fn a_machine_without_tardy_gets_the_package() {
    if !has_ansible() {
        return;
    }
    let mut fleet = Fleet::new();
    let package = fleet.place("package");
    fs::create_dir_all(package.join("DEBIAN")).unwrap();
    fs::create_dir_all(package.join("opt/tardy-test")).unwrap();
    let control = "Package: tardy-test\nVersion: 1\nArchitecture: all\n\
                   Maintainer: t <t@localhost>\nDescription: a test\n";
    fs::write(package.join("DEBIAN/control"), control).unwrap();
    let program = package.join("opt/tardy-test/tardy");
    fs::write(&program, format!("#!/bin/sh\nexec {TARDY} \"$@\"\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "--build"]).arg(&package).arg(fleet.place("tardy.deb"));
    let built = finish(piped(&mut build));
    assert_eq!(built.code, Some(0), "{built:?}");
    let package = fleet.place("tardy.deb");
    let program = "tardy_program=/opt/tardy-test/tardy";
    fleet.machine("new", &format!("{program} tardy_package={}", package.display()));
    let said = fleet.measure_within(Some(OVERLAYS));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("1 of 1 machines reported"), "{said:?}");
    assert!(!Path::new("/opt/tardy-test").exists(), "it was installed on this machine");
}
