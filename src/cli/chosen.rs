//! The runs that a command line chooses: by name, by what holds them, and by lists of names.

mod skipped;

pub(super) use skipped::{Skipped, SkippedKind};

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    fs,
    io::{self, Read as _},
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::{
    limits::selection::LARGEST_LIST,
    plain::plain,
    run::{Document, Run, Status, names},
    store::{Candidates, PlaceKind, PlacesBelow, Store, StoredPlace, is_last, is_path},
};

/// Lists of runs.
#[derive(Debug, Args)]
pub(super) struct FilesFromFlags {
    /// Also take the runs that FILE names, one on each line; - is standard input
    ///
    /// For more names than a command line can hold. A line is what RUN is: a path, a name, a plan,
    /// a directory of runs. A path may also end in /run.json, as `find -name run.json` prints it.
    #[arg(long, value_name = "FILE")]
    files_from: Option<PathBuf>,
    /// Names in --files-from end with NUL, as `find -print0` writes them
    #[arg(short = '0', long, requires = "files_from")]
    null: bool,
}

/// What a user called the runs.
#[derive(Debug)]
pub(super) struct ChosenNames {
    named: Vec<String>,
    listed: Vec<OsString>,
}

/// What was chosen.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    /// In the order in which they were named, each once.
    pub places: Vec<StoredPlace>,
    /// What could not be read so far.
    pub skipped: Skipped,
}

impl FilesFromFlags {
    /// Whether a list is named.
    pub(super) const fn is_given(&self) -> bool {
        self.files_from.is_some()
    }

    /// All names: those of the command line, and then those of the list, which is read once.
    pub(super) fn names(&self, runs: Vec<String>) -> Result<ChosenNames> {
        Ok(ChosenNames { named: runs, listed: self.listed()? })
    }

    /// The names of the list.
    fn listed(&self) -> Result<Vec<OsString>> {
        let Some(path) = &self.files_from else { return Ok(Vec::new()) };
        let shown = || format!("--files-from {}", path.display());
        let mut text = Vec::new();
        let limit = LARGEST_LIST + 1;
        match path.as_os_str() == "-" {
            true => io::stdin().lock().take(limit).read_to_end(&mut text),
            // It may be a pipe, as of `<(find ...)`.
            false => fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut text)),
        }
        .with_context(shown)?;
        let most = LARGEST_LIST >> 20;
        ensure!(text.len() as u64 <= LARGEST_LIST, "{}: more than {most} MiB of names", shown());
        if !self.null && text.contains(&0) {
            bail!("{}: it holds NUL bytes; add --null if names end with NUL", shown());
        }
        let end = if self.null { 0 } else { b'\n' };
        let names = text.split(|byte| *byte == end).filter(|name| !name.is_empty());
        let names: Vec<OsString> = names.map(|name| OsString::from_vec(name.to_vec())).collect();
        ensure!(!names.is_empty(), "{}: it names no run", shown());
        Ok(names)
    }
}

impl ChosenNames {
    /// Names of the command line alone.
    pub(super) const fn of(named: Vec<String>) -> Self {
        Self { named, listed: Vec::new() }
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<&OsStr> {
        let named = self.named.iter().map(OsStr::new);
        named.chain(self.listed.iter().map(OsString::as_os_str)).collect()
    }

    /// What the names mean: runs, and directories with many. A name of the command line that means
    /// nothing is an error; one of a list is skipped.
    pub(super) fn choose(&self, store: &Store, among: Candidates) -> Result<Chosen> {
        let mut chosen = Chosen::default();
        let mut known = HashSet::new();
        for name in &self.named {
            let found = meant(OsStr::new(name), store, among)?;
            chosen.add(found, &mut known);
        }
        for name in &self.listed {
            match meant(name, store, among) {
                Ok(found) => chosen.add(found, &mut known),
                Err(error) => chosen.skipped.add(SkippedKind::Name, &format!("{error:#}")),
            }
        }
        Ok(chosen)
    }
}

/// What a name means: one thing, or all that is below a directory.
fn meant(name: &OsStr, store: &Store, among: Candidates) -> Result<PlacesBelow> {
    let asked = Path::new(name);
    if is_path(asked) {
        let found = store.place_of(asked).unwrap_or_else(|| asked.into());
        let place = place_of_record(&found).unwrap_or(&found);
        if let Some(place) = StoredPlace::of(place) {
            return Ok(PlacesBelow { places: vec![place], unread: Vec::new() });
        }
        ensure!(
            place.is_dir(),
            "no run \"{}\": no such directory",
            plain(&asked.to_string_lossy())
        );
        return below(place);
    }
    let Some(name) = name.to_str() else {
        bail!("{:?} is not UTF-8; name it by its path, with a slash", name.to_string_lossy());
    };
    let failed = match store.find_any(name, among) {
        Ok(place) => return Ok(PlacesBelow { places: vec![place], unread: Vec::new() }),
        Err(error) => error,
    };
    // A directory of the lab, or a store in the store.
    match store.place_of(asked).filter(|place| !is_last(name) && place.is_dir()) {
        Some(place) => match StoredPlace::of(&place) {
            Some(place) => Ok(PlacesBelow { places: vec![place], unread: Vec::new() }),
            None => below(&place),
        },
        None => Err(failed.into()),
    }
}

/// The directory of a record that is named itself: `x` of `x/run.json`.
fn place_of_record(asked: &Path) -> Option<&Path> {
    asked.parent().filter(|_| asked.file_name() == Some(OsStr::new(names::RUN)) && asked.is_file())
}

fn below(place: &Path) -> Result<PlacesBelow> {
    let shown = plain(&place.display().to_string());
    let found = PlacesBelow::of(place).with_context(|| format!("cannot read {shown}"))?;
    ensure!(!found.places.is_empty() || !found.unread.is_empty(), "no runs below {shown}");
    Ok(found)
}

impl Chosen {
    fn add(&mut self, found: PlacesBelow, known: &mut HashSet<Vec<u8>>) {
        found.unread.iter().for_each(|why| self.skipped.add(SkippedKind::Directory, why));
        for place in found.places {
            let canonical = fs::canonicalize(&place.path).unwrap_or_else(|_| place.path.clone());
            match known.insert(canonical.as_os_str().as_bytes().to_vec()) {
                true => self.places.push(place),
                false => self.skipped.add_repeated(),
            }
        }
    }

    /// Leaves out plans and comparisons whose record cannot be read.
    pub(super) fn without_damaged(mut self) -> Self {
        let Self { places, skipped } = &mut self;
        places.retain(|place| {
            let PlaceKind::Campaign(kind) = place.kind else { return true };
            let damage = place.runs().err();
            damage.iter().for_each(|error| skipped.add(kind.into(), &error.to_string()));
            damage.is_none()
        });
        self
    }

    /// Directories of single runs: those that are chosen, and those of plans, comparisons and the
    /// lab.
    pub(super) fn into_runs(self) -> ChosenRuns {
        let mut runs = ChosenRuns { skipped: self.skipped, ..ChosenRuns::default() };
        for place in self.places {
            let in_lab = place.kind == PlaceKind::Lab;
            let found = place.runs().unwrap_or_else(|error| {
                let kind = match place.kind {
                    PlaceKind::Campaign(kind) => kind.into(),
                    PlaceKind::Run | PlaceKind::Lab => SkippedKind::Directory,
                };
                runs.skipped.add(kind, &error.to_string());
                place.found_runs()
            });
            runs.paths.extend(found.into_iter().map(|path| ChosenPath { path, in_lab }));
        }
        runs.paths.reverse();
        runs
    }
}

/// A run directory.
#[derive(Debug)]
struct ChosenPath {
    path: PathBuf,
    /// In a directory of the lab, where a run without its facts is that of a killed cell.
    in_lab: bool,
}

/// Machine and id.
type RunKey = (String, String);

/// A run directory, by its machine.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct RunOfMachine {
    host: String,
    machine: String,
    id: String,
    /// Of two copies, the one that has ended comes first.
    is_unfinished: bool,
    path: PathBuf,
}

/// The chosen runs, each opened when its turn comes. A run that cannot be opened is skipped, and so
/// is one that came before: copied to another place, or named by its plan too.
#[derive(Debug, Default)]
pub(super) struct ChosenRuns {
    /// The last one is the next.
    paths: Vec<ChosenPath>,
    /// Those that had not ended when they were copied: of two copies the other one is meant, and
    /// so they come last.
    unfinished: Vec<ChosenPath>,
    is_at_unfinished: bool,
    /// Machines and ids.
    known: HashSet<RunKey>,
    /// That of the run which was taken last.
    last: Option<RunKey>,
    skipped: Skipped,
    taken: u64,
}

/// Whether it had not ended when it was copied.
const fn is_unfinished(run: &Run) -> bool {
    matches!(run.document.status, Status::Running | Status::Crashed)
}

impl ChosenRuns {
    /// The next run.
    pub(super) fn next_run(&mut self) -> Option<Run> {
        while let Some(run) = self.next_copy() {
            // Of a hundred thousand machines, two may make the same id in one night.
            let key = (run.document.facts.machine_key(), run.document.id.clone());
            if self.known.insert(key.clone()) {
                self.last = Some(key);
                self.taken += 1;
                return Some(run);
            }
            self.skipped.add_repeated();
        }
        None
    }

    /// The next run, or another copy of one.
    fn next_copy(&mut self) -> Option<Run> {
        loop {
            let Some(chosen) = self.paths.pop() else {
                if self.is_at_unfinished || self.unfinished.is_empty() {
                    return None;
                }
                self.is_at_unfinished = true;
                self.paths.extend(self.unfinished.drain(..).rev());
                continue;
            };
            let run = match Run::open(&chosen.path) {
                Ok(run) => run,
                Err(error) => {
                    self.skipped.add(SkippedKind::Run, &error.to_string());
                    continue;
                }
            };
            if chosen.in_lab && run.document.facts.lab.is_none() {
                continue;
            }
            if is_unfinished(&run) && !self.is_at_unfinished {
                self.unfinished.push(chosen);
                continue;
            }
            return Some(run);
        }
    }

    /// The same runs in the order of their machines, so that those of one follow each other. Only
    /// one is open at a time.
    pub(super) fn by_machine(mut self) -> Self {
        let mut found = Vec::new();
        while let Some(run) = self.next_copy() {
            let is_unfinished = is_unfinished(&run);
            let Document { facts, id, .. } = run.document;
            // Two machines may have one name.
            let machine = facts.machine_key();
            let (host, path) = (facts.hostname, run.path);
            found.push(RunOfMachine { host, machine, id, is_unfinished, path });
        }
        found.sort_unstable_by(|a, b| b.cmp(a));
        // Each is opened once more.
        let again = |own: RunOfMachine| ChosenPath { path: own.path, in_lab: false };
        let paths = found.into_iter().map(again).collect();
        Self { paths, skipped: self.skipped, is_at_unfinished: true, ..Self::default() }
    }

    /// Leaves out a run that was opened, and whose other files cannot be read.
    pub(super) fn skip(&mut self, why: &str) {
        self.taken -= 1;
        // Another copy of it may be whole.
        self.last.take().into_iter().for_each(|key| {
            self.known.remove(&key);
        });
        self.skipped.add(SkippedKind::Run, why);
    }

    /// Says what was left out.
    ///
    /// # Errors
    /// Nothing was taken.
    pub(super) fn tell(&self) -> Result<()> {
        self.skipped.tell(self.taken)
    }
}
