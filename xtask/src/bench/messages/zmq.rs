//! libzmq's own perf tools: `remote_lat` against `local_lat`. No package has them; to get
//! the comparison, build them from libzmq's `perf` directory and put them on the PATH.
//!
//! They print only an average of half round trips.

use std::{
    net::TcpListener,
    path::Path,
    process::{Child, Stdio},
};

use anyhow::{Context, Result};

use super::{Places, process, real_time};

/// `local_lat`, which is killed when this goes.
struct Local(Child);

impl Drop for Local {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The mean of this many round trips, ns, warm-up included as they count it.
pub(super) fn mean_ns(
    transport: &str,
    places: Places,
    size: usize,
    count: u64,
    at: &Path,
) -> Result<f64> {
    let address = if transport == "zmq-ipc" {
        format!("ipc://{}", at.display())
    } else {
        format!("tcp://127.0.0.1:{}", TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
    };
    let words = [address, size.to_string(), count.to_string()];
    let absent = "they are built from libzmq's sources, directory perf";
    let local = process::start(real_time("local_lat", places.far).args(&words));
    let _local = Local(local.context(absent)?);
    let mut remote = real_time("remote_lat", places.near);
    let out = remote.args(&words).stdin(Stdio::null()).output().context(absent)?;
    half_us(&String::from_utf8_lossy(&out.stdout))
        .map(|half| half * 2e3)
        .with_context(|| format!("remote_lat printed no average; {absent}"))
}

/// The mean of half round trips that it printed, us.
pub(in crate::bench) fn half_us(said: &str) -> Option<f64> {
    let line = said.lines().find_map(|line| line.strip_prefix("average latency: "))?;
    line.strip_suffix(" [us]")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_is_read_and_nothing_else() {
        let said = "message size: 1 [B]\nroundtrip count: 100\naverage latency: 28.115 [us]\n";
        assert_eq!((half_us(said), half_us("average latency: x [us]")), (Some(28.115), None));
    }
}
