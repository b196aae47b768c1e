//! Whether a shield still stands: what was set up is read again while it is used.

use std::fmt;

use super::interrupts::MovedSetting;
use crate::sys::{cpus::Cpus, root::Root};

/// What is read again of a shield.
#[derive(Debug, Clone)]
pub struct ShieldWatch {
    root: Root,
    cpus: Cpus,
    /// Files of its cgroups, and what was in them when it stood.
    group: Vec<(String, String)>,
    moved: Vec<MovedSetting>,
}

/// A file of a shield's cgroups in which something else was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShieldLoss {
    /// The shielded CPUs.
    pub cpus: String,
    /// The file.
    pub path: String,
    /// What was in it when the shield stood.
    pub was: String,
    /// What was found; absent where it was gone.
    pub now: Option<String>,
}

impl fmt::Display for ShieldLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.now {
            Some(now) => write!(f, "{} holds {now:?} instead of {:?}", self.path, self.was),
            None => write!(f, "{} is gone", self.path),
        }
    }
}

impl ShieldWatch {
    /// Reads the files of the cgroups of a shield that has just been put up around `cpus`.
    #[must_use]
    pub(crate) fn begin(
        root: &Root,
        cpus: &Cpus,
        files: Vec<String>,
        moved: Vec<MovedSetting>,
    ) -> Self {
        let held = |path: String| {
            let held = root.read(&path)?;
            Some((path, held))
        };
        let group = files.into_iter().filter_map(held).collect();
        Self { root: root.clone(), cpus: cpus.clone(), group, moved }
    }

    /// The first file of its cgroups that is not as it was. A few short files are read, so that
    /// this may be asked once a second.
    #[must_use]
    pub fn loss(&self) -> Option<ShieldLoss> {
        self.group.iter().find_map(|(path, was)| {
            let now = self.root.read(path);
            let loss = || ShieldLoss {
                cpus: self.cpus.to_string(),
                path: path.clone(),
                was: was.clone(),
                now: now.clone(),
            };
            (now.as_ref() != Some(was)).then(loss)
        })
    }

    /// What was moved off the shielded CPUs and may reach them again, by name. Reads the setting of
    /// each interrupt.
    #[must_use]
    pub fn interrupts_back(&self) -> Vec<String> {
        let back = self.moved.iter().filter(|moved| moved.meets(&self.root, &self.cpus));
        back.map(|moved| moved.name().to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_changed_or_gone_is_named_with_what_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        let at = |name: &str| directory.path().join(name);
        fs::write(at("cpuset.cpus"), "2-3\n").unwrap();
        fs::write(at("cpuset.cpus.partition"), "isolated\n").unwrap();
        let files = ["/cpuset.cpus", "/cpuset.cpus.partition"].map(str::to_owned);
        let cpus = "2-3".parse().unwrap();
        let watch = ShieldWatch::begin(&root, &cpus, files.to_vec(), Vec::new());
        assert_eq!(watch.loss(), None);
        fs::write(at("cpuset.cpus.partition"), "isolated invalid (x)\n").unwrap();
        let said = watch.loss().unwrap().to_string();
        let expected =
            "/cpuset.cpus.partition holds \"isolated invalid (x)\" instead of \"isolated\"";
        assert_eq!(said, expected);
        fs::remove_file(at("cpuset.cpus")).unwrap();
        assert_eq!(watch.loss().unwrap().to_string(), "/cpuset.cpus is gone");
        assert_eq!(watch.loss().unwrap().cpus, "2-3");
    }
}
