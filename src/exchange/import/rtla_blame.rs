//! A late sample as rtla's auto-analysis has it, and what it was late by.
//!
//! rtla divides the latency of a thread into the delay of the timer's interrupt, that interrupt,
//! what the interrupted task held the CPU for, and what came between. Its `IRQ latency` is a point
//! within the interrupt, and no part; nor is `Previous IRQ interference`, which is a limit.
//!
//! Where it stopped in the interrupt, the trace ends there: the delay, and the name of the task,
//! may still be those of an earlier sample, and are not taken. The task's number is of this one,
//! and so is `(exit from idle)`, which is found anew each time.

use super::source::ImportError;
use crate::{
    run::{
        functions,
        peaks::{Basis, Cause, Lane, Moment, Part, Peak},
    },
    units::Nanos,
};

/// Times have two digits behind the point, so that each is off by up to this much, ns.
const ROUNDED_NS: i64 = 10;

/// Name of what delays the interrupt where nothing shows what it was, as the rules of tardy's own
/// runs have it.
const LATE: &str = "interrupt late";

/// Interference of one kind: each with its name, its number and how long it took, ns.
#[derive(Debug, Default)]
pub(super) struct Interference {
    pub(super) sum_ns: Option<i64>,
    pub(super) items: Vec<(String, u64, i64)>,
}

/// A block of the analysis.
#[derive(Debug, Default)]
pub(super) struct LateSample {
    /// Its heading.
    pub(super) line: u64,
    pub(super) cpu: u32,
    pub(super) previous_ns: Option<i64>,
    pub(super) delay_ns: Option<i64>,
    pub(super) is_idle_exit: bool,
    pub(super) irq_latency_ns: Option<i64>,
    pub(super) irq_duration_ns: Option<i64>,
    pub(super) has_blocking: bool,
    pub(super) blocking_ns: Option<i64>,
    pub(super) blocking: Option<(String, u64)>,
    pub(super) has_stack: bool,
    /// Innermost function first.
    pub(super) stack: Vec<String>,
    pub(super) nmi_ns: Option<i64>,
    pub(super) irqs: Interference,
    pub(super) softirqs: Interference,
    pub(super) threads: Interference,
    /// The whole.
    pub(super) latency_ns: i64,
    /// Whether that ends in the timer's interrupt.
    pub(super) is_irq: bool,
}

impl LateSample {
    pub(super) fn new(line: u64, cpu: u32) -> Self {
        Self { line, cpu, ..Self::default() }
    }

    /// Refuses one that lacks what each has, or that contradicts itself; its last line is `number`.
    pub(super) fn check(&self, number: u64) -> Result<(), ImportError> {
        let refused = |what: String| {
            let cpu = self.cpu;
            Err(ImportError::at(number, format!("the analysis of CPU {cpu} {what}")))
        };
        let heads = [
            ("IRQ handler delay:", self.delay_ns.is_some()),
            ("IRQ latency:", self.irq_latency_ns.is_some()),
            ("Timerlat IRQ duration:", self.is_irq || self.irq_duration_ns.is_some()),
            ("Blocking thread:", self.has_blocking && self.blocking.is_some()),
        ];
        if let Some((name, _)) = heads.into_iter().find(|(_, is_there)| !is_there) {
            return refused(format!("has no line {name}, so that lines are missing"));
        }
        if self.is_irq == self.blocking_ns.is_some() {
            return refused("has parts of a thread's latency beside one of an interrupt".into());
        }
        let kinds = [("IRQ", &self.irqs), ("Softirq", &self.softirqs), ("Thread", &self.threads)];
        for (kind, Interference { sum_ns, items }) in kinds {
            let found = items.iter().fold(0_i64, |sum, (_, _, ns)| sum.saturating_add(*ns));
            let stated = sum_ns.unwrap_or(0);
            let off_ns = ROUNDED_NS * (i64::try_from(items.len()).unwrap_or(i64::MAX / 16) + 1);
            if stated.abs_diff(found) > off_ns.unsigned_abs() {
                return refused(format!(
                    "states {} of {kind} interference, and its lines have {}",
                    Nanos(stated),
                    Nanos(found)
                ));
            }
        }
        Ok(())
    }

    /// What the timer interrupted; the number alone where the name may be of an earlier one.
    fn task(&self) -> Option<String> {
        let (name, number) = self.blocking.as_ref().filter(|(_, number)| *number > 0)?;
        Some(if self.is_irq { format!("task {number}") } else { format!("{name}/{number}") })
    }

    /// What the time before the interrupt went to.
    fn delay(&self, ns: i64) -> Part {
        let is_idle = self.blocking.as_ref().is_some_and(|(_, number)| *number == 0);
        let (cause, name, evidence) = if self.is_idle_exit {
            let sign = "rtla: exit from idle, with no interrupt before it";
            (Cause::IdleExit, "idle exit".to_owned(), Some(sign.to_owned()))
        } else if let Some(name) = enabled_interrupts(&self.stack)
            && self.previous_ns.is_none()
            && !is_idle
        {
            let first = functions::interrupted(&self.stack).first();
            let sign = first.map(|first| format!("interrupted in {first}, which enables them"));
            (Cause::IrqsOff, name, sign)
        } else {
            (Cause::Unexplained, LATE.to_owned(), None)
        };
        let basis = if evidence.is_some() { Basis::Inferred } else { Basis::None };
        let task = if cause == Cause::IrqsOff { self.task() } else { None };
        let stack = functions::interrupted(&self.stack).to_vec();
        Part { cause, name, task, ns: ns.unsigned_abs(), basis, evidence, stack }
    }

    /// Its parts, as rtla has them; what is left is unexplained.
    fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        if self.is_irq {
            // The delay is of this sample only where it is an exit from idle.
            let delay_ns = self.delay_ns.filter(|ns| self.is_idle_exit && *ns <= self.latency_ns);
            parts.push(self.delay(delay_ns.unwrap_or(self.latency_ns)));
        } else {
            parts.push(self.delay(self.delay_ns.unwrap_or(0)));
            let timer_ns = self.irq_duration_ns.unwrap_or(0);
            parts.push(measured(Cause::Hardirq, "timer interrupt", None, timer_ns));
            parts.push(self.blocked());
            parts.push(measured(Cause::Hardirq, "NMI", None, self.nmi_ns.unwrap_or(0)));
            let each = |kind: &Interference, cause| {
                let part = |(name, number, ns): &(String, u64, i64)| {
                    let task = (cause == Cause::Thread).then(|| format!("{name}/{number}"));
                    measured(cause, name, task, *ns)
                };
                kind.items.iter().map(part).collect::<Vec<_>>()
            };
            parts.extend(each(&self.irqs, Cause::Hardirq));
            parts.extend(each(&self.softirqs, Cause::Softirq));
            parts.extend(each(&self.threads, Cause::Thread));
        }
        parts
    }

    /// What the interrupted task had the CPU for after the interrupt.
    fn blocked(&self) -> Part {
        let outside = functions::interrupted(&self.stack);
        let name = self.blocking.as_ref().map(|(name, _)| name.clone()).unwrap_or_default();
        let name = culprit(outside).unwrap_or(name);
        let ns = self.blocking_ns.unwrap_or(0);
        let part = measured(Cause::Nonpreemptible, &name, self.task(), ns);
        Part { stack: outside.to_vec(), ..part }
    }

    /// What is known of when it happened, ns after the expiry.
    fn timeline(&self) -> Vec<Moment> {
        let moment = |at: i64, lane, what: &str, name: &str| Moment {
            at,
            ns: None,
            cpu: self.cpu,
            lane,
            what: what.into(),
            name: name.into(),
            pid: None,
            priority: None,
            detail: None,
            stack: Vec::new(),
        };
        let mut moments = vec![moment(0, Lane::Thread, "expiry", "timer expires")];
        let of_thread = |ns: Option<i64>| ns.filter(|ns| !self.is_irq && *ns <= self.latency_ns);
        if let (Some(from), Some(ns)) = (of_thread(self.delay_ns), self.irq_duration_ns) {
            let irq = moment(from, Lane::Hardirq, "vector", "timer interrupt");
            moments.push(Moment { ns: u64::try_from(ns).ok(), ..irq });
        }
        let irq_ns = self.irq_latency_ns.filter(|ns| *ns <= self.latency_ns);
        if let (Some(at), Some(name)) = (irq_ns, self.stack.first()) {
            let walked = moment(at, Lane::Others, "stack", name);
            moments.push(Moment { stack: self.stack.clone(), ..walked });
        }
        if !self.is_irq {
            moments.push(moment(self.latency_ns, Lane::Thread, "woke", "woke up"));
        }
        moments
    }
}

/// Whether the CPU had only just enabled interrupts when the timer interrupted it, and where: the
/// function to name.
fn enabled_interrupts(stack: &[String]) -> Option<String> {
    let outside = functions::interrupted(stack);
    let is_interrupt = outside.len() < stack.len();
    let first = outside.first().filter(|_| is_interrupt)?;
    functions::enables_interrupts(first).then(|| culprit(outside))?
}

/// The function of a stack that a person would name; nothing where it shows mere machinery.
fn culprit(stack: &[String]) -> Option<String> {
    let names: Vec<&str> = stack.iter().map(|name| functions::bare(name)).collect();
    let (name, worth) = functions::culprit(&names)?;
    (worth > functions::SymbolConfidence::Machinery).then(|| name.to_owned())
}

fn measured(cause: Cause, name: &str, task: Option<String>, ns: i64) -> Part {
    let (ns, name) = (u64::try_from(ns).unwrap_or(0), name.to_owned());
    Part { cause, name, task, ns, basis: Basis::Measured, evidence: None, stack: Vec::new() }
}

fn unexplained(name: &str, ns: u64) -> Part {
    Part { ns, basis: Basis::None, ..measured(Cause::Unexplained, name, None, 0) }
}

/// The sample as a peak of this series.
pub(super) fn peak(sample: &LateSample, series: String) -> Peak {
    let whole = sample.latency_ns.unsigned_abs();
    Peak {
        at_ns: None,
        series,
        tid: None,
        cpu: sample.cpu,
        latency_ns: sample.latency_ns,
        stages: None,
        ways: Vec::new(),
        blame: summed(sample.parts(), whole),
        timeline: sample.timeline(),
        left_out: 0,
    }
}

/// The parts of each cause, name and task as one, so that all of them sum to the whole.
fn summed(parts: Vec<Part>, whole: u64) -> Vec<Part> {
    let mut blame: Vec<Part> = Vec::new();
    let rounded = ROUNDED_NS.unsigned_abs() * (parts.len() as u64 + 1);
    for part in parts.into_iter().filter(|part| part.ns > 0) {
        let matches_format = |known: &&mut Part| {
            (known.cause, &known.name, &known.task) == (part.cause, &part.name, &part.task)
        };
        match blame.iter_mut().find(matches_format) {
            Some(known) => known.ns = known.ns.saturating_add(part.ns),
            None => blame.push(part),
        }
    }
    blame.sort_by_key(|part| std::cmp::Reverse(part.ns));
    let sum = blame.iter().fold(0_u64, |sum, part| sum.saturating_add(part.ns));
    let over = sum.saturating_sub(whole);
    match blame.first_mut() {
        Some(largest) if over <= rounded && over < largest.ns => largest.ns -= over,
        None => {}
        // Events were lost, and one interrupt taken for another: no part can be trusted.
        Some(_) => return vec![unexplained("the analysis has more time than the latency", whole)],
    }
    if whole > sum {
        blame.push(unexplained("in no part of the analysis", whole - sum));
    }
    blame.sort_by_key(|part| std::cmp::Reverse(part.ns));
    blame
}
