//! Results of cyclictest beside runs of tardy: a job that was measured by one, and later by the
//! other, keeps its row.

use crate::{
    cli::cyclictest_flags::CyclictestJob,
    run::{
        RunEntry, Status, TimerParameters,
        alike::without_outputs,
        probes::{OtherProbe, ProbeRecord},
    },
    sys::cpus::Cpus,
};

/// The run that `tardy cyclictest` would have left: nothing where the file does not state the
/// command, or a thread no CPU.
pub(super) fn as_timer(run: &RunEntry) -> Option<RunEntry> {
    let ProbeRecord::Other(OtherProbe { name, parameters }) = &run.probe else { return None };
    if run.status != Status::Imported || name != "cyclictest" {
        return None;
    }
    let cpu = |name: &str| name.strip_prefix("cpu")?.parse().ok();
    let cpus = run.whole().map(|series| cpu(&series.name)).collect::<Option<Vec<u32>>>()?;
    let (threads, cpus): (u32, Cpus) = (cpus.len().try_into().ok()?, cpus.into_iter().collect());
    let command = without_outputs(parameters.get("command")?.as_str()?);
    let job = CyclictestJob::of(&command, threads).filter(|_| threads > 0)?;
    let mut timer = run.clone();
    timer.probe = ProbeRecord::Timer(TimerParameters {
        wake: job.wake.into(),
        interval_ns: job.interval.0,
        interval_step_ns: Some(job.interval_step.0).filter(|step| *step > 0),
        distance_ns: job.distance.0,
        cpus: cpus.to_string(),
        threads_per_cpu: 1,
        total_threads: Some(threads),
        priority_step: 0,
        work_ns: None,
        loops_per_ms: None,
    });
    timer.status = Status::Complete;
    // cyclictest starts no load, and does not trace.
    timer.loads = Vec::new();
    timer.parameters.duration_ns = job.duration.map(|time| time.0);
    timer.parameters.samples = job.samples;
    timer.parameters.stop_over_ns = job.stop_over.map(|time| time.0);
    timer.setup.found.policy = Some(job.policy);
    timer.setup.found.cpus = Some(cpus.to_string());
    timer.setup.found.dma_latency_us = job.dma_latency_us;
    Some(timer)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cli::alike::key;

    fn entry(change: impl Fn(&mut Value)) -> RunEntry {
        let mut record = json!({
            "schema_version": 2, "id": "i", "name": "n", "status": "complete", "validity": "valid",
            "probe": {"name": "timer", "parameters": {"wake": "nanosleep",
                "interval_ns": 1_000_000, "distance_ns": 0, "cpus": "0-1", "threads_per_cpu": 1,
                "total_threads": 2, "priority_step": 0}},
            "loads": [],
            "parameters": {"duration_ns": 60_000_000_000_i64, "samples": null, "warmup_ns": 0,
                "stop_over_ns": null, "raw": false, "peaks": null, "peak_over_ns": null},
            "setup": {"found": {"policy": "fifo 90", "cpus": "0-1", "dma_latency_us": 0}},
            "trace": {"found": "off"},
            "facts": {"hostname": "vm", "kernel": "6.12", "architecture": "x86_64"},
            "started_at": "2026-01-01T00:00:00Z", "duration_ns": 60_000_000_000_i64,
            "series": [],
        });
        change(&mut record);
        serde_json::from_value(record).unwrap()
    }

    /// A file of this command, with a histogram for each of two CPUs.
    fn imported(command: &str, series: [&str; 2]) -> RunEntry {
        entry(|record| {
            record["status"] = json!("imported");
            record["probe"] = json!({"name": "cyclictest", "parameters": {"same_as": "timer",
                "interval_ns": 1_000_000, "command": command, "file": "a.json"}});
            record["parameters"]["duration_ns"] = Value::Null;
            record["setup"] = json!({});
            record["series"] = series
                .iter()
                .map(|name| {
                    json!({"name": name, "unit": "ns",
                "count": 1, "min": 1, "max": 1, "mean": 1.0, "percentiles": {}})
                })
                .collect();
        })
    }

    #[test]
    fn a_result_of_cyclictest_is_like_the_run_of_tardy_that_measures_the_same() {
        let cpus = ["cpu0", "cpu1"];
        let own = key(&entry(|_| ()));
        let alike = imported("cyclictest -m -p 90 -i 1000 -S -D 60 -h 400 --json=x", cpus);
        assert_eq!(key(&alike), own);
        assert_eq!(
            own,
            key(&entry(|record| {
                record["probe"]["parameters"].as_object_mut().unwrap().remove("total_threads");
            })),
            "as many threads as CPUs are what tardy has by default"
        );
        for (command, series) in [
            ("cyclictest -m -p 80 -i 1000 -S -D 60 -h 400", cpus),
            ("cyclictest -m -p 90 -i 200 -S -D 60 -h 400", cpus),
            ("cyclictest -m -p 90 -i 1000 -S -D 600 -h 400", cpus),
            ("cyclictest -m -p 90 -i 1000 -S -D 60 -h 400 -b 100", cpus),
            ("cyclictest -m -p 90 -i 1000 -S -D 60 -h 400", ["cpu0", "cpu2"]),
            ("cyclictest -m -p 90 -i 1000 -S -D 60 -h 400", ["thread0", "thread1"]),
            ("cyclictest -m -p 90 -i 1000 -S -D 60 -h 400 --smi", cpus),
            ("cyclictest -m -p 90 -i 1000 -S -D 60 -h 400 --default-system", cpus),
            ("", cpus),
        ] {
            assert_ne!(key(&imported(command, series)), own, "{command} {series:?}");
        }
        let loaded = json!([{"name": "vm", "parameters": {}, "proof": null, "ended": null}]);
        assert_ne!(key(&alike), key(&entry(|record| record["loads"] = loaded.clone())));
    }
}
