//! What a suite, a plan or a matrix of the lab comes to, in one sentence: first what fails or is
//! invalid, else the metric that decides. It opens their pages and their text.

mod beside;
mod lab;
mod plan;
#[cfg(test)]
mod tests;

pub use beside::of_plans;
pub use lab::of_lab;
pub use plan::{PlanFinding, SharedGate, unread};

use super::lab::figure_name;
use crate::units::Nanos;

/// Names that are listed; of the others there is a number.
const MOST_NAMES: usize = 3;

/// Percentiles that may decide, the highest first.
const DECIDING: [&str; 3] = ["99.9", "99", "50"];

/// Parts as one sentence.
fn sentence(parts: Vec<String>) -> String {
    let text = parts.join("; ");
    let mut letters = text.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", letters.as_str())
}

/// `a, b, c and 2 more`; names that have a comma are told apart by `and`.
fn listed(names: &[String]) -> String {
    let (shown, rest) = names.split_at(names.len().min(MOST_NAMES));
    let between = if shown.iter().any(|name| name.contains(',')) { " and " } else { ", " };
    match rest.len() {
        0 => shown.join(between),
        more => format!("{} and {more} more", shown.join(between)),
    }
}

/// `the worst p99.9 is 812 us`, `the largest latency is 2.40 ms`
fn worst_words(figure: &str, of: &str, value_ns: i64) -> String {
    let value = Nanos(value_ns);
    match figure {
        "max" => format!("the largest latency{of} is {value}"),
        _ => format!("the worst {}{of} is {value}", figure_name(figure)),
    }
}
