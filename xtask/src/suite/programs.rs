//! The test programs that cargo builds, and where it put them.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// A program with tests, and the package that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TestProgram {
    /// Name of its target; `NAME-bin` where a library has the same name.
    pub name: String,
    /// The built program.
    pub executable: PathBuf,
    /// Directory of the package, in which cargo runs its tests.
    pub directory: PathBuf,
    /// Name of the package.
    pub package: String,
    /// Version of the package, where the package's identifier has one.
    pub version: String,
}

/// What cargo is to build.
#[derive(Debug, Default)]
pub(crate) struct BuildRequest<'a> {
    /// Targets of the kind `test`; if empty, all that `cargo test` has.
    pub targets: &'a [String],
    /// With optimizations.
    pub release: bool,
}

/// The cargo that started this program, or that of the path.
pub(crate) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Has cargo build test programs of the workspace; its messages.
pub(crate) fn build(request: &BuildRequest<'_>) -> Result<String> {
    let mut command = Command::new(cargo());
    // As `make programs` builds them, so that nothing is built twice.
    command.args(["test", "--workspace", "--locked", "--no-run"]);
    command.args(request.targets.iter().flat_map(|name| ["--test", name.as_str()]));
    if request.release {
        command.arg("--release");
    }
    command.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
    let output = command.output().context("cannot run cargo")?;
    ensure!(output.status.success(), "the tests do not build");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The executable of a target in the messages of `cargo --message-format=json`.
pub(crate) fn executable(messages: &str, name: &str, kind: &str) -> Option<PathBuf> {
    let mut built = artifacts(messages);
    built.reverse();
    // The tests inside a program are another program of the same name and kind.
    let is_it = |built: &&Artifact| {
        built.name == name && built.kind == kind && (kind == "test" || !built.is_test)
    };
    built.iter().find(is_it)?.executable.clone()
}

/// All programs with tests in these messages, by name.
pub(crate) fn test_programs(messages: &str) -> Vec<TestProgram> {
    let mut built = artifacts(messages);
    built.retain(|built| built.is_test);
    let has_library: BTreeSet<String> = built
        .iter()
        .filter(|built| !["bin", "test"].contains(&built.kind.as_str()))
        .map(|built| built.name.clone())
        .collect();
    let mut programs: Vec<TestProgram> = built
        .into_iter()
        .filter_map(|built| {
            let is_second = built.kind == "bin" && has_library.contains(&built.name);
            let name = if is_second { format!("{}-bin", built.name) } else { built.name };
            Some(TestProgram {
                name,
                executable: built.executable?,
                directory: built.directory,
                package: built.package,
                version: built.version,
            })
        })
        .collect();
    programs.sort_by(|one, other| one.name.cmp(&other.name));
    programs
}

/// What one message of cargo says about a target that was built, or was fresh.
struct Artifact {
    name: String,
    kind: String,
    is_test: bool,
    executable: Option<PathBuf>,
    directory: PathBuf,
    package: String,
    version: String,
}

fn artifacts(messages: &str) -> Vec<Artifact> {
    messages.lines().filter_map(|line| artifact(&serde_json::from_str(line).ok()?)).collect()
}

fn artifact(message: &Value) -> Option<Artifact> {
    let target = &message["target"];
    let directory = message["manifest_path"].as_str().and_then(|path| Path::new(path).parent());
    let directory = directory.unwrap_or(Path::new("")).to_owned();
    let (package, version) = package(message["package_id"].as_str().unwrap_or_default());
    Some(Artifact {
        name: target["name"].as_str()?.to_owned(),
        kind: target["kind"].as_array()?.first()?.as_str()?.to_owned(),
        is_test: message["profile"]["test"] == true,
        executable: message["executable"].as_str().map(PathBuf::from),
        directory,
        package,
        version,
    })
}

/// Name and version in an identifier: `path+file:///src/tardy#0.2.0`, or `...#tardy@0.2.0` where
/// the directory has another name.
fn package(id: &str) -> (String, String) {
    let (place, rest) = id.rsplit_once('#').unwrap_or((id, ""));
    let in_path = || place.rsplit('/').next().unwrap_or_default().to_owned();
    match rest.split_once('@') {
        Some((name, version)) => (name.to_owned(), version.to_owned()),
        None => (in_path(), rest.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: &str, name: &str, test: bool, executable: &str) -> String {
        format!(
            "{{\"reason\":\"compiler-artifact\",\"package_id\":\"path+file:///w/x#{name}@0.2.0\",\
             \"manifest_path\":\"/w/x/Cargo.toml\",\
             \"target\":{{\"kind\":[\"{kind}\"],\"name\":\"{name}\"}},\
             \"profile\":{{\"test\":{test}}},\"executable\":{executable}}}\n"
        )
    }

    #[test]
    fn executables_are_found_by_name_and_kind() {
        let text = [
            message("lib", "tardy", false, "null"),
            message("bin", "tardy", false, "\"/t/tardy\""),
            message("bin", "tardy", true, "\"/t/deps/tardy-1\""),
            message("test", "outside", true, "\"/t/deps/outside-1\""),
            "no json".into(),
        ]
        .concat();
        assert_eq!(executable(&text, "tardy", "bin"), Some("/t/tardy".into()));
        assert_eq!(executable(&text, "tardy", "lib"), None);
        assert_eq!(executable(&text, "outside", "test"), Some("/t/deps/outside-1".into()));
        assert_eq!(executable(&text, "lab", "test"), None);
    }

    #[test]
    fn programs_with_tests_have_a_name_each() {
        let text = [
            message("test", "outside", true, "\"/t/deps/outside-1\""),
            message("bin", "tardy", true, "\"/t/deps/tardy-2\""),
            message("bin", "tardy", false, "\"/t/tardy\""),
            message("bin", "xtask", true, "\"/t/deps/xtask-4\""),
            message("lib", "tardy", true, "\"/t/deps/tardy-3\""),
        ]
        .concat();
        let programs = test_programs(&text);
        let names: Vec<(&str, &str)> = programs
            .iter()
            .map(|program| (program.name.as_str(), program.executable.to_str().unwrap()))
            .collect();
        assert_eq!(
            names,
            [
                ("outside", "/t/deps/outside-1"),
                ("tardy", "/t/deps/tardy-3"),
                ("tardy-bin", "/t/deps/tardy-2"),
                ("xtask", "/t/deps/xtask-4"),
            ]
        );
        assert_eq!(programs[0].directory, Path::new("/w/x"));
        assert_eq!(
            (programs[1].package.as_str(), programs[1].version.as_str()),
            ("tardy", "0.2.0")
        );
    }

    #[test]
    fn a_package_is_named_by_its_directory_or_by_itself() {
        let names = |id| package(id);
        assert_eq!(names("path+file:///w/xtask#0.2.0"), ("xtask".into(), "0.2.0".into()));
        assert_eq!(names("path+file:///w/main#tardy@0.2.0"), ("tardy".into(), "0.2.0".into()));
    }
}
