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

use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tar::{Archive, Builder, Entry, EntryType, Header};

use self::redact::Redaction;
use crate::{
    limits::bundle::{LARGEST, LARGEST_HEAD, LARGEST_TEXT},
    run::{
        Document, Run, RunDirectory, Status, files, names,
        parts::{is_kept_file, kept_files},
    },
};

/// The first file of a bundle, by which it is known.
const HEAD: &str = "tardy-bundle.json";

/// The version of bundles that this tardy writes.
const VERSION: u32 = 1;

/// The mode of the files in an archive.
const MODE: u32 = 0o644;

/// Files that hold what other programs did and said.
const OF_OTHERS: [&str; 3] = [names::RECORDING, names::PROFILE, names::LOAD_LOG];

/// Files whose lines are JSON.
const OF_JSON: [&str; 2] = [names::PEAKS, names::BLAME];

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

/// Where the run of a bundle goes, and what it is called there.
pub(crate) struct BundlePlace {
    pub(crate) directory: RunDirectory,
    pub(crate) name: String,
}

/// Writes a run that has ended; `redacts` takes out host names, arguments, paths and stacks.
///
/// # Errors
/// What the disk says; a run that is being measured, or that crashed.
pub(crate) fn write(run: &Run, redacts: bool, out: &mut dyn io::Write) -> io::Result<()> {
    check_ended(&run.document).map_err(io::Error::other)?;
    let redaction = redacts.then(|| Redaction::of(&run.document));
    let record = match &redaction {
        Some(redaction) => redaction.record(&run.document)?,
        None => run.document.clone(),
    };
    let head = BundleHead {
        bundle_version: VERSION,
        tardy_version: env!("CARGO_PKG_VERSION").into(),
        id: record.id.clone(),
        name: record.name.clone(),
    };
    let mut packed = zstd::stream::write::Encoder::new(out, zstd::DEFAULT_COMPRESSION_LEVEL)?;
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

fn check_ended(document: &Document) -> Result<(), &'static str> {
    match document.status {
        Status::Running => Err("it is being measured; write its bundle when it has ended"),
        Status::Crashed => Err("it crashed; `tardy repair` it first"),
        Status::Complete | Status::Interrupted | Status::StoppedOver | Status::Imported => Ok(()),
    }
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

/// A copy of a file without what must not be handed on.
fn redacted(redaction: &Redaction, name: &Path, from: File) -> io::Result<File> {
    let mut kept = tempfile::tempfile()?;
    let mut out = io::BufWriter::new(&mut kept);
    let is_json = OF_JSON.iter().any(|own| Path::new(own) == name);
    if is_json {
        for value in serde_json::Deserializer::from_reader(BufReader::new(from)).into_iter() {
            let mut value = value?;
            redaction.value(&mut value);
            serde_json::to_writer(&mut out, &value)?;
            out.write_all(b"\n")?;
        }
    } else {
        let mut lines = BufReader::new(from);
        let mut line = String::new();
        while lines.by_ref().take(LARGEST_TEXT).read_line(&mut line)? > 0 {
            // Lines of a log are packed histograms, but its comments.
            let is_packed = name == Path::new(names::SERIES) && !line.starts_with('#');
            let text = if is_packed { line.clone() } else { redaction.text(&line) };
            out.write_all(text.as_bytes())?;
            line.clear();
        }
    }
    out.flush()?;
    drop(out);
    kept.rewind()?;
    Ok(kept)
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
/// none.
///
/// # Errors
/// Anything in it that no run has, and damage: then nothing is left in that place.
pub(crate) fn read(
    from: impl Read,
    place: impl FnOnce(&BundleHead) -> Result<Option<BundlePlace>>,
) -> Result<Option<Document>> {
    let mut archive = Archive::new(from);
    // As they are: names that are longer than a header are not asked for memory.
    let mut entries = archive.entries()?.raw(true);
    let first = entries.next().context("it is empty")?;
    let head: BundleHead = read_json(&mut first?, HEAD, LARGEST_HEAD)?;
    ensure!(
        head.bundle_version <= VERSION,
        "it is a bundle of version {}, and this tardy reads up to {VERSION}; use a newer one",
        head.bundle_version
    );
    let Some(place) = place(&head)? else { return Ok(None) };
    let made = unpack(entries, &place.directory).and_then(|()| renamed(&head, &place));
    made.map(Some).inspect_err(|_| place.directory.discard())
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
        let mut file = below.create(own).with_context(|| said.clone())?;
        io::copy(&mut entry, &mut file).with_context(|| said.clone())?;
        is_whole = name == Path::new(names::RUN);
    }
    ensure!(is_whole, "its end is missing; get it whole");
    Ok(())
}

/// Reads the record as that of any run, and gives it its new name.
fn renamed(head: &BundleHead, place: &BundlePlace) -> Result<Document> {
    let mut document = Run::open(&place.directory.path())?.document;
    ensure!(document.id == head.id, "its record is of another run than its head");
    if let Err(why) = check_ended(&document) {
        bail!("its run cannot be taken: {why}");
    }
    document.name.clone_from(&place.name);
    document.provenance.received = true;
    let mut text = serde_json::to_vec_pretty(&document)?;
    text.push(b'\n');
    place.directory.replace(names::RUN, &text)?;
    Ok(document)
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
