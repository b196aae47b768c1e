//! What a user types for a kernel, taken apart. Nothing is fetched or read here; only whether a
//! file exists is looked up, because names of files may have a `+` in them.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};

use super::variant::Variant;

/// Short names, and the package that always depends on the newest kernel.
const SHORT: [(&str, &str); 2] =
    [("standard", "linux-image-amd64"), ("rt", "linux-image-rt-amd64")];

/// Debian's suites, to which one of [`POCKETS`] may be added.
const SUITES: [&str; 12] = [
    "bookworm",
    "bullseye",
    "duke",
    "experimental",
    "forky",
    "oldoldstable",
    "oldstable",
    "sid",
    "stable",
    "testing",
    "trixie",
    "unstable",
];

/// What may follow the name of a suite.
const POCKETS: [&str; 5] = ["", "-backports", "-proposed-updates", "-security", "-updates"];

const MODULES: &str = ",modules=";

/// Characters of a name that somebody else wrote, its variants and all.
const LONGEST: usize = 256;

/// A kernel as requested, with additions to its command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelSource {
    /// As typed, variants and all.
    pub asked: String,
    /// Which kernel.
    pub base: Base,
    /// Additions to its command line.
    pub variants: Vec<Variant>,
}

/// Where a kernel comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    /// A package that apt knows, or a pattern for several, under the name that was typed.
    Package {
        /// `standard`, or the package itself.
        typed: String,
        /// The package's name; a `*` stands for any part of it.
        pattern: String,
        /// The suite of Debian's it comes from, which need not be this machine's.
        suite: Option<String>,
    },
    /// A package file.
    Deb(PathBuf),
    /// A kernel, and where its modules are if it is said.
    Image {
        /// A bzImage, or a vmlinux that boots by itself.
        file: PathBuf,
        /// A directory with `lib/modules` in it, or one of `lib/modules`.
        modules: Option<PathBuf>,
    },
    /// The kernel of this machine, on this machine: no guest at all.
    Host,
}

impl KernelSource {
    /// `NAME[+WORD[=VALUE]]...`: what has a slash or ends in `.deb` is a file; `host` is this
    /// machine; the rest are packages.
    ///
    /// # Errors
    /// What is wrong with it, and what is valid.
    pub fn parse(text: &str) -> Result<Self> {
        Self::parse_with(text, &|path| path.exists())
    }

    /// As [`KernelSource::parse`], of a name that somebody else wrote: that of a package. No file
    /// is looked for.
    ///
    /// # Errors
    /// It is not a package's name.
    pub fn parse_foreign(text: &str) -> Result<Self> {
        ensure!(text.len() <= LONGEST, "a kernel's name of {} characters is too long", text.len());
        let source = Self::parse_with(text, &|_| false)?;
        ensure!(
            matches!(source.base, Base::Package { .. }),
            "the record names the kernel \"{text}\", which is not a package; what a record names \
             is not read: give the kernel with --kernel if you have it"
        );
        Ok(source)
    }

    /// `A,B,...`: each as [`KernelSource::parse`]; `,modules=DIR` belongs to the file before it.
    ///
    /// # Errors
    /// The first that is invalid, or that is there twice.
    pub fn parse_list(text: &str) -> Result<Vec<Self>> {
        let mut words: Vec<String> = Vec::new();
        for word in text.split(',') {
            match words.last_mut() {
                Some(last) if word.starts_with("modules=") => *last = format!("{last},{word}"),
                _ => words.push(word.to_owned()),
            }
        }
        let sources: Vec<Self> =
            words.iter().map(|word| Self::parse(word)).collect::<Result<_>>()?;
        for (number, source) in sources.iter().enumerate() {
            let before = sources.iter().take(number);
            ensure!(
                before.into_iter().all(|other| other.asked != source.asked),
                "kernel \"{}\" is given twice; name it once",
                source.asked
            );
        }
        Ok(sources)
    }

    fn parse_with(text: &str, exists: &dyn Fn(&Path) -> bool) -> Result<Self> {
        ensure!(!text.is_empty(), "kernel: empty; give standard, rt, a package or a file");
        let at = if text.contains('/') || is_deb(text) {
            end_of_file(text, exists)
        } else {
            end_of_package(text)
        };
        let (name, words) = text.split_at(at);
        let base = base(name)?;
        let mut variants: Vec<Variant> = Vec::new();
        for word in words.split('+').skip(1) {
            let variant = Variant::parse(word).with_context(|| format!("kernel \"{text}\""))?;
            ensure!(!variants.contains(&variant), "kernel \"{text}\": +{word} is given twice");
            variants.push(variant);
        }
        let of_host = base == Base::Host && !variants.is_empty();
        ensure!(!of_host, "kernel \"{text}\": host is already booted; it has no variants");
        Ok(Self { asked: text.to_owned(), base, variants })
    }
}

fn base(name: &str) -> Result<Base> {
    let from = |suite: Option<&str>, pattern: &str| Base::Package {
        typed: name.to_owned(),
        pattern: pattern.into(),
        suite: suite.map(str::to_owned),
    };
    let of = |pattern: &str| from(None, pattern);
    if name == "host" {
        return Ok(Base::Host);
    }
    if let Some((suite, package)) = of_suite(name) {
        return Ok(from(Some(suite), package));
    }
    if let Some((_, package)) = SHORT.iter().find(|(short, _)| *short == name) {
        return Ok(of(package));
    }
    if let Some(pattern) = of_series(name) {
        return Ok(of(&pattern));
    }
    if Path::new(name).extension() == Some(OsStr::new("deb")) {
        return Ok(Base::Deb(name.into()));
    }
    if name.contains('/') {
        let (file, modules) = match name.split_once(MODULES) {
            Some((file, directory)) => (file, Some(directory)),
            None => (name, None),
        };
        ensure!(modules != Some(""), "kernel \"{name}\": modules= needs a directory");
        return Ok(Base::Image { file: file.into(), modules: modules.map(PathBuf::from) });
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-.+~*".contains(c);
    if name.starts_with("linux-image-") && name.chars().all(is_plain) {
        return Ok(of(name));
    }
    bail!(
        "kernel \"{name}\" is neither standard nor rt, no version like 6.12 or 6.12-rt, no \
         suite of Debian's like trixie or sid-rt, no linux-image-... package, and no path; a file \
         in this directory is ./{name}"
    )
}

/// `trixie` and `bookworm-backports-rt` as a suite and the package to take from it.
fn of_suite(name: &str) -> Option<(&str, &'static str)> {
    let [standard, real_time] = SHORT.map(|(_, package)| package);
    let (suite, package) =
        name.strip_suffix("-rt").map_or((name, standard), |suite| (suite, real_time));
    let is_one =
        |known: &str| suite.strip_prefix(known).is_some_and(|rest| POCKETS.contains(&rest));
    SUITES.into_iter().any(is_one).then_some((suite, package))
}

/// `6.12` and `6.12-rt` as patterns of packages.
fn of_series(name: &str) -> Option<String> {
    let (version, flavour) = match name.strip_suffix("-rt") {
        Some(version) => (version, "-rt"),
        None => (name, ""),
    };
    let (major, minor) = version.split_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    // The dot after it: 6.1 is not 6.12.
    (is_number(major) && is_number(minor))
        .then(|| format!("linux-image-{version}.*{flavour}-amd64"))
}

fn is_deb(text: &str) -> bool {
    text.ends_with(".deb") || text.contains(".deb+")
}

/// Packages have a `+` in their versions (`6.12.107+deb12-amd64`): a name ends with what follows
/// the architecture, or where no architecture comes.
fn end_of_package(text: &str) -> usize {
    let after = text.rfind("-amd64").filter(|_| text.starts_with("linux-image-")).unwrap_or(0);
    text[after..].find('+').map_or(text.len(), |at| after + at)
}

/// The longest name of a file that exists; without one, up to the first `+` of its last part.
fn end_of_file(text: &str, exists: &dyn Fn(&Path) -> bool) -> usize {
    let is_there = |name: &str| {
        let file = name.split_once(MODULES);
        file.map_or_else(|| vec![name], |(file, directory)| vec![file, directory])
            .iter()
            .all(|path| exists(Path::new(path)))
    };
    let plus = text.match_indices('+').map(|(at, _)| at);
    let ends: Vec<usize> = plus.chain([text.len()]).collect();
    if let Some(end) = ends.iter().rev().find(|end| is_there(&text[..**end])) {
        return *end;
    }
    let last = text.find(".deb+").or_else(|| text.rfind('/')).unwrap_or(0);
    text[last..].find('+').map_or(text.len(), |at| last + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(typed: &str, pattern: &str) -> Base {
        Base::Package { typed: typed.into(), pattern: pattern.into(), suite: None }
    }

    fn of_suite(typed: &str, suite: &str, pattern: &str) -> Base {
        Base::Package { typed: typed.into(), pattern: pattern.into(), suite: Some(suite.into()) }
    }

    fn image(file: &str, modules: Option<&str>) -> Base {
        Base::Image { file: file.into(), modules: modules.map(PathBuf::from) }
    }

    fn parse(text: &str) -> (Base, Vec<String>) {
        let there = ["b/vmlinuz-1+deb", "b/m+m", "x/1+x/bz", "/k/linux+2_1.deb"].map(Path::new);
        let source = KernelSource::parse_with(text, &|path| there.contains(&path)).unwrap();
        assert_eq!(source.asked, text);
        let words = source.variants.iter().map(|variant| variant.word().to_owned());
        (source.base, words.collect())
    }

    #[test]
    fn a_kernel_is_named_by_a_word_a_version_a_package_or_a_path() {
        for (text, base) in [
            ("standard", package("standard", "linux-image-amd64")),
            ("rt", package("rt", "linux-image-rt-amd64")),
            ("6.1", package("6.1", "linux-image-6.1.*-amd64")),
            ("6.12-rt", package("6.12-rt", "linux-image-6.12.*-rt-amd64")),
            ("trixie", of_suite("trixie", "trixie", "linux-image-amd64")),
            ("sid-rt", of_suite("sid-rt", "sid", "linux-image-rt-amd64")),
            ("bookworm-backports-rt", {
                let suite = "bookworm-backports";
                of_suite("bookworm-backports-rt", suite, "linux-image-rt-amd64")
            }),
            ("linux-image-6.12.90-amd64", {
                package("linux-image-6.12.90-amd64", "linux-image-6.12.90-amd64")
            }),
            ("linux-image-6.12*", package("linux-image-6.12*", "linux-image-6.12*")),
            ("a/vmlinuz", image("a/vmlinuz", None)),
            ("a/vmlinuz,modules=/m", image("a/vmlinuz", Some("/m"))),
            ("./linux.deb", Base::Deb("./linux.deb".into())),
            ("linux-image.deb", Base::Deb("linux-image.deb".into())),
            ("host", Base::Host),
        ] {
            assert_eq!(parse(text), (base, vec![]), "{text}");
        }
    }

    #[test]
    fn variants_follow_and_a_plus_in_a_name_is_none() {
        let words = |text: &str| parse(text).1.join(" ");
        assert_eq!(words("standard+preempt=full+nosmt"), "preempt=full nosmt");
        let name = "linux-image-6.12.107+deb12-amd64";
        assert_eq!(parse(name), (package(name, name), vec![]));
        let varied = format!("{name}+maxcpus=1");
        assert_eq!(parse(&varied), (package(name, name), vec!["maxcpus=1".to_owned()]));
        assert_eq!(words("linux-image-6.12*+nosmt"), "nosmt");
        assert_eq!(words("trixie-rt+nosmt"), "nosmt");
        assert_eq!(parse("b/vmlinuz-1+deb+nosmt").0, image("b/vmlinuz-1+deb", None));
        let both = parse("b/vmlinuz-1+deb,modules=b/m+m+nosmt+maxcpus=1");
        assert_eq!(both.0, image("b/vmlinuz-1+deb", Some("b/m+m")));
        assert_eq!(both.1, ["nosmt", "maxcpus=1"]);
        assert_eq!(parse("x/1+x/bz").0, image("x/1+x/bz", None));
        assert_eq!(words("x/1+x/gone+nosmt"), "nosmt");
        assert_eq!(parse("/k/linux+2_1.deb+nosmt").0, Base::Deb("/k/linux+2_1.deb".into()));
    }

    #[test]
    fn a_list_is_split_at_commas_and_modules_stay_with_their_kernel() {
        let list = KernelSource::parse_list("standard,/x/bz,modules=/m+nosmt,rt").unwrap();
        let asked: Vec<&str> = list.iter().map(|source| source.asked.as_str()).collect();
        assert_eq!(asked, ["standard", "/x/bz,modules=/m+nosmt", "rt"]);
        let error = KernelSource::parse_list("rt,standard,rt").unwrap_err().to_string();
        assert!(error.contains("\"rt\" is given twice"), "{error}");
        assert!(KernelSource::parse_list("rt,,standard").is_err());
    }

    #[test]
    fn what_is_none_of_these_is_refused_with_what_there_is() {
        for text in [
            "",
            "vmlinuz",
            "linux-image-amd64; true",
            "linux-headers-amd64",
            "6.1.x",
            "6.",
            "trixy",
            "sid-cloud",
            "-rt",
        ] {
            let error = KernelSource::parse(text).unwrap_err().to_string();
            assert!(error.contains("kernel") && error.contains("standard"), "{error}");
        }
    }

    #[test]
    fn a_name_that_somebody_else_wrote_is_a_packages_or_none() {
        for text in ["standard", "6.12-rt+preempt=full", "linux-image-6.12.107+deb12-amd64+nosmt"] {
            let own = KernelSource::parse(text).unwrap();
            assert_eq!(KernelSource::parse_foreign(text).unwrap(), own);
        }
        // Whether there is such a file or not.
        for text in ["host", "/etc/shadow", "../x.deb", "x.deb", "/dev/zero", "/proc/self/exe"] {
            let error = KernelSource::parse_foreign(text).unwrap_err().to_string();
            assert!(error.contains("--kernel") && error.contains(text), "{error}");
        }
        let stars = format!("linux-image-{}", "*a".repeat(1000));
        for text in ["", "linux-image-x y", "-o=x", stars.as_str()] {
            assert!(KernelSource::parse_foreign(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_variant_that_is_none_names_the_kernel_and_itself() {
        for (text, part) in [
            ("rt+", "a word for the kernel's command line is missing"),
            ("rt++nosmt", "a word for the kernel's command line is missing"),
            ("rt+panic=1", "panic is what the lab itself"),
            ("rt+nosmt+nosmt", "+nosmt is given twice"),
            ("host+nosmt", "host is already booted"),
        ] {
            let error = format!("{:#}", KernelSource::parse(text).unwrap_err());
            assert!(error.contains(part) && error.contains(text), "{error}");
        }
    }
}
