//! Every node by `deploy/kubernetes`, as its README.md says: its commands, with a kubectl that
//! stands in for a cluster. `root_pod` starts the container of a node.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    documents::commands,
    support::{Said, Store, finish, piped},
};

const README: &str = "deploy/kubernetes/README.md";

/// A cluster, and a copy of the sources from which its commands start.
struct Cluster(Store);

impl Cluster {
    fn new(nodes: u32) -> Self {
        let cluster = Self(Store::new());
        for directory in ["bin", "created", "running"] {
            fs::create_dir(cluster.place(directory)).unwrap();
        }
        let names = (1..=nodes).map(|number| format!("worker-{number}\n"));
        fs::write(cluster.place("nodes"), names.collect::<String>()).unwrap();
        fs::write(cluster.place("broken"), "").unwrap();
        let copy = Command::new("cp").args(["-r", "deploy"]).arg(cluster.place("")).status();
        assert!(copy.unwrap().success());
        for (name, script) in [
            ("kubectl", include_str!("kubectl.sh")),
            ("make", "#!/bin/sh\ntest \"$*\" = package\n"),
            ("docker", "#!/bin/sh\nset -e\ntest -e \"$3\"\ntest \"$6\" = target/packages\n"),
        ] {
            let program = cluster.place("bin").join(name);
            fs::write(&program, script).unwrap();
            fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        cluster
    }

    fn place(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.place(name)).unwrap()
    }

    /// Runs what the document has below this line.
    fn run(&self, heading: &str) -> Said {
        self.shell(&commands(README, heading))
    }

    fn shell(&self, script: &str) -> Said {
        let own = self.place("bin").display().to_string();
        let path = format!("{own}:{}", std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-ec", script]).current_dir(self.0.path());
        shell.env("PATH", path).env("CLUSTER", self.0.path()).env("POLL", "0.02");
        finish(piped(shell.env("AT_ONCE", "10")))
    }
}

#[test]
fn the_commands_measure_every_node_ten_at_a_time_and_collect() {
    let cluster = Cluster::new(23);
    for heading in ["## The image", "## Set up", "## Measure", "## Every night"] {
        let said = cluster.run(heading);
        assert_eq!(said.code, Some(0), "{heading}: {said:?}");
        if heading == "## Measure" {
            assert!(said.out.starts_with("complete worker-1\n1 of 1 nodes complete\n"), "{said:?}");
            assert!(said.out.contains("\n23 of 23 nodes complete\n"), "{said:?}");
        }
    }
    let at_once = cluster.read("at-once");
    let most = at_once.lines().map(|line| line.trim().parse::<u32>().unwrap()).max();
    assert_eq!(most, Some(10), "{at_once}");
    assert_eq!(fs::read_dir(cluster.place("created")).unwrap().count(), 23);
    for file in ["created/worker-7.yaml", "collect.yaml", "applied-nightly.yaml"] {
        let manifest = cluster.read(file);
        assert!(manifest.contains("image: YOUR-IMAGE\n"), "{file}: {manifest}");
        let marks = ["@NAME@", "@NODE@"];
        let is_left = |line: &str| marks.iter().any(|mark| line.contains(mark));
        assert!(!manifest.lines().any(|line| is_left(line) && !line.trim().starts_with('#')));
    }
    assert!(cluster.read("created/worker-7.yaml").contains("values: [\"worker-7\"]"));
    assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/kubernetes/Dockerfile").exists());
}

#[test]
fn a_node_whose_job_fails_is_named_and_the_others_complete() {
    let cluster = Cluster::new(12);
    fs::write(cluster.place("broken"), "worker-4\n").unwrap();
    let said = cluster.shell("cd deploy/kubernetes && sh on-nodes.sh night");
    assert_eq!(said.code, Some(1), "{said:?}");
    let missing = "missing worker-4: job.batch/tardy-worker-4: Failed DeadlineExceeded";
    assert!(said.out.contains(missing), "{said:?}");
    assert!(said.out.ends_with("11 of 12 nodes complete\n"), "{said:?}");
    let refused = cluster.shell("sh deploy/kubernetes/on-nodes.sh Night_1");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("lower-case letters"), "{refused:?}");
}
