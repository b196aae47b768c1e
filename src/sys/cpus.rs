//! Sets of CPUs: parse `0-3,7`, print, set and read back a thread's affinity.

use std::{collections::BTreeSet, fmt, io, str::FromStr};

use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};
use thiserror::Error;

/// The largest CPU number a kernel can be built for, plus one.
const LIMIT: u32 = CpuSet::MAX_CPU as u32;

/// A set of CPU numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cpus(BTreeSet<u32>);

/// Why a list of CPUs was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CpusError {
    /// Not a number or a range.
    #[error("invalid CPU list \"{0}\"; use numbers and ranges, e.g. 0-3,7")]
    Syntax(String),
    /// A range that runs backwards.
    #[error("the range {0}-{1} runs backwards; write {1}-{0}")]
    Backwards(u32, u32),
    /// A number beyond what a CPU set can hold.
    #[error("CPU {0} is beyond {max}, the largest number tardy knows", max = LIMIT - 1)]
    TooLarge(u32),
    /// Nothing in it.
    #[error("the CPU list is empty; name at least one, as in 0")]
    Empty,
}

impl Cpus {
    /// The CPUs that this thread may run on.
    ///
    /// # Errors
    /// What the kernel says; more CPUs than the kernel interface knows is one of them.
    pub fn allowed() -> io::Result<Self> {
        Self::of_thread(0)
    }

    /// The CPUs that thread `tid` may run on; 0 is the calling one.
    ///
    /// # Errors
    /// `ESRCH` for a thread that is gone; otherwise as [`Cpus::allowed`].
    pub fn of_thread(tid: i32) -> io::Result<Self> {
        let set = sched_getaffinity(Pid::from_raw(tid))?;
        Ok(Self((0..LIMIT).filter(|cpu| set.is_set(*cpu as usize)).collect()))
    }

    /// Makes these the CPUs of the calling thread, and reads back the result.
    ///
    /// # Errors
    /// `EINVAL` if no CPU of the set is online or allowed.
    pub fn pin_this_thread(&self) -> io::Result<Self> {
        let mut set = CpuSet::new();
        for cpu in &self.0 {
            set.set(*cpu as usize);
        }
        sched_setaffinity(None, &set)?;
        Self::allowed()
    }

    /// In ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().copied()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `cpu` is one of them.
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    /// Whether `self` and `other` have a CPU in common.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        !self.0.is_disjoint(&other.0)
    }

    /// Those that are in both.
    #[must_use]
    pub fn common(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    /// Reads a mask as /proc and /sys have them: hexadecimal words of 32 bits, the highest first.
    ///
    /// # Errors
    /// Not such a mask.
    pub fn from_mask(text: &str) -> Result<Self, CpusError> {
        let syntax = || CpusError::Syntax(text.into());
        let mut cpus = BTreeSet::new();
        for (number, word) in text.trim().rsplit(',').enumerate() {
            let word = u32::from_str_radix(word.trim(), 16).map_err(|_| syntax())?;
            let first = u32::try_from(number).map_err(|_| syntax())?.saturating_mul(32);
            cpus.extend((0..32).filter(|bit| word >> bit & 1 == 1).map(|bit| first + bit));
        }
        Ok(Self(cpus))
    }

    /// The mask of these CPUs, as [`Cpus::from_mask`] reads it.
    #[must_use]
    pub fn to_mask(&self) -> String {
        let mut words = vec![0_u32; 1];
        for cpu in self.iter() {
            let number = (cpu / 32) as usize;
            words.resize(words.len().max(number + 1), 0);
            if let Some(word) = words.get_mut(number) {
                *word |= 1 << (cpu % 32);
            }
        }
        let (last, rest) = words.split_last().unwrap_or((&0, &[]));
        let rest: String = rest.iter().rev().map(|word| format!(",{word:08x}")).collect();
        format!("{last:x}{rest}")
    }

    /// Makes these the CPUs of thread `tid`.
    ///
    /// # Errors
    /// What the kernel says: `ESRCH` where the thread is gone, `EINVAL` where it is bound by the
    /// kernel or by a cpuset.
    pub fn pin(&self, tid: i32) -> io::Result<()> {
        let mut set = CpuSet::new();
        for cpu in &self.0 {
            set.set(*cpu as usize);
        }
        Ok(sched_setaffinity(rustix::thread::Pid::from_raw(tid), &set)?)
    }

    /// Those of `self` that are not in `other`.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).copied().collect())
    }
}

impl FromIterator<u32> for Cpus {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl FromStr for Cpus {
    type Err = CpusError;

    fn from_str(text: &str) -> Result<Self, CpusError> {
        let syntax = || CpusError::Syntax(text.into());
        let mut cpus = BTreeSet::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: u32 = first.trim().parse().map_err(|_| syntax())?;
            let last: u32 = last.trim().parse().map_err(|_| syntax())?;
            if last < first {
                return Err(CpusError::Backwards(first, last));
            }
            if last >= LIMIT {
                return Err(CpusError::TooLarge(last));
            }
            cpus.extend(first..=last);
        }
        if cpus.is_empty() { Err(CpusError::Empty) } else { Ok(Self(cpus)) }
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.iter().copied().peekable();
        let mut comma = "";
        while let Some(first) = rest.next() {
            let mut last = first;
            while rest.peek() == Some(&(last + 1)) {
                last += 1;
                rest.next();
            }
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
            comma = ",";
        }
        Ok(())
    }
}

/// CPUs, and the order in which they were named.
#[derive(Debug, Clone)]
pub struct CpuList {
    /// All of them.
    pub cpus: Cpus,
    /// As they were written.
    pub in_order: Vec<u32>,
}

impl FromStr for CpuList {
    type Err = CpusError;

    fn from_str(text: &str) -> Result<Self, CpusError> {
        let cpus = text.parse()?;
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let parts: Result<Vec<Cpus>, CpusError> = parts.map(str::parse).collect();
        let in_order = parts?.iter().flat_map(Cpus::iter).collect();
        Ok(Self { cpus, in_order })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_printed_as_the_kernel_does() {
        for (text, want) in [("0", "0"), ("0-3,7", "0-3,7"), ("3,1,2", "1-3"), (" 5 , 5-6", "5-6")]
        {
            assert_eq!(text.parse::<Cpus>().unwrap().to_string(), want);
        }
    }

    #[test]
    fn masks_are_read_and_printed_as_the_kernel_does() {
        for (mask, list) in [("3", "0-1"), ("00000001,80000000", "31-32"), ("f0", "4-7")] {
            assert_eq!(Cpus::from_mask(mask).unwrap().to_string(), list);
        }
        assert_eq!("31-32".parse::<Cpus>().unwrap().to_mask(), "1,80000000");
        assert_eq!("0-1".parse::<Cpus>().unwrap().to_mask(), "3");
        assert_eq!(Cpus::from_mask("0"), Ok(Cpus::default()));
        assert!(Cpus::from_mask("x").is_err());
    }

    #[test]
    fn bad_lists_are_refused_by_name() {
        let refused = |text: &str| text.parse::<Cpus>().unwrap_err().to_string();
        assert_eq!(refused("3-1"), "the range 3-1 runs backwards; write 1-3");
        assert!(refused("0-99999").contains("99999"));
        assert!(refused("a").contains("\"a\""));
        assert!(refused(",").contains("empty"));
        assert!(refused("1-2-3").contains("1-2-3"));
    }
}
