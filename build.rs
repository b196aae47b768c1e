//! Compiles the kernel's side: one object of BPF code for each `*.bpf.c`.

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
        format!(
            "{program}: {error}; the kernel's side needs it: install the packages clang and llvm"
        )
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
    // Each program has a context, whether it looks at it or not.
    let quiet = ["-Wno-unused-parameter", "-Wno-sign-compare"];
    let arguments = [&flags[..], &quiet, &["-c", source, "-o", object]].concat();
    run("clang", &arguments)?;
    run("llvm-strip", &["-g", object])
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
    Ok(())
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
