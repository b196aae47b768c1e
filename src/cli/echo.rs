//! `tardy echo`: the remote endpoint of pingpong and stream, for another machine.

use std::{io, net::SocketAddr, path::PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use serde_json::json;

use super::{Exit, flags::FormatFlags, output};
use crate::{
    echo::{AWAKE_MAX, CALMED, DENIED, Echo, EchoOptions, PORT, PeerSummary, PeerTerms, Summary},
    report::table::Table,
    setup::{
        Choice,
        threads::{self, describe, plain},
    },
    sys::{cpus::Cpus, rights::KeptRights, sched::Policy, signals::Quit},
    transports::hello::read_token,
    units::{PacketRate, RateError, count, span},
};

/// The first port that an unprivileged process may bind.
const FIRST_FREE_PORT: u16 = 1024;

/// The largest UDP payload over IPv4, bytes.
const DATAGRAM_BYTES_MAX: u32 = 65_507;

/// The largest message that is kept in memory for a peer, bytes.
const BYTES_MAX: i64 = 16 << 20;

/// Answer pingpong and stream from another machine
///
/// Returns each message to its sender until Ctrl-C, then prints a table of its peers. It serves up
/// to 16 peers at a time and never sends more than it received. Before it listens, it drops root
/// and all capabilities except those for real-time priority and locked memory. On the other
/// machine: `tardy run pingpong --to HOST:PORT`.
#[derive(Debug, Args)]
pub(super) struct EchoFlags {
    /// Address and port to listen on [default: 127.0.0.1:7117]
    ///
    /// Port 0 takes any free port; the first line of output shows it. Beyond loopback, --token-file
    /// is required.
    #[arg(long, value_name = "ADDRESS", help_heading = "Peers")]
    listen: Option<SocketAddr>,
    /// Transport of the messages [default: udp and tcp]
    #[arg(long, value_name = "TRANSPORT", value_enum, help_heading = "Peers")]
    transport: Option<Carrier>,
    /// File with a secret that both ends share; required beyond loopback
    #[arg(long, value_name = "FILE", help_heading = "Peers")]
    token_file: Option<PathBuf>,
    /// The other end is another program: no handshake, messages returned unchanged
    #[arg(long, requires = "transport", help_heading = "Peers")]
    foreign: bool,
    /// Maximum messages per second to answer for one peer, e.g. 50kpps [default: 200kpps]
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "Peers")]
    max_rate: Option<PacketRate>,
    /// Size of the largest message to answer, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = DATAGRAM_BYTES_MAX)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=BYTES_MAX), help_heading = "Peers")]
    max_size: u32,
    /// Scheduling policy of the answering threads: fifo, rr or other [default: fifo]
    #[arg(long, value_name = "KIND", help_heading = "Setup")]
    policy: Option<Policy>,
    /// Real-time priority of the answering threads, 1 to 99 [default: 90]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=99))]
    #[arg(help_heading = "Setup")]
    priority: Option<u32>,
    /// CPUs for the answering threads, assigned in rotation [default: all but the first]
    #[arg(long, value_name = "SET", help_heading = "Setup")]
    cpus: Option<Cpus>,
    #[command(flatten)]
    format: FormatFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Carrier {
    /// Datagrams
    Udp,
    /// Connections
    Tcp,
    /// ZeroMQ requests over TCP, compatible with libzmq's remote_lat; with --foreign
    ZmqTcp,
}

/// Listens, answers, and prints a summary.
pub(super) fn echo(flags: &EchoFlags) -> Result<Exit> {
    let plan = flags.plan()?;
    let transports = transports(&plan);
    let beyond = plan.foreign && !plan.listen.ip().is_loopback();
    let quit = Quit::listen().context("cannot set a signal handler")?;
    let echo = Echo::open(plan)?;
    if beyond {
        output::notice(
            "Every sender that reaches this address is answered: --foreign knows no token. End it \
             when the measurement is done.",
        );
    }
    kept(echo.kept()).iter().for_each(|line| output::notice(line));
    if let Some(bound) = echo.nothing_above() {
        output::notice(&nothing_above(bound));
    }
    let address = echo.address();
    output::put(&if flags.format.is_json() {
        json!({ "listening": address, "transports": transports }).to_string() + "\n"
    } else {
        format!("listening on {address} ({})\n", transports.join(", "))
    })?;
    let summary = echo.serve(|| quit.seen().is_some())?;
    if flags.format.is_json() {
        output::put_json(&summary)?;
    } else {
        output::put(&text(&summary))?;
    }
    Ok(Exit::Done)
}

/// What the echo keeps and need not, in words.
fn kept(kept: &KeptRights) -> Vec<String> {
    let root = kept.root.as_ref().map(|why| {
        format!(
            "The echo stays root of its user namespace, without its capabilities: it cannot become \
             nobody ({why}). Files of that user are open to it; map the user 65534."
        )
    });
    let capabilities = (!kept.capabilities.is_empty()).then(|| {
        format!(
            "The echo keeps {}: the limits that stand for them cannot be raised.",
            kept.capabilities.join(" and ")
        )
    });
    root.into_iter().chain(capabilities).collect()
}

/// That no thread of the echo is above those that answer, and what ends it where it must be ended:
/// `bound` is what the kernel said to their bound.
fn nothing_above(bound: &io::Result<()>) -> String {
    let end = match bound {
        Ok(()) => format!("the kernel ends the echo after {} s", AWAKE_MAX.as_secs()),
        Err(error) => format!("nothing ends it, nor does the kernel bound it ({})", plain(error)),
    };
    format!(
        "The answering threads have priority 99, and no thread of the echo can be above them: \
         where one of them never sleeps, and the echo has no other CPU, {end}. Use --priority 98 \
         or less, unless what is compared with needs 99."
    )
}

fn transports(plan: &EchoOptions) -> Vec<&'static str> {
    let all = [("udp", plan.udp), ("tcp", plan.tcp), ("zmq-tcp", plan.zmq)];
    all.into_iter().filter_map(|(name, wanted)| wanted.then_some(name)).collect()
}

impl EchoFlags {
    /// Checks everything that can be checked before a socket is opened.
    fn plan(&self) -> Result<EchoOptions> {
        let listen = self.listen.unwrap_or_else(|| ([127, 0, 0, 1], PORT).into());
        ensure!(
            listen.port() == 0 || listen.port() >= FIRST_FREE_PORT,
            "--listen {listen}: an echo gives up its rights, and ports below {FIRST_FREE_PORT} \
             need some; choose a port from {FIRST_FREE_PORT} on, as {PORT}"
        );
        ensure!(
            self.foreign || self.transport != Some(Carrier::ZmqTcp),
            "--transport zmq-tcp: ZeroMQ has no handshake with a token; add --foreign to answer \
             every client that reaches the address, or choose udp or tcp"
        );
        let token = match &self.token_file {
            Some(_) if self.foreign => {
                bail!("--token-file is not supported with --foreign, whose peers know no token")
            }
            Some(file) => read_token(file)?,
            None => Vec::new(),
        };
        ensure!(
            !token.is_empty() || self.foreign || listen.ip().is_loopback(),
            "--listen {listen} can be reached from other machines: give --token-file FILE, here \
             and at `tardy run`, with the same content. Make one with \
             `(umask 077; head -c 32 /dev/urandom | base64 > FILE)`"
        );
        Ok(EchoOptions {
            listen,
            udp: matches!(self.transport, None | Some(Carrier::Udp)),
            tcp: matches!(self.transport, None | Some(Carrier::Tcp)),
            zmq: self.transport == Some(Carrier::ZmqTcp),
            token,
            foreign: self.foreign,
            rate_max: self.max_rate.map_or(DEFAULT_RATE, |rate| rate.per_1000_s / 1000),
            size_max: self.max_size,
            terms: self.terms()?,
        })
    }

    fn terms(&self) -> Result<PeerTerms> {
        let policy = Choice::new(self.policy, Policy::Fifo);
        if matches!(policy.value, Policy::Deadline(_)) {
            bail!("--policy deadline: an echo has no period; use fifo, rr or other");
        }
        if let (false, Some(priority)) = (policy.value.is_real_time(), self.priority) {
            bail!(
                "--priority {priority} is not supported with --policy other; leave one of them out"
            );
        }
        let priority = Choice::new(self.priority, DEFAULT_PRIORITY);
        let wanted = describe(policy.value, priority.value);
        let (policy, priority, refused) = threads::settle(policy, priority)?;
        if let Some(error) = refused {
            let has = describe(policy, priority);
            output::notice(&format!("{wanted} was refused ({error}); the echo runs as {has}."));
        }
        let allowed = Cpus::allowed().context("cannot read which CPUs this process may use")?;
        let refused = self.cpus.as_ref().map(|asked| asked.without(&allowed));
        if let Some(refused) = refused.filter(|refused| !refused.is_empty()) {
            bail!("--cpus: CPU {refused} is not online or not allowed; allowed are {allowed}");
        }
        let mut cpus: Vec<u32> = self.cpus.as_ref().unwrap_or(&allowed).iter().collect();
        if self.cpus.is_none() && cpus.len() > 1 {
            // A local endpoint on the same machine takes the first; and peers that never let their
            // threads sleep leave it to everything else.
            cpus.remove(0);
        }
        Ok(PeerTerms { policy, priority, cpus })
    }
}

const DEFAULT_PRIORITY: u32 = 90;
const DEFAULT_RATE: u64 = 200_000;

/// Whole messages per second.
fn rate(text: &str) -> Result<PacketRate, String> {
    let rate: PacketRate = text.parse().map_err(|error: RateError| error.to_string())?;
    if rate.per_s() < 1.0 {
        return Err(format!("{rate} is below the smallest limit of an echo; use 1pps or more"));
    }
    Ok(rate)
}

fn text(summary: &Summary) -> String {
    let mut lines = Vec::new();
    if !summary.last_peers.is_empty() {
        let headings =
            ["peer", "transport", "mode", "answered", "bytes", "over rate", "foreign", "ended"];
        let mut table = Table::new(3, &headings);
        summary.last_peers.iter().for_each(|peer| table.row(row(peer)));
        lines.extend(table.lines());
    }
    let is_unusual =
        |peer: &&PeerSummary| [CALMED, DENIED].iter().any(|end| peer.ran.ends_with(end));
    for peer in summary.last_peers.iter().filter(is_unusual) {
        let address = address(peer);
        lines.push(format!("{address} was answered {}.", peer.ran));
    }
    let seconds = summary.duration_ns as f64 / 1e9;
    lines.push(format!(
        "In {}: peers {}; messages answered {} ({} bytes); dropped: over the rate {}, foreign {}.",
        span(seconds),
        count(summary.peers),
        count(summary.answered),
        count(summary.bytes),
        count(summary.over_rate),
        count(summary.foreign),
    ));
    let admission = summary.admission;
    let refused = [
        ("wrong token", admission.wrong_token),
        ("another version", admission.other_version),
        ("over a limit", admission.refused),
        ("too many pending", admission.over_rate),
        ("garbage", admission.garbage),
    ];
    let counted = refused.iter().filter(|(_, times)| *times > 0);
    let counted: Vec<String> =
        counted.map(|(what, times)| format!("{what} {}", count(*times))).collect();
    if !counted.is_empty() {
        lines.push(format!("Refused: {}.", counted.join(", ")));
    }
    lines.join("\n") + "\n"
}

fn address(peer: &PeerSummary) -> String {
    peer.address.map_or_else(|| "any".into(), |address| address.to_string())
}

fn row(peer: &PeerSummary) -> Vec<String> {
    vec![
        address(peer),
        peer.transport.into(),
        peer.mode.into(),
        count(peer.answered),
        count(peer.bytes),
        count(peer.over_rate),
        count(peer.foreign),
        peer.ended.clone(),
    ]
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Echoes {
        #[command(flatten)]
        flags: EchoFlags,
    }

    fn plan(words: &[&str]) -> Result<EchoOptions> {
        let flags = Echoes::try_parse_from([&["echo"], words].concat())?.flags;
        flags.plan()
    }

    fn error(words: &[&str]) -> String {
        plan(words).unwrap_err().to_string()
    }

    #[test]
    fn by_itself_it_listens_on_loopback_by_both_transports() {
        let plan = plan(&["--policy", "other"]).unwrap();
        assert_eq!(plan.listen.to_string(), "127.0.0.1:7117");
        assert_eq!(transports(&plan), ["udp", "tcp"]);
        assert!(plan.token.is_empty() && !plan.foreign && !plan.terms.cpus.is_empty());
    }

    #[test]
    fn beyond_loopback_it_wants_a_token_and_says_how_to_make_one() {
        for address in ["0.0.0.0:7117", "192.0.2.1:7117", "[::]:7117", "[2001:db8::1]:7117"] {
            let error = error(&["--policy", "other", "--listen", address]);
            assert!(error.contains("--token-file") && error.contains("urandom"), "{error}");
        }
        for address in ["127.0.0.2:7117", "[::1]:7117"] {
            plan(&["--policy", "other", "--listen", address]).unwrap();
        }
        let foreign = ["--foreign", "--transport", "tcp", "--listen", "0.0.0.0:7117"];
        assert!(plan(&[&foreign[..], &["--policy", "other"]].concat()).unwrap().foreign);
    }

    #[test]
    fn what_means_nothing_is_refused_by_name() {
        for (words, part) in [
            (&["--listen", "127.0.0.1:80"][..], "from 1024 on"),
            (&["--foreign"], "--transport"),
            (&["--transport", "zmq-tcp"], "add --foreign"),
            (
                &["--foreign", "--transport", "tcp", "--token-file", "x"],
                "not supported with --foreign",
            ),
            (&["--token-file", "/nonexistent"], "--token-file /nonexistent"),
            (&["--policy", "other", "--priority", "5"], "leave one of them out"),
            (&["--policy", "deadline"], "use fifo, rr or other"),
            (&["--max-rate", "100"], "100pps or 100kpps"),
            (&["--max-rate", "0.5pps"], "1pps or more"),
            (&["--max-size", "0"], "--max-size"),
            (&["--policy", "other", "--cpus", "4000"], "--cpus"),
        ] {
            let error = error(words);
            assert!(error.contains(part), "{words:?}: {error}");
        }
    }

    #[test]
    fn where_there_are_several_cpus_peers_leave_one_free() {
        let allowed = Cpus::allowed().unwrap();
        let peers: Cpus = plan(&["--policy", "other"]).unwrap().terms.cpus.into_iter().collect();
        let left = allowed.without(&peers);
        assert_eq!(left.len(), usize::from(allowed.len() > 1), "{allowed} without {peers}");
        let first = allowed.iter().next().unwrap().to_string();
        let named = plan(&["--policy", "other", "--cpus", &first]).unwrap().terms.cpus;
        assert_eq!(named.len(), 1, "what is asked for is taken");
    }

    #[test]
    fn above_which_nothing_can_be_is_said_with_what_ends_it() {
        let bounded = nothing_above(&Ok(()));
        assert!(bounded.contains("ends the echo after 10 s"), "{bounded}");
        let refused = nothing_above(&Err(io::Error::from_raw_os_error(libc::EPERM)));
        assert!(
            refused.contains("nothing ends it") && refused.contains("not permitted"),
            "{refused}"
        );
    }

    #[test]
    fn what_the_echo_could_not_give_up_is_said() {
        assert_eq!(kept(&KeptRights::default()), [""; 0]);
        let all = KeptRights {
            root: Some("Invalid argument".into()),
            capabilities: vec!["CAP_SYS_NICE", "CAP_IPC_LOCK"],
        };
        let [root, capabilities] = kept(&all).try_into().unwrap();
        assert!(root.contains("cannot become nobody (Invalid argument)"), "{root}");
        assert!(capabilities.contains("keeps CAP_SYS_NICE and CAP_IPC_LOCK"), "{capabilities}");
    }
}
