//! Completes the record of a guest's run on this machine: what the guest could not know is
//! added, and what it could not know correctly is corrected.

use anyhow::{Context, Result, anyhow, ensure};
use sha2::{Digest, Sha256};

use super::{Cell, hex};
use crate::limits::matrix::MOST_SAMPLES;
use crate::{
    lab::guest::qemu::Emulation,
    run::{Caveat, Document, LabCaveat, LabFacts, Run, RunDirectory, names},
};

/// Digits of a key in the id of a run.
const ID_DIGITS: usize = 12;

/// Caveats of the guest about delays by a host. Counted time has no such delays.
const VIRTUAL_MACHINE: &str = "virtual_machine";

/// Completes the record of the run in `directory`, and returns it.
///
/// # Errors
/// A record or samples that cannot be read or written.
pub fn complete(
    directory: &RunDirectory,
    cell: &Cell,
    facts: LabFacts,
    more: &[LabCaveat],
) -> Result<Document> {
    let mut run = Run::open(&directory.path()).context("the guest's run cannot be used")?;
    let sample_hash = sample_hash(&run)?;
    let counted = cell.counted().is_some();
    if counted {
        run.document.caveats.retain(|caveat| caveat.code != VIRTUAL_MACHINE);
        // The guest's clock and its random numbers are the same in every cell.
        run.document.id = unique(&run.document.id, &facts.key);
    }
    run.document.name = format!("{}, {}, seed {}", cell.load, facts.kernel, cell.seed);
    for kind in caveats(cell, &facts).into_iter().chain(more.iter().cloned()) {
        run.add_caveat(caveat(kind));
    }
    run.document.facts.lab = Some(LabFacts { sample_hash, ..facts });
    write(directory, &run.document)?;
    Ok(run.document)
}

fn caveat(kind: LabCaveat) -> Caveat {
    crate::run::CaveatKind::from(kind).into()
}

/// Caveats that follow from how the guest was run.
fn caveats(cell: &Cell, facts: &LabFacts) -> Vec<LabCaveat> {
    let counted = cell.counted().is_some();
    let mut caveats = Vec::new();
    if counted {
        caveats.push(LabCaveat::CountedTime);
    }
    if counted && cell.cpus > 1 {
        caveats.push(LabCaveat::CpusInTurns { cpus: cell.cpus });
    }
    if facts.mode == mode(Emulation::Plain) {
        caveats.push(LabCaveat::Emulated);
    }
    caveats
}

/// The word for it in `facts.lab.mode`.
#[must_use]
pub const fn mode(emulation: Emulation) -> &'static str {
    match emulation {
        Emulation::Counted { .. } => "deterministic",
        Emulation::Plain => "emulated",
        Emulation::Kvm => "kvm",
    }
}

/// The id with the beginning of the key for its random digits.
fn unique(id: &str, key: &str) -> String {
    let time = id.rsplit_once('-').map_or(id, |(time, _)| time);
    let digits = key.get(..ID_DIGITS).unwrap_or(key);
    format!("{time}-{digits}")
}

/// SHA-256 over all latencies (8 bytes each, the lowest first) of each series behind its name, and
/// then over these sums. Nothing where no samples were kept.
///
/// # Errors
/// A file of samples that is damaged; a record that counts more samples than a guest can take.
pub fn sample_hash(run: &Run) -> Result<Option<String>> {
    if !run.has_samples() {
        return Ok(None);
    }
    let counts = run.document.wakeups().map(|series| series.count);
    let counted = counts.fold(0, u64::saturating_add);
    ensure!(
        counted <= MOST_SAMPLES,
        "{}: its record counts {counted} samples, and no run of a guest has more than \
         {MOST_SAMPLES}",
        run.path.display()
    );
    let begin = |series: &crate::run::SeriesSummary| Sha256::new().chain_update(&series.name);
    let mut sums: Vec<Sha256> = run.document.series.iter().map(begin).collect();
    run.samples(|series, sample| {
        if let Some(sum) = sums.get_mut(series) {
            sum.update(sample.latency_ns.to_le_bytes());
        }
    })
    .map_err(|damage| anyhow!(damage))?;
    let whole =
        sums.into_iter().fold(Sha256::new(), |whole, sum| whole.chain_update(sum.finalize()));
    Ok(Some(hex(&whole.finalize())))
}

fn write(directory: &RunDirectory, document: &Document) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(document)?;
    text.push(b'\n');
    directory.replace(names::RUN, &text).context("cannot write the run's record")
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink, path::Path};

    use super::*;
    use crate::lab::cell::tests::cell;

    #[test]
    fn an_id_keeps_its_time_and_gets_the_keys_digits() {
        let key = "0123456789abcdef".repeat(4);
        let id = unique("20260101-000003.042-1f0c", &key);
        assert_eq!(id, "20260101-000003.042-0123456789ab");
    }

    #[test]
    fn a_record_that_counts_more_samples_than_a_guest_can_take_is_not_believed() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("samples")).unwrap();
        fs::write(place.path().join("samples/000001.spool"), "").unwrap();
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1/timer");
        let mut run = Run::open(&fixture).unwrap();
        run.path = place.path().to_owned();
        run.document.series.truncate(1);
        let mut count = |count| {
            run.document.series[0].count = count;
            sample_hash(&run).map_err(|error| error.to_string())
        };
        let error = count(MOST_SAMPLES + 1).unwrap_err();
        assert!(error.contains("no run of a guest has more than"), "{error}");
        let other = count(MOST_SAMPLES).err().unwrap_or_default();
        assert!(!other.contains("no run of a guest has more than"), "{other}");
    }

    #[test]
    fn a_record_is_completed_where_the_run_is_whatever_takes_its_place() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let directory = RunDirectory::make(&at("run")).unwrap();
        let record = serde_json::json!({
            "schema_version": 1, "id": "1-2", "name": "n", "argv": [], "status": "complete",
            "validity": "valid", "caveats": [], "probe": {"name": "made-up", "parameters": {}},
            "loads": [], "setup": {"asked": null, "found": {}},
            "trace": {"asked": "off", "found": "off"}, "facts": crate::run::Facts::default(),
            "started_at": "", "ended_at": null, "duration_ns": 1, "start_monotonic_ns": 1,
            "series": [],
        });
        fs::write(at("run/run.json"), record.to_string()).unwrap();
        fs::rename(at("run"), at("moved")).unwrap();
        fs::create_dir(at("run")).unwrap();
        fs::write(at("kept"), "kept").unwrap();
        symlink(at("kept"), at("run/run.json")).unwrap();
        complete(&directory, &cell(&[]), LabFacts::default(), &[]).unwrap();
        assert_eq!(fs::read_to_string(at("kept")).unwrap(), "kept");
        assert!(Run::open(&at("moved")).unwrap().document.facts.lab.is_some());
    }

    #[test]
    fn what_counted_time_is_stands_beside_its_figures_and_noise_weakens() {
        use crate::run::Effect;
        let said = |mode: &str, counted: bool, cpus: u8| {
            let mut cell = cell(&[]);
            cell.cpus = cpus;
            if !counted {
                cell.mode = crate::lab::cell::ClockMode::Real;
            }
            let facts = LabFacts { mode: mode.into(), ..LabFacts::default() };
            let caveats = caveats(&cell, &facts).into_iter().map(caveat);
            caveats.map(|caveat| (caveat.code, caveat.effect)).collect::<Vec<_>>()
        };
        let counted = ("counted_time".to_owned(), Effect::Informs);
        assert_eq!(said("deterministic", true, 1), std::slice::from_ref(&counted));
        let turns = ("cpus_in_turns".to_owned(), Effect::Weakens);
        assert_eq!(said("deterministic", true, 2), [counted, turns]);
        assert_eq!(said("emulated", false, 1), [("emulated".to_owned(), Effect::Weakens)]);
        assert_eq!(said("kvm", false, 2), []);
    }
}
