//! The ring through which late wake-ups and cycles come.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use libbpf_rs::{MapCore as _, Object, RingBuffer, RingBufferBuilder};

use super::{
    attach_unavailable::{AttachUnavailable, system},
    attached_thread::AttachedLate,
};

/// The reading end of the ring of late wake-ups.
pub(super) fn ring(
    object: &Object,
    late: Arc<Mutex<Vec<AttachedLate>>>,
) -> Result<RingBuffer<'static>, AttachUnavailable> {
    let failed = |why: &dyn fmt::Display| system("map the late wake-ups", why);
    let map = object.maps().find(|map| map.name() == "attach_late");
    let map = map.ok_or_else(|| failed(&"the object has no such map"))?;
    let mut builder = RingBufferBuilder::new();
    let each = move |bytes: &[u8]| {
        let mut late = late.lock().unwrap_or_else(PoisonError::into_inner);
        late.extend(AttachedLate::decode(bytes));
        0
    };
    builder.add(&map, each).map_err(|error| failed(&error))?;
    builder.build().map_err(|error| failed(&error))
}
