//! Compiles the injector's kernel side.

use std::{error::Error, path::PathBuf, process::Command};

const SOURCE: &str = "src/inject/inject.bpf.c";

fn run(program: &str, arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    let status = Command::new(program)
        .args(arguments)
        .status()
        .map_err(|error| format!("{program}: {error}; install the packages clang and llvm"))?;
    if status.success() { Ok(()) } else { Err(format!("{program}: {status}").into()) }
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={SOURCE}");
    println!("cargo:rerun-if-changed=src/inject/inject.h");
    let object = PathBuf::from(std::env::var("OUT_DIR")?).join("inject.bpf.o");
    let object = object.to_str().ok_or("a path that is not text")?;
    let flags = ["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-Werror"];
    // Each program has a context, whether it looks at it or not.
    let arguments = [&flags[..], &["-Wno-unused-parameter", "-c", SOURCE, "-o", object]].concat();
    run("clang", &arguments)?;
    run("llvm-strip", &["-g", object])
}
