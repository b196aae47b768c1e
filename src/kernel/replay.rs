//! A kernel of text: the programs that were written for BPF, compiled for the host, and driven by
//! events (`replay/replay.h` lists them), one a line. All else is as with a kernel: they write into
//! memory that this process maps, and the code that reads it is that of a run.
//!
//! Events are made up by [`machine::Machine`].

pub(crate) mod machine;
mod steps;

use std::{
    fs,
    hash::{DefaultHasher, Hasher as _},
    io::{Read as _, Write as _},
    os::fd::{AsFd as _, AsRawFd as _, OwnedFd},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use super::{
    AttachPrograms, AttachedCycles, AttachedLate, AttachedTo, EventReader,
    attach::{BLOCK, PLACES, SETTINGS},
    attached_thread::THREAD,
    header,
    memory::{RecorderMemory, ThreadRecords, WORDS},
    recorder::Events,
};
use crate::sys::mapped::{MappedWords, sealed_memory};

/// Numbers of tasks begin here: no task of this machine has one, whatever it looks up.
pub(crate) const FIRST_TID: u32 = 5_000_001;

/// Events that are kept for each CPU: all of a test.
const SLOTS: u32 = 1 << 17;
const CPUS: u32 = 4;

/// Places of numbers of threads from 0 up to those of a replay.
const BLOCKS: usize = (FIRST_TID as usize + 10_000) / BLOCK;

/// A program, compiled once for its sources.
fn compile(name: &str) -> PathBuf {
    let from = concat!(env!("CARGO_MANIFEST_DIR"), "/src/kernel");
    let mut digest = DefaultHasher::new();
    for directory in ["", "replay", "replay/host/bpf"] {
        let entries = fs::read_dir(format!("{from}/{directory}")).unwrap();
        let mut sources: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        sources.retain(|path| path.extension().is_some_and(|kind| kind == "c" || kind == "h"));
        sources.sort();
        sources.iter().for_each(|path| digest.write(&fs::read(path).unwrap()));
    }
    let into = PathBuf::from(env!("OUT_DIR")).join(format!("{name}-{:016x}", digest.finish()));
    if into.exists() {
        return into;
    }
    // Other tests may do the same at this moment.
    let fresh = into.with_extension(std::process::id().to_string());
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-w", "-isystem"]).arg(format!("{from}/replay/host"));
    let made = compiler.arg("-o").arg(&fresh).arg(format!("{from}/replay/{name}.c")).status();
    assert!(made.unwrap().success(), "cc, which also links Rust's programs");
    fs::rename(fresh, &into).unwrap();
    into
}

static ATTACH: LazyLock<PathBuf> = LazyLock::new(|| compile("attach_replay"));
static RECORDER: LazyLock<PathBuf> = LazyLock::new(|| compile("recorder_replay"));

/// Memory of `words` words, and the path by which a child opens it.
fn shared(words: usize) -> (OwnedFd, String) {
    let memory = sealed_memory(c"tardy-replay", words as u64 * 8).unwrap();
    let path = format!("/proc/{}/fd/{}", std::process::id(), memory.as_raw_fd());
    (memory, path)
}

/// One of the programs.
#[derive(Debug)]
struct Program {
    child: Child,
    events: Option<ChildStdin>,
    answers: ChildStdout,
}

impl Program {
    fn start(path: &PathBuf, arguments: &[String]) -> Self {
        let mut command = Command::new(path);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (events, answers) = (child.stdin.take(), child.stdout.take().unwrap());
        Self { child, events, answers }
    }

    /// Makes these happen; returns the late records that result. Before them the memory does not
    /// exist yet.
    fn feed(&mut self, events: &str) -> Vec<AttachedLate> {
        let into = self.events.as_mut().unwrap();
        into.write_all(format!("{events}\nsync\n").as_bytes()).unwrap();
        into.flush().unwrap();
        let mut count = [0; 8];
        self.answers.read_exact(&mut count).expect("it says what is wrong with the events");
        let mut records = vec![0; usize::try_from(u64::from_ne_bytes(count)).unwrap() * 64];
        self.answers.read_exact(&mut records).unwrap();
        records.chunks_exact(64).filter_map(AttachedLate::decode).collect()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.events.take());
        let _ = self.child.wait();
    }
}

/// The programs that follow threads of others.
#[derive(Debug)]
pub(crate) struct AttachReplay {
    program: Program,
    late: Arc<Mutex<Vec<AttachedLate>>>,
}

impl AttachReplay {
    /// They, and what a run sees of them.
    pub(crate) fn start(to: &AttachedTo, cycles: AttachedCycles) -> (Self, AttachPrograms) {
        let memory_words = SETTINGS + header::TARDY_ATTACH_CPUS as usize * 16;
        let all = [memory_words, PLACES * THREAD, BLOCKS * BLOCK / 4].map(|words| {
            let (memory, path) = shared(words);
            (MappedWords::new(memory.as_fd(), words).unwrap(), memory, path)
        });
        let (mode, target) = match to {
            AttachedTo::Process(pid) => (header::TARDY_ATTACH_PROCESS, *pid),
            AttachedTo::Thread(tid) => (header::TARDY_ATTACH_THREAD, *tid),
            AttachedTo::Name(_) => (header::TARDY_ATTACH_NAME, 0),
            AttachedTo::Children => (header::TARDY_ATTACH_CHILDREN, 0),
        };
        let (response, deadline_ns) = match cycles {
            AttachedCycles::Unmeasured => (0, 0),
            AttachedCycles::Measured(deadline_ns) => (1, deadline_ns.unwrap_or(0)),
        };
        let paths = all.iter().map(|(_, _, path)| path.clone());
        let numbers =
            [mode.into(), target.into(), response, deadline_ns].map(|n: u64| n.to_string());
        let arguments: Vec<String> = paths.chain(numbers).collect();
        let mut program = Program::start(&ATTACH, &arguments);
        // It has opened its memory by then.
        program.feed("");
        let late = Arc::<Mutex<Vec<AttachedLate>>>::default();
        let words = all.map(|(words, _, _)| words);
        let programs = AttachPrograms::replayed(to, cycles, words, Arc::clone(&late));
        (Self { program, late }, programs)
    }

    /// Has these events happen.
    pub(crate) fn feed(&mut self, events: &str) {
        let late = self.program.feed(events);
        self.late.lock().unwrap_or_else(PoisonError::into_inner).extend(late);
    }
}

/// What happened on each CPU, as the programs of the recorder write it for these threads: their
/// numbers, and the kernel's priorities of them.
pub(crate) fn record(events: &str, threads: &[(i32, i32)]) -> EventReader {
    record_all(events, threads).0
}

/// The same, and their wake-ups.
pub(super) fn record_all(events: &str, threads: &[(i32, i32)]) -> (EventReader, ThreadRecords) {
    let slots = SLOTS as usize * CPUS as usize;
    let [(memory, memory_path), (ring, ring_path)] = [WORDS, slots * 4].map(shared);
    let memory = RecorderMemory::map(memory.as_fd()).unwrap();
    memory.follow(threads).unwrap();
    let kept = Events::map(ring.as_fd(), SLOTS, CPUS).unwrap();
    let arguments = [memory_path, ring_path, SLOTS.to_string()];
    let mut program = Program::start(&RECORDER, &arguments);
    program.feed(events);
    let memory = Arc::new(memory);
    let records = ThreadRecords::of(Arc::clone(&memory));
    (EventReader::new(memory, Some(kept), Vec::new()), records)
}
