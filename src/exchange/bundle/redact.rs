//! Takes out of a run what names the machine, its user's files, and other people's programs.

use std::net::{IpAddr, SocketAddr};

use serde_json::{Map, Value};

use crate::run::Document;

/// What stands for what was taken out.
const REDACTED: &str = "(redacted)";

/// Directories of the kernel, which are alike everywhere.
const OF_KERNEL: [&str; 3] = ["/proc/", "/sys/", "/dev/"];

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

/// Parameters of probes and loads that name a file, or are a command.
const REMOVED: &[&str] = &["command", "directory", "file", "info", "server"];

/// What is taken out of one run.
#[derive(Debug)]
pub(super) struct Redaction {
    hostname: String,
}

impl Redaction {
    /// Of the run with this record.
    pub(super) fn of(document: &Document) -> Self {
        Self { hostname: document.facts.hostname.clone() }
    }

    /// The record without the name of its machine, arguments, addresses and paths.
    pub(super) fn record(&self, document: &Document) -> serde_json::Result<Document> {
        let mut kept = document.clone();
        // Runs of several machines must not become those of one.
        kept.facts.hostname = format!("redacted-{}", kept.id);
        if self.is_named_in(&kept.name) {
            kept.name.clone_from(&kept.id);
        }
        kept.facts.boot_id = None;
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
            load.parameters.iter_mut().for_each(|(name, value)| without_file(name, value));
        }
        let (name, cmdline) = (kept.name.clone(), kept.facts.kernel_cmdline.take());
        let mut value = serde_json::to_value(kept)?;
        if let Some(Value::Object(parameters)) = value.pointer_mut("/probe/parameters") {
            parameters.iter_mut().for_each(|(name, value)| without_file(name, value));
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
            if !(KEPT.contains(&name.as_str()) && value.is_string()) {
                self.value(value);
            }
        }
    }

    /// A text without paths, addresses and the name of the machine.
    pub(super) fn text(&self, text: &str) -> String {
        let mut kept = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(is_between).unwrap_or(rest.len());
            let (word, later) = rest.split_at(end);
            kept.push_str(&self.word(word));
            let next = later.chars().next().map_or(0, char::len_utf8);
            kept.push_str(later.get(..next).unwrap_or(""));
            rest = later.get(next..).unwrap_or("");
        }
        kept
    }

    fn word(&self, word: &str) -> String {
        let is_path = ["/", "~/", "./", "../"].iter().any(|start| {
            word.strip_prefix(start).is_some_and(|rest| rest.starts_with(char::is_alphanumeric))
        });
        let is_of_kernel = OF_KERNEL.iter().any(|start| word.starts_with(start));
        if (is_path && !is_of_kernel) || word.contains("://") || is_address(word) {
            return REDACTED.into();
        }
        self.without_hostname(word)
    }

    fn without_hostname(&self, word: &str) -> String {
        // A word that is the name may mean something else: a machine is called `vm`, and a load.
        if word == self.hostname || !self.is_named_in(word) {
            return word.to_owned();
        }
        word.replace(&self.hostname, REDACTED)
    }

    fn is_named_in(&self, text: &str) -> bool {
        let name = &self.hostname;
        !name.is_empty()
            && text.match_indices(name.as_str()).any(|(at, _)| {
                let before = text.get(..at).and_then(|before| before.chars().next_back());
                let after = text.get(at + name.len()..).and_then(|after| after.chars().next());
                ![before, after].into_iter().flatten().any(char::is_alphanumeric)
            })
    }
}

/// What ends a word in which a path or an address begins.
fn is_between(c: char) -> bool {
    c.is_whitespace() || "\"'`()<>=,;".contains(c)
}

/// Addresses of other machines, with or without a port.
fn is_address(word: &str) -> bool {
    let word = word.trim_end_matches(['.', ':']);
    let without_zone = word.split('%').next().unwrap_or(word);
    let socket = word.parse::<SocketAddr>().map(|own| own.ip());
    let found = socket.or_else(|_| without_zone.parse::<IpAddr>());
    found.is_ok_and(|ip| !ip.is_loopback() && !ip.is_unspecified())
}

fn without_file(name: &str, value: &mut Value) {
    if REMOVED.contains(&name) && value.is_string() {
        *value = REDACTED.into();
    }
}

/// tardy's own options with their numbers, up to the command of another program.
fn arguments(argv: &[String]) -> Vec<String> {
    let own = argv.iter().skip(1).take_while(|word| *word != "--");
    let kept = own.map(|word| match word.split_once('=') {
        Some((name, value)) if name.starts_with('-') => format!("{name}={}", number(value)),
        _ if word.starts_with('-') => word.clone(),
        _ => number(word),
    });
    std::iter::once("tardy".to_owned()).chain(kept).collect()
}

/// A word that is a number with its unit: a length, a rate, CPUs.
fn number(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-,.%/".contains(c);
    let is_number = word.starts_with(|first: char| first.is_ascii_digit());
    let is_kept = is_number && word.chars().all(is_plain) && !is_address(word);
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
        Redaction { hostname: "rack7".into() }
    }

    #[test]
    fn paths_addresses_and_the_machine_go_and_the_rest_stays() {
        let own = redaction();
        for (text, kept) in [
            (
                "woken by hackbench/812, last ran on CPU 1",
                "woken by hackbench/812, last ran on CPU 1",
            ),
            ("cannot read /home/eve/x.toml: no", "cannot read (redacted) no"),
            ("cannot read /proc/sys/kernel/x", "cannot read /proc/sys/kernel/x"),
            ("--log=/var/log/x", "--log=(redacted)"),
            ("to 10.0.0.7:5555 and 127.0.0.1:80", "to (redacted) and 127.0.0.1:80"),
            ("at fe80::1%eth0, ::1", "at (redacted), ::1"),
            ("tcp://rack7:99", "(redacted)"),
            ("rack7-nightly, rack71", "(redacted)-nightly, rack71"),
            ("n/s 1/3 12:30:01 1.2.3", "n/s 1/3 12:30:01 1.2.3"),
        ] {
            assert_eq!(own.text(text), kept);
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
            "stack": ["a+0x1"], "evidence": "mapped from /opt/eve/lib.so"}]});
        redaction().value(&mut peak);
        let expected = json!({"series": "rack7/1", "blame": [{"cause": "lock", "name": "rack7",
            "evidence": "mapped from (redacted)"}]});
        assert_eq!(peak, expected);
    }

    #[test]
    fn a_record_is_one_still() {
        let mut document = fixture::of("probed", &["cpu0"]);
        document.facts.hostname = "probed".into();
        document.facts.boot_id = Some("b".into());
        document.name = "nightly-probed".into();
        let own = Redaction::of(&document);
        let kept = own.record(&document).unwrap();
        assert_eq!(kept.facts.hostname, "redacted-i");
        assert_eq!((kept.name.as_str(), kept.facts.boot_id), ("i", None));
        assert_eq!((kept.probe, kept.series), (document.probe, document.series));
        assert!(kept.provenance.redacted);
    }
}
