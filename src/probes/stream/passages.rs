//! Packets on their way out of the thread that received them: by themselves or, where wake-ups are
//! traced, each with the last one of that thread.

use std::{io, os::fd::BorrowedFd, sync::Arc};

use tardy_hot::{
    ring::{Reader, Writer, ring},
    stages::{self, Records, ThreadRecord},
    stream::{Passage, TracedPassage},
};

use crate::sys::mapped::MappedWords;

/// Words of 8 bytes of one record.
const RECORD: usize = size_of::<ThreadRecord>() / 8;

/// Where the thread puts them.
#[derive(Debug)]
pub(super) enum PassageWriter {
    Plain(Writer<Passage>),
    Traced(Writer<TracedPassage>),
}

/// Where others take them from.
#[derive(Debug)]
pub(super) enum PassageReader {
    Plain(Reader<Passage>),
    Traced(Reader<TracedPassage>),
}

/// Both, for `packets` packets, all memory touched.
#[must_use]
pub(super) fn passages(packets: usize, is_traced: bool) -> (PassageWriter, PassageReader) {
    if is_traced {
        let (writer, reader) = ring(packets);
        return (PassageWriter::Traced(writer), PassageReader::Traced(reader));
    }
    let (writer, reader) = ring(packets);
    (PassageWriter::Plain(writer), PassageReader::Plain(reader))
}

impl PassageWriter {
    /// Packets for which there was no room.
    #[must_use]
    pub(super) fn dropped(&self) -> u64 {
        match self {
            Self::Plain(writer) => writer.dropped(),
            Self::Traced(writer) => writer.dropped(),
        }
    }
}

impl PassageReader {
    /// Takes what is there, oldest first.
    pub(super) fn drain(&mut self, mut take: impl FnMut(&TracedPassage)) {
        match self {
            Self::Plain(reader) => reader.drain(|passage| take(&passage.into())),
            Self::Traced(reader) => reader.drain(|traced| take(&traced)),
        };
    }

    /// Packets for which there was no room.
    #[must_use]
    pub(super) fn dropped(&self) -> u64 {
        match self {
            Self::Plain(reader) => reader.dropped(),
            Self::Traced(reader) => reader.dropped(),
        }
    }

    /// Appends what is there for another process, which reads it by [`read`].
    pub(super) fn write(&mut self, into: &mut Vec<u8>) {
        match self {
            Self::Plain(reader) => reader.drain(|one| into.extend_from_slice(&one.to_bytes())),
            Self::Traced(reader) => reader.drain(|one| into.extend_from_slice(&one.to_bytes())),
        };
    }
}

/// Takes whole passages of another process out of `bytes`, which were traced or not.
pub(super) fn read(bytes: &mut Vec<u8>, is_traced: bool, take: impl FnMut(TracedPassage)) {
    let used = if is_traced {
        let (whole, _) = bytes.as_chunks::<{ TracedPassage::BYTES }>();
        whole.iter().filter_map(TracedPassage::from_bytes).for_each(take);
        whole.as_flattened().len()
    } else {
        let (whole, _) = bytes.as_chunks::<{ Passage::BYTES }>();
        whole.iter().filter_map(Passage::from_bytes).map(TracedPassage::from).for_each(take);
        whole.as_flattened().len()
    };
    bytes.drain(..used);
}

/// What the BPF side writes about the thread that receives.
#[derive(Debug)]
pub(super) enum ReceiverRecord {
    /// The n-th of the records that this process has.
    Here(Arc<dyn Records>, usize),
    /// Memory of the process that traces, and the words in it before the record.
    Mapped(MappedWords, usize),
}

impl ReceiverRecord {
    /// Maps the memory that another process handed over, and touches it.
    ///
    /// # Errors
    /// As [`MappedWords::new`].
    pub(super) fn map(memory: BorrowedFd<'_>, at: usize) -> io::Result<Self> {
        let words = at.checked_add(RECORD).ok_or(io::ErrorKind::InvalidInput)?;
        let watch = Self::Mapped(MappedWords::new(memory, words)?, at);
        let _ = watch.record().map(tardy_hot::trips::LateLeg::read);
        Ok(watch)
    }

    /// The record; `None` if there are not so many.
    #[must_use]
    pub(super) fn record(&self) -> Option<&ThreadRecord> {
        match self {
            Self::Here(records, number) => records.record(*number),
            Self::Mapped(memory, at) => stages::records(memory.words().get(*at..)?).first(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{os::fd::AsFd, sync::atomic::Ordering::Relaxed};

    use tardy_hot::{packet::Packet, trips::LateLeg};

    use super::*;
    use crate::sys::mapped::sealed_memory;

    fn passage(number: u64) -> Passage {
        Passage { packet: Packet { number, ..Packet::default() }, received_ns: 5 }
    }

    #[test]
    fn passages_reach_another_process_whole_and_in_order() {
        let woken = LateLeg { waking_ns: 3, switch_ns: 4, cpus: (1, 2), stopped_ns: (0, 9) };
        for is_traced in [false, true] {
            let (mut writer, mut reader) = passages(4, is_traced);
            for number in [7, 8] {
                match &mut writer {
                    PassageWriter::Plain(writer) => writer.push(passage(number)),
                    PassageWriter::Traced(writer) => {
                        writer.push(TracedPassage { passage: passage(number), woken });
                    }
                }
            }
            let (mut bytes, mut found) = (Vec::new(), Vec::new());
            reader.write(&mut bytes);
            let cut = bytes.split_off(bytes.len() - 9);
            read(&mut bytes, is_traced, |one| found.push(one));
            assert_eq!(found.len(), 1, "of the second a part is missing");
            bytes.extend(cut);
            read(&mut bytes, is_traced, |one| found.push(one));
            assert!(bytes.is_empty());
            let numbers: Vec<u64> = found.iter().map(|one| one.passage.packet.number).collect();
            assert_eq!(numbers, [7, 8]);
            let expected = if is_traced { woken } else { LateLeg::default() };
            assert!(found.iter().all(|one| one.woken == expected), "{found:?}");
            assert_eq!((writer.dropped(), reader.dropped()), (0, 0));
        }
    }

    #[test]
    fn a_record_in_the_memory_of_another_process_is_found() {
        let file = sealed_memory(c"tardy-test", 4096).unwrap();
        let memory = MappedWords::new(file.as_fd(), 512).unwrap();
        let watch = ReceiverRecord::map(file.as_fd(), 3 * RECORD).unwrap();
        let there = &stages::records(memory.words())[3];
        there.waking_ns.store(77, Relaxed);
        assert_eq!(watch.record().unwrap().waking_ns.load(Relaxed), 77);
        assert!(ReceiverRecord::map(file.as_fd(), usize::MAX).is_err());
    }
}
