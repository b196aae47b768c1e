//! The functions of libzmq, found by name.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    io,
    sync::OnceLock,
};

use tardy_hot::ports::zmq::{Functions, ZmqMessage};

use super::{NAME, ZmqError};

/// Errors that libzmq adds to those of the system begin here (`ZMQ_HAUSNUMERO`).
const OWN_ERRORS: c_int = 156_384_712;

/// Declares the functions once: their field, their type, and how they are found.
macro_rules! functions {
    ($($name:ident: $type:ty),+ $(,)?) => {
        /// The functions, as `zmq.h` declares them.
        #[derive(Debug)]
        pub(super) struct Api { $(pub(super) $name: $type),+ }

        impl Api {
            fn find(library: &libloading::Library) -> Result<Self, libloading::Error> {
                // SAFETY: libzmq.so.5 promises these functions with these types; the caller never
                // unloads it.
                $(let $name = *unsafe { library.get::<$type>(stringify!($name)) }?;)+
                Ok(Self { $($name),+ })
            }
        }
    };
}

type OfMessage = unsafe extern "C" fn(*mut ZmqMessage) -> c_int;
type WithMessage = unsafe extern "C" fn(*mut ZmqMessage, *mut c_void, c_int) -> c_int;
type OfHandle = unsafe extern "C" fn(*mut c_void) -> c_int;
type ToPlace = unsafe extern "C" fn(*mut c_void, *const c_char) -> c_int;

functions! {
    zmq_version: unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int),
    zmq_has: unsafe extern "C" fn(*const c_char) -> c_int,
    zmq_strerror: unsafe extern "C" fn(c_int) -> *const c_char,
    zmq_ctx_new: unsafe extern "C" fn() -> *mut c_void,
    zmq_ctx_set: unsafe extern "C" fn(*mut c_void, c_int, c_int) -> c_int,
    zmq_ctx_term: OfHandle,
    zmq_socket: unsafe extern "C" fn(*mut c_void, c_int) -> *mut c_void,
    zmq_close: OfHandle,
    zmq_setsockopt: unsafe extern "C" fn(*mut c_void, c_int, *const c_void, usize) -> c_int,
    zmq_getsockopt: unsafe extern "C" fn(*mut c_void, c_int, *mut c_void, *mut usize) -> c_int,
    zmq_bind: ToPlace,
    zmq_connect: ToPlace,
    zmq_send: unsafe extern "C" fn(*mut c_void, *const c_void, usize, c_int) -> c_int,
    zmq_recv: unsafe extern "C" fn(*mut c_void, *mut c_void, usize, c_int) -> c_int,
    zmq_socket_monitor: unsafe extern "C" fn(*mut c_void, *const c_char, c_int) -> c_int,
    zmq_msg_init: OfMessage,
    zmq_msg_init_size: unsafe extern "C" fn(*mut ZmqMessage, usize) -> c_int,
    zmq_msg_send: WithMessage,
    zmq_msg_recv: WithMessage,
    zmq_msg_close: OfMessage,
    zmq_msg_data: unsafe extern "C" fn(*mut ZmqMessage) -> *mut c_void,
    zmq_msg_more: unsafe extern "C" fn(*const ZmqMessage) -> c_int,
}

/// The library, loaded for as long as this process lives.
#[derive(Debug)]
pub struct Library {
    pub(super) api: Api,
}

impl Library {
    /// Loads it, the first time; it stays.
    ///
    /// # Errors
    /// [`ZmqError::Absent`], with the package that has it.
    pub fn get() -> Result<&'static Self, ZmqError> {
        static LOADED: OnceLock<Result<Library, String>> = OnceLock::new();
        let loaded = LOADED.get_or_init(|| Self::load().map_err(|error| error.to_string()));
        loaded.as_ref().map_err(|why| ZmqError::Absent { why: why.clone() })
    }

    fn load() -> Result<Self, libloading::Error> {
        // SAFETY: its initialisers are those of the C++ run time and of the libraries it needs,
        // which any program that links it runs.
        let library = unsafe { libloading::Library::new(NAME) }?;
        let api = Api::find(&library)?;
        // Never unloaded: the functions stay valid.
        std::mem::forget(library);
        Ok(Self { api })
    }

    /// `4.3.4`.
    #[must_use]
    pub fn version(&self) -> String {
        let (mut major, mut minor, mut patch) = (0, 0, 0);
        // SAFETY: writes three integers.
        unsafe { (self.api.zmq_version)(&raw mut major, &raw mut minor, &raw mut patch) };
        format!("{major}.{minor}.{patch}")
    }

    /// Whether it was built with PGM, and so with `epgm`.
    #[must_use]
    pub fn has_pgm(&self) -> bool {
        // SAFETY: reads a string that ends in zero.
        unsafe { (self.api.zmq_has)(c"pgm".as_ptr()) == 1 }
    }

    /// The error of the call that just failed in this thread.
    pub(super) fn last_error(&self) -> io::Error {
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(errno) if errno >= OWN_ERRORS => {
                // SAFETY: has no preconditions; the string it returns is constant.
                let text = unsafe { (self.api.zmq_strerror)(errno) };
                // SAFETY: as above, and it ends in zero.
                let text = unsafe { CStr::from_ptr(text) };
                io::Error::other(text.to_string_lossy().into_owned())
            }
            _ => error,
        }
    }

    /// What a port calls.
    pub(super) fn functions(&self) -> Functions {
        Functions {
            zmq_msg_init: self.api.zmq_msg_init,
            zmq_msg_init_size: self.api.zmq_msg_init_size,
            zmq_msg_send: self.api.zmq_msg_send,
            zmq_msg_recv: self.api.zmq_msg_recv,
            zmq_msg_close: self.api.zmq_msg_close,
            zmq_msg_data: self.api.zmq_msg_data,
            zmq_msg_more: self.api.zmq_msg_more,
        }
    }
}
