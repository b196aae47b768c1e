//! Caveats of what was set up and did not stay.

use super::*;
use crate::setup::settings::SettingLoss;

#[test]
fn a_shield_that_did_not_stay_is_reported() {
    let path = "/sys/fs/cgroup/tardy-shield/cpuset.cpus";
    let lost = |now: Option<&str>, at_ns: Option<i64>| {
        let now = now.map(str::to_owned);
        let loss = ShieldLoss { cpus: "2-3".into(), path: path.into(), was: "2-3".into(), now };
        move |evidence: &mut Evidence| evidence.setup.shield_loss = Some((loss, at_ns))
    };
    assert_one(
        lost(Some(""), Some(1_250_000_000)),
        "shield_lost",
        &json!({
            "cpus": "2-3", "path": path, "was": "2-3", "now": "", "at_ns": 1_250_000_000
        }),
        "at 1.2 s /sys/fs/cgroup/tardy-shield/cpuset.cpus held \"\" instead of \"2-3\".",
    );
    assert_one(
        lost(None, None),
        "shield_lost",
        &json!({"cpus": "2-3", "path": path, "was": "2-3", "now": null, "at_ns": null}),
        "at its end /sys/fs/cgroup/tardy-shield/cpuset.cpus was gone.",
    );
    assert_eq!(verdict(&after(lost(None, None))), Validity::Invalid);
    let back = |evidence: &mut Evidence| {
        evidence.setup.shield = Some(ShieldGaps { cpus: "2-3".into(), ..ShieldGaps::default() });
        evidence.setup.interrupts_back = vec!["36 (virtio1-req.0)".into()];
    };
    let values = json!({"interrupts": ["36 (virtio1-req.0)"], "cpus": "2-3"});
    assert_one(back, "interrupts_back", &values, "CPUs 2-3 again: 36 (virtio1-req.0).");
}

#[test]
fn a_setting_that_did_not_stay_is_reported() {
    let lost = |now: Option<&str>| {
        let (name, place) = ("timer_migration".to_owned(), "/proc/sys/kernel/timer_migration");
        let (was, now) = ("0".to_owned(), now.map(str::to_owned));
        let loss = SettingLoss { name, place: place.into(), was, now };
        move |evidence: &mut Evidence| evidence.setup.setting_loss = Some(loss)
    };
    assert_one(
        lost(Some("1")),
        "setting_changed",
        &json!({
            "name": "timer_migration", "place": "/proc/sys/kernel/timer_migration", "was": "0",
            "now": "1"
        }),
        "/proc/sys/kernel/timer_migration was \"1\" instead of \"0\".",
    );
    assert_eq!(verdict(&after(lost(Some("1")))), Validity::Invalid);
    assert!(after(lost(None)).iter().any(|caveat| caveat.text.ends_with("was gone.")));
}
