//! `profile.json`: who used the CPUs during a run, by samples of what every CPU did.
//!
//! Stacks are nodes of one tree, so that each is held once; the file is bounded in size, and what
//! had no room is counted as such. Read back, a file may say anything: lengths have limits, and a
//! number that leads nowhere is an error.

use std::{fmt, io, marker::PhantomData, path::Path};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error as _, SeqAccess, Visitor},
};

use super::{
    files::{self, LONGEST_DAMAGE},
    peaks_file::Damage,
    writer::names,
};
use crate::limits::profile::LARGEST;
pub use crate::limits::profile::{
    DEEPEST, LONGEST_NAME, MOST_FRAMES, MOST_NAMES, MOST_NODES, MOST_ROWS, MOST_TASKS,
};
use crate::plain::cut;

/// The version of `profile.json`.
pub const PROFILE_VERSION: u32 = 1;

/// What a CPU was doing when it was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CpuContext {
    /// The idle task.
    Idle,
    /// User mode.
    User,
    /// The kernel on behalf of a task, or a thread of it.
    Kernel,
    /// A softirq.
    Softirq,
    /// A hard interrupt, or an NMI.
    Hardirq,
}

impl CpuContext {
    /// All of them, in the order of columns.
    pub const ALL: [Self; 5] = [Self::Idle, Self::User, Self::Kernel, Self::Softirq, Self::Hardirq];

    /// As in the file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::User => "user",
            Self::Kernel => "kernel",
            Self::Softirq => "softirq",
            Self::Hardirq => "hardirq",
        }
    }
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProfiledTask {
    /// Its name, as of its thread; empty for those that had no room.
    pub name: String,
    /// The process; 0 for the idle tasks of all CPUs.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
}

/// What sampling took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileCost {
    /// How often the program ran in the kernel.
    pub samples: u64,
    /// What it took of all CPUs, ns, without the interrupt around it.
    pub program_ns: u64,
    /// CPU time of the thread that collects samples, ns.
    pub helper_ns: u64,
}

/// One task in one place: CPU, task, context, node, samples, weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileRow(pub u32, pub u32, pub CpuContext, pub u32, pub u64, pub u64);

impl ProfileRow {
    /// The place of its stack in the tree, counted from 0; `None` if it has none.
    #[must_use]
    pub fn node(&self) -> Option<usize> {
        (self.3 as usize).checked_sub(1)
    }
}

/// What `profile.json` holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// See [`PROFILE_VERSION`].
    pub version: u32,
    /// What samples were taken by: `cpu-clock` or `cycles`.
    pub event: String,
    /// What weights are in: `ns` or `cycles`.
    pub unit: String,
    /// Samples a second on each CPU, as asked for.
    pub hz: u32,
    /// `CLOCK_MONOTONIC`, ns: samples before this are not in it.
    pub from_ns: i64,
    /// Nor those after this.
    pub until_ns: i64,
    /// Whether interrupts are told from what they interrupt; else they are in `kernel` and `idle`.
    pub tells_interrupts: bool,
    /// All samples in it.
    pub samples: u64,
    /// Samples that were lost: no ring had room for them.
    pub lost: u64,
    /// Samples in it whose task or stack had no room: they have their CPU and context alone.
    pub other: u64,
    /// What it cost.
    pub cost: ProfileCost,
    /// Where functions come from: `[kernel]`, or the path of a program or library.
    #[serde(deserialize_with = "limited::<_, _, 10_000>")]
    pub modules: Vec<String>,
    /// Names of functions.
    #[serde(deserialize_with = "limited::<_, _, MOST_NAMES>")]
    pub functions: Vec<String>,
    /// A function of a module: numbers of both.
    #[serde(deserialize_with = "limited::<_, _, MOST_FRAMES>")]
    pub frames: Vec<(u32, u32)>,
    /// The tree of stacks: of each node the number of its caller plus 1, 0 where nothing calls it,
    /// and the number of its frame. A caller comes before what it calls.
    #[serde(deserialize_with = "limited::<_, _, MOST_NODES>")]
    pub nodes: Vec<(u32, u32)>,
    /// Tasks.
    #[serde(deserialize_with = "limited::<_, _, MOST_TASKS>")]
    pub tasks: Vec<ProfiledTask>,
    /// CPU, number of the task, context, number of the node of the innermost function plus 1 (0
    /// without a stack), samples, and their weight.
    #[serde(deserialize_with = "limited::<_, _, MOST_ROWS>")]
    pub rows: Vec<ProfileRow>,
    /// Those of them that were taken in cycles of attached threads that missed their deadline;
    /// absent without such cycles. Of cycles longer than 2 s the beginning may be lacking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<LateRows>,
}

/// Samples of threads that worked in late cycles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateRows {
    /// The cycles.
    pub cycles: u64,
    /// As `rows` of the whole profile.
    #[serde(deserialize_with = "limited::<_, _, MOST_ROWS>")]
    pub rows: Vec<ProfileRow>,
}

/// The name of the module of the kernel's functions.
pub const KERNEL_MODULE: &str = "[kernel]";

impl Profile {
    /// The weight of all samples.
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.rows.iter().fold(0, |all, row| all.saturating_add(row.5))
    }

    /// The frames of a node, innermost first.
    pub fn stack(&self, node: Option<usize>) -> impl Iterator<Item = u32> {
        let at = |node: usize| self.nodes.get(node);
        let next = move |&node: &usize| at(node).and_then(|it| (it.0 as usize).checked_sub(1));
        let nodes = std::iter::successors(node, next);
        nodes.filter_map(move |node| at(node).map(|it| it.1))
    }

    /// Function and module of a frame.
    #[must_use]
    pub fn frame(&self, frame: u32) -> (&str, &str) {
        let (function, module) = self.frames.get(frame as usize).copied().unwrap_or_default();
        (
            self.functions.get(function as usize).map_or("", String::as_str),
            self.modules.get(module as usize).map_or("", String::as_str),
        )
    }

    /// What is wrong with it.
    fn fault(&self) -> Option<String> {
        if self.version != PROFILE_VERSION {
            let known = PROFILE_VERSION;
            return Some(format!("has version {}, and this tardy reads {known}", self.version));
        }
        let leads = |what: &str, number: u32, of: usize| {
            (number as usize >= of).then(|| format!("names {what} {number}, of {of}"))
        };
        let mut frames = self.frames.iter();
        let mut found = frames.find_map(|(function, module)| {
            leads("function", *function, self.functions.len())
                .or_else(|| leads("module", *module, self.modules.len()))
        });
        found = found.or_else(|| self.tree_fault());
        found.or_else(|| {
            let late = self.late.iter().flat_map(|late| &late.rows);
            self.rows.iter().chain(late).find_map(|row| {
                leads("task", row.1, self.tasks.len())
                    .or_else(|| leads("node", row.3, self.nodes.len() + 1))
            })
        })
    }

    fn tree_fault(&self) -> Option<String> {
        let mut depths: Vec<u32> = Vec::with_capacity(self.nodes.len());
        for (number, (caller, frame)) in self.nodes.iter().enumerate() {
            let above = match (*caller as usize).checked_sub(1) {
                None => 0,
                Some(above) => match depths.get(above) {
                    Some(depth) => *depth,
                    None => return Some(format!("has node {number} before its caller")),
                },
            };
            if above >= DEEPEST {
                return Some(format!("has a stack of more than {DEEPEST} functions"));
            }
            if *frame as usize >= self.frames.len() {
                return Some(format!("names frame {frame}, of {}", self.frames.len()));
            }
            depths.push(above + 1);
        }
        None
    }
}

/// Reads the profile in `directory`; `None` without a profile.
///
/// # Errors
/// What is wrong with the file.
pub fn read_profile(directory: &Path) -> Result<Option<Profile>, Damage> {
    let damaged = |what: String| Damage { file: names::PROFILE.into(), line: None, what };
    let text = match files::read(&directory.join(names::PROFILE), LARGEST) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(damaged(format!("cannot be read: {error}"))),
    };
    let profile: Profile = serde_json::from_slice(&text).map_err(|error| {
        damaged(format!("is damaged: {}", cut(&error.to_string(), LONGEST_DAMAGE)))
    })?;
    match profile.fault() {
        None => Ok(Some(profile)),
        Some(fault) => Err(damaged(format!("is damaged: it {fault}"))),
    }
}

/// A list of at most `N`: what is longer is refused while it is read.
fn limited<'de, D, T, const N: usize>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Limited<T, const N: usize>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for Limited<T, N> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {N}")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
            let mut all = Vec::new();
            while let Some(one) = list.next_element()? {
                if all.len() == N {
                    return Err(A::Error::custom(format!("a list of more than {N}")));
                }
                all.push(one);
            }
            Ok(all)
        }
    }
    from.deserialize_seq(Limited::<T, N>(PhantomData))
}
