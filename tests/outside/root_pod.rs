//! The container of `deploy/kubernetes/job.yaml`, as a runtime would start it: with the mounts, the
//! capabilities and the script of the manifest, and what an unprivileged container does not see.
//! Devices are missing instead of refused, and system calls are not filtered.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use super::support::{Said, Store, TARDY, finish, in_guest, is_root, list, piped, skip};

const JOB: &str = include_str!("../../deploy/kubernetes/job.yaml");
const SETUP: &str = include_str!("../../deploy/kubernetes/setup.yaml");
const COLLECT: &str = include_str!("../../deploy/kubernetes/collect.sh");
const POD: &str = include_str!("pod.sh");

const GROUPS: &str = "/sys/fs/cgroup";

/// Caveats that come from what a program may do and see. Others depend on what else runs.
pub(crate) const OF_THE_PLACE: [&str; 9] = [
    "no_real_time",
    "memory_not_locked",
    "dma_latency_not_held",
    "journal_unread",
    "held_by_other",
    "not_looked_at",
    "untraced",
    "traced_in_part",
    "symbols_hidden",
];

/// A container of the manifest.
struct Pod {
    store: Store,
    capabilities: Vec<String>,
    /// Paths in the pod, paths here, and whether they can be written.
    mounts: Vec<(String, PathBuf, bool)>,
}

/// The text between two marks, the first time that the first one occurs.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let (_, rest) = text.split_once(begin).unwrap_or_else(|| panic!("no {begin}"));
    rest.split_once(end).unwrap_or_else(|| panic!("no {end}")).0
}

impl Pod {
    /// Of the manifest; what it has of the node's own disk and of the cluster is in the store.
    fn new() -> Self {
        let store = Store::new();
        let capabilities = between(JOB, "add: [", "]").split(", ");
        let capabilities = capabilities.map(|name| name.trim_matches('"').to_lowercase()).collect();
        let volumes = JOB.split_once("\n      volumes:\n").unwrap().1;
        let mounts = between(JOB, "volumeMounts:\n", "# No cpu limit").lines();
        let mounts = mounts.filter(|line| line.trim_start().starts_with("- {name:"));
        let mounts = mounts.map(|line| {
            let name = between(line, "name: ", ",");
            let inside = line.split_once("mountPath: ").unwrap().1.split([',', '}']).next();
            let (_, volume) = volumes.split_once(&format!("- name: {name}\n")).unwrap();
            let volume = volume.split("- name: ").next().unwrap();
            let here = volume.contains("hostPath:").then(|| between(volume, "path: ", ","));
            let kernels = here.filter(|path| path.starts_with("/proc") || path.starts_with("/sys"));
            let here = kernels.map_or_else(|| store.path().join(name), PathBuf::from);
            if kernels.is_none() {
                fs::create_dir_all(&here).unwrap();
            }
            (inside.unwrap().to_owned(), here, !line.contains("readOnly: true"))
        });
        let mounts: Vec<_> = mounts.collect();
        assert!(mounts.len() > 8, "{mounts:?}");
        Self { mounts, capabilities, store }
    }

    fn without(mut self, inside: &str) -> Self {
        let before = self.mounts.len();
        self.mounts.retain(|(path, ..)| path != inside);
        assert_eq!(self.mounts.len() + 1, before, "no {inside}");
        self
    }

    fn file(&self, inside: &str) -> &Path {
        &self.mounts.iter().find(|(path, ..)| path == inside).unwrap().1
    }

    /// Where groups are of version 2, the pod has one below another.
    fn group(&self) -> Option<PathBuf> {
        let name = self.store.path().file_name().unwrap().to_string_lossy().replace('.', "");
        in_guest().then(|| Path::new(GROUPS).join(format!("pods-{name}")))
    }

    fn run(&self, command: &[&str]) -> Said {
        let enter = self.group().map_or_else(String::new, |group| {
            let group = group.display();
            format!(
                "set -e; echo +cpu >{GROUPS}/cgroup.subtree_control; mkdir -p {group}; \
                 echo +cpu >{group}/cgroup.subtree_control; mkdir -p {group}/one; \
                 echo $$ >{group}/one/cgroup.procs; "
            )
        });
        let unshare =
            "exec unshare --mount --propagation private --cgroup --ipc sh -c \"$0\" \"$@\"";
        let mut within = Command::new("sh");
        within.args(["-c", &format!("{enter}{unshare}"), POD, "pod.sh", TARDY]);
        within.arg(self.store.path()).args(command);
        let mounts = self.mounts.iter().map(|(inside, here, is_written)| {
            format!("{inside} {} {}\n", here.display(), if *is_written { "rw" } else { "ro" })
        });
        let capabilities = self.capabilities.iter().map(|name| format!(",+{name}"));
        within.env("MOUNTS", mounts.collect::<String>());
        within.env("CAPABILITIES", format!("-all{}", capabilities.collect::<String>()));
        within.env("ENVIRONMENT", "NAME=night NODE=node-1 TARDY_STORE=/runs");
        finish(piped(&mut within))
    }

    /// What weakens a short run in it, of what a pod may do and see.
    fn doubts(&self, more: &[&str]) -> Vec<Value> {
        let run = ["tardy", "run", "timer", "--no-dma-latency", "--duration", "300ms"];
        let said = self.run(&[&run[..], &["--quiet", "--name", "r"], more].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        let run = self.file("/runs").join("r");
        let found = doubts(&run);
        fs::remove_dir_all(run).unwrap();
        found
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        if let Some(group) = self.group() {
            let _ = fs::remove_dir(group.join("one"));
            let _ = fs::remove_dir(group);
        }
    }
}

fn doubts(run: &Path) -> Vec<Value> {
    let record = fs::read(run.join("run.json")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    let is_doubt = |caveat: &&Value| {
        caveat["effect"] != "informs" && OF_THE_PLACE.contains(&caveat["code"].as_str().unwrap())
    };
    list(&record["caveats"]).iter().filter(is_doubt).cloned().collect()
}

/// Whether no pod can be made here; says so.
fn is_impossible() -> bool {
    let is_impossible = !is_root() || tardy::kernel::can_trace().is_err();
    if is_impossible {
        skip("a pod takes root, and a kernel with BTF");
    }
    is_impossible
}

#[test]
fn the_job_of_a_node_measures_validly_hands_its_archive_over_and_continues() {
    if is_impossible() {
        return;
    }
    let pod = Pod::new();
    let plan = between(SETUP, "plan.toml: |\n", "---").replace("60s", "200ms");
    let plan = plan.replace("repeat = 3", "repeat = 1").replace("\n    ", "\n");
    fs::write(pod.file("/plan").join("plan.toml"), plan.trim_start()).unwrap();
    let script = between(JOB, "            - |\n", "\n          env:").replace("\n  ", "\n");
    let said = pod.run(&["sh", "-c", &script]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let cell = pod.file("/runs").join("night/cells/0001");
    assert_eq!(doubts(&cell), [] as [Value; 0]);
    let archive = pod.file("/results").join("night/node-1.tar.gz");
    let packed = fs::metadata(&archive).unwrap().len();
    assert!(packed > 1_000, "{packed}");
    // The Job that collects makes rows of it.
    let mut collector = Pod { store: Store::new(), capabilities: Vec::new(), mounts: Vec::new() };
    let at = |name: &str| {
        let directory = collector.store.path().join(name);
        fs::create_dir(&directory).unwrap();
        directory
    };
    let (job, work) = (at("job"), at("work"));
    fs::write(job.join("collect.sh"), COLLECT).unwrap();
    let results = pod.file("/results").to_owned();
    collector.mounts = [("/job", job), ("/fleet", work), ("/results", results)]
        .map(|(inside, here)| (inside.to_owned(), here, inside != "/job"))
        .into();
    let said = collector.run(&["/bin/sh", "/job/collect.sh"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(said.out, "nodes in /results/night/fleet.parquet: 1\n");
    // A Job of the same name measures nothing twice, and hands over again.
    fs::remove_file(&archive).unwrap();
    let said = pod.run(&["sh", "-c", &script]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(archive.exists());
    assert!(!pod.file("/runs").join("night/cells/0002").exists());
}

#[test]
fn a_pod_that_lacks_one_thing_says_which() {
    if is_impossible() {
        return;
    }
    let code = |found: &[Value]| {
        assert_eq!(found.len(), 1, "{found:?}");
        found[0]["code"].as_str().unwrap().to_owned()
    };
    let hidden = |inside: &str, more: &[&str]| {
        let found = Pod::new().without(inside).doubts(more);
        assert_eq!(code(&found), "not_looked_at");
        let sources = list(&found[0]["values"]["sources"]);
        assert_eq!(sources.len(), 1, "{sources:?}");
        sources[0]["source"].as_str().unwrap().to_owned()
    };
    assert_eq!(hidden("/host/proc/interrupts", &[]), "/proc/interrupts");
    if in_guest() {
        assert_eq!(hidden("/host/sys/fs/cgroup", &["--policy", "other"]), "/sys/fs/cgroup");
    }
    let mut pod = Pod::new();
    let journal = pod.file("/run/tardy").to_owned();
    let set = |mode| fs::set_permissions(&journal, fs::Permissions::from_mode(mode)).unwrap();
    // As an emptyDir is.
    set(0o777);
    assert_eq!(code(&pod.doubts(&[])), "journal_unread");
    set(0o755);
    pod.capabilities.retain(|name| name != "sys_nice");
    assert_eq!(code(&pod.doubts(&[])), "no_real_time");
}
