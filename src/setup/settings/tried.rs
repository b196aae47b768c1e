//! Which settings of the table can be tried on this machine, and which cannot, and why.

use rustix::fs::{Access, access};

use super::{Setting, places::Measured, table};
use crate::{
    setup::threads::plain,
    sys::{cpus::Cpus, root::Root},
};

/// Why a setting is not tried here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrialRefusal {
    /// It has the value that would be tried.
    IsSo(String),
    /// It cannot be: what is in the way.
    Cannot(String),
}

/// Each setting of the table with what it is now for the measured `cpus`, or why it is not tried.
#[must_use]
pub fn trials(root: &Root, cpus: &Cpus) -> Vec<(&'static Setting, Result<String, TrialRefusal>)> {
    table().map(|setting| (setting, trial(setting, Measured { root, cpus }))).collect()
}

fn trial(setting: &Setting, measured: Measured<'_>) -> Result<String, TrialRefusal> {
    let files = setting.place.wanted(measured, setting.better).map_err(TrialRefusal::Cannot)?;
    let now = setting.place.now(measured, &files);
    if files.iter().all(|file| file.form.is_same(&file.now, &file.value)) {
        return Err(TrialRefusal::IsSo(now));
    }
    for file in files.iter().filter(|file| !file.may_refuse) {
        let path = measured.root.path(&file.path);
        access(&path, Access::WRITE_OK).map_err(|error| {
            let why = plain(&std::io::Error::from(error));
            TrialRefusal::Cannot(format!("{} cannot be written: {why}", file.path))
        })?;
    }
    if setting.name == "governor" {
        known_governor(setting, measured)?;
    }
    Ok(now)
}

fn known_governor(setting: &Setting, measured: Measured<'_>) -> Result<(), TrialRefusal> {
    for cpu in measured.cpus.iter() {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_available_governors");
        let known = measured.root.read(path);
        if known.as_ref().is_some_and(|known| !known.split(' ').any(|name| name == setting.better))
        {
            let known = known.unwrap_or_default();
            let why = format!("CPU {cpu} has no governor {}, but {known}", setting.better);
            return Err(TrialRefusal::Cannot(why));
        }
    }
    Ok(())
}
