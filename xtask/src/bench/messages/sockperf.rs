//! sockperf's ping-pong, and what it leaves.

use std::{
    net::UdpSocket,
    path::Path,
    process::{Child, Command},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;

use super::{Places, process, real_time};

/// It makes itself ready for two seconds before it sends.
pub(super) const BEGINS: Duration = Duration::from_millis(2_300);

/// Its server, which is killed when this goes.
pub(super) struct Server {
    child: Child,
    port: u16,
    tcp: bool,
}

impl Server {
    /// Starts it on the far CPU and waits until it listens.
    pub(super) fn start(places: Places, tcp: bool) -> Result<Self> {
        let port = UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = real_time("sockperf", places.far);
        command.args(["server", "-i", "127.0.0.1", "-p", &port.to_string()]);
        if tcp {
            command.arg("--tcp");
        }
        let server = Self { child: process::start(&mut command)?, port, tcp };
        let deadline = Instant::now() + Duration::from_secs(10);
        // In decimal on the command line, in capital hexadecimal in the kernel's tables.
        let table = if tcp { "/proc/net/tcp" } else { "/proc/net/udp" };
        let own = format!("0100007F:{port:04X} 00000000:0000");
        while !std::fs::read_to_string(table)?.contains(&own) {
            ensure!(Instant::now() < deadline, "sockperf's server does not listen");
            sleep(Duration::from_millis(5));
        }
        Ok(server)
    }

    /// Its client, which writes each round trip to `place`.
    pub(super) fn client(
        &self,
        places: Places,
        size: usize,
        seconds: u64,
        place: &Path,
    ) -> Command {
        let mut command = real_time("sockperf", places.near);
        let words = format!(
            "ping-pong -i 127.0.0.1 -p {} -m {size} -t {seconds} --full-rtt --full-log",
            self.port
        );
        command.args(words.split(' ')).arg(place);
        if self.tcp {
            command.arg("--tcp");
        }
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the log of all round trips: `packet, txTime(sec), rxTime(sec), rtt(usec)`.
pub(in crate::bench) fn read(log: &str, all: &mut Histogram<u64>) -> Result<()> {
    let rows = log.lines().skip_while(|line| !line.starts_with("packet, ")).skip(1);
    for row in rows.take_while(|line| !line.starts_with('-')) {
        let micros = row.rsplit(", ").next().context("an empty row")?;
        let micros: f64 = micros.parse().with_context(|| format!("not a time: {row}"))?;
        all.record((micros * 1e3).round() as u64)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_are_read_to_the_nanosecond_and_the_words_around_them_are_not() {
        let mut all = tardy::run::hlog::empty();
        let log = "------\ntest was performed\n------\n\
                   packet, txTime(sec), rxTime(sec), rtt(usec)\n\
                   0, 2.414073831, 2.414149752, 75.921\n1, 2.4, 2.4, 0.5\n------\n";
        read(log, &mut all).unwrap();
        assert_eq!((all.len(), all.min(), all.count_at(75_921)), (2, 500, 1));
        assert!(read("packet, \n0, x, 1, never\n", &mut all).is_err());
    }
}
