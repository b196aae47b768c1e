//! Names of the functions of programs: where an address of a process lies in a file, asked while it
//! lives, and the function that lies there, by blazesym from the file's own symbol table.
//!
//! Of a process that has ended before it is asked about, nothing is known. A file that was replaced
//! since, or that lies in another mount namespace, is not read: its device and inode differ.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File},
    io::Read as _,
    os::unix::fs::MetadataExt as _,
};

use blazesym::symbolize::{
    Input, Symbolized, Symbolizer,
    source::{Elf, Source},
};
use rustix::fs::{major, minor};

/// A longer list of mappings is read so far.
const LONGEST_MAPS: u64 = 8 << 20;
/// The number of processes beyond which all are forgotten, and asked about again.
const MOST_PROCESSES: usize = 4_096;
/// Files beyond these are one without a name.
const MOST_FILES: usize = 9_000;

/// A file that is mapped as code, or what the kernel calls it: `[vdso]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MappedFile {
    /// Its path, as the kernel says; empty where nothing is known.
    pub path: String,
    device: (u32, u32),
    inode: u64,
}

/// Where code of a process lies: number of the file, and the offset in it.
pub type CodePlace = (u32, u64);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    file: u32,
}

/// What processes have mapped as code.
#[derive(Debug)]
pub struct CodeMaps {
    files: Vec<MappedFile>,
    numbers: HashMap<MappedFile, u32>,
    processes: HashMap<(u32, String), Vec<Mapping>>,
    /// Asked about since the last [`CodeMaps::refresh`].
    fresh: HashSet<(u32, String)>,
}

impl Default for CodeMaps {
    fn default() -> Self {
        let unknown = MappedFile { path: String::new(), device: (0, 0), inode: 0 };
        Self {
            numbers: [(unknown.clone(), 0)].into(),
            files: vec![unknown],
            processes: HashMap::new(),
            fresh: HashSet::new(),
        }
    }
}

impl CodeMaps {
    /// Processes may have mapped more since: an address that is in no mapping is asked for again,
    /// once.
    pub fn refresh(&mut self) {
        self.fresh.clear();
        if self.processes.len() > MOST_PROCESSES {
            self.processes.clear();
        }
    }

    /// The files, by their numbers.
    #[must_use]
    pub fn files(&self) -> &[MappedFile] {
        &self.files
    }

    /// Where an address of process `pid` lies; `name` is the sampled thread's, which changes where
    /// the process becomes another program. File 0 where nothing is known.
    pub fn place(&mut self, pid: u32, name: &str, address: u64) -> CodePlace {
        let key = (pid, name.to_owned());
        let known = self.processes.get(&key).and_then(|maps| find(maps, address));
        if let Some(found) = known {
            return found;
        }
        if self.fresh.contains(&key) {
            return (0, 0);
        }
        let maps = self.read(pid);
        let found = find(&maps, address);
        self.processes.insert(key.clone(), maps);
        self.fresh.insert(key);
        found.unwrap_or((0, 0))
    }

    fn read(&mut self, pid: u32) -> Vec<Mapping> {
        let mut text = Vec::new();
        let file = File::open(format!("/proc/{pid}/maps"));
        let read = file.and_then(|file| file.take(LONGEST_MAPS).read_to_end(&mut text));
        if read.is_err() {
            return Vec::new();
        }
        let text = String::from_utf8_lossy(&text);
        text.lines().filter_map(|line| self.mapping(line)).collect()
    }

    /// "55d0c0-55d0d0 r-xp 00002000 fe:00 1234    /usr/bin/cat"
    fn mapping(&mut self, line: &str) -> Option<Mapping> {
        let mut rest = line;
        let mut word = || {
            let (word, after) = rest.trim_start().split_once(' ').unwrap_or((rest.trim(), ""));
            rest = after;
            word
        };
        let (range, rights, offset, device, inode) = (word(), word(), word(), word(), word());
        if !rights.contains('x') {
            return None;
        }
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let (start, end) = range.split_once('-')?;
        let (major, minor) = device.split_once(':')?;
        let device = (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
        let path = match rest.trim() {
            "" => "[anonymous]",
            path => path,
        };
        let file = MappedFile { path: path.to_owned(), device, inode: inode.parse().ok()? };
        let file = self.number(file);
        Some(Mapping { start: hex(start)?, end: hex(end)?, offset: hex(offset)?, file })
    }

    fn number(&mut self, file: MappedFile) -> u32 {
        if let Some(known) = self.numbers.get(&file) {
            return *known;
        }
        let Some(number) = u32::try_from(self.files.len()).ok().filter(|_| self.has_room()) else {
            return 0;
        };
        self.files.push(file.clone());
        self.numbers.insert(file, number);
        number
    }

    const fn has_room(&self) -> bool {
        self.files.len() < MOST_FILES
    }
}

fn find(maps: &[Mapping], address: u64) -> Option<CodePlace> {
    let after = maps.partition_point(|map| map.start <= address);
    let map = maps.get(after.checked_sub(1)?)?;
    (address < map.end).then(|| (map.file, address - map.start + map.offset))
}

impl MappedFile {
    /// Whether what now has this name is what was mapped.
    fn is_there(&self) -> bool {
        self.path.starts_with('/')
            && fs::metadata(&self.path).is_ok_and(|about| {
                let device = (major(about.dev()), minor(about.dev()));
                about.is_file() && about.ino() == self.inode && device == self.device
            })
    }
}

/// Names functions of files.
#[derive(Debug)]
pub struct FunctionNames(Symbolizer);

impl Default for FunctionNames {
    fn default() -> Self {
        let builder = Symbolizer::builder().enable_code_info(false).enable_inlined_fns(false);
        Self(builder.build())
    }
}

impl FunctionNames {
    /// The function at each offset of a file; `None` if the file names none there.
    #[must_use]
    pub fn of(&self, file: &MappedFile, offsets: &[u64]) -> Vec<Option<String>> {
        let unnamed = || vec![None; offsets.len()];
        if !file.is_there() {
            return unnamed();
        }
        let source = Source::from(Elf::new(&file.path));
        let Ok(found) = self.0.symbolize(&source, Input::FileOffset(offsets)) else {
            return unnamed();
        };
        let name = |found: Symbolized<'_>| match found {
            Symbolized::Sym(function) => Some(function.name.into_owned()),
            Symbolized::Unknown(_) => None,
        };
        found.into_iter().map(name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_of_code_are_read_with_their_files() {
        let mut maps = CodeMaps::default();
        let line = "7f00-8f00 r-xp 00002000 fe:01 1234       /usr/lib/lib with space.so";
        let found = maps.mapping(line).unwrap();
        assert_eq!((found.start, found.end, found.offset), (0x7f00, 0x8f00, 0x2000));
        let file = &maps.files()[found.file as usize];
        assert_eq!((file.path.as_str(), file.device), ("/usr/lib/lib with space.so", (254, 1)));
        assert_eq!(find(std::slice::from_ref(&found), 0x7f10), Some((found.file, 0x2010)));
        assert_eq!(find(&[found], 0x8f00), None);
        assert_eq!(maps.mapping("7f00-8f00 rw-p 00000000 00:00 0"), None, "no code");
        let bare = maps.mapping("7f00-8f00 r-xp 00000000 00:00 0").unwrap();
        assert_eq!(maps.files()[bare.file as usize].path, "[anonymous]");
        assert_eq!(maps.mapping("nonsense"), None);
    }

    #[inline(never)]
    fn a_function_of_this_test() -> u64 {
        std::hint::black_box(7)
    }

    #[test]
    fn a_function_of_this_process_is_named_and_one_of_no_process_is_not() {
        let mut maps = CodeMaps::default();
        let address = a_function_of_this_test as *const () as u64;
        let (file, offset) = maps.place(std::process::id(), "test", address);
        let names = FunctionNames::default();
        let found = names.of(&maps.files()[file as usize], &[offset, u64::MAX]);
        let name = found[0].as_deref().unwrap_or_default();
        assert!(name.contains("a_function_of_this_test"), "{found:?}");
        assert_eq!(found[1], None);
        assert_eq!(maps.place(0x7fff_ffff, "gone", address), (0, 0));
        let replaced = MappedFile { inode: 1, ..maps.files()[file as usize].clone() };
        assert_eq!(names.of(&replaced, &[offset]), [None]);
        let _ = a_function_of_this_test();
    }
}
