//! The simulated tasks of a run in the columns of interbench.

use super::{figures::number, table::Table};
use crate::{
    run::{Document, InteractiveTask, ProbeRecord, SeriesSummary},
    units::Nanos,
};

/// Columns that fit on a narrow terminal, the first of them first.
pub(super) const LEAST: [&str; 2] = ["+/- SD", "work"];

/// A row per task; nothing where a run has none.
pub(super) fn table(document: &Document) -> Option<Table> {
    let ProbeRecord::Interactive(parameters) = &document.probe else { return None };
    let headings =
        ["task", "work", "latency (ms)", "+/- SD", "max", "% desired CPU", "% deadlines met"];
    let mut table = Table::new(2, &headings);
    for task in &parameters.tasks {
        let series = document.wakeups().find(|series| series.name == task.name);
        table.row(row(document, task, series));
    }
    Some(table)
}

fn row(document: &Document, task: &InteractiveTask, series: Option<&SeriesSummary>) -> Vec<String> {
    let ms = |ns: Option<f64>| ns.map_or_else(|| "-".into(), |ns| number(ns / 1e6));
    let of = |what: fn(&SeriesSummary) -> Option<f64>| ms(series.and_then(what));
    let percent = |what: &str| {
        let name = format!("{}/{what}", task.name);
        let figure = document.figures.iter().find(|figure| figure.name == name);
        figure.and_then(|figure| figure.mean).map_or_else(|| "-".into(), number)
    };
    vec![
        task.name.clone(),
        work(task),
        of(|series| series.mean.map(|ns| ns as f64)),
        of(|series| series.stddev.map(|ns| ns as f64)),
        of(|series| series.max.map(|ns| ns as f64)),
        percent("cpu"),
        percent("deadlines"),
    ]
}

/// `2.50 ms of 50.0 ms`
fn work(task: &InteractiveTask) -> String {
    match (task.work_ns, task.period_ns) {
        (Some(work), Some(period)) => format!("{} of {}", Nanos(work), Nanos(period)),
        (None, Some(period)) => format!("0 to {}", Nanos(period)),
        (Some(frame), None) => format!("all, {} a frame", Nanos(frame)),
        (None, None) => "-".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        report::fixture,
        run::{FigureHead, FigureUnit, InteractiveParameters, figures::summarize_figure},
    };

    #[test]
    fn each_task_has_the_columns_of_interbench_and_no_deadlines_where_it_never_sleeps() {
        let task = |name: &str, period_ns, work_ns| InteractiveTask {
            name: name.into(),
            period_ns,
            work_ns,
        };
        let mut document = fixture::of("timer", &["audio", "x", "game"]);
        assert!(table(&document).is_none());
        document.probe = ProbeRecord::Interactive(InteractiveParameters {
            tasks: vec![
                task("audio", Some(50_000_000), Some(2_500_000)),
                task("x", Some(100_000_000), None),
                task("game", None, Some(100_000_000)),
            ],
            cpu: 0,
            loops_per_ms: None,
        });
        let figure = |name: &str, value| {
            let head = FigureHead { name: name.into(), unit: FigureUnit::Percent };
            summarize_figure(&head, &[value])
        };
        document.figures = vec![
            figure("audio/cpu", 99.5),
            figure("audio/deadlines", 97.5),
            figure("game/cpu", 33.3),
        ];
        (document.series[0].mean, document.series[0].stddev) = (Some(1_500_000), Some(250_000));
        document.series[0].max = Some(9_000_000);
        let lines = table(&document).unwrap().lines();
        let words = |at: usize| lines[at].split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(1), "audio 2.50 ms of 50.0 ms 1.50 0.250 9.00 99.5 97.5");
        assert!(words(2).starts_with("x 0 to 100 ms") && words(2).ends_with("- -"), "{lines:?}");
        assert!(words(3).ends_with("33.3 -"), "{lines:?}");
    }
}
