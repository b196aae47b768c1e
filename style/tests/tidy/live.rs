//! Rules for tests beside a live clock: none waits for a fixed time or measures one itself, and one
//! that is ignored says why, and what proves the same in its place.

use std::collections::BTreeMap;

use super::{assert_none, function_name, rust_files, text};

/// Files of test code that may sleep and read the clock: what they offer to tests waits for a fact,
/// or is a worker whose sleeps are measured.
/// And this file, which quotes such lines.
const SUPPORT: &[&str] = &[
    "tests/lab/support.rs",
    "tests/loads/support.rs",
    "tests/outside/support.rs",
    "style/tests/tidy/live.rs",
];

/// How many lines still sleep or measure time in other test code. Only ever gets shorter and
/// smaller: lower a number when you remove such a line.
const WAITS: &[(&str, usize)] = &[
    ("crates/tardy-hot/src/receive/tests.rs", 1),
    ("crates/tardy-hot/src/stream/tests.rs", 1),
    ("src/lab/guest/output_port.rs", 1),
    ("src/lab/matrix/scheduler/tests.rs", 1),
    ("src/loads/scratch.rs", 1),
    ("src/probes/attach/command.rs", 1),
    ("src/probes/interactive/tests.rs", 3),
    ("src/probes/irq.rs", 1),
    ("src/probes/measured_thread.rs", 1),
    ("src/probes/noise/tests.rs", 1),
    ("src/sys/notifier.rs", 1),
    ("src/sys/zmq/tests.rs", 1),
    ("tests/outside/attach.rs", 4),
    ("tests/outside/attach_response.rs", 1),
    ("tests/outside/attach_room.rs", 2),
    ("tests/outside/attach_sleeps.rs", 1),
    ("tests/outside/attach_zmq.rs", 1),
    ("tests/outside/loads.rs", 2),
    ("xtask/src/inject/mutex.rs", 1),
    ("xtask/tests/truth/main.rs", 1),
];

/// How the reason of an ignored test begins that has a twin, whose path follows.
const LIVE: &str = "live: twin ";
/// And that of one which is only too slow for each change.
const LONG: &str = "long: ";

/// The lines of a file that are test code.
fn test_code<'a>(path: &str, text: &'a str) -> Vec<&'a str> {
    let is_whole =
        path.starts_with("tests/") || path.contains("/tests/") || path.ends_with("/tests.rs");
    text.lines().skip_while(|line| !is_whole && *line != "#[cfg(test)]").collect()
}

/// Whether a line sleeps, or reads how long something took.
fn waits(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let sleeps = code.match_indices("sleep(").any(|(at, _)| {
        let (before, after) = code.split_at(at);
        // One that is written into made-up events takes no time.
        if after.starts_with("sleep(&mut ") {
            return false;
        }
        let is_other = |c: char| c.is_alphanumeric() || "_.:".contains(c);
        before.ends_with("thread::") || !before.ends_with(is_other) && !before.ends_with("fn ")
    });
    sleeps || code.contains(".elapsed()") || code.contains("Instant::elapsed")
}

/// Files with more waiting lines than they may have, by path and content.
fn wrong_waits(files: &[(String, String)], may: &[(&str, usize)]) -> Vec<String> {
    let allowed: BTreeMap<&str, usize> = may.iter().copied().collect();
    let wrong = |(path, text): &(String, String)| {
        let found = test_code(path, text).into_iter().filter(|line| waits(line)).count();
        let most = allowed.get(path.as_str()).copied().unwrap_or(0);
        let told = format!(
            "{path}: {found} lines sleep or measure time, {most} may: wait for a fact \
             (support::eventually), or take time as a value"
        );
        (found > most && !SUPPORT.contains(&path.as_str())).then_some(told)
    };
    files.iter().filter_map(wrong).collect()
}

/// A function with `#[test]`, and the reason of its `#[ignore]`, empty without one.
#[derive(Debug, PartialEq, Eq)]
struct TestFunction {
    name: String,
    ignored: Option<String>,
}

fn test_functions(text: &str) -> Vec<TestFunction> {
    let (mut found, mut attributes) = (Vec::new(), String::new());
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
        let is_open = !attributes.is_empty() && !attributes.ends_with(']');
        if line.starts_with("#[") || is_open {
            // A text that is broken continues behind a backslash.
            attributes = attributes.trim_end_matches('\\').to_owned() + line;
            continue;
        }
        if let Some(name) = function_name(line).filter(|_| attributes.contains("#[test]")) {
            found.push(TestFunction { name, ignored: reason(&attributes) });
        }
        attributes.clear();
    }
    found
}

/// Of `#[ignore = "why"]` the text.
fn reason(attributes: &str) -> Option<String> {
    let (_, rest) = attributes.split_once("#[ignore")?;
    let text = rest.strip_prefix(" = \"").and_then(|rest| rest.split_once("\"]"));
    Some(text.map_or_else(String::new, |(text, _)| text.to_owned()))
}

/// Ignored tests without a reason, or without a twin that runs.
fn wrongly_ignored(tests: &[TestFunction]) -> Vec<String> {
    let runs = |name: &str| tests.iter().any(|test| test.name == name && test.ignored.is_none());
    let wrong = |test: &TestFunction| {
        let (name, reason) = (&test.name, test.ignored.as_ref()?);
        let Some(twin) = reason.strip_prefix(LIVE) else {
            let is_long = reason.strip_prefix(LONG).is_some_and(|why| !why.is_empty());
            return (!is_long).then(|| format!("{name}: its reason is neither {LIVE}nor {LONG}"));
        };
        let function = twin.rsplit("::").next().unwrap_or_default();
        (!runs(function)).then(|| format!("{name}: its twin {twin} is not a test that runs"))
    };
    tests.iter().filter_map(wrong).collect()
}

#[test]
fn tests_wait_for_facts_and_not_for_a_time() {
    let read = |path: std::path::PathBuf| (path.display().to_string(), text(&path));
    let files: Vec<(String, String)> = rust_files().into_iter().map(read).collect();
    assert_none(&wrong_waits(&files, WAITS));
}

#[test]
fn every_ignored_test_says_why_and_a_live_one_has_a_twin() {
    let tests: Vec<TestFunction> =
        rust_files().iter().flat_map(|path| test_functions(&text(path))).collect();
    assert!(tests.len() > 1_000, "the tests are found: {}", tests.len());
    assert_none(&wrongly_ignored(&tests));
}

#[test]
fn each_way_to_wait_is_found() {
    let found = ["  sleep(PAUSE);", "std::thread::sleep(x)", "a.elapsed()", "|| thread::sleep(x)"];
    assert!(found.iter().all(|line| waits(line)));
    let other = ["fn sleep(x)", "self.sleep(x)", "nanosleep(x)", "// sleep(x)", "sleep(&mut x, 1)"];
    assert!(!other.iter().any(|line| waits(line)));
}

#[test]
fn more_waits_than_are_known_are_found() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let files = [
        file("tests/a.rs", "sleep(x)\nb.elapsed()\n"),
        file("src/a.rs", "sleep(x)\n#[cfg(test)]\nmod tests {\n    sleep(x);\n}\n"),
        file("src/a/tests.rs", "sleep(x)\n"),
        file("src/b.rs", "sleep(x)\n"),
        file(SUPPORT[0], "sleep(x)\n"),
    ];
    let right = [("tests/a.rs", 2), ("src/a.rs", 1), ("src/a/tests.rs", 1)];
    assert_eq!(wrong_waits(&files, &right), [""; 0]);
    let wrong = wrong_waits(&files, &[("tests/a.rs", 1), ("src/a.rs", 2), ("tests/gone.rs", 1)]);
    let found: Vec<&str> = wrong.iter().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(found, ["tests/a.rs", "src/a/tests.rs"]);
}

#[test]
fn tests_are_found_with_the_reasons_why_they_are_ignored() {
    let source = "#[test]\nfn a() {}\n\n#[test]\n#[ignore = \"long: slow\"]\nfn b() {}\n\
                  #[test]\n#[ignore]\nfn c() {}\n#[test]\n#[ignore = \"live: twin \\\n    x::a\"]\n\
                  // Why.\nfn d() {}\n#[inline]\nfn e() {}\n";
    let test = |name: &str, ignored: Option<&str>| TestFunction {
        name: name.to_owned(),
        ignored: ignored.map(str::to_owned),
    };
    let (a, b, c) = (test("a", None), test("b", Some("long: slow")), test("c", Some("")));
    let d = test("d", Some("live: twin x::a"));
    let tests = test_functions(source);
    assert_eq!(tests, [a, b, c, d]);
    assert_eq!(wrongly_ignored(&tests), ["c: its reason is neither live: twin nor long: "]);
    let ignored = [test("f", Some("live: twin x::b")), test("b", Some("long: x"))];
    assert_eq!(wrongly_ignored(&ignored), ["f: its twin x::b is not a test that runs"]);
}
