//! An instance of the kernel's tracer for this process alone: what others trace is not touched.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use super::{TracefsUnavailable, decoder::Decoder, known::KnownEvent};

/// Of each CPU's buffer, KiB: 100 ms of a CPU with 400,000 events a second.
pub(super) const BUFFER_KIB: u32 = 2048;

/// Longer descriptions are not read, bytes.
const MOST_TEXT: usize = 1 << 16;

/// Where instances are, and what describes events.
const INSTANCES: &str = "/sys/kernel/tracing/instances";
const EVENTS: &str = "/sys/kernel/tracing/events";

/// The directory of the instance of process `pid`.
pub(super) fn path_of(pid: u32) -> String {
    format!("{INSTANCES}/tardy-{pid}")
}

/// The files that say how pages, events and these kinds of events are laid out, for a decoder; and
/// which of the events this kernel has not.
pub(super) fn describe<'a>(
    events: impl Iterator<Item = &'a KnownEvent>,
) -> Result<(Decoder, Vec<&'a KnownEvent>), TracefsUnavailable> {
    let read = |path: &str| {
        let path = Path::new(EVENTS).join(path);
        whole(&path).map_err(|error| TracefsUnavailable::of(&path, &error))
    };
    let (page, header) = (read("header_page")?, read("header_event")?);
    let events: Vec<&KnownEvent> = events.collect();
    let format =
        |event: &&KnownEvent| Some((event.path, read(&format!("{}/format", event.path)).ok()?));
    let formats: Vec<(&str, String)> = events.iter().filter_map(format).collect();
    let decoder = Decoder::new(&page, &header, &formats).ok_or(TracefsUnavailable::Unknown)?;
    // Also one whose fields have other names.
    let missing = events.into_iter().filter(|event| !decoder.knows(event.kind)).collect();
    Ok((decoder, missing))
}

/// The text of a file of tracefs. `header_page` and `header_event` have an end after whatever the
/// first read got, so that this must ask for all.
fn whole(path: &Path) -> io::Result<String> {
    let (mut file, mut text, mut buffer) = (File::open(path)?, Vec::new(), vec![0; MOST_TEXT]);
    loop {
        let bytes = file.read(&mut buffer)?;
        text.extend_from_slice(buffer.get(..bytes).unwrap_or_default());
        if bytes == 0 || text.len() > MOST_TEXT {
            return String::from_utf8(text).map_err(io::Error::other);
        }
    }
}

/// The instance, made and not yet removed: that is up to who journalled it.
#[derive(Debug)]
pub(super) struct Instance {
    directory: PathBuf,
}

/// The binary pages of one CPU.
#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) cpu: u32,
    file: File,
}

impl Instance {
    /// Makes it. It must be journalled by now.
    pub(super) fn make(path: &str) -> Result<Self, TracefsUnavailable> {
        let directory = PathBuf::from(path);
        fs::create_dir(&directory).map_err(|error| TracefsUnavailable::of(&directory, &error))?;
        let instance = Self { directory };
        instance.write("tracing_on", "0")?;
        instance.write("trace_clock", "mono")?;
        instance.write("buffer_size_kb", &BUFFER_KIB.to_string())?;
        // Names of tasks come with each switch; older kernels have no such option here.
        let _ = instance.write("options/record-cmd", "0");
        Ok(instance)
    }

    /// Writes a value into one of its files.
    pub(super) fn write(&self, file: &str, value: &str) -> Result<(), TracefsUnavailable> {
        let path = self.directory.join(file);
        // Never made: what is missing is an error.
        let opened = OpenOptions::new().write(true).open(&path);
        opened
            .and_then(|mut file| file.write_all(value.as_bytes()))
            .map_err(|error| TracefsUnavailable::of(&path, &error))
    }

    /// Switches an event on, for those that match `filter`, all where it is empty.
    pub(super) fn enable(&self, event: &str, filter: &str) -> Result<(), TracefsUnavailable> {
        let filter = if filter.is_empty() { "0" } else { filter };
        self.write(&format!("events/{event}/filter"), filter)?;
        self.write(&format!("events/{event}/enable"), "1")
    }

    /// Forgets what was recorded.
    pub(super) fn clear(&self) -> Result<(), TracefsUnavailable> {
        let path = self.directory.join("trace");
        let opened = OpenOptions::new().write(true).truncate(true).open(&path);
        opened.map(drop).map_err(|error| TracefsUnavailable::of(&path, &error))
    }

    /// The pages of every CPU.
    pub(super) fn pipes(&self) -> Result<Vec<Pipe>, TracefsUnavailable> {
        let path = self.directory.join("per_cpu");
        let entries = fs::read_dir(&path).map_err(|error| TracefsUnavailable::of(&path, &error))?;
        let mut pipes = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("cpu")?.parse().ok());
            let Some(cpu) = number else { continue };
            let path = entry.path().join("trace_pipe_raw");
            let mut options = OpenOptions::new();
            options.read(true).custom_flags(libc::O_NONBLOCK);
            let file =
                options.open(&path).map_err(|error| TracefsUnavailable::of(&path, &error))?;
            pipes.push(Pipe { cpu, file });
        }
        pipes.sort_by_key(|pipe| pipe.cpu);
        Ok(pipes)
    }
}

impl Pipe {
    /// The next page, or what there is of it; `None` if there is nothing new.
    pub(super) fn read(&mut self, page: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match self.file.read(page) {
                Ok(0) => return Ok(None),
                Ok(bytes) => return Ok(Some(bytes)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
