//! Bytes from another process, from a file and from a mapping of it. What is counted is what the
//! kernel says that it handed over.

use std::{
    hint::black_box,
    os::fd::{AsRawFd as _, OwnedFd},
    ptr,
};

use super::{
    Batch, Repeated, checked, errno,
    memory::{Buffer, sum},
    processes::Partner,
};

/// Reads what a partner writes.
#[derive(Debug)]
pub struct ReceivedBytes {
    from: OwnedFd,
    buffer: Buffer,
    /// Ended when this is dropped.
    _sender: Partner,
}

impl ReceivedBytes {
    /// Of messages of `size` bytes, which a process on CPU `far_cpu` writes into `to` without a
    /// pause, `most` bytes altogether, and which are read from `from`.
    ///
    /// # Errors
    /// The number of the error where no process can be made.
    pub fn new(
        (from, to): (OwnedFd, OwnedFd),
        size: usize,
        most: u64,
        far_cpu: u32,
    ) -> Result<Self, i32> {
        let message = Buffer::new(size);
        let sender = Partner::start(far_cpu, || send(&to, message.bytes(), most))?;
        drop(to);
        Ok(Self { from, buffer: Buffer::new(size), _sender: sender })
    }
}

impl Repeated for ReceivedBytes {
    fn iterate(&mut self, iterations: u64) -> Result<Batch, i32> {
        let buffer = self.buffer.bytes_mut();
        let wanted = iterations.saturating_mul(buffer.len() as u64);
        let mut bytes = 0;
        while bytes < wanted {
            match read(&self.from, buffer)? {
                0 => return Err(libc::EPIPE),
                read => bytes += read as u64,
            }
        }
        black_box(&buffer);
        Ok(Batch::of_bytes(bytes))
    }
}

fn read(from: &OwnedFd, buffer: &mut [u8]) -> Result<usize, i32> {
    // SAFETY: the buffer is writable for as many bytes as it has.
    checked(unsafe { libc::read(from.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) })
}

/// Writes `message` again and again, `most` bytes altogether, until nobody reads.
fn send(to: &OwnedFd, message: &[u8], most: u64) {
    let mut left = most;
    while left > 0 {
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(message.len());
        // SAFETY: the message has at least `length` bytes.
        match checked(unsafe { libc::write(to.as_raw_fd(), message.as_ptr().cast(), length) }) {
            Ok(written) => left -= written as u64,
            Err(libc::EINTR) => {}
            Err(_) => return,
        }
    }
}

/// Reads a file that is in memory, in parts, and sums all of its words.
#[derive(Debug)]
pub struct FileRead {
    file: OwnedFd,
    length: u64,
    at: u64,
    buffer: Buffer,
}

impl FileRead {
    /// Of a file of `length` bytes, in parts of `size`, which is not more.
    #[must_use]
    pub fn new(file: OwnedFd, length: u64, size: usize) -> Self {
        Self { file, length, at: 0, buffer: Buffer::new(size) }
    }
}

impl Repeated for FileRead {
    fn iterate(&mut self, iterations: u64) -> Result<Batch, i32> {
        let buffer = self.buffer.bytes_mut();
        let (file, size) = (self.file.as_raw_fd(), buffer.len());
        let mut bytes = 0;
        for _ in 0..iterations {
            if self.at + size as u64 > self.length {
                self.at = 0;
            }
            let at = libc::off_t::try_from(self.at).unwrap_or(0);
            // SAFETY: the buffer is writable for as many bytes as it has.
            let read = checked(unsafe { libc::pread(file, buffer.as_mut_ptr().cast(), size, at) })?;
            if read == 0 {
                return Err(libc::ENODATA);
            }
            black_box(sum(buffer.get(..read).unwrap_or_default()));
            self.at += read as u64;
            bytes += read as u64;
        }
        Ok(Batch::of_bytes(bytes))
    }
}

/// A file in the address space; unmapped when it is dropped.
#[derive(Debug)]
pub struct Mapping {
    start: *mut u8,
    length: usize,
}

impl Mapping {
    /// Maps `length` bytes of a file that nobody else can reach and that stays as long.
    ///
    /// # Errors
    /// The number of the error.
    pub fn new(file: &OwnedFd, length: usize) -> Result<Self, i32> {
        let (access, kind) = (libc::PROT_READ, libc::MAP_SHARED);
        // SAFETY: with a null address the kernel chooses a place where nothing is mapped yet.
        let start =
            unsafe { libc::mmap(ptr::null_mut(), length, access, kind, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            Err(errno())
        } else {
            Ok(Self { start: start.cast(), length })
        }
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping has this length, lives as long as `self`, and nobody writes to the
        // file, which has no name.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that `new` made; no reference into it outlives `self`.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}

/// Sums all words of a mapped file that is in memory.
#[derive(Debug)]
pub struct MappedRead(Mapping);

impl MappedRead {
    /// Of the whole mapping.
    #[must_use]
    pub const fn new(mapping: Mapping) -> Self {
        Self(mapping)
    }
}

impl Repeated for MappedRead {
    fn iterate(&mut self, iterations: u64) -> Result<Batch, i32> {
        for _ in 0..iterations {
            black_box(sum(black_box(self.0.bytes())));
        }
        Ok(Batch::of_bytes(iterations * self.0.length as u64))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        io::{Write as _, pipe},
        thread,
    };

    use super::*;
    use crate::{clock::now_ns, repeats::measure, stop::Stop};

    fn cpu() -> u32 {
        // SAFETY: the call takes no pointer.
        u32::try_from(unsafe { libc::sched_getcpu() }).unwrap()
    }

    #[test]
    fn the_bytes_that_are_counted_are_those_that_were_sent() {
        let (from, to) = pipe().unwrap();
        let asked = 10 * 65_536 + 17;
        let mut received =
            ReceivedBytes::new((from.into(), to.into()), 65_536, asked, cpu()).unwrap();
        let mut bytes = 0;
        while bytes < asked - 65_536 {
            bytes += received.iterate(1).unwrap().bytes;
        }
        // The rest is less than a message, and then nothing comes.
        let mut rest = vec![0; 65_536];
        loop {
            match read(&received.from, &mut rest).unwrap() {
                0 => break,
                more => bytes += more as u64,
            }
        }
        assert_eq!(bytes, asked);
        assert_eq!(received.iterate(1), Err(libc::EPIPE));
    }

    #[test]
    fn a_receiver_takes_at_least_the_time_for_which_its_sender_pauses() {
        const MESSAGES: i64 = 20;
        const PAUSE_NS: i64 = 2_000_000;
        let (from, mut to) = pipe().unwrap();
        let begun_ns = now_ns();
        let sender = thread::spawn(move || {
            for number in 0..MESSAGES {
                while now_ns() < begun_ns + number * PAUSE_NS {
                    thread::yield_now();
                }
                to.write_all(&[7; 4_096]).unwrap();
            }
        });
        let (_, unused) = pipe().unwrap();
        let mut received = ReceivedBytes {
            from: from.into(),
            buffer: Buffer::new(4_096),
            _sender: Partner::start(cpu(), || send(&unused.into(), &[], 0)).unwrap(),
        };
        let mut bytes = 0;
        while let Ok(batch) = received.iterate(1) {
            bytes += batch.bytes;
        }
        let passed_ns = now_ns() - begun_ns;
        sender.join().unwrap();
        assert_eq!(bytes, MESSAGES as u64 * 4_096);
        assert!(passed_ns >= (MESSAGES - 1) * PAUSE_NS, "{passed_ns}");
    }

    #[test]
    fn a_file_is_read_again_and_again_by_calls_and_by_its_mapping() {
        let mut file = tempfile_without_name();
        file.write_all(&[1; 3 * 4_096]).unwrap();
        let file = OwnedFd::from(file);
        let mapping = Mapping::new(&file, 3 * 4_096).unwrap();
        assert_eq!(sum(mapping.bytes()), sum(&[1; 3 * 4_096]));
        assert_eq!(MappedRead::new(mapping).iterate(2).unwrap().bytes, 6 * 4_096);
        let mut read = FileRead::new(file, 3 * 4_096, 4_096);
        assert_eq!(read.iterate(7).unwrap().bytes, 7 * 4_096);
        let done = measure(&mut read, now_ns(), &Stop::new()).unwrap();
        assert_eq!(done.bytes, done.iterations * 4_096);
    }

    fn tempfile_without_name() -> File {
        // SAFETY: the name is a C string; the call takes no other pointer.
        let made = unsafe { libc::memfd_create(c"tardy-test".as_ptr(), libc::MFD_CLOEXEC) };
        // SAFETY: it has just been opened, and nobody else owns it.
        unsafe { std::os::fd::FromRawFd::from_raw_fd(made) }
    }
}
