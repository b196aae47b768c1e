//! What the blame asks of the recorder; tests answer in its place.

use std::{borrow::Cow, ops::Range};

use super::Event;
use crate::kernel::SetFrequency;

/// Where events, stacks and names come from.
pub(crate) trait EventSource {
    /// Events of `cpu` from `from_ns` to `to_ns` (`CLOCK_MONOTONIC`), by time, appended to `into`;
    /// preceded by what shows the context at `from_ns`: the last switch, and after it the last idle
    /// state and the entries that are still open. `false` where the record no longer reaches back
    /// so far.
    fn events(&self, cpu: u32, from_ns: u64, to_ns: u64, into: &mut Vec<Event>) -> bool;

    /// The frequencies that the kernel set `cpu` to from `from_ns` to `to_ns`
    /// (`CLOCK_MONOTONIC`), and the last one before that, by time.
    fn frequencies(&self, cpu: u32, from_ns: u64, to_ns: u64) -> Vec<SetFrequency>;

    /// Numbers of CPUs are below this. Some may be offline, and have no events.
    fn cpus(&self) -> u32;

    /// The time of which all events of `cpu` are still there (`CLOCK_MONOTONIC` ns): from 0 while
    /// none was overwritten, up to the newest one. Empty where nothing is recorded.
    fn recorded(&self, cpu: u32) -> Range<u64>;

    /// The return addresses of a stack, innermost first; `None` if it was overwritten.
    fn stack(&self, number: u64) -> Option<Vec<u64>>;

    /// The kernel's function at an address, and how far into it.
    fn symbol(&self, address: u64) -> Option<(Cow<'_, str>, u64)>;

    /// Events that the recorder lost so far.
    fn lost(&self) -> u64;

    /// Whether the hypervisor's count of the time that it takes is among the events.
    fn counts_steal(&self) -> bool {
        true
    }

    /// System management interrupts of a CPU so far; `None` if they are not counted.
    fn smis(&mut self, cpu: u32) -> Option<u64>;
}
