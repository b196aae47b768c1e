//! CPUs that the scheduler gives to no other task: two backends, by where the controller cpuset is.
//!
//! Version 2 of cgroups (kernel 6.1 and later): a child of the root cgroup that is an isolated
//! partition. It takes whole processes, so that tardy's helper threads are in it too, below the
//! measured ones. Version 1: two exclusive cpusets, `tardy-shield` without load balancing and
//! `tardy-housekeeping` for everything else, and no balancing across both; threads go one by one.

use std::{fs, io};

use crate::{
    setup::{
        SetupError,
        journal::{Change, HOUSEKEEPING, Journal, SHIELD},
        threads::plain,
    },
    sys::{cpus::Cpus, kernel_config::release, root::Root, tasks},
    units,
};

/// The first kernel whose cgroup v2 has isolated partitions (kernel/cgroup/cpuset.c).
const ISOLATES: (u32, u32) = (6, 1);
const TOO_OLD: &str = "cgroup v2 of this kernel has no isolated partitions; 6.1 and later have";

/// Where the controller cpuset sits: the mount point of its hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backend {
    /// cgroup v1.
    V1(String),
    /// cgroup v2.
    V2(String),
}

impl Backend {
    /// Looks for it.
    ///
    /// # Errors
    /// The reason why it was not found.
    pub fn find(root: &Root) -> Result<Self, String> {
        let mounts = root.read("/proc/mounts").unwrap_or_default();
        let mut seen_v2 = false;
        for line in mounts.lines() {
            let mut fields = line.split(' ');
            let (Some(_), Some(place), Some(kind), Some(options)) =
                (fields.next(), fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            let has = |text: &str, word: &str| text.split([',', ' ', '\n']).any(|w| w == word);
            match kind {
                "cgroup" if has(options, "cpuset") => return Ok(Self::V1(place.into())),
                "cgroup2" => {
                    seen_v2 = true;
                    let controllers = root.read(format!("{place}/cgroup.controllers"));
                    if has(&controllers.unwrap_or_default(), "cpuset") {
                        let is_old = release(root).is_some_and(|release| release < ISOLATES);
                        return if is_old {
                            Err(TOO_OLD.into())
                        } else {
                            Ok(Self::V2(place.into()))
                        };
                    }
                }
                _ => {}
            }
        }
        let why = if seen_v2 {
            "the controller cpuset is neither in cgroup v2 nor mounted as v1 (a container without \
             it, or a kernel without CONFIG_CPUSETS)"
        } else {
            "no cgroup hierarchy with the controller cpuset is mounted"
        };
        Err(why.into())
    }

    /// As in `run.json`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::V1(_) => "cpuset v1",
            Self::V2(_) => "cgroup v2",
        }
    }

    fn mount(&self) -> &str {
        match self {
            Self::V1(mount) | Self::V2(mount) => mount,
        }
    }
}

/// The cgroup of shielded CPUs.
#[derive(Debug)]
pub struct Group {
    root: Root,
    backend: Backend,
    /// Tasks of the kernel that stay where they were.
    pub kernel_tasks: usize,
}

/// Reads and writes below one hierarchy.
struct Files<'a> {
    root: &'a Root,
    mount: &'a str,
}

impl Files<'_> {
    fn path(&self, path: &str) -> String {
        format!("{}/{path}", self.mount)
    }

    fn write(&self, path: &str, value: &str) -> Result<(), SetupError> {
        let place = self.path(path);
        let refused = |error: io::Error| shield_error(format!("{place}: {}", plain(&error)));
        fs::write(self.root.path(&place), value).map_err(refused)
    }

    fn make(&self, path: &str) -> Result<(), SetupError> {
        let place = self.path(path);
        match fs::create_dir(self.root.path(&place)) {
            // Left by a tardy whose journal was removed: this one will remove it.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(shield_error(format!("cannot make {place}: {}", plain(&error))))
            }
            _ => Ok(()),
        }
    }
}

fn shield_error(why: String) -> SetupError {
    SetupError::Shield { why }
}

impl Group {
    /// Makes it: `shielded` for those who enter, `rest` for all others.
    ///
    /// # Errors
    /// The journal cannot be written, or the kernel refuses; what was done is in the journal.
    pub fn make(
        journal: &mut Journal,
        root: &Root,
        backend: Backend,
        shielded: &Cpus,
        rest: &Cpus,
    ) -> Result<Self, SetupError> {
        // Before anything moves: the kernel may forget it at the first move.
        journal.note(vec![Change::of_affinities(root)])?;
        let files = Files { root, mount: backend.mount() };
        let kernel_tasks = match &backend {
            Backend::V1(_) => make_v1(journal, &files, shielded, rest)?,
            Backend::V2(_) => {
                make_v2(journal, &files, shielded)?;
                0
            }
        };
        Ok(Self { root: root.clone(), backend, kernel_tasks })
    }

    /// Brings the calling thread (with v2: its whole process) onto the shielded CPUs. Threads and
    /// processes that it makes meanwhile are born there.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn enter(&self) -> Result<(), SetupError> {
        // 0 is the writing process.
        self.files().write(&format!("{SHIELD}/{}", self.list()), "0")
    }

    /// Brings the calling thread back to the other CPUs; with v2 it stays, since its threads would
    /// leave with it.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn leave(&self) -> Result<(), SetupError> {
        match self.backend {
            Backend::V1(_) => self.files().write(&format!("{HOUSEKEEPING}/tasks"), "0"),
            Backend::V2(_) => Ok(()),
        }
    }

    /// The file that takes the number of a thread (with v2: of a process) to be shielded.
    #[must_use]
    pub fn tasks_file(&self) -> String {
        self.files().path(&format!("{SHIELD}/{}", self.list()))
    }

    /// Its files that hold what a shield is, to be read again.
    #[must_use]
    pub fn settings(&self) -> Vec<String> {
        let files = self.files();
        let own = |name: &str| files.path(&format!("{SHIELD}/{name}"));
        match self.backend {
            Backend::V1(_) => vec![
                own("cpuset.cpus"),
                own("cpuset.cpu_exclusive"),
                own("cpuset.sched_load_balance"),
                files.path("cpuset.sched_load_balance"),
            ],
            Backend::V2(_) => vec![own("cpuset.cpus"), own("cpuset.cpus.partition")],
        }
    }

    const fn list(&self) -> &'static str {
        match self.backend {
            Backend::V1(_) => "tasks",
            Backend::V2(_) => "cgroup.procs",
        }
    }

    /// As in `run.json`.
    #[must_use]
    pub const fn backend(&self) -> &'static str {
        self.backend.name()
    }

    /// Whether tardy's helper threads run on the shielded CPUs too.
    #[must_use]
    pub const fn holds_helpers(&self) -> bool {
        matches!(self.backend, Backend::V2(_))
    }

    fn files(&self) -> Files<'_> {
        Files { root: &self.root, mount: self.backend.mount() }
    }
}

fn group_change(files: &Files<'_>, name: &str, back: &str) -> Change {
    Change::Group { path: files.path(name), back: back.into() }
}

fn make_v2(journal: &mut Journal, files: &Files<'_>, shielded: &Cpus) -> Result<(), SetupError> {
    let control = "cgroup.subtree_control";
    let on = files.root.read(files.path(control)).unwrap_or_default();
    if !on.split_whitespace().any(|word| word == "cpuset") {
        let (path, controller) = (files.path(control), "cpuset".into());
        journal.note(vec![Change::Controller { path, controller }])?;
        files.write(control, "+cpuset")?;
    }
    journal.note(vec![group_change(files, SHIELD, &own_group(files))])?;
    files.make(SHIELD)?;
    files.write(&format!("{SHIELD}/cpuset.cpus"), &shielded.to_string())?;
    let partition = format!("{SHIELD}/cpuset.cpus.partition");
    let written = files.write(&partition, "isolated");
    let found = files.root.read(files.path(&partition));
    match found.as_deref() {
        Some("isolated") => Ok(()),
        Some(found) => {
            Err(shield_error(format!("the partition of {} is {found:?}", units::cpus(shielded))))
        }
        None => Err(written.err().unwrap_or_else(|| shield_error(TOO_OLD.into()))),
    }
}

/// The directory of the cgroup v2 that this process is in.
fn own_group(files: &Files<'_>) -> String {
    let own = files.root.read("/proc/self/cgroup").unwrap_or_default();
    let path = own.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    format!("{}{}", files.mount, path.trim_end_matches('/'))
}

/// Returns how many tasks of the kernel stay behind.
fn make_v1(
    journal: &mut Journal,
    files: &Files<'_>,
    shielded: &Cpus,
    rest: &Cpus,
) -> Result<usize, SetupError> {
    no_other_has(files, shielded)?;
    let groups = [(HOUSEKEEPING, rest, "1"), (SHIELD, shielded, "0")];
    let back = files.mount;
    let mut changes: Vec<Change> =
        groups.iter().map(|(name, ..)| group_change(files, name, back)).collect();
    let balance = files.path("cpuset.sched_load_balance");
    changes.extend(Change::of_file(files.root, &balance));
    journal.note(changes)?;
    let memory = files.root.read(files.path("cpuset.mems")).unwrap_or_default();
    for (name, cpus, balanced) in groups {
        files.make(name)?;
        files.write(&format!("{name}/cpuset.mems"), &memory)?;
        files.write(&format!("{name}/cpuset.cpus"), &cpus.to_string())?;
        files.write(&format!("{name}/cpuset.cpu_exclusive"), "1")?;
        files.write(&format!("{name}/cpuset.sched_load_balance"), balanced)?;
    }
    let left = sweep(files);
    files.write("cpuset.sched_load_balance", "0")?;
    Ok(left)
}

/// An exclusive cpuset must not share its CPUs with another one.
fn no_other_has(files: &Files<'_>, shielded: &Cpus) -> Result<(), SetupError> {
    let entries = fs::read_dir(files.root.path(files.mount)).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let cpus = files.root.read(files.path(&format!("{name}/cpuset.cpus")));
        let cpus = cpus.and_then(|text| text.parse::<Cpus>().ok()).unwrap_or_default();
        if name != SHIELD && name != HOUSEKEEPING && cpus.meets(shielded) {
            let path = files.path(&name);
            return Err(shield_error(format!(
                "the cpuset {path} has {} too; take {} out of its cpuset.cpus, or end what runs in \
                 it",
                units::cpus(&cpus),
                units::cpus(shielded)
            )));
        }
    }
    Ok(())
}

/// Moves every task of the root cpuset to the housekeeping one, until only those are left that
/// refuse: threads that the kernel has bound.
fn sweep(files: &Files<'_>) -> usize {
    let mut left = 0;
    // A task may fork between the look and the move.
    for _ in 0..20 {
        let text = files.root.read(files.path("tasks")).unwrap_or_default();
        let to = files.root.path(files.path(&format!("{HOUSEKEEPING}/tasks")));
        let moved = |task: &&str| fs::write(&to, task).is_ok();
        let (moved, refused): (Vec<&str>, Vec<&str>) = text.lines().partition(moved);
        let is_there = |task: &&&str| task.parse().is_ok_and(|tid| is_alive(files.root, tid));
        left = refused.iter().filter(is_there).count();
        // A tree that stands for a machine does not forget those that moved.
        if moved.is_empty() || !files.root.is_this_machine() {
            break;
        }
    }
    left
}

fn is_alive(root: &Root, tid: i32) -> bool {
    tasks::start(root, tid).is_some()
}

#[cfg(test)]
mod tests;
