//! Runs that are chosen by what holds them: plans, directories, lists of names. And what of them
//! cannot be read.

use std::{fs, path::Path, process::Stdio};

use super::{
    foreign_readers::{has_modules, python},
    support::{Said, Store, contents, finish, page_data, piped},
};

/// A plan `nightly` of two cells, and then a run `r`.
fn measured() -> Store {
    let store = Store::new();
    let text = "name = \"p\"\norder = \"listed\"\nprobe = \"fake\"\n[run]\ncpus = \"0\"\n\
                unpaced = true\nsamples = 2000\nwarmup = \"0s\"\n[[load]]\nname = \"a\"\n\
                use = []\n[[load]]\nname = \"b\"\nuse = []\n";
    fs::write(store.path().join("plan.toml"), text).unwrap();
    let done = store.run(&["plan", "./plan.toml", "--name=nightly", "--quiet"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let run = ["run", "fake", "--unpaced", "--samples", "2k", "--warmup", "0s", "--cpus", "0"];
    let done = store.run(&[&run[..], &["--quiet", "--name", "r"]].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    store
}

/// The names of the runs in an export, each once.
fn exported(store: &Store, names: &[&str]) -> Vec<String> {
    let said = store.run(&[&["export", "--to", "json"][..], names].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    runs(&said)
}

fn runs(said: &Said) -> Vec<String> {
    let found: Vec<serde_json::Value> = serde_json::from_str(&said.out).unwrap();
    found.iter().map(|run| run["record"]["name"].as_str().unwrap().to_owned()).collect()
}

/// tardy after a pipe: `script | tardy ARGUMENTS`.
fn fed(store: &Store, script: &str, arguments: &str) -> Said {
    let script = format!("{script} | '{}' {arguments}", env!("CARGO_BIN_EXE_tardy"));
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]).current_dir(store.path()).env("TARDY_STORE", store.runs());
    finish(piped(shell.stdin(Stdio::null())))
}

#[test]
fn a_plan_a_directory_and_a_list_stand_for_their_runs() {
    let store = measured();
    let cells = ["nightly-0001", "nightly-0002"];
    assert_eq!(exported(&store, &["nightly"]), cells);
    assert_eq!(exported(&store, &["last"]), ["r"]);
    assert_eq!(exported(&store, &["last~1"]), cells);
    assert_eq!(
        exported(&store, &["nightly-0002", "runs/nightly/", "r"]),
        ["nightly-0002", "nightly-0001", "r"]
    );
    assert_eq!(exported(&store, &["./runs"]), ["nightly-0001", "nightly-0002", "r"]);
    assert_eq!(store.show("nightly-0002")["name"], "nightly-0002");
    let compared = store.run(&["compare", "nightly-0001", "r"]);
    assert!(compared.out.contains("nightly-0001"), "{compared:?}");
    let found = "find runs/nightly -name run.json -print0 | sort -z";
    let listed = fed(&store, found, "export --files-from - -0 --to json");
    assert_eq!(runs(&listed), cells, "{listed:?}");
    // More than a command line holds.
    let many = "{ seq 60000 | sed 's/.*/runs\\/nightly\\/cells\\/0001/'; echo r; }";
    let listed = fed(&store, many, "export --files-from - --to json");
    assert_eq!(runs(&listed), ["nightly-0001", "r"], "{}", listed.err);
    assert!(listed.err.contains("59,999 runs named more than once"), "{}", listed.err);
    let nul = fed(&store, found, "export --files-from - --to json");
    assert!(nul.code == Some(2) && nul.err.contains("add --null"), "{nul:?}");
    let none = fed(&store, "true", "export --files-from - --to json");
    assert!(none.code == Some(2) && none.err.contains("names no run"), "{none:?}");
    for one in ["hgrm", "cyclictest-json", "bundle", "hlog"] {
        let said = store.run(&["export", "nightly", "--to", one, "-o", "x"]);
        assert_eq!(said.code, Some(2), "{said:?}");
        let what = format!("--to {one} takes one run, and nightly is a plan");
        assert!(said.err.contains(&what), "{said:?}");
    }
    let said = store.run(&["export", "runs/", "--to", "hgrm"]);
    assert!(said.err.contains("is a directory; name a run in it"), "{said:?}");
    let said = store.run(&["export", "nightly", "--to", "json", "-o", "runs/nightly/plan.json"]);
    assert!(said.code == Some(2) && said.err.contains("is a part of the run or plan"), "{said:?}");
}

#[test]
fn what_cannot_be_read_is_left_out_and_counted() {
    let store = measured();
    let record = store.runs().join("nightly/cells/0002/run.json");
    let text = fs::read_to_string(&record).unwrap();
    fs::write(&record, &text[..text.len() / 2]).unwrap();
    let log = store.runs().join("r/series.hlog");
    fs::write(&log, "Tag=cpu0,x\n").unwrap();
    for to in ["json", "prometheus", "histogram-csv", "influx", "merged-csv", "histogram-parquet"] {
        let said = store.run(&["export", "./runs", "--to", to, "-o", "all"]);
        assert_eq!(said.code, Some(0), "{to}: {said:?}");
        assert!(said.err.contains("0002/run.json is damaged"), "{to}: {said:?}");
        assert!(said.err.contains("series.hlog"), "{to}: {said:?}");
        assert!(said.err.contains("2 of 3 runs cannot be read and are left out"), "{to}: {said:?}");
        assert!(fs::metadata(store.path().join("all")).unwrap().len() > 0, "{to}");
    }
    // One of a list is gone.
    let listed = fed(&store, "printf 'gone\\nnightly-0001\\n'", "export --files-from - --to json");
    let told = "warning: 1 name of the list cannot be read\n";
    assert!(listed.code == Some(0) && listed.err.ends_with(told), "{listed:?}");
    assert_eq!(store.run(&["export", "gone", "nightly", "--to", "json"]).code, Some(2));
    // Nothing is left, and nothing is replaced.
    let before = contents(store.path());
    for words in [&["r"][..], &["r", "runs/nightly/cells/0002"]] {
        let said = store.run(&[&["export", "--to", "merged-csv", "-o", "all"][..], words].concat());
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains("series.hlog"), "{said:?}");
    }
    assert_eq!(contents(store.path()), before);
    // A test report has it as an error: nobody knows what it would have said.
    for words in [&["nightly"][..], &["nightly/cells/0002", "nightly/cells/0001"]] {
        let words: Vec<String> = words.iter().map(|name| format!("runs/{name}")).collect();
        let words = words.iter().map(String::as_str).collect::<Vec<_>>();
        let said = store.run(&[&["export", "--to", "tap"][..], &words].concat());
        assert_eq!(said.code, Some(4), "{said:?}");
        assert!(said.out.contains("not ok") && said.out.contains("is damaged"), "{said:?}");
    }
    let page = store.run(&["report", "nightly-0001", "runs/nightly/cells/0002", "-o", "x.html"]);
    assert!(page.code == Some(0) && page.err.contains("1 of 2 runs cannot be read"), "{page:?}");
    // A record of many that is damaged leaves its runs.
    fs::write(store.runs().join("nightly/plan.json"), "{").unwrap();
    let said = store.run(&["export", "nightly", "--to", "json"]);
    assert_eq!(runs(&said), ["nightly-0001"], "{said:?}");
    assert!(said.err.contains("plan.json is damaged"), "{said:?}");
    let told = "warning: 1 of 2 runs cannot be read and is left out\n\
                warning: 1 plan cannot be read\n";
    assert!(said.err.ends_with(told), "{said:?}");
    let none = fed(&store, "printf 'gone\\nlost\\n'", "export --files-from - --to json");
    let told = "none of these can be read: 2 names of the list";
    assert!(none.code == Some(2) && none.err.contains(told), "{none:?}");
}

/// A plan `name` of one row, three times, in which the second run is cut short.
fn damaged_plan(store: &Store, name: &str) {
    let text = "name = \"p\"\nrepeat = 3\nprobe = \"fake\"\n[run]\ncpus = \"0\"\n\
                unpaced = true\nsamples = 2000\nwarmup = \"0s\"\n[[load]]\nname = \"a\"\n\
                use = []\n";
    fs::write(store.path().join("plan.toml"), text).unwrap();
    let done = store.run(&["plan", "./plan.toml", "--name", name, "--quiet"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let record = store.runs().join(name).join("cells/0002/run.json");
    let text = fs::read_to_string(&record).unwrap();
    fs::write(&record, &text[..text.len() / 2]).unwrap();
}

#[test]
fn a_plan_with_a_damaged_run_is_shown_without_it_and_says_so() {
    let store = Store::new();
    damaged_plan(&store, "x");
    damaged_plan(&store, "y");
    let one = store.run(&["report", "runs/x", "-o", "x.html"]);
    assert!(one.code == Some(0) && one.err.contains("skipped: runs/x/cells/0002/run.json"));
    assert!(one.err.ends_with("warning: 1 of 3 runs cannot be read and is left out\n"), "{one:?}");
    let finding = |file: &str| {
        let page = page_data(&fs::read_to_string(store.path().join(file)).unwrap());
        page["matrix"]["finding"].as_str().unwrap().to_owned()
    };
    let told = "1 of 3 cells cannot be read: a (1 of 3 repeats); ";
    assert!(finding("x.html").starts_with(told), "{}", finding("x.html"));
    let both = store.run(&["compare", "runs/x", "y"]);
    let told = "warning: 2 of 6 runs cannot be read and are left out\n";
    assert!(both.err.ends_with(told), "{both:?}");
    let told = "1 of 3 cells of x cannot be read: a (1 of 3 repeats); 1 of 3 cells of y";
    assert!(both.out.replace('\n', " ").starts_with(told), "{both:?}");
    // A directory with a plan whose record is damaged.
    fs::write(store.runs().join("y/plan.json"), "{").unwrap();
    let page = store.run(&["report", "./runs", "-o", "all.html"]);
    assert!(page.code == Some(0) && page.err.contains("y/plan.json is damaged"), "{page:?}");
    assert!(page.err.ends_with("warning: 1 plan cannot be read\n"), "{page:?}");
    assert!(finding("all.html").starts_with("1 of 3 cells cannot be read"));
    let none = store.run(&["report", "y", "--pages=0", "-o", "y.html"]);
    assert!(none.code == Some(2) && none.err.contains("y/plan.json is damaged"), "{none:?}");
    let absent = store.run(&["compare", "nonsuch", "x"]);
    assert!(absent.code == Some(2) && absent.err.contains("no run \"nonsuch\""), "{absent:?}");
    for cell in ["0001", "0003"] {
        fs::remove_file(store.runs().join("x/cells").join(cell).join("run.json")).unwrap();
    }
    let none = store.run(&["report", "x", "-o", "x.html"]);
    let told = "none of these can be read: 3 runs";
    assert!(none.code == Some(2) && none.err.contains(told), "{none:?}");
}

#[test]
fn runs_of_plans_are_named_by_their_paths_in_the_store_and_the_last_run_is_none_of_them() {
    let store = Store::new();
    let empty = store.run(&["show", "last"]);
    assert!(empty.err.contains("has no run measured by you outside plans"), "{empty:?}");
    damaged_plan(&store, "x");
    for verb in ["show", "why"] {
        let none = store.run(&[verb, "last"]);
        let told = "the newest plan is x, and `tardy list --where plan=x` shows its runs";
        assert!(none.code == Some(2) && none.err.contains(told), "{none:?}");
    }
    assert_eq!(store.show("x/cells/0001")["name"], "x-0001");
    assert_eq!(exported(&store, &["x/cells/0003"]), ["x-0003"]);
    let none = store.run(&["show", "x/cells/9999"]);
    assert!(none.err.contains("no such directory"), "{none:?}");
    for path in ["./x/cells/0001", "x/cells/../cells/0001", "x/"] {
        assert_eq!(store.run(&["show", path]).code, Some(2), "{path}");
    }
    // What is there has precedence.
    fs::create_dir_all(store.path().join("x/cells/0001")).unwrap();
    let own = store.run(&["show", "x/cells/0001"]);
    assert!(own.code == Some(2) && own.err.contains("is not a run directory"), "{own:?}");
}

#[test]
fn a_page_is_made_of_a_directory_and_of_what_is_the_last() {
    let store = measured();
    let title = |words: &[&str]| {
        let said = store.run(&[&["report"][..], words, &["-o", "x.html"]].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        let page = page_data(&fs::read_to_string(store.path().join("x.html")).unwrap());
        (page["runs"].as_array().unwrap().len(), page["matrix"]["headline"].clone())
    };
    assert_eq!(title(&["last"]), (1, serde_json::Value::Null));
    let plan = title(&["last~1"]);
    assert_eq!(title(&["runs/nightly/"]), plan);
    assert!(plan.1.as_str().unwrap().contains("nightly"), "{plan:?}");
    assert_eq!(title(&["./runs/nightly/cells"]).0, 2);
    let mixed = store.run(&["report", "./runs", "-o", "x.html"]);
    assert!(mixed.code == Some(2) && mixed.err.contains("name plans only"), "{mixed:?}");
    let removed = store.run(&["rm", "last~1"]);
    assert!(removed.out.ends_with("/nightly\n"), "{removed:?}");
    assert!(!store.runs().join("nightly").exists() && store.runs().join("r").exists());
}

/// The lines of the first block of a document that has this text.
fn documented(document: &str, with: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
    let text = fs::read_to_string(path).unwrap();
    let blocks = text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.filter(|block| block.contains(with)).map(str::to_owned).next().unwrap()
}

#[test]
fn what_ansible_collects_is_unpacked_and_exported_as_documented() {
    let store = measured();
    let collected = store.path().join("collected/night-1");
    fs::create_dir_all(&collected).unwrap();
    // As `deploy/ansible/roles/tardy/tasks/collect.yml` packs it, of two machines.
    for machine in ["a", "b"] {
        let file = collected.join(format!("{machine}.tar.gz"));
        let mut tar = std::process::Command::new("tar");
        tar.args(["--sort=name", "--mtime=@0", "-C"]).arg(store.runs()).arg("-czf").arg(file);
        assert!(tar.arg("nightly").status().unwrap().success());
    }
    let script = documented("docs/how-to/fleet.md", "tar -xzf");
    let bin = Path::new(env!("CARGO_BIN_EXE_tardy")).parent().unwrap().display().to_string();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
    let mut shell = std::process::Command::new("sh");
    shell.args(["-ec", &script]).current_dir(store.path()).env("PATH", path);
    let said = finish(piped(&mut shell));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(collected.join("fleet.parquet").is_file(), "{said:?}");
    let unpacked = collected.join("runs");
    assert!(unpacked.join("b/nightly/cells/0002/run.json").is_file());
    // Both machines are this one, so that each run is there twice.
    assert!(said.err.contains("2 runs named more than once"), "{said:?}");
    let names = exported(&store, &[unpacked.to_str().unwrap()]);
    assert_eq!(names, ["nightly-0001", "nightly-0002"]);
    if !has_modules() {
        return;
    }
    // What the shell gives to DuckDB there.
    let script = documented("docs/how-to/fleet.md", "partition_by");
    let sql = script.split("<<'END'\n").nth(1).unwrap().split("END").next().unwrap();
    let words = ["-c", "import duckdb, sys; duckdb.execute(sys.argv[1])", sql];
    let said = finish(piped(python().args(words).current_dir(store.path())));
    assert_eq!(said.code, Some(0), "{}", said.err);
    let shards = fs::read_dir(store.path().join("rows/day=2026-11-29")).unwrap();
    assert_eq!(shards.count(), 1, "one machine");
}

#[test]
fn of_two_copies_of_a_run_the_whole_one_is_taken_whatever_its_name() {
    let store = measured();
    let place = store.path().join("copies");
    let copy = |name: &str| {
        fs::create_dir_all(place.join(name)).unwrap();
        for file in ["run.json", "series.hlog"] {
            fs::copy(store.runs().join("r").join(file), place.join(name).join(file)).unwrap();
        }
        place.join(name)
    };
    let export = |to: &str| {
        let said = store.run(&["export", "./copies", "--to", to]);
        assert_eq!(said.code, Some(0), "{to}: {said:?}");
        said
    };
    copy("m");
    let whole = ["merged-csv", "histogram-csv"].map(|to| export(to).out);
    assert!(whole.iter().all(|text| text.lines().count() > 1), "{whole:?}");
    // Cut off, and copied while it ran.
    fs::write(copy("a").join("series.hlog"), "").unwrap();
    let early = copy("b").join("run.json");
    let mut record: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&early).unwrap()).unwrap();
    record["status"] = "running".into();
    fs::write(&early, record.to_string()).unwrap();
    let both = ["merged-csv", "histogram-csv"].map(export);
    assert_eq!(both.each_ref().map(|said| said.out.clone()), whole);
    assert!(both.iter().all(|said| said.err.contains("it was cut off")), "{both:?}");
}
