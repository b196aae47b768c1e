//! A recorder in which the test plays the programs.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::*;
use crate::kernel::Window;

/// A recorder of made-up events.
#[derive(Default, Clone)]
pub(super) struct Fake {
    pub(super) events: Vec<Event>,
    /// Of CPU 0.
    pub(super) frequencies: Vec<SetFrequency>,
    pub(super) stacks: HashMap<u64, Vec<&'static str>>,
    pub(super) names: Vec<&'static str>,
    /// System management interrupts that come between two readings.
    pub(super) smis_step: u64,
    pub(super) smis: Arc<AtomicU64>,
    /// Nothing counts them.
    pub(super) no_smi_count: bool,
    pub(super) forgets: bool,
    /// On how many CPUs events are recorded.
    pub(super) cpus: u32,
}

impl EventSource for Fake {
    fn events(&self, cpu: u32, from_ns: u64, to_ns: u64, into: &mut Vec<Event>) -> bool {
        let mut own: Vec<Event> = self.events.iter().filter(|e| e.cpu == cpu).copied().collect();
        own.sort_by_key(|event| event.at_ns);
        let mut window = Window::new(from_ns, to_ns);
        for (index, event) in own.into_iter().enumerate().rev() {
            if window.is_complete() {
                break;
            }
            window.take(index as u64, event);
        }
        window.into_order(into);
        !self.forgets
    }

    fn frequencies(&self, cpu: u32, _: u64, _: u64) -> Vec<SetFrequency> {
        if cpu == 0 { self.frequencies.clone() } else { Vec::new() }
    }

    fn cpus(&self) -> u32 {
        self.cpus
    }

    fn recorded(&self, _: u32) -> Range<u64> {
        0..u64::MAX
    }

    fn stack(&self, number: u64) -> Option<Vec<u64>> {
        let address = |name: &&str| self.names.iter().position(|known| known == name);
        let addresses = |stack: &Vec<&'static str>| {
            stack.iter().filter_map(address).map(|at| 0x1000 + at as u64).collect()
        };
        self.stacks.get(&number).map(addresses)
    }

    fn symbol(&self, address: u64) -> Option<(Cow<'_, str>, u64)> {
        let at = usize::try_from(address.checked_sub(0x1000)?).ok()?;
        self.names.get(at).map(|name| ((*name).into(), 0x10))
    }

    fn lost(&self) -> u64 {
        3
    }

    fn smis(&mut self, _: u32) -> Option<u64> {
        let smis = self.smis.fetch_add(self.smis_step, Ordering::Relaxed);
        (!self.no_smi_count).then_some(smis)
    }
}
