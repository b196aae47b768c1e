//! Samples of what every CPU does: a BPF program at a perf event of each.
//!
//! The program, and not perf's own rings, because only it can read the kernel's preempt count in
//! the moment of the sample: that tells hard interrupts and softirqs from the task they
//! interrupted, which a stack of names can only suggest. It also brings the task's name with each
//! sample, so that nothing has to be known of a task that has ended.
//!
//! # What it costs
//!
//! One interrupt a sample, with two walks of a stack; [`Profiler::cost`] is what the program itself
//! took. An idle CPU is woken for it.
//!
//! # What is not seen
//!
//! `cpu-clock` is a timer: where interrupts are disabled its sample is taken when they are enabled
//! again, and so a hard interrupt is never sampled itself, but what follows it. Stacks of programs
//! without frame pointers end early.

use std::{
    fmt::Display,
    os::fd::{AsRawFd as _, IntoRawFd as _, OwnedFd},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use libbpf_rs::{
    Link, MapCore as _, MapFlags, Object, ObjectBuilder, OpenObject, RingBuffer, RingBufferBuilder,
};
use thiserror::Error;

use crate::sys::{perf::SamplingEvent, root::Root};

use super::{TracingUnavailable, bootstrap, log, percpu, types::KernelTypes};

/// The loader reads headers in place, so that they have to be aligned.
#[repr(C, align(8))]
struct ProfileCode<T: ?Sized>(T);

static CODE: &ProfileCode<[u8]> =
    &ProfileCode(*include_bytes!(concat!(env!("OUT_DIR"), "/profile.bpf.o")));

/// `SAMPLE_KERNEL_FRAMES` and `SAMPLE_USER_FRAMES` of `profile.h`.
const KERNEL_FRAMES: usize = 64;
const USER_FRAMES: usize = 127;

/// Offsets of `struct tardy_sample` in bytes.
const COMM_AT: usize = 40;
const KERNEL_AT: usize = 56;
const USER_AT: usize = KERNEL_AT + 8 * KERNEL_FRAMES;
const SAMPLE: usize = USER_AT + 8 * USER_FRAMES;

/// `SAMPLE_NO_COUNT` of `profile.h`.
const NO_COUNT: u32 = 16;

/// The ring has room for the samples of this number of ms, within these bounds in bytes.
const RING_MS: u64 = 500;
const RING_BYTES: (u64, u64) = (256 << 10, 32 << 20);

/// In what a CPU was interrupted by a sample, in the order of `enum sample_context`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SampledContext {
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

impl SampledContext {
    /// In the order of their numbers.
    pub const ALL: [Self; 5] = [Self::Idle, Self::User, Self::Kernel, Self::Softirq, Self::Hardirq];
}

/// What one CPU did at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSample {
    /// `CLOCK_MONOTONIC`, ns.
    pub at_ns: u64,
    /// What it stands for: ns of the clock, or cycles.
    pub period: u64,
    /// Where.
    pub cpu: u32,
    /// The thread; 0 for the idle task.
    pub tid: u32,
    /// Its process.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// What it was doing.
    pub context: SampledContext,
    /// False where this kernel does not tell interrupts from what they interrupt.
    pub tells_interrupts: bool,
    /// The kernel's stack, innermost first; none in user mode.
    pub kernel: Vec<u64>,
    /// The stack of user mode, innermost first; none of kernel threads and of interrupts.
    pub user: Vec<u64>,
    /// The user's stack may continue: there was no room for more.
    pub is_cut: bool,
}

impl TaskSample {
    /// Decodes the program's record; `None` if the bytes are invalid.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < SAMPLE {
            return None;
        }
        let at = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
        let long = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes);
        let stack = |from: usize, bytes: u32, most: usize| -> Vec<u64> {
            // Less than 0 is an error.
            let frames = usize::try_from(bytes.cast_signed()).unwrap_or(0) / 8;
            (0..frames.min(most)).filter_map(|frame| long(from + 8 * frame)).collect()
        };
        let (context, user_bytes) = (at(28)?, at(36)?);
        let comm = bytes.get(COMM_AT..COMM_AT + 16)?;
        let comm = comm.split(|byte| *byte == 0).next().unwrap_or_default();
        let user = stack(USER_AT, user_bytes, USER_FRAMES);
        Some(Self {
            at_ns: long(0)?,
            period: long(8)?,
            cpu: at(16)?,
            tid: at(20)?,
            pid: at(24)?,
            comm: String::from_utf8_lossy(comm).into_owned(),
            context: *SampledContext::ALL.get((context & !NO_COUNT) as usize)?,
            tells_interrupts: context & NO_COUNT == 0,
            kernel: stack(KERNEL_AT, at(32)?, KERNEL_FRAMES),
            is_cut: user.len() == USER_FRAMES,
            user,
        })
    }
}

/// What the program itself took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProgramCost {
    /// How often it ran.
    pub samples: u64,
    /// In all, on all CPUs, ns; the interrupt around it is not in it.
    pub ns: u64,
    /// Samples for which the ring had no room.
    pub lost: u64,
}

/// Why nothing can be sampled; each text names the remedy.
#[derive(Debug, Error)]
pub enum ProfileUnavailable {
    /// A right or the kernel's types are missing.
    #[error(transparent)]
    Bpf(#[from] TracingUnavailable),
    /// The kernel samples no CPU for this process.
    #[error(
        "the kernel does not let this process sample CPU {cpu} at {hz} Hz ({why}): run as root, or \
         with CAP_PERFMON; a rate above `sysctl kernel.perf_event_max_sample_rate` is refused \
         (Invalid argument)"
    )]
    Refused {
        /// The CPU.
        cpu: u32,
        /// The rate.
        hz: u32,
        /// What the kernel said.
        why: String,
    },
    /// Anything else.
    #[error("{what}: {why}; leave out --profile to measure without")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        why: String,
    },
}

fn system(what: &'static str, why: &dyn Display) -> ProfileUnavailable {
    ProfileUnavailable::System { what, why: why.to_string() }
}

/// The program, loaded. It goes when this is dropped, and with the process.
pub struct Profiler {
    // Before the object whose program they run.
    links: Vec<Link>,
    ring: RingBuffer<'static>,
    /// Until they are attached.
    events: Vec<OwnedFd>,
    object: Object,
    taken: Arc<Mutex<Vec<TaskSample>>>,
    event: SamplingEvent,
}

impl std::fmt::Debug for Profiler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Profiler").field("event", &self.event).finish_non_exhaustive()
    }
}

impl Profiler {
    /// Loads it for these CPUs, `hz` samples a second on each; nothing is sampled yet.
    ///
    /// # Errors
    /// What is missing, with the remedy.
    pub fn load(cpus: &[u32], hz: u32) -> Result<Self, ProfileUnavailable> {
        bootstrap::may_load()?;
        let event = SamplingEvent::best(cpus.first().copied().unwrap_or(0));
        let open = |&cpu: &u32| {
            event.open(cpu, hz).map_err(|error| {
                let why = error.to_string();
                ProfileUnavailable::Refused { cpu, hz, why }
            })
        };
        let events = cpus.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let object = load(cpus.len() as u64 * u64::from(hz))?;
        let taken = Arc::<Mutex<Vec<TaskSample>>>::default();
        let ring = ring(&object, Arc::clone(&taken))?;
        Ok(Self { links: Vec::new(), ring, events, object, taken, event })
    }

    /// What samples are taken by.
    #[must_use]
    pub const fn event(&self) -> SamplingEvent {
        self.event
    }

    /// Begins to sample.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn attach(&mut self) -> Result<(), ProfileUnavailable> {
        let program = self.object.progs_mut().next();
        let program = program.ok_or_else(|| system("find the program", &"it is missing"))?;
        for event in self.events.drain(..) {
            let link = program.attach_perf_event(event.as_raw_fd());
            self.links.push(link.map_err(|error| system("attach the sampling program", &error))?);
            // The link closes it.
            let _ = event.into_raw_fd();
        }
        Ok(())
    }

    /// Ends sampling; what was sampled can still be taken.
    pub fn detach(&mut self) {
        self.links.clear();
    }

    /// What was sampled since the last time, each CPU's in the order of time.
    #[must_use]
    pub fn take(&self) -> Vec<TaskSample> {
        self.ring.consume_raw();
        std::mem::take(&mut *self.taken.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What the program took so far.
    #[must_use]
    pub fn cost(&self) -> ProgramCost {
        let costs = self.object.maps().find(|map| map.name() == "costs");
        let of_cpus = costs
            .and_then(|map| map.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY).ok().flatten());
        let word = |bytes: &[u8], at: usize| {
            let word = bytes.get(8 * at..8 * at + 8).and_then(|word| word.try_into().ok());
            word.map_or(0, u64::from_ne_bytes)
        };
        of_cpus.unwrap_or_default().iter().fold(ProgramCost::default(), |all, cpu| ProgramCost {
            samples: all.samples.saturating_add(word(cpu, 0)),
            ns: all.ns.saturating_add(word(cpu, 1)),
            lost: all.lost.saturating_add(word(cpu, 2)),
        })
    }
}

/// The object, with a ring for `samples_per_s` samples a second.
fn load(samples_per_s: u64) -> Result<Object, ProfileUnavailable> {
    let failed = |error: libbpf_rs::Error| system("open the sampling program", &error);
    log::listen();
    let mut builder = ObjectBuilder::default();
    let mut object: OpenObject =
        builder.name("tardy_profile").and_then(|it| it.open_memory(&CODE.0)).map_err(failed)?;
    let bytes = (samples_per_s * SAMPLE as u64 * RING_MS / 1000).clamp(RING_BYTES.0, RING_BYTES.1);
    let bytes = u32::try_from(bytes.next_power_of_two()).unwrap_or(u32::MAX);
    let types = KernelTypes::read(Path::new(bootstrap::BTF))?;
    let config =
        percpu::counts_from_runqueues(&types).map(|offset| offset.0.to_ne_bytes()).concat();
    for mut map in object.maps_mut() {
        match map.name().to_str() {
            Some("samples") => map.set_max_entries(bytes).map_err(failed)?,
            Some(name) if name.ends_with(".config") => {
                map.set_initial_value(&config).map_err(failed)?;
            }
            _ => {}
        }
    }
    object.load().map_err(|error| {
        let why = [error.to_string(), log::reason(&log::lines())].join("; ");
        let lack = bootstrap::too_old(&Root::default()).map(ProfileUnavailable::from);
        lack.unwrap_or_else(|| system("load the sampling program", &why))
    })
}

/// The reading end of the ring.
fn ring(
    object: &Object,
    taken: Arc<Mutex<Vec<TaskSample>>>,
) -> Result<RingBuffer<'static>, ProfileUnavailable> {
    let failed = |why: &dyn Display| system("map the samples", why);
    let map = object.maps().find(|map| map.name() == "samples");
    let map = map.ok_or_else(|| failed(&"the object has no such map"))?;
    let mut builder = RingBufferBuilder::new();
    let each = move |bytes: &[u8]| {
        let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.extend(TaskSample::decode(bytes));
        0
    };
    builder.add(&map, each).map_err(|error| failed(&error))?;
    builder.build().map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(context: u32, kernel_bytes: i32, user_bytes: i32) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend([7_u64, 10].map(u64::to_ne_bytes).concat());
        bytes.extend([1_u32, 12, 11, context].map(u32::to_ne_bytes).concat());
        bytes.extend([kernel_bytes, user_bytes].map(i32::to_ne_bytes).concat());
        bytes.extend(b"worker\0\0rest\0\0\0\0");
        bytes.extend((1..=191_u64).flat_map(u64::to_ne_bytes));
        bytes
    }

    #[test]
    fn a_sample_is_read_as_the_program_lays_it_out() {
        let found = TaskSample::decode(&sample(2, 16, 24)).unwrap();
        assert_eq!((found.at_ns, found.period, found.cpu), (7, 10, 1));
        assert_eq!((found.tid, found.pid, found.comm.as_str()), (12, 11, "worker"));
        assert_eq!((found.context, found.tells_interrupts), (SampledContext::Kernel, true));
        assert_eq!((found.kernel, found.user), (vec![1, 2], vec![65, 66, 67]));
        assert!(!found.is_cut);
    }

    #[test]
    fn a_stack_that_there_is_not_is_none_and_a_full_one_is_cut() {
        let found = TaskSample::decode(&sample(1 | NO_COUNT, -14, 8 * 127)).unwrap();
        assert_eq!((found.kernel.len(), found.user.len(), found.is_cut), (0, 127, true));
        assert!(!found.tells_interrupts);
        assert_eq!(TaskSample::decode(&sample(7, 0, 0)), None, "no such context");
        assert_eq!(TaskSample::decode(&sample(1, 0, 0)[..100]), None);
        let huge = TaskSample::decode(&sample(1, i32::MAX, i32::MIN)).unwrap();
        assert_eq!((huge.kernel.len(), huge.user.len()), (KERNEL_FRAMES, 0));
    }

    #[test]
    fn a_busy_thread_is_sampled_in_user_mode() {
        if bootstrap::can_trace().is_err() {
            eprintln!("skipped: no right to trace the kernel");
            return;
        }
        let cpus: Vec<u32> = crate::sys::cpus::Cpus::allowed().unwrap().iter().collect();
        let mut profiler = Profiler::load(&cpus, 499).unwrap();
        profiler.attach().unwrap();
        let own = crate::sys::sched::thread_id();
        let (mut own_samples, mut value) = (Vec::new(), 1_u64);
        let in_user = |sample: &&TaskSample| sample.context == SampledContext::User;
        // Until it has had enough of this thread, however busy the machine is.
        while own_samples.iter().filter(in_user).count() < 20 {
            for _ in 0..100_000 {
                value = std::hint::black_box(value.wrapping_mul(3));
            }
            let taken = profiler.take().into_iter();
            own_samples.extend(taken.filter(|sample| i64::from(sample.tid) == i64::from(own)));
        }
        profiler.detach();
        let mut user = own_samples.iter().filter(in_user);
        assert!(user.all(|sample| sample.kernel.is_empty() && !sample.user.is_empty()));
        assert!(own_samples.iter().all(|sample| sample.tells_interrupts && sample.period > 0));
        let cost = profiler.cost();
        assert!(cost.samples >= 20 && cost.ns >= cost.samples, "{cost:?}");
    }
}
