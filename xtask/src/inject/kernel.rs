//! The injector's BPF side: loaded, attached, commanded, read.
//!
//! User space shares it by maps; the layouts are those of `inject.h`.

use std::sync::mpsc::Sender;

use anyhow::{Context, Result};
use libbpf_rs::{
    Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, RingBuffer,
    RingBufferBuilder,
    btf::{Btf, BtfType},
};

use tardy::sys::{kernel_config::release, root::Root};

use super::{InjectLogEntry, plan::DelayContext};

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/inject.bpf.o"));
/// For kernels before the first with `bpf_loop`.
const OLD_OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/inject-old.bpf.o"));
const WITH_LOOP: (u32, u32) = (5, 17);

/// Where the kernel describes its types.
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// `enum inject_kind`: its numbers, from 1, by the names of the log.
const NAMES: [&str; 22] = [
    "hardirq",
    "softirq",
    "switch",
    "nonpreemptible",
    "page_fault",
    "hog",
    "exit",
    "storm",
    "stop",
    "interrupt",
    "softirq_run",
    "from_idle",
    "to_idle",
    "masked",
    "masked_idle",
    "device",
    "softirq_thread",
    "arming",
    "lock",
    "irq_thread",
    "irq_thread_run",
    "pi_mutex",
];

/// The program that is loaded only for delays in the thread of an interrupt, as not every kernel
/// has the function.
const IN_IRQ_THREAD: &str = "on_serial8250_interrupt";

/// The programs; they go with it.
pub(super) struct InjectPrograms {
    object: Object,
    links: Vec<Link>,
}

/// What is to happen on one CPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct InjectCommand {
    pub kind: DelayContext,
    /// The task whose time is logged; 0 for none.
    pub tid: i32,
    pub ns: u64,
    pub from_ns: i64,
    pub until_ns: i64,
    /// A second delay within the first, and how long it is, ns.
    pub within: Option<(DelayContext, u64)>,
}

/// Writes commands for one CPU, and reads what its measured thread waits for.
pub(super) struct CommandWriter {
    commands: MapHandle,
    cpus: MapHandle,
    cpu: u32,
}

impl InjectPrograms {
    /// Loads what these kinds need; none runs yet. `targets` are the measured threads and their
    /// CPUs.
    pub(super) fn load(targets: &[(i32, u32)], kinds: &[DelayContext]) -> Result<Self> {
        let is_old = release(&Root::default()).is_some_and(|release| release < WITH_LOOP);
        let code = if is_old { OLD_OBJECT } else { OBJECT };
        let mut object = ObjectBuilder::default().open_memory(code)?;
        leave_out_unknown(&mut object)?;
        let in_irq_thread = object.progs_mut().find(|program| program.name() == IN_IRQ_THREAD);
        if let Some(mut program) = in_irq_thread {
            program.set_autoload(kinds.contains(&DelayContext::IrqThread));
        }
        let object = object
            .load()
            .context("the kernel refuses the injector; it takes root, BTF and Linux 5.10")?;
        let kernel = Self { object, links: Vec::new() };
        let known = kernel.map("targets")?;
        for (tid, cpu) in targets {
            known.update(&tid.to_ne_bytes(), &cpu.to_ne_bytes(), MapFlags::ANY)?;
        }
        Ok(kernel)
    }

    /// From now on commands are carried out. Programs on one tracepoint run in the order in which
    /// they were attached. So the tracer has to be attached before: it then records the entry of
    /// the interrupt or the switch, and takes the delay after it for the interrupt's own work. The
    /// other way round, the delay would come before the interrupt, as far as the tracer can know.
    pub(super) fn attach(&mut self) -> Result<()> {
        for program in self.object.progs_mut().filter(|program| program.autoload()) {
            let name = program.name().to_string_lossy().into_owned();
            let link = program.attach().with_context(|| format!("{name} cannot be attached"))?;
            self.links.push(link);
        }
        Ok(())
    }

    fn map(&self, name: &str) -> Result<MapHandle> {
        let map = self.object.maps().find(|map| map.name() == name);
        Ok(MapHandle::try_from(&map.with_context(|| format!("no map {name}"))?)?)
    }

    pub(super) fn command_writer(&self, cpu: u32) -> Result<CommandWriter> {
        Ok(CommandWriter { commands: self.map("commands")?, cpus: self.map("cpus")?, cpu })
    }

    /// What the programs log, to be read by `consume`.
    pub(super) fn log(&self, into: Sender<InjectLogEntry>) -> Result<RingBuffer<'static>> {
        let map = self.map("logs")?;
        let mut builder = RingBufferBuilder::new();
        builder.add(&map, move |bytes| {
            // The receiver is gone only when all is over.
            decode(bytes).map_or(0, |line| i32::from(into.send(line).is_err()))
        })?;
        Ok(builder.build()?)
    }

    /// Delays for which the log had no room.
    pub(super) fn lost(&self) -> Result<u64> {
        let map = self.object.maps().find(|map| map.name().to_string_lossy().ends_with(".bss"));
        let map = map.context("the injector has no counter")?;
        let bytes = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default();
        Ok(word(&bytes, 0).unwrap_or(0))
    }
}

/// Programs of tracepoints that this kernel has not: those of locks came with 5.19.
fn leave_out_unknown(object: &mut OpenObject) -> Result<()> {
    let types = Btf::from_path(BTF).context("the kernel does not describe its types")?;
    for mut program in object.progs_mut() {
        let section = program.section().to_string_lossy().into_owned();
        let Some(tracepoint) = section.strip_prefix("tp_btf/") else { continue };
        let found: Option<BtfType<'_>> = types.type_by_name(&format!("btf_trace_{tracepoint}"));
        if found.is_none() {
            program.set_autoload(false);
        }
    }
    Ok(())
}

impl CommandWriter {
    /// Replaces the command before.
    pub(super) fn write(&self, command: &InjectCommand) -> Result<()> {
        let mut bytes = Vec::with_capacity(48);
        bytes.extend(number(command.kind).to_ne_bytes());
        bytes.extend(command.tid.to_ne_bytes());
        bytes.extend(command.ns.to_ne_bytes());
        bytes.extend(command.from_ns.to_ne_bytes());
        bytes.extend(command.until_ns.to_ne_bytes());
        let (within, ns) = command.within.map_or((0, 0), |(kind, ns)| (number(kind), ns));
        bytes.extend(ns.to_ne_bytes());
        bytes.extend(u64::from(within).to_ne_bytes());
        Ok(self.commands.update(&self.cpu.to_ne_bytes(), &bytes, MapFlags::ANY)?)
    }

    /// The expiry that the measured thread of `cpu` waits for, ns; absent before its first.
    pub(super) fn expires_ns(&self, cpu: u32) -> Option<i64> {
        let bytes = self.cpus.lookup(&cpu.to_ne_bytes(), MapFlags::ANY).ok()??;
        i64::try_from(word(&bytes, 0)?).ok().filter(|ns| *ns > 0)
    }
}

/// Of a kind, in `enum inject_kind`; 0 where the programs have no part in it.
fn number(kind: DelayContext) -> u32 {
    let name = kind.to_string();
    let index = NAMES.iter().position(|known| *known == name);
    index.map_or(0, |index| index as u32 + 1)
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// A `struct inject_log`.
fn decode(bytes: &[u8]) -> Option<InjectLogEntry> {
    let kind = *NAMES.get((half(bytes, 0)? as usize).checked_sub(1)?)?;
    Some(InjectLogEntry {
        kind: kind.to_owned(),
        cpu: half(bytes, 4)?,
        at_ns: word(bytes, 8)?,
        ns: word(bytes, 16)?,
        expires_ns: word(bytes, 24)?,
        pid: Some(half(bytes, 32)?).filter(|pid| *pid > 0),
    })
}
