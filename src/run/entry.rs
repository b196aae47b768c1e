//! The parts of `run.json` that finding and listing runs need. Of thousands of runs the rest is
//! skipped; for a [`RunHead`] it is not even read.

use std::{
    collections::HashSet,
    fmt,
    io::Read,
    path::{Path, PathBuf},
};

use serde::{
    Deserialize, Serialize,
    de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor},
};

use super::{
    attach::AttachedCommand,
    caveat::Validity,
    document::{LoadRecord, RunParameters, SCHEMA_VERSION, Status},
    entry_setup::EntrySetup,
    facts::Facts,
    files, lock,
    messages::MessageRecord,
    probes::{ProbeRecord, lenient},
    provenance::EntryProvenance,
    reader::Run,
    record_file::{OpenError, Record, read_record, rows},
    series_entry::SeriesEntry,
    series_name::whole_of_response,
    trace::TraceMode,
    writer::names,
};

/// Bytes that are read of a record at first: the head of most is among them.
const HEAD_BYTES: usize = 8 << 10;

/// What tells a run from others; fields as in [`super::Document`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunHead {
    /// Its directory.
    pub path: PathBuf,
    /// Unique, and begins with the time at which the run was planned.
    pub id: String,
    /// What the user calls it.
    pub name: String,
    /// As it was written: `running` may mean crashed.
    pub status: Status,
    /// RFC 3339, UTC.
    pub started_at: String,
    /// Whether it came in a bundle from elsewhere.
    pub is_received: bool,
}

impl RunHead {
    /// Reads the head of the run in `path`, and little more than that.
    ///
    /// # Errors
    /// See [`OpenError`]. Damage behind the head is not noticed.
    pub fn read(path: &Path) -> Result<Self, OpenError> {
        let unread = |source| OpenError::unread(path, source);
        let file = files::open(&path.join(names::RUN)).map_err(unread)?;
        let mut text = Vec::with_capacity(HEAD_BYTES);
        file.take(HEAD_BYTES as u64).read_to_end(&mut text).map_err(unread)?;
        if let Some(head) = HeadParts::of(&text, path) {
            return Ok(head);
        }
        let RunEntry { id, name, provenance, status, started_at, .. } = read_record(path)?.record;
        let is_received = provenance.received;
        Ok(Self { path: path.into(), id, name, status, started_at, is_received })
    }

    /// Whether somebody measures into it now.
    #[must_use]
    pub fn has_maker(&self) -> bool {
        let record = files::open(&self.path.join(names::RUN));
        record.is_ok_and(|record| lock::is_held(&record).unwrap_or(false))
    }

    /// When it started; `None` if the record names no time.
    #[must_use]
    pub fn start(&self) -> Option<jiff::Timestamp> {
        self.started_at.parse().ok()
    }
}

/// The fields of a head, as far as they were found.
#[derive(Default)]
struct HeadParts {
    version: Option<u32>,
    id: Option<String>,
    name: Option<String>,
    status: Option<Status>,
    started_at: Option<String>,
    provenance: EntryProvenance,
}

impl HeadParts {
    /// The head in the beginning of a record; nothing if it is not all in there.
    fn of(text: &[u8], path: &Path) -> Option<RunHead> {
        let mut parts = Self::default();
        // That the rest was left unread is an error to the parser.
        let _ = parts.deserialize(&mut serde_json::Deserializer::from_slice(text));
        let Self { version, id, name, status, started_at, provenance } = parts;
        version.filter(|version| *version <= SCHEMA_VERSION)?;
        Some(RunHead {
            path: path.into(),
            id: id?,
            name: name?,
            status: status?,
            started_at: started_at?,
            is_received: provenance.received,
        })
    }

    const fn is_complete(&self) -> bool {
        self.version.is_some()
            && self.id.is_some()
            && self.name.is_some()
            && self.status.is_some()
            && self.started_at.is_some()
    }
}

impl<'de> DeserializeSeed<'de> for &mut HeadParts {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, record: D) -> Result<(), D::Error> {
        record.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut HeadParts {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<&str>()? {
            match key {
                "schema_version" => self.version = Some(map.next_value()?),
                "id" => self.id = Some(map.next_value()?),
                "name" => self.name = Some(map.next_value()?),
                "provenance" => self.provenance = map.next_value()?,
                "status" => self.status = Some(map.next_value()?),
                "started_at" => self.started_at = Some(map.next_value()?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
            if self.is_complete() {
                return Err(A::Error::custom("all that was looked for is found"));
            }
        }
        Ok(())
    }
}

/// What runs are listed, chosen and followed over time by; fields as in [`super::Document`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEntry {
    schema_version: u32,
    /// Its directory.
    #[serde(skip)]
    pub path: PathBuf,
    /// Unique, and begins with the time at which the run was planned.
    pub id: String,
    /// What the user calls it.
    pub name: String,
    /// How it came here.
    #[serde(default)]
    pub provenance: EntryProvenance,
    /// How far it came; a run that is neither running nor ended has crashed.
    pub status: Status,
    /// The verdict.
    pub validity: Validity,
    /// What measured; early runs may lack some of its parameters.
    #[serde(deserialize_with = "lenient")]
    pub probe: ProbeRecord,
    /// How long it was to measure; early runs have that among the parameters of the probe.
    #[serde(default)]
    pub parameters: RunParameters,
    /// What disturbed the machine meanwhile.
    pub loads: Vec<LoadRecord>,
    /// How its threads ran.
    #[serde(default)]
    pub setup: EntrySetup,
    /// How much was found out about wake-ups.
    #[serde(default)]
    pub trace: EntryTrace,
    /// On what it was measured.
    #[serde(default)]
    pub facts: EntryFacts,
    /// RFC 3339, UTC.
    pub started_at: String,
    /// How long it measured, ns.
    pub duration_ns: u64,
    /// The planned length of an interval of `series.hlog`, ns; 0 in early runs.
    #[serde(default)]
    pub log_interval_ns: i64,
    /// The result of messages; `None` if none are exchanged.
    #[serde(default)]
    pub messages: Option<MessageRecord>,
    /// What became of threads of others that were looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<EntryAttached>,
    series: Vec<SeriesEntry>,
}

/// What a [`RunEntry`] has of threads of others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EntryAttached {
    /// The command that was started; absent if none was.
    pub command: Option<AttachedCommand>,
}

/// What a [`RunEntry`] has of tracing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EntryTrace {
    /// What it came to.
    pub found: TraceMode,
}

/// What a [`RunEntry`] has of the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EntryFacts {
    /// Name of the machine.
    pub hostname: String,
    /// The machine's own id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_id: Option<String>,
    /// `uname -r`
    pub kernel: String,
    /// `uname -m`
    pub architecture: String,
    /// Model name of the first CPU.
    pub cpu_model: Option<String>,
}

impl RunEntry {
    /// Reads what a list shows of the run in `path`. Of a run that has not ended in order all is
    /// read, as [`Run::open`] does.
    ///
    /// # Errors
    /// See [`OpenError`]. Damage in what a list does not show is not noticed.
    pub fn read(path: &Path) -> Result<Self, OpenError> {
        let entry: Self = read_record(path)?.record;
        if entry.status == Status::Running {
            return Run::open(path).map(|run| Self::from(run).shortened());
        }
        Ok(Self { path: path.into(), ..entry }.shortened())
    }

    /// The same with its directory, of one that was kept without it.
    #[must_use]
    pub fn at(self, path: PathBuf) -> Self {
        Self { path, ..self }
    }

    /// Without what nobody asks of many runs.
    fn shortened(mut self) -> Self {
        let whole: Vec<SeriesEntry> = self.whole().cloned().collect();
        self.series = whole;
        self.series.iter_mut().for_each(SeriesEntry::shorten);
        self.loads.iter_mut().for_each(|load| load.proof = None);
        if let Some(messages) = &mut self.messages {
            messages.ends = Vec::new();
        }
        self.attached = self.attached.filter(|attached| attached.command.is_some());
        self
    }

    /// How the command that was attached to failed; nothing if it did not.
    #[must_use]
    pub fn command_failure(&self) -> Option<String> {
        self.attached.as_ref()?.command.as_ref()?.failure()
    }

    /// Whether it ended in order, so that its record will not change.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        !matches!(self.status, Status::Running | Status::Crashed)
    }

    /// The series that lead: of whole latencies, without stages, and without single attached
    /// threads; of attached threads whose responses were measured these, as
    /// [`super::Document::leading`].
    pub fn whole(&self) -> impl Iterator<Item = &SeriesEntry> {
        let is_stage = |series: &SeriesEntry| match self.schema_version {
            // It left that to be seen from the name.
            1 => super::series_name::stage_of(&series.name).is_some(),
            _ => series.stage_of.is_some(),
        };
        let is_part = move |series: &SeriesEntry| is_stage(series) || series.thread_of.is_some();
        let judged = self.judged_names();
        self.series.iter().filter(move |series| match whole_of_response(&series.name) {
            Some(whole) => series.thread_of.is_none() && judged.contains(whole),
            None => !is_part(series) && !judged.contains(series.name.as_str()),
        })
    }

    /// The names of attached threads whose responses were measured.
    fn judged_names(&self) -> HashSet<&str> {
        let is_attached = matches!(self.probe, ProbeRecord::Attach(_));
        let measured = self.series.iter().filter(|own| is_attached && own.count > 0);
        measured.filter_map(|own| whole_of_response(&own.name)).collect()
    }

    /// The largest latency of all series of whole latencies, ns.
    #[must_use]
    pub fn max(&self) -> Option<i64> {
        self.whole().filter_map(|series| series.max).max()
    }

    /// The largest of this percentile over all series of whole latencies, ns.
    #[must_use]
    pub fn percentile(&self, name: &str) -> Option<u64> {
        self.whole().filter_map(|series| series.percentile(name)).max()
    }

    /// When it started; `None` if the record names no time.
    #[must_use]
    pub fn start(&self) -> Option<jiff::Timestamp> {
        self.started_at.parse().ok()
    }
}

impl Record for RunEntry {
    fn schema_version(&self) -> u32 {
        self.schema_version
    }

    fn rows(&self) -> Vec<(usize, &'static str)> {
        rows(self.series.len(), self.messages.as_ref())
    }
}

impl From<Run> for RunEntry {
    fn from(Run { path, document, .. }: Run) -> Self {
        let Facts { hostname, machine_id, kernel, architecture, cpu_model, .. } = document.facts;
        Self {
            schema_version: document.schema_version,
            path,
            id: document.id,
            name: document.name,
            provenance: EntryProvenance {
                program: document.provenance.program,
                version: document.provenance.version,
                received: document.provenance.received,
            },
            status: document.status,
            validity: document.validity,
            probe: document.probe,
            parameters: document.parameters,
            loads: document.loads,
            setup: EntrySetup {
                asked: document.setup.asked.as_ref().map(Into::into),
                found: document.setup.found.into(),
            },
            trace: EntryTrace { found: document.trace.found },
            facts: EntryFacts { hostname, machine_id, kernel, architecture, cpu_model },
            started_at: document.started_at,
            duration_ns: document.duration_ns,
            log_interval_ns: document.log_interval_ns,
            messages: document.messages,
            attached: document.attached.map(|record| EntryAttached { command: record.command }),
            series: document.series.into_iter().map(SeriesEntry::from).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record whose head is followed by `before` bytes of something else.
    fn write(directory: &Path, before: usize, version: u32) -> PathBuf {
        let run = directory.join("r");
        std::fs::create_dir_all(&run).unwrap();
        let text = format!(
            "{{\"schema_version\": {version}, \"id\": \"i\", \"name\": \"n\", \
             \"argv\": [\"{}\"], \"status\": \"complete\", \"validity\": \"valid\", \
             \"probe\": {{\"name\": \"timer\", \"parameters\": {{}}}}, \"loads\": [], \
             \"started_at\": \"2026-01-01T00:00:00.000001Z\", \"duration_ns\": 1, \"series\": [\
             {{\"name\": \"cpu0\", \"max\": 7}}, {{\"name\": \"cpu0/irq\", \"max\": 9}}]}}",
            "x".repeat(before)
        );
        std::fs::write(run.join(names::RUN), text).unwrap();
        run
    }

    #[test]
    fn a_head_is_found_wherever_it_ends() {
        let directory = tempfile::tempdir().unwrap();
        for before in [0, HEAD_BYTES - 200, HEAD_BYTES - 150, HEAD_BYTES, 5 * HEAD_BYTES] {
            let run = write(directory.path(), before, 1);
            let head = RunHead::read(&run).unwrap();
            assert_eq!((head.id.as_str(), head.name.as_str(), head.path), ("i", "n", run));
            assert_eq!(head.started_at, "2026-01-01T00:00:00.000001Z");
        }
    }

    #[test]
    fn what_follows_the_head_is_not_looked_at() {
        let text = br#"{"name": "n", "schema_version": 1, "id": "i", "status": "complete",
            "started_at": "2026-01-01T00:00:00Z", no json at all"#;
        assert_eq!(HeadParts::of(text, Path::new("r")).unwrap().id, "i");
        assert_eq!(HeadParts::of(&text[..text.len() - 40], Path::new("r")), None);
    }

    #[test]
    fn an_entry_has_the_worst_of_whole_latencies() {
        let directory = tempfile::tempdir().unwrap();
        let entry = RunEntry::read(&write(directory.path(), 9, 1)).unwrap();
        assert_eq!((entry.max(), entry.probe.name()), (Some(7), "timer"));
    }

    #[test]
    fn a_newer_record_and_a_damaged_one_are_distinguished() {
        let directory = tempfile::tempdir().unwrap();
        let run = write(directory.path(), 9, SCHEMA_VERSION + 1);
        assert!(matches!(RunHead::read(&run), Err(OpenError::Newer { .. })));
        assert!(matches!(RunEntry::read(&run), Err(OpenError::Newer { .. })));
        std::fs::write(run.join(names::RUN), "{\"schema_version\": 1, \"id\": 7}").unwrap();
        let error = RunHead::read(&run).unwrap_err();
        assert!(matches!(&error, OpenError::Damaged { what, .. } if what.contains("line 1")));
        assert!(matches!(RunHead::read(directory.path()), Err(OpenError::NoRun { .. })));
    }
}
