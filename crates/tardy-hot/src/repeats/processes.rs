//! Processes: made, made to run another program, and a ring of them that passes a token on.

use std::{
    ffi::CStr,
    hint::black_box,
    os::fd::{AsRawFd as _, OwnedFd, RawFd},
    ptr,
};

use super::{
    Batch, Repeated, checked, errno,
    memory::{Buffer, sum},
};

/// A process that this one has made; killed when it is dropped, and by the kernel when the thread
/// ends that made it.
#[derive(Debug)]
pub struct Partner(libc::pid_t);

impl Partner {
    /// Has a process do `body` on CPU `cpu`, with the policy and priority of the calling thread,
    /// and end. The other threads of this one are not in it: `body` must neither allocate nor take
    /// a lock.
    ///
    /// # Errors
    /// The number of the error of fork.
    pub fn start(cpu: u32, body: impl FnOnce()) -> Result<Self, i32> {
        let maker = pid();
        let scheduling = Scheduling::own()?;
        // SAFETY: the new process runs only what neither allocates nor locks, and then ends.
        match unsafe { libc::fork() } {
            -1 => Err(errno()),
            0 => {
                if leash(maker) && pin(cpu) && scheduling.take() {
                    body();
                }
                exit()
            }
            process => Ok(Self(process)),
        }
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        // SAFETY: the call takes no pointer, and the process is still this one's to wait for.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
        // There is nobody else to wait for it.
        let _ = wait_for(self.0);
    }
}

fn pid() -> libc::pid_t {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::getpid() }
}

/// Has the kernel kill the calling process with the thread of `maker` that made it.
fn leash(maker: libc::pid_t) -> bool {
    // SAFETY: this option takes a number.
    let leashed = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    // SAFETY: the call takes nothing and cannot fail.
    leashed == 0 && unsafe { libc::getppid() } == maker
}

/// Policy and priority, which a thread with `SCHED_RESET_ON_FORK` does not hand down by itself.
struct Scheduling {
    policy: i32,
    parameters: libc::sched_param,
}

impl Scheduling {
    /// Those of the calling thread.
    fn own() -> Result<Self, i32> {
        // SAFETY: the call takes a number.
        let policy = checked(unsafe { libc::sched_getscheduler(0) } as isize)?;
        let policy = i32::try_from(policy).unwrap_or(0) & !libc::SCHED_RESET_ON_FORK;
        let mut parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: the parameters are writable.
        checked(unsafe { libc::sched_getparam(0, &raw mut parameters) } as isize)?;
        Ok(Self { policy, parameters })
    }

    /// Gives them to the calling thread where they are real-time ones; all else is handed down.
    fn take(&self) -> bool {
        if !matches!(self.policy, libc::SCHED_FIFO | libc::SCHED_RR) {
            return true;
        }
        // SAFETY: the parameters are readable.
        unsafe { libc::sched_setscheduler(0, self.policy, &raw const self.parameters) == 0 }
    }
}

/// Has processes that the calling thread makes from now on begin with its policy and priority, as
/// those of a program that was started under one. Whether they will: taking the flag
/// `SCHED_RESET_ON_FORK` away needs `CAP_SYS_NICE`.
#[must_use]
pub fn hand_policy_down() -> bool {
    Scheduling::own().is_ok_and(|own| own.take())
}

fn pin(cpu: u32) -> bool {
    // SAFETY: all zeros are an empty set of CPUs.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    let cpu = usize::try_from(cpu).unwrap_or(usize::MAX);
    if cpu >= libc::CPU_SETSIZE as usize {
        return true;
    }
    // SAFETY: the set has a bit for this CPU.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the set is as long as is said.
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) == 0 }
}

fn exit() -> ! {
    // SAFETY: the call takes a number; nothing of the maker's is run at the end.
    unsafe { libc::_exit(0) }
}

/// Waits until it has ended; its status.
fn wait_for(process: libc::pid_t) -> Result<i32, i32> {
    let mut status = 0;
    loop {
        // SAFETY: the status is writable.
        match unsafe { libc::waitpid(process, &raw mut status, 0) } {
            -1 if errno() == libc::EINTR => {}
            -1 => return Err(errno()),
            _ => return Ok(status),
        }
    }
}

/// Makes a process that does something, and waits for its end.
fn made(body: impl FnOnce()) -> Result<i32, i32> {
    // SAFETY: the new process runs only what neither allocates nor locks, and then ends.
    match unsafe { libc::fork() } {
        -1 => Err(errno()),
        0 => {
            body();
            exit()
        }
        process => wait_for(process),
    }
}

/// fork, exit and wait.
#[derive(Debug)]
pub struct Fork;

impl Repeated for Fork {
    fn iterate(&mut self, iterations: u64) -> Result<Batch, i32> {
        for _ in 0..iterations {
            made(|| ())?;
        }
        Ok(Batch::default())
    }
}

/// fork, execve of a program, its end and wait.
#[derive(Debug)]
pub struct Exec {
    program: &'static CStr,
    arguments: [*const libc::c_char; 4],
    environment: [*const libc::c_char; 1],
}

impl Exec {
    /// With at most three arguments, the first of them its name, and no environment.
    ///
    /// # Errors
    /// The number of the error if it is missing or cannot be run.
    pub fn new(program: &'static CStr, arguments: &[&'static CStr]) -> Result<Self, i32> {
        // SAFETY: the name is a C string.
        if unsafe { libc::access(program.as_ptr(), libc::X_OK) } != 0 {
            return Err(errno());
        }
        let mut list = [ptr::null(); 4];
        for (place, argument) in list.iter_mut().take(3).zip(arguments) {
            *place = argument.as_ptr();
        }
        Ok(Self { program, arguments: list, environment: [ptr::null()] })
    }
}

impl Repeated for Exec {
    fn iterate(&mut self, iterations: u64) -> Result<Batch, i32> {
        for _ in 0..iterations {
            let status = made(|| {
                let (arguments, environment) = (self.arguments.as_ptr(), self.environment.as_ptr());
                // SAFETY: both lists end with a null pointer, and all else are C strings.
                unsafe { libc::execve(self.program.as_ptr(), arguments, environment) };
                // SAFETY: the call takes a number.
                unsafe { libc::_exit(127) }
            })?;
            if status != 0 {
                return Err(libc::ENOEXEC);
            }
        }
        Ok(Batch::default())
    }
}

/// The read and the write end of a pipe.
type Pipe = (OwnedFd, OwnedFd);

const TOKEN_BYTES: usize = 4;

fn pass(from: RawFd, to: RawFd, data: &[u8]) -> Result<(), i32> {
    let mut token = [0_u8; TOKEN_BYTES];
    // SAFETY: the token is writable for as many bytes as it has.
    let read = checked(unsafe { libc::read(from, token.as_mut_ptr().cast(), TOKEN_BYTES) })?;
    if read != TOKEN_BYTES {
        return Err(libc::EPIPE);
    }
    black_box(sum(black_box(data)));
    give(to, token)
}

fn give(to: RawFd, token: [u8; TOKEN_BYTES]) -> Result<(), i32> {
    // SAFETY: the token has as many bytes.
    checked(unsafe { libc::write(to, token.as_ptr().cast(), TOKEN_BYTES) }).map(drop)
}

/// Processes on one CPU that pass a token round by pipes; each sums its data when it has it.
#[derive(Debug)]
pub struct Ring {
    pipes: Vec<Pipe>,
    data: Buffer,
    _partners: Vec<Partner>,
}

impl Ring {
    /// One process for each pipe, with `bytes` bytes of data each; this process is the first.
    ///
    /// # Errors
    /// The number of the error where there cannot be so many.
    pub fn new(pipes: Vec<Pipe>, bytes: usize, cpu: u32) -> Result<Self, i32> {
        let mut data = Buffer::new(bytes.max(1));
        let mut partners = Vec::with_capacity(pipes.len());
        for pair in pipes.windows(2) {
            let [(from, _), (_, to)] = pair else { continue };
            let (from, to) = (from.as_raw_fd(), to.as_raw_fd());
            partners.push(Partner::start(cpu, || {
                // Private pages: until they are written they are shared by all.
                data.bytes_mut().fill(2);
                let data = data.bytes().get(..bytes).unwrap_or_default();
                while pass(from, to, data).is_ok() {}
            })?);
        }
        Ok(Self { pipes, data, _partners: partners })
    }
}

impl Repeated for Ring {
    /// Of one round of the token, which comes by each of the processes.
    fn iterate(&mut self, iterations: u64) -> Result<Batch, i32> {
        let ends = self.pipes.first().zip(self.pipes.last());
        let ((_, first), (last, _)) = ends.ok_or(libc::EINVAL)?;
        let (first, last) = (first.as_raw_fd(), last.as_raw_fd());
        let data = self.data.bytes();
        let data = if data.len() > 1 { data } else { &[] };
        give(first, [1; TOKEN_BYTES])?;
        for _ in 1..iterations {
            pass(last, first, data)?;
        }
        let mut token = [0_u8; TOKEN_BYTES];
        // SAFETY: the token is writable for as many bytes as it has.
        let read = checked(unsafe { libc::read(last, token.as_mut_ptr().cast(), TOKEN_BYTES) })?;
        black_box(sum(black_box(data)));
        if read == TOKEN_BYTES { Ok(Batch::default()) } else { Err(libc::EPIPE) }
    }
}

/// What a pass of the token costs without another process: the same, all by this one.
#[derive(Debug)]
pub struct SingleProcessBaseline {
    pipes: Vec<Pipe>,
    data: Buffer,
    at: usize,
}

impl SingleProcessBaseline {
    /// Uses these pipes in turn, with `bytes` bytes of data.
    #[must_use]
    pub fn new(pipes: Vec<Pipe>, bytes: usize) -> Self {
        Self { pipes, data: Buffer::new(bytes), at: 0 }
    }
}

impl Repeated for SingleProcessBaseline {
    fn iterate(&mut self, iterations: u64) -> Result<Batch, i32> {
        let data = self.data.bytes();
        let data = if data.len() > 1 { data } else { &[] };
        for _ in 0..iterations {
            let (from, to) = self.pipes.get(self.at).ok_or(libc::EINVAL)?;
            self.at = (self.at + 1) % self.pipes.len();
            give(to.as_raw_fd(), [1; TOKEN_BYTES])?;
            let mut token = [0_u8; TOKEN_BYTES];
            let from = from.as_raw_fd();
            // SAFETY: the token is writable for as many bytes as it has.
            checked(unsafe { libc::read(from, token.as_mut_ptr().cast(), TOKEN_BYTES) })?;
            black_box(sum(black_box(data)));
        }
        Ok(Batch::default())
    }
}

#[cfg(test)]
mod tests {
    use std::io::pipe;

    use super::*;

    fn pipes(count: usize) -> Vec<Pipe> {
        let made = |_| pipe().map(|(from, to)| (from.into(), to.into())).unwrap();
        (0..count).map(made).collect()
    }

    fn cpu() -> u32 {
        // SAFETY: the call takes no pointer.
        u32::try_from(unsafe { libc::sched_getcpu() }).unwrap()
    }

    #[test]
    fn a_token_goes_round_and_every_process_ends_with_the_ring() {
        for (processes, bytes) in [(2, 0), (8, 4_096), (1, 0)] {
            let mut ring = Ring::new(pipes(processes), bytes, cpu()).unwrap();
            let partners: Vec<_> = ring._partners.iter().map(|partner| partner.0).collect();
            assert_eq!(partners.len(), processes - 1);
            ring.iterate(1).unwrap();
            ring.iterate(20).unwrap();
            drop(ring);
            for partner in partners {
                assert_eq!(wait_for(partner), Err(libc::ECHILD), "it has been waited for");
            }
        }
        SingleProcessBaseline::new(pipes(2), 16_384).iterate(5).unwrap();
    }

    #[test]
    fn a_policy_that_is_handed_down_has_no_flag_against_it() {
        let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
        let parameters = libc::sched_param { sched_priority: 1 };
        let own = std::thread::spawn(move || {
            // SAFETY: the parameters are readable.
            let has_policy = unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
            // SAFETY: the call takes a number.
            (has_policy == 0 && hand_policy_down()).then(|| unsafe { libc::sched_getscheduler(0) })
        });
        match own.join().unwrap() {
            None => println!("skipped: no right to a real-time policy"),
            Some(policy) => assert_eq!(policy, libc::SCHED_FIFO),
        }
    }

    #[test]
    fn a_partner_runs_under_the_policy_of_the_thread_that_made_it() {
        let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
        let parameters = libc::sched_param { sched_priority: 1 };
        let made = std::thread::spawn(move || {
            // SAFETY: the parameters are readable.
            if unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } != 0 {
                println!("skipped: no right to a real-time policy");
                return None;
            }
            let (from, to) = pipe().unwrap();
            let (from, to) = (OwnedFd::from(from), OwnedFd::from(to));
            let _partner = Partner::start(cpu(), || {
                // SAFETY: the call takes a number.
                let policy = unsafe { libc::sched_getscheduler(0) };
                let _ = give(to.as_raw_fd(), policy.to_ne_bytes());
            });
            let mut said = [0_u8; TOKEN_BYTES];
            // SAFETY: there is room for as many bytes as is said.
            unsafe { libc::read(from.as_raw_fd(), said.as_mut_ptr().cast(), TOKEN_BYTES) };
            Some(i32::from_ne_bytes(said))
        });
        let policy = made.join().unwrap();
        assert!(policy.is_none_or(|policy| policy == libc::SCHED_FIFO), "{policy:?}");
    }

    #[test]
    fn a_process_is_made_and_one_that_cannot_run_its_program_is_an_error() {
        Fork.iterate(3).unwrap();
        Exec::new(c"/bin/sh", &[c"sh", c"-c", c"exit 0"]).unwrap().iterate(2).unwrap();
        let failing = Exec::new(c"/bin/sh", &[c"sh", c"-c", c"exit 1"]).unwrap().iterate(2);
        assert_eq!(failing, Err(libc::ENOEXEC));
        assert_eq!(Exec::new(c"/no/such", &[c"such"]).unwrap_err(), libc::ENOENT);
    }
}
