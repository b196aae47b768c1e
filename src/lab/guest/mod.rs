//! A guest: its machine, its only file system, its first process, and how a run gets out of it.
//!
//! - [`qemu`], [`acpi`]: the machine, from outside
//! - `cpu_states`: what the CPUs of one that hangs are doing
//! - [`console`]: detects a kernel in trouble by its messages
//! - [`monitor`]: watches a guest's ports, and tells when and why it must end
//! - [`image`], [`cpio`]: the file system
//! - [`init`]: the first process, inside
//! - [`nodes`]: two nodes in one guest, and their wire
//! - [`output_port`]: where the output of its command goes
//! - [`result_port`], [`transfer`]: how a run gets out

pub mod acpi;
pub mod console;
pub mod cpio;
mod cpu_states;
pub mod image;
pub mod init;
pub mod monitor;
pub mod nodes;
pub mod output_port;
pub mod qemu;
pub mod result_port;
pub mod transfer;
