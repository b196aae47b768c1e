//! The load `compile`: the machine's own C compiler over sources that are made for it.
//!
//! Each process has a separate source file and compiles it again and again, into an object file
//! that nobody uses. A file compiled is one operation. On the machine it takes CPU time, memory,
//! and some files in a directory that is removed at the end, or by the next start when everything
//! was killed; the compiler's temporary files lie there too.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use rustix::process::fchdir;

use super::burn::per_cpu;
use super::program;
use crate::loads::task_loop::processes;
use crate::loads::worker_pool::WorkerPool;
use crate::loads::{Load, LoadError, LoadSpec, LoadWork, Need, Parameter, ParameterKind};

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "compile",
    summary: "Runs the machine's C compiler, in parallel, on generated sources.",
    unit: "files compiled",
    parameters: PARAMETERS,
    work: Some(LoadWork { need, start }),
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "jobs",
        help: "Compilers that run at the same time; 0 means one per CPU that tardy may use.",
        default: "0",
        kind: ParameterKind::Count { min: 0, max: 512 },
    },
    Parameter {
        key: "functions",
        help: "Functions per source file: sets how long one compilation takes.",
        default: "100",
        kind: ParameterKind::Count { min: 1, max: 100_000 },
    },
    Parameter {
        key: "compiler",
        help: "The C compiler, a name or a path.",
        default: "cc",
        kind: ParameterKind::Text,
    },
    Parameter {
        key: "dir",
        help: "Directory for source and object files.",
        default: "/var/tmp",
        kind: ParameterKind::Text,
    },
];

/// What a compiler takes for a small file, with its preprocessor and assembler.
const JOB_BYTES: u64 = 64 << 20;
/// A source, its object, and what lies between them, for each function.
const FUNCTION_BYTES: u64 = 8 * 1024;
/// Processes of a job: its own, the compiler's driver, the compiler, the assembler.
const JOB_TASKS: u64 = 4;

fn need(spec: &LoadSpec) -> Result<Need, LoadError> {
    find_compiler(spec)?;
    let jobs = per_cpu(spec.number("jobs")?);
    Ok(Need {
        tasks: jobs,
        counters: jobs,
        memory_bytes: jobs * JOB_BYTES,
        open_files: JOB_TASKS,
        disk_bytes: jobs * spec.number("functions")? * FUNCTION_BYTES,
    })
}

/// The compiler's path.
fn find_compiler(spec: &LoadSpec) -> Result<PathBuf, LoadError> {
    let name = spec.text("compiler")?;
    let missing = || LoadError::Missing {
        load: spec.name.clone(),
        what: format!("the C compiler `{name}`, which is not found in PATH"),
        remedy: "install it (Debian and Ubuntu: apt install gcc; Fedora: dnf install gcc; Alpine: \
                 apk add gcc), or name another with compiler="
            .to_owned(),
    };
    program::find(name).ok_or_else(missing)
}

fn start(spec: &LoadSpec, pool: &mut WorkerPool) -> Result<(), LoadError> {
    let compiler = std::path::absolute(find_compiler(spec)?)
        .map_err(|error| pool.cannot("find the working directory", error))?;
    let scratch = pool.make_scratch(Path::new(spec.text("dir")?))?;
    let source = source(spec.number("functions")?);
    let prepare = |number: u64| {
        // Each is its own process, and so is the compiler: both find files by names in it.
        fchdir(&scratch)?;
        let job = Job { compiler: &compiler, number };
        fs::write(job.file("c"), &source)?;
        // Detects a compiler that cannot compile before the run begins.
        job.compile()?;
        Ok(job)
    };
    processes(pool, 0..per_cpu(spec.number("jobs")?), prepare, |job| job.compile())
}

/// C without a single header: the compiler is tested, not what else is installed.
fn source(functions: u64) -> String {
    let mut text = String::new();
    for number in 0..functions {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "long f{number}(long *a, long n) {{\n  long s = {number};\n  for (long i = 0; i < n; \
             i++)\n    for (long j = i; j < n; j += {step})\n      s = s * 31 + (a[i] ^ a[j]) + (s \
             >> {shift});\n  return s;\n}}",
            step = number % 7 + 1,
            shift = number % 13 + 1,
        );
    }
    text
}

/// One source file in the working directory, and its compiler.
#[derive(Debug)]
struct Job<'a> {
    compiler: &'a Path,
    number: u64,
}

impl Job<'_> {
    fn file(&self, kind: &str) -> String {
        format!("{}.{kind}", self.number)
    }

    fn compile(&self) -> io::Result<()> {
        let status = Command::new(self.compiler)
            .args(["-O2", "-c", "-o"])
            .args([self.file("o"), self.file("c")])
            .env("TMPDIR", ".")
            .stdin(Stdio::null())
            .status()?;
        let compiler = self.compiler.display();
        let failed = || io::Error::other(format!("{compiler} ended with {status}"));
        if status.success() { Ok(()) } else { Err(failed()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_that_is_not_there_is_reported_with_its_package() {
        for name in ["no-such-compiler", "/no/such/compiler", "/dev/null"] {
            let spec = LoadSpec::parse(&format!("compile:compiler={name}")).unwrap();
            let said = need(&spec).unwrap_err().to_string();
            assert!(said.contains(name) && said.contains("apt install gcc"), "{said}");
        }
    }

    #[test]
    fn the_source_has_as_many_functions_as_asked_for() {
        assert_eq!(source(3).matches("long f").count(), 3);
        assert_eq!(source(3).matches('{').count(), source(3).matches('}').count());
    }
}
