//! Loads the programs that follow threads of others.

use std::path::Path;

use libbpf_rs::{Object, ObjectBuilder, OpenObject};

use crate::sys::root::Root;

use super::{
    TracingUnavailable,
    attach_config::{AttachedCycles, AttachedTo, config},
    attach_unavailable::{AttachUnavailable, system},
    attach_waits::is_wait_program,
    bootstrap, log,
    tracepoint_arguments::TracepointArguments,
    types::KernelTypes,
};

#[repr(C, align(8))]
pub(super) struct AttachCode<T: ?Sized>(pub(super) T);

pub(super) static CODE: &AttachCode<[u8]> =
    &AttachCode(*include_bytes!(concat!(env!("OUT_DIR"), "/attach.bpf.o")));

/// Programs that a kernel may lack: without them a wake-up by a call from another processor counts
/// as one by an interrupt. Only since 7.2 timers are taken off that are over when they are armed.
const SPARED: [&str; 3] = ["csd_function_entry", "csd_function_exit", "hrtimer_start_expired"];

/// The programs and their maps: `attach_places` has `blocks`, `attach_threads` has `places`.
pub(super) fn load(
    to: &AttachedTo,
    cycles: AttachedCycles,
    (blocks, places): (usize, usize),
) -> Result<Object, AttachUnavailable> {
    let failed = |error: libbpf_rs::Error| system("open the programs of attach", &error);
    let types = KernelTypes::read(Path::new(bootstrap::BTF))?;
    let arguments = TracepointArguments::of_kernel(&types);
    let tracepoints = arguments.fitting(&types);
    let soft_timers = bootstrap::timers_expire_in_softirq(&Root::default());
    log::listen();
    let mut builder = ObjectBuilder::default();
    let mut object: OpenObject =
        builder.name("tardy_attach").and_then(|it| it.open_memory(&CODE.0)).map_err(failed)?;
    for mut program in object.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        let tracepoint = name.strip_prefix("on_").unwrap_or(&name);
        if is_wait_program(&name) || tracepoint == "softirq_raise" && !soft_timers {
            program.set_autoload(false);
        } else if !tracepoints.contains(tracepoint) {
            if !SPARED.contains(&tracepoint) {
                let tracepoint = tracepoint.to_owned();
                return Err(AttachUnavailable::NoTracepoint { tracepoint });
            }
            program.set_autoload(false);
        }
    }
    let config = config(to, cycles, &types, &arguments, soft_timers);
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if name.ends_with(".config") {
            map.set_initial_value(&config).map_err(failed)?;
        } else if name == "attach_places" {
            map.set_max_entries(u32::try_from(blocks).unwrap_or(u32::MAX)).map_err(failed)?;
        } else if name == "attach_threads" {
            map.set_max_entries(u32::try_from(places).unwrap_or(u32::MAX)).map_err(failed)?;
        }
    }
    object.load().map_err(|error| {
        let lines = log::lines();
        let why = [error.to_string(), log::reason(&lines)].join("; ");
        if lines.iter().any(|line| line.contains("-EPERM")) {
            return TracingUnavailable::NoRights { why }.into();
        }
        let lack = bootstrap::too_old(&Root::default()).map(AttachUnavailable::from);
        lack.unwrap_or_else(|| system("load the programs of attach", &why))
    })
}
