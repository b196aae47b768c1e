//! Names of the kernel's functions, from /proc/kallsyms.

use std::{fs::File, io::Read, path::Path};

/// More than any kernel lists.
const LIMIT: u64 = 64 << 20;
/// No function of the kernel is longer; what lies so far behind the last one is something else.
const LONGEST: u64 = 1 << 20;

/// Functions by address. Empty where the file cannot be read.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    /// All names, one after the other.
    names: Vec<u8>,
    /// Address, and where the name ends; sorted by address.
    functions: Vec<(u64, usize, usize)>,
    hidden: bool,
}

impl Symbols {
    /// Reads those of the running kernel and its modules; takes some tens of milliseconds.
    #[must_use]
    pub fn read() -> Self {
        Self::of(Path::new("/proc/kallsyms"))
    }

    fn of(path: &Path) -> Self {
        let mut text = Vec::new();
        let read = File::open(path).and_then(|file| file.take(LIMIT).read_to_end(&mut text));
        if read.is_ok() { Self::parse(&text) } else { Self::default() }
    }

    /// Lines of `address type name`, for those of modules followed by `[module]`.
    ///
    /// By bytes, since there are more than 100,000 lines, which tests read in a debug build.
    fn parse(text: &[u8]) -> Self {
        let mut symbols = Self::default();
        let (mut seen, mut at) = (false, 0);
        while at < text.len() {
            let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |length| at + length);
            if let Some((address, name)) = function(&text[at..end]) {
                seen = true;
                if address != 0 {
                    let start = symbols.names.len();
                    symbols.names.extend_from_slice(name);
                    symbols.functions.push((address, start, symbols.names.len()));
                }
            }
            at = end + 1;
        }
        symbols.hidden = seen && symbols.functions.is_empty();
        symbols.functions.sort_by_key(|&(address, ..)| address);
        symbols
    }

    /// Whether the kernel names its functions but hides where they lie (`kernel.kptr_restrict`).
    #[must_use]
    pub fn are_hidden(&self) -> bool {
        self.hidden
    }

    /// Functions with their addresses; the first name where one has several.
    #[cfg(test)]
    pub(super) fn functions(&self) -> impl Iterator<Item = (u64, &str)> {
        let begins = self.functions.iter().map(|&(address, ..)| address);
        begins.filter_map(|address| self.name(address).map(|(name, _)| (address, name)))
    }

    /// The function at an address, and how many bytes into it; `None` for an unknown address.
    #[must_use]
    pub fn name(&self, address: u64) -> Option<(&str, u64)> {
        let after = self.functions.partition_point(|&(start, ..)| start <= address);
        let mut at = after.checked_sub(1)?;
        // Several names of one function: the first one counts.
        while at > 0 && self.functions[at - 1].0 == self.functions[at].0 {
            at -= 1;
        }
        let (function, start, end) = self.functions[at];
        let offset = address - function;
        let name = str::from_utf8(&self.names[start..end]).ok()?;
        (offset < LONGEST).then_some((name, offset))
    }
}

/// Address and name, if the line is that of a function.
fn function(line: &[u8]) -> Option<(u64, &[u8])> {
    let gap = memchr::memchr(b' ', line)?;
    let [b't' | b'T' | b'w' | b'W', b' ', name @ ..] = &line[gap + 1..] else { return None };
    let mut address = 0;
    for &digit in &line[..gap] {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        address = address << 4 | u64::from(value);
    }
    let name = memchr::memchr(b'\t', name).map_or(name, |end| &name[..end]);
    // The compiler puts padding before functions that has names too.
    if name.is_empty() || name.starts_with(b"__pfx_") {
        return None;
    }
    Some((address, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"ffffffff81000000 T startup\n\
                        ffffffff81000100 t do_work\n\
                        ffffffff81000100 T do_work_alias\n\
                        ffffffff81000f00 D data_is_no_function\n\
                        ffffffff810000f0 t __pfx_do_work\n\
                        ffffffffa0000010 t in_module\t[some_module]\n\
                        nonsense\n";

    #[test]
    fn an_address_is_named_by_the_function_that_begins_before_it() {
        let symbols = Symbols::parse(TEXT);
        assert_eq!(symbols.name(0xffff_ffff_8100_0000), Some(("startup", 0)));
        assert_eq!(symbols.name(0xffff_ffff_8100_00ff), Some(("startup", 0xff)));
        assert_eq!(symbols.name(0xffff_ffff_8100_0f04), Some(("do_work", 0xe04)));
        assert_eq!(symbols.name(0xffff_ffff_a000_0018), Some(("in_module", 8)));
        assert_eq!(symbols.name(0xffff_ffff_f000_0018), None, "far behind the last one");
        assert_eq!(symbols.name(0x40_0000), None, "before the first one");
        assert!(!symbols.are_hidden());
    }

    #[test]
    fn hidden_addresses_are_known_to_be_hidden_and_name_nothing() {
        let symbols = Symbols::parse(b"0000000000000000 T startup\n0000000000000000 t do_work\n");
        assert!(symbols.are_hidden());
        assert_eq!((symbols.name(0), symbols.name(5)), (None, None));
        let none = Symbols::of(Path::new("/nonexistent"));
        assert_eq!((none.are_hidden(), none.name(5)), (false, None));
    }

    #[test]
    fn the_running_kernel_names_its_functions_or_hides_them() {
        let symbols = Symbols::read();
        let named = symbols.functions.first().and_then(|&(address, ..)| symbols.name(address));
        assert!(symbols.are_hidden() || named.is_some_and(|(_, offset)| offset == 0));
    }
}
