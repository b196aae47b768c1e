//! How a histogram of rtla is printed.

use anyhow::{Result, ensure};
use clap::Args;

use crate::exchange::export::rtla::{RtlaColumn, RtlaStyle};

/// As there (tools/tracing/rtla/src/timerlat_hist.c).
const ENTRIES: u64 = 256;

#[derive(Debug, Args)]
#[command(next_help_heading = "Histogram")]
pub(super) struct HistogramFlags {
    /// Units in a row, 1 to 999999
    #[arg(short, long, value_name = "N", default_value = "1")]
    bucket_size: u64,
    /// Rows, 10 to 9999999
    #[arg(short = 'E', long, value_name = "N", default_value_t = ENTRIES)]
    entries: u64,
    /// Print no heading
    #[arg(long)]
    no_header: bool,
    /// Print no count, minimum, mean and maximum
    #[arg(long)]
    no_summary: bool,
    /// Print no index of rows
    #[arg(long)]
    no_index: bool,
    /// Print rows that count nothing
    #[arg(long)]
    with_zeros: bool,
}

impl Default for HistogramFlags {
    fn default() -> Self {
        Self {
            bucket_size: 1,
            entries: ENTRIES,
            no_header: false,
            no_summary: false,
            no_index: false,
            with_zeros: false,
        }
    }
}

impl HistogramFlags {
    /// How it is printed.
    ///
    /// # Errors
    /// A number that rtla refuses.
    pub(super) fn style(
        &self,
        tool: &'static str,
        columns: Vec<RtlaColumn>,
        unit_ns: u64,
    ) -> Result<RtlaStyle> {
        let Self { bucket_size, entries, .. } = *self;
        ensure!((1..1_000_000).contains(&bucket_size), "-b {bucket_size}: write 1 to 999999");
        ensure!((10..10_000_000).contains(&entries), "-E {entries}: write 10 to 9999999");
        Ok(RtlaStyle {
            tool,
            columns,
            unit_ns,
            bucket: bucket_size,
            entries,
            has_zeros: self.with_zeros,
            has_header: !self.no_header,
            has_summary: !self.no_summary,
            has_index: !self.no_index,
        })
    }
}
