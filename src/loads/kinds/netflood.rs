//! The load `netflood`: small UDP packets as fast as they can be sent.
//!
//! Each pair has a sender and a receiver; a packet received is one operation, those dropped on the
//! way are not counted. Over `loopback` and over a `veth` pair a packet is carried by softirqs
//! alone, on the CPU that sent it; only a network card raises interrupts. A veth pair joins
//! two network namespaces that hold nothing else, needs root and the program `ip`, and ends with
//! the processes. On the machine it takes two sockets and their buffers a pair.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::ops::Range;
use std::process::{Command, Stdio};
use std::thread;

use crate::loads::task_loop::{PROCESS_BYTES, add};
use crate::loads::worker::Worker;
use crate::loads::worker_pool::WorkerPool;
use crate::loads::{Load, LoadError, LoadSpec, LoadWork, Need, Parameter, ParameterKind};
use crate::sys::namespace::leave_network;
use crate::sys::process::Pid;

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "netflood",
    summary: "Small UDP packets, sent as fast as possible: softirqs, but no NIC interrupts.",
    unit: "packets",
    parameters: PARAMETERS,
    work: Some(LoadWork { need, start }),
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "via",
        help: "The loopback device, or a veth pair between two network namespaces (needs root).",
        default: "loopback",
        kind: ParameterKind::Choice(&["loopback", "veth"]),
    },
    Parameter {
        key: "pairs",
        help: "Number of senders, and of receivers.",
        default: "1",
        kind: ParameterKind::Count { min: 1, max: 256 },
    },
    Parameter {
        key: "size",
        help: "Payload of a packet.",
        default: "18",
        kind: ParameterKind::Bytes { min: 1, max: 1472 },
    },
];

/// Two sockets with full buffers.
const PAIR_BYTES: u64 = 1 << 20;

/// A documentation address (RFC 5737): no real route uses it.
const NEAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

fn need(spec: &LoadSpec) -> Result<Need, LoadError> {
    if spec.text("via")? == "veth" {
        let missing = |what: &str, remedy: &str| LoadError::Missing {
            load: spec.name.clone(),
            what: what.to_owned(),
            remedy: remedy.to_owned(),
        };
        if !rustix::process::geteuid().is_root() {
            let remedy = "run tardy as root, or use via=loopback";
            return Err(missing("root for via=veth", remedy));
        }
        if ip(&["-V"]).is_err() {
            let remedy = "install it (package iproute2; Fedora: iproute), or use via=loopback";
            return Err(missing("the program `ip` for via=veth", remedy));
        }
    }
    let pairs = spec.number("pairs")?;
    Ok(Need {
        tasks: 2 * pairs,
        counters: pairs,
        open_files: 1,
        memory_bytes: pairs * (2 * PROCESS_BYTES + PAIR_BYTES),
        disk_bytes: 0,
    })
}

fn start(spec: &LoadSpec, pool: &mut WorkerPool) -> Result<(), LoadError> {
    let (pairs, size) = (spec.number("pairs")?, spec.number("size")?);
    let payload = vec![0x55; usize::try_from(size).unwrap_or(1)];
    if spec.text("via")? == "veth" {
        return start_over_veth(pool, pairs, &payload);
    }
    for number in 0..pairs {
        let into = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
            .map_err(|error| pool.cannot("open a UDP socket on 127.0.0.1", error))?;
        let address = into
            .local_addr()
            .map_err(|error| pool.cannot("ask for the address of a socket", error))?;
        pool.spawn(|worker| receive(worker, number, &into))?;
        pool.spawn(|worker| send(worker, address, &payload))?;
    }
    Ok(())
}

fn receive(worker: &Worker<'_>, number: u64, into: &UdpSocket) -> io::Result<()> {
    let counter = worker.counter(number)?;
    let mut packet = [0; 2048];
    worker.begin()?;
    loop {
        into.recv(&mut packet)?;
        counter.bump();
    }
}

fn send(worker: &Worker<'_>, address: SocketAddr, payload: &[u8]) -> io::Result<()> {
    let from = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    from.connect(address)?;
    worker.begin()?;
    loop {
        match from.send(payload) {
            // The remote endpoint has no room, or its socket is not there yet.
            Err(error) if is_passing(&error) => {}
            sent => sent.map(|_| ())?,
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    error.kind() == ErrorKind::ConnectionRefused || error.raw_os_error() == Some(libc::ENOBUFS)
}

/// The supervisor moves into its own namespace, and with it the senders. The receivers' is made by
/// the first of them, a process that then holds it and nothing more.
fn start_over_veth(pool: &mut WorkerPool, pairs: u64, payload: &[u8]) -> Result<(), LoadError> {
    let remedy = "check that the kernel has network namespaces and veth, or use via=loopback";
    let cannot = |pool: &WorkerPool, action: &str, error| pool.refuse(action, error, remedy);
    let (ready, signal_ready) = io::pipe().map_err(|error| pool.cannot("make a pipe", error))?;
    let (go_on, go) = io::pipe().map_err(|error| pool.cannot("make a pipe", error))?;
    leave_network().map_err(|error| cannot(pool, "make a network namespace", error))?;
    let mut ends = (signal_ready, go_on);
    let far = pool.spawn(|worker| {
        leave_network()?;
        io::Write::write_all(&mut ends.0, b"x")?;
        io::Read::read_exact(&mut ends.1, &mut [0])?;
        bring_up("tardy1", FAR)?;
        receive_all(*worker, 0..pairs)
    })?;
    drop(ends);
    join(far, ready, go).map_err(|error| cannot(pool, "join two network namespaces", error))?;
    for number in 0..pairs {
        pool.spawn(|worker| send(worker, (FAR, port(number)).into(), payload))?;
    }
    Ok(())
}

fn receive_all(worker: Worker<'_>, numbers: Range<u64>) -> io::Result<()> {
    thread::scope(|scope| {
        for number in numbers {
            add(scope, worker, move || {
                receive(&worker, number, &UdpSocket::bind((FAR, port(number)))?)
            });
        }
    });
    Ok(())
}

/// Lays the pair of devices between this namespace and that of `far`, which waits for it.
fn join(far: Pid, mut ready: io::PipeReader, mut go: io::PipeWriter) -> io::Result<()> {
    io::Read::read_exact(&mut ready, &mut [0])?;
    let far = far.to_string();
    let link = ["link", "add", "tardy0", "type", "veth", "peer", "name", "tardy1", "netns", &far];
    ip(&link)?;
    bring_up("tardy0", NEAR)?;
    io::Write::write_all(&mut go, b"x")
}

fn bring_up(device: &str, address: Ipv4Addr) -> io::Result<()> {
    ip(&["address", "add", &format!("{address}/24"), "dev", device])?;
    ip(&["link", "set", device, "up"])
}

fn ip(arguments: &[&str]) -> io::Result<()> {
    let output = Command::new("ip").args(arguments).stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let failed = || io::Error::other(format!("ip {}: {}", arguments.join(" "), said.trim()));
    if output.status.success() { Ok(()) } else { Err(failed()) }
}

fn port(number: u64) -> u16 {
    10_000 + u16::try_from(number).unwrap_or(0)
}
