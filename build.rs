//! Compiles the BPF side: one object for each `*.bpf.c`. The numbers of its header become constants
//! of Rust, so that both sides have the same.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

const SOURCES: &str = "src/kernel";

/// Runs a program of the compiler's packages; the error says which one is missing.
fn run(program: &str, arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    let status = Command::new(program).args(arguments).status().map_err(|error| {
        format!("{program}: {error}; the BPF side needs it: install the packages clang and llvm")
    })?;
    if status.success() { Ok(()) } else { Err(format!("{program}: {status}").into()) }
}

/// `name.bpf.c` to `$OUT_DIR/name.bpf.o`. The types of the code stay in it, as the loader needs
/// them; lines and variables of a debugger do not.
fn compile(source: &Path, into: &Path) -> Result<(), Box<dyn Error>> {
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
    run("llvm-strip", &["-g", object])
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

/// The numbers of `recorder.h` as constants, in `$OUT_DIR/header.rs`.
fn constants(into: &Path) -> Result<(), Box<dyn Error>> {
    let header = fs::read_to_string(Path::new(SOURCES).join("recorder.h"))?;
    let constant = |(name, number)| format!("pub(super) const {name}: u32 = {number};\n");
    let text: String = header.lines().filter_map(number).map(constant).collect();
    Ok(fs::write(into.join("header.rs"), text)?)
}

fn build() -> Result<(), Box<dyn Error>> {
    let into = PathBuf::from(std::env::var("OUT_DIR")?);
    println!("cargo:rerun-if-changed={SOURCES}");
    for entry in fs::read_dir(SOURCES)? {
        let path = entry?.path();
        if path.to_str().is_some_and(|path| path.ends_with(".bpf.c")) {
            compile(&path, &into)?;
        }
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
