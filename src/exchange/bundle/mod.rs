//! A run in one file, to hand it on: an archive of tar, packed by zstd, that `tardy import` makes
//! the same run of again.
//!
//! Whoever gets a bundle need not trust its maker: it is read within limits, only files that a run
//! has are taken from it, and nothing that is there already is replaced.

mod redact;

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek as _, Write as _},
    path::Path,
};

use anyhow::{Context as _, Result, anyhow, ensure};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use tar::{Archive, Builder, Entry, EntryType, Header};

use self::redact::Redaction;
use crate::{
    limits::bundle::{LARGEST, LARGEST_HEAD, LARGEST_TEXT},
    plain::cut,
    run::{
        Document, Run, RunDirectory, files, names,
        parts::{is_kept_file, kept_files, stored_record},
    },
};

/// The first file of a bundle, by which it is known.
const HEAD: &str = "tardy-bundle.json";

/// The version of bundles that this tardy writes.
const VERSION: u32 = 1;

/// Characters of the id of a run.
const MIN_ID: usize = 1;
const MAX_ID: usize = 64;

/// The mode of the files in an archive.
const MODE: u32 = 0o644;

/// Files that hold what other programs did and said.
const OF_OTHERS: [&str; 3] = [names::RECORDING, names::PROFILE, names::LOAD_LOG];

/// The first file of a bundle.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BundleHead {
    bundle_version: u32,
    tardy_version: String,
    /// The id of the run.
    pub(crate) id: String,
    /// Its name.
    pub(crate) name: String,
}

/// Where the run of a bundle goes.
pub(crate) struct BundlePlace {
    /// A new directory, under a name that no run has.
    pub(crate) directory: RunDirectory,
    /// What it is called once it is whole.
    pub(crate) name: String,
}

/// Writes a run that has ended, if only by a kill; `redacts` takes out host names, arguments, paths
/// and stacks.
///
/// # Errors
/// What the disk says; a run that is being measured.
pub(crate) fn write(run: &Run, redacts: bool, out: &mut dyn io::Write) -> io::Result<()> {
    let stored = stored_record(&run.path).map_err(io::Error::other)?;
    let stored = stored.ok_or_else(|| {
        io::Error::other("it is being measured; write its bundle when it has ended")
    })?;
    let redaction = redacts.then(|| Redaction::of(&stored));
    let record = match &redaction {
        Some(redaction) => redaction.record(&stored)?,
        None => stored,
    };
    let head = BundleHead {
        bundle_version: VERSION,
        tardy_version: env!("CARGO_PKG_VERSION").into(),
        id: record.id.clone(),
        name: record.name.clone(),
    };
    let mut packed = zstd::stream::write::Encoder::new(out, zstd::DEFAULT_COMPRESSION_LEVEL)?;
    packed.include_checksum(true)?;
    let mut archive = Builder::new(&mut packed);
    append_json(&mut archive, HEAD, &head)?;
    for name in kept_files(&run.path)? {
        let is_of_others = OF_OTHERS.iter().any(|own| Path::new(own) == name);
        let open = files::open(&run.path.join(&name))?;
        match &redaction {
            Some(_) if is_of_others => {}
            Some(redaction) if !name.starts_with(names::SAMPLES) => {
                append(&mut archive, &name, redacted(redaction, &name, open)?)?;
            }
            _ => append(&mut archive, &name, open)?,
        }
    }
    // The last, so that a bundle that was cut has no record.
    append_json(&mut archive, names::RUN, &record)?;
    archive.finish()?;
    drop(archive);
    packed.finish().map(drop)
}

fn append_json(
    archive: &mut Builder<impl io::Write>,
    name: &str,
    value: &impl Serialize,
) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    archive.append_data(&mut header(text.len() as u64), name, &text[..])
}

fn append(archive: &mut Builder<impl io::Write>, name: &Path, file: File) -> io::Result<()> {
    let length = file.metadata()?.len();
    archive.append_data(&mut header(length), name, file.take(length))
}

/// Of a file that is alike whoever made it and when.
fn header(length: u64) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(MODE);
    header.set_size(length);
    header
}

/// A copy of a file without what must not be handed on. What cannot be read is left out, as it is
/// where the run is read.
fn redacted(redaction: &Redaction, name: &Path, from: File) -> io::Result<File> {
    let mut kept = tempfile::tempfile()?;
    let mut out = io::BufWriter::new(&mut kept);
    let mut from = BufReader::new(from);
    if name == Path::new(names::BLAME) {
        if let Ok(mut value) = serde_json::from_reader::<_, Value>(from) {
            redaction.value(&mut value);
            serde_json::to_writer(&mut out, &value)?;
        }
    } else {
        let mut line = Vec::new();
        while from.by_ref().take(LARGEST_TEXT).read_until(b'\n', &mut line)? > 0 {
            let text = redacted_line(redaction, name, &String::from_utf8_lossy(&line));
            out.write_all(text.as_bytes())?;
            line.clear();
        }
    }
    out.flush()?;
    drop(out);
    kept.rewind()?;
    Ok(kept)
}

fn redacted_line(redaction: &Redaction, name: &Path, line: &str) -> String {
    if name == Path::new(names::PEAKS) {
        let Ok(mut peak) = serde_json::from_str::<Value>(line) else { return String::new() };
        redaction.value(&mut peak);
        return format!("{peak}\n");
    }
    // Lines of a log are packed histograms, but its comments.
    let is_log = [names::SERIES, names::LIVE].iter().any(|log| name == Path::new(log));
    match is_log {
        true if line.starts_with('#') => redaction.text(line),
        true => line.to_owned(),
        false => Redaction::line(line),
    }
}

/// Whether an unpacked file is a bundle, by its beginning.
///
/// # Errors
/// What the disk says.
pub(crate) fn is_bundle(from: &mut impl BufRead) -> io::Result<bool> {
    // An archive of tar begins with the name of its first file, which ends with a zero.
    let rest = from.fill_buf()?.strip_prefix(HEAD.as_bytes());
    Ok(rest.is_some_and(|rest| rest.first() == Some(&0)))
}

/// Makes the run of an unpacked bundle in the place that `place` chooses; nothing if it chooses
/// none. The run has its name once it is whole.
///
/// # Errors
/// Anything in it that no run has, and damage: then nothing is left in that place.
pub(crate) fn read(
    mut from: impl Read,
    place: impl FnOnce(&BundleHead) -> Result<Option<BundlePlace>>,
) -> Result<Option<Document>> {
    let mut archive = Archive::new(&mut from);
    // As they are: names that are longer than a header are not asked for memory.
    let mut entries = archive.entries()?.raw(true);
    let first = entries.next().context("it is empty")?;
    let head: BundleHead = read_json(&mut first?, HEAD, LARGEST_HEAD)?;
    ensure!(
        (1..=VERSION).contains(&head.bundle_version),
        "it is a bundle of version {}, and this tardy reads up to {VERSION}; use a newer one",
        head.bundle_version
    );
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    ensure!(
        (MIN_ID..=MAX_ID).contains(&head.id.len()) && head.id.chars().all(is_plain),
        "the id of its run, {:?}, is not one of tardy",
        cut(&head.id, MAX_ID)
    );
    let Some(mut place) = place(&head)? else { return Ok(None) };
    let made = unpack(entries, &place.directory).and_then(|()| {
        // The checksum is behind all of it.
        let rest = end_of(&mut from).context("it is damaged")?;
        ensure!(rest, "something follows its run; import one bundle at a time");
        renamed(&head, &mut place)
    });
    made.map(Some).map_err(|error| {
        place.directory.discard();
        let held = format!("{}/", place.directory.path().display());
        anyhow!(format!("{error:#}").replace(&held, ""))
    })
}

/// Writes its files.
fn unpack<'a, R: Read + 'a>(
    entries: impl Iterator<Item = io::Result<Entry<'a, R>>>,
    directory: &RunDirectory,
) -> Result<()> {
    let (mut left, mut samples, mut is_whole) = (LARGEST, None, false);
    for entry in entries {
        let mut entry = entry.context("it is damaged")?;
        let name = entry.path()?.into_owned();
        let said = name.display().to_string();
        ensure!(
            entry.header().entry_type() == EntryType::Regular && is_kept_file(&name) && !is_whole,
            "{said:?} is in it, which does not belong to a run; nothing was imported"
        );
        left = left.checked_sub(entry.size()).with_context(|| {
            format!("it unpacks to more than {} GiB; nothing was imported", LARGEST >> 30)
        })?;
        let below = match name.strip_prefix(names::SAMPLES) {
            Err(_) => directory,
            Ok(_) => {
                if samples.is_none() {
                    samples = Some(directory.subdirectory(names::SAMPLES)?);
                }
                samples.as_ref().context("it is damaged")?
            }
        };
        let own = name.file_name().context("it is damaged")?;
        let mut file = below.create(own).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => anyhow!("{said} is in it twice"),
            _ => anyhow::Error::from(error).context(said.clone()),
        })?;
        io::copy(&mut entry, &mut file).with_context(|| said.clone())?;
        is_whole = name == Path::new(names::RUN);
    }
    ensure!(is_whole, "its end is missing; get it whole");
    Ok(())
}

/// Whether nothing but zeros, which fill up an archive, is left to read.
fn end_of(from: &mut impl Read) -> io::Result<bool> {
    let mut buffer = [0; 8 << 10];
    loop {
        let count = from.read(&mut buffer)?;
        match buffer.get(..count) {
            None | Some([]) => return Ok(true),
            Some(read) if read.iter().any(|byte| *byte != 0) => return Ok(false),
            Some(_) => {}
        }
    }
}

/// Reads the record as that of any run, and gives it its new name.
fn renamed(head: &BundleHead, place: &mut BundlePlace) -> Result<Document> {
    let path = place.directory.path();
    let run = Run::open(&path)?;
    ensure!(run.document.id == head.id, "its record is of another run than its head");
    let has_log = path.join(names::SERIES).is_file();
    ensure!(
        has_log || run.document.series.is_empty(),
        "its histograms, {}, are missing",
        names::SERIES
    );
    let mut stored = stored_record(&path)?.context("it is being written")?;
    stored.name.clone_from(&place.name);
    stored.provenance.received = true;
    let mut text = serde_json::to_vec_pretty(&stored)?;
    text.push(b'\n');
    place.directory.replace(names::RUN, &text)?;
    place.directory.take_name(&place.name)?;
    Ok(Run::open(&place.directory.path())?.document)
}

fn read_json<T: DeserializeOwned>(
    entry: &mut Entry<'_, impl Read>,
    name: &str,
    most: u64,
) -> Result<T> {
    ensure!(entry.size() <= most, "{name} in it is too large");
    let mut text = Vec::new();
    entry.read_to_end(&mut text)?;
    serde_json::from_slice(&text).with_context(|| format!("{name} in it is damaged"))
}

#[cfg(test)]
mod tests;
