//! One test in its own process: started as cargo does, waited for, and killed if it hangs.

use std::{
    fs::{self, File},
    io,
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, pidfd_open,
    waitid,
};
use tardy::sys::{child, notifier::Notifier, signals::Quit};

use super::{listing::TestCase, programs, results::Verdict};

/// In the environment of a test and of all processes that it starts, whoever their parent is.
const MARK: &str = "TARDY_TEST_PROCESS";

/// How long processes of a test that was killed may take to go away.
const AFTER_KILL: Duration = Duration::from_secs(10);

/// What all tests share.
pub(crate) struct Terms<'a> {
    /// A test that takes longer hangs.
    pub limit: Duration,
    /// Multiplies what tests wait for.
    pub patience: u32,
    /// Where outputs, lists of skipped tests and what tests share are written.
    pub directory: &'a Path,
    /// Signals that end everything.
    pub quit: &'a Quit,
    /// Words before the test's command: a program that runs it elsewhere.
    pub launcher: &'a [String],
}

/// A test that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub verdict: Verdict,
    pub took: Duration,
    pub cpu: Duration,
    pub output: String,
    /// Lines for the list of skipped tests, `NAME<tab>WHY`.
    pub skips: String,
}

/// Runs a test to its end in the calling thread, whose end kills it. `number` is unique.
pub(crate) fn run(
    case: &TestCase,
    number: usize,
    bell: &Notifier,
    terms: &Terms<'_>,
) -> Result<Ended> {
    let output_file = terms.directory.join(format!("{number}.output"));
    let skips_file = terms.directory.join(format!("{number}.skips"));
    let output = File::create(&output_file)
        .with_context(|| format!("cannot write {}", output_file.display()))?;
    let mark = format!("{}.{number}", std::process::id());
    let mut command = command(case, terms.launcher);
    command
        .env(MARK, &mark)
        .env("TARDY_TEST_PATIENCE", terms.patience.to_string())
        .env("TARDY_TEST_SKIPS", &skips_file)
        .env("TARDY_TEST_SHARED", terms.directory)
        .stdin(Stdio::null())
        .stderr(output.try_clone()?)
        .stdout(output)
        .process_group(0);
    child::end_with_this_thread(&mut command);
    let began = Instant::now();
    let mut child = command.spawn().with_context(|| format!("cannot run {}", case.full_name()))?;
    let waited = wait(&mut child, &mark, began, bell, terms)?;
    let took = began.elapsed();
    if waited.over.is_some() {
        end_all(&mark);
    }
    let mut output = String::from_utf8_lossy(&fs::read(&output_file)?).into_owned();
    output.push_str(&waited.processes);
    let skips = fs::read_to_string(&skips_file).unwrap_or_default();
    let _ = (fs::remove_file(&output_file), fs::remove_file(&skips_file));
    let verdict = match waited.over {
        Some(Over::Hangs) => Verdict::Failed(format!("hangs: killed after {} s", took.as_secs())),
        Some(Over::Interrupted) => Verdict::Failed("interrupted".into()),
        None => Verdict::of(&case.name, waited.status, &output, &skips),
    };
    Ok(Ended { verdict, took, cpu: waited.cpu, output, skips })
}

/// The test as cargo starts it.
fn command(case: &TestCase, launcher: &[String]) -> Command {
    let program = &case.program;
    let mut command = match launcher.split_first() {
        None => Command::new(&program.executable),
        Some((first, words)) => {
            let mut command = Command::new(first);
            command.args(words).arg(&program.executable);
            command
        }
    };
    command.args([case.name.as_str(), "--exact", "--nocapture"]);
    if case.is_ignored {
        command.arg("--include-ignored");
    }
    command
        .current_dir(&program.directory)
        .env("CARGO", programs::cargo())
        .env("CARGO_MANIFEST_DIR", &program.directory)
        .env("CARGO_MANIFEST_PATH", program.directory.join("Cargo.toml"))
        .env("CARGO_PKG_NAME", &program.package)
        .env("CARGO_PKG_VERSION", &program.version);
    command
}

/// Why a test was killed.
#[derive(Debug, Clone, Copy)]
enum Over {
    Hangs,
    Interrupted,
}

struct Waited {
    status: ExitStatus,
    cpu: Duration,
    over: Option<Over>,
    /// The processes of a test that hung, before they were killed.
    processes: String,
}

fn wait(
    child: &mut Child,
    mark: &str,
    began: Instant,
    bell: &Notifier,
    terms: &Terms<'_>,
) -> Result<Waited> {
    let pid = Pid::from_child(child);
    let end = pidfd_open(pid, PidfdFlags::empty()).context("pidfd_open")?;
    let (mut over, mut processes) = (None, String::new());
    loop {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        match waitid(WaitId::Pid(pid), options) {
            Ok(Some(_)) => break,
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(io::Error::from(error)).context("waitid"),
        }
        let left = terms.limit.saturating_sub(began.elapsed());
        if over.is_none() && (left.is_zero() || terms.quit.seen().is_some()) {
            over = Some(if left.is_zero() { Over::Hangs } else { Over::Interrupted });
            processes = describe(&marked(mark));
            // What it started in other groups is found by the mark.
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let left_ns = over.is_none().then(|| i64::try_from(left.as_nanos()).unwrap_or(i64::MAX));
        bell.wait_beside(Some(std::os::fd::AsFd::as_fd(&end)), left_ns);
    }
    let cpu = cpu_time(pid).unwrap_or_default();
    Ok(Waited { status: child.wait()?, cpu, over, processes })
}

/// CPU time of a process that has ended and was not waited for, with its children.
fn cpu_time(pid: Pid) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    cpu_ticks(&stat).map(|ticks| Duration::from_millis(ticks * 10))
}

/// utime, stime, cutime and cstime, in ticks of 10 ms (proc(5)).
fn cpu_ticks(stat: &str) -> Option<u64> {
    let after_name = stat.rsplit_once(") ")?.1;
    let fields: Vec<&str> = after_name.split(' ').collect();
    fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok()).sum()
}

/// Kills all processes that have the mark in their environment.
fn end_all(mark: &str) {
    let began = Instant::now();
    while began.elapsed() < AFTER_KILL {
        let found = marked(mark);
        if found.is_empty() {
            break;
        }
        for pid in found {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn marked(mark: &str) -> Vec<Pid> {
    let wanted = format!("{MARK}={mark}");
    let has_mark = |pid: &Pid| {
        let file = format!("/proc/{}/environ", pid.as_raw_nonzero());
        let environment = fs::read(file).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|word| word == wanted.as_bytes())
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(Pid::from_raw).filter(has_mark).collect()
}

/// A line for each: `4711 S hrtimer_nanosleep tardy run timer`.
fn describe(pids: &[Pid]) -> String {
    let line = |pid: &Pid| {
        let pid = pid.as_raw_nonzero();
        let read = |file: &str| {
            let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            String::from_utf8_lossy(&bytes).replace('\0', " ").trim().to_owned()
        };
        let stat = read("stat");
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        format!("{pid} {} {} {}\n", state.unwrap_or('?'), read("wchan"), read("cmdline"))
    };
    let lines: String = pids.iter().map(line).collect();
    format!("\n-- processes of this test, which were killed\n{lines}")
}

/// How a process ended, in words.
pub(super) fn words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "ended somehow".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_that_of_a_process_and_of_its_children() {
        let stat = "42 (a) b) Z 1 42 42 0 -1 4 0 0 0 0 7 3 20 10 20 0 1 0 5 0 0 0";
        assert_eq!(cpu_ticks(stat), Some(40));
        assert_eq!(cpu_ticks("42 (a) Z 1"), None);
    }

    #[test]
    fn processes_are_found_by_their_mark_and_killed() {
        let mark = format!("{}.test", std::process::id());
        let mut child = Command::new("sleep").arg("600").env(MARK, &mark).spawn().unwrap();
        let reaper = std::thread::spawn(move || child.wait().unwrap());
        // A program that has just begun has no environment yet.
        let deadline = Instant::now() + Duration::from_secs(120);
        while marked(&mark).is_empty() {
            assert!(Instant::now() < deadline, "in vain: a process with the mark");
            std::thread::yield_now();
        }
        let told = describe(&marked(&mark));
        assert!(told.contains("sleep 600"), "{told}");
        end_all(&mark);
        assert_eq!(reaper.join().unwrap().signal(), Some(9));
        assert!(marked(&mark).is_empty());
    }
}
