//! Settings that are set for a time: written down, written, read back, and looked at again at the
//! end.

use super::{
    choice::SettingChoice,
    places::{FileForm, Measured, WantedFile},
    target::{SettingTarget, policy},
};
use crate::{
    run::{AskedSetting, FoundSetting},
    setup::{
        SetupError,
        journal::{Change, Journal, KnownFile},
        threads::plain,
    },
    sys::{
        cpus::Cpus,
        root::Root,
        sched::{self, RawScheduling},
        tasks::{self, TaskId},
    },
};

/// Settings that are set, or only looked at, until they are restored with the journal.
#[derive(Debug)]
pub struct HeldSettings {
    root: Root,
    held: Vec<HeldSetting>,
}

/// A setting that somebody else changed meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingLoss {
    /// As in `--set`.
    pub name: String,
    /// The file, or what of a task.
    pub place: String,
    /// What it was set to.
    pub was: String,
    /// What was found; `None` if it was gone.
    pub now: Option<String>,
}

#[derive(Debug)]
struct HeldSetting {
    choice: SettingChoice,
    /// Before, for people.
    was: String,
    /// As read back, for people.
    found: String,
    /// What the kernel did not take, where that does no harm.
    refused: u32,
    parts: Vec<HeldPart>,
}

/// One thing that is to stay as it is.
#[derive(Debug)]
enum HeldPart {
    File { path: String, value: String, form: FileForm },
    Cpus(TaskId, Cpus),
    Policy(TaskId, RawScheduling),
}

/// What is to be written.
enum Wanted {
    Files(Vec<WantedFile>),
    Cpus(TaskId, Cpus),
    Policy(TaskId, RawScheduling),
}

/// A setting, what it was, and what is to be written.
struct Planned<'a> {
    choice: &'a SettingChoice,
    was: String,
    wanted: Wanted,
}

impl HeldSettings {
    /// Sets `choices` for the measured `cpus`, each as the kernel then says it is; with `journal`
    /// absent they must change nothing.
    ///
    /// # Errors
    /// A setting that this machine does not have, a value that the kernel refuses, or the journal
    /// cannot be written. What was set by then is restored with the journal.
    pub fn set(
        journal: Option<&mut Journal>,
        root: &Root,
        choices: &[SettingChoice],
        cpus: &Cpus,
    ) -> Result<Self, SetupError> {
        let measured = Measured { root, cpus };
        // All are looked at before the first is changed.
        let mut planned = Vec::new();
        for choice in choices {
            let (was, wanted) =
                wanted(choice, measured).map_err(|why| refused(choice, why, HAVE))?;
            planned.push(Planned { choice, was, wanted });
        }
        if let Some(journal) = journal {
            let changes = planned.iter().filter(|planned| !planned.choice.is_now());
            let changes = changes.flat_map(|planned| planned.wanted.changes(root));
            journal.note(changes.collect()).map_err(SetupError::Journal)?;
        }
        let mut held = Vec::new();
        for planned in planned {
            held.push(hold(root, planned, cpus)?);
        }
        Ok(Self { root: root.clone(), held })
    }

    /// The first that is not as it was set.
    #[must_use]
    pub fn loss(&self) -> Option<SettingLoss> {
        self.held.iter().find_map(|held| {
            held.parts.iter().find_map(|part| {
                let (place, was, now) = part.loss(&self.root)?;
                Some(SettingLoss { name: held.choice.name.clone(), place, was, now })
            })
        })
    }

    /// As in the record of a run.
    #[must_use]
    pub fn found(&self) -> Vec<FoundSetting> {
        let found = |held: &HeldSetting| FoundSetting {
            name: held.choice.name.clone(),
            was: held.was.clone(),
            found: held.found.clone(),
            refused: held.refused,
        };
        self.held.iter().map(found).collect()
    }
}

impl SettingChoice {
    /// As in the record of a run.
    #[must_use]
    pub fn asked(&self) -> AskedSetting {
        AskedSetting { name: self.name.clone(), value: self.value.clone() }
    }
}

impl SettingChoice {
    /// Commands of a shell that do the same for the measured `cpus` and do not restore it; none
    /// where it has that value.
    ///
    /// # Errors
    /// This machine has no such setting, or not this value.
    pub fn commands(&self, root: &Root, cpus: &Cpus) -> Result<Vec<String>, String> {
        let tid = |id: TaskId| id.tid;
        Ok(match wanted(self, Measured { root, cpus })? {
            (_, Wanted::Files(files)) => {
                let other = files.iter().filter(|file| !file.form.is_same(&file.now, &file.value));
                other.map(|file| format!("echo {} > {}", file.value, file.path)).collect()
            }
            (was, Wanted::Cpus(_, cpus)) if was == cpus.to_string() => Vec::new(),
            (_, Wanted::Cpus(id, cpus)) => vec![format!("taskset -pc {cpus} {}", tid(id))],
            (was, Wanted::Policy(_, policy)) if was == policy.words() => Vec::new(),
            (_, Wanted::Policy(id, policy)) => {
                let words = policy.words();
                let name = words.split(' ').next().unwrap_or_default();
                vec![format!("chrt --{name} -p {} {}", policy.priority, tid(id))]
            }
        })
    }
}

const HAVE: &str = "`tardy check --measure --dry-run` says which settings this machine has.";

fn refused(choice: &SettingChoice, why: String, remedy: &'static str) -> SetupError {
    SetupError::Choice { flag: choice.flag(), why, remedy }
}

/// What a setting is now, and what is to be written.
fn wanted(choice: &SettingChoice, measured: Measured<'_>) -> Result<(String, Wanted), String> {
    let is_now = choice.is_now();
    match choice.target {
        SettingTarget::TaskCpus(tid) => {
            let id = task(measured.root, tid)?;
            let now = tasks::cpus(measured.root, tid).ok_or_else(|| gone(tid))?;
            let value = if is_now { now.clone() } else { measured.cpus_of(&choice.value)? };
            Ok((now.to_string(), Wanted::Cpus(id, value)))
        }
        SettingTarget::TaskPolicy(tid) => {
            let id = task(measured.root, tid)?;
            let now = sched::raw_of_thread(tid).map_err(|_| gone(tid))?;
            if !now.is_plausible() {
                return Err(format!(
                    "task {tid} has policy {}, which tardy cannot restore",
                    now.words()
                ));
            }
            let value = if is_now { now } else { policy(&choice.value)? };
            // The flag by which children do not inherit it stays.
            let flag = now.policy & libc::SCHED_RESET_ON_FORK;
            let value = RawScheduling { policy: value.policy | flag, ..value };
            Ok((now.words(), Wanted::Policy(id, value)))
        }
        SettingTarget::Known(_) | SettingTarget::Interrupt(_) => {
            let place = choice.target.place().ok_or("it lives nowhere")?;
            let files = place.wanted(measured, &choice.value)?;
            Ok((place.now(measured, &files), Wanted::Files(files)))
        }
    }
}

fn task(root: &Root, tid: i32) -> Result<TaskId, String> {
    let start = tasks::start(root, tid).ok_or_else(|| gone(tid))?;
    Ok(TaskId { tid, start })
}

fn gone(tid: i32) -> String {
    format!("no task {tid}")
}

impl Wanted {
    fn changes(&self, root: &Root) -> Vec<Change> {
        match self {
            Self::Files(files) => {
                let is_other = |file: &&WantedFile| !file.form.is_same(&file.now, &file.value);
                let of = |file: &WantedFile| Change::of_file(root, &file.path);
                files.iter().filter(is_other).filter_map(of).collect()
            }
            Self::Cpus(id, _) => Change::of_cpus(root, *id).into_iter().collect(),
            Self::Policy(id, _) => Change::of_scheduling(*id).into_iter().collect(),
        }
    }
}

/// Writes one setting, and reads it back.
fn hold(root: &Root, planned: Planned<'_>, cpus: &Cpus) -> Result<HeldSetting, SetupError> {
    let Planned { choice, was, wanted } = planned;
    let mut number_refused = 0;
    let mut parts = Vec::new();
    match wanted {
        Wanted::Files(files) => {
            for file in files {
                match write(root, choice, &file)? {
                    Some(part) => parts.push(part),
                    None => number_refused += 1,
                }
            }
        }
        Wanted::Cpus(id, value) => {
            let written = if choice.is_now() { Ok(()) } else { value.pin(id.tid) };
            written.map_err(|error| refused(choice, plain(&error), RIGHTS))?;
            parts.push(HeldPart::Cpus(id, value));
        }
        Wanted::Policy(id, value) => {
            let written = if choice.is_now() { Ok(()) } else { sched::set_raw(id.tid, value) };
            written.map_err(|error| refused(choice, plain(&error), RIGHTS))?;
            parts.push(HeldPart::Policy(id, value));
        }
    }
    if parts.is_empty() {
        return Err(refused(choice, "the kernel refuses it for every one".into(), RIGHTS));
    }
    if let Some((place, was, now)) = parts.iter().find_map(|part| part.loss(root)) {
        let now = now.unwrap_or_else(|| "nothing".into());
        let why = format!("{place} accepted {was:?} but reads back {now:?}");
        return Err(refused(choice, why, "Ask who else sets it: a power daemon, a hypervisor."));
    }
    let found = words(choice, root, cpus).unwrap_or_else(|| was.clone());
    Ok(HeldSetting { choice: choice.clone(), was, found, refused: number_refused, parts })
}

const RIGHTS: &str = "Run as root, outside a container.";

/// What a setting is now, for people.
fn words(choice: &SettingChoice, root: &Root, cpus: &Cpus) -> Option<String> {
    let now = SettingChoice { value: super::NOW.into(), ..choice.clone() };
    wanted(&now, Measured { root, cpus }).ok().map(|(words, _)| words)
}

/// Writes a file where it has another value; nothing where the kernel may refuse it and does.
fn write(
    root: &Root,
    choice: &SettingChoice,
    file: &WantedFile,
) -> Result<Option<HeldPart>, SetupError> {
    let WantedFile { path, now, value, form, may_refuse } = file;
    let part = || HeldPart::File { path: path.clone(), value: value.clone(), form: *form };
    if form.is_same(now, value) {
        return Ok(Some(part()));
    }
    let Some(known) = KnownFile::find(path) else {
        return Err(refused(choice, format!("{path} is not a setting that tardy changes"), HAVE));
    };
    match known.write(root, value) {
        Ok(()) if *may_refuse && part().loss(root).is_some() => Ok(None),
        Ok(()) => Ok(Some(part())),
        Err(_) if *may_refuse => Ok(None),
        Err(error) => Err(refused(choice, format!("{path}: {}", plain(&error)), RIGHTS)),
    }
}

impl HeldPart {
    /// Where it is, what it was set to and what it is now, where that differs.
    fn loss(&self, root: &Root) -> Option<(String, String, Option<String>)> {
        match self {
            Self::File { path, value, form } => {
                let now = KnownFile::find(path).and_then(|file| file.read(root).ok());
                let is_same = now.as_ref().is_some_and(|now| form.is_same(now, value));
                (!is_same).then(|| (path.clone(), value.clone(), now))
            }
            Self::Cpus(id, cpus) => {
                let is_there = tasks::start(root, id.tid) == Some(id.start);
                let now = tasks::cpus(root, id.tid).filter(|_| is_there);
                let place = || format!("CPUs of task {}", id.tid);
                (now.as_ref() != Some(cpus))
                    .then(|| (place(), cpus.to_string(), now.map(|now| now.to_string())))
            }
            Self::Policy(id, policy) => {
                let is_there = tasks::start(root, id.tid) == Some(id.start);
                let now = sched::raw_of_thread(id.tid).ok().filter(|_| is_there);
                let place = || format!("policy of task {}", id.tid);
                (now != Some(*policy))
                    .then(|| (place(), policy.words(), now.map(RawScheduling::words)))
            }
        }
    }
}
