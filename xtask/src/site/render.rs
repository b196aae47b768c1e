//! One document as HTML: its links lead to other pages or to copies of files, its headings have
//! names that links can lead to, as GitHub gives them.

use std::{
    collections::BTreeSet,
    path::{Component, Path, PathBuf},
};

use anyhow::{Result, ensure};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

use super::Contents;

/// A document, and where it leads.
#[derive(Debug, Default)]
pub(super) struct RenderedPage {
    pub(super) html: String,
    /// The names of its headings.
    pub(super) anchors: BTreeSet<String>,
    /// Links to headings: the page's file and the name.
    pub(super) places: Vec<(String, String)>,
    /// Files that it shows or leads to, from the top of the sources.
    pub(super) files: BTreeSet<PathBuf>,
}

/// Renders the document at `source`.
///
/// # Errors
/// A link to a file that is not there.
pub(super) fn page(
    root: &Path,
    source: &Path,
    text: &str,
    contents: &Contents,
) -> Result<RenderedPage> {
    let mut page = RenderedPage::default();
    let mut events: Vec<Event<'_>> = Parser::new_ext(text, Options::ENABLE_TABLES).collect();
    name_headings(&mut events, &mut page.anchors);
    for event in &mut events {
        if let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event {
            *dest_url = target(root, source, dest_url, contents, &mut page)?.into();
        }
    }
    html::push_html(&mut page.html, events.into_iter());
    // Wide tables scroll by themselves. What a document says of tags is escaped: these are tables.
    page.html = page
        .html
        .replace("<table>", "<div class=\"table\"><table>")
        .replace("</table>", "</table></div>");
    page.html = with_whole_flags(&page.html);
    Ok(page)
}

/// Code of more characters may break at its hyphens.
const LONGEST_WHOLE: usize = 24;

/// Short code with a hyphen, such as a flag, stays on one line.
fn with_whole_flags(html: &str) -> String {
    let mut parts = html.split("<code>");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.split("</code>").next().unwrap_or_default();
        let is_whole = code.contains('-') && code.chars().count() <= LONGEST_WHOLE;
        out.push_str(if is_whole { "<code class=\"whole\">" } else { "<code>" });
        out.push_str(part);
    }
    out
}

/// Gives each heading the name that links lead to.
fn name_headings(events: &mut [Event<'_>], anchors: &mut BTreeSet<String>) {
    let mut at = 0;
    while at < events.len() {
        let (before, rest) = events.split_at_mut(at + 1);
        if let Some(Event::Start(Tag::Heading { id, .. })) = before.last_mut() {
            let text: String = rest
                .iter()
                .take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))))
                .filter_map(|event| match event {
                    Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
                    _ => None,
                })
                .collect();
            let name = unused(&slug(&text), anchors);
            anchors.insert(name.clone());
            *id = Some(CowStr::from(name));
        }
        at += 1;
    }
}

/// Lower case, without punctuation, `-` for spaces.
fn slug(text: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    text.to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The name, or with a number where another heading has it.
fn unused(name: &str, taken: &BTreeSet<String>) -> String {
    if !taken.contains(name) {
        return name.to_owned();
    }
    let mut numbered = (1_u32..).map(|number| format!("{name}-{number}"));
    numbered.find(|name| !taken.contains(name)).unwrap_or_default()
}

/// Where a link of the document leads on the site.
fn target(
    root: &Path,
    source: &Path,
    to: &str,
    contents: &Contents,
    page: &mut RenderedPage,
) -> Result<String> {
    if to.contains("://") || to.starts_with("mailto:") {
        return Ok(to.to_owned());
    }
    let (path, anchor) = to.split_once('#').map_or((to, None), |(path, at)| (path, Some(at)));
    let above = source.parent().unwrap_or(Path::new(""));
    let of = if path.is_empty() { source.to_owned() } else { joined(above, path) };
    if let Some(file) = contents.file(&of) {
        return Ok(anchor.map_or_else(
            || file.to_owned(),
            |anchor| {
                page.places.push((file.to_owned(), anchor.to_owned()));
                format!("{file}#{anchor}")
            },
        ));
    }
    let is_within = !of.starts_with("..");
    ensure!(
        is_within && root.join(&of).is_file(),
        "{}: {to} is neither a page of docs/SUMMARY.md nor a file of the sources",
        source.display()
    );
    let copy = format!("files/{}", of.display());
    page.files.insert(of);
    Ok(copy)
}

/// A path of the sources, from one that is relative to a directory of theirs.
pub(super) fn joined(directory: &Path, to: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in directory.join(to).components() {
        match part {
            Component::ParentDir if path.file_name().is_some() => {
                path.pop();
            }
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path
}

/// Text between the tags of HTML.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
