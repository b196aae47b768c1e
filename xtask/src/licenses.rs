//! `cargo xtask licenses`: the notices of all that is linked into tardy, and of what its page
//! holds, into `licenses/third-party.txt`, which `tardy --licenses` prints.
//!
//! The texts come from the packages themselves, as cargo and npm unpacked them. The same versions
//! give the same file. A test compares its list with what the lock files say.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

const FILE: &str = "licenses/third-party.txt";
const PLATFORMS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];
/// What the page's sources import; its own dependencies come with it.
const IN_PAGE: &str = "echarts";
/// How files with licenses and notices begin, in lower case.
const NAMES: [&str; 6] = ["license", "licence", "copying", "copyright", "notice", "unlicense"];
const RULE: &str = "---- 8< ---- 8< ---- 8< ---- 8< ---- 8< ---- 8< ---- 8< ---- 8< ---- 8< ----";

/// Code that is not a crate, within a crate's package or linked by it, and where that package has
/// the texts of its license.
struct Inner {
    name: &'static str,
    /// The crate whose package it is.
    of: &'static str,
    license: &'static str,
    texts: &'static [&'static str],
}

const INNER: &[Inner] = &[
    Inner {
        name: "libbpf",
        of: "libbpf-sys",
        license: "LGPL-2.1-only OR BSD-2-Clause",
        texts: &["libbpf/LICENSE.BSD-2-Clause"],
    },
    Inner {
        name: "libelf of Debian's elfutils",
        of: "libbpf-sys",
        license: "LGPL-3.0-or-later OR GPL-2.0-or-later",
        texts: &["elfutils/COPYING-LGPLV3", "elfutils/COPYING", "elfutils/COPYING-GPLV2"],
    },
    Inner { name: "zlib of Debian", of: "libbpf-sys", license: "Zlib", texts: &["zlib/LICENSE"] },
    Inner {
        name: "liblzma of XZ Utils",
        of: "liblzma-sys",
        license: "0BSD",
        texts: &["xz/COPYING", "xz/COPYING.0BSD"],
    },
    Inner {
        name: "Zstandard",
        of: "zstd-sys",
        license: "BSD-3-Clause OR GPL-2.0-only",
        texts: &["zstd/LICENSE"],
    },
    Inner {
        name: "the BPF programs of tardy",
        of: "libbpf-sys",
        license: "GPL-2.0-only",
        texts: &["elfutils/COPYING-GPLV2"],
    },
];

/// Crates whose packages hold no text, only where it would be in their repository: what is there.
const ELSEWHERE: [(&str, &[&str]); 1] = [(
    "licenses/plotters.txt",
    &["plotters", "plotters-backend", "plotters-bitmap", "plotters-svg"],
)];
/// The length of the shortest license: shorter text is its name alone, or a link.
const SHORTEST: usize = 80;

/// A thing that is in the program or on its page.
#[derive(Debug)]
struct Component {
    /// Name, version and license: its line in the list, without the numbers of its texts.
    heading: String,
    texts: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Debug, Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    manifest_path: PathBuf,
    /// Absent for members of this workspace.
    source: Option<String>,
    targets: Vec<Target>,
}

#[derive(Debug, Deserialize)]
struct Target {
    kind: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Debug, Deserialize)]
struct DependencyKind {
    /// Absent for what is linked; "dev" and "build" are not.
    kind: Option<String>,
}

/// Writes the file anew.
pub(crate) fn write() -> Result<()> {
    let metadata = metadata()?;
    let mut components = inner(&metadata)?;
    components.push(font()?);
    components.extend(page()?);
    components.extend(crates(&metadata)?);
    let path = root().join(FILE);
    fs::write(&path, render(&components))
        .with_context(|| format!("cannot write {}", path.display()))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn metadata() -> Result<Metadata> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let platforms = PLATFORMS.iter().flat_map(|platform| ["--filter-platform", *platform]);
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(platforms)
        .current_dir(root())
        .output()
        .context("cannot run cargo metadata")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo metadata: {}", said.trim_end());
    serde_json::from_slice(&output.stdout).context("cargo metadata printed something else")
}

impl Package {
    fn directory(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(Path::new("."))
    }

    /// Runs in the compiler, and nothing of it is linked.
    fn is_macro(&self) -> bool {
        self.targets.iter().any(|target| target.kind.iter().any(|kind| kind == "proc-macro"))
    }
}

impl Metadata {
    fn package(&self, name: &str) -> Result<&Package> {
        let found = self.packages.iter().find(|package| package.name == name);
        found.with_context(|| format!("Cargo.lock has no package {name} any longer: see INNER"))
    }

    /// What is linked into tardy, by name and version; tardy's own crates are left out.
    fn linked(&self) -> Result<BTreeMap<(&str, &str), &Package>> {
        let packages: BTreeMap<&str, &Package> =
            self.packages.iter().map(|package| (package.id.as_str(), package)).collect();
        let nodes: BTreeMap<&str, &Node> =
            self.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
        let mut wanted = vec![self.package("tardy")?.id.as_str()];
        let mut seen = BTreeSet::new();
        let mut linked = BTreeMap::new();
        while let Some(id) = wanted.pop() {
            let package = packages.get(id).with_context(|| format!("{id} is not a package"))?;
            if package.is_macro() || !seen.insert(id) {
                continue;
            }
            if package.source.is_some() {
                linked.insert((package.name.as_str(), package.version.as_str()), *package);
            }
            let of = nodes.get(id).with_context(|| format!("{id} was not resolved"))?;
            let is_linked = |to: &&Dependency| to.dep_kinds.iter().any(|kind| kind.kind.is_none());
            wanted.extend(of.deps.iter().filter(is_linked).map(|to| to.pkg.as_str()));
        }
        Ok(linked)
    }
}

fn crates(metadata: &Metadata) -> Result<Vec<Component>> {
    let component = |package: &&Package| {
        let license = package.license.as_deref().unwrap_or("see its text");
        Component::of(&package.name, &package.version, license, package.directory())
    };
    metadata.linked()?.values().map(component).collect()
}

fn inner(metadata: &Metadata) -> Result<Vec<Component>> {
    let component = |inner: &Inner| -> Result<Component> {
        let package = metadata.package(inner.of)?;
        let texts = inner.texts.iter().map(|path| read(&package.directory().join(path)));
        let heading = format!("{} ({})", inner.name, inner.license);
        Ok(Component { heading, texts: texts.collect::<Result<_>>()? })
    };
    INNER.iter().map(component).collect()
}

fn font() -> Result<Component> {
    let text = read(&root().join("src/report/plot/font/LICENSE-DejaVu.txt"))?;
    Ok(Component { heading: "DejaVu Sans, in pictures (Bitstream-Vera)".into(), texts: vec![text] })
}

/// What is bundled into the page: names with versions and licenses.
fn page_libraries() -> Result<BTreeMap<String, (String, String)>> {
    let lock: Value = serde_json::from_str(&read(&root().join("web/package-lock.json"))?)
        .context("web/package-lock.json")?;
    let mut wanted = vec![IN_PAGE.to_owned()];
    let mut found = BTreeMap::new();
    while let Some(name) = wanted.pop() {
        let package = &lock["packages"][format!("node_modules/{name}")];
        let text = |key: &str| {
            let text = package[key].as_str().map(str::to_owned);
            text.with_context(|| format!("web/package-lock.json has no {key} of {name}"))
        };
        let dependencies = package["dependencies"].as_object();
        let dependencies = dependencies.into_iter().flatten().map(|(name, _)| name.clone());
        let known = (text("version")?, text("license")?);
        if found.insert(name, known).is_none() {
            wanted.extend(dependencies);
        }
    }
    Ok(found)
}

fn page() -> Result<Vec<Component>> {
    type Library = (String, (String, String));
    let component = |(name, (version, license)): Library| -> Result<Component> {
        let directory = root().join("web/node_modules").join(&name);
        ensure!(directory.is_dir(), "{} is missing: run tools/setup test", directory.display());
        Component::of(&name, &version, &license, &directory)
    };
    page_libraries()?.into_iter().map(component).collect()
}

impl Component {
    /// With the texts that lie in its own package.
    fn of(name: &str, version: &str, license: &str, package: &Path) -> Result<Self> {
        let mut files = notices(package)?;
        for below in ["licenses", "LICENSES"] {
            let below = package.join(below);
            if below.is_dir() {
                files.extend(regular_files(&below)?);
            }
        }
        let mut texts = files.iter().map(|file| read(file)).collect::<Result<Vec<_>>>()?;
        texts.retain(|text| text.len() >= SHORTEST);
        let elsewhere = ELSEWHERE.iter().find(|(_, names)| names.contains(&name));
        if let Some((file, _)) = elsewhere.filter(|_| texts.is_empty()) {
            texts.push(read(&root().join(file))?);
        }
        ensure!(
            !texts.is_empty(),
            "{} holds no text of its license ({license}): put that of its repository into \
             licenses/, and its name into ELSEWHERE",
            package.display()
        );
        Ok(Self { heading: heading(name, version, license), texts })
    }
}

fn heading(name: &str, version: &str, license: &str) -> String {
    format!("{name} {version} ({license})")
}

/// Files at the top of a package that hold its license, or notices.
fn notices(package: &Path) -> Result<Vec<PathBuf>> {
    let mut files = regular_files(package)?;
    files.retain(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        NAMES.iter().any(|start| name.starts_with(start)) && !name.ends_with(".rs")
    });
    Ok(files)
}

fn regular_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    let mut files: Vec<_> = paths.into_iter().filter(|path| path.is_file()).collect();
    files.sort();
    Ok(files)
}

/// A text without what a terminal or an editor would stumble over.
fn read(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let text = String::from_utf8_lossy(&bytes).replace('\t', "        ");
    let line = |line: &str| {
        let kept: String = line.chars().filter(|c| !c.is_control() && *c != '\u{feff}').collect();
        kept.trim_end().to_owned()
    };
    let lines: Vec<String> = text.lines().map(line).collect();
    Ok(lines.join("\n").trim_matches('\n').to_owned())
}

/// The list, then each text once, however many components have it.
fn render(components: &[Component]) -> String {
    // By its words: some differ in white space alone.
    let mut numbers: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
    let mut texts = Vec::new();
    let mut list = String::new();
    for component in components {
        let mut own = BTreeSet::new();
        for text in &component.texts {
            let number = *numbers.entry(text.split_whitespace().collect()).or_insert_with(|| {
                texts.push(text);
                texts.len()
            });
            own.insert(number);
        }
        let own: Vec<String> = own.iter().map(ToString::to_string).collect();
        list.push_str(&format!("{}: text {}\n", component.heading, own.join(", ")));
    }
    for (at, text) in texts.iter().enumerate() {
        list.push_str(&format!("\n{RULE}\nText {}\n\n{text}\n", at + 1));
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> String {
        fs::read_to_string(root().join(FILE)).unwrap()
    }

    /// The headings of the list in a file, and the numbers of their texts.
    fn listed(file: &str) -> BTreeMap<String, Vec<usize>> {
        let list = file.split(RULE).next().unwrap();
        let line = |line: &str| {
            let (heading, numbers) = line.split_once(": text ")?;
            let numbers = numbers.split(", ").map(|number| number.parse().unwrap());
            Some((heading.to_owned(), numbers.collect()))
        };
        list.lines().filter_map(line).collect()
    }

    #[test]
    fn the_notices_are_those_of_what_is_linked_and_of_what_the_page_holds() {
        let metadata = metadata().unwrap();
        let of_crates = metadata.linked().unwrap();
        assert!(of_crates.len() > 60, "{of_crates:?}");
        let of_crates = of_crates.values().map(|package| {
            heading(&package.name, &package.version, package.license.as_deref().unwrap())
        });
        let libraries = page_libraries().unwrap();
        let of_page =
            libraries.iter().map(|(name, (version, license))| heading(name, version, license));
        let inner = inner(&metadata).unwrap().into_iter().map(|component| component.heading);
        let mut wanted: BTreeSet<String> = of_crates.chain(of_page).chain(inner).collect();
        wanted.insert(font().unwrap().heading);
        let listed: BTreeSet<String> = listed(&file()).into_keys().collect();
        let missing: Vec<_> = wanted.difference(&listed).collect();
        let stale: Vec<_> = listed.difference(&wanted).collect();
        assert!(
            missing.is_empty() && stale.is_empty(),
            "{FILE} is not that of the lock files: run `cargo xtask licenses`. It lacks \
             {missing:?}, and has {stale:?}, which is no longer there"
        );
    }

    #[test]
    fn every_number_has_its_text_and_every_text_its_number() {
        let file = file();
        let used: BTreeSet<usize> = listed(&file).into_values().flatten().collect();
        let texts = file.split(RULE).skip(1).map(|text| {
            let (head, body) = text.trim_start().split_once('\n').unwrap();
            assert!(body.trim().len() >= SHORTEST, "{head}: {body}");
            head.strip_prefix("Text ").unwrap().parse().unwrap()
        });
        assert_eq!(texts.collect::<BTreeSet<usize>>(), used);
    }

    #[test]
    fn what_the_page_may_be_bundled_from_is_listed_or_a_tool() {
        let package = read(&root().join("web/package.json")).unwrap();
        let package: Value = serde_json::from_str(&package).unwrap();
        let mut all: Vec<&str> = Vec::new();
        for kind in ["dependencies", "devDependencies"] {
            all.extend(package[kind].as_object().into_iter().flatten().map(|(name, _)| &**name));
        }
        all.retain(|name| !["esbuild", "playwright-core", "typescript"].contains(name));
        assert_eq!(all, [IN_PAGE], "what is bundled belongs to page_libraries()");
    }

    #[test]
    fn a_text_that_two_have_is_printed_once_and_one_without_a_text_is_an_error() {
        let component = |name: &str, text: &str| Component {
            heading: heading(name, "1.0.0", "MIT"),
            texts: vec![text.to_owned()],
        };
        let all = [component("a", "x  y"), component("b", "x\ny"), component("c", "z")];
        let file = render(&all);
        let numbers: Vec<_> = listed(&file).into_values().collect();
        assert_eq!(numbers, [[1], [1], [2]]);
        assert_eq!(file.matches("Text 1\n\nx  y\n").count(), 1, "{file}");
        let empty = tempfile::tempdir().unwrap();
        fs::write(empty.path().join("LICENSE"), "../LICENSE").unwrap();
        let error = Component::of("d", "1.0.0", "MIT", empty.path()).unwrap_err().to_string();
        assert!(error.contains("no text of its license (MIT)"), "{error}");
    }

    #[test]
    fn a_text_is_read_without_what_a_terminal_would_obey() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("LICENSE");
        fs::write(&path, "\u{feff}\n a\u{c}\tb \r\n\u{1b}c\n\n").unwrap();
        assert_eq!(read(&path).unwrap(), " a        b\nc");
        assert_eq!(notices(directory.path()).unwrap(), [path]);
    }
}
