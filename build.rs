//! Compiles the BPF side: one object for each `*.bpf.c`. The numbers of its header become constants
//! of Rust, so that both sides have the same.
//!
//! A packed crate (tools/crates) brings these objects along in `prebuilt/`, so that it builds
//! without clang. They are taken where the sources are those that they were made of.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

const SOURCES: &str = "src/kernel";
const PREBUILT: &str = "prebuilt";

/// How an object was made, beside it: its first line is the digest of the sources.
const MADE: &str = "made.txt";

/// Runs a program of the compiler's packages; the error says which one is missing.
fn run(program: &str, arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    let status = Command::new(program).args(arguments).status().map_err(|error| {
        format!("{program}: {error}; the BPF side needs it: install the packages clang and llvm")
    })?;
    if status.success() { Ok(()) } else { Err(format!("{program}: {status}").into()) }
}

/// The files of the BPF side, in the order of their names.
fn sources() -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(SOURCES)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "c" || ending == "h") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Tells whether a source was changed, not who changed it: FNV-1a (Fowler, Noll, Vo) of 64 bits
/// over names and contents.
fn digest(sources: &[PathBuf]) -> Result<String, Box<dyn Error>> {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for path in sources {
        let name = path.file_name().ok_or("a source without a name")?;
        for byte in name.as_encoded_bytes().iter().chain(&fs::read(path)?) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    Ok(format!("sources {hash:016x}"))
}

/// Whether `prebuilt/` was made of sources with this digest. They read registers of x86-64.
fn prebuilt(digest: &str) -> bool {
    std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|target| target == "x86_64")
        && fs::read_to_string(Path::new(PREBUILT).join(MADE))
            .is_ok_and(|made| made.lines().next() == Some(digest))
}

/// The first line of what the compiler says of itself.
fn version(program: &str) -> Result<String, Box<dyn Error>> {
    let said = Command::new(program).arg("--version").output()?.stdout;
    Ok(String::from_utf8_lossy(&said).lines().next().unwrap_or(program).to_owned())
}

/// `name.bpf.c` to `$OUT_DIR/name.bpf.o`. The types of the code stay in it, as the loader needs
/// them; lines and variables of a debugger do not.
///
/// Returns the compiler's command, with the paths that the object knows.
fn compile(source: &Path, into: &Path) -> Result<String, Box<dyn Error>> {
    let name = source.file_stem().ok_or("a source without a name")?;
    let object = into.join(name).with_extension("bpf.o");
    let (Some(source), Some(object)) = (source.to_str(), object.to_str()) else {
        return Err("a path that is not text".into());
    };
    // Version 3 of the instructions came with kernel 5.1.
    let flags = ["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-Werror"];
    // Each program has a context, whether it reads it or not.
    let quiet = ["-Wno-unused-parameter", "-Wno-sign-compare"];
    // libbpf's own headers, from the build script of libbpf-sys.
    let include = std::env::var("DEP_BPF_INCLUDE")?;
    // The loader's types name the sources' files: the same wherever they were built.
    let here = format!("-ffile-prefix-map={}=.", std::env::var("CARGO_MANIFEST_DIR")?);
    let elsewhere = format!("-ffile-prefix-map={include}=libbpf");
    let paths = ["-isystem", &include, &here, &elsewhere];
    let arguments = [&flags[..], &quiet, &paths, &["-c", source, "-o", object]].concat();
    run("clang", &arguments)?;
    run("llvm-strip", &["-g", object])?;
    let told = [&flags[..], &quiet, &["-isystem", "libbpf", "-c", source]].concat().join(" ");
    Ok(format!("clang {told}\nllvm-strip -g"))
}

/// All objects, and how they were made.
fn compile_all(sources: &[PathBuf], digest: &str, into: &Path) -> Result<(), Box<dyn Error>> {
    let mut made = vec![digest.to_owned()];
    for path in sources.iter().filter(|path| path.to_string_lossy().ends_with(".bpf.c")) {
        made.push(compile(path, into)?);
    }
    made.push(version("clang")?);
    Ok(fs::write(into.join(MADE), made.join("\n") + "\n")?)
}

/// The objects that came along.
fn copy_all(into: &Path) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(PREBUILT)? {
        let path = entry?.path();
        fs::copy(&path, into.join(path.file_name().ok_or("a file without a name")?))?;
    }
    Ok(())
}

/// Where libbpf-sys looks for static libraries, as its own build script reads it.
fn library_path() -> String {
    const NAME: &str = "LIBBPF_SYS_LIBRARY_PATH";
    let target = std::env::var("TARGET").unwrap_or_default();
    [format!("{NAME}_{target}"), format!("{NAME}_{}", target.replace('-', "_")), NAME.to_owned()]
        .iter()
        .filter_map(|name| std::env::var(name).ok())
        .collect::<Vec<_>>()
        .join(":")
}

/// The linker's own words on a missing library name no package. Flags of the builder may name other
/// places, so this forbids nothing.
fn warn_of_missing_libraries() {
    let path = library_path();
    let found = |file: &str| path.split(':').any(|place| Path::new(place).join(file).exists());
    for (file, package) in [("libelf.a", "libelf-dev"), ("libz.a", "zlib1g-dev")] {
        if !found(file) {
            println!(
                "cargo:warning={file} is not in LIBBPF_SYS_LIBRARY_PATH ({path}): install \
                 {package}, and set that variable to where it is, /usr/lib/x86_64-linux-gnu"
            );
        }
    }
}

/// `TARDY_NAME` and its number, from a line of the header that defines one: a macro or an enum's.
fn number(line: &str) -> Option<(&str, u32)> {
    let line = line.trim_start();
    let (name, rest) = match line.strip_prefix("#define ") {
        Some(definition) => definition.split_once(' ')?,
        None => line.split_once(" = ")?,
    };
    let number = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    name.starts_with("TARDY_").then_some(())?;
    Some((name, number.parse().ok()?))
}

/// The numbers of `recorder.h` and `attach.h` as constants, in `$OUT_DIR/header.rs`.
fn constants(into: &Path) -> Result<(), Box<dyn Error>> {
    let read = |name| fs::read_to_string(Path::new(SOURCES).join(name));
    let header = read("recorder.h")? + &read("attach.h")?;
    let constant = |(name, number)| format!("pub(super) const {name}: u32 = {number};\n");
    let text: String = header.lines().filter_map(number).map(constant).collect();
    Ok(fs::write(into.join("header.rs"), text)?)
}

fn build() -> Result<(), Box<dyn Error>> {
    let into = PathBuf::from(std::env::var("OUT_DIR")?);
    println!("cargo:rerun-if-changed={SOURCES}");
    warn_of_missing_libraries();
    // Of a path that does not exist cargo would say that it changed.
    if Path::new(PREBUILT).exists() {
        println!("cargo:rerun-if-changed={PREBUILT}");
    }
    let sources = sources()?;
    let digest = digest(&sources)?;
    if prebuilt(&digest) {
        copy_all(&into)?;
    } else {
        compile_all(&sources, &digest, &into)?;
    }
    constants(&into)
}

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("cargo:error={error}");
            ExitCode::FAILURE
        }
    }
}
