//! The system's JACK library, loaded when it is first needed, and a client of a server.
//!
//! Loaded instead of linked, so that tardy runs without it. PipeWire has a library of the same
//! binary interface.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    os::unix::fs::MetadataExt as _,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicI32, AtomicI64, AtomicU32, Ordering},
    },
};

use tardy_hot::{
    clock::now_ns,
    cycles::{CycleCallback, CycleShared, CycleSink},
};
use thiserror::Error;

/// The library by the name of its binary interface, as the loader finds it.
const NAME: &str = "libjack.so.0";

/// `JackNoStartServer` and `JackServerName` of `jack/types.h`.
const NO_START: c_int = 0x01;
const SERVER_NAME: c_int = 0x04;

/// What JACK could not do.
#[derive(Debug, Error)]
pub enum JackError {
    /// The library is missing or invalid.
    #[error(
        "{NAME} cannot be loaded ({why}): audio uses the system's JACK library. Install it \
         (Debian: apt-get install libjack-jackd2-0, or pipewire-jack for PipeWire)"
    )]
    Absent {
        /// What the loader says.
        why: String,
    },
    /// No server answers.
    #[error(
        "no JACK server {server} answers (status {status:#x}): start one as this user, as `jackd \
         -R -d alsa -p 64` or, without a sound device, `jackd -R -d dummy -r 48000 -p 64`; with \
         PipeWire, run tardy under `pw-jack`. A server of another name: --server NAME"
    )]
    NoServer {
        /// Its name, in words.
        server: String,
        /// `jack_status_t`.
        status: i32,
    },
    /// The name of a server has a zero in it.
    #[error("--server {0:?}: a name has no zero in it")]
    Name(String),
    /// Another user made the server's socket.
    #[error(
        "{socket} belongs to user {owner}, so that the JACK server is not yours: start one as \
         this user, or choose it by --server NAME"
    )]
    Foreign {
        /// Where the server is reached.
        socket: String,
        /// The number of that user.
        owner: u32,
    },
    /// A call failed.
    #[error("{what} failed with {code}: the JACK server refuses it; see what it prints")]
    Call {
        /// The call.
        what: &'static str,
        /// What it returned.
        code: i32,
    },
}

/// Declares the functions once: their field, their type, and how they are found.
macro_rules! functions {
    ($($name:ident: $type:ty),+ $(,)?) => {
        /// The functions, as `jack/jack.h` declares them.
        #[derive(Debug)]
        struct Api { $($name: $type),+ }

        impl Api {
            fn find(library: &libloading::Library) -> Result<Self, libloading::Error> {
                // SAFETY: libjack.so.0 promises these functions with these types; the caller never
                // unloads it.
                $(let $name = *unsafe { library.get::<$type>(stringify!($name)) }?;)+
                Ok(Self { $($name),+ })
            }
        }
    };
}

type Client = *mut c_void;
type Process = unsafe extern "C" fn(u32, *mut c_void) -> c_int;
type OfClient = unsafe extern "C" fn(Client) -> c_int;
type Count = unsafe extern "C" fn(Client) -> u32;
type Share = unsafe extern "C" fn(Client) -> f32;
type SetProcess = unsafe extern "C" fn(Client, Process, *mut c_void) -> c_int;
type OnXrun = unsafe extern "C" fn(*mut c_void) -> c_int;
type OnFreewheel = unsafe extern "C" fn(c_int, *mut c_void);
type OnShutdown = unsafe extern "C" fn(c_int, *const c_char, *mut c_void);
type OnMessage = unsafe extern "C" fn(*const c_char);

functions! {
    jack_client_open:
        unsafe extern "C" fn(*const c_char, c_int, *mut c_int, ...) -> Client,
    jack_client_close: OfClient,
    jack_activate: OfClient,
    jack_deactivate: OfClient,
    jack_set_process_callback: SetProcess,
    jack_set_buffer_size_callback: SetProcess,
    jack_set_sample_rate_callback: SetProcess,
    jack_set_xrun_callback: unsafe extern "C" fn(Client, OnXrun, *mut c_void) -> c_int,
    jack_set_freewheel_callback: unsafe extern "C" fn(Client, OnFreewheel, *mut c_void) -> c_int,
    jack_on_info_shutdown: unsafe extern "C" fn(Client, OnShutdown, *mut c_void),
    jack_get_xrun_delayed_usecs: Share,
    jack_get_sample_rate: Count,
    jack_get_buffer_size: Count,
    jack_cpu_load: Share,
    jack_last_frame_time: Count,
    jack_set_error_function: unsafe extern "C" fn(OnMessage),
    jack_set_info_function: unsafe extern "C" fn(OnMessage),
}

/// The library prints otherwise; what matters is said by the errors above.
unsafe extern "C" fn say_nothing(_: *const c_char) {}

/// Loads the library the first time; it stays.
fn api() -> Result<&'static Api, JackError> {
    static LOADED: OnceLock<Result<Api, String>> = OnceLock::new();
    let load = || {
        // SAFETY: its initialisers are those that any program which links it runs.
        let library = unsafe { libloading::Library::new(NAME) }?;
        let api = Api::find(&library)?;
        // Never unloaded: the functions stay valid.
        std::mem::forget(library);
        // SAFETY: the function has this type and lives as long as the process.
        unsafe { (api.jack_set_error_function)(say_nothing) };
        // SAFETY: as above.
        unsafe { (api.jack_set_info_function)(say_nothing) };
        Ok::<_, libloading::Error>(api)
    };
    let loaded = LOADED.get_or_init(|| load().map_err(|error| error.to_string()));
    loaded.as_ref().map_err(|why| JackError::Absent { why: why.clone() })
}

/// Why a server is no longer the one that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerEvent {
    /// It ended, or put this client out.
    Ended,
    /// It changed the frames in a cycle.
    Period,
    /// It changed its rate.
    Rate,
    /// Its cycles follow each other without waiting for time.
    Freewheel,
}

impl ServerEvent {
    const ALL: [Self; 4] = [Self::Ended, Self::Period, Self::Rate, Self::Freewheel];
}

/// What JACK's threads say outside of the process callback.
#[derive(Debug, Default)]
struct Said {
    cycles: Arc<CycleShared>,
    frames: u32,
    rate_hz: u32,
    /// The first event, as a place in [`ServerEvent::ALL`] and 1; 0 for none. When, ns.
    event: AtomicI32,
    event_ns: AtomicI64,
    /// The longest delay of an xrun that JACK stated since it was asked for, us as the bits of a
    /// float, which is never negative.
    delay_us: AtomicU32,
    /// The client, for what is asked in callbacks.
    client: AtomicI64,
}

impl Said {
    fn note(&self, event: ServerEvent) {
        let place = ServerEvent::ALL.iter().position(|own| *own == event).unwrap_or(0);
        let number = i32::try_from(place).unwrap_or(0) + 1;
        self.event_ns.compare_exchange(0, now_ns(), Ordering::AcqRel, Ordering::Acquire).ok();
        self.event.compare_exchange(0, number, Ordering::AcqRel, Ordering::Acquire).ok();
    }

    /// # Safety
    /// `own` is the [`Said`] of a client that is not closed.
    unsafe fn of<'a>(own: *mut c_void) -> &'a Self {
        // SAFETY: as the caller promises.
        unsafe { &*own.cast_const().cast::<Self>() }
    }
}

unsafe extern "C" fn on_shutdown(_: c_int, _: *const c_char, own: *mut c_void) {
    // SAFETY: registered with the client's own.
    unsafe { Said::of(own) }.note(ServerEvent::Ended);
}

unsafe extern "C" fn on_frames(frames: u32, own: *mut c_void) -> c_int {
    // SAFETY: as above.
    let said = unsafe { Said::of(own) };
    if frames != said.frames {
        said.note(ServerEvent::Period);
    }
    0
}

unsafe extern "C" fn on_rate(rate_hz: u32, own: *mut c_void) -> c_int {
    // SAFETY: as above.
    let said = unsafe { Said::of(own) };
    if rate_hz != said.rate_hz {
        said.note(ServerEvent::Rate);
    }
    0
}

unsafe extern "C" fn on_freewheel(starts: c_int, own: *mut c_void) {
    if starts != 0 {
        // SAFETY: as above.
        unsafe { Said::of(own) }.note(ServerEvent::Freewheel);
    }
}

unsafe extern "C" fn on_xrun(own: *mut c_void) -> c_int {
    // SAFETY: as above.
    let said = unsafe { Said::of(own) };
    if let Ok(api) = api() {
        let client = said.client.load(Ordering::Relaxed) as Client;
        // SAFETY: the client is open while its callbacks are called.
        let delay_us = unsafe { (api.jack_get_xrun_delayed_usecs)(client) };
        said.delay_us.fetch_max(delay_us.max(0.0).to_bits(), Ordering::Relaxed);
    }
    said.cycles.xruns.fetch_add(1, Ordering::Relaxed);
    0
}

/// Refuses a server whose socket another user made, in a directory where all may make files: the
/// library would wait for its answer without end. Where it lies: `JackClientChannel::Open` and
/// `BuildName` of JACK 2 (posix/JackSocket.cpp); the library of PipeWire has none there.
fn refuse_foreign(server: Option<&str>) -> Result<(), JackError> {
    let set = |name| std::env::var(name).ok().filter(|text: &String| !text.is_empty());
    if set("JACK_PROMISCUOUS_SERVER").is_some() {
        return Ok(());
    }
    let named = server.map(str::to_owned).or_else(|| set("JACK_DEFAULT_SERVER"));
    let server = named.unwrap_or_else(|| "default".into());
    let own = rustix::process::geteuid().as_raw();
    let socket = format!("/dev/shm/jack_{server}_{own}_0");
    let owner = std::fs::symlink_metadata(&socket).ok().map(|about| about.uid());
    match owner.filter(|owner| *owner != own) {
        Some(owner) => Err(JackError::Foreign { socket, owner }),
        None => Ok(()),
    }
}

/// A client of a server; closed when this is dropped.
#[derive(Debug)]
pub struct JackClient {
    api: &'static Api,
    client: Client,
    said: Box<Said>,
    /// What the process callback works with, once it is active.
    callback: Option<Box<dyn std::any::Any>>,
    /// Frames of a cycle.
    pub frames: u32,
    /// Frames of a second.
    pub rate_hz: u32,
}

impl JackClient {
    /// Becomes a client of the server called `server`, or of the default one.
    ///
    /// # Errors
    /// The library or the server is absent.
    pub fn open(server: Option<&str>, cycles: &Arc<CycleShared>) -> Result<Self, JackError> {
        refuse_foreign(server)?;
        let api = api()?;
        let name = server.map(CString::new).transpose();
        let name = name.map_err(|_| JackError::Name(server.unwrap_or_default().into()))?;
        let mut status = 0;
        let (own, into): (&CStr, _) = (c"tardy", &raw mut status);
        let client = match &name {
            // SAFETY: strings that end in zero, a writable status, and the argument of the option.
            Some(name) => unsafe {
                (api.jack_client_open)(own.as_ptr(), NO_START | SERVER_NAME, into, name.as_ptr())
            },
            // SAFETY: the same without an option that has an argument.
            None => unsafe { (api.jack_client_open)(own.as_ptr(), NO_START, into) },
        };
        if client.is_null() {
            let server = server.map_or_else(|| "by default".into(), |name| format!("{name:?}"));
            return Err(JackError::NoServer { server, status });
        }
        // SAFETY: the client was just opened.
        let frames = unsafe { (api.jack_get_buffer_size)(client) };
        // SAFETY: as above.
        let rate_hz = unsafe { (api.jack_get_sample_rate)(client) };
        let said = Said {
            cycles: Arc::clone(cycles),
            frames,
            rate_hz,
            client: AtomicI64::new(client as i64),
            ..Said::default()
        };
        Ok(Self { api, client, said: Box::new(said), callback: None, frames, rate_hz })
    }

    /// `jack_last_frame_time` and its client, for the process callback.
    #[must_use]
    pub fn frame_time(&self) -> (unsafe extern "C" fn(*mut c_void) -> u32, *mut c_void) {
        (self.api.jack_last_frame_time, self.client)
    }

    /// Lets the server call `callback` in each of its cycles.
    ///
    /// # Errors
    /// JACK refuses it.
    pub fn activate<S: CycleSink + 'static>(
        &mut self,
        callback: CycleCallback<S>,
    ) -> Result<(), JackError> {
        let mut callback = Box::new(callback);
        let own: *mut c_void = (&raw mut *callback).cast();
        let said: *mut c_void = (&raw const *self.said).cast_mut().cast();
        self.callback = Some(callback);
        let (api, client) = (self.api, self.client);
        let process = CycleCallback::<S>::process;
        // SAFETY: the callback lives until the client is closed, and nothing else uses it.
        let set = unsafe { (api.jack_set_process_callback)(client, process, own) };
        check("jack_set_process_callback", set)?;
        // SAFETY: what was said lives as long, and is shared by atomics alone.
        let set = unsafe { (api.jack_set_xrun_callback)(client, on_xrun, said) };
        check("jack_set_xrun_callback", set)?;
        // SAFETY: as above.
        let set = unsafe { (api.jack_set_buffer_size_callback)(client, on_frames, said) };
        check("jack_set_buffer_size_callback", set)?;
        // SAFETY: as above.
        let set = unsafe { (api.jack_set_sample_rate_callback)(client, on_rate, said) };
        check("jack_set_sample_rate_callback", set)?;
        // SAFETY: as above.
        let set = unsafe { (api.jack_set_freewheel_callback)(client, on_freewheel, said) };
        check("jack_set_freewheel_callback", set)?;
        // SAFETY: as above.
        unsafe { (api.jack_on_info_shutdown)(client, on_shutdown, said) };
        // SAFETY: the client is valid.
        check("jack_activate", unsafe { (api.jack_activate)(client) })
    }

    /// What share of a cycle the server and all clients take, by its own smoothed account, percent.
    #[must_use]
    pub fn load_percent(&self) -> f64 {
        // SAFETY: the client is valid.
        f64::from(unsafe { (self.api.jack_cpu_load)(self.client) })
    }

    /// The longest delay of an xrun since the last call, as JACK states it, us.
    pub fn take_delay_us(&self) -> f64 {
        f64::from(f32::from_bits(self.said.delay_us.swap(0, Ordering::Relaxed)))
    }

    /// Why the server is no longer the one that is measured, and when that was found,
    /// `CLOCK_MONOTONIC` ns.
    #[must_use]
    pub fn event(&self) -> Option<(ServerEvent, i64)> {
        let number = usize::try_from(self.said.event.load(Ordering::Acquire)).unwrap_or(0);
        let event = ServerEvent::ALL.get(number.checked_sub(1)?)?;
        Some((*event, self.said.event_ns.load(Ordering::Acquire)))
    }
}

fn check(what: &'static str, code: c_int) -> Result<(), JackError> {
    if code == 0 { Ok(()) } else { Err(JackError::Call { what, code }) }
}

impl Drop for JackClient {
    fn drop(&mut self) {
        // SAFETY: the client is valid; of one whose server is gone this fails, which does not
        // matter.
        unsafe { (self.api.jack_deactivate)(self.client) };
        // SAFETY: as above; no callback is called after this, so that what they use may go.
        unsafe { (self.api.jack_client_close)(self.client) };
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::chown};

    use super::*;

    #[test]
    fn a_server_whose_socket_another_user_made_is_refused_before_it_is_asked() {
        let own = rustix::process::geteuid();
        let name = format!("tardy-test-{}", std::process::id());
        assert!(refuse_foreign(Some(&name)).is_ok(), "without a socket");
        let socket = format!("/dev/shm/jack_{name}_{}_0", own.as_raw());
        fs::write(&socket, "").unwrap();
        let of_mine = refuse_foreign(Some(&name));
        let foreign = own.is_root().then(|| {
            chown(&socket, Some(65_534), None).unwrap();
            refuse_foreign(Some(&name)).map_err(|error| error.to_string())
        });
        fs::remove_file(&socket).unwrap();
        assert!(of_mine.is_ok(), "{of_mine:?}");
        let Some(foreign) = foreign else { return eprintln!("skipped: needs root") };
        let wanted = format!("{socket} belongs to user 65534");
        assert!(foreign.unwrap_err().starts_with(&wanted));
    }
}
