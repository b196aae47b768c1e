//! Stacks as one tree of bounded size, for the flame graph of a page: what is too small to be seen
//! is put together within its caller.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::{
    plain::cut,
    report::causes::words::label,
    run::{
        peaks::Peak,
        profile::{CpuContext, KERNEL_MODULE, Profile},
    },
};

/// Of 1000 parts of the whole, a place with less is put together with others. Idle time does not
/// count for the whole of the rest.
const LEAST_PER_MILLE: u64 = 1;
/// Places in a graph; where there are more, larger ones are put together.
const MOST_PLACES: usize = 4_000;
/// Places while stacks are added, 600 bytes each at most: a file may state any number.
const MOST_HELD: usize = 200_000;
/// The name of places that were put together.
const SMALLER: PlaceKey<'static> = (FlameKind::Smaller, "(smaller)", "");
/// Characters of a name.
const LONGEST: usize = 160;

/// What a place of a flame graph is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FlameKind {
    /// A task by its name, outside of interrupts.
    Task,
    /// Softirqs or hard interrupts, whatever they interrupted.
    Interrupt,
    /// The idle task.
    Idle,
    /// A cause of late samples.
    Cause,
    /// A function of a program.
    User,
    /// A function of the kernel.
    Kernel,
    /// Places that are too small to be told apart.
    Smaller,
}

/// A tree of stacks; columns of one length. A caller comes before what it calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FlameGraph {
    /// Names and files, each once; place 0 is empty.
    pub strings: Vec<String>,
    /// The place of the caller plus 1; 0 where nothing calls it: a task, interrupts, a cause.
    pub caller: Vec<u32>,
    /// What it is called, in `strings`.
    pub name: Vec<u32>,
    /// The file it is from, in `strings`; 0 if it has none, and for functions of the kernel.
    pub module: Vec<u32>,
    /// What it is.
    pub kind: Vec<FlameKind>,
    /// With all that it calls.
    pub weight: Vec<u64>,
    /// How many places were put together as too small.
    pub merged: u64,
    /// What they weigh together.
    pub merged_weight: u64,
    /// A place below this percentage was put together with others.
    pub least_percent: f64,
}

type PlaceKey<'a> = (FlameKind, &'a str, &'a str);

/// A place while stacks are added.
#[derive(Default)]
struct Place<'a> {
    weight: u64,
    called: BTreeMap<PlaceKey<'a>, usize>,
}

/// Stacks while they are added; place 0 is the whole.
struct Stacks<'a>(Vec<Place<'a>>);

impl<'a> Stacks<'a> {
    fn new() -> Self {
        Self(vec![Place::default()])
    }

    /// If the graph is full, the rest of a stack is too small.
    fn add(&mut self, stack: impl Iterator<Item = PlaceKey<'a>>, weight: u64) {
        let (mut at, mut is_cut) = (0, false);
        for key in stack {
            if is_cut {
                return;
            }
            let next = self.0.len();
            let Some(place) = self.0.get_mut(at) else { return };
            is_cut = next >= MOST_HELD && !place.called.contains_key(&key);
            let key = if is_cut { SMALLER } else { key };
            at = *place.called.entry(key).or_insert(next);
            if at == next {
                self.0.push(Place::default());
            }
            if let Some(place) = self.0.get_mut(at) {
                place.weight = place.weight.saturating_add(weight);
            }
        }
    }

    fn weight(&self, at: usize) -> u64 {
        self.0.get(at).map_or(0, |place| place.weight)
    }

    /// With places below `per_mille` of 1000 put together, in the order of their weights.
    fn graph(&self, per_mille: u64) -> FlameGraph {
        let roots = self.0.first().map(|root| &root.called);
        let whole = |idle: bool| {
            let own = roots.into_iter().flatten();
            let own = own.filter(|((kind, ..), _)| (*kind == FlameKind::Idle) == idle);
            own.fold(0_u64, |sum, (_, at)| sum.saturating_add(self.weight(*at)))
        };
        let least = [false, true].map(|idle| whole(idle).saturating_mul(per_mille) / 1_000);
        let mut drawing = Drawing::new(per_mille);
        // A place, its place in the graph plus 1, and the least weight below it.
        let mut open = vec![(0, 0, None)];
        while let Some((at, caller, below)) = open.pop() {
            let Some(place) = self.0.get(at) else { continue };
            let mut called: Vec<_> = place.called.iter().collect();
            called.sort_by_key(|(_, at)| std::cmp::Reverse(self.weight(**at)));
            let (mut small, mut small_weight) = (0, 0_u64);
            for (key, at) in called {
                let limit = below.unwrap_or(least[usize::from(key.0 == FlameKind::Idle)]);
                let weight = self.weight(*at);
                if weight < limit || key.0 == FlameKind::Smaller {
                    small += self.places(*at);
                    small_weight = small_weight.saturating_add(weight);
                } else {
                    open.push((*at, drawing.put(caller, *key, weight), Some(limit)));
                }
            }
            if small > 0 {
                drawing.put(caller, SMALLER, small_weight);
                drawing.graph.merged += small;
                drawing.graph.merged_weight =
                    drawing.graph.merged_weight.saturating_add(small_weight);
            }
        }
        drawing.graph
    }

    /// It and all that it calls.
    fn places(&self, at: usize) -> u64 {
        let (mut open, mut found) = (vec![at], 0);
        while let Some(at) = open.pop() {
            found += 1;
            open.extend(self.0.get(at).into_iter().flat_map(|place| place.called.values()));
        }
        found
    }

    fn bounded(&self) -> FlameGraph {
        let mut per_mille = LEAST_PER_MILLE;
        loop {
            let graph = self.graph(per_mille);
            if graph.name.len() <= MOST_PLACES || per_mille >= 512 {
                return graph;
            }
            per_mille *= 2;
        }
    }
}

/// The graph while it is made.
struct Drawing {
    graph: FlameGraph,
    strings: HashMap<String, u32>,
}

impl Drawing {
    fn new(per_mille: u64) -> Self {
        let graph = FlameGraph {
            strings: vec![String::new()],
            least_percent: per_mille as f64 / 10.0,
            ..FlameGraph::default()
        };
        Self { graph, strings: [(String::new(), 0)].into() }
    }

    fn string(&mut self, text: &str) -> u32 {
        let text = cut(text, LONGEST);
        if let Some(found) = self.strings.get(&text) {
            return *found;
        }
        let number = u32::try_from(self.graph.strings.len()).unwrap_or(0);
        self.graph.strings.push(text.clone());
        self.strings.insert(text, number);
        number
    }

    /// Its place plus 1.
    fn put(&mut self, caller: u32, (kind, name, module): PlaceKey<'_>, weight: u64) -> u32 {
        let (name, module) = (self.string(name), self.string(module));
        self.graph.caller.push(caller);
        self.graph.name.push(name);
        self.graph.module.push(module);
        self.graph.kind.push(kind);
        self.graph.weight.push(weight);
        u32::try_from(self.graph.name.len()).unwrap_or(u32::MAX)
    }
}

impl FlameGraph {
    /// Of all samples of a profile: below each task, softirqs, hard interrupts and idle time, the
    /// functions from the outermost inwards.
    #[must_use]
    pub fn of_profile(profile: &Profile) -> Self {
        let mut stacks = Stacks::new();
        // The heaviest first: these are to have separate places.
        let mut rows: Vec<_> = profile.rows.iter().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.5));
        for row in rows {
            let task = profile.tasks.get(row.1 as usize).map_or("", |task| &task.name);
            let first = match row.2 {
                CpuContext::Idle => (FlameKind::Idle, "[idle]", ""),
                CpuContext::Softirq => (FlameKind::Interrupt, "[softirq]", ""),
                CpuContext::Hardirq => (FlameKind::Interrupt, "[hard interrupt]", ""),
                CpuContext::User | CpuContext::Kernel if task.is_empty() => {
                    (FlameKind::Task, "[other]", "")
                }
                CpuContext::User | CpuContext::Kernel => (FlameKind::Task, task, ""),
            };
            let mut frames: Vec<u32> = profile.stack(row.node()).collect();
            frames.reverse();
            let functions = frames.into_iter().map(|frame| match profile.frame(frame) {
                (name, KERNEL_MODULE) => (FlameKind::Kernel, name, ""),
                (name, module) => (FlameKind::User, name, module),
            });
            stacks.add(std::iter::once(first).chain(functions), row.5);
        }
        stacks.bounded()
    }

    /// Of late samples: below each cause the kernel's functions, weighted by the ns that they cost.
    #[must_use]
    pub fn of_peaks(peaks: &[Peak]) -> Self {
        let parts: Vec<_> = peaks.iter().flat_map(|peak| &peak.blame).collect();
        let causes: Vec<String> = parts.iter().map(|part| label(part.cause, &part.name)).collect();
        let mut stacks = Stacks::new();
        for (part, cause) in parts.iter().zip(&causes) {
            let functions = part.stack.iter().rev();
            let functions =
                functions.map(|frame| (FlameKind::Kernel, super::late::function(frame), ""));
            let first = (FlameKind::Cause, cause.as_str(), "");
            stacks.add(std::iter::once(first).chain(functions), part.ns);
        }
        stacks.bounded()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sampled;
    use super::*;

    /// Every place: depth, kind, name, weight.
    fn drawn(graph: &FlameGraph) -> Vec<(usize, FlameKind, &str, u64)> {
        let mut depths: Vec<usize> = Vec::new();
        (0..graph.name.len())
            .map(|at| {
                let caller = (graph.caller[at] as usize).checked_sub(1);
                depths.push(caller.map_or(0, |caller| depths[caller] + 1));
                let name = &graph.strings[graph.name[at] as usize];
                (depths[at], graph.kind[at], name.as_str(), graph.weight[at])
            })
            .collect()
    }

    #[test]
    fn tasks_interrupts_and_idle_time_begin_the_stacks_of_a_profile() {
        let graph = FlameGraph::of_profile(&sampled());
        let found = drawn(&graph);
        for wanted in [
            (0, FlameKind::Idle, "[idle]", 40),
            (1, FlameKind::Kernel, "do_idle", 40),
            (2, FlameKind::Kernel, "halt", 40),
            (0, FlameKind::Task, "burn", 30),
            (1, FlameKind::User, "main", 30),
            (2, FlameKind::User, "spin", 20),
            (0, FlameKind::Interrupt, "[softirq]", 10),
            (1, FlameKind::Kernel, "net_rx", 10),
        ] {
            assert!(found.contains(&wanted), "{wanted:?}: {found:?}");
        }
        assert_eq!((graph.merged, graph.merged_weight), (0, 0));
    }

    #[test]
    fn what_is_too_small_is_put_together_and_counted_and_the_sum_stays() {
        let mut profile = sampled();
        // 5,000 tasks of one sample each, beside one that has 2,000 times as much.
        let first = profile.tasks.len();
        for number in 0..5_000 {
            let mut task = profile.tasks[2].clone();
            task.name = format!("task{number}");
            profile.tasks.push(task);
            let mut row = profile.rows[0];
            (row.1, row.4, row.5) = ((first + number) as u32, 1, 10);
            profile.rows.push(row);
        }
        profile.rows[0].5 = 20_000;
        let graph = FlameGraph::of_profile(&profile);
        assert!(graph.name.len() <= MOST_PLACES && graph.name.len() < 30, "{}", graph.name.len());
        assert!(drawn(&graph).contains(&(0, FlameKind::Smaller, "(smaller)", 50_010)), "{graph:?}");
        assert!(graph.merged >= 5_000 && graph.least_percent == 0.1, "{}", graph.merged);
        let roots = drawn(&graph).into_iter().filter(|(depth, ..)| *depth == 0);
        assert_eq!(roots.map(|(.., weight)| weight).sum::<u64>(), profile.weight());
    }

    #[test]
    fn a_graph_of_more_places_than_a_page_holds_puts_larger_ones_together() {
        let names: Vec<String> = (0..900).map(|number| format!("f{number}")).collect();
        let mut stacks = Stacks::new();
        for name in &names {
            let own = (FlameKind::Task, name.as_str(), "");
            stacks.add((0..10).map(|_| own), 1_000);
        }
        let graph = stacks.bounded();
        assert!(graph.name.len() <= MOST_PLACES && graph.least_percent > 0.1, "{graph:?}");
    }

    #[test]
    fn a_file_cannot_ask_for_more_places_than_are_held_and_the_sum_stays() {
        let names: Vec<String> = (0..2_000).map(|number| format!("f{number}")).collect();
        let mut stacks = Stacks::new();
        for name in &names {
            let own = (FlameKind::Task, name.as_str(), "");
            stacks.add((0..250).map(|_| own), 1);
        }
        assert!(stacks.0.len() <= 2 * MOST_HELD, "{}", stacks.0.len());
        let graph = stacks.bounded();
        let roots = drawn(&graph).into_iter().filter(|(depth, ..)| *depth == 0);
        assert_eq!(roots.map(|(.., weight)| weight).sum::<u64>(), 2_000);
    }
}
