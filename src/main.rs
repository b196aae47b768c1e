//! The entry point of the program.

use std::process::ExitCode;

use tardy::sys::abort_handler::Heap;

/// An allocation that fails ends tardy with an error, which says how much was refused.
#[global_allocator]
static HEAP: Heap = Heap;

fn main() -> ExitCode {
    tardy::cli::main()
}
