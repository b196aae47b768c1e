//! Reasons against comparing the runs of a matrix with each other.

use std::collections::HashMap;

use super::{Column, MatrixRow};
use crate::run::{AbVerdict, Document, facts::LabFacts};

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
    let mut first = HashMap::new();
    for lab in labs.iter().filter(|lab| lab.mode == "deterministic") {
        let Some(hash) = &lab.sample_hash else { continue };
        if *first.entry(cell_of(lab)).or_insert(hash) != hash {
            remarks.push(format!(
                "Measured twice with different samples: {} under {}, phase offset {}. The programs \
                 in the guest differ: of one tardy's builds, each has its own samples.",
                lab.load, lab.kernel, lab.seed
            ));
        }
    }
    remarks.dedup();
    remarks
}

/// Where a kernel differs from itself: with as many comparisons, one time in twenty by chance.
pub(super) fn controls(columns: &[Column], rows: &[MatrixRow]) -> Vec<String> {
    let is_control = |kernel: usize| columns.get(kernel).is_some_and(|own| own.is_control);
    let mut found = Vec::new();
    for row in rows {
        let own = row.judgements.iter().filter(|judgement| is_control(judgement.kernel));
        let figures = own.flat_map(|judgement| &judgement.figures);
        let apart = figures
            .filter(|own| matches!(own.verdict, AbVerdict::Better | AbVerdict::Worse))
            .map(|own| own.figure.as_str())
            .collect::<Vec<_>>();
        if !apart.is_empty() {
            found.push(format!(
                "{}: the same kernel with other padding differs from itself ({}): a smaller \
                 difference between kernels is not told from none there.",
                row.name,
                apart.join(", ")
            ));
        }
    }
    found
}

/// What decides which samples come out where time is counted.
type CellKey<'a> = ((u32, Option<u64>, u16), [&'a str; 3], &'a [String]);

fn cell_of(lab: &LabFacts) -> CellKey<'_> {
    let phase = (lab.seed, lab.wait_ns, lab.padding);
    (phase, [&lab.kernel, &lab.kernel_hash, &lab.load], &lab.arguments)
}
