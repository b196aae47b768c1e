//! Tables in Markdown, and repeats on several threads.

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use tardy::analysis::random::SplitMix64;

/// What every simulation is made with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    pub(super) repeats: usize,
    pub(super) threads: usize,
    pub(super) seed: u64,
}

impl Effort {
    /// What `one` gives for each repeat, in their order. The numbers of a repeat come from the
    /// seed, the name of the row and the number of the repeat, whichever thread computes it.
    pub(super) fn repeat<T: Send>(
        self,
        row: &str,
        one: impl Fn(&mut SplitMix64) -> T + Sync,
    ) -> Vec<T> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            loop {
                let repeat = next.fetch_add(1, Ordering::Relaxed);
                if repeat >= self.repeats {
                    return done;
                }
                done.push((repeat, one(&mut random_of(self.seed, row, repeat))));
            }
        };
        let mut results: Vec<(usize, T)> = thread::scope(|scope| {
            let threads: Vec<_> = (0..self.threads.max(1)).map(|_| scope.spawn(work)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
        });
        results.sort_by_key(|(repeat, _)| *repeat);
        results.into_iter().map(|(_, result)| result).collect()
    }
}

fn random_of(seed: u64, row: &str, repeat: usize) -> SplitMix64 {
    let mut mixed = SplitMix64::new(seed).bits();
    for part in row.bytes().map(u64::from).chain([repeat as u64]) {
        mixed = SplitMix64::new(mixed ^ part).bits();
    }
    SplitMix64::new(mixed)
}

/// A table in Markdown.
pub(super) fn markdown(title: &str, head: &[&str], rows: &[Vec<String>]) -> String {
    let mut text = format!("### {title}\n\n| {} |\n", head.join(" | "));
    let _ = writeln!(text, "|{}", " --- |".repeat(head.len()));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text + "\n"
}

/// A share of all as a percentage: `94.2%`; `-` of none.
pub(super) fn percent(part: usize, all: usize) -> String {
    match all {
        0 => "-".into(),
        _ => format!("{:.1}%", 100.0 * part as f64 / all as f64),
    }
}

/// The value below which this share of the values lies; NaN without any.
pub(super) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_do_not_change_what_comes_out() {
        let drawn = |threads| {
            let effort = Effort { repeats: 50, threads, seed: 1 };
            effort.repeat("row", SplitMix64::bits)
        };
        assert_eq!(drawn(1), drawn(3));
        assert_eq!(drawn(1).len(), 50);
        let other = Effort { repeats: 50, threads: 1, seed: 1 }.repeat("other", SplitMix64::bits);
        assert_ne!(drawn(1), other);
    }

    #[test]
    fn a_table_is_markdown() {
        let rows = vec![vec!["a".to_owned(), percent(1, 8)], vec!["b".to_owned(), percent(0, 0)]];
        let expected = "### T\n\n| x | y |\n| --- | --- |\n| a | 12.5% |\n| b | - |\n\n";
        assert_eq!(markdown("T", &["x", "y"], &rows), expected);
    }

    #[test]
    fn a_quantile_is_an_order_statistic() {
        assert_eq!(quantile(&[3.0, 1.0, 2.0, 4.0], 0.5), 2.0);
        assert_eq!(quantile(&[3.0, 1.0, 2.0, 4.0], 1.0), 4.0);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
