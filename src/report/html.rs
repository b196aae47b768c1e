//! One self-contained page: the bundle that `web/` builds, with the data put in.

use super::page::Page;
use crate::plain::{self, plain};

const TEMPLATE: &str = include_str!("html/page.html");
const DATA: &str = "<!--TARDY-DATA-->";
const TITLE: &str = "<!--TARDY-TITLE-->";

/// The page as one HTML document.
///
/// # Errors
/// A figure that JSON cannot hold; none is known.
pub fn render(page: &Page) -> serde_json::Result<String> {
    // Nothing from a run can end the block, or begin a tag in it.
    let data = plain::json(&serde_json::to_string(page)?)
        .replace('&', "\\u0026")
        .replace('<', "\\u003c")
        .replace('>', "\\u003e");
    let names: Vec<&str> = page.runs.iter().map(|run| run.record.name.as_str()).collect();
    let of_trend = page.trend.as_ref().map(|trend| trend.title.clone());
    let named = page.matrix.as_ref().map(|matrix| matrix.title.clone()).or(of_trend);
    let title = named.unwrap_or_else(|| names.join(", "));
    let title = plain(&title).replace('&', "&amp;").replace('<', "&lt;");
    let block = format!("<script type=\"application/json\" id=\"tardy-data\">{data}</script>");
    // The title first: what stands in the data is not looked at again.
    Ok(TEMPLATE.replacen(TITLE, &title, 1).replacen(DATA, &block, 1))
}
