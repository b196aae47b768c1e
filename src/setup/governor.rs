//! The frequency governor of the measured CPUs.

use std::fs;

use super::{
    SetupError,
    journal::{Change, Journal},
    threads::plain,
};
use crate::sys::{cpus::Cpus, root::Root};

fn path(cpu: u32) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")
}

/// Sets it, and reads it back.
///
/// # Errors
/// A CPU has no governor or not this one, the journal cannot be written, or the kernel refuses.
pub fn set(journal: &mut Journal, root: &Root, name: &str, cpus: &Cpus) -> Result<(), SetupError> {
    // CPUs may share one: all old values are read before the first is written.
    let mut changes = Vec::new();
    for cpu in cpus.iter() {
        changes.push(wanted(root, name, cpu)?);
    }
    journal.note(changes)?;
    for cpu in cpus.iter() {
        let path = path(cpu);
        let written = fs::write(root.path(&path), name);
        let found = root.read(&path).unwrap_or_default();
        if let Err(error) = written {
            let why = format!("{path}: {}", plain(&error));
            return Err(refused(name, why, "Run as root."));
        }
        if found != name {
            let why = format!("{path} accepted the value but reads back {found:?}");
            return Err(refused(name, why, "Ask who else sets it: a power daemon, a hypervisor."));
        }
    }
    Ok(())
}

fn refused(name: &str, why: String, remedy: &'static str) -> SetupError {
    SetupError::Choice { flag: format!("--governor {name}"), why, remedy }
}

fn wanted(root: &Root, name: &str, cpu: u32) -> Result<Change, SetupError> {
    let path = path(cpu);
    let Some(change) = Change::of_file(root, &path) else {
        return Err(refused(
            name,
            format!("CPU {cpu} has no frequency governor ({path} is missing)"),
            "Load the CPU's cpufreq driver; in a virtual machine set the governor on the host.",
        ));
    };
    let known = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_available_governors");
    match root.read(known) {
        Some(known) if !known.split_whitespace().any(|word| word == name) => Err(refused(
            name,
            format!("CPU {cpu} has {}", known.replace(' ', ", ")),
            "Choose one of these, or load the module cpufreq_NAME.",
        )),
        _ => Ok(change),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::journal::tests::journal_in;

    fn machine() -> (tempfile::TempDir, Root, Journal) {
        let directory = tempfile::tempdir().unwrap();
        let cpu = directory.path().join("sys/devices/system/cpu/cpu1/cpufreq");
        fs::create_dir_all(&cpu).unwrap();
        fs::write(cpu.join("scaling_governor"), "powersave\n").unwrap();
        let all = "conservative performance powersave\n";
        fs::write(cpu.join("scaling_available_governors"), all).unwrap();
        let root = Root::at(directory.path());
        let journal = journal_in(directory.path());
        (directory, root, journal)
    }

    fn error(name: &str, cpus: &str) -> String {
        let (_directory, root, mut journal) = machine();
        set(&mut journal, &root, name, &cpus.parse().unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn a_governor_is_set_and_put_back() {
        let (_directory, root, mut journal) = machine();
        set(&mut journal, &root, "performance", &"1".parse().unwrap()).unwrap();
        assert_eq!(root.read(path(1)).unwrap(), "performance");
        assert_eq!(journal.undo().put_back, [format!("{}: powersave", path(1))]);
        assert_eq!(root.read(path(1)).unwrap(), "powersave");
    }

    #[test]
    fn what_is_not_to_be_had_names_the_flag_and_what_there_is() {
        let text = error("fast", "1");
        assert!(text.starts_with("--governor fast is not available: CPU 1 has conservative, perf"));
        let text = error("performance", "0-1");
        assert!(text.contains("CPU 0 has no frequency governor") && text.contains("on the host"));
    }

    #[test]
    fn a_governor_that_cannot_be_written_is_an_error() {
        let (_directory, root, mut journal) = machine();
        let file = root.path(path(1));
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/sys/devices/system/cpu/possible", &file).unwrap();
        let cpus = "1".parse().unwrap();
        let text = set(&mut journal, &root, "performance", &cpus).unwrap_err().to_string();
        assert!(text.contains("scaling_governor: Permission denied"), "{text}");
    }
}
