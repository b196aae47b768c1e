//! What a name of `--set` is about.

use super::{Setting, SettingPlace, SettingValues, table};

/// What a name of `--set` is about.
#[derive(Debug, Clone, Copy)]
pub enum SettingTarget {
    /// A setting of the table.
    Known(&'static Setting),
    /// The CPUs on which this interrupt fires.
    Interrupt(u32),
    /// The CPUs on which this task runs.
    TaskCpus(i32),
    /// Policy and priority of this task.
    TaskPolicy(i32),
}

impl SettingTarget {
    /// Reads a name.
    ///
    /// # Errors
    /// What there is instead.
    pub fn find(name: &str) -> Result<Self, String> {
        if let Some(setting) = Setting::find(name) {
            return Ok(Self::Known(setting));
        }
        let parts: Vec<&str> = name.split(':').collect();
        let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number < 1 << 30);
        let task = |text: &str| i32::try_from(number(text)?).ok().filter(|tid| *tid > 0);
        let found = match parts.as_slice() {
            ["irq", irq] => number(irq).map(Self::Interrupt),
            ["task", tid, "cpus"] => task(tid).map(Self::TaskCpus),
            ["task", tid, "policy"] => task(tid).map(Self::TaskPolicy),
            _ => None,
        };
        found.ok_or_else(|| {
            let known: Vec<&str> = table().map(|setting| setting.name).collect();
            format!(
                "no setting is called {name:?}; use {}, irq:N, task:TID:cpus or task:TID:policy",
                known.join(", ")
            )
        })
    }

    /// Refuses what cannot be a value of it.
    pub(super) fn check(self, value: &str) -> Result<(), String> {
        match self {
            Self::Known(setting) => setting.values.check(value),
            Self::Interrupt(_) | Self::TaskCpus(_) => SettingValues::Cpus.check(value),
            Self::TaskPolicy(_) => policy(value).map(drop),
        }
    }

    pub(super) const fn place(self) -> Option<SettingPlace> {
        match self {
            Self::Known(setting) => Some(setting.place),
            Self::Interrupt(irq) => Some(SettingPlace::Interrupt(irq)),
            Self::TaskCpus(_) | Self::TaskPolicy(_) => None,
        }
    }
}

/// Reads `other`, `batch`, `idle`, `fifo:N` or `rr:N`.
pub(super) fn policy(text: &str) -> Result<crate::sys::sched::RawScheduling, String> {
    let (name, priority) = match text.split_once(':') {
        Some((name, number)) => (name, number.parse::<i32>().ok()),
        None => (text, Some(0)),
    };
    let number = match name {
        "other" => Some(libc::SCHED_OTHER),
        "batch" => Some(libc::SCHED_BATCH),
        "idle" => Some(libc::SCHED_IDLE),
        "fifo" => Some(libc::SCHED_FIFO),
        "rr" => Some(libc::SCHED_RR),
        _ => None,
    };
    let found = number.zip(priority);
    let found = found
        .map(|(policy, priority)| crate::sys::sched::RawScheduling { policy, priority })
        .filter(|found| found.is_plausible());
    found.ok_or_else(|| {
        format!(
            "{text:?} is not a policy; use other, batch, idle, fifo:N or rr:N with N from 1 to 99"
        )
    })
}

impl SettingValues {
    fn check(self, value: &str) -> Result<(), String> {
        match self {
            Self::Number(least, most) => {
                let is_one =
                    value.parse().is_ok_and(|number: i64| (least..=most).contains(&number));
                is_one.then_some(()).ok_or_else(|| format!("use a number from {least} to {most}"))
            }
            Self::Words(words) => {
                let known = words.join(", ");
                words.contains(&value).then_some(()).ok_or_else(|| format!("use one of {known}"))
            }
            Self::Name => {
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
                let is_name = (1..=32).contains(&value.len()) && value.bytes().all(is_plain);
                is_name.then_some(()).ok_or_else(|| "use a name of letters, digits, _ and -".into())
            }
            Self::Cpus => {
                let is_list = value.parse::<crate::sys::cpus::Cpus>().is_ok_and(|c| !c.is_empty());
                let is_known = is_list || value == super::AWAY;
                let words = "use a list of CPUs such as 0-2,5, or away";
                is_known.then_some(()).ok_or_else(|| words.into())
            }
        }
    }
}
