//! What a run asks of the machine beyond its own threads: arranged in one order, undone in the
//! other.

use std::io;

use super::{
    SetupError, governor,
    journal::{Journal, JournalError, JournalPath},
    settings::{HeldSettings, SettingChoice, SettingLoss},
    shield::{Shield, ShieldGaps, ShieldWatch},
    siblings,
    threads::plain,
};
use crate::{
    run::FoundSetup,
    sys::{cpus::Cpus, root::Root},
    units,
};

/// What the user said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetupRequest {
    /// Keep everything else off the measured CPUs.
    pub shield: bool,
    /// Frequency governor of the measured CPUs.
    pub governor: Option<String>,
    /// Idle states with a longer exit than this are not entered; us.
    pub max_idle_latency_us: Option<i32>,
    /// Take hardware threads offline that share a core with a measured one.
    pub no_smt_sibling: bool,
    /// Where helper threads and loads run.
    pub housekeeping: Option<Cpus>,
    /// Settings of the machine, one by one.
    pub settings: Vec<SettingChoice>,
}

impl SetupRequest {
    /// Whether settings of the machine are to be changed, and so journalled.
    fn change_the_machine(&self) -> bool {
        let sets = self.settings.iter().any(|setting| !setting.is_now());
        self.shield || self.governor.is_some() || self.no_smt_sibling || sets
    }

    /// Says which flags need the journal that cannot be written.
    fn name(&self, error: JournalError) -> SetupError {
        let JournalError::Write { path, why } = error else { return error.into() };
        let governor = self.governor.as_ref().map(|name| format!("--governor {name}"));
        let flags = [
            self.shield.then(|| "--shield".to_owned()),
            governor,
            self.no_smt_sibling.then(|| "--no-smt-sibling".to_owned()),
        ];
        let set = self.settings.iter().filter(|set| !set.is_now()).map(SettingChoice::flag);
        let flags: Vec<String> = flags.into_iter().flatten().chain(set).collect();
        let why = format!("old values cannot be written down in {path}: {why}");
        let remedy = "Run as root, with room on a writable /run.";
        SetupError::Choice { flag: flags.join(" and "), why, remedy }
    }
}

/// A machine that is arranged, until this is finished or dropped.
#[derive(Debug)]
pub struct Arranged {
    wishes: SetupRequest,
    shield: Option<Shield>,
    offline: Option<Cpus>,
    governor: Option<String>,
    settings: Option<HeldSettings>,
    journal: Option<Journal>,
}

impl Arranged {
    /// Does what is wished for the measured `cpus`; the calling thread goes to the housekeeping
    /// CPUs, and what it starts from now on is born there.
    ///
    /// # Errors
    /// A wish that cannot be fulfilled; then everything is as it was.
    pub fn make(wishes: &SetupRequest, cpus: &Cpus, command: &str) -> Result<Self, SetupError> {
        Self::make_with(None, wishes, cpus, command)
    }

    /// The same where the machine is claimed already, and something else changed: that is undone
    /// last.
    ///
    /// # Errors
    /// As of [`Arranged::make`]; what was changed before is undone, too.
    pub fn make_with(
        claimed: Option<Journal>,
        wishes: &SetupRequest,
        cpus: &Cpus,
        command: &str,
    ) -> Result<Self, SetupError> {
        Self::make_on(&Root::default(), &JournalPath::usual(), claimed, wishes, (cpus, command))
    }

    fn make_on(
        root: &Root,
        place: &JournalPath,
        claimed: Option<Journal>,
        wishes: &SetupRequest,
        (cpus, command): (&Cpus, &str),
    ) -> Result<Self, SetupError> {
        let mut arranged = Self {
            wishes: wishes.clone(),
            shield: None,
            offline: None,
            governor: None,
            settings: None,
            journal: None,
        };
        if wishes.change_the_machine() {
            let claim = || Journal::claim(place, root, command);
            let mut journal = claimed.map_or_else(claim, Ok).map_err(|error| wishes.name(error))?;
            // What is done when a later wish is refused is undone with the journal.
            if wishes.no_smt_sibling {
                arranged.offline = Some(siblings::offline(&mut journal, root, cpus)?);
            }
            if let Some(name) = &wishes.governor {
                governor::set(&mut journal, root, name, cpus)?;
                arranged.governor = Some(name.clone());
            }
            arranged.set(Some(&mut journal), root, cpus)?;
            if wishes.shield {
                arranged.shield = Some(Shield::raise(&mut journal, root, cpus)?);
            }
            arranged.journal = Some(journal);
        } else {
            arranged.set(None, root, cpus)?;
            arranged.journal = claimed;
        }
        if let Some(cpus) = &wishes.housekeeping {
            let found = cpus.pin_this_thread().map_err(|error| refused(cpus, &plain(&error)))?;
            if found != *cpus {
                return Err(refused(
                    cpus,
                    &format!("the kernel leaves {} of them", units::cpus(found)),
                ));
            }
        }
        Ok(arranged)
    }

    fn set(
        &mut self,
        journal: Option<&mut Journal>,
        root: &Root,
        cpus: &Cpus,
    ) -> Result<(), SetupError> {
        if !self.wishes.settings.is_empty() {
            self.settings = Some(HeldSettings::set(journal, root, &self.wishes.settings, cpus)?);
        }
        Ok(())
    }

    /// A setting that is no longer as it was set.
    #[must_use]
    pub fn setting_loss(&self) -> Option<SettingLoss> {
        self.settings.as_ref().and_then(HeldSettings::loss)
    }

    /// Does `work` on the shielded CPUs, where there are some: threads that it makes are born
    /// there.
    ///
    /// # Errors
    /// A task cannot enter or leave the shield, or what `work` says.
    pub fn within<T, E>(
        &self,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<Result<T, E>, SetupError> {
        let Some(shield) = &self.shield else {
            return Ok(work());
        };
        shield.group.enter()?;
        let done = work();
        shield.group.leave()?;
        if let Some(cpus) = &self.wishes.housekeeping
            && !shield.group.holds_helpers()
        {
            cpus.pin_this_thread().map_err(|error| refused(cpus, &plain(&error)))?;
        }
        Ok(done)
    }

    /// Where helper threads run: what was wished, or else what is not measured; may be none.
    ///
    /// # Errors
    /// The kernel's error when it is asked where the process may run.
    pub fn housekeeping(&self, measured: &Cpus) -> io::Result<Cpus> {
        if self.shield.as_ref().is_some_and(|shield| shield.group.holds_helpers()) {
            return Ok(Cpus::default());
        }
        match &self.wishes.housekeeping {
            Some(cpus) => Ok(cpus.clone()),
            None => Ok(Cpus::allowed()?.without(measured)),
        }
    }

    /// Writes down what it came to.
    pub fn record(&self, found: &mut FoundSetup) {
        found.shield = self.shield.as_ref().map(Shield::found);
        found.governor.clone_from(&self.governor);
        found.siblings_offline = self.offline.as_ref().map(Cpus::to_string);
        found.settings = self.settings.as_ref().map(HeldSettings::found).unwrap_or_default();
    }

    /// What the shield does not keep off its CPUs; absent without one.
    #[must_use]
    pub fn shield_gaps(&self) -> Option<&ShieldGaps> {
        self.shield.as_ref().map(Shield::gaps)
    }

    /// What says whether the shield still stands; absent without one.
    #[must_use]
    pub fn shield_watch(&self) -> Option<ShieldWatch> {
        self.shield.as_ref().map(|shield| shield.watch().clone())
    }

    /// Puts everything back, and says what could not be, and why.
    #[must_use]
    pub fn finish(mut self) -> Vec<String> {
        self.journal.as_mut().map(Journal::undo).unwrap_or_default().failed
    }
}

fn refused(cpus: &Cpus, why: &str) -> SetupError {
    SetupError::Choice {
        flag: format!("--housekeeping {cpus}"),
        why: why.into(),
        remedy: "Name CPUs that are online, allowed for this process, and not shielded.",
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::setup::journal::tests::plant_boot_id;

    #[test]
    fn a_later_wish_that_is_refused_undoes_the_earlier_ones() {
        let directory = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let governor = "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor";
        write(governor, "powersave\n");
        write("sys/devices/system/cpu/online", "0-1\n");
        write("proc/mounts", "");
        plant_boot_id(directory.path());
        let (root, place) =
            (Root::at(directory.path()), JournalPath::at(directory.path().join("run/journal")));
        let wishes = SetupRequest {
            shield: true,
            governor: Some("performance".into()),
            ..SetupRequest::default()
        };
        let cpus = "1".parse().unwrap();
        let error = Arranged::make_on(&root, &place, None, &wishes, (&cpus, "test")).unwrap_err();
        assert!(error.to_string().contains("no cgroup hierarchy"), "{error}");
        assert_eq!(root.read(format!("/{governor}")).unwrap(), "powersave");
        assert!(!place.path().exists());
        let wishes =
            SetupRequest { governor: Some("performance".into()), ..SetupRequest::default() };
        let arranged = Arranged::make_on(&root, &place, None, &wishes, (&cpus, "test")).unwrap();
        assert_eq!(root.read(format!("/{governor}")).unwrap(), "performance");
        let mut found = FoundSetup::default();
        arranged.record(&mut found);
        assert_eq!((found.governor.as_deref(), &found.shield), (Some("performance"), &None));
        assert_eq!(arranged.finish(), [""; 0]);
        assert_eq!(root.read(format!("/{governor}")).unwrap(), "powersave");
    }

    #[test]
    fn what_cannot_be_put_back_at_the_end_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let governor =
            directory.path().join("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor");
        fs::create_dir_all(governor.parent().unwrap()).unwrap();
        fs::write(&governor, "powersave\n").unwrap();
        plant_boot_id(directory.path());
        let (root, place) =
            (Root::at(directory.path()), JournalPath::at(directory.path().join("run/journal")));
        let wishes =
            SetupRequest { governor: Some("performance".into()), ..SetupRequest::default() };
        let cpus = "1".parse().unwrap();
        let arranged = Arranged::make_on(&root, &place, None, &wishes, (&cpus, "test")).unwrap();
        fs::remove_file(&governor).unwrap();
        // It can be read, and takes no value.
        std::os::unix::fs::symlink("/proc/version", &governor).unwrap();
        let failed = arranged.finish();
        assert!(failed.len() == 1 && failed[0].contains("scaling_governor"), "{failed:?}");
    }

    #[test]
    fn a_journal_that_cannot_be_written_is_reported_with_the_flags_that_need_it() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("run"), "a file where a directory should be").unwrap();
        let place = JournalPath::at(directory.path().join("run/journal"));
        let wishes = SetupRequest { shield: true, no_smt_sibling: true, ..SetupRequest::default() };
        let root = Root::at(directory.path());
        let error =
            Arranged::make_on(&root, &place, None, &wishes, (&"0".parse().unwrap(), "test"));
        let said = error.unwrap_err().to_string();
        assert!(said.starts_with("--shield and --no-smt-sibling is not available: old"), "{said}");
        assert!(said.contains("Run as root"), "{said}");
    }

    #[test]
    fn without_wishes_nothing_is_claimed() {
        let place = JournalPath::at("/nonexistent/journal");
        let wishes = SetupRequest::default();
        let root = Root::default();
        let arranged =
            Arranged::make_on(&root, &place, None, &wishes, (&"0".parse().unwrap(), "test"))
                .unwrap();
        assert_eq!(arranged.within(|| Ok::<_, ()>(7)), Ok(Ok(7)));
        assert_eq!(arranged.finish(), [""; 0]);
    }
}
