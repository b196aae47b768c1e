//! All loads: one file each, and the table of them.
//!
//! Beside the loads: `disk` has what the loads of disks share, `empty_ext4` makes the empty file
//! system of `ext4`, `program` finds what is started, and [`command`] is any other program, which
//! has its own flag and no line in the table.

pub mod background;
pub mod burn;
pub mod command;
pub mod compile;
mod disk;
pub mod disk_copy;
pub mod disk_read;
pub mod disk_write;
mod empty_ext4;
pub mod ext4;
pub mod files;
pub mod futex;
pub mod hackbench;
pub mod ipi;
pub mod memory;
pub mod multicast;
pub mod netflood;
pub mod printk;
pub mod procfs;
mod program;
pub mod rt;
pub mod signals;
pub mod sound;
pub mod timers;
pub mod video;
pub mod x11;

use crate::loads::Load;

/// All loads. To add one, write its file, and add its `mod` line above and its line here.
pub const LOADS: &[Load] = &[
    hackbench::LOAD,
    burn::LOAD,
    background::LOAD,
    disk_write::LOAD,
    disk_read::LOAD,
    disk_copy::LOAD,
    files::LOAD,
    ext4::LOAD,
    procfs::LOAD,
    memory::LOAD,
    compile::LOAD,
    netflood::LOAD,
    multicast::LOAD,
    timers::LOAD,
    rt::LOAD,
    futex::LOAD,
    ipi::LOAD,
    signals::LOAD,
    printk::LOAD,
    sound::LOAD,
    video::LOAD,
    x11::LOAD,
    IDLE,
];

/// The empty load: the name of a run without disturbance.
const IDLE: Load = Load {
    name: "idle",
    summary: "No load: the machine as it is.",
    unit: "",
    parameters: &[],
    work: None,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loads::{LoadSpec, Parameter};

    #[test]
    fn every_name_key_and_default_in_the_table_is_sound() {
        for (at, load) in LOADS.iter().enumerate() {
            assert!(LOADS[..at].iter().all(|other| other.name != load.name), "{}", load.name);
            assert!(load.summary.ends_with('.'), "{}", load.name);
            assert_eq!(load.unit.is_empty(), load.work.is_none(), "{}", load.name);
            let spec = LoadSpec::parse(load.name).unwrap();
            assert_eq!(spec.parameters.len(), load.parameters.len(), "{}", load.name);
            spec.check().unwrap();
            for Parameter { key, help, .. } in load.parameters {
                assert!(help.ends_with('.'), "{} {key}", load.name);
            }
        }
    }
}
