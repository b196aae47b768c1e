//! What the real-time threads of an echo leave of their CPU, whoever talks to it.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpStream, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use serde_json::Value;
use tardy::transports::hello::{CarrierKind, connect};
use tardy_hot::clock::now_ns;

use super::{
    super::support::{eventually, finish, is_root, patience, pause, piped, signal, skip},
    Listening, PING, Store, end, listening,
};

/// What is known of a thread.
struct Task {
    tid: u32,
    is_real_time: bool,
    used: Duration,
    sleeps: u64,
}

impl Task {
    /// Those of an echo.
    fn all_of(echo: &Listening) -> Vec<Self> {
        let tasks = fs::read_dir(format!("/proc/{}/task", echo.child.id())).unwrap();
        // One may end meanwhile.
        tasks.filter_map(|task| Self::read(&task.ok()?.path())).collect()
    }

    fn read(task: &std::path::Path) -> Option<Self> {
        let read = |name| fs::read_to_string(task.join(name)).ok();
        let (stat, status) = (read("stat")?, read("status")?);
        // utime, stime and policy of proc(5), which counts from 1 and has two up to the name.
        let number = |at: usize| -> Option<u64> {
            stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(at)?.parse().ok()
        };
        let sleeps = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        Some(Self {
            tid: task.file_name()?.to_str()?.parse().ok()?,
            is_real_time: number(38)? != 0,
            used: Duration::from_millis(10 * (number(11)? + number(12)?)),
            sleeps: sleeps?.trim().parse().ok()?,
        })
    }
}

/// What a thread did within a second or more.
#[derive(Debug)]
struct Spent {
    is_main: bool,
    is_real_time: bool,
    /// Of a CPU.
    share: f64,
    sleeps_often: bool,
}

/// The threads of an echo, and what they do.
fn spent(echo: &Listening) -> Vec<Spent> {
    let (start_ns, before) = (now_ns(), Task::all_of(echo));
    pause(Duration::from_secs(1));
    let passed = Duration::from_nanos((now_ns() - start_ns).unsigned_abs());
    let after = Task::all_of(echo);
    let since = |after: Task| {
        let before = before.iter().find(|before| before.tid == after.tid)?;
        let sleeps = after.sleeps - before.sleeps;
        Some(Spent {
            is_main: after.tid == echo.child.id(),
            is_real_time: after.is_real_time,
            share: (after.used - before.used).div_duration_f64(passed),
            sleeps_often: u128::from(sleeps) > passed.as_millis() / 20,
        })
    };
    after.into_iter().filter_map(since).collect()
}

/// Whether real-time threads of peers, which are on one CPU, leave it time for others: those that
/// hardly sleep half of it, all together a tenth.
fn is_calm(spent: &[Spent]) -> bool {
    let real_time = || spent.iter().filter(|task| task.is_real_time && !task.is_main);
    let all: f64 = real_time().map(|task| task.share).sum();
    let awake = real_time().filter(|task| !task.sleeps_often);
    let awake: f64 = awake.map(|task| task.share).sum();
    awake < 0.5 && all < 0.9
}

/// Whether the thread that accepts has time for something else.
fn is_main_calm(spent: &[Spent]) -> bool {
    let main = spent.iter().find(|task| task.is_main).unwrap();
    main.sleeps_often || main.share < 0.5
}

/// Waits until an echo has noticed what `flood` does, and its threads leave time for others. How
/// soon it does is tested with its guard, where time is made up.
fn wait_calm(
    echo: &Listening,
    flood: &Flood,
    what: &str,
    is_calm: impl Fn(&[Spent]) -> bool,
) -> Vec<Spent> {
    eventually("the first attacks", || flood.attacks.load(Ordering::Relaxed) > 0);
    let mut last = Vec::new();
    eventually(&format!("{what} leave time for others"), || {
        last = spent(echo);
        is_calm(&last)
    });
    last
}

/// Threads that attack until they are told to end, or their echo has ended.
#[derive(Default)]
struct Flood {
    is_over: Arc<AtomicBool>,
    attacks: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Flood {
    /// Does it again and again in its own thread, as long as it succeeds.
    fn of(&mut self, mut attack: impl FnMut() -> bool + Send + 'static) {
        let (is_over, attacks) = (Arc::clone(&self.is_over), Arc::clone(&self.attacks));
        let go_on = move || {
            while !is_over.load(Ordering::Relaxed) && attack() {
                attacks.fetch_add(1, Ordering::Relaxed);
            }
        };
        self.threads.push(thread::spawn(go_on));
    }

    /// Ends the echo first, which ends what waits for it.
    fn end(self, echo: Listening) -> Value {
        let summary = end(echo);
        self.is_over.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        summary
    }
}

/// An echo whose real-time threads answer on one CPU.
fn listen(store: &Store, more: &[&str]) -> Listening {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let last = cpus.trim().rsplit([',', '-']).next().unwrap();
    let words = ["echo", "--listen", "127.0.0.1:0", "--policy", "fifo", "--cpus", last, "--json"];
    listening(store.start(&[&words[..], more].concat()))
}

#[test]
fn bytes_without_end_do_not_keep_the_cpu_of_a_real_time_echo() {
    if !is_root() {
        return skip("needs root: an echo under SCHED_FIFO");
    }
    for rate in ["100pps", "1000kpps"] {
        let store = Store::new();
        let (echo, mut flood) = (listen(&store, &["--max-rate", rate]), Flood::default());
        let far = connect(CarrierKind::Tcp, &echo.address, b"", PING).unwrap();
        let mut stream = TcpStream::from(far.socket);
        let mut answers = stream.try_clone().unwrap();
        // A client that tries to connect makes the echo look at its peers more often.
        let (door, address) = (UdpSocket::bind("127.0.0.1:0").unwrap(), echo.address.clone());
        flood.of(move || {
            let _ = door.send_to(b"knock", &address);
            pause(Duration::from_millis(2));
            true
        });
        flood.of(move || stream.write_all(&[7; 60_000]).is_ok());
        flood.of(move || answers.read(&mut [0; 60_000]).is_ok_and(|length| length > 0));
        let spent = wait_calm(&echo, &flood, rate, is_calm);
        eprintln!("{rate}: {spent:?}; {}", flood.end(echo)["last_peers"]);
    }
}

#[test]
fn peers_that_share_a_cpu_do_not_keep_it_in_turn() {
    if !is_root() {
        return skip("needs root: an echo under SCHED_FIFO");
    }
    let store = Store::new();
    let (echo, mut flood) = (listen(&store, &["--max-rate", "1000kpps"]), Flood::default());
    let mut peers: Vec<TcpStream> = (0..3)
        .map(|_| connect(CarrierKind::Tcp, &echo.address, b"", PING).unwrap().socket.into())
        .collect();
    peers[0].write_all(&[7; 60_000]).unwrap();
    flood.of(move || {
        peers.rotate_left(1);
        // This one has something to answer before the one before has answered all.
        peers[0].write_all(&[7; 60_000]).is_ok() && peers[2].read_exact(&mut [0; 60_000]).is_ok()
    });
    let spent = wait_calm(&echo, &flood, "three peers", is_calm);
    eprintln!("{spent:?}; {}", flood.end(echo)["last_peers"]);
}

/// A connection that speaks enough of ZeroMQ's protocol (ZMTP 3.0) to send messages.
fn speak_zeromq(to: &str) -> TcpStream {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(patience())).unwrap();
    let mut greeting = [0_u8; 64];
    (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
    greeting[12..16].copy_from_slice(b"NULL");
    stream.write_all(&greeting).unwrap();
    stream.read_exact(&mut [0; 64]).unwrap();
    stream.write_all(b"\x04\x1c\x05READY\x0bSocket-Type\0\0\0\x06DEALER").unwrap();
    let mut head = [0; 2];
    stream.read_exact(&mut head).unwrap();
    stream.read_exact(&mut vec![0; usize::from(head[1])]).unwrap();
    stream
}

#[test]
fn messages_of_zeromq_without_end_do_not_keep_the_cpu_of_a_real_time_echo() {
    if !is_root() {
        return skip("needs root: an echo under SCHED_FIFO");
    }
    // Of one part, which are not requests; and pings, which only the library's own thread sees.
    for (what, message) in [("messages", &b"\0\x01a"[..]), ("pings", b"\x04\x07\x04PING\0\0")] {
        let store = Store::new();
        let more = ["--foreign", "--transport", "zmq-tcp", "--max-rate", "1000kpps"];
        let (echo, mut flood) = (listen(&store, &more), Flood::default());
        for _ in 0..2 {
            let mut stream = speak_zeromq(&echo.address);
            let mut answers = stream.try_clone().unwrap();
            let messages = message.repeat(10_000);
            flood.of(move || stream.write_all(&messages).is_ok());
            flood.of(move || answers.read(&mut [0; 60_000]).is_ok_and(|length| length > 0));
        }
        let spent = wait_calm(&echo, &flood, what, is_calm);
        eprintln!("{what}: {spent:?}; {}", flood.end(echo)["last_peers"]);
    }
}

#[test]
fn connections_without_end_do_not_keep_awake_who_accepts_them() {
    if !is_root() {
        return skip("needs root: an echo under SCHED_FIFO");
    }
    // It has no descriptor for the next connection; or they come and go.
    for (script, stay) in [("ulimit -n 24", true), ("true", false)] {
        let store = Store::new();
        let words =
            ["echo", "--listen", "127.0.0.1:0", "--policy", "fifo", "--transport", "tcp", "--json"];
        let echo = listening(piped(&mut store.shell(script, &words)));
        let (mut flood, mut open) = (Flood::default(), Vec::new());
        if stay {
            open.extend((0..40).map(|_| TcpStream::connect(&echo.address).unwrap()));
            flood.attacks.store(40, Ordering::Relaxed);
        } else {
            for _ in 0..4 {
                let address = echo.address.clone();
                flood.of(move || {
                    // In vain where the system has no port left.
                    drop(TcpStream::connect(&address));
                    true
                });
            }
        }
        let spent = wait_calm(&echo, &flood, script, is_main_calm);
        eprintln!("{script}: {spent:?}; {}", flood.end(echo));
        drop(open);
    }
}

#[test]
fn above_which_nothing_can_be_is_said_and_bounded_by_the_kernel() {
    if !is_root() {
        return skip("needs root: an echo under SCHED_FIFO");
    }
    for (priority, is_said) in [("98", false), ("99", true)] {
        let store = Store::new();
        let words = ["echo", "--listen", "127.0.0.1:0", "--json", "--priority", priority];
        let echo = listening(store.start(&words));
        let limits = fs::read_to_string(format!("/proc/{}/limits", echo.child.id())).unwrap();
        let bound = limits.lines().find(|line| line.starts_with("Max realtime timeout")).unwrap();
        assert_eq!(bound.split_whitespace().nth(3), Some("10000000"), "{bound}");
        signal(&echo.child, "INT");
        let said = finish(echo.child);
        assert_eq!((said.code, said.err.contains("priority 99")), (Some(0), is_said), "{said:?}");
    }
}
