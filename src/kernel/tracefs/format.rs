//! The binary form of tracefs: the fields of an event, the header of a page and that
//! of an event. Every offset and number that reading needs comes from there.

use std::ops::Range;

/// Larger offsets are of no event: a page has 4 KiB, and no kernel has pages of more than 64 KiB.
const MOST_BYTES: usize = 1 << 16;

/// Where a field lies in its event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    offset: usize,
    size: usize,
    signed: bool,
}

impl Field {
    /// Its bytes; `None` if the event is shorter.
    #[must_use]
    pub(super) fn bytes<'a>(&self, event: &'a [u8]) -> Option<&'a [u8]> {
        event.get(self.offset..self.offset.checked_add(self.size)?)
    }

    /// Its value, of up to 8 bytes; a signed one keeps its sign in the 64 bits.
    #[must_use]
    pub(super) fn value(&self, event: &[u8]) -> Option<u64> {
        let bytes = self.bytes(event)?;
        let mut word = [0; 8];
        word.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let value = u64::from_le_bytes(word);
        let unused = 64 - 8 * u32::try_from(bytes.len()).ok()?;
        if !self.signed || unused == 0 || unused == 64 {
            return Some(value);
        }
        Some(((value << unused).cast_signed() >> unused).cast_unsigned())
    }

    /// The bytes to which a field of type `__data_loc` refers: its low half is where they begin,
    /// its high half how many there are.
    #[must_use]
    pub(super) fn referred<'a>(&self, event: &'a [u8]) -> Option<&'a [u8]> {
        let value = usize::try_from(self.value(event)? & 0xffff_ffff).ok()?;
        let from = value & 0xffff;
        event.get(from..from + (value >> 16))
    }
}

/// The description of one event: the file `format` of its directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EventFormat {
    /// Its number.
    pub(super) id: u64,
    fields: Vec<(String, Field)>,
}

impl EventFormat {
    /// Reads such a file; `None` if it names no number.
    #[must_use]
    pub(super) fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.trim().strip_prefix("ID:"))?;
        Some(Self { id: id.trim().parse().ok()?, fields: fields(text) })
    }

    /// A field by its name.
    #[must_use]
    pub(super) fn field(&self, name: &str) -> Option<Field> {
        find(&self.fields, name)
    }
}

/// `field:char prev_comm[16]; offset:8; size:16; signed:0;`, a line each. The brackets of an array
/// of fixed length follow the name, those of `__data_loc char[] name` the type.
fn fields(text: &str) -> Vec<(String, Field)> {
    text.lines().filter_map(field).collect()
}

fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';');
    let declaration = parts.next()?;
    let is_array = declaration.ends_with(']');
    let declared = if is_array { declaration.rsplit_once('[')?.0 } else { declaration };
    let name = declared.rsplit([' ', '*']).next().filter(|name| !name.is_empty())?;
    let (mut offset, mut size, mut signed) = (None, None, false);
    for part in parts {
        let Some((key, value)) = part.trim().split_once(':') else { continue };
        let value = value.trim().parse::<usize>().ok().filter(|value| *value <= MOST_BYTES);
        match key {
            "offset" => offset = value,
            "size" => size = value,
            "signed" => signed = value == Some(1),
            _ => {}
        }
    }
    Some((name.to_owned(), Field { offset: offset?, size: size?, signed }))
}

fn find(fields: &[(String, Field)], name: &str) -> Option<Field> {
    fields.iter().find(|(known, _)| known == name).map(|(_, field)| *field)
}

/// The header of a page: `events/header_page`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageFormat {
    pub(super) timestamp: Field,
    pub(super) commit: Field,
    data: Field,
}

impl PageFormat {
    /// Reads that file; `None` if a field is missing.
    #[must_use]
    pub(super) fn parse(text: &str) -> Option<Self> {
        let fields = fields(text);
        let of = |name| find(&fields, name);
        Some(Self { timestamp: of("timestamp")?, commit: of("commit")?, data: of("data")? })
    }

    /// Where the events of a page are.
    #[must_use]
    pub(super) fn data(&self) -> Range<usize> {
        self.data.offset..self.data.offset + self.data.size
    }

    /// Bytes of a page.
    #[must_use]
    pub(super) fn bytes(&self) -> usize {
        self.data().end
    }
}

/// The header of an event within a page: `events/header_event`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeaderFormat {
    /// Bits of the type, the lowest of the first word; the rest of it is the time.
    pub(super) type_bits: u32,
    /// Nothing, or an event that was discarded.
    pub(super) padding: u32,
    /// More bits of the time to the next event.
    pub(super) time_extend: u32,
    /// The time itself.
    pub(super) time_stamp: u32,
    /// Up to here a type is the length of the event's data, in words of 4 bytes.
    pub(super) longest: u32,
}

impl HeaderFormat {
    /// Reads that file; `None` if something is missing, or a header has not 32 bits.
    #[must_use]
    pub(super) fn parse(text: &str) -> Option<Self> {
        let bits = |name| number(text, name, ":", "bits");
        let is = |name| number(text, name, "==", "");
        let type_bits = bits("type_len")?;
        let time_bits = bits("time_delta")?;
        let is_known = type_bits < 32 && type_bits.checked_add(time_bits) == Some(32);
        (is_known && bits("array") == Some(32)).then_some(())?;
        Some(Self {
            type_bits,
            padding: is("padding")?,
            time_extend: is("time_extend")?,
            time_stamp: is("time_stamp")?,
            longest: is("data max type_len")?,
        })
    }

    /// Bits of the time.
    pub(super) const fn time_bits(&self) -> u32 {
        32 - self.type_bits
    }
}

/// The number after `name` and `sign` on its own line.
fn number(text: &str, name: &str, sign: &str, unit: &str) -> Option<u32> {
    let line = text.lines().map(str::trim).find(|line| line.starts_with(name))?;
    let (_, value) = line.rsplit_once(sign)?;
    value.trim().strip_suffix(unit)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_names_its_fields_whatever_their_types() {
        let format = EventFormat::parse(include_str!("fixtures/sched_switch.format")).unwrap();
        let field = |name| format.field(name).unwrap();
        assert_eq!(field("prev_comm"), Field { offset: 8, size: 16, signed: false });
        assert_eq!(field("prev_state"), Field { offset: 32, size: 8, signed: true });
        assert_eq!(field("common_type"), Field { offset: 0, size: 2, signed: false });
        assert_eq!(format.field("prev"), None);
        let text = "ID: 9\n\tfield:void * hrtimer;\toffset:8;\tsize:8;\tsigned:0;\n\
                    \tfield:__data_loc char[] comm;\toffset:16;\tsize:4;\tsigned:0;\n";
        let format = EventFormat::parse(text).unwrap();
        assert_eq!(format.field("hrtimer").unwrap().offset, 8);
        assert_eq!(format.field("comm").unwrap().offset, 16);
        assert_eq!(format.field("char"), None);
        assert_eq!(EventFormat::parse("format:\n"), None);
    }

    #[test]
    fn values_keep_their_sign_and_end_with_the_event() {
        let field = |offset, size, signed| Field { offset, size, signed };
        let event = [0xff, 0xff, 0xff, 0xfe, 1, 0, 2, 0, b'a', b'b'];
        assert_eq!(field(0, 2, true).value(&event), Some(u64::MAX));
        assert_eq!(field(0, 2, false).value(&event), Some(0xffff));
        assert_eq!(field(8, 4, true).value(&event), None);
        assert_eq!(field(0, 9, false).value(&event), None);
        assert_eq!(field(0, 0, true).value(&event), Some(0));
        assert_eq!(field(usize::MAX, 2, true).value(&event), None);
        let event = [8, 0, 2, 0, 0, 0, 0, 0, b'a', b'b'];
        assert_eq!(field(0, 4, false).referred(&event), Some(&b"ab"[..]));
    }

    #[test]
    fn the_headers_are_what_the_kernel_says() {
        let header = HeaderFormat::parse(include_str!("fixtures/header_event")).unwrap();
        let types = [header.padding, header.time_extend, header.time_stamp, header.longest];
        assert_eq!((header.type_bits, header.time_bits(), types), (5, 27, [29, 30, 31, 28]));
        let page = PageFormat::parse(include_str!("fixtures/header_page")).unwrap();
        assert_eq!((page.data(), page.bytes()), (16..4096, 4096));
        assert_eq!(HeaderFormat::parse("type_len : 33 bits\ntime_delta : 27 bits\n"), None);
        assert_eq!(PageFormat::parse("field: u64 timestamp; offset:0; size:8;"), None);
    }
}
