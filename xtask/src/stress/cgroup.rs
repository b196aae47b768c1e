//! A cgroup of a test's own, in each hierarchy that a condition needs.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, ensure};

/// Reads its standard input to the end, then thaws the group, kills what is left in it, and removes
/// all directories. It reads because the end comes however this program ends.
const GUARD: &str = r#"
cat >/dev/null
if [ -n "$2" ]; then echo "$2" >"$1"; fi
shift 2
for directory; do
    while read -r pid <"$directory/cgroup.procs"; do kill -KILL "$pid"; sleep 0.01; done
    rmdir "$directory"
done
"#;

/// Moves the shell into the groups, then becomes the program.
const JOIN: &str = r#"
while [ "$1" != -- ]; do echo 0 >"$1/cgroup.procs"; shift; done
shift
exec "$@"
"#;

/// Which interface the kernel has mounted for a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V2,
}

/// Where a controller is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    root: PathBuf,
    version: Version,
}

/// The groups, and the process that removes them.
pub(super) struct Cgroup {
    /// By controller; in version 2 they are the same directory.
    groups: Vec<(&'static str, Mount)>,
    directories: Vec<PathBuf>,
    guard: Child,
}

impl Cgroup {
    /// Makes a group in the hierarchy of each of these controllers.
    pub(super) fn make(name: &str, controllers: &[&'static str]) -> Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts")?;
        let mut groups = Vec::new();
        let mut directories: Vec<PathBuf> = Vec::new();
        for controller in controllers {
            let mut mount = find(&mounts, controller)
                .with_context(|| format!("no cgroup hierarchy has the controller {controller}"))?;
            mount.root.push(name);
            if !directories.contains(&mount.root) {
                directories.push(mount.root.clone());
            }
            groups.push((*controller, mount));
        }
        let freezer = groups.iter().find(|(controller, _)| *controller == "freezer");
        let (file, word) = freezer.map_or_else(Default::default, |(_, mount)| thaw(mount));
        let mut command = Command::new("sh");
        command.args(["-c", GUARD, "guard"]).arg(file).arg(word).args(&directories);
        // A key pressed in the terminal must not end it.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        for directory in &directories {
            fs::create_dir(directory)
                .with_context(|| format!("cannot make {}", directory.display()))?;
        }
        let guard = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let guard = guard.spawn().context("cannot start the guard of the cgroups")?;
        Ok(Self { groups, directories, guard })
    }

    /// Writes a value, which differs between the versions of the interface.
    pub(super) fn set(&self, controller: &str, v1: (&str, &str), v2: (&str, &str)) -> Result<()> {
        let found = self.groups.iter().find(|(name, _)| *name == controller);
        let (_, mount) = found.with_context(|| format!("no group has {controller}"))?;
        let (file, value) = if mount.version == Version::V1 { v1 } else { v2 };
        write(&mount.root.join(file), value)
    }

    /// Whether a file of this controller is there.
    pub(super) fn has(&self, controller: &str, file: &str) -> bool {
        let mut groups = self.groups.iter();
        groups.any(|(name, mount)| *name == controller && mount.root.join(file).exists())
    }

    /// The words before a command that run it in the groups.
    pub(super) fn launcher(&self) -> Vec<String> {
        let mut words = vec!["sh".to_owned(), "-c".into(), JOIN.into(), "join".into()];
        words.extend(self.directories.iter().map(|path| path.display().to_string()));
        words.push("--".into());
        words
    }

    /// Kills what is left in the groups and removes them.
    pub(super) fn remove(mut self) -> Result<()> {
        drop(self.guard.stdin.take());
        self.guard.wait().context("the guard of the cgroups was lost")?;
        let left = self.directories.iter().find(|path| path.exists());
        ensure!(left.is_none(), "a cgroup cannot be removed: {left:?}");
        Ok(())
    }
}

/// Stops or continues all processes of a group.
pub(super) fn freeze(group: &Cgroup, frozen: bool) -> Result<()> {
    let (v1, v2) = if frozen { ("FROZEN", "1") } else { ("THAWED", "0") };
    group.set("freezer", ("freezer.state", v1), ("cgroup.freeze", v2))
}

fn thaw(mount: &Mount) -> (PathBuf, &'static str) {
    match mount.version {
        Version::V1 => (mount.root.join("freezer.state"), "THAWED"),
        Version::V2 => (mount.root.join("cgroup.freeze"), "0"),
    }
}

/// The hierarchy of a controller, by `/proc/self/mounts`.
fn find(mounts: &str, controller: &str) -> Option<Mount> {
    let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let mut v2 = None;
    for field in fields {
        let (Some(root), Some(kind), Some(options)) = (field.get(1), field.get(2), field.get(3))
        else {
            continue;
        };
        let root = PathBuf::from(root);
        if *kind == "cgroup" && options.split(',').any(|option| option == controller) {
            return Some(Mount { root, version: Version::V1 });
        }
        if *kind == "cgroup2" {
            v2 = Some(Mount { root, version: Version::V2 });
        }
    }
    v2
}

fn write(file: &Path, value: &str) -> Result<()> {
    let opened = fs::OpenOptions::new().write(true).open(file);
    opened
        .and_then(|mut opened| opened.write_all(value.as_bytes()))
        .with_context(|| format!("cannot write {value} to {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hierarchy_is_found_by_its_controller() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                      cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu,cpuacct 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let mount = |root: &str, version| Some(Mount { root: root.into(), version });
        assert_eq!(find(mounts, "cpu"), mount("/sys/fs/cgroup/cpu", Version::V1));
        assert_eq!(find(mounts, "freezer"), mount("/sys/fs/cgroup/unified", Version::V2));
        assert_eq!(find("tmpfs / tmpfs rw 0 0\n", "cpu"), None);
    }
}
