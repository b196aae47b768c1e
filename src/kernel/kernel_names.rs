//! Names of the kernel's functions: asked of the kernel one by one, or from its list.
//!
//! A BPF program has the kernel print an address (`%pS`, kernels since 5.14). The list is read
//! where that is not possible: it takes some 30 ms, and may hide all addresses.

use std::{borrow::Cow, cell::RefCell, collections::HashMap};

use libbpf_rs::{MapCore as _, MapFlags, MapHandle, Object, ObjectBuilder, ProgramInput};

use super::{Symbols, log};

/// The loader reads headers in place, so that they have to be aligned.
#[repr(C, align(8))]
struct NameCode<T: ?Sized>(T);

static CODE: &NameCode<[u8]> = &NameCode(*include_bytes!(concat!(env!("OUT_DIR"), "/names.bpf.o")));

/// Bytes of `struct tardy_name`, which begins with the address.
const NAME_BYTES: usize = 256;
const ADDRESS_BYTES: usize = 8;
/// Addresses whose names are kept; locks lie anywhere, so that there is no end to them.
const MOST_KEPT: usize = 1 << 16;

/// Names addresses of the kernel.
#[derive(Debug)]
pub enum KernelNames {
    /// The kernel is asked for each.
    Asked(NameProgram),
    /// The kernel's list.
    Listed(Symbols),
}

impl KernelNames {
    /// Those of the running kernel and its modules.
    #[must_use]
    pub fn of_kernel() -> Self {
        NameProgram::load().map_or_else(|| Self::Listed(Symbols::read()), Self::Asked)
    }

    /// Whether the kernel names its functions but hides where they lie (`kernel.kptr_restrict`).
    #[must_use]
    pub fn are_hidden(&self) -> bool {
        match self {
            Self::Asked(_) => false,
            Self::Listed(symbols) => symbols.are_hidden(),
        }
    }

    /// The function at an address, and how many bytes into it; `None` for an unknown address.
    #[must_use]
    pub fn name(&self, address: u64) -> Option<(Cow<'_, str>, u64)> {
        match self {
            Self::Asked(program) => program.name(address).map(|(name, at)| (name.into(), at)),
            Self::Listed(symbols) => symbols.name(address).map(|(name, at)| (name.into(), at)),
        }
    }
}

/// The program that has the kernel name an address.
#[derive(Debug)]
pub struct NameProgram {
    object: RefCell<Object>,
    asked: MapHandle,
    known: RefCell<HashMap<u64, Option<(String, u64)>>>,
}

impl NameProgram {
    /// `None` where this kernel has no such program, or not for this process.
    fn load() -> Option<Self> {
        log::listen();
        let object = ObjectBuilder::default().open_memory(&CODE.0).ok()?.load().ok()?;
        let map = object.maps().find(|map| map.name().to_string_lossy().ends_with(".bss"))?;
        let asked = MapHandle::try_from(&map).ok()?;
        let this = Self { object: RefCell::new(object), asked, known: RefCell::default() };
        // That the kernel takes the program does not mean that it lets this process run it.
        this.ask(0)?;
        Some(this)
    }

    fn name(&self, address: u64) -> Option<(String, u64)> {
        let mut known = self.known.borrow_mut();
        if known.len() >= MOST_KEPT {
            known.clear();
        }
        let ask = || self.ask(address).and_then(|text| parse(&text));
        known.entry(address).or_insert_with(ask).clone()
    }

    /// What the kernel prints for an address.
    fn ask(&self, address: u64) -> Option<String> {
        let key = 0_u32.to_ne_bytes();
        let mut bytes = [0; NAME_BYTES];
        bytes[..ADDRESS_BYTES].copy_from_slice(&address.to_ne_bytes());
        self.asked.update(&key, &bytes, MapFlags::ANY).ok()?;
        self.object.borrow_mut().progs_mut().next()?.test_run(ProgramInput::default()).ok()?;
        let answer = self.asked.lookup(&key, MapFlags::ANY).ok()??;
        let text = answer.get(ADDRESS_BYTES..)?.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(text).into_owned())
    }
}

/// `function+0x1f/0x80`, for those of modules followed by ` [module]`; an address without a name is
/// printed as its number.
fn parse(text: &str) -> Option<(String, u64)> {
    let (name, rest) = text.split_once("+0x")?;
    let (offset, _) = rest.split_once('/')?;
    Some((name.to_owned(), u64::from_str_radix(offset, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_prints_is_a_function_and_an_offset() {
        let named = |name: &str, offset| Some((name.to_owned(), offset));
        assert_eq!(parse("schedule+0x0/0xf0"), named("schedule", 0));
        assert_eq!(parse("work_fn.isra.0+0x1f/0x80 [e1000]"), named("work_fn.isra.0", 0x1f));
        assert_eq!(parse("0xffffffff81000000"), None);
        assert_eq!(parse("0x0"), None);
        assert_eq!(parse(""), None);
        assert_eq!(parse("cut_off+0x1"), None);
    }

    #[test]
    fn the_kernel_says_one_by_one_what_its_list_says() {
        let symbols = Symbols::read();
        let Some(asked) = NameProgram::load().filter(|_| !symbols.are_hidden()) else { return };
        let mut compared = 0;
        for (address, name) in symbols.functions().step_by(997) {
            // The list has names of data between functions left out.
            let Some((found, 5)) = asked.name(address + 5) else { continue };
            assert_eq!(found, name, "{address:#x}");
            compared += 1;
        }
        assert!(compared > 20, "{compared}");
        assert_eq!(asked.name(8), None);
    }
}
