//! A call of [`crate::timeouts`] as programs with io_uring have it: a time-out that is submitted
//! and waited for by one `io_uring_enter`.
//!
//! # What lies between the clock reads
//!
//! As in [`crate::wakeup`], with the programmed expiry start + n periods, passed as an absolute
//! time of `CLOCK_MONOTONIC` (`IORING_TIMEOUT_ABS`). In the sample are also the task work that
//! completes the time-out, and reading the completion. The ring is of the default kind, without a
//! thread of the kernel that polls it, and has room for one entry.
//!
//! Numbers and layouts are those of `include/uapi/linux/io_uring.h`.

use core::{
    ffi::{c_int, c_void},
    mem::size_of,
    ptr::{self, NonNull},
    sync::atomic::{AtomicI32, AtomicU32, Ordering},
};

use crate::{clock, timeouts::TimedCall, wakeup::errno};

/// `struct io_uring_params`.
#[repr(C)]
#[derive(Default)]
struct Parameters {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    sq_thread: [u32; 2],
    features: u32,
    rest: [u32; 4],
    submissions: SubmissionOffsets,
    completions: CompletionOffsets,
}

/// `struct io_sqring_offsets`.
#[repr(C)]
#[derive(Default)]
struct SubmissionOffsets {
    head: u32,
    tail: u32,
    mask: u32,
    entries: u32,
    flags: u32,
    dropped: u32,
    array: u32,
    rest: [u32; 3],
}

/// `struct io_cqring_offsets`.
#[repr(C)]
#[derive(Default)]
struct CompletionOffsets {
    head: u32,
    tail: u32,
    mask: u32,
    entries: u32,
    overflow: u32,
    entry: u32,
    flags: u32,
    rest: [u32; 3],
}

/// `struct io_uring_sqe`, as a time-out has it.
#[repr(C)]
struct Submission {
    operation: u8,
    flags: u8,
    priority: u16,
    descriptor: c_int,
    completions: u64,
    time: u64,
    times: u32,
    time_out_flags: u32,
    rest: [u64; 4],
}

/// `struct io_uring_cqe`.
#[repr(C)]
struct Completion {
    user_data: u64,
    result: AtomicI32,
    flags: u32,
}

const _: () = assert!(size_of::<Parameters>() == 120);
const _: () = assert!(size_of::<Submission>() == 64);
const _: () = assert!(size_of::<Completion>() == 16);

/// `IORING_FEAT_SINGLE_MMAP`, from Linux 5.4 on: both rings are in one mapping.
const ONE_MAPPING: u32 = 1;
/// `IORING_OFF_SQ_RING`, `IORING_OFF_SQES`.
const RINGS: libc::off_t = 0;
const SUBMISSIONS: libc::off_t = 0x1000_0000;
/// `IORING_OP_TIMEOUT`, `IORING_TIMEOUT_ABS`, `IORING_ENTER_GETEVENTS`.
const TIME_OUT: u8 = 11;
const ABSOLUTE: u32 = 1;
const WAIT: c_int = 1;

/// Memory that the kernel shares; unmapped when it is dropped.
#[derive(Debug)]
struct Mapping {
    start: NonNull<c_void>,
    bytes: usize,
}

impl Mapping {
    fn new(descriptor: c_int, bytes: usize, offset: libc::off_t) -> Result<Self, c_int> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: a new mapping at a place that the kernel chooses.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, descriptor, offset) };
        match NonNull::new(start) {
            Some(start) if start.as_ptr() != libc::MAP_FAILED => Ok(Self { start, bytes }),
            _ => Err(errno()),
        }
    }

    /// The place `offset` bytes from the start.
    ///
    /// # Panics
    /// A `T` there would not lie within it, or not be aligned.
    fn at<T>(&self, offset: u32) -> NonNull<T> {
        let offset = offset as usize;
        assert!(offset + size_of::<T>() <= self.bytes && offset.is_multiple_of(align_of::<T>()));
        // SAFETY: it lies within the mapping.
        unsafe { self.start.byte_add(offset) }.cast()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's own, and nobody has a pointer to it any more.
        unsafe { libc::munmap(self.start.as_ptr(), self.bytes) };
    }
}

/// A descriptor that is closed when it is dropped.
#[derive(Debug)]
struct Descriptor(c_int);

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this one's own.
        unsafe { libc::close(self.0) };
    }
}

/// An io_uring with one entry, which is always the same time-out.
#[derive(Debug)]
pub struct TimeOutRing {
    submitted: NonNull<AtomicU32>,
    completed: NonNull<AtomicU32>,
    taken: NonNull<AtomicU32>,
    /// The first of them, of which there are `mask` + 1.
    completions: NonNull<Completion>,
    mask: u32,
    /// What the entry points to.
    time: Box<libc::timespec>,
    /// An entry was submitted whose completion was not taken.
    is_waiting: bool,
    /// Kept until the descriptor is closed.
    _memory: [Mapping; 2],
    ring: Descriptor,
}

impl TimeOutRing {
    /// A new one.
    ///
    /// # Errors
    /// The `errno` of the system: `ENOSYS` or `EPERM` where the kernel, `kernel.io_uring_disabled`
    /// or a container refuse io_uring.
    pub fn new() -> Result<Self, c_int> {
        let mut parameters = Parameters::default();
        // SAFETY: a live structure of the kernel's layout.
        let made = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, &raw mut parameters) };
        let ring = match c_int::try_from(made) {
            Ok(number) if number >= 0 => Descriptor(number),
            _ => return Err(errno()),
        };
        let Parameters { sq_entries, cq_entries, features, submissions, completions, .. } =
            parameters;
        if features & ONE_MAPPING == 0 {
            return Err(libc::ENOSYS);
        }
        let end_of =
            |offset: u32, entries: u32, size: usize| offset as usize + entries as usize * size;
        let bytes = end_of(submissions.array, sq_entries, size_of::<u32>()).max(end_of(
            completions.entry,
            cq_entries,
            size_of::<Completion>(),
        ));
        let rings = Mapping::new(ring.0, bytes, RINGS)?;
        let bytes = sq_entries as usize * size_of::<Submission>();
        let entries = Mapping::new(ring.0, bytes, SUBMISSIONS)?;
        let time = Box::new(clock::to_timespec(0));
        let entry = Submission {
            operation: TIME_OUT,
            flags: 0,
            priority: 0,
            descriptor: -1,
            completions: 0,
            time: ptr::from_ref(&*time).addr() as u64,
            times: 1,
            time_out_flags: ABSOLUTE,
            rest: [0; 4],
        };
        // SAFETY: it lies within the mapping, and the kernel reads it only while it is entered.
        unsafe { entries.at::<Submission>(0).write(entry) };
        // SAFETY: as before; it says that the first place has the first entry.
        unsafe { rings.at::<u32>(submissions.array).write(0) };
        // SAFETY: the kernel has written the mask, which stays.
        let mask = unsafe { rings.at::<u32>(completions.mask).read() };
        Ok(Self {
            submitted: rings.at(submissions.tail),
            completed: rings.at(completions.tail),
            taken: rings.at(completions.head),
            completions: rings.at(completions.entry),
            mask,
            time,
            is_waiting: false,
            _memory: [rings, entries],
            ring,
        })
    }

    /// The result of the time-out, once there is one.
    #[inline(always)]
    fn take(&mut self) -> Option<i32> {
        // SAFETY: it lies within the mapping, which lives as long as this.
        let taken = unsafe { self.taken.as_ref() };
        // SAFETY: as before.
        let completed = unsafe { self.completed.as_ref() };
        let at = taken.load(Ordering::Relaxed);
        if at == completed.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: the mask keeps it within the entries, which lie within the mapping.
        let completion = unsafe { self.completions.add((at & self.mask) as usize) };
        // SAFETY: as before, and the mapping lives as long as this.
        let completion = unsafe { completion.as_ref() };
        let result = completion.result.load(Ordering::Relaxed);
        taken.store(at.wrapping_add(1), Ordering::Release);
        self.is_waiting = false;
        Some(result)
    }
}

impl TimedCall for TimeOutRing {
    #[inline(always)]
    fn wait_until(&mut self, t_ns: i64) -> Result<(), c_int> {
        let is_new = !self.is_waiting;
        if is_new {
            // SAFETY: the kernel reads it only while it is entered. Volatile, as it does so behind
            // the compiler's back.
            unsafe { ptr::from_mut(&mut *self.time).write_volatile(clock::to_timespec(t_ns)) };
            // SAFETY: it lies within the mapping, which lives as long as this.
            unsafe { self.submitted.as_ref() }.fetch_add(1, Ordering::Release);
        }
        let no_mask = ptr::null::<libc::sigset_t>();
        let (new, one) = (c_int::from(is_new), 1);
        // SAFETY: a ring of this one's own, and no mask.
        let entered = unsafe {
            libc::syscall(libc::SYS_io_uring_enter, self.ring.0, new, one, WAIT, no_mask, 8)
        };
        if entered < 0 {
            return Err(errno());
        }
        self.is_waiting = true;
        match self.take() {
            Some(result) if result == -libc::ETIME => Ok(()),
            Some(result) => Err(-result),
            // It was submitted, and a signal ended the wait.
            None => Err(libc::EINTR),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{timeouts::TimeOut, wakeup::Wake as _};

    #[test]
    fn a_time_out_is_over_when_its_time_is_and_the_ring_goes_on() {
        let ring = match TimeOutRing::new() {
            Ok(ring) => ring,
            Err(errno) => return println!("skipped: io_uring is refused here (errno {errno})"),
        };
        let first_ns = clock::now_ns() + 1_000_000;
        let mut wake = TimeOut::new(ring, first_ns, 1_000_000);
        for _ in 0..300 {
            let t_ns = wake.wait().unwrap();
            let now_ns = clock::now_ns();
            assert!(now_ns >= t_ns, "woken {} ns early", t_ns - now_ns);
            wake.advance(now_ns - t_ns);
        }
        let Ok(ring) = TimeOutRing::new() else { return };
        let mut past = TimeOut::new(ring, 1, 1_000_000);
        assert_eq!(past.wait(), Ok(1), "what is over already does not wait");
    }
}
