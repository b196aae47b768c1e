//! Pictures: every kind in both formats, of runs that are whole and of runs that are not. A picture
//! or a clear error, never a panic; and what the data says is what is drawn.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Command, Output};
use std::sync::OnceLock;

use tardy::report::collect;
use tardy::report::page::{Page, PageScheduled, PointKind};
use tardy::report::plot::{self, PictureKind, PlotError, PlotOptions, Size, View};
use tardy::run::{Run, Scheduled, Status, Validity};

const KINDS: [(PictureKind, &str); 4] = [
    (PictureKind::Scatter, "scatter"),
    (PictureKind::Percentile, "percentile"),
    (PictureKind::Heatmap, "heatmap"),
    (PictureKind::Histogram, "histogram"),
];

const SIZE: Size = Size { width: 900, height: 560 };

fn tardy(store: &Path, words: &[&str]) -> Output {
    let tardy = env!("CARGO_BIN_EXE_tardy");
    Command::new(tardy).arg("--store").arg(store).args(words).output().unwrap()
}

/// A store with the fake runs `a` (samples kept), `b` and `one` (a single sample).
fn store() -> &'static Path {
    static STORE: OnceLock<tempfile::TempDir> = OnceLock::new();
    let directory = STORE.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let runs: [&[&str]; 3] = [
            &["--duration", "1s", "--raw", "--name", "a"],
            &["--duration", "1s", "--name", "b"],
            &["--samples", "1", "--name", "one"],
        ];
        for flags in runs {
            let mut words = vec!["run", "fake", "--cpus", "0", "--warmup", "0s", "--quiet"];
            words.extend(flags);
            let out = tardy(directory.path(), &words);
            assert!(matches!(out.status.code(), Some(0 | 4)), "{out:?}");
        }
        directory
    });
    directory.path()
}

fn page(names: &[&str]) -> Page {
    let runs = names.iter().map(|name| Run::open(&store().join(name)).unwrap());
    let mut page = collect::page(runs.collect());
    // A busy machine weakens runs, which would stand beside their names.
    page.runs.iter_mut().for_each(|run| run.record.validity = Validity::Valid);
    page
}

/// One run with a series for each latency list, as if measured on as many CPUs.
fn many_series(count: usize) -> Page {
    let mut page = page(&["b"]);
    let run = &mut page.runs[0];
    for number in 1..count {
        let (mut record, mut series) = (run.record.series[0].clone(), run.series[0].clone());
        (record.name, series.name) = (format!("cpu{number}"), format!("cpu{number}"));
        record.max = record.max.map(|max| max - number as i64);
        run.record.series.push(record);
        run.series.push(series);
    }
    page
}

fn svg(page: &Page, kind: PictureKind) -> String {
    plot::svg(page, &PlotOptions::new(kind, SIZE)).unwrap()
}

/// The texts of a picture; fails unless it is well-formed XML.
fn texts(svg: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(svg).unwrap();
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    texts.map(|node| node.text().unwrap_or_default().trim().to_owned()).collect()
}

/// How many shapes of that name are filled with a colour of the data.
fn filled(svg: &str, name: &str) -> usize {
    let document = roxmltree::Document::parse(svg).unwrap();
    let shapes = document.descendants().filter(|node| node.has_tag_name(name));
    let fills = shapes.filter_map(|node| node.attribute("fill").map(str::to_owned));
    fills.filter(|fill| fill != "none" && fill != "#FFFFFF").count()
}

fn assert_png(bytes: &[u8], size: Size) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((info.width, info.height), (size.width, size.height));
    assert_eq!(pixels[..3], [255, 255, 255], "the corner is white");
    let dark = pixels.chunks_exact(3).filter(|pixel| pixel.iter().all(|part| *part < 160)).count();
    assert!(dark > 50, "there is text: {dark}");
}

#[test]
fn every_kind_is_drawn_in_both_formats_for_one_run_and_for_two() {
    let directory = tempfile::tempdir().unwrap();
    for runs in [vec!["a"], vec!["a", "b"], vec!["one"]] {
        for (_, kind) in KINDS {
            for format in ["svg", "png"] {
                let file = directory.path().join(format!("{kind}.{format}"));
                let mut words = vec!["plot", "--kind", kind, "-o", file.to_str().unwrap()];
                words.extend(&runs);
                let out = tardy(store(), &words);
                assert_eq!(out.status.code(), Some(0), "{words:?} {out:?}");
                let bytes = std::fs::read(&file).unwrap();
                if format == "png" {
                    assert_png(&bytes, SIZE);
                } else {
                    let texts = texts(std::str::from_utf8(&bytes).unwrap());
                    assert!(texts.iter().any(|text| text.contains("sample")), "{texts:?}");
                    assert!(texts.iter().any(|text| text.contains("max ")), "{texts:?}");
                }
            }
        }
    }
}

#[test]
fn a_picture_holds_each_point_and_each_cell_of_the_data_once() {
    let page = page(&["a", "b"]);
    let points: usize =
        page.runs.iter().flat_map(|run| &run.series).map(|series| series.points.t_s.len()).sum();
    assert!(points > 900, "{points}");
    assert_eq!(filled(&svg(&page, PictureKind::Scatter), "circle"), points);
    let cells: usize = page.runs.iter().map(|run| run.heat.count.len()).sum();
    assert!(cells > 20, "{cells}");
    assert_eq!(filled(&svg(&page, PictureKind::Heatmap), "rect"), cells);
    // A dot at the maximum of each curve.
    assert_eq!(filled(&svg(&page, PictureKind::Percentile), "circle"), 2);
}

#[test]
fn a_sample_after_the_end_is_drawn_where_it_was() {
    let mut page = page(&["a"]);
    let points = &mut page.runs[0].series[0].points;
    let last = points.t_s.len() - 1;
    (points.t_s[last - 1], points.t_s[last]) = (3.0, 5.0);
    let picture = svg(&page, PictureKind::Scatter);
    let document = roxmltree::Document::parse(&picture).unwrap();
    let dots = document.descendants().filter(|node| node.has_tag_name("circle"));
    let mut places: Vec<u32> =
        dots.filter_map(|dot| dot.attribute("cx")).map(|x| x.parse().unwrap()).collect();
    places.sort_unstable();
    let [.., third, second, first] = places[..] else { unreachable!() };
    assert!(third < second && second < first, "{third} {second} {first}");
}

#[test]
fn the_same_runs_give_the_same_picture() {
    let mut again = page(&["a", "b"]);
    again.made_at = "another day".into();
    for (kind, name) in KINDS {
        assert_eq!(svg(&page(&["a", "b"]), kind), svg(&again, kind), "{name}");
    }
}

#[test]
fn each_picture_says_what_was_measured_and_how_much_of_it() {
    let page = page(&["a", "b"]);
    let samples = page.runs[0].record.series[0].count;
    for (kind, name) in KINDS {
        let all = texts(&svg(&page, kind)).join("\n");
        assert!(all.contains("preemption"), "{name}: {all}");
        assert!(
            all.contains(&format!("{} samples", tardy::units::count(samples))),
            "{name}: {all}"
        );
        assert!(all.contains(" us"), "{name}: {all}");
        assert!(!all.contains("1e"), "{name}: {all}");
    }
    let scatter = texts(&svg(&page, PictureKind::Scatter)).join("\n");
    assert!(scatter.contains("one wake-up"), "{scatter}");
    assert!(scatter.contains("largest latency of an interval"), "{scatter}");
    assert_eq!(page.runs[1].series[0].points.kind, PointKind::IntervalMax);
}

#[test]
fn sixty_four_series_are_all_drawn_and_the_worst_are_named() {
    let page = many_series(64);
    for (kind, name) in KINDS {
        let picture = svg(&page, kind);
        let all = texts(&picture).join("\n");
        assert_eq!(all.contains("57 others"), kind != PictureKind::Heatmap, "{name}: {all}");
        assert_png(&plot::png(&page, &PlotOptions::new(kind, SIZE)).unwrap(), SIZE);
    }
    assert_eq!(filled(&svg(&page, PictureKind::Percentile), "circle"), 64);
}

#[test]
fn early_wakeups_are_counted_where_they_cannot_be_drawn() {
    let mut page = page(&["a"]);
    let run = &mut page.runs[0];
    run.record.series[0].early = 2;
    run.record.series[0].min = Some(-3_000);
    run.series[0].points.latency_ns[7] = -3_000;
    run.series[0].points.latency_ns[8] = -1;
    let points = run.series[0].points.t_s.len();
    let picture = svg(&page, PictureKind::Scatter);
    assert_eq!(filled(&picture, "circle"), points - 2);
    for (kind, name) in KINDS {
        let all = texts(&svg(&page, kind)).join(" ");
        assert!(all.contains("2 early wake-ups are not drawn"), "{name}: {all}");
    }
}

#[test]
fn a_run_without_samples_is_an_empty_panel_beside_others_and_an_error_alone() {
    let mut page = page(&["a", "b"]);
    let empty = &mut page.runs[1];
    empty.heat = Default::default();
    let record = &mut empty.record.series[0];
    (record.count, record.max, record.min, record.mean) = (0, None, None, None);
    let series = &mut empty.series[0];
    series.curve.clear();
    series.histogram.clear();
    series.points.t_s.clear();
    series.points.latency_ns.clear();
    for (kind, name) in KINDS {
        let all = texts(&svg(&page, kind)).join("\n");
        assert!(all.contains("b: 0 samples"), "{name}: {all}");
        assert_png(&plot::png(&page, &PlotOptions::new(kind, SIZE)).unwrap(), SIZE);
    }
    page.runs.remove(0);
    for (kind, _) in KINDS {
        let error = plot::svg(&page, &PlotOptions::new(kind, SIZE)).unwrap_err();
        assert_eq!(error, PlotError::Nothing("no run has a sample"));
    }
}

#[test]
fn only_early_wakeups_are_nothing_to_draw() {
    let mut page = page(&["one"]);
    page.runs[0].record.series[0].max = Some(-5);
    page.runs[0].series[0].histogram.clear();
    page.runs[0].series[0].curve = vec![(0.0, -5), (100.0, -5)];
    for (kind, _) in KINDS {
        let error = plot::png(&page, &PlotOptions::new(kind, SIZE)).unwrap_err().to_string();
        assert!(error.contains("early"), "{error}");
    }
}

#[test]
fn latencies_of_nothing_and_of_an_hour_share_a_picture() {
    let mut page = page(&["a", "b"]);
    page.latency_edges_ns.insert(0, 0);
    *page.latency_edges_ns.last_mut().unwrap() = 4_000_000_000_000;
    let run = &mut page.runs[0];
    run.record.series[0].max = Some(3_600_000_000_000);
    run.record.series[0].above = 1;
    run.series[0].points.latency_ns[0] = 0;
    run.series[0].points.latency_ns[1] = 3_600_000_000_000;
    run.series[0].curve.push((100.0, 3_600_000_000_000));
    for (kind, name) in KINDS {
        let all = texts(&svg(&page, kind)).join(" ");
        assert!(all.contains("max 3600 s, cpu0"), "{name}: {all}");
        assert!(all.contains("1 above 1 h"), "{name}: {all}");
    }
}

#[test]
fn names_of_runs_cannot_break_the_file() {
    let mut page = page(&["a", "b"]);
    let name = "</text><script>alert(1)</script>&\"'\u{1}\u{ffff}\n\u{202e}";
    page.runs[0].record.name = format!("{name}{}", "x".repeat(5_000));
    page.runs[0].line = name.into();
    page.runs[0].headline = name.into();
    page.runs[1].record.name = "\u{4e2d}\u{6587}".into();
    page.runs[0].record.series[0].name = name.into();
    page.runs[0].series[0].name = name.into();
    for (kind, _) in KINDS {
        let picture = svg(&page, kind);
        let document = roxmltree::Document::parse(&picture).unwrap();
        assert!(!document.descendants().any(|node| node.has_tag_name("script")));
        assert_png(&plot::png(&page, &PlotOptions::new(kind, SIZE)).unwrap(), SIZE);
    }
}

#[test]
fn a_run_that_crashed_or_is_invalid_says_so_beside_its_name() {
    let mut page = page(&["a"]);
    page.runs[0].record.status = Status::Crashed;
    page.runs[0].record.validity = Validity::Invalid;
    let texts = texts(&svg(&page, PictureKind::Scatter));
    assert!(texts.contains(&"a (invalid, crashed)".to_owned()), "{texts:?}");
}

#[test]
fn what_cannot_be_drawn_is_refused_with_a_remedy() {
    let file = |name: &str| store().join(name).to_str().unwrap().to_owned();
    let svg = file("x.svg");
    let missing = file("no/such/place.png");
    let refused: [(&[&str], &str); 7] = [
        (&["a", "-o", "x.gif"], "-o x.gif: a picture is an SVG or a PNG; name a file that ends in"),
        (&["a", "-o", "x"], ".svg or .png"),
        (&["a", "-o", &missing], "cannot write"),
        (&["a", "-o", &svg, "--size", "900"], "as in 900x560"),
        (&["a", "-o", &svg, "--size", "100000x2"], "from 200 to 8000"),
        (&["nobody", "-o", &svg], "no run \"nobody\""),
        (&["a", "a", "a", "a", "a", "a", "a", "-o", &svg], "7 runs in one picture"),
    ];
    for (words, want) in refused {
        let out = tardy(store(), &[&["plot"], words].concat());
        let error = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{words:?} {error}");
        assert!(error.contains(want), "{words:?} {error}");
    }
    let tight = Size { width: 200, height: 200 };
    let page = page(&["a", "b", "a", "b", "a", "b"]);
    let error = plot::svg(&page, &PlotOptions::new(PictureKind::Heatmap, tight)).unwrap_err();
    assert_eq!(error, PlotError::Small { size: tight });
}

#[test]
fn small_and_large_sizes_are_kept() {
    for size in ["200x200", "333x1000", "2000x300"] {
        let size: Size = size.parse().unwrap();
        for (kind, _) in KINDS {
            assert_png(&plot::png(&page(&["a"]), &PlotOptions::new(kind, size)).unwrap(), size);
        }
    }
}

fn strokes(svg: &str) -> std::collections::BTreeSet<String> {
    let document = roxmltree::Document::parse(svg).unwrap();
    let lines = document.descendants().filter(|node| node.has_tag_name("polyline"));
    // The curves; everything else has thinner lines.
    let is_curve = |node: &roxmltree::Node<'_, '_>| {
        node.attribute("stroke-width").and_then(|width| width.parse().ok()).unwrap_or(0) >= 20
    };
    lines.filter(is_curve).filter_map(|node| node.attribute("stroke").map(str::to_owned)).collect()
}

#[test]
fn two_runs_over_each_other_have_a_colour_each() {
    let [black, red] = ["#000000", "#D55E00"].map(str::to_owned);
    let two = strokes(&svg(&page(&["a", "b"]), PictureKind::Percentile));
    assert!(two.contains(&black) && two.contains(&red), "{two:?}");
    let one = strokes(&svg(&page(&["a"]), PictureKind::Percentile));
    assert!(!one.contains(&red), "{one:?}");
}

/// A run of which half of the periods were missed.
fn stalled() -> Page {
    let mut page = page(&["a"]);
    let run = &mut page.runs[0];
    run.scheduled_first = true;
    let series = &mut run.series[0];
    let scheduled = PageScheduled {
        curve: vec![(0.0, 1_000), (50.0, 20_000_000), (100.0, 40_000_000)],
        histogram: series.histogram.clone(),
    };
    series.scheduled = Some(scheduled);
    let record = &mut run.record.series[0];
    record.max = Some(40_000_000);
    record.scheduled = Some(Scheduled {
        count: 77_000,
        mean: None,
        max: record.max,
        percentiles: record.percentiles.clone(),
        uncertain: Vec::new(),
    });
    page
}

#[test]
fn where_many_periods_were_missed_they_are_counted_unless_another_view_is_asked_for() {
    let page = stalled();
    let drawn = |kind, view| {
        let options = PlotOptions { view, ..PlotOptions::new(kind, SIZE) };
        plot::svg(&page, &options).map(|svg| texts(&svg).join("\n"))
    };
    for kind in [PictureKind::Percentile, PictureKind::Histogram] {
        let first = drawn(kind, None).unwrap();
        assert!(first.contains("77 000 scheduled periods"), "{first}");
        assert!(first.contains("counts as L, L-T"), "{first}");
        assert_eq!(first, drawn(kind, Some(View::Scheduled)).unwrap());
        let other = drawn(kind, Some(View::WakeUp)).unwrap();
        assert!(!other.contains("scheduled period") && other.contains(" samples"), "{other}");
    }
    let over_time = drawn(PictureKind::Scatter, None).unwrap();
    assert!(!over_time.contains("scheduled period"), "{over_time}");
    let refused = drawn(PictureKind::Heatmap, Some(View::Scheduled)).unwrap_err();
    assert!(refused.to_string().contains("--kind percentile or histogram"), "{refused}");
}

#[test]
fn a_title_stands_above_and_series_are_chosen_by_name() {
    let page = many_series(3);
    for (kind, name) in KINDS {
        let options = PlotOptions {
            title: Some("Figure 7: <before>".into()),
            series: vec!["cpu1".into()],
            ..PlotOptions::new(kind, SIZE)
        };
        let picture = plot::svg(&page, &options).unwrap();
        let all = texts(&picture);
        assert!(all.iter().any(|text| text == "Figure 7: <before>"), "{name}: {all:?}");
        assert!(picture.contains("<title>Figure 7: &lt;before&gt;</title>"), "{name}");
        let words = all.join("\n");
        assert!(words.contains("cpu1") && !words.contains("cpu0"), "{name}: {words}");
        let samples = tardy::units::count(page.runs[0].record.series[1].count);
        assert!(words.contains(&format!("{samples} samples")), "{name}: {words}");
    }
    let unknown =
        PlotOptions { series: vec!["cpu9".into()], ..PlotOptions::new(PictureKind::Scatter, SIZE) };
    let refused = plot::svg(&page, &unknown).unwrap_err().to_string();
    assert!(
        refused.contains("no run has a series \"cpu9\"; there are cpu0, cpu1, cpu2"),
        "{refused}"
    );
}

#[test]
fn a_crowd_of_points_is_pixels_within_the_picture() {
    let mut page = page(&["a"]);
    let points = &mut page.runs[0].series[0].points;
    let (t_s, latency_ns) = (points.t_s.clone(), points.latency_ns.clone());
    for round in 1..22 {
        points.t_s.extend(t_s.iter().map(|t_s| t_s + f64::from(round) * 0.9));
        points.latency_ns.extend(&latency_ns);
    }
    let picture = svg(&page, PictureKind::Scatter);
    assert_eq!(filled(&picture, "circle"), 0);
    assert!(picture.len() < 700_000, "{}", picture.len());
    let document = roxmltree::Document::parse(&picture).unwrap();
    let images: Vec<_> = document.descendants().filter(|node| node.has_tag_name("image")).collect();
    let [image] = images[..] else { unreachable!() };
    let data = image.attribute("href").unwrap().strip_prefix("data:image/png;base64,").unwrap();
    let file = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, data).unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    let dotted = pixels.chunks_exact(4).filter(|pixel| pixel[3] > 100).count();
    assert!(dotted > 2_000, "{dotted}");
    assert!(texts(&picture).iter().any(|text| text.starts_with("max ")), "words stay words");
}

#[test]
fn the_latency_axis_has_the_range_that_was_asked_for_and_nothing_is_left_out() {
    let page = stalled();
    let drawn = |kind, range: &str| {
        let options =
            PlotOptions { latency: range.parse().unwrap(), ..PlotOptions::new(kind, SIZE) };
        plot::svg(&page, &options).unwrap()
    };
    for (kind, name) in KINDS {
        let wide = texts(&drawn(kind, "..10s"));
        assert!(wide.iter().any(|text| text == "1 s"), "{name}: {wide:?}");
        assert!(!wide.iter().any(|text| text.contains("stand at the edge")), "{name}: {wide:?}");
        let narrow = drawn(kind, "..500us");
        let words = texts(&narrow);
        assert!(!words.iter().any(|text| text == "1 ms"), "{name}: {words:?}");
        assert!(words.join(" ").contains("Latencies above 500 us stand at the edge."), "{name}");
        assert!(words.join(" ").contains("max 40.0 ms"), "{name}: {words:?}");
    }
    let dots = page.runs[0].series[0].points.t_s.len();
    assert_eq!(filled(&drawn(PictureKind::Scatter, "..20us"), "circle"), dots);
}
