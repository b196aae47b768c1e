//! Figures, judgements and remarks of runs made by hand.

use serde_json::json;

use super::*;
use crate::{
    run::{Caveat, Effect, Facts, LoadRecord, Validity},
    testing::{cpu_ns, eventually},
};

/// A run of the lab with one series of these percentiles (50, 99, 99.9) and maximum.
pub(crate) fn run(kernel: &str, load: &str, seed: u32, figures: [u64; 4]) -> Document {
    let lab = LabFacts {
        mode: "deterministic".into(),
        qemu: "7.2.0".into(),
        cpu_model: "qemu64".into(),
        shift: Some(1),
        seed,
        wait_ns: Some(u64::from(seed) * 1_000),
        kernel: kernel.into(),
        kernel_hash: format!("{:0>64}", kernel.len()),
        sample_hash: Some(format!("{figures:?}")),
        load: load.into(),
        ..LabFacts::default()
    };
    let facts = Facts { cpus_online: "0".into(), lab: Some(lab), ..Facts::default() };
    let [p50, p99, p999, max] = figures;
    let document = json!({
        "schema_version": 1, "id": "i", "name": format!("{load}/{kernel}/{seed}"), "argv": [],
        "status": "complete", "validity": "valid", "caveats": [],
        "probe": {"name": "timer", "parameters": {}}, "loads": [],
        "setup": {"asked": null, "found": {}}, "trace": {"asked": "off", "found": "off"},
        "facts": facts, "started_at": "", "ended_at": null, "duration_ns": 2_000_000_000_u64,
        "start_monotonic_ns": 1,
        "series": [{
            "name": "cpu0", "cpu": 0, "unit": "ns", "count": 1_000, "missed": 0, "early": 0,
            "above": 0, "min": 1, "mean": 1, "stddev": 0, "max": max,
            "percentiles": {"50": p50, "99": p99, "99.9": p999}, "uncertain": ["99.9"],
            "scheduled": null,
        }],
    });
    Document::from_json(document).unwrap()
}

/// `count` phase offsets, each a little later than the one before.
fn phases(kernel: &str, load: &str, count: u32, figures: [u64; 4]) -> Vec<Document> {
    let of = |seed: u32| run(kernel, load, seed, figures.map(|ns| ns + u64::from(seed) * 10));
    (1..=count).map(of).collect()
}

const STANDARD: [u64; 4] = [8_000, 1_000_000, 1_100_000, 1_200_000];
const RT: [u64; 4] = [8_005, 10_000, 11_000, 12_000];

fn matrix(runs: &[Document]) -> Result<Matrix, MatrixError> {
    super::matrix(runs, NameOrder::default())
}

fn pair(count: u32) -> Vec<Document> {
    let mut runs = phases("standard", "signals", count, STANDARD);
    runs.extend(phases("rt", "signals", count, RT));
    runs
}

fn judgement(runs: &[Document]) -> Judgement {
    matrix(runs).unwrap().loads.remove(0).judgements.remove(0)
}

fn refused(runs: &[Document]) -> String {
    let judgement = judgement(runs);
    assert!(judgement.figures.is_empty());
    judgement.not_judged.unwrap()
}

fn lab(run: &mut Document) -> &mut LabFacts {
    run.facts.lab.as_mut().unwrap()
}

#[test]
fn of_a_stream_that_comes_back_only_the_whole_way_counts() {
    let mut run = run("standard", "stream", 0, STANDARD);
    let way = |name: &str, max| {
        let mut series = run.series[0].clone();
        (series.name, series.max) = (name.into(), Some(max));
        series
    };
    // By two clocks that do not agree, a part may seem longer than the whole.
    run.series = vec![way("rtt", 1_000), way("there", 7_000), way("back", 3)];
    let matrix = matrix(&[run]).unwrap();
    let cell = matrix.loads[0].cells[0].as_ref().unwrap();
    assert_eq!(cell.samples, 1_000);
    let max = cell.figures.iter().find(|figure| figure.name == "max").unwrap();
    assert_eq!((max.low, max.high), (1_000, 1_000));
}

#[test]
fn a_figure_is_the_range_over_start_phases() {
    let matrix = matrix(&pair(5)).unwrap();
    let names: Vec<&str> = matrix.kernels.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["standard", "rt"]);
    let cell = matrix.loads[0].cells[1].as_ref().unwrap();
    assert_eq!((cell.phases, cell.samples), (5, 5_000));
    assert_eq!((cell.figures[1].low, cell.figures[1].high), (10_010, 10_050));
    assert!(matrix.remarks.is_empty(), "{:?}", matrix.remarks);
}

fn verdicts(judgement: &Judgement) -> Vec<(&str, AbVerdict)> {
    judgement.figures.iter().map(|own| (own.figure.as_str(), own.verdict)).collect()
}

#[test]
fn kernels_differ_by_at_least_the_near_end_of_an_interval_and_the_uncertain_is_not_judged() {
    use AbVerdict::{Better, Same};
    let matrix = matrix(&pair(7)).unwrap();
    assert_eq!(matrix.comparisons, 3);
    let judgement = &matrix.loads[0].judgements[0];
    assert_eq!((judgement.kernel, judgement.against), (1, 0));
    assert_eq!(judgement.not_judged, None);
    // The medians' ranges are 8,010 to 8,070 and 8,015 to 8,075; p99.9 is uncertain.
    assert_eq!(verdicts(judgement), [("50", Same), ("99", Better), ("max", Better)]);
    let p99 = &judgement.figures[1];
    let (low, high) = (p99.low.unwrap(), p99.high.unwrap());
    // 1,000,010 to 1,000,070 ns against 10,010 to 10,070.
    assert!(low > 10_010.0 / 1_000_070.0 && high < 10_070.0 / 1_000_010.0, "{p99:?}");
    assert!(low < p99.ratio && p99.ratio < high, "{p99:?}");
}

#[test]
fn fewer_start_phases_than_it_takes_are_not_judged_and_the_same_one_counts_once() {
    assert_eq!(refused(&pair(4)), "not judged: 4 of the 5 phase offsets that it takes");
    let mut runs = pair(4);
    runs.extend(pair(4));
    assert_eq!(refused(&runs), "not judged: 4 of the 5 phase offsets that it takes");
    assert!(matrix(&runs).unwrap().remarks.is_empty(), "the same samples twice cause no doubt");
    // More loads share the 5%, so that each takes more.
    let mut many = pair(5);
    assert_eq!(judgement(&many).not_judged, None);
    for load in ["b", "c", "d", "e"] {
        many.extend(phases("standard", load, 5, STANDARD));
        many.extend(phases("rt", load, 5, RT));
    }
    assert_eq!(refused(&many), "not judged: 5 of the 6 phase offsets that it takes");
}

#[test]
fn a_fixed_lattice_is_no_sample() {
    let mut runs = pair(7);
    runs.iter_mut().for_each(|run| lab(run).wait_ns = None);
    assert!(refused(&runs).contains("fixed lattice"));
}

#[test]
fn a_figure_has_the_interval_of_its_median_from_six_phases_on_and_a_maximum_has_none() {
    let figure = |count: u32, name: &str| {
        let matrix = matrix(&pair(count)).unwrap();
        let figures = matrix.loads[0].cells[1].as_ref().unwrap().figures.clone();
        figures.into_iter().find(|figure| figure.name == name).unwrap()
    };
    let many = figure(20, "99");
    assert_eq!((many.low, many.median, many.high), (10_010, 10_105, 10_200));
    // Ranks 6 and 15 of 20.
    assert_eq!((many.median_low, many.median_high), (Some(10_060), Some(10_150)));
    assert_eq!(figure(5, "99").median_low, None);
    assert_eq!(figure(20, "max").median_low, None);
}

/// The first kernel again, with other padding, its metrics `times` times as large.
fn again(count: u32, times: f64) -> Vec<Document> {
    let mut runs =
        phases("standard", "signals", count, STANDARD.map(|ns| (ns as f64 * times) as u64));
    for run in &mut runs {
        let facts = lab(run);
        (facts.is_control, facts.padding) = (true, 9);
    }
    runs
}

#[test]
fn a_kernel_that_differs_from_itself_raises_what_others_must_exceed() {
    let slower = |times: f64| {
        let figures = STANDARD.map(|ns| (ns as f64 * times) as u64);
        let mut runs = phases("standard", "signals", 7, STANDARD);
        runs.extend(phases("other", "signals", 7, figures));
        runs
    };
    let with = |times: f64, mut runs: Vec<Document>| {
        runs.extend(again(7, times));
        matrix(&runs).unwrap()
    };
    let found = with(1.0, slower(1.2));
    let names: Vec<&str> = found.kernels.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["standard", "other", "standard, again"]);
    let [other, own] = &found.loads[0].judgements[..] else { panic!("{found:?}") };
    assert_eq!((other.kernel, own.kernel), (1, 2));
    assert!(own.figures.iter().all(|one| one.verdict == AbVerdict::Same), "{own:?}");
    assert!(other.figures.iter().all(|one| one.verdict == AbVerdict::Worse), "{other:?}");
    assert_eq!(found.comparisons, 3, "those of equal kernels have a separate error probability");
    assert!(found.remarks.is_empty(), "{:?}", found.remarks);
    let found = with(1.3, slower(1.2));
    let other = &found.loads[0].judgements[0];
    assert!(other.figures.iter().all(|one| one.verdict == AbVerdict::Same), "{other:?}");
    assert!(found.remarks[0].contains("differs from itself (50, 99, max)"), "{:?}", found.remarks);
    let far = with(1.3, slower(3.0)).loads.remove(0).judgements.remove(0);
    assert!(far.figures.iter().all(|one| one.verdict == AbVerdict::Worse), "{far:?}");
}

#[test]
fn noise_and_what_was_measured_otherwise_are_never_judged() {
    type Change = fn(&mut Document);
    let changes: [(&str, Change); 8] = [
        ("plain emulation", |run| lab(run).mode = "emulated".into()),
        ("different programs", |run| run.facts.tardy_version = "9".into()),
        ("different programs", |run| lab(run).qemu = "9".into()),
        ("different programs", |run| lab(run).shift = Some(3)),
        ("several CPUs", |run| run.facts.cpus_online = "0-1".into()),
        ("measured differently", |run| {
            run.parameters.raw = true;
        }),
        ("measured differently", |run| {
            run.loads = vec![LoadRecord {
                name: "other".into(),
                parameters: serde_json::Map::new(),
                proof: None,
                ended: None,
            }];
        }),
        ("invalid (load_idle)", |run| {
            run.validity = Validity::Invalid;
            run.caveats = vec![Caveat {
                code: "load_idle".into(),
                effect: Effect::Invalidates,
                text: String::new(),
                remedy: String::new(),
                values: serde_json::Map::new(),
            }];
        }),
    ];
    for (wanted, change) in changes {
        let mut runs = pair(5);
        if wanted == "plain emulation" {
            runs.iter_mut().for_each(change);
        } else {
            change(&mut runs[7]);
        }
        let reason = refused(&runs);
        assert!(reason.contains(wanted), "{reason}");
    }
}

#[test]
fn other_programs_and_other_samples_of_one_cell_are_remarked() {
    let mut runs = pair(1);
    lab(&mut runs[1]).qemu = "9.9".into();
    let mut again = run("rt", "signals", 1, [1; 4]);
    lab(&mut again).qemu = "9.9".into();
    runs.push(again);
    let remarks = matrix(&runs).unwrap().remarks.join("\n");
    assert!(remarks.contains("different versions of QEMU: 7.2.0, 9.9"), "{remarks}");
    assert!(remarks.contains("Measured twice with different samples: signals under rt"));
}

#[test]
fn what_was_not_measured_leaves_a_hole() {
    let mut runs = pair(5);
    runs.extend(phases("rt", "idle", 5, RT));
    let matrix = matrix(&runs).unwrap();
    assert_eq!(matrix.loads[1].name, "idle");
    assert!(matrix.loads[1].cells[0].is_none() && matrix.loads[1].cells[1].is_some());
    assert!(matrix.loads[1].judgements.is_empty(), "there is nothing to compare with");
}

#[test]
fn two_kernels_of_one_name_are_two_columns() {
    let mut runs = pair(1);
    runs[1] = run("standard", "signals", 1, RT);
    lab(&mut runs[1]).kernel_hash = "abcdef0123456789".into();
    let names: Vec<String> =
        matrix(&runs).unwrap().kernels.into_iter().map(|column| column.name).collect();
    assert_eq!(names, ["standard 00000000 deterministic", "standard abcdef01 deterministic"]);
}

#[test]
fn a_run_of_a_machine_is_refused_by_name() {
    let mut runs = pair(1);
    runs[0].facts.lab = None;
    runs[0].name = "mine".into();
    let error = matrix(&runs).unwrap_err().to_string();
    assert!(error.starts_with("mine was not measured by the lab"), "{error}");
    assert_eq!(matrix(&[]), Err(MatrixError::Empty));
}

#[test]
fn a_plan_gives_the_order_and_what_failed_everywhere_keeps_its_place() {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<String>>();
    let (kernels, loads) = (words("broken rt standard"), words("idle none signals"));
    let mut runs = pair(1);
    runs.push(run("standard", "idle", 1, RT));
    runs.push(run("other", "more", 1, RT));
    let matrix = super::matrix(&runs, NameOrder { kernels: &kernels, loads: &loads }).unwrap();
    let names: Vec<&str> = matrix.kernels.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["broken", "rt", "standard", "other"]);
    let loads: Vec<&str> = matrix.loads.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(loads, ["idle", "none", "signals", "more"]);
    assert!(matrix.loads[1].cells.iter().all(Option::is_none));
    let judgement = &matrix.loads[2].judgements[0];
    assert_eq!((judgement.against, judgement.kernel), (1, 2), "the first that has a cell");
    assert!(matrix.remarks.is_empty(), "{:?}", matrix.remarks);
}

#[test]
fn more_kernels_and_loads_than_anybody_compares_are_refused_with_the_limits() {
    let runs = pair(1);
    let names = |count: usize| (0..count).map(|at| format!("n{at}")).collect::<Vec<String>>();
    let (kernels, loads) = (names(MOST_KERNELS - 2), names(MOST_LOADS - 1));
    let order = NameOrder { kernels: &kernels, loads: &loads };
    let full = super::matrix(&runs, order).unwrap();
    assert_eq!((full.kernels.len(), full.loads.len()), (MOST_KERNELS, MOST_LOADS));
    let many = names(6_000);
    let error = super::matrix(&runs, NameOrder { kernels: &many, loads: &many }).unwrap_err();
    assert_eq!(error, MatrixError::TooLarge { kernels: 6_002, loads: 6_001 });
    assert!(error.to_string().contains("at most 256 kernels and 1024 loads"), "{error}");
    for order in
        [NameOrder { kernels: &many, loads: &[] }, NameOrder { kernels: &[], loads: &many }]
    {
        assert!(super::matrix(&runs, order).is_err());
    }
}

#[test]
fn the_time_grows_with_the_number_of_loads_and_not_with_its_square() {
    let one = pair(1);
    let of = |count: usize| {
        let named = |at: usize| {
            let mut both = one.clone();
            both.iter_mut().for_each(|run| lab(run).load = format!("load{at}"));
            both
        };
        let runs: Vec<Document> = (0..count).flat_map(named).collect();
        cpu_ns(|| matrix(&runs).unwrap())
    };
    assert!(eventually(|| of(960) < 60 * of(60)), "960 loads take 60 times as long as 60");
}

#[test]
fn many_runs_of_one_cell_that_are_all_different_take_no_time() {
    let of = |count: u32| {
        let mut runs = pair(count);
        for (run, at) in runs.iter_mut().zip(0..) {
            run.parameters.warmup_ns = at;
        }
        cpu_ns(|| judgement(&runs))
    };
    assert!(eventually(|| of(960) < 60 * of(60)), "960 runs take 60 times as long as 60");
}
