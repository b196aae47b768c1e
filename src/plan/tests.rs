//! What a plan's file may say, and what is refused by its line.

use super::*;

const GOOD: &str = r#"
name = "founding"
repeats = 5
[run]
interval = "200us"
samples = 10000
raw = true
[[load]]
name = "idle"
[[load]]
name = "kill(0) to 300 processes"
use = ["signals:processes=300", "idle"]
[load.run]
samples = 500
raw = false
"#;

fn refused(text: &str) -> String {
    Plan::parse(text, "p.toml").unwrap_err().to_string()
}

/// [`GOOD`] with a line of it replaced by another.
fn with(line: &str, other: &str) -> String {
    assert!(GOOD.contains(line), "{line}");
    GOOD.replace(line, other)
}

#[test]
fn flags_become_arguments_and_a_load_may_have_its_own() {
    let plan = Plan::parse(GOOD, "p.toml").unwrap();
    assert_eq!((plan.name.as_str(), plan.repeat), ("founding", 5));
    let arguments = |at: usize| plan.rows[at].words().join(" ");
    assert_eq!(arguments(0), "timer --interval=200us --raw --samples=10000 --load=idle");
    assert_eq!(
        arguments(1),
        "timer --interval=200us --samples=500 --load=signals:processes=300 --load=idle"
    );
    assert_eq!(plan.rows[1].line, 10);
}

#[test]
fn what_joins_two_boxes_is_the_labs_and_an_echo_needs_a_second_one() {
    let two = |more: &str| refused(&GOOD.replace("[run]", &format!("boxes = 2\n{more}")));
    let error = two("[run]\nto = \"192.0.2.9:1\"");
    assert!(error.contains("line 6: run.to: the lab joins two boxes itself"), "{error}");
    let error = two("[echo]\nlisten = \"192.0.2.9:1\"\n[run]");
    assert!(error.contains("line 6: echo.listen"), "{error}");
    let error = refused(&with("raw = false", "raw = false\n[load.echo]\npriority = 80"));
    assert!(error.contains("line 17: echo: it needs a second box"), "{error}");
    let error = refused(&with("repeats = 5", "boxes = 3"));
    assert!(error.contains("line 3: boxes: 3 is out of range: use 1 to 2"), "{error}");
}

#[test]
fn an_unknown_field_is_named_with_its_line_and_those_there_are() {
    let error = refused(&with("repeats = 5", "repaets = 5"));
    let wanted = "p.toml, line 3: unknown key \"repaets\": did you mean \"repeats\"?";
    assert!(error.starts_with(wanted), "{error}");
    for known in ["name", "repeat", "probe", "run", "load", "setup", "budget"] {
        assert!(error.contains(&format!("\"{known}\"")), "{error}");
    }
    let error = refused(&with("use =", "uses ="));
    assert!(error.contains("line 12: unknown key \"uses\": did you mean \"use\"?"), "{error}");
    let error = refused(&with("repeats = 5", "zzz = 5"));
    assert!(error.contains("line 3: unknown key \"zzz\", expected one of"), "{error}");
}

#[test]
fn a_value_of_a_wrong_kind_is_reported_by_field_and_line() {
    for (line, other, wanted) in [
        ("repeats = 5", "repeats = 0", "line 3: repeat: 0 is out of range: use 1 to 1000"),
        ("repeats = 5", "repeats = -1", "line 3: repeat: -1"),
        ("repeats = 5", "repeats = \"five\"", "line 3: invalid type: string \"five\""),
        ("name = \"founding\"", "name = \"\"", "line 2: name is empty"),
        ("name = \"founding\"", "name = \"a/b\"", "line 2: name: \"a/b\" becomes part"),
        ("name = \"founding\"", "", "missing field \"name\""),
        ("name = \"idle\"", "name = \"a\\u0007\"", "line 9: name of a load has a control"),
        ("samples = 10000", "samples = [1]", "line 6: run.samples: expected a string, a"),
        ("samples = 10000", "Samples = 1", "line 6: run.Samples: no flag"),
        ("samples = 10000", "output = \"x\"", "line 6: run.output: where runs go"),
        ("samples = 10000", "load = \"x\"", "line 6: run.load: loads belong into"),
        ("\"idle\"]", "\" \"]", "line 12: use: empty"),
        ("\"idle\"]", "7]", "line 12: invalid type: integer \"7\", expected a string"),
        ("repeats = 5", "repeats = ", "line 3: "),
    ] {
        let error = refused(&with(line, other));
        assert!(error.starts_with("p.toml"), "{error}");
        assert!(error.contains(wanted), "{other}: {error}");
    }
}

#[test]
fn a_load_without_use_is_the_built_in_one_of_its_name_or_an_error() {
    let of = |load: &str| format!("name = \"x\"\n[[load]]\n{load}\n");
    let words = |load: &str| Plan::parse(&of(load), "p.toml").unwrap().rows[0].words().join(" ");
    assert_eq!(words("name = \"hackbench\""), "timer --load=hackbench");
    assert_eq!(words("name = \" idle \""), "timer --load=idle");
    // A name is not the load where `use` says what is.
    assert_eq!(words("name = \"hackbench\"\nuse = []"), "timer");
    assert_eq!(words("name = \"a\"\nuse = [\"burn\"]"), "timer --load=burn");
    for name in ["a", "hackbench:groups=1", "hackbnech", "command"] {
        let error = refused(&of(&format!("name = \"{name}\"")));
        let wanted =
            format!("p.toml, line 3: use: load \"{name}\" has none, and is not a built-in");
        assert!(error.starts_with(&wanted), "{error}");
        assert!(error.contains("use = []") && error.contains("tardy load --list"), "{error}");
    }
}

#[test]
fn two_loads_of_one_name_and_none_at_all_are_refused() {
    let error = refused(&with("name = \"kill(0) to 300 processes\"", "name = \"idle\""));
    assert!(error.contains("line 11: load \"idle\" is given twice; see line 8"), "{error}");
    assert!(refused("name = \"x\"").contains("no [[load]]"));
}

#[test]
fn what_is_no_plan_is_refused_by_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let error = Plan::open(directory.path()).unwrap_err().to_string();
    assert!(error.contains("is not a file"), "{error}");
    let missing = directory.path().join("none.toml");
    assert!(Plan::open(&missing).unwrap_err().to_string().contains("none.toml"));
    let large = directory.path().join("large.toml");
    std::fs::write(&large, vec![b'#'; (1 << 20) + 1]).unwrap();
    assert!(Plan::open(&large).unwrap_err().to_string().contains("larger than 1 MiB"));
}

/// Two loads under two setups and two policies, of which the first setup is prepared.
const AXES: &str = r#"
name = "axes"
repeat = 2
seed = 7
pause = "1s"
budget = "10m"
undo = "undo"
policies = ["fifo:80", "other"]
[run]
interval = "1ms"
[[setup]]
name = "standard"
prepare = "true"
[[setup]]
name = "shielded"
run.shield = true
prepare = "set it"
[[load]]
name = "idle"
[[load]]
name = "burn"
use = ["burn"]
"#;

#[test]
fn every_combination_of_the_axes_is_a_row_and_loads_are_outermost() {
    let plan = Plan::parse(AXES, "p.toml").unwrap();
    let names: Vec<&str> = plan.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names.len(), 8);
    assert_eq!(
        names[..3],
        ["idle, standard, fifo:80", "idle, standard, other", "idle, shielded, fifo:80"]
    );
    let last = &plan.rows[7];
    assert_eq!((last.row.as_str(), last.column.as_str()), ("burn", "shielded, other"));
    assert_eq!(last.words().join(" "), "timer --interval=1ms --policy=other --shield --load=burn");
    assert_eq!(last.prepare.as_deref(), Some("set it"));
    assert_eq!(plan.rows[0].flags, ["--interval=1ms", "--policy=fifo", "--priority=80"]);
    assert_eq!((plan.seed, plan.pause_ns), (Some(7), 1_000_000_000));
    assert_eq!((plan.budget_ns, plan.undo.as_deref()), (Some(600_000_000_000), Some("undo")));
    let gates =
        AXES.replace("repeat = 2\n", "repeat = 2\ngates = [\n\"max<1ms\",\n\"p99<=9us\"]\n");
    let gates = Plan::parse(&gates, "p.toml").unwrap().gates;
    let second = PlanGate { text: "p99<=9us".into(), line: 6 };
    assert_eq!((gates.len(), &gates[1]), (2, &second));
    assert_eq!(second.refusal("p.toml", "no"), "p.toml, line 6: gates: no");
}

#[test]
fn probes_are_an_axis_and_each_is_told_by_its_own_flag_how_to_wait() {
    let text = "name = \"x\"\nwaits = [\"spin\", \"sleep\"]\n[[probe]]\nname = \"udp\"\n\
                use = \"stream\"\nrun.transport = \"udp\"\n[[probe]]\nname = \"timer\"\n";
    let plan = Plan::parse(text, "p.toml").unwrap();
    let words: Vec<String> = plan.rows.iter().map(|row| row.words().join(" ")).collect();
    assert_eq!(words[0], "stream --transport=udp --wait=spin");
    assert_eq!(words[3], "timer --wake=sleep");
    assert_eq!((plan.rows[1].row.as_str(), plan.rows[1].column.as_str()), ("udp", "sleep"));
}

#[test]
fn axes_that_contradict_each_other_are_refused_by_line() {
    let of = |line: &str, other: &str| {
        assert!(AXES.contains(line), "{line}");
        refused(&AXES.replace(line, other))
    };
    for (line, other, wanted) in [
        (
            "run.shield = true",
            "run.policy = \"rr\"",
            "line 8: run.policy is set by setup \"shielded\" and by policy \"fifo:80\"",
        ),
        ("name = \"shielded\"", "name = \"standard\"", "line 14: \"standard\" is given twice"),
        ("prepare = \"true\"\n", "", "line 11: setup \"standard\" has no `prepare`"),
        ("prepare = \"set it\"", "prepare = \" \"", "line 17: prepare: no command"),
        ("pause = \"1s\"", "pause = \"1\"", "line 5: pause: 1 has no unit"),
        ("budget = \"10m\"", "budget = \"0s\"", "line 6: budget: 0 leaves no time"),
        ("seed = 7", "seed = -7", "line 4: seed: -7 is out of range"),
        ("seed = 7", "order = \"other\"", "line 4: order: \"other\" is unknown"),
        ("undo = \"undo\"", "undos = \"undo\"", "line 7: unknown key \"undos\": did you mean"),
        ("use = [\"burn\"]", "probe = \"timer\"\n[[probe]]\nname = \"a\"", "probe"),
        ("run.shield = true", "run.gate = \"max<1ms\"", "line 16: run.gate: what limits"),
    ] {
        let error = of(line, other);
        assert!(error.starts_with("p.toml") && error.contains(wanted), "{other}: {error}");
    }
    let error = refused(&AXES.replace("undo = \"undo\"\n", ""));
    assert!(error.contains("line 16: prepare: \"set it\" may change the machine"), "{error}");
    let harmless = AXES.replace("undo = \"undo\"\n", "").replace("set it", "true");
    assert!(Plan::parse(&harmless, "p.toml").is_ok());
    let error = refused("name = \"x\"\nundo = \"x\"\n[[load]]\nname = \"a\"\nuse = []");
    assert!(error.contains("line 2: undo: no [[setup]] has a `prepare`"), "{error}");
}

#[test]
fn more_combinations_than_anybody_measures_are_refused() {
    let tables = |table: &str, count: usize| -> String {
        (0..count).map(|number| format!("[[{table}]]\nname = \"{table}{number}\"\n")).collect()
    };
    let text = format!("name = \"x\"\n{}{}", tables("load", 101), tables("setup", 100));
    assert!(refused(&text).contains("10100 combinations; at most 10000"));
}

const PARTS: &str = r#"
name = "suite"
[run]
duration = "3s"
[[part]]
name = "timer"
run.interval = "500us"
[[part.load]]
name = "idle"
[[part.load]]
name = "burn"
use = ["burn"]
[[part]]
name = "noise"
probe = "noise"
run.duration = "4s"
[[part]]
name = "others"
[[part.probe]]
name = "inversion"
[[part.probe]]
name = "irq"
"#;

#[test]
fn each_part_has_axes_of_its_own_and_its_name_begins_its_rows() {
    let plan = Plan::parse(PARTS, "p.toml").unwrap();
    let rows: Vec<(&str, String)> =
        plan.rows.iter().map(|row| (row.name.as_str(), row.words().join(" "))).collect();
    let expected = [
        ("timer: idle", "timer --duration=3s --interval=500us --load=idle"),
        ("timer: burn", "timer --duration=3s --interval=500us --load=burn"),
        ("noise", "noise --duration=4s"),
        ("others: inversion", "inversion --duration=3s"),
        ("others: irq", "irq --duration=3s"),
    ];
    assert_eq!(rows, expected.map(|(name, words)| (name, words.to_owned())));
    let parts: Vec<&str> = plan.rows.iter().filter_map(|row| row.part.as_deref()).collect();
    assert_eq!(parts, ["timer", "timer", "noise", "others", "others"]);
    assert_eq!((plan.rows[0].line, plan.rows[2].line), (8, 14));
}

#[test]
fn parts_beside_axes_of_the_whole_plan_or_twice_by_one_name_are_refused() {
    let error = refused(&format!("{PARTS}[[load]]\nname = \"idle\"\n"));
    assert!(error.contains("line 5: part: the plan has axes outside of its parts"), "{error}");
    let error = refused(&PARTS.replace("\"others\"", "\"noise\""));
    assert!(error.contains("line 18: part \"noise\" is given twice"), "{error}");
    let error = refused(&PARTS.replace("run.interval", "runs.interval"));
    assert!(error.contains("line 7: unknown key \"runs\": did you mean \"run\"?"), "{error}");
}

#[test]
fn rows_of_two_parts_are_neither_called_alike_nor_left_as_another_one_prepared_the_machine() {
    let alike = "name = \"x\"\n[[part]]\nname = \"a: b\"\n[[part.probe]]\nname = \"x\"\n\
                 use = \"timer\"\n[[part.probe]]\nname = \"y\"\nuse = \"noise\"\n[[part]]\n\
                 name = \"a\"\n[[part.probe]]\nname = \"b: x\"\nuse = \"irq\"\n\
                 [[part.probe]]\nname = \"c\"\nuse = \"noise\"\n";
    let error = refused(alike);
    assert!(error.contains("both are called \"a: b: x\""), "{error}");
    let prepared = PARTS.replace(
        "probe = \"noise\"\n",
        "probe = \"noise\"\n[[part.setup]]\nname = \"s\"\nprepare = \"true\"\n",
    );
    let prepared = prepared.replace("run.duration = \"4s\"\n", "");
    let error = refused(&prepared);
    assert!(error.contains("\"timer: idle\" has no `prepare`, and others do"), "{error}");
}
