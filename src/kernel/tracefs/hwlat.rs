//! The kernel's tracer of hardware latency: a kernel thread that moves from CPU to CPU, reads the
//! clock with interrupts off, and records the gaps over the threshold.
//!
//! It runs in its own instance, so that what others trace is not touched. The kernel has one such
//! thread, so that a second instance is refused.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    process,
};

use super::{
    TracefsUnavailable,
    instance::{self, Instance},
};
use crate::sys::{cpus::Cpus, ftrace::TRACEFS};

/// One interval with gaps over the threshold, as the kernel states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HwlatRecord {
    /// The CPU it was on.
    pub cpu: u32,
    /// The time of the first gap, s of the wall clock, in all its digits.
    pub at_s: String,
    /// The largest gap between the two reads of a turn, us.
    pub inner_us: u64,
    /// The largest gap between two turns, us.
    pub outer_us: u64,
    /// How many gaps there were; kernels before 5.9 do not say.
    pub count: Option<u64>,
}

/// A line of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HwlatLine {
    /// A record.
    Record(HwlatRecord),
    /// The number of records that were lost.
    Lost(u64),
    /// Anything else.
    Other,
}

impl HwlatLine {
    /// `<...>-123  [001] d..1.  53.1: #1  inner/outer(us):  12/14  ts:1700000000.1 count:2`
    #[must_use]
    pub fn read(line: &str) -> Self {
        if let Some((_, lost)) = line.split_once("[LOST ") {
            let number = lost.split(' ').next().and_then(|number| number.parse().ok());
            return number.map_or(Self::Other, Self::Lost);
        }
        record(line).map_or(Self::Other, Self::Record)
    }
}

fn record(line: &str) -> Option<HwlatRecord> {
    let (head, values) = line.split_once("inner/outer(us):")?;
    let in_brackets = |word: &str| word.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    let mut words = values.split_whitespace();
    let (inner, outer) = words.next()?.split_once('/')?;
    let value = |key: &str| values.split_whitespace().find_map(|word| word.strip_prefix(key));
    let at_s = value("ts:")?;
    at_s.parse::<f64>().ok()?;
    Some(HwlatRecord {
        cpu: head.split_whitespace().find_map(in_brackets)?,
        at_s: at_s.to_owned(),
        inner_us: inner.parse().ok()?,
        outer_us: outer.parse().ok()?,
        count: value("count:").and_then(|count| count.parse().ok()),
    })
}

/// The tracer in its instance, which is removed by who journalled it.
#[derive(Debug)]
pub struct HwlatTracer {
    instance: Instance,
    pipe: File,
    /// A line whose end was not read yet.
    rest: Vec<u8>,
}

impl HwlatTracer {
    /// Looks whether the kernel has it, and says where the instance will be, to be journalled.
    ///
    /// # Errors
    /// What is missing.
    pub fn look() -> Result<String, TracefsUnavailable> {
        let path = Path::new(TRACEFS).join("available_tracers");
        let tracers =
            fs::read_to_string(&path).map_err(|error| TracefsUnavailable::of(&path, &error))?;
        match tracers.split_whitespace().any(|tracer| tracer == "hwlat") {
            true => Ok(instance::path_of(process::id())),
            false => Err(TracefsUnavailable::NoHwlat),
        }
    }

    /// Makes the instance at `path`; the tracer waits for [`Self::start`].
    ///
    /// # Errors
    /// The kernel refuses it; another instance has the tracer.
    pub fn make(path: &str) -> Result<Self, TracefsUnavailable> {
        let instance = Instance::make(path)?;
        // An instance begins with the options of the user's own trace; older kernels have none.
        let _ = instance.write("options/latency-format", "0");
        instance.write("current_tracer", "hwlat")?;
        let path = Path::new(path).join("trace_pipe");
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NONBLOCK);
        let pipe = options.open(&path).map_err(|error| TracefsUnavailable::of(&path, &error))?;
        Ok(Self { instance, pipe, rest: Vec::new() })
    }

    /// The CPUs that it moves across.
    ///
    /// # Errors
    /// The kernel refuses them.
    pub fn set_cpus(&self, cpus: &Cpus) -> Result<(), TracefsUnavailable> {
        self.instance.write("tracing_cpumask", &mask(cpus))
    }

    /// Begins.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn start(&self) -> Result<(), TracefsUnavailable> {
        self.instance.write("tracing_on", "1")
    }

    /// Ends.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn stop(&self) -> Result<(), TracefsUnavailable> {
        self.instance.write("tracing_on", "0")
    }

    /// Hands over the lines that are there.
    ///
    /// # Errors
    /// The trace cannot be read.
    pub fn read(&mut self, mut take: impl FnMut(HwlatLine)) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 16];
        loop {
            match self.pipe.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(bytes) => self.rest.extend_from_slice(buffer.get(..bytes).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                take(HwlatLine::read(&String::from_utf8_lossy(&line)));
            }
        }
    }
}

/// CPUs as the kernel has masks: hexadecimal, a comma between 32 bits.
fn mask(cpus: &Cpus) -> String {
    let mut words = vec![0_u32; 1 + cpus.iter().max().unwrap_or(0) as usize / 32];
    for cpu in cpus.iter() {
        if let Some(word) = words.get_mut(cpu as usize / 32) {
            *word |= 1 << (cpu % 32);
        }
    }
    let words: Vec<String> = words.iter().rev().map(|word| format!("{word:08x}")).collect();
    words.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_the_trace_is_read_in_all_its_parts() {
        let line = "           <...>-1729    [001] d....   714.756290: #1     inner/outer(us):   \
                    12/14    ts:1581527483.343962693 count:6 nmi-total:4 nmi-count:2";
        let expected = HwlatRecord {
            cpu: 1,
            at_s: "1581527483.343962693".into(),
            inner_us: 12,
            outer_us: 14,
            count: Some(6),
        };
        assert_eq!(HwlatLine::read(line), HwlatLine::Record(expected.clone()));
        let old = line.split_once(" count:").unwrap().0;
        let expected = HwlatRecord { count: None, ..expected };
        assert_eq!(HwlatLine::read(old), HwlatLine::Record(expected));
        assert_eq!(HwlatLine::read("CPU:1 [LOST 17 EVENTS]"), HwlatLine::Lost(17));
        assert_eq!(HwlatLine::read("# tracer: hwlat"), HwlatLine::Other);
        for cut in ["12/14", "[001]", "ts:1581527483.343962693"] {
            assert_eq!(HwlatLine::read(&line.replace(cut, "")), HwlatLine::Other, "{cut}");
        }
    }

    #[test]
    fn masks_are_those_of_the_kernel() {
        let mask_of = |list: &str| mask(&list.parse().unwrap());
        assert_eq!(mask_of("0,4-5"), "00000031");
        assert_eq!(mask_of("1,33,64"), "00000001,00000002,00000002");
    }
}
