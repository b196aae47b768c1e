//! `tardy check` as a user and a script meet it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::support::{Said, Store, is_root, list};

fn findings(said: &Said) -> Vec<Value> {
    let answer: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"));
    list(&answer["findings"]).to_vec()
}

fn has_serious(findings: &[Value]) -> bool {
    findings.iter().any(|finding| finding["severity"] == "serious")
}

#[test]
fn the_exit_code_says_whether_something_serious_was_found() {
    for store in [Store::new(), Store::unprivileged()] {
        let said = store.run(&["check", "--json"]);
        let found = findings(&said);
        assert_eq!(said.code, Some(i32::from(has_serious(&found))), "{said:?}");
        assert_eq!(said.err, "");
        for finding in &found {
            let keys: BTreeSet<&str> =
                finding.as_object().unwrap().keys().map(String::as_str).collect();
            let want = BTreeSet::from(["code", "status", "severity", "evidence", "remedy"]);
            assert_eq!(keys, want);
            let costs = finding["status"] == "costs";
            assert_eq!(costs, !finding["severity"].is_null(), "{finding}");
        }
        assert_eq!(store.run(&["check"]).code, said.code, "the text comes to the same");
    }
}

#[test]
fn a_user_without_rights_sees_which_are_missing() {
    if !is_root() {
        return super::support::skip("whether this user has rights is not known");
    }
    let of = |store: &Store, limits: &str| {
        let command = &mut store.shell(limits, &["check", "--json"]);
        let found = findings(&super::support::finish(super::support::piped(command)));
        let rights = found.into_iter().find(|finding| finding["code"] == "real_time_rights");
        rights.unwrap()["status"].clone()
    };
    assert_eq!(of(&Store::unprivileged(), "ulimit -r 0"), "costs");
    assert_eq!(of(&Store::new(), ":"), "ok");
}

#[test]
fn what_is_well_is_one_line_unless_all_is_asked_for() {
    let store = Store::new();
    let (short, all) = (store.run(&["check"]).out, store.run(&["check", "--all"]).out);
    let found = findings(&store.run(&["check", "--json"]));
    for finding in &found {
        let (code, evidence) =
            (finding["code"].as_str().unwrap(), finding["evidence"].as_str().unwrap());
        let line = format!("  {code}: ");
        assert!(all.contains(&line), "{code}: {all}");
        assert_eq!(short.contains(&line), finding["status"] != "ok", "{code}: {evidence}");
        assert!(short.contains(code), "{code} is named at least: {short}");
    }
    assert!(short.lines().count() < all.lines().count());
    assert!(short.starts_with("CPU"), "the summary comes first: {short}");
}

#[test]
fn a_cpu_that_is_named_is_asked_about_and_one_that_is_not_there_is_refused() {
    let store = Store::new();
    let first = tardy::sys::cpus::Cpus::allowed().unwrap().iter().next().unwrap().to_string();
    let said = store.run(&["check", "--cpus", &first, "--json"]);
    let found = findings(&said);
    let isolated = found.iter().find(|finding| finding["code"] == "isolcpus").unwrap();
    let text = format!("{}{}", isolated["evidence"], isolated["remedy"]);
    assert!(text.contains(&first), "{isolated}");
    let others = findings(&store.run(&["check", "--json"]));
    assert!(!others.iter().any(|finding| finding["code"] == "isolcpus"), "isolated from whom?");
    let refused = store.run(&["check", "--cpus", "1000"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("--cpus 1000: 1000 is not online"), "{refused:?}");
}
