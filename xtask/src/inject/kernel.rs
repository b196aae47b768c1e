//! The injector's kernel side: loaded, attached, given orders, read.
//!
//! User space shares it by maps; the layouts are those of `inject.h`.

use std::sync::mpsc::Sender;

use anyhow::{Context, Result};
use libbpf_rs::{
    Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, RingBuffer, RingBufferBuilder,
};

use super::{InjectLogEntry, plan::DelayContext};

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/inject.bpf.o"));

/// `enum inject_kind`: its numbers, from 1, by the names of the log.
const NAMES: [&str; 11] = [
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
];

/// The programs; they go with it.
pub struct InjectPrograms {
    object: Object,
    links: Vec<Link>,
}

/// What is to happen on one CPU.
#[derive(Debug, Clone, Copy)]
pub struct InjectCommand {
    pub kind: DelayContext,
    /// The task that is looked at; 0 for none.
    pub tid: i32,
    pub ns: u64,
    pub from_ns: i64,
    pub until_ns: i64,
}

/// Gives orders for one CPU, and knows what its measured thread waits for.
pub struct Hand {
    orders: MapHandle,
    seen: MapHandle,
    cpu: u32,
}

impl InjectPrograms {
    /// Loads the programs; none runs yet. `targets` are the measured threads and their CPUs.
    pub fn load(targets: &[(i32, u32)]) -> Result<Self> {
        let object = ObjectBuilder::default()
            .open_memory(OBJECT)?
            .load()
            .context("the kernel refuses the injector; it takes root, BTF and Linux 5.17")?;
        let kernel = Self { object, links: Vec::new() };
        let known = kernel.map("targets")?;
        for (tid, cpu) in targets {
            known.update(&tid.to_ne_bytes(), &cpu.to_ne_bytes(), MapFlags::ANY)?;
        }
        Ok(kernel)
    }

    /// From now on orders are carried out. Programs on one tracepoint run in the order in which
    /// they were attached. So the tracer has to be there before: what is added here then lies
    /// after its look at the interrupt or the switch, within what it takes for the interrupt's own
    /// work. The other way round, the delay would come before the interrupt, as far as the tracer
    /// can know.
    pub fn attach(&mut self) -> Result<()> {
        for program in self.object.progs_mut() {
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

    pub fn hand(&self, cpu: u32) -> Result<Hand> {
        Ok(Hand { orders: self.map("orders")?, seen: self.map("seen")?, cpu })
    }

    /// What the kernel's side wrote down, to be read by `consume`.
    pub fn log(&self, into: Sender<InjectLogEntry>) -> Result<RingBuffer<'static>> {
        let map = self.map("logs")?;
        let mut builder = RingBufferBuilder::new();
        builder.add(&map, move |bytes| {
            // Nobody listens any more only when all is over.
            decode(bytes).map_or(0, |line| i32::from(into.send(line).is_err()))
        })?;
        Ok(builder.build()?)
    }

    /// Delays that found no place in the log.
    pub fn lost(&self) -> Result<u64> {
        let map = self.object.maps().find(|map| map.name().to_string_lossy().ends_with(".bss"));
        let map = map.context("the injector has no counter")?;
        let bytes = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default();
        Ok(word(&bytes, 0).unwrap_or(0))
    }
}

impl Hand {
    /// Puts an order in the place of the one before.
    pub fn order(&self, order: &InjectCommand) -> Result<()> {
        let name = order.kind.to_string();
        let place = NAMES.iter().position(|known| *known == name);
        let number = place.map_or(0, |place| place as u32 + 1);
        let mut bytes = Vec::with_capacity(32);
        bytes.extend(number.to_ne_bytes());
        bytes.extend(order.tid.to_ne_bytes());
        bytes.extend(order.ns.to_ne_bytes());
        bytes.extend(order.from_ns.to_ne_bytes());
        bytes.extend(order.until_ns.to_ne_bytes());
        Ok(self.orders.update(&self.cpu.to_ne_bytes(), &bytes, MapFlags::ANY)?)
    }

    /// The expiry that the measured thread of `cpu` waits for, ns; absent before its first.
    pub fn expires_ns(&self, cpu: u32) -> Option<i64> {
        let bytes = self.seen.lookup(&cpu.to_ne_bytes(), MapFlags::ANY).ok()??;
        i64::try_from(word(&bytes, 0)?).ok().filter(|ns| *ns > 0)
    }
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
