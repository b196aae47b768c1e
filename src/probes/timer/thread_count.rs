//! How many measuring threads there are, and on which CPUs.

use crate::sys::cpus::Cpus;

/// How many threads there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadCount {
    /// This number on each CPU.
    OnEach(u32),
    /// This number in total, on one CPU after another, and again from the first.
    InTotal(u32),
}

impl ThreadCount {
    /// The most on one of these CPUs.
    pub(super) fn most_on_one(self, cpus: &Cpus) -> u32 {
        match self {
            Self::OnEach(threads) => threads,
            Self::InTotal(threads) => {
                threads.div_ceil(u32::try_from(cpus.iter().count()).unwrap_or(u32::MAX).max(1))
            }
        }
    }

    /// The CPU of each thread, and its number on that.
    pub(super) fn seats(self, cpus: &Cpus) -> Vec<(u32, u32)> {
        let most = self.most_on_one(cpus);
        match self {
            Self::OnEach(_) => {
                cpus.iter().flat_map(|cpu| (0..most).map(move |number| (cpu, number))).collect()
            }
            Self::InTotal(threads) => (0..most)
                .flat_map(|number| cpus.iter().map(move |cpu| (cpu, number)))
                .take(threads as usize)
                .collect(),
        }
    }
}
