//! Reasons against comparing the runs of a matrix with each other.

use super::Column;
use crate::run::{Document, facts::LabFacts};

/// In words: versions and builds that differ, and cells that gave other samples the second time.
pub(super) fn remarks(columns: &[Column], labs: &[&LabFacts], runs: &[Document]) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut differ = |what: &str, mut values: Vec<String>| {
        values.sort();
        values.dedup();
        if values.len() > 1 {
            remarks.push(format!("Made with different {what}: {}.", values.join(", ")));
        }
    };
    let version = |run: &Document| run.facts.tardy_version.clone();
    differ("versions of tardy", runs.iter().map(version).collect());
    let guests = || labs.iter().filter(|lab| lab.mode != "host");
    differ("versions of QEMU", guests().map(|lab| lab.qemu.clone()).collect());
    let program = |lab: &&&LabFacts| lab.program_hash.get(..8).unwrap_or_default().to_owned();
    differ("builds of tardy", guests().map(|lab| program(&lab)).collect());
    let modes = columns.iter().map(|column| column.mode.clone()).filter(|mode| !mode.is_empty());
    differ("modes", modes.collect());
    for (at, lab) in labs.iter().enumerate().filter(|(_, lab)| lab.mode == "deterministic") {
        let twin = |other: &&&LabFacts| same_cell(other, lab) && other.sample_hash.is_some();
        let Some(other) = labs.iter().take(at).find(twin) else { continue };
        if lab.sample_hash.is_some() && other.sample_hash != lab.sample_hash {
            remarks.push(format!(
                "Measured twice with different samples: {} under {}, start phase {}. The programs \
                 in the guest differ: of one tardy's builds, each has its own samples.",
                lab.load, lab.kernel, lab.seed
            ));
        }
    }
    remarks.dedup();
    remarks
}

fn same_cell(a: &LabFacts, b: &LabFacts) -> bool {
    let of = |lab: &LabFacts| {
        let LabFacts { mode, seed, kernel, kernel_hash, load, arguments, .. } = lab.clone();
        (mode, seed, kernel, kernel_hash, load, arguments)
    };
    of(a) == of(b)
}
