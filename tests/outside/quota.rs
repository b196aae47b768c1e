//! A measured thread whose control group has used up its CPU quota, as in a container that may use
//! a part of a CPU: the quota is named, and not who had the CPU meanwhile.

use std::fs;

use tardy::run::peaks::{Cause, Part, Peak};

use super::{
    control_group::ControlGroup,
    support::{Store, codes, finish, piped, skip, with_time},
};

/// The time that ordinary threads of the group have in each 100 ms.
const QUOTA_MS: u32 = 20;

#[test]
fn a_cpu_quota_that_was_used_up_is_what_the_thread_waited_for() {
    if ControlGroup::of_cpu("quota").is_none() || tardy::kernel::can_trace().is_err() {
        return skip("it takes root, a CPU controller of cgroups, and tracing");
    }
    // Another task of the group uses it up.
    let busy = "taskset -c 0 sh -c 'while :; do :; done' >/dev/null 2>&1 &";
    let script = format!("{}\n{busy}", ControlGroup::WAIT_INSIDE);
    let run = ["run", "timer", "--cpus", "0", "--policy", "other", "--warmup", "300ms"];
    with_time(|time| {
        let (store, group) = (Store::new(), ControlGroup::of_cpu("quota").unwrap());
        group.set_quota(QUOTA_MS);
        let length = ["--trace", "peaks", "--duration", time, "--name", "r"];
        let child = piped(&mut store.shell(&script, &[&run[..], &length].concat()));
        group.take_in(&child);
        let said = finish(child);
        assert_eq!(said.code, Some(0), "{said:?}");
        let record = store.show("r");
        assert!(codes(&record).contains(&"cpu_quota_used_up"), "{record}");
        let lines = fs::read_to_string(store.runs().join("r/peaks.jsonl")).unwrap();
        let mut peaks = lines.lines().map(|line| serde_json::from_str::<Peak>(line).unwrap());
        // Others may have had the CPU as well, for longer: what is asked for is that it is named.
        peaks.find(|peak| peak.blame.iter().any(is_quota)).map(|_| ())
    });
}

fn is_quota(part: &Part) -> bool {
    let is_long = part.ns >= 1_000_000;
    part.cause == Cause::Throttled && part.name == "CPU quota of its group" && is_long
}

/// Where no such group can be made, the unit tests of `sys::control_groups` do.
#[test]
fn a_group_without_real_time_is_named_instead_of_a_missing_right() {
    let Some(group) = ControlGroup::of_cpu("ban").filter(ControlGroup::bans_real_time) else {
        return;
    };
    let store = Store::new();
    let within = |more: &[&str]| {
        let run = ["run", "timer", "--trace", "off", "--duration", "100ms"];
        let arguments = [&run[..], more].concat();
        let child = piped(&mut store.shell(ControlGroup::WAIT_INSIDE, &arguments));
        group.take_in(&child);
        finish(child)
    };
    let refused = within(&["--policy", "fifo"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("cpu.rt_runtime_us is 0"), "{refused:?}");
    assert!(!refused.err.contains("CAP_SYS_NICE"), "{refused:?}");
    let said = within(&["--name", "r"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let record = store.show("r");
    let caveats = record["caveats"].as_array().unwrap();
    let refusal = caveats.iter().find(|caveat| caveat["code"] == "no_real_time").unwrap();
    assert!(refusal["text"].as_str().unwrap().contains("RT_GROUP_SCHED"), "{refusal}");
}
