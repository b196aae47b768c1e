//! One page of the kernel's trace buffer, as `trace_pipe_raw` gives it: events one after another,
//! each with the time since the one before.

use super::format::{HeaderFormat, PageFormat};

/// Flags in the commit field of a page that no format file names; they are the same in every
/// kernel that has tracefs (`include/linux/ring_buffer.h`). Events were overwritten before this
/// page.
const MISSED: u64 = 1 << 31;
/// And how many stands behind the last event of the page.
const MISSED_STORED: u64 = 1 << 30;
/// What is left is how many bytes are used.
const COMMIT: u64 = (1 << 27) - 1;
/// A time stamp has 59 bits; those above come from the time before it.
const STAMP_BITS: u32 = 59;
/// Bytes of the word that every event begins with.
const WORD: usize = 4;

/// An event as it lies in its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RawEvent<'a> {
    /// By the clock of the trace, ns.
    pub(super) at_ns: u64,
    /// What the file `format` of its kind describes.
    pub(super) data: &'a [u8],
}

/// Reads the events of one page.
#[derive(Debug)]
pub(super) struct Page<'a> {
    header: HeaderFormat,
    /// What is used of it.
    data: &'a [u8],
    at: usize,
    at_ns: u64,
    /// Events that were lost before this page: at least so many.
    pub(super) lost: u64,
    /// Whether it ended in the middle of an event.
    pub(super) is_damaged: bool,
}

impl<'a> Page<'a> {
    /// The page in `bytes`; `None` if it is not a whole one.
    #[must_use]
    pub(super) fn new(page: &PageFormat, header: HeaderFormat, bytes: &'a [u8]) -> Option<Self> {
        let commit = page.commit.value(bytes)?;
        let at_ns = page.timestamp.value(bytes)?;
        let whole = bytes.get(page.data().start..bytes.len().min(page.data().end))?;
        let used = usize::try_from(commit & COMMIT).ok()?;
        let data = whole.get(..used)?;
        // A count of as many bytes as the field of the header has.
        let stored = || {
            let size = page.commit.bytes(bytes)?.len().min(8);
            let mut word = [0; 8];
            word.get_mut(..size)?.copy_from_slice(whole.get(used..used + size)?);
            Some(u64::from_le_bytes(word))
        };
        let lost = match (commit & MISSED != 0, commit & MISSED_STORED != 0) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => stored().unwrap_or(0).max(1),
        };
        Some(Self { header, data, at: 0, at_ns, lost, is_damaged: false })
    }

    fn word(&self, at: usize) -> Option<u32> {
        let bytes = self.data.get(at..at.checked_add(WORD)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    /// The data of the event at `at`, whose length stands in front of it where `length` is absent,
    /// and where the next one begins.
    fn data(&self, at: usize, length: Option<usize>) -> Option<(&'a [u8], usize)> {
        let (from, length) = match length {
            Some(length) => (at, length),
            // The length counts its own word.
            None => {
                let counted = usize::try_from(self.word(at)?).ok()?;
                (at + WORD, counted.checked_sub(WORD)?)
            }
        };
        let end = from.checked_add(length)?;
        let data = self.data.get(from..end)?;
        Some((data, end.next_multiple_of(WORD)))
    }

    /// One step: `Some(None)` where it was no event.
    fn step(&mut self) -> Option<Option<RawEvent<'a>>> {
        let HeaderFormat { type_bits, padding, time_extend, time_stamp, longest } = self.header;
        let first = self.word(self.at)?;
        let kind = first & ((1 << type_bits) - 1);
        let delta_ns = u64::from(first >> type_bits);
        let at = self.at + WORD;
        if kind == time_extend || kind == time_stamp {
            let high = u64::from(self.word(at)?) << self.header.time_bits();
            self.at_ns = match kind == time_stamp {
                true => stamp(high | delta_ns, self.at_ns),
                false => self.at_ns.wrapping_add(high | delta_ns),
            };
            self.at = at + WORD;
            return Some(None);
        }
        if kind == padding {
            if delta_ns == 0 {
                // The rest of the page is empty.
                self.at = self.data.len();
                return Some(None);
            }
            // Discarded; the next event counts from its time.
            let (_, next) = self.data(at, None)?;
            (self.at, self.at_ns) = (next, self.at_ns.wrapping_add(delta_ns));
            return Some(None);
        }
        if kind > longest {
            return None;
        }
        let words = usize::try_from(kind).ok()?;
        let (data, next) = self.data(at, (words > 0).then_some(words * WORD))?;
        (self.at, self.at_ns) = (next, self.at_ns.wrapping_add(delta_ns));
        Some(Some(RawEvent { at_ns: self.at_ns, data }))
    }
}

/// The time of a stamp of 59 bits that comes after `before_ns`.
fn stamp(low_ns: u64, before_ns: u64) -> u64 {
    let low_ns = low_ns & ((1 << STAMP_BITS) - 1);
    let high_ns = before_ns >> STAMP_BITS << STAMP_BITS;
    let at_ns = high_ns | low_ns;
    match high_ns != 0 && at_ns < before_ns {
        true => at_ns.wrapping_add(1 << STAMP_BITS),
        false => at_ns,
    }
}

impl<'a> Iterator for Page<'a> {
    type Item = RawEvent<'a>;

    fn next(&mut self) -> Option<RawEvent<'a>> {
        while self.at < self.data.len() {
            let Some(step) = self.step() else {
                (self.is_damaged, self.at) = (true, self.data.len());
                return None;
            };
            if step.is_some() {
                return step;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formats() -> (PageFormat, HeaderFormat) {
        let page = PageFormat::parse(include_str!("fixtures/header_page")).unwrap();
        (page, HeaderFormat::parse(include_str!("fixtures/header_event")).unwrap())
    }

    /// A page of these words, written at `at_ns`, with flags and what stands behind the events.
    fn page(at_ns: u64, words: &[u32], flags: u64, behind: &[u64]) -> Vec<u8> {
        let mut bytes = at_ns.to_le_bytes().to_vec();
        bytes.extend(((words.len() as u64 * 4) | flags).to_le_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes.extend(behind.iter().flat_map(|word| word.to_le_bytes()));
        bytes.resize(4096, 0);
        bytes
    }

    fn read(bytes: &[u8]) -> (Vec<(u64, Vec<u8>)>, u64, bool) {
        let (format, header) = formats();
        let mut page = Page::new(&format, header, bytes).unwrap();
        let events = page.by_ref().map(|event| (event.at_ns, event.data.to_vec())).collect();
        (events, page.lost, page.is_damaged)
    }

    #[test]
    fn times_add_up_over_extends_stamps_and_discarded_events() {
        let words = [
            (10 << 5) | 1,
            0xa,
            // 2 << 27 and 3 more.
            (3 << 5) | 30,
            2,
            (1 << 5) | 1,
            0xb,
            // Discarded, 4 bytes of it.
            (7 << 5) | 29,
            8,
            0xdead,
            // Its length stands in front: 4 of the word itself, 8 of data.
            5 << 5,
            12,
            0xc,
            0xd,
            // An absolute time.
            (9 << 5) | 31,
            100,
            (2 << 5) | 1,
            0xe,
            29,
        ];
        let (events, lost, damaged) = read(&page(1000, &words, 0, &[]));
        let long = (2_u64 << 27) + 3;
        let absolute = (100_u64 << 27) + 9;
        let found: Vec<_> = events.iter().map(|(at, data)| (*at, data[0], data.len())).collect();
        let expected =
            [(1010, 0xa, 4), (1011 + long, 0xb, 4), (1023 + long, 0xc, 8), (absolute + 2, 0xe, 4)];
        assert_eq!(found, expected);
        assert_eq!((lost, damaged), (0, false));
    }

    #[test]
    fn what_was_overwritten_before_a_page_is_counted() {
        let words = [(1 << 5) | 1, 7];
        assert_eq!(read(&page(5, &words, MISSED, &[])).1, 1, "at least one");
        assert_eq!(read(&page(5, &words, MISSED | MISSED_STORED, &[345])).1, 345);
        assert_eq!(read(&page(5, &words, MISSED_STORED, &[345])).1, 0);
    }

    #[test]
    fn a_page_that_ends_within_an_event_is_damaged_and_what_came_before_is_there() {
        let (events, _, damaged) = read(&page(5, &[(1 << 5) | 1, 7, (1 << 5) | 9, 7], 0, &[]));
        assert_eq!((events.len(), damaged), (1, true));
        let (events, _, damaged) = read(&page(5, &[1 << 5, 3], 0, &[]));
        assert_eq!((events.len(), damaged), (0, true), "a length below its own word");
        let (format, header) = formats();
        assert!(Page::new(&format, header, &[0; 15]).is_none());
        let too_long = page(5, &[0; 3], 1 << 20, &[]);
        assert!(Page::new(&format, header, &too_long).is_none());
    }

    #[test]
    fn a_stamp_takes_its_highest_bits_from_the_time_before() {
        assert_eq!(stamp(7, 5), 7);
        let high = 3 << STAMP_BITS;
        assert_eq!(stamp(7, high | 5), high | 7);
        assert_eq!(stamp(2, high | 5), (4 << STAMP_BITS) | 2, "it went around");
    }
}
