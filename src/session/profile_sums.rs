//! Samples of what CPUs do, summed up while they come: memory is bounded however long a run is.
//! Names come at the end, when nothing is measured any more.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
    sync::Arc,
};

use super::profile_late::{LateSamples, SampleKey};
use crate::{
    kernel::{CodeMaps, FunctionNames, SampledContext, Symbols, TaskSample},
    run::profile::{
        CpuContext, KERNEL_MODULE, LONGEST_NAME, LateRows, MOST_FRAMES, MOST_NAMES, MOST_TASKS,
        Profile, ProfileRow, ProfiledTask,
    },
};

/// What one run may hold; the rest has CPU and context alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct SumLimits {
    pub stacks: usize,
    /// Of all stacks together.
    pub frames: usize,
    pub rows: usize,
}

impl SumLimits {
    /// Some 30 MB at the most.
    pub(super) const USUAL: Self = Self { stacks: 65_536, frames: 900_000, rows: 150_000 };
}

/// A function of the kernel by where it begins, or a place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum RawFrame {
    Kernel(u64),
    User(u32, u64),
    /// The stack continues.
    Cut,
}

const UNKNOWN: &str = "[unknown]";
const CUT: &str = "[more callers]";

/// The sums so far.
#[derive(Debug)]
pub(super) struct ProfileSums {
    limits: SumLimits,
    symbols: Symbols,
    maps: CodeMaps,
    stacks: HashMap<Arc<[RawFrame]>, u32>,
    frames: usize,
    tasks: HashMap<ProfiledTask, u32>,
    /// Samples and weight.
    rows: HashMap<SampleKey, (u64, u64)>,
    late: LateSamples,
    samples: u64,
    other: u64,
    tells_interrupts: bool,
}

impl ProfileSums {
    pub(super) fn new(symbols: Symbols, limits: SumLimits, late: LateSamples) -> Self {
        let nobody = ProfiledTask { name: String::new(), pid: 0, tid: 0 };
        Self {
            limits,
            symbols,
            maps: CodeMaps::default(),
            stacks: [(Arc::from([]), 0)].into(),
            frames: 0,
            tasks: [(nobody, 0)].into(),
            rows: HashMap::new(),
            late,
            samples: 0,
            other: 0,
            tells_interrupts: true,
        }
    }

    /// Adds what was sampled since the last time.
    pub(super) fn add(&mut self, samples: Vec<TaskSample>) {
        self.maps.refresh();
        for sample in samples {
            self.add_one(&sample);
        }
        self.late.settle();
    }

    fn add_one(&mut self, sample: &TaskSample) {
        self.samples += 1;
        self.tells_interrupts &= sample.tells_interrupts;
        let context = match sample.context {
            SampledContext::Idle => CpuContext::Idle,
            SampledContext::User => CpuContext::User,
            SampledContext::Kernel => CpuContext::Kernel,
            SampledContext::Softirq => CpuContext::Softirq,
            SampledContext::Hardirq => CpuContext::Hardirq,
        };
        let (task, stack) = (self.task(sample), self.stack(sample));
        let (cpu, own_task) = (sample.cpu, task.unwrap_or(0));
        let mut key = SampleKey { cpu, task: own_task, context, stack: stack.unwrap_or(0) };
        let has_room = self.rows.len() < self.limits.rows || self.rows.contains_key(&key);
        if task.is_none() || stack.is_none() || !has_room {
            self.other += 1;
            if !has_room {
                (key.task, key.stack) = (0, 0);
            }
        }
        let (samples, weight) = self.rows.entry(key).or_default();
        *samples += 1;
        *weight = weight.saturating_add(sample.period);
        if matches!(context, CpuContext::User | CpuContext::Kernel) {
            self.late.hold((sample.at_ns, sample.tid), key, sample.period);
        }
    }

    fn task(&mut self, sample: &TaskSample) -> Option<u32> {
        // The idle tasks of all CPUs are one.
        let name = if sample.tid == 0 { "swapper" } else { &sample.comm };
        let task = ProfiledTask { name: name.into(), pid: sample.pid, tid: sample.tid };
        let number = u32::try_from(self.tasks.len()).ok()?;
        if let Some(known) = self.tasks.get(&task) {
            return Some(*known);
        }
        (self.tasks.len() < MOST_TASKS).then(|| {
            self.tasks.insert(task, number);
            number
        })
    }

    fn stack(&mut self, sample: &TaskSample) -> Option<u32> {
        // A caller's address is the one it returns to, which may be behind its end.
        let inner = |depth: usize, address: u64| address.saturating_sub(u64::from(depth > 0));
        let mut frames: Vec<RawFrame> = Vec::new();
        for (depth, address) in sample.kernel.iter().enumerate() {
            let address = inner(depth, *address);
            let begin = self.symbols.name(address).map_or(0, |(_, offset)| address - offset);
            frames.push(RawFrame::Kernel(begin));
        }
        // Where the task is in the kernel, even the innermost one of the user waits for a return.
        let called = usize::from(!frames.is_empty());
        for (depth, address) in sample.user.iter().enumerate() {
            let address = inner(depth + called, *address);
            let (file, offset) = self.maps.place(sample.pid, &sample.comm, address);
            frames.push(RawFrame::User(file, offset));
        }
        frames.extend(sample.is_cut.then_some(RawFrame::Cut));
        if let Some(known) = self.stacks.get(&frames[..]) {
            return Some(*known);
        }
        let (limits, held) = (self.limits, self.stacks.len());
        if held >= limits.stacks || self.frames + frames.len() > limits.frames {
            return None;
        }
        self.frames += frames.len();
        let number = u32::try_from(held).ok()?;
        self.stacks.insert(frames.into(), number);
        Some(number)
    }

    /// Fills in what a profile says, with names. Takes a second where programs are large.
    pub(super) fn into_profile(self, head: Profile) -> Profile {
        let mut tree = Tree::new();
        let names = self.user_names();
        let mut stacks: Vec<(&Arc<[RawFrame]>, &u32)> = self.stacks.iter().collect();
        stacks.sort_by_key(|(_, number)| **number);
        let mut node_of: Vec<u32> = Vec::with_capacity(stacks.len());
        for (frames, _) in stacks {
            let mut node = 0;
            for frame in frames.iter().rev() {
                let (function, module) = self.name(frame, &names);
                node = tree.below(node, &function, &module);
            }
            node_of.push(node);
        }
        let mut tasks: Vec<(ProfiledTask, u32)> = self.tasks.into_iter().collect();
        tasks.sort_by_key(|(_, number)| *number);
        let (cycles, late) = self.late.finish();
        let late = (cycles > 0).then(|| LateRows { cycles, rows: rows_of(late, &node_of) });
        Profile {
            tells_interrupts: self.tells_interrupts,
            samples: self.samples,
            other: self.other,
            modules: tree.modules.list,
            functions: tree.functions.list,
            frames: tree.frames.list,
            nodes: tree.nodes,
            tasks: tasks.into_iter().map(|(task, _)| task).collect(),
            rows: rows_of(self.rows, &node_of),
            late,
            ..head
        }
    }

    /// Names of the places in files, each asked for once.
    fn user_names(&self) -> HashMap<(u32, u64), String> {
        let mut places: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for frame in self.stacks.keys().flat_map(|stack| stack.iter()) {
            if let RawFrame::User(file, offset) = frame {
                places.entry(*file).or_default().push(*offset);
            }
        }
        let (names, mut found) = (FunctionNames::default(), HashMap::new());
        for (file, mut offsets) in places {
            offsets.sort_unstable();
            offsets.dedup();
            let Some(about) = self.maps.files().get(file as usize) else { continue };
            let named = offsets.iter().zip(names.of(about, &offsets));
            found.extend(named.filter_map(|(at, name)| Some(((file, *at), name?))));
        }
        found
    }

    fn name(&self, frame: &RawFrame, names: &HashMap<(u32, u64), String>) -> (String, String) {
        let unknown = || UNKNOWN.to_owned();
        match frame {
            RawFrame::Kernel(begin) => {
                let name = self.symbols.name(*begin).map(|(name, _)| name.to_owned());
                (name.unwrap_or_else(unknown), KERNEL_MODULE.into())
            }
            RawFrame::User(file, offset) => {
                let path = self.maps.files().get(*file as usize).map(|file| file.path.clone());
                let path = path.filter(|path| !path.is_empty()).unwrap_or_else(unknown);
                (names.get(&(*file, *offset)).cloned().unwrap_or_else(unknown), path)
            }
            RawFrame::Cut => (CUT.into(), UNKNOWN.into()),
        }
    }
}

/// The rows in their order, each stack by its node: several stacks may have the same names.
fn rows_of(found: HashMap<SampleKey, (u64, u64)>, node_of: &[u32]) -> Vec<ProfileRow> {
    let mut sums: BTreeMap<SampleKey, (u64, u64)> = BTreeMap::new();
    for (mut key, (samples, weight)) in found {
        key.stack = node_of.get(key.stack as usize).copied().unwrap_or(0);
        let sum = sums.entry(key).or_default();
        *sum = (sum.0 + samples, sum.1.saturating_add(weight));
    }
    let row = |(SampleKey { cpu, task, context, stack }, (samples, weight))| {
        ProfileRow(cpu, task, context, stack, samples, weight)
    };
    sums.into_iter().map(row).collect()
}

/// Numbers for what is there more than once; what has no room is the first of them.
#[derive(Debug)]
struct Numbered<T> {
    list: Vec<T>,
    numbers: HashMap<T, u32>,
    most: usize,
}

impl<T: Hash + Eq + Clone> Numbered<T> {
    fn new(first: T, most: usize) -> Self {
        Self { numbers: [(first.clone(), 0)].into(), list: vec![first], most }
    }

    fn number(&mut self, of: T) -> u32 {
        if let Some(known) = self.numbers.get(&of) {
            return *known;
        }
        let Some(number) = u32::try_from(self.list.len()).ok() else { return 0 };
        if self.list.len() >= self.most {
            return 0;
        }
        self.list.push(of.clone());
        self.numbers.insert(of, number);
        number
    }
}

/// The stacks as a tree of named functions.
struct Tree {
    modules: Numbered<String>,
    functions: Numbered<String>,
    frames: Numbered<(u32, u32)>,
    nodes: Vec<(u32, u32)>,
    places: HashMap<(u32, u32), u32>,
}

impl Tree {
    fn new() -> Self {
        Self {
            modules: Numbered::new(UNKNOWN.into(), 10_000),
            functions: Numbered::new(UNKNOWN.into(), MOST_NAMES),
            frames: Numbered::new((0, 0), MOST_FRAMES),
            nodes: Vec::new(),
            places: HashMap::new(),
        }
    }

    /// The place of a function that is called at `caller`; both are counted from 1.
    fn below(&mut self, caller: u32, function: &str, module: &str) -> u32 {
        let cut = |name: &str| name.chars().take(LONGEST_NAME).collect::<String>();
        let function = self.functions.number(cut(function));
        let module = self.modules.number(cut(module));
        let place = (caller, self.frames.number((function, module)));
        if let Some(known) = self.places.get(&place) {
            return *known;
        }
        self.nodes.push(place);
        let node = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        self.places.insert(place, node);
        node
    }
}
