//! Which figures there are: their names and units, and what the user chose of them.

use serde::{Deserialize, Serialize};

use crate::run::{FigureHead, FigureUnit};

/// What a figure is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    Pipe,
    Unix,
    Tcp,
    FileRead,
    MmapRead,
    MemoryRead,
    MemoryWrite,
    MemoryCopy,
    NullCall,
    ReadCall,
    WriteCall,
    StatCall,
    OpenCall,
    SignalInstall,
    Signal,
    ProtectionFault,
    PageFault,
    Mmap,
    Select,
    Epoll,
    Switch,
    Fork,
    Exec,
    Shell,
}

/// How figures of a kind are multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// One figure.
    Nothing,
    /// One for each size that was asked for.
    Size,
    /// One for each of these numbers of descriptors.
    Descriptors,
    /// One for each number of processes and each working set.
    Processes,
}

const DESCRIPTORS: [u32; 3] = [10, 100, 500];
const PROCESSES: [u32; 3] = [2, 8, 16];
const WORKING_SETS: [u64; 3] = [0, 16 << 10, 64 << 10];

/// All kinds in the order in which they are measured: name, kind, and what there is one of it for.
const KINDS: [(&str, Kind, By); 24] = [
    ("pipe", Kind::Pipe, By::Size),
    ("unix", Kind::Unix, By::Size),
    ("tcp", Kind::Tcp, By::Size),
    ("file_read", Kind::FileRead, By::Size),
    ("mmap_read", Kind::MmapRead, By::Nothing),
    ("memory_read", Kind::MemoryRead, By::Size),
    ("memory_write", Kind::MemoryWrite, By::Size),
    ("memory_copy", Kind::MemoryCopy, By::Size),
    ("null_call", Kind::NullCall, By::Nothing),
    ("read_call", Kind::ReadCall, By::Nothing),
    ("write_call", Kind::WriteCall, By::Nothing),
    ("stat_call", Kind::StatCall, By::Nothing),
    ("open_call", Kind::OpenCall, By::Nothing),
    ("signal_install", Kind::SignalInstall, By::Nothing),
    ("signal", Kind::Signal, By::Nothing),
    ("protection_fault", Kind::ProtectionFault, By::Nothing),
    ("page_fault", Kind::PageFault, By::Nothing),
    ("mmap", Kind::Mmap, By::Nothing),
    ("select", Kind::Select, By::Descriptors),
    ("epoll", Kind::Epoll, By::Descriptors),
    ("switch", Kind::Switch, By::Processes),
    ("fork", Kind::Fork, By::Nothing),
    ("exec", Kind::Exec, By::Nothing),
    ("shell", Kind::Shell, By::Nothing),
];

/// One figure that is to be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedFigure {
    pub(super) kind: Kind,
    /// Bytes of a message, of a buffer or of a working set; 0 without one.
    pub(super) bytes: u64,
    /// Descriptors or processes; 0 without any.
    pub(super) count: u32,
}

impl PlannedFigure {
    /// The figures of `only`, all where that is empty, at these sizes.
    ///
    /// # Errors
    /// A word that names none, with all that there are.
    pub fn chosen(only: &[String], sizes: &[u64]) -> Result<Vec<Self>, String> {
        let all: Vec<Self> = KINDS.iter().flat_map(|(_, kind, by)| of(*kind, *by, sizes)).collect();
        let is_meant = |figure: &Self, word: &str| {
            let name = figure.name();
            name == word || name.strip_prefix(word).is_some_and(|rest| rest.starts_with('/'))
        };
        for word in only {
            if !all.iter().any(|figure| is_meant(figure, word)) {
                let names = KINDS.map(|(name, ..)| name).join(", ");
                return Err(format!("no figure is called {word:?}; there are {names}"));
            }
        }
        let chosen = |figure: &Self| only.iter().any(|word| is_meant(figure, word));
        Ok(all.into_iter().filter(|figure| only.is_empty() || chosen(figure)).collect())
    }

    /// `pipe/64KiB`, `switch/8/16KiB`, `fork`.
    pub(super) fn name(&self) -> String {
        let own = KINDS.iter().find(|(_, kind, _)| *kind == self.kind);
        let mut name = own.map_or("", |(name, ..)| name).to_owned();
        if self.count > 0 {
            name.push_str(&format!("/{}", self.count));
        }
        if self.bytes > 0 {
            name.push_str(&format!("/{}", size(self.bytes)));
        }
        name
    }

    /// Its name and its unit.
    pub(super) fn head(&self) -> FigureHead {
        let is_time = self.kind as usize >= Kind::NullCall as usize;
        let unit = match is_time {
            true => FigureUnit::Microseconds,
            false => FigureUnit::MegabytesPerSecond,
        };
        FigureHead { name: self.name(), unit }
    }

    /// Whether it needs a file.
    pub(super) const fn has_file(&self) -> bool {
        matches!(
            self.kind,
            Kind::FileRead | Kind::MmapRead | Kind::ProtectionFault | Kind::PageFault | Kind::Mmap
        )
    }
}

fn of(kind: Kind, by: By, sizes: &[u64]) -> Vec<PlannedFigure> {
    let one = |bytes, count| PlannedFigure { kind, bytes, count };
    match by {
        By::Nothing => vec![one(0, 0)],
        By::Size => sizes.iter().map(|bytes| one(*bytes, 0)).collect(),
        By::Descriptors => DESCRIPTORS.map(|count| one(0, count)).to_vec(),
        By::Processes => {
            let sets = |count| WORKING_SETS.map(|bytes| one(bytes, count));
            PROCESSES.into_iter().flat_map(sets).collect()
        }
    }
}

/// `64KiB`, `512B`.
fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes.is_multiple_of(1 << 20) => format!("{}MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{}KiB", bytes >> 10),
        _ => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names(only: &[&str], sizes: &[u64]) -> Result<Vec<String>, String> {
        let only: Vec<String> = only.iter().map(|word| (*word).to_owned()).collect();
        let chosen = PlannedFigure::chosen(&only, sizes)?;
        Ok(chosen.iter().map(PlannedFigure::name).collect())
    }

    #[test]
    fn every_figure_has_a_name_of_its_own_and_a_unit() {
        let all = names(&[], &[512, 64 << 10, 1 << 20]).unwrap();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        for name in ["pipe/64KiB", "memory_copy/1MiB", "tcp/512B", "switch/16/64KiB", "switch/2"] {
            assert!(all.iter().any(|known| known == name), "{name} in {all:?}");
        }
        for figure in PlannedFigure::chosen(&[], &[4096]).unwrap() {
            let FigureHead { name, unit } = figure.head();
            let moves = ["pipe", "unix", "tcp", "file_read", "mmap_read", "memory_"];
            let is_rate = moves.iter().any(|word| name.starts_with(word));
            assert_eq!(unit.as_str(), if is_rate { "MB/s" } else { "us" }, "{name}");
        }
    }

    #[test]
    fn a_word_chooses_all_of_its_kind_or_one_and_an_unknown_one_is_refused() {
        assert_eq!(names(&["pipe"], &[4096, 512]).unwrap(), ["pipe/4KiB", "pipe/512B"]);
        assert_eq!(names(&["switch/8"], &[]).unwrap().len(), 3);
        assert_eq!(names(&["fork", "mmap"], &[4096]).unwrap(), ["mmap", "fork"]);
        let error = names(&["pip"], &[4096]).unwrap_err();
        assert!(error.starts_with("no figure is called \"pip\"; there are pipe, unix"), "{error}");
    }
}
