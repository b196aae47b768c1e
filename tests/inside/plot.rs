//! Pictures: every kind in every format, of runs that are whole and of runs that are not. A picture
//! or a clear error, never a panic; and what the data says is what is drawn.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tardy::report::collect;
use tardy::report::page::{Page, PageScheduled, PointKind};
use tardy::report::plot::{self, PictureKind, PlotError, PlotOptions, Size, View};
use tardy::run::{Run, Scheduled, Status, Validity};

use super::once::made_once;

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
fn store() -> PathBuf {
    made_once("plot", |directory| {
        let runs: [&[&str]; 3] = [
            &["--duration", "1s", "--raw", "--name", "a"],
            &["--duration", "1s", "--name", "b"],
            &["--samples", "1", "--name", "one"],
        ];
        for flags in runs {
            let mut words = vec!["run", "fake", "--cpus", "0", "--warmup", "0s", "--quiet"];
            words.extend(flags);
            let out = tardy(directory, &words);
            assert!(matches!(out.status.code(), Some(0 | 4)), "{out:?}");
        }
    })
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
    // Of each tenth pixel.
    let pixels = pixels.chunks_exact(3).step_by(10);
    let dark = pixels.filter(|pixel| pixel.iter().all(|part| *part < 160)).count();
    assert!(dark > 5, "there is text: {dark}");
}

#[test]
fn every_kind_is_drawn_in_every_format_for_one_run_and_for_two() {
    let directory = tempfile::tempdir().unwrap();
    let formats = ["svg", "png", "pdf"];
    for (runs, times) in [(vec!["a", "b"], formats.len()), (vec!["a"], 1), (vec!["one"], 1)] {
        for (number, (_, kind)) in KINDS.into_iter().enumerate() {
            // Of single runs each kind in one of the formats.
            for format in formats.into_iter().cycle().skip(number).take(times) {
                let file = directory.path().join(format!("{kind}.{format}"));
                let mut words = vec!["plot", "--kind", kind, "-o", file.to_str().unwrap()];
                words.extend(&runs);
                let out = tardy(&store(), &words);
                assert_eq!(out.status.code(), Some(0), "{words:?} {out:?}");
                let bytes = std::fs::read(&file).unwrap();
                if format == "png" {
                    assert_png(&bytes, SIZE);
                } else if format == "pdf" {
                    assert!(bytes.starts_with(b"%PDF-1.") && bytes.ends_with(b"%%EOF"));
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
    let refused: [(&[&str], &str); 10] = [
        (&["a", "-o", "x.gif"], "-o x.gif: a picture is an SVG, a PNG or a PDF; name a file"),
        (&["a", "-o", "x"], ".svg, .png or .pdf"),
        (&["a", "-o", &missing], "cannot write"),
        (&["a", "-o", &svg, "--size", "900"], "as in 900x560"),
        (&["a", "-o", &svg, "--size", "100000x2"], "from 200 to 8000"),
        (&["a", "-o", &svg, "--time-range", "5s"], "as in 5s..10s, ..10s or 5s.."),
        (&["a", "-o", &svg, "--time-range", "5s..6s"], "has no time axis; choose --kind scatter"),
        (
            &["a", "-o", &svg, "--time-range", "50s..70s", "--kind", "scatter"],
            "no run has a sample within 50s..70s; the longest takes 1 s",
        ),
        (&["nobody", "-o", &svg], "no run \"nobody\""),
        (&["a", "a", "a", "a", "a", "a", "a", "-o", &svg], "7 runs in one picture"),
    ];
    for (words, want) in refused {
        let out = tardy(&store(), &[&["plot"], words].concat());
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
    let page = page(&["a"]);
    for size in ["200x200", "333x1000", "2000x300"] {
        let size: Size = size.parse().unwrap();
        for (kind, _) in KINDS {
            assert_png(&plot::png(&page, &PlotOptions::new(kind, size)).unwrap(), size);
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
        assert!(first.contains("77,000 scheduled periods"), "{first}");
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

/// A page of one run with more points than are drawn one by one.
fn crowded() -> Page {
    let mut page = page(&["a"]);
    let points = &mut page.runs[0].series[0].points;
    let (t_s, latency_ns) = (points.t_s.clone(), points.latency_ns.clone());
    for round in 1..22 {
        points.t_s.extend(t_s.iter().map(|t_s| t_s + f64::from(round) * 0.9));
        points.latency_ns.extend(&latency_ns);
    }
    page
}

#[test]
fn a_crowd_of_points_is_pixels_within_the_picture() {
    let page = crowded();
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

/// The streams of a PDF file, unpacked.
fn streams(file: &[u8]) -> Vec<String> {
    let find = |text: &[u8], from: usize| {
        let mut places = file[from..].windows(text.len());
        places.position(|window| window == text).map(|at| from + at)
    };
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some(start) = find(b"stream\n", from).map(|at| at + 7) {
        let end = find(b"\nendstream", start).unwrap();
        let mut bytes = Vec::new();
        let mut unpacked = flate2::read::ZlibDecoder::new(&file[start..end]);
        std::io::Read::read_to_end(&mut unpacked, &mut bytes).unwrap();
        found.push(String::from_utf8_lossy(&bytes).into_owned());
        from = end + 10;
    }
    found
}

fn pdf(page: &Page, options: &PlotOptions) -> Vec<u8> {
    let file = plot::pdf(page, options).unwrap();
    assert_eq!(file, plot::pdf(page, options).unwrap(), "the same picture is the same file");
    file
}

#[test]
fn a_pdf_has_the_words_and_the_shapes_of_the_svg_and_carries_its_font() {
    let page = page(&["a", "b"]);
    let shapes = |content: &str, operator: &str| {
        content.lines().filter(|line| line.ends_with(operator)).count()
    };
    for (kind, name) in KINDS {
        let options =
            PlotOptions { title: Some("Figure 7".into()), ..PlotOptions::new(kind, SIZE) };
        let file = pdf(&page, &options);
        let head = String::from_utf8_lossy(&file);
        assert!(head.contains("/MediaBox [0 0 675 420]"), "{name}: 900x560 at 96 dots an inch");
        assert!(head.contains("/Title (Figure 7)"), "{name}");
        assert_eq!(head.matches("/FontFile2").count(), 1, "{name}");
        let streams = streams(&file);
        let svg = plot::svg(&page, &options).unwrap();
        let words: Vec<String> = texts(&svg).into_iter().filter(|text| !text.is_empty()).collect();
        assert_eq!(shapes(&streams[0], " Tj"), words.len(), "{name}");
        let letters: std::collections::BTreeSet<char> = words.concat().chars().collect();
        let names = streams.iter().find(|text| text.contains("begincmap")).unwrap();
        for letter in letters {
            let known = format!("> <{:04X}>", u32::from(letter));
            assert!(names.contains(&known), "{name}: {letter:?} cannot be copied");
        }
        let circles = shapes(&streams[0], " c") / 4;
        let rings = svg.matches("<circle").count() - filled(&svg, "circle");
        match kind {
            // Rings, the bar of the scale and lines are not cells.
            PictureKind::Heatmap => {
                let areas = svg.matches("<polygon").count();
                let fills = streams[0].lines().filter(|line| *line == "f").count();
                assert_eq!(fills - areas, filled(&svg, "rect"));
            }
            _ => assert_eq!(circles - rings, filled(&svg, "circle"), "{name}"),
        }
    }
}

#[test]
fn a_crowd_of_points_is_pixels_within_a_pdf_too() {
    let page = crowded();
    let file = pdf(&page, &PlotOptions::new(PictureKind::Scatter, SIZE));
    assert!(file.len() < 700_000, "{}", file.len());
    let head = String::from_utf8_lossy(&file);
    assert!(head.contains("/SMask"), "an image that lets paper through");
    assert!(streams(&file)[0].contains("/I0 Do"));
}

/// What is drawn of a stretch of time: points and cells, and all words.
fn drawn_within(page: &Page, kind: PictureKind, range: &str) -> (usize, usize, String) {
    let options = PlotOptions { time: range.parse().unwrap(), ..PlotOptions::new(kind, SIZE) };
    let svg = plot::svg(page, &options).unwrap();
    (filled(&svg, "circle"), filled(&svg, "rect"), texts(&svg).join("\n"))
}

#[test]
fn the_time_axis_shows_the_stretch_that_was_asked_for_and_says_what_is_outside() {
    let mut page = page(&["a"]);
    let run = &mut page.runs[0];
    let late_s = 0.2;
    let points = &mut run.series[0].points;
    let late = points.t_s.iter().position(|t_s| *t_s > late_s).unwrap();
    points.latency_ns[late] = 77_000_000;
    run.record.series[0].max = Some(77_000_000);
    let within = points.t_s.iter().filter(|t_s| (0.5..=0.75).contains(*t_s)).count();
    assert!(within > 100, "{within}");
    let (dots, _, words) = drawn_within(&page, PictureKind::Scatter, "500ms..750ms");
    assert_eq!(dots, within);
    let ticks: Vec<&str> = words.lines().filter(|line| line.parse::<u32>().is_ok()).collect();
    assert!(ticks.contains(&"500") && ticks.contains(&"700") && !ticks.contains(&"400"), "{words}");
    assert!(words.contains("500ms..750ms of 1 s is shown"), "{words}");
    assert!(words.contains("Outside: max 77.0 ms, cpu0."), "{words}");
    assert!(!words.contains("cpu0  max 77"), "{words}");
    let (dots, _, words) = drawn_within(&page, PictureKind::Scatter, "..500ms");
    assert!(dots > 100 && !words.contains("Outside") && words.contains("cpu0  max 77"), "{words}");
    let all = drawn_within(&page, PictureKind::Heatmap, "0s..").1;
    let some = drawn_within(&page, PictureKind::Heatmap, "..500ms").1;
    assert!(all > some && some > 0, "{all} {some}");
}

#[test]
fn a_short_stretch_of_a_run_is_collected_finer_than_the_whole() {
    let directory = tempfile::tempdir().unwrap();
    let words = ["run", "fake", "--cpus", "0", "--warmup", "0s", "--quiet", "--raw"];
    let more = ["--interval", "100us", "--duration", "3s", "--name", "dense"];
    let out = tardy(directory.path(), &[&words[..], &more[..]].concat());
    assert!(matches!(out.status.code(), Some(0 | 4)), "{out:?}");
    let open = || vec![Run::open(&directory.path().join("dense")).unwrap()];
    let count = |page: &Page, within: (f64, f64)| {
        let points = &page.runs[0].series[0].points;
        points.t_s.iter().filter(|t_s| (within.0..=within.1).contains(*t_s)).count()
    };
    let stretch = (1.0, 1.5);
    let whole = collect::page(open());
    let part = collect::page_within(open(), "1s..1500ms".parse().unwrap());
    let points = &part.runs[0].series[0].points;
    assert!(points.thinned.is_empty(), "{}", points.thinned);
    assert_eq!((points.of, count(&part, stretch)), (points.t_s.len() as u64, points.t_s.len()));
    let (few, all) = (count(&whole, stretch), count(&part, stretch));
    assert!(!whole.runs[0].series[0].points.thinned.is_empty() && all > few, "{few} {all}");
    let edges = &part.runs[0].time_edges_s;
    let [first, .., last] = edges[..] else { unreachable!() };
    assert!((0.5..=1.0).contains(&first) && (1.5..2.0).contains(&last), "{edges:?}");
    let samples: u64 = part.runs[0].heat.count.iter().sum();
    assert!((samples as usize).abs_diff(all) <= all / 2, "{samples} {all}");
}
