//! Blocks like a run that was measured: its record as words of `tardy run`.
//!
//! They are made of the typed fields of the record, each one word that its own flag begins. Its
//! command line is never run again: it is any text. What runs a program, opens a path, reaches a
//! network or changes the machine is taken from the caller's own record only.

use anyhow::{Context as _, Result, anyhow, bail, ensure};

use crate::{
    loads::{LoadSpec, command},
    plain::plain,
    run::{
        AskedSetup, AttachParameters, Document, LoadRecord, PingpongParameters, ProbeRecord,
        ReceiveParameters, Run, RunParameters, Status, StreamParameters, TraceBy, TraceMode,
        TraceRecord,
    },
    sys::{cpus::Cpus, sched::Policy},
    units::Nanos,
};

/// The options of `tardy run` that measure like a run, but for its length.
pub(super) fn block_words(run: &Run) -> Result<Vec<String>> {
    let name = plain(&run.document.name);
    let words = BlockWords::of(&run.document).map_err(|why| {
        anyhow!(
            "{name}: how it was measured cannot be repeated here: {why:#}; measure again with \
             `tardy run`"
        )
    })?;
    let Some(own) = words.own else { return Ok(words.words) };
    let author = run.author().with_context(|| format!("{name}: its record is not a file"))?;
    if let Some(distrust) = author.distrust() {
        bail!(
            "{name}: its run.json {distrust}, and names {own}: commands, paths, addresses and \
             settings are taken from your own record only; measure again with `tardy run`, or {}",
            run.remedy(distrust)
        );
    }
    Ok(words.words)
}

/// Words of `tardy run`, and what of them is taken from the caller's own record only.
#[derive(Default)]
struct BlockWords {
    words: Vec<String>,
    own: Option<String>,
}

impl BlockWords {
    fn of(document: &Document) -> Result<Self> {
        ensure!(document.status != Status::Imported, "another program measured it");
        ensure!(document.facts.lab.is_none(), "a guest of the lab measured it");
        let mut words = Self::default();
        let asked = document.setup.asked.as_ref();
        words.probe(document, asked)?;
        words.push("warmup", time(document.parameters.warmup_ns));
        let is_attached = matches!(document.probe, ProbeRecord::Attach(_));
        if let Some(asked) = asked.filter(|_| !is_attached) {
            words.threads(asked);
        }
        if let Some(asked) = asked {
            words.machine(asked);
        }
        document.loads.iter().try_for_each(|load| words.load(load))?;
        words.tracing(&document.trace, &document.parameters);
        Ok(words)
    }

    /// One word, whatever the value holds.
    fn push(&mut self, flag: &str, value: impl AsRef<str>) {
        self.words.push(format!("--{flag}={}", value.as_ref()));
    }

    fn push_if(&mut self, is_asked: bool, flag: &str) {
        self.words.extend(is_asked.then(|| format!("--{flag}")));
    }

    /// A word that is taken from the caller's own record only.
    fn push_own(&mut self, flag: &str, value: &str) {
        self.name_own(|| format!("--{flag} {}", plain(value)));
        self.push(flag, value);
    }

    fn name_own(&mut self, what: impl FnOnce() -> String) {
        self.own.get_or_insert_with(what);
    }

    fn probe(&mut self, document: &Document, asked: Option<&AskedSetup>) -> Result<()> {
        self.words.push(document.probe.name().to_owned());
        match &document.probe {
            ProbeRecord::Timer(timer) => {
                self.push("interval", time(timer.interval_ns));
                if let Some(step_ns) = timer.interval_step_ns {
                    self.push("interval-step", time(step_ns));
                }
                self.push("wake", &timer.wake);
                self.push("cpus", &timer.cpus);
                match timer.total_threads {
                    Some(threads) => self.push("total-threads", threads.to_string()),
                    None => self.push("threads", timer.threads_per_cpu.to_string()),
                }
                self.push("priority-step", timer.priority_step.to_string());
                self.push("distance", time(timer.distance_ns));
            }
            ProbeRecord::Fake(fake) => {
                self.push("interval", time(fake.interval_ns));
                self.push("cpus", &fake.cpus);
                self.push_if(fake.unpaced, "unpaced");
                if let Some(distribution) = &fake.distribution {
                    self.push("distribution", distribution);
                }
            }
            ProbeRecord::Noise(noise) => self.push("cpus", &noise.cpus),
            ProbeRecord::Inversion(inversion) => self.push("cpus", &inversion.cpus),
            ProbeRecord::Irq(irq) => self.push("cpus", &irq.cpus),
            ProbeRecord::Audio(audio) => self.push("cpus", audio.cpu.to_string()),
            ProbeRecord::Interactive(_) => self.asked_cpus(asked),
            ProbeRecord::Pingpong(pingpong) => self.pingpong(pingpong, asked),
            ProbeRecord::Receive(receive) => self.receive(receive, asked),
            ProbeRecord::Stream(stream) => self.stream(stream, asked),
            ProbeRecord::Attach(attach) => self.attach(attach)?,
            ProbeRecord::Bandwidth(_) => bail!("it measures no latencies"),
            ProbeRecord::Other(other) => {
                bail!("this tardy has no probe {} with its parameters", plain(&other.name))
            }
        }
        Ok(())
    }

    fn asked_cpus(&mut self, asked: Option<&AskedSetup>) {
        if let Some(asked) = asked {
            self.push("cpus", &asked.cpus);
        }
    }

    fn pingpong(&mut self, own: &PingpongParameters, asked: Option<&AskedSetup>) {
        self.push("transport", &own.transport);
        // Not every transport has messages of a size.
        if own.size != 1 {
            self.push("size", own.size.to_string());
        }
        self.ends((own.cpu, own.far_cpu), own.far_priority, asked);
        self.push("timeout", time(own.timeout_ns));
        if let Some(to) = &own.to {
            self.push_own("to", to);
            self.push_if(own.foreign, "foreign");
        }
    }

    fn receive(&mut self, own: &ReceiveParameters, asked: Option<&AskedSetup>) {
        if let Some(port) = own.listen {
            self.push("listen", port.to_string());
        }
        if let Some(name) = &own.iface {
            self.push_own("iface", name);
        }
        self.push("wait", &own.wait);
        self.push("sender", &own.sender);
        if let Some(size) = own.size {
            self.push("size", size.to_string());
        }
        if let Some(rate) = &own.rate {
            self.push("rate", rate);
        }
        self.ends((own.cpu, own.far_cpu), own.far_priority, asked);
    }

    fn stream(&mut self, own: &StreamParameters, asked: Option<&AskedSetup>) {
        self.push("transport", &own.transport);
        self.push("size", own.size.to_string());
        self.push("rate", format!("{}pps", own.rate_per_s));
        self.push_if(own.both_ways, "both-ways");
        self.push("wait", &own.wait);
        if let Some(wait) = &own.far_wait {
            self.push("far-wait", wait);
        }
        self.push("late-over", time(own.late_over_ns));
        self.ends((own.cpu, own.far_cpu), own.far_priority, asked);
        if let Some(to) = &own.to {
            self.push_own("to", to);
        }
        if let Some(group) = &own.group {
            self.push_own("group", group);
        }
        if let Some(receivers) = own.receivers {
            self.push("receivers", receivers.to_string());
        }
    }

    /// Where both ends are, and the priority of the remote one where it has its own.
    fn ends(&mut self, cpus: (u32, Option<u32>), far: Option<u32>, asked: Option<&AskedSetup>) {
        let (near, far_cpu) = cpus;
        let far_cpu = far_cpu.filter(|cpu| *cpu != near);
        self.push("cpus", far_cpu.map_or_else(|| near.to_string(), |far| format!("{near},{far}")));
        let near_priority = asked.map_or(0, |asked| asked.priority);
        if let Some(priority) = far.filter(|own| near_priority > 0 && *own != near_priority) {
            self.push("far-priority", priority.to_string());
        }
    }

    fn attach(&mut self, own: &AttachParameters) -> Result<()> {
        match own.by.as_str() {
            by @ ("pid" | "tid" | "comm") => self.push(by, &own.target),
            "cgroup" => self.push_own("cgroup", &own.target),
            _ => bail!("it started the command that it followed"),
        }
        Ok(())
    }

    /// Of measured threads that are tardy's own.
    fn threads(&mut self, asked: &AskedSetup) {
        if asked.policy_explicit {
            self.push("policy", &asked.policy);
        }
        let is_real_time = asked.policy.parse::<Policy>().is_ok_and(Policy::is_real_time);
        if asked.priority_explicit && is_real_time {
            self.push("priority", asked.priority.to_string());
        }
        if asked.timer_slack_ns != 1 {
            self.push("timer-slack", format!("{}ns", asked.timer_slack_ns));
        }
        match (asked.max_idle_latency_us, asked.dma_latency_us) {
            (Some(us), _) => self.push("max-idle-latency", format!("{us}us")),
            (None, None) => self.push_if(true, "no-dma-latency"),
            (None, Some(_)) => {}
        }
    }

    /// What is changed of the machine meanwhile.
    fn machine(&mut self, asked: &AskedSetup) {
        for (is_asked, flag) in [(asked.shield, "shield"), (asked.no_smt_sibling, "no-smt-sibling")]
        {
            if is_asked {
                self.name_own(|| format!("--{flag}"));
                self.push_if(true, flag);
            }
        }
        if let Some(governor) = &asked.governor {
            self.push_own("governor", governor);
        }
        // Of CPUs alone, whoever names them.
        if let Some(cpus) = asked.housekeeping.as_ref().filter(|cpus| cpus.parse::<Cpus>().is_ok())
        {
            self.push("housekeeping", cpus);
        }
        for setting in &asked.settings {
            self.push_own("set", &format!("{}={}", setting.name, setting.value));
        }
    }

    fn load(&mut self, load: &LoadRecord) -> Result<()> {
        let spec = LoadSpec { name: load.name.clone(), parameters: load.parameters.clone() };
        if spec.name == command::LOAD.name {
            self.push_own("load-command", spec.text("command")?);
            return Ok(());
        }
        if let Some((key, text)) = spec.chosen_text() {
            self.name_own(|| format!("--load {}:{key}={}", plain(&spec.name), plain(text)));
        }
        if let Some(what) = spec.changes_machine() {
            self.name_own(|| format!("--load {what}"));
        }
        self.push("load", spec.typed()?);
        Ok(())
    }

    fn tracing(&mut self, trace: &TraceRecord, parameters: &RunParameters) {
        self.push("trace", trace.asked.as_str());
        let is_traced = trace.asked != TraceMode::Off;
        // Where BPF could not be had, that is found out again.
        if is_traced && trace.by == Some(TraceBy::Tracefs) && trace.why_not_bpf.is_none() {
            self.push("trace-by", TraceBy::Tracefs.as_str());
        }
        match (parameters.peak_over_ns, parameters.peaks) {
            (Some(over_ns), _) => self.push("peak-over", time(over_ns)),
            (None, Some(peaks)) => self.push("peaks", peaks.to_string()),
            (None, None) => {}
        }
        if let Some(hz) = parameters.profile_hz {
            self.push("profile", hz.to_string());
        }
    }
}

fn time(ns: i64) -> String {
    Nanos(ns).typed()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

    use clap::{Args as _, Command, FromArgMatches as _};
    use serde_json::{Value, json};

    use super::*;
    use crate::cli::run::RunFlags;

    type Change = Box<dyn Fn(&mut Value)>;

    /// A kept run with a change of its record, of that mode.
    fn run(probe: &str, mode: u32, change: impl FnOnce(&mut Value)) -> (tempfile::TempDir, Run) {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1").join(probe);
        let place = tempfile::tempdir().unwrap();
        let mut record = serde_json::to_value(Run::open(&fixture).unwrap().document).unwrap();
        change(&mut record);
        let file = place.path().join("run.json");
        fs::write(&file, record.to_string()).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let run = Run::open(place.path()).unwrap();
        (place, run)
    }

    fn words(probe: &str, change: impl FnOnce(&mut Value)) -> Result<Vec<String>> {
        let (_place, run) = run(probe, 0o600, change);
        block_words(&run)
    }

    fn parse(words: &[String]) -> clap::error::Result<RunFlags> {
        let run = Command::new("run").no_binary_name(true);
        let matches = RunFlags::augment_args(run).try_get_matches_from(words)?;
        RunFlags::from_arg_matches(&matches)
    }

    #[test]
    fn a_run_is_repeated_by_its_fields_and_never_by_its_command_line() {
        for probe in ["timer", "pingpong", "receive", "stream"] {
            let argv = json!(["tardy", "run", probe, "--load-command", "id >/tmp/x"]);
            let words = words(probe, |record| record["argv"] = argv).unwrap();
            assert!(parse(&words).is_ok(), "{words:?}");
            assert_eq!(words[0], probe);
            assert!(!words.iter().any(|word| word.contains("id >")), "{words:?}");
        }
        let timer = words("timer", |_| {}).unwrap();
        for word in ["--interval=500us", "--cpus=0-1", "--warmup=10ms", "--peaks=3"] {
            assert!(timer.iter().any(|own| own == word), "{word}: {timer:?}");
        }
        assert!(timer.iter().any(|own| own.starts_with("--load=hackbench:fds=20,groups=1")));
    }

    #[test]
    fn no_text_of_a_record_becomes_a_flag_of_its_own() {
        let odd = "nanosleep --load-command=id";
        let words = words("timer", |record| {
            record["probe"]["parameters"]["wake"] = odd.into();
            record["probe"]["parameters"]["cpus"] = "--load-command=id".into();
        });
        let words = words.unwrap();
        assert!(words.iter().all(|word| !word.starts_with("--load-command")), "{words:?}");
        assert!(parse(&words).is_err(), "{words:?}");
    }

    /// What is taken from the caller's own record only: that of mode 666 is refused, and names it.
    #[test]
    fn commands_paths_addresses_and_settings_are_taken_from_ones_own_record_only() {
        let load = |name: &str, parameters: Value| {
            let mut load = json!({"name": name, "proof": null, "ended": null});
            load["parameters"] = parameters;
            load
        };
        let asked = |key: &'static str, value: Value| -> Change {
            Box::new(move |record| record["setup"]["asked"][key] = value.clone())
        };
        let loads = |name: &str, parameters: Value| -> Change {
            let load = load(name, parameters);
            Box::new(move |record| record["loads"] = json!([load]))
        };
        let probe = |key: &'static str, value: &'static str| -> Change {
            Box::new(move |record| record["probe"]["parameters"][key] = value.into())
        };
        let setting = json!([{"name": "thp", "value": "never"}]);
        let attach = json!({"name": "attach", "parameters": {"by": "cgroup", "target": "/x"}});
        let attach: Change = Box::new(move |record| record["probe"] = attach.clone());
        let cases = [
            ("timer", loads("command", json!({"command": "id"})), "--load-command id"),
            ("timer", loads("compile", json!({"compiler": "/x"})), "compiler=/x"),
            ("timer", loads("files", json!({"dir": "/x"})), "--load files:dir=/x"),
            ("timer", loads("memory", json!({"above-ram": "yes"})), "memory:above-ram=yes"),
            ("timer", loads("netflood", json!({"via": "veth"})), "--load netflood:via=veth"),
            ("timer", loads("printk", json!({})), "--load printk"),
            ("timer", loads("ext4", json!({})), "--load ext4"),
            ("timer", asked("settings", setting), "--set thp=never"),
            ("timer", asked("governor", "performance".into()), "--governor performance"),
            ("timer", asked("shield", true.into()), "--shield"),
            ("timer", asked("no_smt_sibling", true.into()), "--no-smt-sibling"),
            ("timer", attach, "--cgroup /x"),
            ("pingpong", probe("to", "192.0.2.1:7"), "--to 192.0.2.1:7"),
            ("stream", probe("to", "192.0.2.1:7"), "--to 192.0.2.1:7"),
            ("stream", probe("group", "239.1.2.3"), "--group 239.1.2.3"),
            ("receive", probe("iface", "eth0"), "--iface eth0"),
        ];
        for (probe, change, named) in cases {
            let own = words(probe, &change);
            assert!(own.is_ok(), "{named}: {own:?}");
            let (_place, run) = run(probe, 0o666, &change);
            let refused = block_words(&run).unwrap_err().to_string();
            assert!(refused.contains(named) && refused.contains("mode 0666"), "{refused}");
        }
        let (_place, harmless) = run("timer", 0o666, |_| {});
        block_words(&harmless).unwrap();
    }

    #[test]
    fn what_was_not_measured_by_this_tardy_on_this_machine_is_not_repeated() {
        let refused = |change: fn(&mut Value)| words("timer", change).unwrap_err().to_string();
        let imported = refused(|record| record["status"] = "imported".into());
        assert!(imported.contains("another program measured it"), "{imported}");
        let other = refused(|record| record["probe"] = json!({"name": "x", "parameters": {}}));
        assert!(other.contains("no probe x"), "{other}");
        let command = json!({"by": "command", "target": "id >/tmp/x"});
        let attach = words("timer", |record| {
            record["probe"] = json!({"name": "attach", "parameters": command});
        });
        assert!(attach.unwrap_err().to_string().contains("it started the command"));
        let odd = refused(|record| record["loads"][0]["name"] = "nosuch".into());
        assert!(odd.contains("nosuch"), "{odd}");
    }
}
