//! Compiles the injector's BPF side.

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
    println!("cargo:rerun-if-changed=../src/kernel/bpf.h");
    println!("cargo:rerun-if-changed=../src/kernel/vmlinux.h");
    // For kernels before 5.17 without what came later.
    compile("inject.bpf.o", &[])?;
    compile("inject-old.bpf.o", &["-DINJECT_OLD"])
}

fn compile(name: &str, defines: &[&str]) -> Result<(), Box<dyn Error>> {
    let object = PathBuf::from(std::env::var("OUT_DIR")?).join(name);
    let object = object.to_str().ok_or("a path that is not text")?;
    let flags = ["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-Werror"];
    // Each program has a context, whether it reads it or not.
    let quiet = ["-Wno-unused-parameter"];
    // libbpf's own headers, from the build script of libbpf-sys.
    let include = std::env::var("DEP_BPF_INCLUDE")?;
    let include = ["-isystem", &include];
    let arguments = [&flags[..], &quiet, defines, &include, &["-c", SOURCE, "-o", object]].concat();
    run("clang", &arguments)?;
    run("llvm-strip", &["-g", object])
}
