//! Whether a shield still stands: what was set up is read again while it is used.

use std::fmt;

use super::interrupts::MovedSetting;
use crate::{
    run::UnreadSource,
    sys::{cpus::Cpus, root::Root},
};

/// What is read again of a shield.
#[derive(Debug, Clone)]
pub struct ShieldWatch {
    root: Root,
    cpus: Cpus,
    /// Files of its cgroups, and what was in them when it stood; `None` if that could not be read.
    group: Vec<(String, Option<String>)>,
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
    /// What was found; `None` if it was gone.
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
            let held = root.read(&path);
            (path, held)
        };
        let group = files.into_iter().map(held).collect();
        Self { root: root.clone(), cpus: cpus.clone(), group, moved }
    }

    /// The first file of its cgroups that is not as it was. A few short files are read, so that
    /// this may be asked once a second.
    #[must_use]
    pub fn loss(&self) -> Option<ShieldLoss> {
        self.group.iter().find_map(|(path, was)| {
            let (was, now) = (was.as_ref()?, self.root.read(path));
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
        self.moved_that(Some(true)).map(|moved| moved.name().to_owned()).collect()
    }

    /// What nothing is known of: files that could not be read when it stood, and settings of
    /// interrupts that cannot be read now.
    #[must_use]
    pub fn unread(&self) -> Vec<UnreadSource> {
        let files = self.group.iter().filter(|(_, was)| was.is_none());
        let files = files.map(|(path, _)| UnreadSource::new("whether the shield lasted", path));
        let settings = self.moved_that(None).map(|moved| {
            let what = format!("whether the shield kept off {}", moved.name());
            UnreadSource::new(&what, moved.path())
        });
        files.chain(settings).collect()
    }

    /// The settings that allow the shielded CPUs, or not, or of which that is not known.
    fn moved_that(&self, meets: Option<bool>) -> impl Iterator<Item = &MovedSetting> {
        self.moved.iter().filter(move |moved| moved.meets(&self.root, &self.cpus) == meets)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::setup::{journal::tests::journal_in, shield::interrupts::move_off};

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

    #[test]
    fn what_cannot_be_read_is_named_and_neither_fine_nor_lost() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        let at = |name: &str| directory.path().join(name);
        for irq in ["7", "8", "9"] {
            fs::create_dir_all(at("proc/irq").join(irq)).unwrap();
            fs::write(at("proc/irq").join(irq).join("smp_affinity_list"), "0-3\n").unwrap();
        }
        let cpus: Cpus = "2-3".parse().unwrap();
        let mut journal = journal_in(directory.path());
        let moved = move_off(&mut journal, &root, &cpus, &"0-1".parse().unwrap()).unwrap();
        assert_eq!(moved.moved, 3);
        let files = vec!["/cpuset.cpus".to_owned()];
        let watch = ShieldWatch::begin(&root, &cpus, files, moved.settings);
        let sources = || watch.unread().into_iter().map(|unread| unread.source).collect::<Vec<_>>();
        assert_eq!((watch.loss(), watch.interrupts_back()), (None, vec![]));
        assert_eq!(sources(), ["/cpuset.cpus"], "it was not there when the shield stood");
        // As containers hide a file; back on a shielded CPU; and an interrupt that is no more.
        fs::write(at("proc/irq/7/smp_affinity_list"), "").unwrap();
        fs::write(at("proc/irq/8/smp_affinity_list"), "3\n").unwrap();
        fs::remove_dir_all(at("proc/irq/9")).unwrap();
        assert_eq!(watch.interrupts_back(), ["8"]);
        assert_eq!(sources(), ["/cpuset.cpus", "/proc/irq/7/smp_affinity_list"]);
        // All of /proc is hidden.
        fs::rename(at("proc"), at("hidden")).unwrap();
        assert_eq!((watch.interrupts_back(), sources().len()), (vec![], 4));
        fs::rename(at("hidden"), at("proc")).unwrap();
        journal.undo();
    }
}
