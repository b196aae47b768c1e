//! `tardy lab kernels`: which kernels are in the cache, and which can be fetched.

use std::{path::Path, time::SystemTime};

use anstyle::Style;
use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use crate::{
    cli::{Exit, flags::FormatFlags, output},
    lab::{
        self,
        kernels::{
            self, KernelSource,
            apt::Apt,
            list::{Cached, Content},
            package::Name,
        },
    },
    plain::{plain, plain_path},
    report::{table::Table, terminal::fold},
};

/// List the cached kernels and those that apt offers, and fetch kernels.
///
/// Packages are unpacked into a cache, ~/.cache/tardy/lab/kernels, and never installed.
#[derive(Debug, Args)]
pub(super) struct KernelsFlags {
    /// Fetch this kernel first, e.g. standard, rt, 6.12-rt, sid; repeatable
    ///
    /// Also takes a package file (./linux-image-x.deb) or a kernel image
    /// (/path/to/bzImage[,modules=DIR]), which is checked and unpacked.
    #[arg(long, value_name = "NAME")]
    fetch: Vec<String>,
    #[command(flatten)]
    format: FormatFlags,
}

/// Fetches the requested kernels, and prints the list.
pub(super) fn kernels(flags: &KernelsFlags) -> Result<Exit> {
    let cache = lab::cache()?.join(kernels::DIRECTORY);
    // Check all names first: a typo in the last one must not cost a download.
    let sources: Vec<KernelSource> =
        flags.fetch.iter().map(|name| KernelSource::parse(name)).collect::<Result<_>>()?;
    for source in &sources {
        let kernel = kernels::get(source, &cache, &output::notice)?;
        // A kernel says itself what it is called.
        output::notice(&plain(&format!("{}: {}", source.asked, kernel.name)));
        for lack in &kernel.lacks {
            let what = format!("  {}: {}; {}", lack.code, lack.what, lack.remedy);
            output::notice(&plain(&what));
        }
    }
    let content = kernels::list::content(&cache)?;
    let offered = Apt::of_machine().and_then(|apt| apt.offers());
    if let Err(error) = &offered {
        output::warn(&format!("{error:#}"));
    }
    let offered = offered.unwrap_or_default();
    if flags.format.is_json() {
        let document = document(&content, &offered, &cache);
        output::put_json(&document)?;
    } else {
        output::put(&text(&content, &offered, &cache, output::width()))?;
    }
    Ok(Exit::Done)
}

fn document(content: &Content, offered: &[Name], cache: &Path) -> Value {
    let kernel = |cached: &Cached| {
        json!({
            "package": cached.package,
            "release": cached.kernel.name,
            "path": cached.place,
            "bytes": cached.bytes,
            "fetched_at": time(cached.fetched_at, "%Y-%m-%dT%H:%M:%SZ"),
            "sha256": cached.kernel.hash,
            "preemption": cached.kernel.preemption(),
            "lacks": cached.kernel.lacks,
            "is_whole": cached.is_whole,
        })
    };
    let offer = |name: &Name| {
        json!({
            "name": name.series(),
            "package": name.package,
            "is_here": is_here(content, name),
        })
    };
    json!({
        "cache": cache,
        "kernels": content.packages.iter().map(kernel).collect::<Vec<_>>(),
        "own": { "count": content.own, "bytes": content.own_bytes },
        "offered": offered.iter().map(offer).collect::<Vec<_>>(),
    })
}

fn is_here(content: &Content, name: &Name) -> bool {
    content.packages.iter().any(|cached| cached.package == name.package && cached.is_whole)
}

fn text(content: &Content, offered: &[Name], cache: &Path, width: Option<usize>) -> String {
    const BOLD: Style = Style::new().bold();
    let mut out = if content.packages.is_empty() {
        format!(
            "No kernels in {} yet; `tardy lab kernels --fetch standard` gets one.\n",
            plain_path(cache)
        )
    } else {
        let headings = ["release", "preemption", "fetched", "hash", "lacks", "size"];
        let mut table = Table::new(5, &headings);
        content.packages.iter().for_each(|cached| table.row(cells(cached)));
        let (lines, _) = table.fitted(width, &["hash", "fetched", "size", "lacks"]);
        format!("{BOLD}Kernels in {}{BOLD:#}\n{}\n", plain_path(cache), lines.join("\n"))
    };
    if content.own > 0 {
        out.push_str(&format!(
            "and {} unpacked from files of your own: {}\n",
            content.own,
            mib(content.own_bytes)
        ));
    }
    if !offered.is_empty() {
        let mut table = Table::new(3, &["name", "package", ""]);
        for name in offered {
            let here = if is_here(content, name) { "at hand" } else { "" };
            table.row(vec![name.series(), name.package.clone(), here.into()]);
        }
        let lines = table.lines().join("\n");
        out.push_str(&format!("\n{BOLD}apt offers{BOLD:#} (--fetch NAME)\n{lines}\n"));
    }
    fold(&out, width)
}

fn cells(cached: &Cached) -> Vec<String> {
    let kernel = &cached.kernel;
    let lacks: Vec<&str> = kernel.lacks.iter().map(|lack| lack.code.as_str()).collect();
    let lacks = match lacks.as_slice() {
        _ if !cached.is_whole => "damaged: fetched again when used".into(),
        [] => "-".into(),
        lacks => lacks.join(", "),
    };
    vec![
        kernel.name.clone(),
        kernel.preemption().unwrap_or("unknown").into(),
        time(cached.fetched_at, "%Y-%m-%d").unwrap_or_else(|| "-".into()),
        kernel.hash.get(..12).unwrap_or(&kernel.hash).into(),
        lacks,
        mib(cached.bytes),
    ]
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

/// In UTC.
fn time(at: Option<SystemTime>, format: &str) -> Option<String> {
    let at = jiff::Timestamp::try_from(at?).ok()?;
    Some(at.strftime(format).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::kernels::{Kernel, missing_feature};

    fn content() -> Content {
        let kernel = Kernel {
            name: "6.12.1-amd64".into(),
            hash: "0123456789abcdef".into(),
            lacks: vec![missing_feature::no_module_files()],
            append: "preempt=full".into(),
            ..Kernel::default()
        };
        let cached = Cached {
            package: "linux-image-6.12.1-amd64".into(),
            place: "/cache/x".into(),
            kernel,
            bytes: 10 << 20,
            fetched_at: Some(SystemTime::UNIX_EPOCH),
            is_whole: true,
        };
        Content { packages: vec![cached], own: 2, own_bytes: 5 << 20 }
    }

    fn offered() -> Vec<Name> {
        let names = ["linux-image-6.1.0-56-rt-amd64", "linux-image-6.12.1-amd64"];
        names.iter().filter_map(|name| Name::parse(name)).collect()
    }

    #[test]
    fn the_table_tells_what_is_at_hand_what_it_lacks_and_what_could_be_fetched() {
        let text = text(&content(), &offered(), Path::new("/cache"), None);
        let lines: Vec<String> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        let kernel = "6.12.1-amd64 full 1970-01-01 0123456789ab no_module_files 10 MiB";
        for line in [
            kernel,
            "and 2 unpacked from files of your own: 5 MiB",
            "6.1-rt linux-image-6.1.0-56-rt-amd64",
            "6.12 linux-image-6.12.1-amd64 at hand",
        ] {
            assert!(lines.iter().any(|own| own == line), "{line}\n{text}");
        }
        let mut damaged = content();
        damaged.packages[0].is_whole = false;
        assert!(
            super::text(&damaged, &[], Path::new("/cache"), None)
                .contains("damaged: fetched again")
        );
        let empty = super::text(&Content::default(), &[], Path::new("/cache"), None);
        assert!(empty.contains("No kernels in /cache yet") && !empty.contains("apt"), "{empty}");
    }

    #[test]
    fn the_document_has_the_same_with_whole_values() {
        let document = document(&content(), &offered(), Path::new("/cache"));
        let kernel = &document["kernels"][0];
        assert_eq!(kernel["sha256"], "0123456789abcdef");
        assert_eq!(kernel["fetched_at"], "1970-01-01T00:00:00Z");
        assert_eq!(kernel["lacks"][0]["code"], "no_module_files");
        assert_eq!((&kernel["is_whole"], &kernel["bytes"]), (&json!(true), &json!(10 << 20)));
        assert_eq!(document["offered"][0]["name"], "6.1-rt");
        assert_eq!(document["offered"][1]["is_here"], true);
    }
}
