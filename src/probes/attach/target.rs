//! Which threads are looked at: found in `/proc` and in control groups.

use std::{
    fs, io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use crate::{
    kernel::{AttachPrograms, AttachedTo},
    run::ThreadDeadline,
    sys::{
        process::{Pid, descendants},
        root::Root,
        tasks,
    },
    units::Nanos,
};

/// Names that are said if none is right.
const NEAREST: usize = 3;

/// A process may start threads later.
const LEAST_ROOM: usize = 128;

/// The number of bytes that the kernel keeps of a thread's name.
const COMM_BYTES: usize = 15;

/// Whose threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttachTarget {
    /// All of a process.
    Process(u32),
    /// One.
    Thread(u32),
    /// All of this name.
    Name(String),
    /// All of a control group and those below it, by its directory.
    Group(PathBuf),
    /// Those of a command that tardy starts, and of what it starts.
    Command(Vec<String>),
}

/// A thread that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundTask {
    pub tid: u32,
    pub pid: u32,
    pub comm: Vec<u8>,
}

impl AttachTarget {
    /// What the programs are told.
    pub(super) fn attached_to(&self) -> AttachedTo {
        match self {
            Self::Process(pid) => AttachedTo::Process(*pid),
            Self::Thread(tid) => AttachedTo::Thread(*tid),
            Self::Name(name) => AttachedTo::Name(cut_name(name.as_bytes()).to_vec()),
            Self::Group(_) | Self::Command(_) => AttachedTo::Children,
        }
    }

    /// How many threads tardy makes room for: twice those that it finds. Room for hundreds takes
    /// the kernel long enough to delay threads that run already.
    pub(super) fn room(&self, root: &Root) -> usize {
        match self {
            Self::Process(_) | Self::Thread(_) | Self::Name(_) => {
                (2 * self.scan(root).len()).clamp(LEAST_ROOM, AttachPrograms::MOST)
            }
            Self::Group(_) | Self::Command(_) => AttachPrograms::MOST,
        }
    }

    /// As on the command line, without the flag.
    #[must_use]
    pub fn value(&self) -> String {
        match self {
            Self::Process(number) | Self::Thread(number) => number.to_string(),
            Self::Name(name) => name.clone(),
            Self::Group(path) => path.display().to_string(),
            Self::Command(words) => words.join(" "),
        }
    }

    /// `pid`, `tid`, `comm`, `cgroup` or `command`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Process(_) => "pid",
            Self::Thread(_) => "tid",
            Self::Name(_) => "comm",
            Self::Group(_) => "cgroup",
            Self::Command(_) => "command",
        }
    }

    /// Whether there is such a thing now.
    ///
    /// # Errors
    /// The flag, what is wrong, and the remedy.
    pub fn check(&self, root: &Root) -> Result<(), String> {
        match self {
            Self::Process(pid) => check_process(root, *pid),
            Self::Thread(tid) if process_of(root, *tid).is_none() => {
                Err(format!("--tid {tid}: no such thread; `ps -eLo pid,tid,comm` lists all"))
            }
            Self::Name(name) if self.scan(root).is_empty() => Err(no_such_name(root, name)),
            Self::Group(path) => check_group(path),
            Self::Command(words) => {
                let program = words.first().map_or("", String::as_str);
                find_program(program).map(drop)
            }
            Self::Thread(_) | Self::Name(_) => Ok(()),
        }
    }

    /// The threads that there are now; of a command none, see [`scan_children`].
    pub(super) fn scan(&self, root: &Root) -> Vec<FoundTask> {
        match self {
            Self::Process(pid) => of_process(root, *pid),
            Self::Thread(tid) => {
                let found = process_of(root, *tid).and_then(|pid| found(root, pid, *tid));
                found.into_iter().collect()
            }
            Self::Name(name) => {
                let wanted = cut_name(name.as_bytes());
                let own = std::process::id();
                let all = tasks::all(root).into_iter();
                let all = all.map(|(pid, tid)| (pid.unsigned_abs(), tid.unsigned_abs()));
                all.filter(|(pid, _)| *pid != own)
                    .filter_map(|(pid, tid)| found(root, pid, tid))
                    .filter(|task| task.comm == wanted)
                    .collect()
            }
            Self::Group(path) => of_group(root, path),
            Self::Command(_) => Vec::new(),
        }
    }
}

/// What the kernel keeps of a name.
pub(super) fn cut_name(name: &[u8]) -> &[u8] {
    name.get(..COMM_BYTES).unwrap_or(name)
}

/// A process and what it started, as far as that is seen now.
pub(super) fn scan_children(root: &Root, pid: u32) -> Vec<FoundTask> {
    let first = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let below = first.and_then(|first| descendants(first).ok()).unwrap_or_default();
    let below = below.into_iter().map(|pid| pid.as_raw_nonzero().get().unsigned_abs());
    [pid].into_iter().chain(below).flat_map(|pid| of_process(root, pid)).collect()
}

fn of_process(root: &Root, pid: u32) -> Vec<FoundTask> {
    let tids = tasks::numbers(&root.path(format!("/proc/{pid}/task")));
    tids.into_iter().filter_map(|tid| found(root, pid, tid.unsigned_abs())).collect()
}

/// One that runs; `None` if it is gone.
fn found(root: &Root, pid: u32, tid: u32) -> Option<FoundTask> {
    tasks::start(root, i32::try_from(tid).ok()?)?;
    let mut comm = fs::read(root.path(format!("/proc/{pid}/task/{tid}/comm"))).ok()?;
    if comm.last() == Some(&b'\n') {
        comm.pop();
    }
    Some(FoundTask { tid, pid, comm })
}

/// The process of a thread; `None` without such a thread.
fn process_of(root: &Root, tid: u32) -> Option<u32> {
    let status = root.read(format!("/proc/{tid}/status"))?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

fn check_process(root: &Root, pid: u32) -> Result<(), String> {
    match process_of(root, pid) {
        None => Err(format!(
            "--pid {pid}: no such process; `pgrep -a NAME` finds it by its name, and \
             --comm NAME looks at all threads of one"
        )),
        Some(process) if process != pid => Err(format!(
            "--pid {pid}: that is a thread of process {process}; use --pid {process} for all its \
             threads, or --tid {pid} for this one"
        )),
        Some(_) if of_process(root, pid).is_empty() => Err(format!(
            "--pid {pid}: the process has ended, and waits for its parent to take notice"
        )),
        Some(_) => Ok(()),
    }
}

fn no_such_name(root: &Root, name: &str) -> String {
    let mut names: Vec<String> = tasks::all(root)
        .into_iter()
        .filter_map(|(pid, tid)| found(root, pid.unsigned_abs(), tid.unsigned_abs()))
        .map(|task| String::from_utf8_lossy(&task.comm).into_owned())
        .collect();
    names.sort();
    names.dedup();
    format!(
        "--comm {name:?}: no thread is called that now; nearest are {}. The kernel keeps the first \
         {COMM_BYTES} bytes of a name; `ps -eLo pid,tid,comm` lists all",
        nearest(name, names)
    )
}

/// That none of the threads that are looked at, of these names, has this deadline.
pub(super) fn no_such_deadline(own: &ThreadDeadline, names: &[String]) -> String {
    format!(
        "--deadline {}={}: no thread that is looked at is called that now; nearest are {}. \
         --wait-for-threads TIME waits until there is one",
        own.name,
        Nanos(own.deadline_ns).typed(),
        nearest(&own.name, names.to_vec())
    )
}

/// Those of the names that are most like this one.
fn nearest(name: &str, mut names: Vec<String>) -> String {
    names.sort_by_cached_key(|known| (distance(name, known), known.clone()));
    names.truncate(NEAREST);
    names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}

/// How many characters must be changed, added or removed (Levenshtein 1966), where one begins with
/// the other one.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    if !a.is_empty() && (b.starts_with(&a) || a.starts_with(&b) && b.len() > 2) {
        return 1;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.iter().enumerate() {
            let changed = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

/// Files of a control group that list its threads: of version 2, and of version 1.
const OF_GROUP: [&str; 3] = ["cgroup.threads", "tasks", "cgroup.procs"];

fn check_group(path: &Path) -> Result<(), String> {
    let place = path.display();
    if !path.is_dir() {
        return Err(format!(
            "--cgroup {place}: no such directory; name one below /sys/fs/cgroup, as \
             /sys/fs/cgroup/system.slice/my.service"
        ));
    }
    if !OF_GROUP.iter().any(|file| path.join(file).is_file()) {
        return Err(format!("--cgroup {place}: not a control group: it has no cgroup.procs"));
    }
    Ok(())
}

/// Threads of a group and of those below it.
fn of_group(root: &Root, path: &Path) -> Vec<FoundTask> {
    // Of a threaded group `cgroup.procs` cannot be read; of others its processes are whole.
    let read = |file: &str| fs::read_to_string(path.join(file)).ok();
    let numbers = OF_GROUP.into_iter().find_map(read).unwrap_or_default();
    let tids = numbers.lines().filter_map(|line| line.trim().parse::<u32>().ok());
    let mut tasks: Vec<FoundTask> =
        tids.filter_map(|tid| found(root, process_of(root, tid)?, tid)).collect();
    let below = fs::read_dir(path).into_iter().flatten().flatten();
    for entry in below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        tasks.extend(of_group(root, &entry.path()));
    }
    tasks
}

/// Where a program is, as a shell would find it.
pub(super) fn find_program(name: &str) -> Result<PathBuf, String> {
    let is_program = |path: &Path| {
        rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file()
    };
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(format!("-- {name}: no such file"))
            }
            _ if is_program(&path) => Ok(path),
            _ => Err(format!("-- {name}: not a program that this user may run")),
        };
    }
    let places = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    let found = std::env::split_paths(&places)
        .filter(|place| !place.as_os_str().as_bytes().is_empty())
        .map(|place| place.join(name))
        .find(|path| is_program(path));
    found.ok_or_else(|| format!("-- {name}: command not found; it is in no directory of PATH"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{probes::attach::Attach, run::Deadlines};

    #[test]
    fn the_nearest_names_begin_with_what_was_typed_or_differ_in_little() {
        assert_eq!(distance("jackd", "jack"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "ab"), 2);
        assert!(distance("pulseaudoi", "pulseaudio") < distance("pulseaudoi", "systemd"));
    }

    #[test]
    fn what_there_is_not_is_named_with_a_remedy() {
        let root = Root::default();
        let said = |target: AttachTarget| target.check(&root).unwrap_err();
        assert!(said(AttachTarget::Process(u32::MAX)).contains("no such process"));
        assert!(said(AttachTarget::Thread(u32::MAX)).contains("no such thread"));
        let name = said(AttachTarget::Name("no such name".into()));
        assert!(name.contains("nearest are \""), "{name}");
        assert!(said(AttachTarget::Group("/nonexistent".into())).contains("no such directory"));
        assert!(said(AttachTarget::Group("/proc".into())).contains("not a control group"));
        let command = |name: &str| AttachTarget::Command(vec![name.into()]);
        assert!(said(command("no-such-command")).contains("command not found"));
        assert!(said(command("/etc/passwd")).contains("not a program"));
        assert!(said(command("/nonexistent/x")).contains("no such file"));
        command("sh").check(&root).unwrap();
    }

    #[test]
    fn a_control_group_is_there_before_its_threads() {
        let group = tempfile::tempdir().unwrap();
        let root = Root::default();
        let attach = Attach {
            target: AttachTarget::Group(group.path().to_owned()),
            only: None,
            to_stderr: false,
            deadlines: Deadlines::default(),
        };
        let threads = |text: &str| fs::write(group.path().join("cgroup.threads"), text).unwrap();
        threads("");
        assert!(attach.check(&root).is_ok() && !attach.has_threads(&root));
        threads(&format!("{}\n", std::process::id()));
        assert!(attach.has_threads(&root));
    }

    #[test]
    fn a_thread_of_this_process_is_found_by_process_by_number_and_by_name() {
        let root = Root::default();
        let (own, tid) = (std::process::id(), crate::sys::sched::thread_id().unsigned_abs());
        let all = AttachTarget::Process(own).scan(&root);
        assert!(all.iter().any(|task| task.tid == tid && task.pid == own));
        let one = AttachTarget::Thread(tid).scan(&root);
        assert_eq!((one.len(), one[0].tid, one[0].pid), (1, tid, own));
        // tardy itself is not among those of a name.
        let name = String::from_utf8_lossy(&one[0].comm).into_owned();
        assert!(AttachTarget::Name(name).scan(&root).iter().all(|task| task.pid != own));
        let refused = AttachTarget::Process(tid).check(&root);
        assert!(tid == own || refused.unwrap_err().contains("a thread of process"));
    }
}
