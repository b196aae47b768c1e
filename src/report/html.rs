//! Pages as HTML: the bundle that `web/` builds, with the data put in. A page is one self-contained
//! file, or shares its viewer (script and style) with the other pages of its directory.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::page::Page;
use crate::{
    plain::{self, plain},
    run::viewer_name::{VIEWER_BEGIN, VIEWER_DIGITS, VIEWER_END},
};

const TEMPLATE: &str = include_str!("html/page.html");
const SHARED: &str = include_str!("html/shared-page.html");
const DATA: &str = "<!--TARDY-DATA-->";
const TITLE: &str = "<!--TARDY-TITLE-->";
const NONCE: &str = "<!--TARDY-NONCE-->";
const VIEWER: &str = "<!--TARDY-VIEWER-->";
const COMMAND: &str = "<!--TARDY-COMMAND-->";

/// The page as one HTML document that needs no other file.
///
/// # Errors
/// A figure that JSON cannot hold; none is known.
pub fn render(page: &Page) -> serde_json::Result<String> {
    let block = block(page)?;
    // The title first: what stands in the data is not looked at again.
    Ok(TEMPLATE.replacen(TITLE, &title(page), 1).replacen(DATA, &block, 1))
}

/// Script and style of pages in one directory, as one script file beside them.
#[derive(Debug)]
pub struct SharedViewer {
    name: String,
    text: String,
}

impl SharedViewer {
    /// That of this tardy. Its name has a hash of its content, so that a page never meets another
    /// viewer than its own.
    ///
    /// # Errors
    /// A style that JSON cannot hold; none is known.
    pub fn new() -> serde_json::Result<Self> {
        let notices = between(TEMPLATE, "<!--", "-->");
        let style = serde_json::to_string(between(TEMPLATE, "<style>", "</style>"))?;
        let script = between(TEMPLATE, "<script>", "</script>");
        let text = format!(
            "/*{notices}*/\n{{const style=document.createElement('style');\
             style.textContent={style};document.head.append(style)}}\n{script}\n"
        );
        let mut name = VIEWER_BEGIN.to_owned();
        for byte in Sha256::digest(&text).iter().take(VIEWER_DIGITS / 2) {
            let _ = write!(name, "{byte:02x}");
        }
        name.push_str(VIEWER_END);
        Ok(Self { name, text })
    }

    /// The name of its file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its file holds.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// A page beside it. Without the viewer the page names `command`, which makes one file of it.
    /// `nonce` is random: the page runs only scripts that have it.
    ///
    /// # Errors
    /// As [`render`].
    pub fn page(&self, page: &Page, command: &str, nonce: u128) -> serde_json::Result<String> {
        let block = block(page)?;
        // What stands in the data is not looked at again.
        Ok(SHARED
            .replace(NONCE, &format!("{nonce:032x}"))
            .replace(VIEWER, &self.name)
            .replace(TITLE, &title(page))
            .replacen(COMMAND, &escaped(command), 1)
            .replacen(DATA, &block, 1))
    }
}

/// The data of a page as an element.
fn block(page: &Page) -> serde_json::Result<String> {
    // Nothing from a run can end the block, or begin a tag in it.
    let data = plain::json(&serde_json::to_string(page)?)
        .replace('&', "\\u0026")
        .replace('<', "\\u003c")
        .replace('>', "\\u003e");
    Ok(format!("<script type=\"application/json\" id=\"tardy-data\">{data}</script>"))
}

fn title(page: &Page) -> String {
    let names: Vec<&str> = page.runs.iter().map(|run| run.record.name.as_str()).collect();
    let of_trend = page.trend.as_ref().map(|trend| trend.title.clone());
    let named = page.matrix.as_ref().map(|matrix| matrix.title.clone()).or(of_trend);
    escaped(&named.unwrap_or_else(|| names.join(", ")))
}

/// Text within an element.
fn escaped(text: &str) -> String {
    plain(text).replace('&', "&amp;").replace('<', "&lt;")
}

/// What stands between the first two of these marks; nothing if they are missing.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let behind = text.split_once(begin).map_or("", |(_, behind)| behind);
    behind.split_once(end).map_or("", |(within, _)| within)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::viewer_name::is_viewer;

    #[test]
    fn a_viewer_has_all_of_the_bundle_and_is_named_by_its_content() {
        let viewer = SharedViewer::new().unwrap();
        let text = viewer.text();
        let script = between(TEMPLATE, "<script>", "</script>");
        assert!(script.len() > 500_000 && text.ends_with(&format!("{script}\n")));
        assert!(text.starts_with("/*\nThis page contains Apache ECharts"), "{}", &text[..80]);
        assert_eq!(text.matches("*/").count(), 1 + script.matches("*/").count());
        assert!(between(TEMPLATE, "<style>", "</style>").len() > 10_000);
        assert!(is_viewer(viewer.name()), "{}", viewer.name());
        assert_eq!(viewer.name(), SharedViewer::new().unwrap().name());
    }

    #[test]
    fn a_page_that_shares_its_viewer_runs_nothing_else_and_says_how_to_get_one_file() {
        let viewer = SharedViewer::new().unwrap();
        let text = viewer.page(&Page::empty([]), "tardy report '<a&b>' -o x.html", 7).unwrap();
        let nonce = "00000000000000000000000000000007";
        assert!(text.contains(&format!("script-src 'nonce-{nonce}';")), "{text}");
        let script = format!("<script nonce=\"{nonce}\" src=\"{}\"></script>", viewer.name());
        assert!(text.contains(&script), "{text}");
        assert_eq!(text.matches("<script").count(), 2, "{text}");
        assert!(text.contains("<pre>tardy report '&lt;a&amp;b>' -o x.html</pre>"), "{text}");
        assert!(!text.contains("<!--"), "{text}");
        assert!(text.len() < 10_000, "{}", text.len());
    }
}
