//! The programs at the system calls in which event loops wait (`attach_waits.h`): each is loaded
//! once a thread is seen that waits by its call, as it runs at that call of every process.

use std::os::fd::AsFd as _;

use libbpf_rs::{ErrorKind, Link, MapCore as _, Object, ObjectBuilder, OpenObject};

/// A call, by its number on x86-64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WaitCall {
    number: u32,
    name: &'static str,
}

const fn call(number: u32, name: &'static str) -> WaitCall {
    WaitCall { number, name }
}

/// Those of which there is a program. `futex` is left out: a thread that does not sleep in it has
/// mostly not called it.
const CALLS: [WaitCall; 8] = [
    call(232, "epoll_wait"),
    call(281, "epoll_pwait"),
    call(441, "epoll_pwait2"),
    call(7, "poll"),
    call(271, "ppoll"),
    call(23, "select"),
    call(270, "pselect6"),
    call(426, "io_uring_enter"),
];

/// Whether returns to a wait are seen that do not sleep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchedWait {
    /// Yes.
    Watched(&'static str),
    /// The program at this call could not be loaded, and why.
    Failed(&'static str, String),
}

/// The programs that run.
#[derive(Debug, Default)]
pub(super) struct WaitPrograms {
    calls: Vec<WatchedWait>,
    // Before the objects whose programs they run.
    links: Vec<Link>,
    objects: Vec<Object>,
}

/// Whether this is such a program.
pub(super) fn is_wait_program(name: &str) -> bool {
    CALLS.iter().any(|call| name.strip_prefix("on_") == Some(call.name))
}

impl WaitPrograms {
    /// Sees to it that the call of that number is watched; others than those here never are.
    pub(super) fn watch(&mut self, number: u32, code: &[u8], memory: &Object) {
        let Some(call) = CALLS.iter().find(|call| call.number == number) else { return };
        let is_known = |known: &WatchedWait| match known {
            WatchedWait::Watched(name) | WatchedWait::Failed(name, _) => *name == call.name,
        };
        if self.calls.iter().any(is_known) {
            return;
        }
        self.calls.push(match load(call.name, code, memory) {
            Ok((object, link)) => {
                self.objects.push(object);
                self.links.push(link);
                WatchedWait::Watched(call.name)
            }
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                let why = "the kernel refuses programs at functions (fentry)";
                WatchedWait::Failed(call.name, why.to_owned())
            }
            Err(error) => WatchedWait::Failed(call.name, error.to_string()),
        });
    }

    /// None of them runs any more.
    pub(super) fn detach(&mut self) {
        self.links.clear();
    }

    /// The calls in which a thread was seen to wait.
    pub(super) fn calls(&self) -> &[WatchedWait] {
        &self.calls
    }
}

/// The program of that call, over the maps of the programs that run already.
fn load(name: &str, code: &[u8], memory: &Object) -> Result<(Object, Link), libbpf_rs::Error> {
    let mut builder = ObjectBuilder::default();
    let mut object: OpenObject = builder.name("tardy_attach")?.open_memory(code)?;
    let wanted = format!("on_{name}");
    for mut program in object.progs_mut() {
        let is_wanted = program.name() == wanted.as_str();
        program.set_autoload(is_wanted);
    }
    for mut map in object.maps_mut() {
        let name = map.name().to_owned();
        if let Some(shared) = memory.maps().find(|shared| shared.name() == name) {
            map.reuse_fd(shared.as_fd())?;
        }
    }
    let object = object.load()?;
    let link = object.progs_mut().find(|program| program.name() == wanted.as_str());
    let link = link.map(|program| program.attach());
    let missing = || std::io::Error::other("the object has no such program").into();
    Ok((object, link.unwrap_or_else(|| Err(missing()))?))
}
