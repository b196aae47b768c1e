//! What the kernel says of its types (BTF), as far as tardy itself asks: the arguments of
//! tracepoints, and where per-CPU variables lie. Read in one pass; libbpf, which checks and indexes
//! all of it, takes several times as long.
//!
//! Format: "BPF Type Format" in the kernel's documentation.

use std::{collections::HashMap, fs, path::Path};

use super::{TracingUnavailable, bootstrap::no_btf};

const MAGIC: u16 = 0xeb9f;

/// Kinds of types.
const PTR: u8 = 2;
const TYPEDEF: u8 = 8;
const FUNC_PROTO: u8 = 13;
const DATASEC: u8 = 15;
/// Names of other types, and words like `const` before them.
const NAMES: [u8; 5] = [TYPEDEF, 9, 10, 11, 18];

/// Bytes of a type before what its kind adds, of an argument, and of a variable in its section.
const TYPE: usize = 12;
const ARGUMENT: usize = 8;
const VARIABLE: usize = 12;

/// Names that name names; a description with more leads in a circle.
const DEEPEST: usize = 32;

/// What the name of a tracepoint's type begins with.
const TRACEPOINT: &[u8] = b"btf_trace_";
/// The section of per-CPU variables.
const PER_CPU: &[u8] = b".data..percpu";

/// The kernel's types.
#[derive(Debug)]
pub(super) struct KernelTypes {
    bytes: Vec<u8>,
    /// Where the names are.
    names: usize,
    /// Where each type is, by its number; that of `void`, the first, says nothing.
    types: Vec<usize>,
    /// Types of tracepoints, by the tracepoint's name.
    tracepoints: HashMap<String, usize>,
    /// The section of per-CPU variables.
    per_cpu: Option<usize>,
}

impl KernelTypes {
    /// Reads the description at `path`.
    ///
    /// # Errors
    /// [`TracingUnavailable::NoBtf`]: it is not there, or is of no known form.
    pub(super) fn read(path: &Path) -> Result<Self, TracingUnavailable> {
        let bytes = fs::read(path).map_err(|error| no_btf(path, &error))?;
        Self::parse(bytes).ok_or_else(|| no_btf(path, &"its form is not known"))
    }

    fn parse(bytes: Vec<u8>) -> Option<Self> {
        let length = word(&bytes, 4)?;
        let begin = length.checked_add(word(&bytes, 8)?)?;
        let end = begin.checked_add(word(&bytes, 12)?)?;
        let names = length.checked_add(word(&bytes, 16)?)?;
        let is_known = half(&bytes, 0)? == MAGIC && begin <= end && end <= bytes.len();
        let (types, noted) = is_known.then(|| walk(&bytes, begin, end))??;
        let mut this = Self { bytes, names, types, tracepoints: HashMap::new(), per_cpu: None };
        for at in noted {
            this.note(at)?;
        }
        Some(this)
    }

    /// Keeps what is asked for.
    fn note(&mut self, at: usize) -> Option<()> {
        let begin = self.names.checked_add(word(&self.bytes, at)?)?;
        let name = self.bytes.get(begin..)?;
        if self.kind(at)? == DATASEC {
            let is_own = name.strip_prefix(PER_CPU).is_some_and(|rest| rest.first() == Some(&0));
            self.per_cpu = self.per_cpu.or_else(|| is_own.then_some(at));
        } else if let Some(name) = name.strip_prefix(TRACEPOINT) {
            let name = until_zero(name)?.to_owned();
            self.tracepoints.insert(name, at);
        }
        Some(())
    }

    fn kind(&self, at: usize) -> Option<u8> {
        Some(self.bytes.get(at + 7)? & 0x1f)
    }

    /// How many members, arguments or variables a type has.
    fn count(&self, at: usize) -> Option<usize> {
        Some(half(&self.bytes, at + 4)?.into())
    }

    /// Where the type is that a field of another one names by its number.
    fn named_at(&self, field: usize) -> Option<usize> {
        self.types.get(word(&self.bytes, field)?).copied()
    }

    /// The tracepoints of which the kernel has types.
    pub(super) fn tracepoints(&self) -> impl Iterator<Item = &str> {
        self.tracepoints.keys().map(String::as_str)
    }

    /// How a tracepoint passes its arguments, without the probe's own that comes first: `*` by
    /// pointer, `=` by value.
    pub(super) fn arguments(&self, tracepoint: &str) -> Option<String> {
        // A name of a pointer to a function.
        let pointer = self.named_at(self.tracepoints.get(tracepoint)? + 8)?;
        let function = self.named_at(pointer + 8)?;
        if self.kind(function)? != FUNC_PROTO {
            return None;
        }
        let arguments = (1..self.count(function)?).map(|argument| {
            let of = self.named_at(function + TYPE + argument * ARGUMENT + 4)?;
            Some(if self.kind(self.unnamed(of)?)? == PTR { '*' } else { '=' })
        });
        arguments.collect()
    }

    /// What a type is without names and words before it.
    fn unnamed(&self, mut at: usize) -> Option<usize> {
        for _ in 0..DEEPEST {
            if !NAMES.contains(&self.kind(at)?) {
                return Some(at);
            }
            at = self.named_at(at + 8)?;
        }
        None
    }

    /// Where these per-CPU variables lie in their section.
    pub(super) fn per_cpu<const N: usize>(&self, wanted: [&str; N]) -> [Option<u32>; N] {
        let mut found = [None; N];
        let Some(section) = self.per_cpu else { return found };
        for variable in 0..self.count(section).unwrap_or(0) {
            let at = section + TYPE + variable * VARIABLE;
            let name = self.named_at(at).and_then(|of| {
                let name = self.names.checked_add(word(&self.bytes, of)?)?;
                until_zero(self.bytes.get(name..)?)
            });
            let offset = word(&self.bytes, at + 4).and_then(|offset| u32::try_from(offset).ok());
            for (found, _) in found.iter_mut().zip(wanted).filter(|(_, one)| name == Some(one)) {
                *found = offset;
            }
        }
        found
    }
}

/// Where each type is, by its number, and those that are named types or sections. There are more
/// than 100,000, which tests read in a debug build: so this calls nothing for each.
fn walk(bytes: &[u8], begin: usize, end: usize) -> Option<(Vec<usize>, Vec<usize>)> {
    let (mut types, mut noted) = (vec![0; (end - begin) / TYPE + 1], Vec::new());
    let (mut at, mut number) = (begin, 0);
    let places: &mut [usize] = &mut types;
    while at + TYPE <= end {
        number += 1;
        places[number] = at;
        let kind = bytes[at + 7] & 0x1f;
        let count = u16::from_ne_bytes([bytes[at + 4], bytes[at + 5]]) as usize;
        at += TYPE;
        at += match kind {
            PTR | 7 | 9..=12 | 16 | 18 => 0,
            TYPEDEF => {
                noted.push(places[number]);
                0
            }
            // int, var, decl_tag
            1 | 14 | 17 => 4,
            // array
            3 => 12,
            // enum, func_proto
            6 | FUNC_PROTO => 8 * count,
            // struct, union, enum64
            4 | 5 | 19 => 12 * count,
            DATASEC => {
                noted.push(places[number]);
                12 * count
            }
            _ => return None,
        };
    }
    types.truncate(number + 1);
    (at == end).then_some((types, noted))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize)
}

fn until_zero(bytes: &[u8]) -> Option<&str> {
    let end = memchr::memchr(0, bytes)?;
    str::from_utf8(bytes.get(..end)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::bootstrap::BTF;

    /// A description of these types, each as its words; their names are offsets in `names`.
    fn description(types: &[&[u32]], names: &[u8]) -> Vec<u8> {
        let types: Vec<u8> = types.concat().iter().flat_map(|word| word.to_ne_bytes()).collect();
        let size = types.len() as u32;
        let header = [0x0001_eb9f, 24, 0, size, size, names.len() as u32];
        let header = header.iter().flat_map(|word| word.to_ne_bytes());
        header.chain(types).chain(names.iter().copied()).collect()
    }

    const NAMES: &[u8] = b"\0int\0btf_trace_go\0.data..percpu\0queue\0";

    fn described() -> Vec<u8> {
        let kind = |kind: u32, count: u32| kind << 24 | count;
        description(
            &[
                // 1: int; 2: a pointer to it; 3: const of that
                &[1, kind(1, 0), 4, 32],
                &[0, kind(2, 0), 1],
                &[0, kind(10, 0), 2],
                // 4: a function of (probe's own, int, const pointer); 5: its pointer
                &[0, kind(13, 3), 0, 0, 2, 0, 1, 0, 3],
                &[0, kind(2, 0), 4],
                // 6: the tracepoint's name; 7: a variable; 8: its section
                &[5, kind(8, 0), 5],
                &[32, kind(14, 0), 1, 1],
                &[18, kind(15, 1), 64, 7, 48, 4],
            ],
            NAMES,
        )
    }

    #[test]
    fn arguments_of_tracepoints_and_places_of_variables_are_read() {
        let types = KernelTypes::parse(described()).unwrap();
        assert_eq!(types.tracepoints().collect::<Vec<_>>(), ["go"]);
        assert_eq!(types.arguments("go").as_deref(), Some("=*"));
        assert_eq!(types.arguments("stop"), None);
        assert_eq!(types.per_cpu(["queue", "int"]), [Some(48), None]);
    }

    #[test]
    fn what_is_cut_off_or_of_another_form_is_nothing() {
        let whole = described();
        let types_end = whole.len() - NAMES.len();
        for length in 0..types_end {
            assert!(KernelTypes::parse(whole[..length].to_vec()).is_none(), "{length}");
        }
        let mut unknown = whole.clone();
        unknown[24 + 7] = 31;
        assert!(KernelTypes::parse(unknown).is_none());
        let mut other = whole;
        other[0] = 0;
        assert!(KernelTypes::parse(other).is_none());
        assert!(KernelTypes::read(Path::new("/nonexistent/btf")).is_err());
    }

    #[test]
    fn a_name_that_names_itself_ends() {
        let of = |kind: u32, count: u32| kind << 24 | count;
        let bytes = description(
            &[
                &[1, of(8, 0), 1],
                &[0, of(13, 2), 0, 0, 1, 0, 1],
                &[0, of(2, 0), 2],
                &[5, of(8, 0), 3],
            ],
            NAMES,
        );
        assert_eq!(KernelTypes::parse(bytes).unwrap().arguments("go"), None);
    }

    #[test]
    fn the_running_kernel_says_what_libbpf_reads_of_it() {
        use libbpf_rs::btf::{Btf, types::DataSec};
        if !Path::new(BTF).exists() {
            return;
        }
        let (types, btf) =
            (KernelTypes::read(Path::new(BTF)).unwrap(), Btf::from_path(BTF).unwrap());
        assert_eq!(types.types.len(), btf.len());
        let section: DataSec<'_> = btf.type_by_name(".data..percpu").unwrap();
        let [queues, bases] = types.per_cpu(["runqueues", "hrtimer_bases"]);
        for offset in [queues.unwrap(), bases.unwrap()] {
            assert!(section.iter().any(|variable| variable.offset == offset));
        }
        assert!(types.tracepoints().count() > 100);
    }
}
