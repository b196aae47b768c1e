//! From a planned figure to what can be repeated: pipes, sockets, files and processes.

use std::{
    fs::File,
    io::{self, pipe},
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::{fd::OwnedFd, unix::net::UnixStream},
    sync::Arc,
};

use rustix::net::sockopt;
use tardy_hot::{
    repeats::{
        Repeated, Repeats, calls, measure,
        memory::{MemoryCopy, MemoryRead, MemoryWrite},
        processes::{Exec, Fork, Ring, SingleProcessBaseline},
        transfers::{FileRead, MappedRead, Mapping, ReceivedBytes},
    },
    stop::Stop,
};

use super::figure::{Kind, PlannedFigure};
use crate::setup::threads::plain;

/// Of the file that is mapped and unmapped.
const MAPPED_BYTES: usize = 1 << 20;

/// The share of a repeat of `switch` in which nothing is switched: what passing the token costs.
const ALONE_SHARE: i64 = 4;

/// Where figures are measured.
#[derive(Debug)]
pub(super) struct Place {
    pub near_cpu: u32,
    pub far_cpu: u32,
    /// A file without a name, all in memory, and its length; `None` if no figure needs it.
    pub file: Option<(Arc<File>, u64)>,
}

/// What can be repeated, and how its value follows.
pub(super) enum Made {
    /// Bytes a time.
    Bytes(Box<dyn Repeated>),
    /// Time a turn.
    Time(Box<dyn Repeated>),
    /// The time of a pass of a token among this number of processes, without the cost of a pass
    /// alone.
    Switch(Ring, SingleProcessBaseline, u32),
}

impl Made {
    /// One repeat, until `until_ns`; its value.
    ///
    /// # Errors
    /// The number of the system's error.
    pub(super) fn repeat(&mut self, begun_ns: i64, until_ns: i64, stop: &Stop) -> Result<f64, i32> {
        match self {
            Self::Bytes(work) => measure(&mut **work, until_ns, stop).map(|done| done.mb_per_s()),
            Self::Time(work) => measure(&mut **work, until_ns, stop).map(|done| done.us_per_turn()),
            Self::Switch(ring, alone, processes) => {
                let alone_until_ns = begun_ns + (until_ns - begun_ns) / ALONE_SHARE;
                let alone: Repeats = measure(alone, alone_until_ns, stop)?;
                let ring = measure(ring, until_ns, stop)?;
                Ok(ring.us_per_turn() / f64::from(*processes) - alone.us_per_turn())
            }
        }
    }
}

/// Makes ready what `figure` is of.
///
/// # Errors
/// What is not available, for the user.
pub(super) fn make(figure: PlannedFigure, place: &Place) -> Result<Made, String> {
    made(figure, place).map_err(|error| plain(&error))
}

fn made(figure: PlannedFigure, place: &Place) -> io::Result<Made> {
    let PlannedFigure { kind, bytes, count } = figure;
    let size = usize::try_from(bytes).unwrap_or(usize::MAX);
    let received = |ends: (OwnedFd, OwnedFd)| -> io::Result<Made> {
        let received = ReceivedBytes::new(ends, size, u64::MAX, place.far_cpu).map_err(error)?;
        Ok(Made::Bytes(Box::new(received)))
    };
    Ok(match kind {
        Kind::Pipe => received(a_pipe()?)?,
        Kind::Unix => received(UnixStream::pair().map(|(a, b)| (a.into(), b.into()))?)?,
        Kind::Tcp => received(tcp()?)?,
        Kind::MemoryRead => Made::Bytes(Box::new(MemoryRead::new(size))),
        Kind::MemoryWrite => Made::Bytes(Box::new(MemoryWrite::new(size))),
        Kind::MemoryCopy => Made::Bytes(Box::new(MemoryCopy::new(size))),
        Kind::Switch => {
            let processes = usize::try_from(count).unwrap_or(0);
            let ring = Ring::new(pipes(processes)?, size, place.near_cpu).map_err(error)?;
            Made::Switch(ring, SingleProcessBaseline::new(pipes(processes)?, size), count)
        }
        _ if figure.has_file() => of_file(figure, size, place)?,
        _ => Made::Time(of_calls(kind, count)?),
    })
}

fn of_calls(kind: Kind, count: u32) -> io::Result<Box<dyn Repeated>> {
    let descriptors = || pipes(usize::try_from(count).unwrap_or(0));
    Ok(match kind {
        Kind::NullCall => Box::new(calls::NullCall),
        Kind::ReadCall => Box::new(calls::OneByte::read().map_err(error)?),
        Kind::WriteCall => Box::new(calls::OneByte::write().map_err(error)?),
        Kind::StatCall => Box::new(calls::StatCall(PATH)),
        Kind::OpenCall => Box::new(calls::OpenClose(PATH)),
        Kind::SignalInstall => Box::new(calls::SignalInstall),
        Kind::Signal => Box::new(calls::SignalCatch),
        Kind::Select => Box::new(calls::Select::new(descriptors()?).map_err(error)?),
        Kind::Epoll => Box::new(calls::EpollWait::new(descriptors()?).map_err(error)?),
        Kind::Fork => Box::new(Fork),
        Kind::Exec => Box::new(program(TRUE, &[c"true"])?),
        Kind::Shell => {
            program(TRUE, &[c"true"])?;
            Box::new(program(c"/bin/sh", &[c"sh", c"-c", TRUE])?)
        }
        _ => return Err(io::Error::other("it is not one of the system calls")),
    })
}

/// What is looked at and opened: two names deep, and there on every Linux.
const PATH: &std::ffi::CStr = c"/proc/version";

/// The program that does nothing.
const TRUE: &std::ffi::CStr = c"/bin/true";

fn program(
    path: &'static std::ffi::CStr,
    arguments: &[&'static std::ffi::CStr],
) -> io::Result<Exec> {
    Exec::new(path, arguments).map_err(|number| {
        let why = plain(&error(number));
        io::Error::other(format!("{}: {why}", path.to_string_lossy()))
    })
}

fn of_file(figure: PlannedFigure, size: usize, place: &Place) -> io::Result<Made> {
    let (file, length) = place.file.as_ref().ok_or_else(|| io::Error::other("it has no file"))?;
    let own: OwnedFd = file.try_clone()?.into();
    let whole = usize::try_from(*length).unwrap_or(usize::MAX);
    Ok(match figure.kind {
        Kind::FileRead => Made::Bytes(Box::new(FileRead::new(own, *length, size))),
        Kind::MmapRead => {
            let mapping = Mapping::new(&own, whole).map_err(error)?;
            Made::Bytes(Box::new(MappedRead::new(mapping)))
        }
        Kind::ProtectionFault => {
            let faults = calls::ProtectionFault::new(&own, a_pipe()?, place.near_cpu);
            Made::Time(Box::new(faults.map_err(error)?))
        }
        Kind::Mmap => Made::Time(Box::new(calls::MapUnmap::new(own, whole.min(MAPPED_BYTES)))),
        _ => Made::Time(Box::new(calls::PageFault::new(own, whole))),
    })
}

fn a_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    pipe().map(|(from, to)| (from.into(), to.into()))
}

fn pipes(count: usize) -> io::Result<Vec<(OwnedFd, OwnedFd)>> {
    (0..count).map(|_| a_pipe()).collect()
}

/// What lmbench asks for as buffers of either end of TCP, bytes; the kernel gives what it allows
/// (`net.core.rmem_max`, `wmem_max`).
const TCP_BUFFER: usize = 1 << 20;

fn tcp() -> io::Result<(OwnedFd, OwnedFd)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    // An accepted socket has that of its listener.
    sockopt::set_socket_recv_buffer_size(&listener, TCP_BUFFER)?;
    let to = TcpStream::connect(listener.local_addr()?)?;
    sockopt::set_socket_send_buffer_size(&to, TCP_BUFFER)?;
    let own = to.local_addr()?;
    loop {
        // A stranger may be faster.
        let (from, peer) = listener.accept()?;
        if peer == own {
            return Ok((from.into(), to.into()));
        }
    }
}

fn error(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use tardy_hot::clock::now_ns;

    use super::*;
    use crate::sys::cpus::Cpus;

    #[test]
    fn every_figure_can_be_made_and_has_a_value() {
        let cpu = Cpus::allowed().unwrap().iter().next().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![1; 2 << 20]).unwrap();
        let file = Some((Arc::new(file), 2 << 20));
        let place = Place { near_cpu: cpu, far_cpu: cpu, file };
        for figure in PlannedFigure::chosen(&[], &[4096]).unwrap() {
            let name = figure.name();
            let mut made = make(figure, &place).unwrap_or_else(|why| panic!("{name}: {why}"));
            let value = made.repeat(now_ns(), now_ns() + 1_000_000, &Stop::new()).unwrap();
            // A difference of two times may be anything where others run.
            assert!(value > 0.0 || figure.kind == Kind::Switch, "{name}: {value}");
        }
    }

    #[test]
    fn what_is_not_there_is_named() {
        let error = program(c"/no/such", &[c"such"]).unwrap_err().to_string();
        assert_eq!(error, "/no/such: No such file or directory");
    }
}
