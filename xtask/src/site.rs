//! `cargo xtask site DIR`: the documents as pages that need no server and load nothing.
//!
//! `docs/SUMMARY.md` says which, in which order and under which headings; the first becomes
//! `index.html`. A link that leads nowhere, within the documents or to a file, is an error, so a
//! test finds it.

mod render;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use render::RenderedPage;

const CONTENTS: &str = "docs/SUMMARY.md";
const STYLE: &str = include_str!("site/site.css");

/// The pages of the site.
#[derive(Debug, Default)]
struct Contents {
    /// The pages in order, and the heading of the part that each belongs to.
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    part: String,
    title: String,
    /// From the top of the sources: `docs/tutorial/story.md`.
    source: PathBuf,
    /// `story.html`
    file: String,
}

impl Contents {
    /// The pages that a list of links names.
    fn parse(text: &str) -> Self {
        let (mut part, mut contents) = (String::new(), Self::default());
        let mut link: Option<(String, String)> = None;
        let mut heading: Option<String> = None;
        for event in Parser::new(text) {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => part = heading.take().unwrap_or_default(),
                Event::Start(Tag::Link { dest_url, .. }) => {
                    link = Some((dest_url.to_string(), String::new()));
                }
                Event::End(TagEnd::Link) => {
                    if let Some((to, title)) = link.take() {
                        contents.push(part.clone(), title, &to);
                    }
                }
                Event::Text(text) | Event::Code(text) => {
                    let into = link.as_mut().map(|(_, title)| title).or(heading.as_mut());
                    if let Some(into) = into {
                        into.push_str(&text);
                    }
                }
                _ => {}
            }
        }
        contents
    }

    fn push(&mut self, part: String, title: String, to: &str) {
        let source = render::joined(Path::new("docs"), to);
        let stem = source.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
        let file = if self.entries.is_empty() { "index.html".into() } else { stem + ".html" };
        self.entries.push(Entry { part, title, source, file });
    }

    /// The file of the page that is made of `source`.
    fn file(&self, source: &Path) -> Option<&str> {
        let entry = self.entries.iter().find(|entry| entry.source == source)?;
        Some(&entry.file)
    }

    /// The list beside each page, with the one that is shown marked.
    fn navigation(&self, shown: &str) -> String {
        let mut out = String::from("<nav id=\"pages\" aria-label=\"all pages\">\n");
        let mut part = None;
        for Entry { part: own, title, file, .. } in &self.entries {
            if part != Some(own) {
                let end = if part.is_some() { "</ul>\n" } else { "" };
                out.push_str(&format!("{end}<h2>{}</h2>\n<ul>\n", render::escaped(own)));
                part = Some(own);
            }
            let mark = if file == shown { " aria-current=\"page\"" } else { "" };
            let title = render::escaped(title);
            out.push_str(&format!("<li><a href=\"{file}\"{mark}>{title}</a></li>\n"));
        }
        out + "</ul>\n</nav>\n"
    }

    /// The pages before and after the one at this place.
    fn neighbours(&self, at: usize) -> String {
        let link = |entry: Option<&Entry>, rel: &str, arrow: &str| {
            entry.map_or_else(String::new, |Entry { file, title, .. }| {
                let title = render::escaped(title);
                format!("<a rel=\"{rel}\" href=\"{file}\">{arrow}: {title}</a>")
            })
        };
        let before = at.checked_sub(1).and_then(|at| self.entries.get(at));
        let before = link(before, "prev", "Before");
        let after = link(self.entries.get(at + 1), "next", "Next");
        format!("<footer><span>{before}</span><span>{after}</span></footer>\n")
    }
}

/// Writes the site of the sources at `root` into `directory`, which is made where it is missing.
pub(crate) fn write(root: &Path, directory: &Path) -> Result<()> {
    let text = read(&root.join(CONTENTS))?;
    let contents = Contents::parse(&text);
    ensure!(!contents.entries.is_empty(), "{CONTENTS} names no page");
    let mut pages = Vec::new();
    for entry in &contents.entries {
        let text = read(&root.join(&entry.source))?;
        pages.push(render::page(root, &entry.source, &text, &contents)?);
    }
    check_anchors(&contents, &pages)?;
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    for (at, (entry, page)) in contents.entries.iter().zip(&pages).enumerate() {
        put(&directory.join(&entry.file), whole(&contents, at, entry, page).as_bytes())?;
    }
    let files: BTreeSet<&PathBuf> = pages.iter().flat_map(|page| &page.files).collect();
    for file in files {
        let path = root.join(file);
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let to = directory.join("files").join(file);
        let above = to.parent().unwrap_or(directory);
        fs::create_dir_all(above).with_context(|| format!("cannot make {}", above.display()))?;
        put(&to, &bytes)?;
    }
    Ok(())
}

fn whole(contents: &Contents, at: usize, entry: &Entry, page: &RenderedPage) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{} - tardy</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{}<main>\n\
         <p class=\"all\"><a href=\"#pages\">All pages</a></p>\n{}{}\
         </main>\n</body>\n</html>\n",
        render::escaped(&entry.title),
        contents.navigation(&entry.file),
        page.html,
        contents.neighbours(at),
    )
}

/// # Errors
/// A link to a place that its page does not have.
fn check_anchors(contents: &Contents, pages: &[RenderedPage]) -> Result<()> {
    let of = |(entry, page): (&Entry, &RenderedPage)| (entry.file.clone(), page.anchors.clone());
    let anchors: BTreeMap<String, BTreeSet<String>> =
        contents.entries.iter().zip(pages).map(of).collect();
    for (entry, page) in contents.entries.iter().zip(pages) {
        for (file, anchor) in &page.places {
            let there = anchors.get(file).is_some_and(|own| own.contains(anchor));
            let source = entry.source.display();
            ensure!(there, "{source}: no heading of {file} is called #{anchor}");
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// The top of the sources.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_make_a_site_whose_first_page_is_the_story() {
        let to = tempfile::tempdir().unwrap();
        write(&root(), to.path()).unwrap();
        let first = fs::read_to_string(to.path().join("index.html")).unwrap();
        assert!(first.contains("<h1 id=\"tutorial-find-and-fix-a-late-wake-up\">"), "{first}");
        assert!(first.contains("href=\"measuring.html#rules-of-thumb\""), "{first}");
        assert!(to.path().join("files/docs/page.png").is_file());
        // No document is missing in the list.
        let text = read(&root().join(CONTENTS)).unwrap();
        let contents = Contents::parse(&text);
        let mut directories = vec![PathBuf::from("docs")];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(root().join(&directory)).unwrap() {
                let path = directory.join(entry.unwrap().file_name());
                if root().join(&path).is_dir() {
                    directories.push(path);
                } else if path.extension().is_some_and(|own| own == "md") {
                    let is_listed = contents.file(&path).is_some() || path == Path::new(CONTENTS);
                    assert!(is_listed, "{} is not in {CONTENTS}", path.display());
                }
            }
        }
    }

    fn site(page: &str) -> Result<String> {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("docs")).unwrap();
        fs::write(root.path().join(CONTENTS), "# T\n[One](one.md)\n\n# U\n[Two](../two.md)\n")?;
        fs::write(root.path().join("docs/one.md"), page)?;
        fs::write(root.path().join("two.md"), "# Two & `three`\n\n## Two & `three`\n")?;
        fs::write(root.path().join("data.json"), "{}")?;
        write(root.path(), &root.path().join("site"))?;
        read(&root.path().join("site/index.html"))
    }

    #[test]
    fn links_lead_to_pages_places_in_them_and_copies_of_files() {
        let page = "[a](../two.md#two--three) [b](../two.md#two--three-1) [c](../data.json) \
                    [d](https://example.org/x.md)\n\n`--a-flag`\n\n| h |\n| - |\n| `<x>` |\n";
        let html = site(page).unwrap();
        for part in [
            "href=\"two.html#two--three\"",
            "href=\"two.html#two--three-1\"",
            "href=\"files/data.json\"",
            "href=\"https://example.org/x.md\"",
            "<code>&lt;x&gt;</code>",
            "<code class=\"whole\">--a-flag</code>",
            "<li><a href=\"index.html\" aria-current=\"page\">One</a></li>",
            "<a rel=\"next\" href=\"two.html\">Next: Two</a>",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }

    #[test]
    fn a_link_that_leads_nowhere_is_an_error_that_names_it() {
        for (page, named) in [
            ("[a](three.md)", "docs/one.md: three.md"),
            ("[a](../two.md#four)", "#four"),
            ("[a](#four)", "#four"),
            ("![a](x.png)", "docs/one.md: x.png"),
            ("[a](../../outside)", "docs/one.md: ../../outside"),
        ] {
            let error = format!("{:#}", site(page).unwrap_err());
            assert!(error.contains(named), "{page}: {error}");
        }
    }
}
