//! Options of the bandwidth probe.

use std::path::PathBuf;

use anyhow::{Result, anyhow, ensure};
use clap::Args;

use super::{Bandwidth, PlannedFigure};
use crate::{
    probes::{
        message_ends::{check_policy, places},
        request::{
            MeasuredCpus, PlannedProbe, ProbeFlags, ProbeRequest, SharedOptions, Unsupported,
        },
    },
    setup::threads::ThreadConfig,
    sys::sched::Policy,
    units::{ByteSize, many},
};

/// The largest message or buffer, bytes.
const MOST_BYTES: u64 = 256 << 20;

/// About the time from one repeat of a figure to the next, where nobody knows how many there are.
const ROUND_NS: i64 = 50_000_000;

const DEFAULT_SIZES: [u64; 2] = [64 << 10, 1 << 20];

const DEFAULT_DIRECTORY: &str = "/var/tmp";

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Probe")]
pub(in crate::probes) struct BandwidthFlags {
    /// Figures to measure, as pipe,switch/2,fork [default: all]
    ///
    /// pipe, unix, tcp, file_read, mmap_read, memory_read, memory_write, memory_copy; null_call,
    /// read_call, write_call, stat_call, open_call, signal_install, signal, protection_fault,
    /// page_fault, mmap, select, epoll, switch, fork, exec, shell.
    /// docs/reference/probes/classics.md defines each.
    #[arg(long, value_name = "FIGURES", value_delimiter = ',')]
    only: Vec<String>,
    /// Sizes of messages and buffers, as 4KiB,64KiB [default: 64KiB,1MiB]
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    sizes: Vec<ByteSize>,
    /// Directory for the file that file_read and mmap_read read [default: /var/tmp]
    ///
    /// The file has no name and at least 16 MiB.
    #[arg(long, value_name = "DIR")]
    file_dir: Option<PathBuf>,
}

impl ProbeFlags for BandwidthFlags {
    const UNSUPPORTED: &'static [Unsupported] =
        &[Unsupported { options: &["raw", "stop_over"], why: "it has no latencies" }];
}

impl ProbeRequest for BandwidthFlags {
    /// Its threads never sleep.
    fn usual_policy(&self) -> Policy {
        Policy::Other
    }

    fn cpus(&self, shared: &SharedOptions<'_>) -> Result<MeasuredCpus> {
        places("bandwidth", shared, true)
    }

    fn check_policy(
        &self,
        policy: Policy,
        _: u32,
        _: &MeasuredCpus,
        _: &SharedOptions<'_>,
    ) -> Result<()> {
        check_policy("bandwidth", policy)
    }

    fn plan(
        &self,
        terms: ThreadConfig,
        cpus: &MeasuredCpus,
        _: &SharedOptions<'_>,
    ) -> Result<PlannedProbe> {
        Ok(PlannedProbe::new(self.bandwidth(terms, cpus.far)?, ROUND_NS))
    }
}

impl BandwidthFlags {
    /// The probe that these flags describe.
    ///
    /// # Errors
    /// Names the flag that cannot be used, and the remedy.
    fn bandwidth(&self, near: ThreadConfig, far_cpu: u32) -> Result<Bandwidth> {
        let sizes: Vec<u64> = match self.sizes.as_slice() {
            [] => DEFAULT_SIZES.to_vec(),
            sizes => sizes.iter().map(|ByteSize(bytes)| *bytes).collect(),
        };
        for (place, bytes) in sizes.iter().enumerate() {
            ensure!(
                (1..=MOST_BYTES).contains(bytes),
                "--sizes: a size of {} makes no sense here; sizes are from 1B to 256MiB",
                many(*bytes, "byte")
            );
            let twice = sizes.iter().take(place).any(|other| other == bytes);
            ensure!(
                !twice,
                "--sizes: {} are named twice; name each size once",
                many(*bytes, "byte")
            );
        }
        let figures = PlannedFigure::chosen(&self.only, &sizes);
        let figures = figures.map_err(|why| anyhow!("--only: {why}"))?;
        let directory = self.file_dir.clone().unwrap_or_else(|| DEFAULT_DIRECTORY.into());
        Ok(Bandwidth { figures, near, far_cpu, directory })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(flags: &BandwidthFlags) -> Result<Bandwidth> {
        let near = ThreadConfig { policy: Policy::Other, priority: 0, cpu: 0, slack_ns: 1 };
        flags.bandwidth(near, 1)
    }

    #[test]
    fn sizes_that_make_no_sense_and_unknown_figures_are_refused_by_name() {
        let sizes = |sizes: &[u64]| BandwidthFlags {
            sizes: sizes.iter().map(|bytes| ByteSize(*bytes)).collect(),
            ..BandwidthFlags::default()
        };
        for (wrong, why) in [
            (&[0][..], "0 bytes makes no sense"),
            (&[1 << 30][..], "from 1B to 256MiB"),
            (&[4096, 4096][..], "4,096 bytes are named twice"),
        ] {
            let error = planned(&sizes(wrong)).unwrap_err().to_string();
            assert!(error.starts_with("--sizes") && error.contains(why), "{error}");
        }
        assert!(planned(&sizes(&[1, MOST_BYTES])).is_ok());
        let flags = BandwidthFlags { only: vec!["pip".into()], ..BandwidthFlags::default() };
        let error = planned(&flags).unwrap_err().to_string();
        assert!(error.starts_with("--only: no figure is called \"pip\""), "{error}");
    }

    #[test]
    fn without_flags_all_is_measured() {
        let all = planned(&BandwidthFlags::default()).unwrap();
        assert!(all.figures.len() > 40, "{}", all.figures.len());
    }
}
