//! System calls, signals, faults and waits on many descriptors.

use std::{
    ffi::CStr,
    hint::black_box,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd},
    ptr,
    sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed},
};

use super::{Batch, Repeated, checked, errno, processes::Partner, transfers::Mapping};
use crate::clock::now_ns;

/// One that does the least: getppid.
#[derive(Debug)]
pub struct NullCall;

impl Repeated for NullCall {
    fn iterate(&mut self, iterations: u64) -> Result<Batch, i32> {
        for _ in 0..iterations {
            // SAFETY: the call takes nothing and cannot fail.
            black_box(unsafe { libc::getppid() });
        }
        Ok(Batch::default())
    }
}

/// Reads or writes of one byte.
#[derive(Debug)]
pub struct OneByte {
    file: OwnedFd,
    writes: bool,
}

impl OneByte {
    /// Reads of `/dev/zero`.
    ///
    /// # Errors
    /// The number of the error.
    pub fn read() -> Result<Self, i32> {
        Ok(Self { file: open(c"/dev/zero", libc::O_RDONLY)?, writes: false })
    }

    /// Writes to `/dev/null`.
    ///
    /// # Errors
    /// The number of the error.
    pub fn write() -> Result<Self, i32> {
        Ok(Self { file: open(c"/dev/null", libc::O_WRONLY)?, writes: true })
    }
}

impl Repeated for OneByte {
    fn iterate(&mut self, iterations: u64) -> Result<Batch, i32> {
        let (file, mut byte) = (self.file.as_raw_fd(), [0_u8]);
        let mut bytes = 0;
        // Not by the library's functions: in a process of several threads those take note that a
        // thread may be cancelled in them, which a program of one thread does not pay for.
        if self.writes {
            for _ in 0..iterations {
                // SAFETY: there is one byte to be read.
                let done = unsafe { libc::syscall(libc::SYS_write, file, byte.as_ptr(), 1_usize) };
                bytes += checked(done as isize)? as u64;
            }
        } else {
            for _ in 0..iterations {
                let byte = byte.as_mut_ptr();
                // SAFETY: there is one byte to be written.
                let done = unsafe { libc::syscall(libc::SYS_read, file, byte, 1_usize) };
                bytes += checked(done as isize)? as u64;
            }
        }
        Ok(Batch::of_bytes(bytes))
    }
}

fn open(path: &CStr, flags: i32) -> Result<OwnedFd, i32> {
    // SAFETY: the path is a C string.
    let opened = unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC) };
    if opened < 0 {
        return Err(errno());
    }
    // SAFETY: it has just been opened, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(opened) })
}

/// stat of a path.
#[derive(Debug)]
pub struct StatCall(pub &'static CStr);

impl Repeated for StatCall {
    fn iterate(&mut self, iterations: u64) -> Result<Batch, i32> {
        // SAFETY: all zeros are a valid record.
        let mut about: libc::stat = unsafe { std::mem::zeroed() };
        for _ in 0..iterations {
            // SAFETY: the path is a C string and the record is writable.
            checked(unsafe { libc::stat(self.0.as_ptr(), &raw mut about) } as isize)?;
        }
        black_box(&about);
        Ok(Batch::default())
    }
}

/// open and close of a path.
#[derive(Debug)]
pub struct OpenClose(pub &'static CStr);

impl Repeated for OpenClose {
    fn iterate(&mut self, iterations: u64) -> Result<Batch, i32> {
        for _ in 0..iterations {
            // SAFETY: the path is a C string.
            let opened = unsafe { libc::open(self.0.as_ptr(), libc::O_RDONLY) };
            checked(opened as isize)?;
            // SAFETY: it has just been opened, and nobody else has its number.
            unsafe { libc::close(opened) };
        }
        Ok(Batch::default())
    }
}

extern "C" fn caught(_: libc::c_int) {
    CAUGHT.fetch_add(1, Relaxed);
}

/// Signals that came.
static CAUGHT: AtomicU64 = AtomicU64::new(0);

fn install(signal: i32, handler: extern "C" fn(libc::c_int)) -> Result<(), i32> {
    // SAFETY: all zeros are an action without flags and with an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as libc::sighandler_t;
    // SAFETY: the action is whole, and its handler only counts, which a handler may do.
    checked(unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) } as isize)?;
    Ok(())
}

/// Installs a handler, again and again.
#[derive(Debug)]
pub struct SignalInstall;

impl Repeated for SignalInstall {
    fn iterate(&mut self, iterations: u64) -> Result<Batch, i32> {
        for _ in 0..iterations {
            install(libc::SIGUSR2, caught)?;
        }
        Ok(Batch::default())
    }
}

/// Sends a signal to the calling thread, which handles it.
#[derive(Debug)]
pub struct SignalCatch;

impl Repeated for SignalCatch {
    fn iterate(&mut self, iterations: u64) -> Result<Batch, i32> {
        install(libc::SIGUSR2, caught)?;
        // SAFETY: the call takes nothing and cannot fail.
        let process = unsafe { libc::getpid() };
        // SAFETY: as above.
        let thread = unsafe { libc::gettid() };
        let before = CAUGHT.load(Relaxed);
        let begun_ns = now_ns();
        for _ in 0..iterations {
            // SAFETY: the call takes numbers.
            unsafe { libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGUSR2) };
        }
        let own_ns = Some(now_ns() - begun_ns);
        let came = CAUGHT.load(Relaxed) - before;
        if came == iterations { Ok(Batch { bytes: 0, own_ns }) } else { Err(libc::EINTR) }
    }
}

/// What the handler of faults works with, in its own process: how many are left, when they began,
/// and where to say how long they took.
static FAULTS_LEFT: AtomicU64 = AtomicU64::new(0);
static FAULTS_BEGAN_NS: AtomicI64 = AtomicI64::new(0);
static FAULTS_TO: AtomicI64 = AtomicI64::new(-1);

/// Returns to the access that faulted, which faults again, until all have come.
extern "C" fn faulted(_: libc::c_int) {
    if FAULTS_LEFT.fetch_sub(1, Relaxed) > 1 {
        return;
    }
    let took = (now_ns() - FAULTS_BEGAN_NS.load(Relaxed)).to_ne_bytes();
    let to = RawFd::try_from(FAULTS_TO.load(Relaxed)).unwrap_or(-1);
    // SAFETY: there are as many bytes as is said.
    unsafe { libc::write(to, took.as_ptr().cast(), took.len()) };
    // SAFETY: the call takes a number.
    unsafe { libc::_exit(0) }
}

/// Writes to a page that may only be read: fault, signal, handler and return.
#[derive(Debug)]
pub struct ProtectionFault {
    page: Mapping,
    pipe: (OwnedFd, OwnedFd),
    cpu: u32,
}

impl ProtectionFault {
    /// By processes on CPU `cpu`, as the access never ends; they say by `pipe` how long they took.
    ///
    /// # Errors
    /// The number of the error.
    pub fn new(file: &OwnedFd, pipe: (OwnedFd, OwnedFd), cpu: u32) -> Result<Self, i32> {
        Ok(Self { page: Mapping::new(file, 4096)?, pipe, cpu })
    }
}

impl Repeated for ProtectionFault {
    fn iterate(&mut self, iterations: u64) -> Result<Batch, i32> {
        let place = self.page.bytes().as_ptr().cast_mut();
        let to = self.pipe.1.as_raw_fd();
        let _process = Partner::start(self.cpu, || {
            FAULTS_LEFT.store(iterations, Relaxed);
            FAULTS_TO.store(i64::from(to), Relaxed);
            if install(libc::SIGSEGV, faulted).is_ok() {
                FAULTS_BEGAN_NS.store(now_ns(), Relaxed);
                // SAFETY: the page is mapped to be read: the kernel refuses the write by the signal
                // above, whose handler ends this process; nothing is ever written.
                unsafe { place.write_volatile(1) };
            }
        })?;
        let mut took = [0_u8; 8];
        let from = self.pipe.0.as_raw_fd();
        // SAFETY: there are as many bytes as is said.
        let read = checked(unsafe { libc::read(from, took.as_mut_ptr().cast(), took.len()) })?;
        let own_ns = Some(i64::from_ne_bytes(took));
        if read == took.len() { Ok(Batch { bytes: 0, own_ns }) } else { Err(libc::EPIPE) }
    }
}

/// First accesses to pages of a file that are in memory; the mapping anew does not count.
#[derive(Debug)]
pub struct PageFault {
    file: OwnedFd,
    pages: usize,
}

const PAGE_BYTES: usize = 4096;

/// Pages lie so far apart that the kernel maps none of them with the one before: it maps 64 KiB
/// around a fault.
const PAGES_APART: usize = 16;

impl PageFault {
    /// For a file of `length` bytes.
    #[must_use]
    pub const fn new(file: OwnedFd, length: usize) -> Self {
        Self { file, pages: length / PAGE_BYTES / PAGES_APART }
    }
}

impl Repeated for PageFault {
    /// An iteration is one fault.
    fn iterate(&mut self, iterations: u64) -> Result<Batch, i32> {
        let mut own_ns = 0;
        let mut left = usize::try_from(iterations).unwrap_or(usize::MAX);
        while left > 0 {
            let mapping = Mapping::new(&self.file, self.pages * PAGES_APART * PAGE_BYTES)?;
            let faults = left.min(self.pages.max(1));
            let begun_ns = now_ns();
            let pages = mapping.bytes().iter().step_by(PAGE_BYTES * PAGES_APART).take(faults);
            black_box(pages.map(|byte| u64::from(*byte)).sum::<u64>());
            own_ns += now_ns() - begun_ns;
            left -= faults;
        }
        Ok(Batch { bytes: 0, own_ns: Some(own_ns) })
    }
}

/// Maps a part of a file, touches some of its pages, and unmaps it.
#[derive(Debug)]
pub struct MapUnmap {
    file: OwnedFd,
    length: usize,
}

/// Every tenth of 16 KiB is touched.
const TOUCHED_BYTES: usize = 160 << 10;

impl MapUnmap {
    /// For `length` bytes of the file.
    #[must_use]
    pub const fn new(file: OwnedFd, length: usize) -> Self {
        Self { file, length }
    }
}

impl Repeated for MapUnmap {
    fn iterate(&mut self, iterations: u64) -> Result<Batch, i32> {
        for _ in 0..iterations {
            let mapping = Mapping::new(&self.file, self.length)?;
            let touched = mapping.bytes().iter().step_by(TOUCHED_BYTES);
            black_box(touched.map(|byte| u64::from(*byte)).sum::<u64>());
        }
        Ok(Batch::default())
    }
}

/// select over a number of descriptors, none of which is ready, without waiting.
#[derive(Debug)]
pub struct Select {
    pipes: Vec<(OwnedFd, OwnedFd)>,
}

impl Select {
    /// Over the read ends of these pipes.
    ///
    /// # Errors
    /// `EBADF` where a number is too large for select.
    pub fn new(pipes: Vec<(OwnedFd, OwnedFd)>) -> Result<Self, i32> {
        let most = i32::try_from(libc::FD_SETSIZE).unwrap_or(1024);
        let fits = pipes.iter().all(|(from, _)| from.as_raw_fd() < most);
        if fits { Ok(Self { pipes }) } else { Err(libc::EBADF) }
    }
}

impl Repeated for Select {
    fn iterate(&mut self, iterations: u64) -> Result<Batch, i32> {
        // SAFETY: all zeros are an empty set.
        let mut wanted: libc::fd_set = unsafe { std::mem::zeroed() };
        let mut most = -1;
        for (from, _) in &self.pipes {
            // SAFETY: the number is below the size of a set.
            unsafe { libc::FD_SET(from.as_raw_fd(), &raw mut wanted) };
            most = most.max(from.as_raw_fd());
        }
        for _ in 0..iterations {
            let mut set = wanted;
            let mut timeout = libc::timeval { tv_sec: 0, tv_usec: 0 };
            let (set, timeout, none) = (&raw mut set, &raw mut timeout, ptr::null_mut());
            // SAFETY: the set and the time are writable, and the other sets are absent.
            checked(unsafe { libc::select(most + 1, set, none, none, timeout) } as isize)?;
        }
        Ok(Batch::default())
    }
}

/// epoll_wait over a number of descriptors, none of which is ready, without waiting.
#[derive(Debug)]
pub struct EpollWait {
    waits: OwnedFd,
    _pipes: Vec<(OwnedFd, OwnedFd)>,
}

impl EpollWait {
    /// Over the read ends of these pipes.
    ///
    /// # Errors
    /// The number of the error.
    pub fn new(pipes: Vec<(OwnedFd, OwnedFd)>) -> Result<Self, i32> {
        // SAFETY: the call takes a number.
        let made = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        checked(made as isize)?;
        // SAFETY: it has just been made, and nobody else owns it.
        let waits = unsafe { OwnedFd::from_raw_fd(made) };
        for (from, _) in &pipes {
            let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
            let (add, from) = (libc::EPOLL_CTL_ADD, from.as_raw_fd());
            // SAFETY: the event is readable.
            checked(unsafe { libc::epoll_ctl(made, add, from, &raw mut event) } as isize)?;
        }
        Ok(Self { waits, _pipes: pipes })
    }
}

impl Repeated for EpollWait {
    fn iterate(&mut self, iterations: u64) -> Result<Batch, i32> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 8];
        let (waits, place) = (self.waits.as_raw_fd(), events.as_mut_ptr());
        for _ in 0..iterations {
            // SAFETY: the place has room for 8 events.
            checked(unsafe { libc::epoll_wait(waits, place, 8, 0) } as isize)?;
        }
        Ok(Batch::default())
    }
}

#[cfg(test)]
mod tests {
    use std::io::pipe;

    use super::*;

    fn pipes(count: usize) -> Vec<(OwnedFd, OwnedFd)> {
        let made = |_| pipe().map(|(from, to)| (from.into(), to.into())).unwrap();
        (0..count).map(made).collect()
    }

    /// A file without a name, `bytes` long, all in memory.
    fn file(bytes: usize) -> OwnedFd {
        // SAFETY: the name is a C string; the call takes no other pointer.
        let made = unsafe { libc::memfd_create(c"tardy-test".as_ptr(), libc::MFD_CLOEXEC) };
        // SAFETY: it has just been opened, and nobody else owns it.
        let mut file: std::fs::File = unsafe { std::os::fd::FromRawFd::from_raw_fd(made) };
        std::io::Write::write_all(&mut file, &vec![1; bytes]).unwrap();
        file.into()
    }

    #[test]
    fn every_call_can_be_repeated_and_bytes_are_counted() {
        NullCall.iterate(3).unwrap();
        assert_eq!(OneByte::read().unwrap().iterate(5).unwrap().bytes, 5);
        assert_eq!(OneByte::write().unwrap().iterate(6).unwrap().bytes, 6);
        StatCall(c"/").iterate(2).unwrap();
        OpenClose(c"/").iterate(2).unwrap();
        assert_eq!(StatCall(c"/no/such").iterate(1), Err(libc::ENOENT));
        assert_eq!(OpenClose(c"/no/such").iterate(1), Err(libc::ENOENT));
        Select::new(pipes(10)).unwrap().iterate(2).unwrap();
        EpollWait::new(pipes(100)).unwrap().iterate(2).unwrap();
    }

    #[test]
    fn every_signal_is_caught_and_every_fault_comes() {
        SignalInstall.iterate(2).unwrap();
        assert!(SignalCatch.iterate(50).unwrap().own_ns.is_some());
        // SAFETY: the call takes no pointer.
        let cpu = u32::try_from(unsafe { libc::sched_getcpu() }).unwrap();
        let (file, pipe) = (file(4096), pipes(1).remove(0));
        let mut faults = ProtectionFault::new(&file, pipe, cpu).unwrap();
        let ns = faults.iterate(100).unwrap().own_ns.unwrap();
        assert!(ns > 0);
    }

    #[test]
    fn a_turn_is_a_fault_of_its_own() {
        let faults = || {
            // SAFETY: all zeros are a valid record.
            let mut used: libc::rusage = unsafe { std::mem::zeroed() };
            // SAFETY: the record is writable.
            unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut used) };
            used.ru_minflt
        };
        let mut work = PageFault::new(file(4 << 20), 4 << 20);
        let before = faults();
        work.iterate(200).unwrap();
        // 64 of them are in a mapping of 4 MiB; a kernel may map more than 64 KiB around a fault.
        assert!(faults() > before, "{before}");
        MapUnmap::new(file(1 << 20), 1 << 20).iterate(2).unwrap();
    }
}
