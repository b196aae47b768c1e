//! Takes out of a run what names the machine, its user's files, and other people's programs.

use std::net::{IpAddr, SocketAddr};

use serde_json::{Map, Value};

use crate::run::Document;

/// What stands for what was taken out.
const REDACTED: &str = "(redacted)";

/// What words with a slash may end with, which are not paths: units, stages, and threads.
const AFTER_SLASH: &[&str] = &[
    "s", "irq", "softirq", "handler", "dispatch", "user", "response", "run", "ready", "waits",
    "Linux",
];

/// What names of the kernel's threads, and of tardy's, begin with.
const OF_KERNEL: &[&str] = &[
    "cpuhp/",
    "idle_inject/",
    "irq/",
    "ksoftirqd/",
    "ktimers/",
    "kworker/",
    "migration/",
    "rcuc/",
    "rcuog/",
    "rcuop/",
    "swapper/",
    "tardy/",
    "watchdog/",
];

/// Boot parameters whose values bear on latency and are of nobody in particular; of others only
/// the name is kept.
const BOOT_PARAMETERS: &[&str] = &[
    "clocksource",
    "cpufreq.default_governor",
    "cpuidle.governor",
    "default_hugepagesz",
    "hugepages",
    "hugepagesz",
    "idle",
    "intel_idle.max_cstate",
    "intel_pstate",
    "irqaffinity",
    "isolcpus",
    "kthread_cpus",
    "mce",
    "mitigations",
    "nmi_watchdog",
    "nohz",
    "nohz_full",
    "nosmt",
    "numa_balancing",
    "preempt",
    "processor.max_cstate",
    "rcu_nocbs",
    "skew_tick",
    "transparent_hugepage",
    "tsc",
];

/// Fields that tie files of a run together, or name a thread or a function.
const KEPT: &[&str] =
    &["id", "name", "run", "series", "stage_of", "thread_of", "task", "started_at", "ended_at"];

/// Parameters of probes and loads that name a file, another machine, or a command.
const REMOVED: &[&str] =
    &["command", "device", "dir", "directory", "file", "info", "path", "server", "to"];

/// Digits of the shortest address in memory.
const LEAST_POINTER: usize = 8;

/// The shortest first part of a host name by which a machine is named.
const LEAST_LABEL: usize = 3;

/// What is taken out of one run.
#[derive(Debug)]
pub(super) struct Redaction {
    /// The host name, and its first part, in small letters.
    hosts: Vec<String>,
}

impl Redaction {
    /// Of the run with this record.
    pub(super) fn of(document: &Document) -> Self {
        Self::of_host(&document.facts.hostname)
    }

    fn of_host(hostname: &str) -> Self {
        let whole = hostname.to_ascii_lowercase();
        let label = whole.split('.').next().unwrap_or_default();
        let label = Some(label.to_owned()).filter(|label| label.len() >= LEAST_LABEL);
        let mut hosts: Vec<String> = label.into_iter().chain([whole.clone()]).collect();
        hosts.retain(|host| !host.is_empty());
        // The longer one first, which contains the other.
        hosts.sort_by_key(|host| std::cmp::Reverse(host.len()));
        Self { hosts }
    }

    /// The record without the name of its machine, arguments, addresses and paths.
    pub(super) fn record(&self, document: &Document) -> serde_json::Result<Document> {
        let mut kept = document.clone();
        // Runs of several machines must not become those of one.
        kept.facts.hostname = format!("redacted-{}", kept.id);
        if self.is_named_in(&kept.name) {
            kept.name.clone_from(&kept.id);
        }
        (kept.facts.boot_id, kept.facts.machine_id) = (None, None);
        kept.facts.labels.clear();
        kept.facts.kernel_cmdline = kept.facts.kernel_cmdline.as_deref().map(boot_parameters);
        kept.argv = arguments(&kept.argv);
        kept.provenance.redacted = true;
        if let Some(command) = kept.attached.as_mut().and_then(|own| own.command.as_mut()) {
            command.argv = vec![REDACTED.into()];
        }
        for end in kept.messages.iter_mut().flat_map(|messages| &mut messages.ends) {
            end.address = None;
        }
        for load in &mut kept.loads {
            load.parameters.iter_mut().for_each(|(name, value)| parameter(name, value));
        }
        let (name, cmdline) = (kept.name.clone(), kept.facts.kernel_cmdline.take());
        let mut value = serde_json::to_value(kept)?;
        if let Some(Value::Object(parameters)) = value.pointer_mut("/probe/parameters") {
            parameters.iter_mut().for_each(|(name, value)| parameter(name, value));
        }
        self.value(&mut value);
        let mut kept: Document = serde_json::from_value(value)?;
        (kept.name, kept.facts.kernel_cmdline) = (name, cmdline);
        Ok(kept)
    }

    /// A JSON document without stacks and paths.
    pub(super) fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(values) => values.iter_mut().for_each(|own| self.value(own)),
            Value::Object(fields) => self.fields(fields),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn fields(&self, fields: &mut Map<String, Value>) {
        fields.remove("stack");
        for (name, value) in fields {
            match value {
                Value::String(text) if KEPT.contains(&name.as_str()) => {
                    *text = without_pointers(text);
                }
                value => self.value(value),
            }
        }
    }

    /// A text without paths, addresses and the name of the machine. One that is the name as a whole
    /// may mean something else: a machine is called `vm`, and a load.
    pub(super) fn text(&self, text: &str) -> String {
        let is_name = self.hosts.iter().any(|host| host.eq_ignore_ascii_case(text));
        if is_name { text.to_owned() } else { self.without_host(&Self::line(text)) }
    }

    /// A line of a table, without paths and addresses: its fields tie files together.
    pub(super) fn line(text: &str) -> String {
        let mut kept = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(is_between).unwrap_or(rest.len());
            let (word, later) = rest.split_at(end);
            kept.push_str(if names_place(word) { REDACTED } else { word });
            let next = later.chars().next().map_or(0, char::len_utf8);
            kept.push_str(later.get(..next).unwrap_or(""));
            rest = later.get(next..).unwrap_or("");
        }
        kept
    }

    fn without_host(&self, text: &str) -> String {
        let mut kept = text.to_owned();
        for host in &self.hosts {
            while let Some(at) = place_of(host, &kept) {
                kept.replace_range(at..at + host.len(), REDACTED);
            }
        }
        kept
    }

    fn is_named_in(&self, text: &str) -> bool {
        self.hosts.iter().any(|host| place_of(host, text).is_some())
    }
}

/// Where a host, in small letters, is a word of a text.
fn place_of(host: &str, text: &str) -> Option<usize> {
    let small = text.to_ascii_lowercase();
    let is_word = |at: &usize| {
        let before = small.get(..*at).and_then(|before| before.chars().next_back());
        let after = small.get(at + host.len()..).and_then(|after| after.chars().next());
        ![before, after].into_iter().flatten().any(char::is_alphanumeric)
    };
    small.match_indices(host).map(|(at, _)| at).find(is_word)
}

/// A text without addresses in memory, by which locks are called.
fn without_pointers(text: &str) -> String {
    let words = text.split(' ').map(|word| if is_pointer(word) { REDACTED } else { word });
    words.collect::<Vec<_>>().join(" ")
}

fn is_pointer(word: &str) -> bool {
    let digits = word.trim_end_matches([':', '.']).strip_prefix("0x").unwrap_or_default();
    digits.len() >= LEAST_POINTER && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a word is a path, an address or a user of a machine.
fn names_place(word: &str) -> bool {
    let is_home = word
        .strip_prefix('~')
        .is_some_and(|rest| rest.starts_with(|first: char| first == '/' || first.is_alphabetic()));
    let is_of_user = word.split_once('@').is_some_and(|(user, host)| {
        user.ends_with(char::is_alphanumeric) && host.starts_with(char::is_alphanumeric)
    });
    is_home
        || is_of_user
        || is_address(word)
        || is_pointer(word)
        || (word.contains('/') && !is_known(word))
}

/// Whether a word with a slash is anything but a path: a file of the kernel that is alike
/// everywhere, a thread, a stage or a unit.
fn is_known(word: &str) -> bool {
    let kernel = ["/proc/", "/sys/"].iter().any(|start| word.starts_with(start));
    if word.starts_with('/') {
        let is_device = word.strip_prefix("/dev/").is_some_and(|name| !name.contains('/'));
        return (kernel || is_device) && !word.contains("..") && !word.starts_with("/sys/fs/");
    }
    if OF_KERNEL.iter().any(|start| word.starts_with(start)) {
        return true;
    }
    let Some((left, right)) = word.split_once('/') else { return true };
    let is_plain = |c: char| c.is_alphanumeric() || "_.:+".contains(c);
    let right = right.trim_end_matches([':', '.']);
    let is_number = !right.is_empty() && right.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = left.starts_with(char::is_alphanumeric) && left.chars().all(is_plain);
    is_name && !is_address(left) && (is_number || AFTER_SLASH.contains(&right))
}

/// What ends a word in which a path or an address begins.
fn is_between(c: char) -> bool {
    c.is_whitespace() || "\"'`()<>[]{}=,;|".contains(c)
}

/// Addresses of other machines, with or without a port, and of network cards.
fn is_address(word: &str) -> bool {
    let word = word.trim_end_matches(['.', ':']);
    let without_zone = word.split('%').next().unwrap_or(word);
    let socket = word.parse::<SocketAddr>().map(|own| own.ip());
    let found = socket.or_else(|_| without_zone.parse::<IpAddr>());
    let is_pair = |pair: &str| pair.len() == 2 && pair.bytes().all(|byte| byte.is_ascii_hexdigit());
    let pairs: Vec<&str> = word.split([':', '-']).collect();
    let is_card = pairs.len() == 6 && pairs.iter().all(|pair| is_pair(pair));
    is_card || found.is_ok_and(|ip| !ip.is_loopback() && !ip.is_unspecified())
}

/// A parameter of a probe or a load: numbers and plain words stay.
fn parameter(name: &str, value: &mut Value) {
    let is_kept = |text: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.,+%".contains(c);
        !REMOVED.contains(&name) && text.chars().all(is_plain) && !is_address(text)
    };
    if value.as_str().is_some_and(|text| !is_kept(text)) {
        *value = REDACTED.into();
    }
}

/// tardy's own options with their numbers, up to the command of another program.
fn arguments(argv: &[String]) -> Vec<String> {
    let own = argv.iter().skip(1).take_while(|word| *word != "--");
    let is_option = |word: &str| {
        let long = word
            .strip_prefix("--")
            .map(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '-'));
        long.unwrap_or_else(|| word.len() == 2 && word.starts_with('-'))
    };
    let kept = own.map(|word| match word.split_once('=') {
        Some((name, value)) if is_option(name) => format!("{name}={}", number(value)),
        _ if is_option(word) => word.clone(),
        _ => number(word),
    });
    std::iter::once("tardy".to_owned()).chain(kept).collect()
}

/// A word that is a number with its unit, or a list of CPUs.
fn number(word: &str) -> String {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
    let unit = word.len() - digits.len();
    let is_number = !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit() || b",-.".contains(&byte));
    let is_kept = is_number && unit <= 2 && !is_address(word);
    if is_kept { word.to_owned() } else { REDACTED.into() }
}

fn boot_parameters(line: &str) -> String {
    let own = line.split_whitespace().take_while(|word| *word != "--");
    let kept = own.map(|word| match word.split_once('=') {
        Some((name, _)) if !is_of_latency(name) => format!("{name}={REDACTED}"),
        _ => word.to_owned(),
    });
    kept.collect::<Vec<_>>().join(" ")
}

fn is_of_latency(name: &str) -> bool {
    BOOT_PARAMETERS.contains(&name) || name.starts_with("rcutree.") || name.starts_with("rcupdate.")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::report::fixture;

    fn redaction() -> Redaction {
        Redaction::of_host("rack7.corp.example")
    }

    #[test]
    fn paths_addresses_and_the_machine_go_and_the_rest_stays() {
        let own = redaction();
        for text in [
            "woken by hackbench/812, last ran on CPU 1",
            "woken by kworker/0:1H/123 and tardy/drain",
            "cannot read /proc/sys/kernel/x",
            "cannot open /dev/cpu_dma_latency",
            "stage cpu0/irq of 127.0.0.1:80 and ::1",
            "3 n/s 1/3 12:30:01 1.2.3 ~10.1 2.50GHz",
            "Debian GNU/Linux 12 (bookworm)",
            "rack71 and racks7",
        ] {
            assert_eq!(own.text(text), text);
        }
        for (text, kept) in [
            ("cannot read /home/eve/x.toml: no", "cannot read (redacted) no"),
            ("--log=/var/log/x", "--log=(redacted)"),
            (
                "in [/home/eve/x], {/x}, //home/x, /.config/x",
                "in [(redacted)], {(redacted)}, (redacted), (redacted)",
            ),
            (
                "file:/home/eve/x -I/home/x ~eve/x ~eve dir/sub",
                "(redacted) (redacted) (redacted) (redacted) (redacted)",
            ),
            (
                "/proc/../home/x /sys/fs/cgroup/eve.slice /dev/shm/eve",
                "(redacted) (redacted) (redacted)",
            ),
            ("to 10.0.0.7:5555 and 10.1.2.3/24", "to (redacted) and (redacted)"),
            ("at fe80::1%eth0, 52:54:00:12:34:56", "at (redacted), (redacted)"),
            ("tcp://rack7:99 eve@host", "(redacted) (redacted)"),
            (
                "RACK7-nightly on rack7 and Rack7.corp.example",
                "(redacted)-nightly on (redacted) and (redacted)",
            ),
        ] {
            assert_eq!(own.text(text), kept);
        }
        assert_eq!(own.text("rack7"), "rack7", "a load may be called so");
        assert_eq!(Redaction::line("0.8,rack7,/home/x,2"), "0.8,rack7,(redacted),2");
    }

    #[test]
    fn of_parameters_numbers_and_plain_words_stay() {
        for (name, value, kept) in [
            ("cpus", "0-3,7", "0-3,7"),
            ("wake", "io-uring", "io-uring"),
            ("transport", "tcp", "tcp"),
            ("target", "jackd", "jackd"),
            ("target", "sh -c secret", REDACTED),
            ("to", "lab7", REDACTED),
            ("from", "lab7:7199", REDACTED),
            ("dir", "SECRET", REDACTED),
            ("place", "rel/sub", REDACTED),
            ("address", "10.0.0.7", REDACTED),
        ] {
            let mut found = Value::from(value);
            parameter(name, &mut found);
            assert_eq!(found, kept, "{name}={value}");
        }
    }

    #[test]
    fn of_a_command_line_numbers_and_names_of_options_stay() {
        let argv =
            ["/opt/t", "run", "timer", "--interval", "250us", "--name=eve", "--", "/x", "-y"];
        let kept = arguments(&argv.map(str::to_owned));
        let expected = ["tardy", REDACTED, REDACTED, "--interval", "250us", "--name=(redacted)"];
        assert_eq!(kept, expected);
        let line = "root=UUID=1-2 isolcpus=2-3 quiet rcutree.kthread_prio=9 key=s -- init=/x";
        let kept = "root=(redacted) isolcpus=2-3 quiet rcutree.kthread_prio=9 key=(redacted)";
        assert_eq!(boot_parameters(line), kept);
    }

    #[test]
    fn of_a_late_sample_its_stacks_go_and_its_causes_stay() {
        let mut peak = json!({"series": "rack7/1", "blame": [{"cause": "lock", "name": "rack7",
            "task": "lock 0xffff888627c2ba40", "stack": ["a+0x1"],
            "evidence": "mapped from /opt/eve/lib.so"}]});
        redaction().value(&mut peak);
        let expected = json!({"series": "rack7/1", "blame": [{"cause": "lock", "name": "rack7",
            "task": "lock (redacted)", "evidence": "mapped from (redacted)"}]});
        assert_eq!(peak, expected);
    }

    #[test]
    fn a_record_is_one_still() {
        let mut document = fixture::of("probed", &["cpu0"]);
        document.facts.hostname = "probed".into();
        document.facts.boot_id = Some("b".into());
        document.facts.machine_id = Some("c".into());
        document.facts.labels = [("rack".into(), "r7".into())].into();
        document.name = "nightly-probed".into();
        let own = Redaction::of(&document);
        let kept = own.record(&document).unwrap();
        assert_eq!(kept.facts.hostname, "redacted-i");
        assert_eq!((kept.name.as_str(), kept.facts.boot_id), ("i", None));
        assert_eq!((kept.facts.machine_id, kept.facts.labels.len()), (None, 0));
        assert_eq!((kept.probe, kept.series), (document.probe, document.series));
        assert!(kept.provenance.redacted);
    }
}
