//! Where settings live: which files have one, what each holds, and what it is to hold.

use std::io;

use super::{AWAY, NOW};
use crate::{
    setup::{journal::KnownFile, threads::plain},
    sys::{cpus::Cpus, root::Root, tasks},
};

/// Where a setting lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SettingPlace {
    /// A file with one value.
    File(&'static str),
    /// A file of each measured CPU: what stands before its number, and behind it.
    OfCpus(&'static str, &'static str),
    /// A file with a mask of CPUs.
    Mask(&'static str),
    /// The switches of the idle states of the measured CPUs.
    IdleStates,
    /// The CPUs of every device interrupt that may fire on a measured CPU.
    Interrupts,
    /// The CPUs of one.
    Interrupt(u32),
}

/// How a file writes its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileForm {
    /// As it is.
    Text,
    /// A list of CPUs.
    List,
    /// A mask of CPUs.
    Mask,
}

/// A file and what it is to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WantedFile {
    /// Where.
    pub path: String,
    /// What it holds now.
    pub now: String,
    /// What it is to hold.
    pub value: String,
    /// How.
    pub form: FileForm,
    /// Whether the kernel may refuse it without harm: interrupts that it manages itself.
    pub may_refuse: bool,
}

impl FileForm {
    /// Whether two texts are the same value.
    pub(super) fn is_same(self, one: &str, other: &str) -> bool {
        let list = |text: &str| text.parse::<Cpus>().ok();
        let mask = |text: &str| Cpus::from_mask(text).ok();
        match self {
            Self::Text => one == other,
            Self::List => one == other || list(one).is_some_and(|one| list(other) == Some(one)),
            Self::Mask => one == other || mask(one).is_some_and(|one| mask(other) == Some(one)),
        }
    }
}

/// The measured CPUs, and all that are online.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured<'a> {
    pub root: &'a Root,
    pub cpus: &'a Cpus,
}

impl Measured<'_> {
    /// CPUs as a user names them: a list, or those that are not measured.
    pub(super) fn cpus_of(&self, value: &str) -> Result<Cpus, String> {
        let online: Cpus = self.root.value("/sys/devices/system/cpu/online").unwrap_or_default();
        if value != AWAY {
            let cpus: Cpus =
                value.parse().map_err(|_| format!("{value:?} is not a list of CPUs"))?;
            let missing = cpus.without(&online);
            if !missing.is_empty() && !online.is_empty() {
                return Err(format!("CPU {missing} is not online; online are {online}"));
            }
            return Ok(cpus);
        }
        let rest = online.without(self.cpus);
        if rest.is_empty() {
            return Err(
                "every CPU is measured, and none is left for it; name some with --cpus".into()
            );
        }
        Ok(rest)
    }

    /// What a file of the table holds.
    pub(super) fn read(&self, path: &str) -> Result<String, String> {
        let Some(file) = KnownFile::find(path) else {
            return Err(format!("{path} is not a setting that tardy changes"));
        };
        file.read(self.root).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => format!("this kernel or machine has no {path}"),
            _ => format!("{path}: {}", plain(&error)),
        })
    }

    fn one(&self, path: String, value: &str, form: FileForm) -> Result<WantedFile, String> {
        let now = self.read(&path)?;
        let value = if value == NOW { now.clone() } else { value.to_owned() };
        Ok(WantedFile { path, now, value, form, may_refuse: false })
    }
}

impl SettingPlace {
    /// The files that have it, each with what it holds and what it is to hold.
    ///
    /// # Errors
    /// This machine has no such setting, or not this value.
    pub(super) fn wanted(
        self,
        measured: Measured<'_>,
        value: &str,
    ) -> Result<Vec<WantedFile>, String> {
        match self {
            Self::File(path) => Ok(vec![measured.one(path.into(), value, FileForm::Text)?]),
            Self::OfCpus(before, after) => {
                let of = |cpu: u32| {
                    let path = format!("{before}{cpu}{after}");
                    measured.one(path, value, FileForm::Text)
                };
                measured.cpus.iter().map(of).collect()
            }
            Self::Mask(path) => {
                let mask = match value {
                    NOW => NOW.to_owned(),
                    _ => measured.cpus_of(value)?.to_mask(),
                };
                Ok(vec![measured.one(path.into(), &mask, FileForm::Mask)?])
            }
            Self::IdleStates => idle_states(measured, value),
            Self::Interrupts => interrupts(measured, value),
            Self::Interrupt(irq) => {
                let list = match value {
                    NOW => NOW.to_owned(),
                    _ => measured.cpus_of(value)?.to_string(),
                };
                Ok(vec![measured.one(affinity(irq), &list, FileForm::List)?])
            }
        }
    }

    /// What it is now, for people.
    pub(super) fn now(self, measured: Measured<'_>, files: &[WantedFile]) -> String {
        match self {
            Self::IdleStates => deepest(measured),
            Self::Interrupts => {
                let at = |file: &&WantedFile| {
                    file.now.parse::<Cpus>().is_ok_and(|cpus| cpus.meets(measured.cpus))
                };
                format!("{} of {} here", files.iter().filter(at).count(), files.len())
            }
            Self::Mask(_) => match files.first().map(|file| Cpus::from_mask(&file.now)) {
                Some(Ok(cpus)) => cpus.to_string(),
                _ => String::new(),
            },
            _ => {
                let mut values: Vec<&str> = files.iter().map(|file| file.now.as_str()).collect();
                values.dedup();
                values.join(", ")
            }
        }
    }
}

fn affinity(irq: u32) -> String {
    format!("/proc/irq/{irq}/smp_affinity_list")
}

/// Every state of the measured CPUs, off where leaving it takes longer than `value` us.
fn idle_states(measured: Measured<'_>, value: &str) -> Result<Vec<WantedFile>, String> {
    let longest_us: Option<u64> = value.parse().ok();
    let mut wanted = Vec::new();
    for cpu in measured.cpus.iter() {
        let directory = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle");
        for state in measured.root.names(&directory) {
            let file = |name: &str| format!("{directory}/{state}/{name}");
            let Some(exit_us) = measured.root.value::<u64>(file("latency")) else { continue };
            let off = longest_us.map(|longest_us| u8::from(exit_us > longest_us).to_string());
            let off = off.unwrap_or_else(|| NOW.into());
            wanted.push(measured.one(file("disable"), &off, FileForm::Text)?);
        }
    }
    if wanted.is_empty() {
        return Err("the measured CPUs have no idle states (no cpuidle driver)".into());
    }
    Ok(wanted)
}

/// "C6, 133 us", of the states that are not switched off.
fn deepest(measured: Measured<'_>) -> String {
    let mut deepest: Option<(u64, String)> = None;
    for cpu in measured.cpus.iter() {
        let directory = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle");
        for state in measured.root.names(&directory) {
            let file = |name: &str| format!("{directory}/{state}/{name}");
            let exit_us: u64 = measured.root.value(file("latency")).unwrap_or(0);
            let is_on = measured.root.read(file("disable")).as_deref() == Some("0");
            if is_on && deepest.as_ref().is_none_or(|(known, _)| *known < exit_us) {
                deepest = Some((exit_us, measured.root.read(file("name")).unwrap_or(state)));
            }
        }
    }
    deepest.map_or_else(|| "all off".into(), |(exit_us, name)| format!("{name}, {exit_us} us"))
}

/// Every interrupt that has handlers; those that may fire on a measured CPU go away from it.
fn interrupts(measured: Measured<'_>, value: &str) -> Result<Vec<WantedFile>, String> {
    let target = if value == NOW { None } else { Some(measured.cpus_of(value)?) };
    let numbers = tasks::numbers(&measured.root.path("/proc/irq"));
    let mut wanted = Vec::new();
    for irq in numbers.into_iter().filter_map(|irq| u32::try_from(irq).ok()) {
        let Ok(now) = measured.read(&affinity(irq)) else { continue };
        let Ok(cpus) = now.parse::<Cpus>() else { continue };
        let left = match &target {
            // Off the measured CPUs; where nothing would be left, to all others.
            Some(target) if value == AWAY => {
                let kept = cpus.common(target);
                if kept.is_empty() { target.clone() } else { kept }
            }
            Some(target) => target.clone(),
            None => cpus,
        };
        let (value, form) = (left.to_string(), FileForm::List);
        wanted.push(WantedFile { path: affinity(irq), now, value, form, may_refuse: true });
    }
    if wanted.is_empty() {
        return Err("/proc/irq has no interrupt that can be read".into());
    }
    Ok(wanted)
}
