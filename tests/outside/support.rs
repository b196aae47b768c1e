//! Starts tardy in its own store, waits with patience, and reads what it left.

use std::{
    collections::BTreeMap,
    fs,
    io::{ErrorKind, Read, Write},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Once,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread::{self, sleep},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// The program under test.
pub(crate) const TARDY: &str = env!("CARGO_BIN_EXE_tardy");

/// Long enough for any machine that is busy; nothing waits that long when all is well. A slow
/// machine may have a multiple: `TARDY_TEST_PATIENCE`.
pub(crate) fn patience() -> Duration {
    let times = std::env::var("TARDY_TEST_PATIENCE").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(120) * times.unwrap_or(1)
}

/// Longer than any test looks at a run, which it ends by a signal. The log of such a run has an
/// interval of a second.
pub(crate) const LONG: &str = "15m";

/// As [`LONG`], of runs that keep CPUs busy: a test need not wait long for the first interval of
/// the log, which takes 240 ms.
pub(crate) const SHORTLY_LOGGED: &str = "4m";

/// Some load that works, for tests to which it is all the same which: hackbench takes all CPUs.
pub(crate) const LIGHT_LOAD: &str = "burn:threads=1,share=10";

/// `nobody` on every distribution that matters.
pub(crate) const NOBODY: u32 = 65_534;

/// In the environment of every process that a test starts, and so of all below it.
const MARK: &str = "TARDY_TEST_MARK";

/// Measures for a short while, untraced; what differs from test to test follows.
pub(crate) const SHORT: [&str; 6] = ["run", "timer", "--warmup", "100ms", "--trace", "off"];

/// Its own store, removed at the end.
pub(crate) struct Store {
    directory: TempDir,
    mark: String,
    /// Whom tardy runs as; the caller where absent.
    user: Option<u32>,
    program: PathBuf,
}

impl Drop for Store {
    /// A test that fails leaves none of its processes: they may go before all others.
    fn drop(&mut self) {
        if thread::panicking() {
            let left = self.processes().into_iter().filter_map(Pid::from_raw);
            for pid in left {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// What a process that has ended said.
#[derive(Debug)]
pub(crate) struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Store {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        hear_signals();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self {
            directory: tempfile::tempdir().unwrap(),
            mark: format!("{}-{number}", std::process::id()),
            user: None,
            program: TARDY.into(),
        }
    }

    /// A store whose tardy has no rights: run by `nobody` where the caller is root.
    pub(crate) fn unprivileged() -> Self {
        let mut store = Self::new();
        if is_root() {
            // The build may lie where nobody else may look.
            let program = store.path().join("tardy");
            // By another process: a child that another test forks meanwhile would hold this one's
            // open file, and a file that is open for writing cannot be executed.
            let copied = Command::new("cp").arg(TARDY).arg(&program).status().unwrap();
            assert!(copied.success(), "{copied}");
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            std::os::unix::fs::chown(store.path(), Some(NOBODY), Some(NOBODY)).unwrap();
            store.program = program;
            store.user = Some(NOBODY);
        }
        store
    }

    /// The directory; runs lie in `runs` below it.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn runs(&self) -> PathBuf {
        self.path().join("runs")
    }

    /// tardy with these arguments, ready to be started.
    pub(crate) fn tardy<S: AsRef<str>>(&self, arguments: &[S]) -> Command {
        self.under(self.program.to_str().unwrap(), &[], arguments)
    }

    /// tardy started by a shell that first does `script`, `ulimit -v 100` say.
    pub(crate) fn shell<S: AsRef<str>>(&self, script: &str, arguments: &[S]) -> Command {
        let script = format!("{script}\nexec \"$0\" \"$@\"");
        self.under("sh", &["-c", &script, self.program.to_str().unwrap()], arguments)
    }

    fn under<S: AsRef<str>>(&self, program: &str, before: &[&str], arguments: &[S]) -> Command {
        let mut command = Command::new(program);
        command
            .args(before)
            .args(arguments.iter().map(AsRef::as_ref))
            .current_dir(self.path())
            .env("TARDY_STORE", self.runs())
            .env(MARK, &self.mark)
            .env("RUST_BACKTRACE", "0")
            .env_remove("NO_COLOR")
            .stdin(Stdio::null());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    /// tardy that may lock `bytes` of memory; if the caller is root, the limit is set before the
    /// privileges are given up.
    pub(crate) fn may_lock(&self, bytes: u64, arguments: &[&str]) -> Command {
        let Some(user) = self.user else {
            return self.shell(&format!("ulimit -l {} || exit 9", bytes >> 10), arguments);
        };
        let limit = format!("--memlock={bytes}:{bytes}");
        let (user, group) = (format!("--reuid={user}"), format!("--regid={user}"));
        let program = self.program.to_str().unwrap();
        let before = [&limit, "setpriv", &user, &group, "--clear-groups", program];
        let mut command = self.under("prlimit", &before, arguments);
        command.uid(0).gid(0);
        command
    }

    /// Runs tardy to its end.
    pub(crate) fn run<S: AsRef<str>>(&self, arguments: &[S]) -> Said {
        finish(self.start(arguments))
    }

    /// Starts tardy and leaves it to the caller.
    pub(crate) fn start<S: AsRef<str>>(&self, arguments: &[S]) -> Child {
        piped(&mut self.tardy(arguments))
    }

    /// Feeds made-up samples (`tardy::probes::fake`) into the run `r`, single ones kept.
    pub(crate) fn made_up(&self, samples: &str) {
        let run = ["run", "fake", "--warmup", "0s", "--cpus", "0", "--interval", "10us"];
        let said = self.run(
            &[&run[..], &["--unpaced", "--raw", "--samples", samples, "--name", "r"]].concat(),
        );
        assert_eq!(said.code, Some(0), "{said:?}");
    }

    /// Measures under `name` and returns the run's directory.
    pub(crate) fn measure(&self, name: &str, arguments: &[&str]) -> PathBuf {
        let said = self.run(&[&SHORT, arguments, &["--name", name]].concat());
        assert_eq!(said.code, Some(0), "{arguments:?}: {said:?}");
        self.runs().join(name)
    }

    /// `show --json`.
    pub(crate) fn show(&self, name: &str) -> Value {
        let said = self.run(&["show", name, "--json"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        serde_json::from_str(&said.out).unwrap()
    }

    /// The data of `report`'s page about these runs.
    pub(crate) fn page(&self, names: &[&str]) -> Value {
        let file = self.path().join("page.html");
        let out = ["-o", file.to_str().unwrap()];
        let said = self.run(&[&["report"], names, &out].concat());
        assert_eq!((said.code, said.out.as_str()), (Some(0), ""), "{said:?}");
        page_data(&fs::read_to_string(file).unwrap())
    }

    /// Measures untraced until [`Store::interrupt`], and waits until it does so.
    pub(crate) fn start_measuring(&self, name: &str, arguments: &[&str]) -> Child {
        let length = ["--duration", LONG, "--name", name];
        let child = self.start(&[&SHORT[..], &length, arguments].concat());
        self.wait_measuring(name);
        child
    }

    /// Ends a run as Ctrl-C does; its record.
    pub(crate) fn interrupt(&self, name: &str, child: Child) -> (Said, Value) {
        signal(&child, "INT");
        let said = finish(child);
        let record = self.show(name);
        assert_eq!(record["status"], "interrupted", "{said:?}");
        (said, record)
    }

    /// Samples of the first series so far.
    pub(crate) fn count(&self, name: &str) -> i64 {
        whole(&self.show(name)["series"][0]["count"])
    }

    /// Waits until the first series of a run in progress has a sample of `ns` or more. A thread
    /// that was stopped takes it when it has its CPU again, which others may have.
    pub(crate) fn wait_late(&self, name: &str, ns: i64) {
        let longest = || self.show(name)["series"][0]["max"].as_i64().unwrap_or(0);
        eventually("a late sample", || longest() >= ns);
    }

    /// Living processes that this store's tardies started, and themselves.
    pub(crate) fn processes(&self) -> Vec<i32> {
        let wanted = format!("{MARK}={}", self.mark);
        let is_ours = |pid: &i32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|word| word == wanted.as_bytes())
        };
        let pids = fs::read_dir("/proc").unwrap().flatten();
        pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_ours).collect()
    }

    /// Waits until the run has written an interval of every series.
    pub(crate) fn wait_measuring(&self, name: &str) {
        let log = self.runs().join(name).join("series.hlog");
        eventually("a first interval", || {
            fs::read_to_string(&log).is_ok_and(|text| text.contains("\nTag="))
        });
    }

    /// Until a sample of the run is in its log: the third field of an interval is its maximum.
    pub(crate) fn wait_sample(&self, name: &str) {
        let log = self.runs().join(name).join("series.hlog");
        let has_some = |line: &str| {
            let max = line.strip_prefix("Tag=").and_then(|line| line.split(',').nth(3));
            max.and_then(|max| max.parse::<f64>().ok()).is_some_and(|max| max > 0.0)
        };
        eventually("a first sample", || {
            fs::read_to_string(&log).is_ok_and(|text| text.lines().any(has_some))
        });
    }
}

/// With standard output and error caught.
pub(crate) fn piped(command: &mut Command) -> Child {
    hear_signals();
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    loop {
        match command.spawn() {
            // A copy of the program that was just written is open for writing in whatever another
            // test has forked meanwhile, until that has become its own program.
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                sleep(Duration::from_millis(5));
            }
            spawned => return spawned.unwrap(),
        }
    }
}

/// Waits for the end; a process that hangs is killed, and the test fails.
pub(crate) fn finish(child: Child) -> Said {
    finish_within(child, patience())
}

/// The same of a process that may take so long.
pub(crate) fn finish_within(mut child: Child, limit: Duration) -> Said {
    let out = read_all(child.stdout.take());
    let err = read_all(child.stderr.take());
    let deadline = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            let (out, err) = (out.join().unwrap(), err.join().unwrap());
            panic!("it hangs\nstdout: {out}\nstderr: {err}");
        }
        sleep(Duration::from_millis(5));
    };
    Said { code: status.code(), out: out.join().unwrap(), err: err.join().unwrap() }
}

fn read_all(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            pipe.read_to_end(&mut bytes).unwrap();
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Waits for a condition that must come true.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + patience();
    while !condition() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        sleep(Duration::from_millis(5));
    }
}

/// Lets the time of a stall pass, or the pause between two stalls, that the test itself plants.
/// Nobody else need have done anything meanwhile.
pub(crate) fn pause(time: Duration) {
    sleep(time);
}

/// Tries with more and more time until there was enough of it: for what must happen within a time
/// that cannot be made longer afterwards.
pub(crate) fn with_time<T>(within: impl FnMut(&str) -> Option<T>) -> T {
    ["2s", "8s", "32s", "128s"].into_iter().find_map(within).expect("enough time")
}

/// As [`with_time`], where half a second is enough most times.
pub(crate) fn with_little_time<T>(within: impl FnMut(&str) -> Option<T>) -> T {
    ["500ms", "2s", "8s", "32s", "128s"].into_iter().find_map(within).expect("enough time")
}

/// Sends a signal, `KILL` say, to one process.
pub(crate) fn signal(child: &Child, name: &str) {
    let signal = match name {
        "CONT" => Signal::CONT,
        "FPE" => Signal::FPE,
        "HUP" => Signal::HUP,
        "USR1" => Signal::USR1,
        "INT" => Signal::INT,
        "KILL" => Signal::KILL,
        "QUIT" => Signal::QUIT,
        "STOP" => Signal::STOP,
        "TERM" => Signal::TERM,
        "XCPU" => Signal::XCPU,
        other => panic!("no signal {other}"),
    };
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Whether a process ignores a signal.
pub(crate) fn ignores(pid: u32, signal: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & (1 << (signal - 1)) != 0
}

/// Lets every program that a test starts begin with the default action of signals that whoever
/// started the tests has ignored, as `nohup` and the background of a shell do: tardy would ignore
/// them, too.
fn hear_signals() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
            if ignores(std::process::id(), signal) {
                // A handler is the default action again in another program; here it does nothing.
                let noted = Arc::new(AtomicBool::new(false));
                signal_hook::flag::register(signal, noted).unwrap();
            }
        }
    });
}

/// Whether every thread of the process stands still.
pub(crate) fn is_stopped(pid: u32) -> bool {
    fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten().all(|task| {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
    })
}

/// Waits until the listener at a UDP port of loopback has read all that came.
pub(crate) fn wait_until_read(port: u16) {
    let own = format!(":{port:04X}");
    let unread = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words[1].ends_with(&own) && !words[4].ends_with(":00000000")
    };
    eventually("all is read", || {
        let table = fs::read_to_string("/proc/net/udp").unwrap();
        !table.lines().skip(1).any(unread)
    });
}

/// The JSON in a report page.
pub(crate) fn page_data(html: &str) -> Value {
    let begin = "<script type=\"application/json\" id=\"tardy-data\">";
    let at = html.find(begin).expect("the page has a block of data") + begin.len();
    let length = html[at..].find("</script>").expect("the block has an end");
    serde_json::from_str(&html[at..at + length]).unwrap()
}

/// `run.json` as it lies there.
pub(crate) fn read_record(run: &Path) -> Value {
    serde_json::from_slice(&fs::read(run.join("run.json")).unwrap()).unwrap()
}

/// Every file below `directory` with its content.
pub(crate) fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(contents(&path));
        } else {
            files.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    files
}

/// Copies a directory and what is in it.
pub(crate) fn copy(from: &Path, to: &Path) {
    for (path, bytes) in contents(from) {
        let place = to.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, bytes).unwrap();
    }
}

/// Writes a file that nobody else may read.
pub(crate) fn write_secret(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

/// The codes of a record's caveats.
pub(crate) fn codes(record: &Value) -> Vec<&str> {
    list(&record["caveats"]).iter().map(|caveat| caveat["code"].as_str().unwrap()).collect()
}

/// A JSON array.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().expect("an array")
}

/// A JSON number that is whole.
pub(crate) fn whole(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is not a whole number"))
}

/// Samples that a series has in its histogram.
pub(crate) fn in_histogram(series: &Value) -> i64 {
    whole(&series["count"]) - whole(&series["early"]) - whole(&series["above"])
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Says that a test did not run, past the harness, which hides what passing tests print; and notes
/// it in the file that `TARDY_TEST_SKIPS` names, for the account of what ran nowhere.
pub(crate) fn skip(why: &str) {
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    let _ = writeln!(std::io::stderr().lock(), "{name} skipped: {why}");
    // What is only too slow for each change runs in `make test-long`, and is not a gap.
    let is_slow = why.contains("TARDY_TEST_LONG");
    if let Some(file) = std::env::var_os("TARDY_TEST_SKIPS").filter(|_| !is_slow) {
        // One write a line, for tests skip at the same time.
        let line = format!("{name}\t{}\n", why.replace('\n', " "));
        let file = fs::OpenOptions::new().create(true).append(true).open(file);
        file.and_then(|mut file| file.write_all(line.as_bytes())).unwrap();
    }
}

/// Whether this is a guest of `cargo xtask vm`, where a test may change the whole machine.
pub(crate) fn in_guest() -> bool {
    std::env::var_os("TARDY_TEST_VM").is_some_and(|value| value == "1")
}

/// Whether this is a guest whose time is its count of instructions.
pub(crate) fn is_counted() -> bool {
    std::env::var_os("TARDY_TEST_COUNTED").is_some()
}
