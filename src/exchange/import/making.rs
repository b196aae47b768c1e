//! A sheet becomes a run directory.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{imported_data::ImportedData, sampled};
use crate::{
    analysis::steadiness::found_in_log,
    limits::log::MOST_SAMPLES,
    run::{
        CaveatKind, Document, FileLoss, FoundSetup, ImportCaveat, Incident, IntervalOf, LoadRecord,
        Origin, OtherProbe, ProbeRecord, Provenance, Run, RunParameters, RunWriter, SCHEMA_VERSION,
        SetupRecord, Status, TraceRecord, UNKNOWN_LOAD, caveat, figures::summarize_figure,
        hlog::IntervalSpan, names, probes::SAME_AS, provenance::CONTENT_SHA256, summary::summarize,
    },
};

/// What a run is called and where it goes.
#[derive(Debug)]
pub(crate) struct ImportedRun<'a> {
    /// Its directory, which does not exist yet.
    pub(crate) place: &'a Path,
    pub(crate) id: String,
    pub(crate) name: String,
    /// The command line of the import.
    pub(crate) argv: Vec<String>,
    /// When the file was written, for where it does not say when the run began.
    pub(crate) written_at: Option<Timestamp>,
    /// What the file is called: its name, or that of an archive with the path within it.
    pub(crate) file: PathBuf,
}

/// Writes the run; where that fails nothing is left.
pub(crate) fn make(sheet: &ImportedData, run: ImportedRun<'_>) -> Result<Document> {
    for series in &sheet.series {
        let (name, count) = (&series.head.name, series.totals.count);
        ensure!(
            count <= MOST_SAMPLES,
            "series {name} counts {count} samples, and no machine makes more than 2^53: the \
             counts of this file are damaged"
        );
    }
    let document = document(sheet, &run);
    let mut writer = RunWriter::create(run.place, &document, document.parameters.raw)?;
    let written = fill(&mut writer, sheet, &document);
    if let Err(error) = written {
        writer.directory().discard();
        return Err(error).with_context(|| format!("{} cannot be written", run.place.display()));
    }
    let run = Run::of(writer.directory().path(), document);
    let document = run.record_with(found_in_log(&run));
    writer.finish(&document).context("the record cannot be written")?;
    Ok(document)
}

fn fill(writer: &mut RunWriter, sheet: &ImportedData, document: &Document) -> Result<()> {
    writer.begin(document)?;
    if sheet.times_ns().is_some() {
        sampled::write(sheet, writer, document.log_interval_ns)?;
    } else if sheet.intervals.is_empty() {
        one_interval(writer, sheet, document)?;
    } else {
        sheet.intervals.read(|interval| writer.append_intervals(&[interval]))?;
    }
    let mut lines = Vec::new();
    for peak in &sheet.peaks {
        serde_json::to_writer(&mut lines, peak)?;
        lines.push(b'\n');
    }
    if !lines.is_empty() {
        writer.append(names::PEAKS, &lines)?;
    }
    writer.sync().map_err(|unsynced| unsynced.error)?;
    Ok(())
}

/// All that a histogram of the whole run holds.
fn one_interval(writer: &mut RunWriter, sheet: &ImportedData, document: &Document) -> Result<()> {
    for (number, series) in sheet.series.iter().enumerate() {
        let span = IntervalSpan {
            tag: series.head.name.clone(),
            start_s: 0.0,
            length_s: document.duration_ns as f64 / 1e9,
        };
        let counts = sheet.counts(number);
        writer.append_intervals(&[IntervalOf { span, counts, totals: series.totals }])?;
    }
    Ok(())
}

fn document(sheet: &ImportedData, run: &ImportedRun<'_>) -> Document {
    let started = sheet.started_at.or(run.written_at).unwrap_or_default();
    let duration_ns = sheet.duration_ns.unwrap_or(0);
    let ended = started.checked_add(jiff::SignedDuration::from_nanos_i128(duration_ns.into()));
    let series = sheet.series.iter().enumerate();
    let series = series.map(|(number, own)| {
        let mut summary = summarize(&own.head, &sheet.counts(number), &own.totals);
        summary.mean = summary.mean.filter(|_| !sheet.without_mean.contains(&number));
        summary
    });
    let kinds = sheet.caveats.iter().cloned().chain(few_samples(sheet)).chain(missing(sheet));
    let smis =
        (sheet.smis > 0).then_some(CaveatKind::Happened(Incident::SmiSeen { count: sheet.smis }));
    let kinds = kinds.map(CaveatKind::Imported).chain(smis);
    let mut caveats: Vec<caveat::Caveat> = kinds.map(Into::into).collect();
    caveat::sort(&mut caveats);
    Document {
        schema_version: SCHEMA_VERSION,
        id: run.id.clone(),
        name: run.name.clone(),
        argv: run.argv.clone(),
        provenance: Provenance::of(Origin::Imported, &sheet.program, &sheet.version),
        status: Status::Imported,
        validity: caveat::verdict(&caveats),
        caveats,
        probe: ProbeRecord::Other(OtherProbe {
            name: sheet.program.clone(),
            parameters: parameters(sheet, run),
        }),
        parameters: RunParameters { raw: sheet.times_ns().is_some(), ..RunParameters::default() },
        loads: vec![LoadRecord {
            name: UNKNOWN_LOAD.into(),
            parameters: Map::new(),
            proof: None,
            ended: None,
        }],
        setup: SetupRecord { asked: None, found: FoundSetup::default() },
        trace: TraceRecord::default(),
        facts: sheet.facts.clone(),
        started_at: format!("{started:.6}"),
        ended_at: ended.ok().map(|ended| format!("{ended:.6}")),
        duration_ns,
        log_interval_ns: log_interval_ns(sheet, duration_ns),
        start_monotonic_ns: 0,
        machine: None,
        conditions: None,
        messages: None,
        attached: None,
        series: series.collect(),
        figures: sheet.figures.iter().map(|(head, own)| summarize_figure(head, own)).collect(),
        without_host: None,
    }
}

/// Of samples with times a thousandth of the run, as [`RunParameters::log_interval_ns`] has it;
/// else all of it.
fn log_interval_ns(sheet: &ImportedData, duration_ns: u64) -> i64 {
    let duration_ns = i64::try_from(duration_ns).unwrap_or(i64::MAX);
    match sheet.times_ns() {
        Some(_) => RunParameters { duration_ns: Some(duration_ns), ..RunParameters::default() }
            .log_interval_ns(0),
        None => duration_ns,
    }
}

fn parameters(sheet: &ImportedData, run: &ImportedRun<'_>) -> Map<String, Value> {
    let mut parameters = sheet.parameters.clone();
    let file = run.file.to_string_lossy().into_owned();
    let texts = [
        (SAME_AS, sheet.same_as.map(str::to_owned)),
        ("command", Some(sheet.command.clone()).filter(|command| !command.is_empty())),
        ("file", Some(file).filter(|file| !file.is_empty())),
        (CONTENT_SHA256, Some(sheet.content_sha256.clone())),
    ];
    for (name, text) in texts {
        parameters.extend(text.map(|text| (name.to_owned(), Value::String(text))));
    }
    parameters
}

/// With fewer samples than this a series is questionable.
const FEW_SAMPLES: u64 = 10;

/// The series with the fewest samples, where these are few.
fn few_samples(sheet: &ImportedData) -> Option<ImportCaveat> {
    let whole = sheet.series.iter().filter(|own| !own.head.is_stage() && own.totals.count > 0);
    let fewest = whole.min_by_key(|own| own.totals.count)?;
    let (series, samples) = (fewest.head.name.clone(), fewest.totals.count);
    let loss = FileLoss::FewSamples { series, samples };
    (samples < FEW_SAMPLES).then_some(ImportCaveat::Loss(loss))
}

/// What a run has and the file does not say.
fn missing(sheet: &ImportedData) -> Option<ImportCaveat> {
    let facts = &sheet.facts;
    let has_timeless = sheet.peaks.iter().any(|peak| peak.at_ns.is_none());
    let is_wakeup = sheet.same_as == Some("timer");
    let all = [
        (sheet.started_at.is_none(), "when it began (the time of the file is taken)"),
        (sheet.duration_ns.is_none(), "how long it lasted"),
        (facts.hostname.is_empty(), "the machine"),
        (facts.kernel.is_empty(), "the kernel"),
        (true, "what ran beside it"),
        (true, "idle states, frequency and policy"),
        (has_timeless, "when its late samples were"),
        (is_wakeup, "how many periods were missed"),
    ];
    let facts = all.into_iter().filter(|(is_missing, _)| *is_missing).map(|(_, what)| what);
    Some(ImportCaveat::FactsMissing { program: sheet.program.clone(), facts: facts.collect() })
}
