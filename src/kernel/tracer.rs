//! Loads the programs, attaches and detaches them.

use std::{collections::HashSet, fmt::Display, os::fd::AsFd, path::Path, sync::Arc};

use libbpf_rs::{Link, Map, MapCore, Object, ObjectBuilder, OpenMapMut, OpenObject};

use crate::sys::{open_files::with_limit, root::Root};

use super::{
    Missing, Settings, Stacks, TraceLevel, TracingUnavailable, WokenBy, bootstrap, header, log,
    memory::{RecorderMemory, ThreadRecords},
    percpu::{self, PercpuOffset, PercpuOffsets},
    programs::{PROGRAMS, Program, Use},
    recorder::{EventReader, Events},
    tracepoint_arguments::TracepointArguments,
    types::KernelTypes,
};

/// As many as `recorder.h` has room for; those beyond are not recorded.
const MOST_CPUS: u32 = header::TARDY_CPUS;

/// The loader reads headers in place, so that they have to be aligned.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

static CODE: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/recorder.bpf.o")));

/// The programs, loaded. They go when it is dropped, and with the process.
#[derive(Debug)]
pub struct Tracer {
    // Before the object whose programs they run.
    links: Vec<Link>,
    object: Object,
    pub(super) memory: Arc<RecorderMemory>,
    recorder: EventReader,
    missing: Vec<Missing>,
}

impl Tracer {
    /// Loads the programs for which this kernel has a tracepoint; none runs yet. Takes some tens of
    /// milliseconds.
    ///
    /// # Errors
    /// Missing rights or types, and a kernel that lacks or refuses something required.
    pub fn load(settings: &Settings) -> Result<Self, TracingUnavailable> {
        bootstrap::may_load()?;
        let mut plan = ProgramPlan::new(settings)?;
        let object = plan.load()?;
        let memory =
            RecorderMemory::map(map(&object, ".bss")?.as_fd()).map_err(|e| unmapped(&e))?;
        let memory = Arc::new(memory);
        let recorder = plan.recorder(&object, memory.clone())?;
        Ok(Self { links: Vec::new(), object, memory, recorder, missing: plan.missing })
    }

    /// What this kernel lacks, or refuses; the rest works.
    #[must_use]
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// Where the programs write about the threads that are followed.
    #[must_use]
    pub fn threads(&self) -> ThreadRecords {
        ThreadRecords::of(self.memory.clone())
    }

    /// What the programs record; nothing where only stages are traced.
    #[must_use]
    pub fn recorder(&self) -> EventReader {
        self.recorder.clone()
    }

    /// Follows these threads instead of those before: number, and the kernel's priority, 0..98 for
    /// real-time (98 = FIFO 1), 100..139 for others (120 = nice 0), -1 for deadline. The n-th gets
    /// the n-th record.
    ///
    /// # Errors
    /// [`TracingUnavailable::TooManyThreads`].
    pub fn follow(&mut self, tids: &[(i32, i32)]) -> Result<(), TracingUnavailable> {
        self.memory.follow(tids)
    }

    /// Walks stacks for what is later than this, ns.
    pub fn set_late_ns(&self, ns: u64) {
        self.memory.set_late_ns(ns);
    }

    /// Attaches the programs. Does nothing where they are attached.
    ///
    /// # Errors
    /// [`TracingUnavailable::Refused`] with the kernel's reason; none of them runs then.
    pub fn attach(&mut self) -> Result<(), TracingUnavailable> {
        if !self.links.is_empty() {
            return Ok(());
        }
        log::listen();
        let mut links = Vec::new();
        for program in self.object.progs_mut().filter(|program| program.autoload()) {
            links.push(program.attach().map_err(|error| TracingUnavailable::Refused {
                program: program.name().to_string_lossy().into_owned(),
                why: error.to_string(),
            })?);
        }
        self.links = links;
        Ok(())
    }

    /// Detaches them; [`Tracer::attach`] may follow.
    pub fn detach(&mut self) {
        self.links.clear();
    }
}

fn map<'a>(object: &'a Object, ending: &str) -> Result<Map<'a>, TracingUnavailable> {
    object
        .maps()
        .find(|map| map.name().to_string_lossy().ends_with(ending))
        .ok_or_else(|| system("find the programs' memory", &"the object has no such map"))
}

fn unmapped(why: &dyn Display) -> TracingUnavailable {
    system("map the programs' memory", why)
}

fn system(what: &str, why: &dyn Display) -> TracingUnavailable {
    TracingUnavailable::System { what: what.to_owned(), why: with_limit(why.to_string()) }
}

fn open_map<'a>(
    object: &'a mut OpenObject,
    ending: &str,
) -> Result<OpenMapMut<'a>, TracingUnavailable> {
    object
        .maps_mut()
        .find(|map| map.name().to_string_lossy().ends_with(ending))
        .ok_or_else(|| system("find the programs' memory", &"the object has no such map"))
}

/// What is loaded, and what turns out to be missing.
struct ProgramPlan<'a> {
    settings: &'a Settings,
    cpus: u32,
    soft_timers: bool,
    preemptible: bool,
    offsets: PercpuOffsets,
    switch_has_state: bool,
    expire_has_time: bool,
    tracepoints: HashSet<String>,
    missing: Vec<Missing>,
}

impl<'a> ProgramPlan<'a> {
    fn new(settings: &'a Settings) -> Result<Self, TracingUnavailable> {
        let root = Root::default();
        let types = KernelTypes::read(Path::new(bootstrap::BTF))?;
        let arguments = TracepointArguments::of_kernel(&types);
        let offsets = match settings.mode {
            TraceLevel::Stages => PercpuOffsets::NONE,
            TraceLevel::Peaks => PercpuOffsets::of_kernel(&types),
        };
        Ok(Self {
            settings,
            cpus: libbpf_rs::num_possible_cpus()
                .ok()
                .and_then(|cpus| u32::try_from(cpus).ok())
                .map(|cpus| cpus.min(MOST_CPUS))
                .ok_or_else(|| system("count the CPUs", &"/sys/devices/system/cpu/possible"))?,
            soft_timers: bootstrap::timers_expire_in_softirq(&root),
            preemptible: bootstrap::is_preemptible(&root),
            offsets,
            switch_has_state: percpu::switch_has_state(&types),
            expire_has_time: arguments.expire_has_time(),
            tracepoints: arguments.fitting(&types),
            missing: Vec::new(),
        })
    }

    /// Tries until the kernel takes all that is left: it names one program at a time.
    fn load(&mut self) -> Result<Object, TracingUnavailable> {
        loop {
            log::listen();
            let error = match self.open()?.load() {
                Ok(object) => return Ok(object),
                Err(error) => error,
            };
            let lines = log::lines();
            let why = [error.to_string(), log::reason(&lines)].join("; ");
            let refused = log::refused(&lines)
                .and_then(|name| PROGRAMS.iter().find(|program| program.name() == name));
            match refused {
                // What the check of a program refuses is called EACCES instead.
                _ if lines.iter().any(|line| line.contains("-EPERM")) => {
                    return Err(TracingUnavailable::NoRights { why });
                }
                None => {
                    let lack = bootstrap::too_old(&Root::default());
                    return Err(lack.unwrap_or_else(|| system("load the programs", &why)));
                }
                Some(program) if program.switches_off.is_none() => {
                    let program = program.name();
                    let lack = bootstrap::too_old(&Root::default());
                    return Err(lack.unwrap_or(TracingUnavailable::Refused { program, why }));
                }
                Some(program) => self.leave_out(program, why),
            }
        }
    }

    /// The object with all that is wanted and has not been refused.
    fn open(&mut self) -> Result<OpenObject, TracingUnavailable> {
        let failed = |error: libbpf_rs::Error| system("open the programs", &error);
        let mut builder = ObjectBuilder::default();
        let mut object =
            builder.name("tardy").and_then(|it| it.open_memory(&CODE.0)).map_err(failed)?;
        for mut program in object.progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            let known = PROGRAMS.iter().find(|program| program.name() == name);
            let load = known.is_some_and(|known| self.wants(known));
            let there = known.is_some_and(|known| self.tracepoints.contains(known.tracepoint));
            match known {
                Some(known) if load && !there => {
                    program.set_autoload(false);
                    self.lacks(known)?;
                }
                _ => program.set_autoload(load),
            }
        }
        self.configure(&mut object)?;
        Ok(object)
    }

    fn wants(&self, program: &Program) -> bool {
        let refused = self.missing.iter().any(|missing| missing.what == program.tracepoint);
        program.used.is_wanted(self.settings, self.soft_timers) && !refused
    }

    fn lacks(&mut self, program: &Program) -> Result<(), TracingUnavailable> {
        if program.switches_off.is_none() {
            return Err(TracingUnavailable::NoTracepoint {
                tracepoint: program.tracepoint.to_owned(),
            });
        }
        if program.used == Use::PeaksIfThere {
            return Ok(());
        }
        self.leave_out(
            program,
            "the kernel has no such tracepoint, or one with other arguments".to_owned(),
        );
        Ok(())
    }

    fn leave_out(&mut self, program: &Program, why: String) {
        self.missing.push(Missing {
            what: program.tracepoint.to_owned(),
            switches_off: program.switches_off.unwrap_or_default().to_owned(),
            why,
        });
    }

    /// What reads the loaded programs' events.
    fn recorder(
        &self,
        object: &Object,
        memory: Arc<RecorderMemory>,
    ) -> Result<EventReader, TracingUnavailable> {
        let events = match self.settings.mode {
            TraceLevel::Stages => None,
            TraceLevel::Peaks => {
                let descriptor = map(object, "events")?;
                let events = Events::map(descriptor.as_fd(), self.slots(), self.cpus);
                Some(events.map_err(|error| unmapped(&error))?)
            }
        };
        let programs = object
            .progs()
            .filter(|program| program.autoload())
            .map(|program| program.as_fd().try_clone_to_owned())
            .collect::<Result<_, _>>()
            .map_err(|error| system("keep the programs open", &error))?;
        let counts_steal = self.offsets.steal_time != PercpuOffset::NONE;
        Ok(EventReader::new(memory, events, programs).with_steal(counts_steal))
    }

    /// Events kept for each CPU.
    fn slots(&self) -> u32 {
        self.settings.slots_per_cpu.clamp(64, Settings::MOST_SLOTS).next_power_of_two()
    }

    /// The fields of `struct tardy_config`, in their order.
    fn config(&self) -> [(&'static str, u32); 14] {
        let stacks = match self.settings.stacks {
            Stacks::Off => header::TARDY_STACKS_OFF,
            Stacks::WhenLate => header::TARDY_STACKS_LATE,
            Stacks::Always => header::TARDY_STACKS_ALWAYS,
        };
        let woken_by = match self.settings.woken_by {
            WokenBy::Timers => header::TARDY_BY_TIMERS,
            WokenBy::Messages => header::TARDY_BY_MESSAGES,
            WokenBy::Both => header::TARDY_BY_BOTH,
        };
        [
            ("record", u32::from(self.settings.mode == TraceLevel::Peaks)),
            ("stacks", stacks),
            ("slots", self.slots()),
            ("soft_timers", u32::from(self.soft_timers)),
            ("preemptible", u32::from(self.preemptible)),
            ("woken_by", woken_by),
            ("switch_has_state", u32::from(self.switch_has_state)),
            ("futexes", u32::from(self.settings.futexes)),
            ("cpu_bytes", self.cpus.div_ceil(64) * 8),
            ("expire_has_time", u32::from(self.expire_has_time)),
            ("irq_regs", self.offsets.irq_regs.0.cast_unsigned()),
            ("preempt_count", self.offsets.preempt_count.0.cast_unsigned()),
            ("pcpu_hot", self.offsets.pcpu_hot.0.cast_unsigned()),
            ("steal_time", self.offsets.steal_time.0.cast_unsigned()),
        ]
    }

    /// Sets what the programs see as constants.
    fn configure(&self, object: &mut OpenObject) -> Result<(), TracingUnavailable> {
        if self.settings.mode == TraceLevel::Peaks {
            open_map(object, "events")?
                .set_max_entries(self.slots() * self.cpus)
                .map_err(|error| system("size the memory of events", &error))?;
        }
        let words = self.config();
        let bytes: Vec<u8> = words.iter().flat_map(|(_, word)| word.to_ne_bytes()).collect();
        open_map(object, ".rodata.config")?
            .set_initial_value(&bytes)
            .map_err(|error| system("configure the programs", &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::layout::Layout;

    const SETTINGS: Settings = Settings {
        mode: TraceLevel::Peaks,
        stacks: Stacks::Off,
        woken_by: WokenBy::Timers,
        futexes: false,
        slots_per_cpu: 64,
    };

    /// A kernel that lacks one tracepoint.
    fn plan_without(tracepoint: &str) -> ProgramPlan<'static> {
        let has = |program: &&Program| program.tracepoint != tracepoint;
        ProgramPlan {
            settings: &SETTINGS,
            cpus: 2,
            soft_timers: false,
            preemptible: false,
            offsets: PercpuOffsets::NONE,
            switch_has_state: true,
            expire_has_time: false,
            tracepoints: PROGRAMS.iter().filter(has).map(|it| it.tracepoint.to_owned()).collect(),
            missing: Vec::new(),
        }
    }

    #[test]
    fn the_configuration_is_written_where_the_programs_read_it() {
        let names = plan_without("").config().map(|(name, _)| name);
        let fields = Layout::of("tardy_config").fields;
        let written = names.iter().enumerate().map(|(at, name)| ((*name).to_owned(), at * 4, 4));
        assert_eq!(fields, written.collect::<Vec<_>>());
    }

    fn is_loaded(object: &OpenObject, name: &str) -> bool {
        object.progs().any(|program| program.name() == name && program.autoload())
    }

    #[test]
    fn a_tracepoint_that_can_be_spared_is_named_with_what_it_switches_off() {
        let mut plan = plan_without("cpu_idle");
        let object = plan.open().unwrap();
        let loaded = |name| is_loaded(&object, name);
        assert!(loaded("on_sched_switch") && loaded("on_nmi_handler"));
        assert!(!loaded("on_cpu_idle") && !loaded("on_softirq_raise"));
        assert_eq!(plan.missing.len(), 1, "{:?}", plan.missing);
        assert_eq!(plan.missing[0].what, "cpu_idle");
        assert!(plan.missing[0].switches_off.contains("idle"));
        // What was refused stays out at the next attempt, and is named once.
        assert!(plan.open().is_ok());
        assert_eq!(plan.missing.len(), 1);
    }

    #[test]
    fn a_kernel_without_an_interrupt_of_the_processor_lacks_nothing() {
        let mut plan = plan_without("threshold_apic_entry");
        let object = plan.open().unwrap();
        let loaded = |name| is_loaded(&object, name);
        assert!(loaded("on_thermal_apic_entry") && !loaded("on_threshold_apic_entry"));
        assert!(plan.missing.is_empty(), "{:?}", plan.missing);
    }

    #[test]
    fn a_tracepoint_that_cannot_be_spared_is_an_error_that_names_it() {
        let lack = plan_without("sched_waking").open().unwrap_err();
        assert!(lack.to_string().contains("sched_waking"), "{lack}");
    }

    #[test]
    fn a_ring_has_a_power_of_two_of_slots_within_bounds() {
        let slots = |slots_per_cpu| {
            let settings = Settings { slots_per_cpu, ..SETTINGS };
            ProgramPlan { settings: &settings, ..plan_without("") }.slots()
        };
        assert_eq!([0, 100, 32_768, u32::MAX].map(slots), [64, 128, 32_768, 1 << 20]);
    }
}
