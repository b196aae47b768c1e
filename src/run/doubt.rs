//! Every doubt that tardy can have about a run, one variant a code. Their words are in `words`.

mod incident;
mod lab;
mod messages;
mod receive;
mod setup;
mod trace;
mod words;

pub use lab::{COUNTED_TIME, LabDoubt};
pub use messages::MessageDoubt;
pub use receive::ReceiveDoubt;
pub use setup::SetupDoubt;
pub use trace::TraceDoubt;

use super::caveat::Caveat;
pub use incident::Incident;

/// Every doubt that tardy can have about a run. One variant per code; `docs/measuring.md` explains
/// each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    /// The default policy could not be had.
    NoRealTime {
        /// What was wanted, `fifo 90`.
        wanted: String,
        /// What the kernel said.
        why: String,
    },
    /// A measured thread did not run as it should have.
    ThreadNotAsAsked {
        /// Series and what was found instead.
        what: String,
    },
    /// Memory could not be locked.
    MemoryNotLocked {
        /// What the kernel said.
        why: String,
    },
    /// Idle states may add their exit latency.
    DmaLatencyNotHeld {
        /// What the kernel said.
        why: String,
    },
    /// The drain and its like had to run as ordinary threads.
    HelpersNotRealTime {
        /// What the kernel said.
        why: String,
    },
    /// A measured thread took page faults.
    PageFaults {
        /// Series and their numbers.
        what: String,
    },
    /// A load ended before it should.
    LoadDied {
        /// Its name.
        load: String,
        /// How it ended.
        how: String,
    },
    /// A load did nothing while the run went on.
    LoadDidNothing {
        /// Its name.
        load: String,
    },
    /// Some tasks of a load did nothing.
    LoadInPart {
        /// Its name.
        load: String,
        /// How many of how many.
        what: String,
    },
    /// The reader was too late for some samples.
    SamplesLost {
        /// How many.
        lost: u64,
    },
    /// The drain was late.
    DrainLate {
        /// By how much at the most.
        by: String,
    },
    /// The disk did not take everything.
    RecordIncomplete {
        /// What failed, and what that leaves out.
        what: String,
    },
    /// A loop ended with an error.
    WaitFailed {
        /// Series and error.
        what: String,
    },
    /// Not one sample.
    NoSamples,
    /// More than one period in a hundred was missed.
    PeriodsMissed {
        /// Share of all periods, in percent, and which series.
        what: String,
    },
    /// Wake-ups before their time.
    EarlyWakeups {
        /// How many.
        early: u64,
    },
    /// Somebody ended the run early.
    Interrupted {
        /// By what.
        how: String,
    },
    /// The machine is not the whole machine.
    Virtual {
        /// What kind.
        kind: String,
    },
    /// Something happened to the machine or to a thread while the run went on.
    Happened(Incident),
    /// The maker went away.
    Crashed,
    /// `series.hlog` cannot be read to its end.
    SeriesDamaged {
        /// Where and how.
        what: String,
    },
    /// A file of samples cannot be read.
    SamplesDamaged {
        /// Which and how.
        what: String,
    },
    /// Another file of the run cannot be read.
    TrackDamaged {
        /// Which and how.
        what: String,
    },
    /// What came of arranging the machine.
    Setup(SetupDoubt),
    /// What the lab's virtual machine makes of the figures.
    Lab(LabDoubt),
    /// What came of tracing.
    Trace(TraceDoubt),
    /// What came of messages.
    Message(MessageDoubt),
    /// What came of received packets.
    Receive(ReceiveDoubt),
}

impl From<Doubt> for Caveat {
    fn from(doubt: Doubt) -> Self {
        let (code, effect, text, remedy) = doubt.words();
        Self { code: code.into(), effect, text, remedy: remedy.into() }
    }
}

impl From<LabDoubt> for Doubt {
    fn from(doubt: LabDoubt) -> Self {
        Self::Lab(doubt)
    }
}

impl From<MessageDoubt> for Doubt {
    fn from(doubt: MessageDoubt) -> Self {
        Self::Message(doubt)
    }
}

impl From<ReceiveDoubt> for Doubt {
    fn from(doubt: ReceiveDoubt) -> Self {
        Self::Receive(doubt)
    }
}

impl From<SetupDoubt> for Doubt {
    fn from(doubt: SetupDoubt) -> Self {
        Self::Setup(doubt)
    }
}

impl From<TraceDoubt> for Doubt {
    fn from(doubt: TraceDoubt) -> Self {
        Self::Trace(doubt)
    }
}
