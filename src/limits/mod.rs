//! Limits for all file readers. Files are untrusted: a short one can request much memory.
//!
//! Every limit is above what tardy writes, and above what imported programs write. Limits apply
//! during reading, because the size that a file states is not trusted either. With them no reader
//! uses more than 2 GiB (docs/explanation/reliability.md). Kernel files are trusted and have no
//! limits here.

mod json;

pub use json::{JsonCounts, JsonLimits};

/// What to do about a file that exceeds a limit.
pub const ONLY_FROM_ELSEWHERE: &str =
    "tardy writes no such file: restore it from a copy, or leave it out";

/// `run.json`.
pub mod record {
    use super::{JsonLimits, ONLY_FROM_ELSEWHERE};

    /// A larger record is refused; that of 2,000 CPUs with all their stages has half of it.
    pub const LARGEST_RECORD: u64 = 32 << 20;

    /// Objects, lists and elements of JSON, and bytes of a string: a word of a command line has at
    /// most 128 KiB.
    pub const JSON: JsonLimits = JsonLimits {
        objects: 1 << 18,
        lists: 1 << 18,
        elements: 1 << 21,
        string: 256 << 10,
        remedy: ONLY_FROM_ELSEWHERE,
    };

    /// The number of series that are read: those of 2,000 CPUs with all their stages. No more ends
    /// and flows of messages: each is a row of a table, which is as wide as the widest.
    pub const MOST_ROWS: usize = 1 << 14;

    /// Series that were found while it measured.
    pub const MOST_FOUND: usize = 4_096;
}

/// `ab.json`, `plan.json` and `settings.json`.
pub mod campaign {
    use super::{JsonLimits, ONLY_FROM_ELSEWHERE};

    /// A plan of 10,000 cells has a quarter of it. A string may be a command of the user.
    pub const JSON: JsonLimits = JsonLimits {
        objects: 1 << 18,
        lists: 1 << 18,
        elements: 1 << 21,
        string: 1 << 20,
        remedy: ONLY_FROM_ELSEWHERE,
    };

    /// The record of a plan of 10,000 cells has a third of it.
    pub const LARGEST: u64 = 32 << 20;
}

/// `series.hlog` and `live.hlog`.
pub mod log {
    /// A complete line is never longer than this; a longer one is damage, not data.
    pub const LONGEST_LINE: u64 = 2 << 20;

    /// Samples of all series together: a hundred days at 1 GHz. Sums of what was read stay far
    /// below the largest integer.
    pub const MOST_SAMPLES: u64 = 1 << 53;
}

/// Files of single samples.
pub mod samples {
    /// Bytes of a footer: more than a row group for each series takes that a record may have.
    pub const LARGEST_FOOTER: u64 = 8 << 20;

    /// Values within values that are skipped: more than any footer has.
    pub const DEEPEST: u8 = 16;
}

/// `machine.csv`, `loads.csv`, `figures.csv` and `interrupts.csv`.
pub mod tracks {
    /// A file is refused above this size; a day on 256 CPUs has less than half of it.
    pub const LARGEST_TRACK: u64 = 32 << 20;

    /// The number of rows that are read: each takes some ten times its bytes.
    pub const MOST_ROWS: usize = 2_000_000;

    /// CPUs times intervals that are drawn, 32 MiB; a day on 256 CPUs has a tenth of it.
    pub const MOST_CELLS: usize = 4 << 20;
}

/// `peaks.jsonl` and `blame.json`.
pub mod peaks {
    use super::{JsonLimits, ONLY_FROM_ELSEWHERE};

    /// Of `blame.json`: each move of stolen time is a list.
    pub const BLAME_JSON: JsonLimits = JsonLimits {
        objects: 1 << 19,
        lists: 1 << 19,
        elements: 1 << 22,
        string: 64 << 10,
        remedy: ONLY_FROM_ELSEWHERE,
    };

    /// Of one line: the events of one late wake-up.
    pub const LINE_JSON: JsonLimits = JsonLimits {
        objects: 1 << 16,
        lists: 1 << 16,
        elements: 1 << 19,
        string: 64 << 10,
        remedy: ONLY_FROM_ELSEWHERE,
    };

    /// The longest accepted line, bytes.
    pub const LONGEST_LINE: u64 = 4 << 20;

    /// More lines than any run leaves.
    pub const MOST_LINES: u64 = 1_000_000;

    /// The largest total of lines of complete peaks, bytes; beyond it, the smallest peaks go.
    pub const LARGEST_HELD: u64 = 256 << 20;

    /// The largest accepted `blame.json`, bytes.
    pub const LARGEST_BLAME: u64 = 64 << 20;

    /// Sixteen of each octave are fewer. Each asks for the part of all latencies that it has.
    pub const MOST_BUCKETS: usize = 2_048;

    /// More moves of stolen time than any run leaves; each interval of the log asks for those of
    /// its time.
    pub const MOST_MOVES: usize = 65_536;
}

/// `profile.json`.
pub mod profile {
    /// The largest accepted file, bytes.
    pub const LARGEST: u64 = 64 << 20;

    /// Names of functions, or of where they come from.
    pub const MOST_NAMES: usize = 100_000;

    /// Functions.
    pub const MOST_FRAMES: usize = 200_000;

    /// Places in the tree of stacks.
    pub const MOST_NODES: usize = 1_000_000;

    /// Tasks.
    pub const MOST_TASKS: usize = 10_000;

    /// Rows.
    pub const MOST_ROWS: usize = 200_000;

    /// Functions of one stack; a program takes at most 64 of the kernel and 127 of the user.
    pub const DEEPEST: u32 = 256;

    /// Characters of a name.
    pub const LONGEST_NAME: usize = 400;
}

/// `recording.jsonl.gz`.
pub mod recording {
    /// More entries than this are not kept: the oldest go.
    pub const MOST_MOMENTS: usize = 1_000_000;

    /// The longest accepted line, bytes.
    pub const LONGEST_LINE: u64 = 1 << 20;

    /// Lines in all are no more bytes than this.
    pub const LARGEST: u64 = 1 << 30;
}

/// What one look at a running run reads.
pub mod follow {
    /// Bytes of `loads.csv` that one look reads.
    pub const MOST_LOADS: usize = 1 << 20;

    /// The largest accepted `live.json`, bytes.
    pub const LARGEST_STATE: u64 = 1 << 20;

    /// Bytes that one look reads of a log: a run of 64 CPUs with all their stages writes a sixth
    /// of it in a second.
    pub const MOST_BYTES: usize = 8 << 20;

    /// The largest accepted `live.hlog`, bytes.
    pub const LARGEST_LIVE: u64 = 64 << 20;

    /// Bytes that one look reads; and one peak takes at most.
    pub const MOST_PEAK_BYTES: usize = 4 << 20;

    /// Series with their causes.
    pub const MOST_KEPT: usize = 16_384;
}

/// Bundles of runs.
pub mod bundle {
    /// Bytes of all its files, unpacked: a day of single samples at 10 kHz has half of it.
    pub const LARGEST: u64 = 16 << 30;

    /// Bytes of its first file.
    pub const LARGEST_HEAD: u64 = 64 << 10;

    /// Bytes of one line of a table or of a log.
    pub const LARGEST_TEXT: u64 = 8 << 20;
}

/// The index of a store.
pub mod index {
    use super::{JsonLimits, ONLY_FROM_ELSEWHERE};

    /// Of all lines together.
    pub const JSON: JsonLimits = JsonLimits {
        objects: 1 << 22,
        lists: 1 << 22,
        elements: 1 << 25,
        string: 256 << 10,
        remedy: ONLY_FROM_ELSEWHERE,
    };

    /// The longest accepted line, bytes: that of a traced run of 2,000 CPUs has half of it.
    pub const LONGEST_LINE: u64 = 4 << 20;

    /// A larger index is made anew: that of 25,000 traced runs of 64 CPUs has as much.
    pub const LARGEST: u64 = 512 << 20;
}

/// The journal of changed settings.
pub mod journal {
    /// More than a machine with thousands of interrupts and tasks has.
    pub const LARGEST: u64 = 64 << 20;
}

/// Plans.
pub mod plan {
    /// A plan is a page of text; what is larger is something else.
    pub const LARGEST_PLAN: u64 = 1 << 20;

    /// More cells are refused: the record is written anew after each.
    pub const MOST_CELLS: usize = 10_000;
}

/// Directories, baselines and published files of the lab, and what a guest hands out.
pub mod matrix {
    use super::{JsonLimits, ONLY_FROM_ELSEWHERE};

    /// Of each of these files; one cell of 20,000 has ten objects.
    pub const JSON: JsonLimits = JsonLimits {
        objects: 1 << 19,
        lists: 1 << 19,
        elements: 1 << 22,
        string: 256 << 10,
        remedy: ONLY_FROM_ELSEWHERE,
    };

    /// A record of a matrix is a page of text; larger ones are refused.
    pub const LARGEST: u64 = 16 << 20;

    /// More cells are neither written nor read.
    pub const MOST_PUBLISHED: usize = 20_000;

    /// Samples that are hashed, which takes a minute: more than fit into what a guest hands out,
    /// unless nearly all are the same. A record states any number, and a small file holds very
    /// many of those.
    pub const MOST_SAMPLES: u64 = 1 << 30;

    /// Longest path of a file in a run.
    pub const LONGEST_NAME: usize = 255;

    /// No baseline comes near it.
    pub const LARGEST_BASELINE: u64 = 16 << 20;

    /// No file of these comes near it.
    pub const LARGEST_PUBLISHED: u64 = 64 << 20;

    /// How deep directories are searched for runs.
    pub const DEEPEST: usize = 6;

    /// A limit above the size of any real matrix.
    pub const MOST_RUNS: usize = 20_000;

    /// Bytes of the records of all runs together, which are all kept while they are compared, at
    /// about nine times that. One of the lab has some 10 kB. The same file can be there under many
    /// names.
    pub const MOST_RECORD_BYTES: u64 = 128 << 20;

    /// Bytes of kernels' configurations that are read; one has 300 kB, and takes ten times that
    /// once it is read. What is beyond is left out.
    pub const MOST_CONFIG_BYTES: u64 = 32 << 20;
}

/// Kernels and their packages.
pub mod kernels {
    /// The largest unpacked size: no kernel or module comes near it.
    pub const LARGEST: u64 = 1 << 30;

    /// No release is longer: the kernel itself has no room for it.
    pub const LONGEST_RELEASE: usize = 64;

    /// Nor a configuration.
    pub const LARGEST_CONFIG: u64 = 4 << 20;

    /// No module is larger.
    pub const LARGEST_MODULE: u64 = 256 << 20;

    /// No list of modules comes near it: those of distributions have some hundred KiB.
    pub const LARGEST_LIST: u64 = 64 << 20;
}

/// Files of other programs.
pub mod import {
    use super::JsonLimits;

    /// What to do about a file that exceeds a limit.
    const REMEDY: &str = "is it the file that you mean? A part of it may be imported";

    /// Of a document of JSON: 160 threads with 100,000 bins each have as many elements.
    pub const JSON: JsonLimits = JsonLimits {
        objects: 1 << 18,
        lists: 1 << 18,
        elements: 1 << 24,
        string: 1 << 20,
        remedy: REMEDY,
    };

    /// A line is never longer than this in any format that is read by lines.
    pub const LONGEST_LINE: usize = 4 << 20;

    /// Bytes of a file that is read whole.
    pub const MOST_WHOLE: usize = 64 << 20;

    /// Series of one file.
    pub const MOST_SERIES: usize = 8_192;

    /// Values of one figure.
    pub const MOST_VALUES: usize = 1_000_000;

    /// Functions of one stack, and lines of one kind of interference.
    pub const MOST_LINES: usize = 4_096;

    /// Blocks of one file.
    pub const MOST_BLOCKS: usize = 10_000;

    /// Elements within each other.
    pub const MOST_DEPTH: usize = 100;

    /// Tasks of one file that have their own series; those beyond are in that of their name alone.
    pub const MOST_TASKS: usize = 4_000;

    /// Columns of one table.
    pub const MOST_COLUMNS: usize = 8_192;

    /// Counts of one histogram: no version has more, with 5 digits and 64 bits.
    pub const MOST_COUNTS: usize = 1 << 23;

    /// Bytes that one unpacks to.
    pub const MOST_UNPACKED: u64 = 8 << 20;

    /// Threads of one file.
    pub const MOST_THREADS: usize = 4_096;

    /// The greatest number of cells that are not 0 in a histogram: a file with more is invalid.
    pub const MOST_CELLS: usize = 2_000_000;

    /// Bytes of the name of a series.
    pub const MOST_NAME: usize = 100;

    /// Bytes of such a file; it has a dozen lines.
    pub const MOST_INFO: usize = 64 << 10;

    /// Bytes of memory to unpack xz: `xz -9` asks for 65 MiB.
    pub const MOST_XZ_MEMORY: u64 = 256 << 20;

    /// Files of a directory or an archive that is imported whole.
    pub const MOST_FILES: usize = 100_000;
}

/// Directories and lists of runs that a command line names.
pub mod selection {
    /// Directories below one that is searched for runs. A collected tree has four: the day, the
    /// machine, the plan and its cells.
    pub const DEEPEST: usize = 16;

    /// Bytes of a list: 2 million paths of 128 bytes.
    pub const LARGEST_LIST: u64 = 256 << 20;

    /// Runs of one page, side by side.
    pub const MOST_ON_A_PAGE: usize = 256;
}

/// Formats that are written whole: what a run asks for may be many times its size.
pub mod export {
    /// Rows times threads of a histogram of cyclictest: 100,000 rows of 335 threads.
    pub const MOST_CELLS: u64 = 1 << 25;

    /// Buckets that have samples, of all runs and series together: 500 of each series that a record
    /// may have.
    pub const MOST_BUCKETS: usize = 1 << 23;

    /// Bytes of the result.
    pub const LARGEST: usize = 512 << 20;
}
