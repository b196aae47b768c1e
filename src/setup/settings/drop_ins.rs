//! Settings that help, as files that set them at each boot: sysctl, tmpfiles, a systemd service,
//! a tuned profile and the kernel's command line, with a script that undoes it all. Texts only;
//! nothing is installed.

use super::{Setting, places::Measured};
use crate::sys::{cpus::Cpus, root::Root};

/// A setting that is to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelpfulSetting {
    /// As in `--set`, or `shield` and `smt_siblings`.
    pub name: String,
    /// What keeping it may break.
    pub may_break: String,
    /// Files of the kernel, what each held and what it is to hold.
    pub writes: Vec<(String, String, String)>,
    /// The words of the kernel's command line that do it at boot; may be empty.
    pub boot: String,
}

/// A file to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropInFile {
    /// Below the directory that was asked for.
    pub path: &'static str,
    /// What it holds.
    pub text: String,
}

impl HelpfulSetting {
    /// A setting of the table as it is tried for the measured `cpus`.
    ///
    /// # Errors
    /// This machine has it not.
    pub fn of(setting: &Setting, root: &Root, cpus: &Cpus) -> Result<Self, String> {
        let measured = Measured { root, cpus };
        let files = setting.place.wanted(measured, setting.better)?;
        let changed = files.into_iter().filter(|file| !file.form.is_same(&file.now, &file.value));
        let writes = changed.map(|file| (file.path, file.now, file.value)).collect();
        let others = measured.cpus_of(super::AWAY).map(|cpus| cpus.to_string());
        let boot = setting.boot.replace("OTHERS", &others.unwrap_or_default());
        let (name, may_break) = (setting.name.into(), setting.may_break.into());
        Ok(Self { name, may_break, writes, boot })
    }
}

const SYSCTL: &str = "sysctl.d/90-tardy.conf";
const TMPFILES: &str = "tmpfiles.d/90-tardy.conf";
const SERVICE: &str = "systemd/tardy-settings.service";
const TUNED: &str = "tuned/tardy/tuned.conf";
const BOOT: &str = "kernel-command-line";
const UNDO: &str = "undo.sh";
const README: &str = "README";

/// The files for `settings`; empty without settings.
#[must_use]
pub fn drop_ins(settings: &[HelpfulSetting]) -> Vec<DropInFile> {
    if settings.is_empty() {
        return Vec::new();
    }
    let all = [
        (SYSCTL, sysctl(settings)),
        (TMPFILES, tmpfiles(settings)),
        (SERVICE, service(settings)),
        (TUNED, tuned(settings)),
        (BOOT, boot(settings)),
    ];
    let mut files: Vec<DropInFile> =
        all.into_iter().filter_map(|(path, text)| Some(DropInFile { path, text: text? })).collect();
    let names: Vec<&str> = files.iter().map(|file| file.path).collect();
    let readme = readme(settings, &names);
    files.push(DropInFile { path: UNDO, text: undo(settings) });
    files.push(DropInFile { path: README, text: readme });
    files
}

/// Where the value of a kernel's file is kept over a boot.
#[derive(PartialEq, Eq)]
enum BootFile {
    Sysctl,
    Tmpfiles,
    Service,
}

fn boot_file(path: &str) -> BootFile {
    match path {
        _ if path.starts_with("/proc/sys/") => BootFile::Sysctl,
        // Not there when tmpfiles are handled, or only then.
        _ if path.starts_with("/proc/irq/") || path.starts_with("/sys/kernel/debug/") => {
            BootFile::Service
        }
        _ => BootFile::Tmpfiles,
    }
}

/// `kernel.timer_migration`
fn sysctl_name(path: &str) -> String {
    path.trim_start_matches("/proc/sys/").replace('/', ".")
}

/// The lines of each setting that goes into `of`, below a comment with its name; `None` if none
/// does.
fn lines(
    settings: &[HelpfulSetting],
    of: &BootFile,
    line: impl Fn(&str, &str) -> String,
) -> Option<String> {
    let mut text = String::new();
    for setting in settings {
        let own = setting.writes.iter().filter(|(path, ..)| boot_file(path) == *of);
        let own: Vec<String> = own.map(|(path, _, value)| line(path, value)).collect();
        if !own.is_empty() {
            text.push_str(&format!("# {}; may break: {}\n", setting.name, setting.may_break));
            own.iter().for_each(|line| text.push_str(&format!("{line}\n")));
        }
    }
    (!text.is_empty()).then_some(text)
}

fn sysctl(settings: &[HelpfulSetting]) -> Option<String> {
    lines(settings, &BootFile::Sysctl, |path, value| format!("{} = {value}", sysctl_name(path)))
}

fn tmpfiles(settings: &[HelpfulSetting]) -> Option<String> {
    lines(settings, &BootFile::Tmpfiles, |path, value| format!("w {path} - - - - {value}"))
}

/// Writes at its start what sysctl and tmpfiles cannot, and the old values at its stop.
fn service(settings: &[HelpfulSetting]) -> Option<String> {
    let echo = |value: &str, path: &str| format!("-/bin/sh -c 'echo {value} > {path}'");
    let mut text = String::new();
    for (path, old, value) in settings.iter().flat_map(|setting| &setting.writes) {
        if boot_file(path) == BootFile::Service {
            text.push_str(&format!("ExecStart={}\n", echo(value, path)));
            text.push_str(&format!("ExecStop={}\n", echo(old, path)));
        }
    }
    (!text.is_empty()).then(|| {
        format!(
            "[Unit]\nDescription=Settings that tardy found to help\nAfter=sys-kernel-debug.mount \
             multi-user.target\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\n{text}\n\
             [Install]\nWantedBy=multi-user.target\n"
        )
    })
}

/// The same as a profile of tuned, which does without the other files.
fn tuned(settings: &[HelpfulSetting]) -> Option<String> {
    let writes = || settings.iter().flat_map(|setting| &setting.writes);
    let sysctl: String = writes()
        .filter(|(path, ..)| boot_file(path) == BootFile::Sysctl)
        .map(|(path, _, value)| format!("{}={value}\n", sysctl_name(path)))
        .collect();
    let sysfs: String = writes()
        .filter(|(path, ..)| boot_file(path) != BootFile::Sysctl)
        .map(|(path, _, value)| format!("{path}={value}\n"))
        .collect();
    let boot: Vec<&str> = boot_words(settings).collect();
    let mut text = String::from("[main]\nsummary=Settings that tardy found to help\n");
    for (head, body) in [("sysctl", sysctl), ("sysfs", sysfs)] {
        if !body.is_empty() {
            text.push_str(&format!("\n[{head}]\n{body}"));
        }
    }
    if !boot.is_empty() {
        text.push_str(&format!("\n[bootloader]\ncmdline_tardy={}\n", boot.join(" ")));
    }
    (writes().next().is_some() || !boot.is_empty()).then_some(text)
}

fn boot_words(settings: &[HelpfulSetting]) -> impl Iterator<Item = &str> {
    settings.iter().map(|setting| setting.boot.as_str()).filter(|boot| !boot.is_empty())
}

fn boot(settings: &[HelpfulSetting]) -> Option<String> {
    let words: Vec<&str> = boot_words(settings).collect();
    (!words.is_empty()).then(|| format!("{}\n", words.join(" ")))
}

/// Puts the values back that the machine has now, and takes away what was installed.
fn undo(settings: &[HelpfulSetting]) -> String {
    let mut text = String::from(
        "#!/bin/sh\n# Restores what the machine had before, and removes what README installs.\n\
         systemctl disable --now tardy-settings.service 2>/dev/null\n\
         rm -f /etc/sysctl.d/90-tardy.conf /etc/tmpfiles.d/90-tardy.conf \
         /etc/systemd/system/tardy-settings.service\n",
    );
    for (path, old, _) in settings.iter().flat_map(|setting| &setting.writes) {
        text.push_str(&format!("echo '{old}' > {path}\n"));
    }
    let words: Vec<&str> = boot_words(settings).collect();
    if !words.is_empty() {
        text.push_str(&format!(
            "echo 'Take these off the kernel command line, where you put them there: {}'\n",
            words.join(" ")
        ));
    }
    text
}

fn readme(settings: &[HelpfulSetting], files: &[&str]) -> String {
    let mut text = String::from(
        "Settings that helped on this machine under the load that was measured (tardy check \
         --measure).\nNothing here is installed. Each line of a file has what it may break; read \
         it first.\n\n",
    );
    let steps = [
        (SYSCTL, "cp sysctl.d/90-tardy.conf /etc/sysctl.d/ && sysctl --system"),
        (TMPFILES, "cp tmpfiles.d/90-tardy.conf /etc/tmpfiles.d/ && systemd-tmpfiles --create"),
        (
            SERVICE,
            "cp systemd/tardy-settings.service /etc/systemd/system/ && systemctl enable --now \
             tardy-settings",
        ),
        (TUNED, "or, instead of these: cp -r tuned/tardy /etc/tuned/ && tuned-adm profile tardy"),
        (BOOT, "at boot: add the words of kernel-command-line to the kernel's command line"),
    ];
    for (path, step) in steps.iter().filter(|(path, _)| files.contains(path)) {
        text.push_str(&format!("{path}:\n    {step}\n"));
    }
    text.push_str("undo.sh:\n    sh undo.sh\n\n");
    for HelpfulSetting { name, may_break, .. } in settings {
        text.push_str(&format!("{name} may break: {may_break}\n"));
    }
    text
}
