//! What the kernel reports with a packet: its stamps, and how many it dropped.

use core::ffi::c_int;

/// What the control messages of a packet say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamps {
    /// When the kernel had it, `CLOCK_REALTIME` ns.
    pub kernel_ns: Option<i64>,
    /// When the NIC had it, ns of the NIC's own clock.
    pub nic_ns: Option<i64>,
    /// How many packets the kernel has dropped so far because this socket was full.
    pub dropped: Option<u32>,
}

/// The bytes of a `cmsghdr` and of a `timespec`: no padding before what follows them.
const HEAD: usize = size_of::<libc::cmsghdr>();
const TIME: usize = size_of::<libc::timespec>();

/// Reads control messages. Whatever does not fit its own length ends the reading.
#[inline(always)]
#[must_use]
pub fn stamps(control: &[u8]) -> Stamps {
    let mut found = Stamps::default();
    let mut rest = control;
    while let Some((length, level, kind)) = head(rest) {
        let Some(body) = rest.get(HEAD..length) else { break };
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                // Of three, the second is no more in use.
                found.kernel_ns = time(body);
                found.nic_ns = body.get(2 * TIME..).and_then(time);
            }
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                found.dropped = body.first_chunk().copied().map(u32::from_ne_bytes);
            }
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(size_of::<usize>())..).unwrap_or_default();
    }
    found
}

/// Length with this head, level and kind.
#[inline(always)]
fn head(bytes: &[u8]) -> Option<(usize, c_int, c_int)> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (level, rest) = rest.split_first_chunk()?;
    let length = usize::from_ne_bytes(*length);
    let kind = c_int::from_ne_bytes(*rest.first_chunk()?);
    // A length that would not move on ends it here.
    (HEAD..=bytes.len()).contains(&length).then_some((length, c_int::from_ne_bytes(*level), kind))
}

/// A `timespec`; zeros stand for none.
#[inline(always)]
fn time(bytes: &[u8]) -> Option<i64> {
    let (seconds, rest) = bytes.split_first_chunk()?;
    let seconds = libc::time_t::from_ne_bytes(*seconds);
    let ns = libc::c_long::from_ne_bytes(*rest.first_chunk()?);
    let all = seconds.checked_mul(1_000_000_000)?.checked_add(ns)?;
    (all != 0).then_some(all)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(level: c_int, kind: c_int, body: &[u8]) -> Vec<u8> {
        let mut bytes = (HEAD + body.len()).to_ne_bytes().to_vec();
        bytes.extend(level.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(body);
        bytes.resize(bytes.len().next_multiple_of(size_of::<usize>()), 0);
        bytes
    }

    fn times(all: [(i64, i64); 3]) -> Vec<u8> {
        all.iter().flat_map(|(s, ns)| [s.to_ne_bytes(), ns.to_ne_bytes()].concat()).collect()
    }

    #[test]
    fn stamps_and_drops_are_found_among_others() {
        let mut control = message(libc::SOL_IP, libc::IP_TTL, &64_i32.to_ne_bytes());
        control.extend(message(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, &7_u32.to_ne_bytes()));
        let stamps_of = times([(5, 6), (0, 0), (1, 2)]);
        control.extend(message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, &stamps_of));
        let found = Stamps {
            kernel_ns: Some(5_000_000_006),
            nic_ns: Some(1_000_000_002),
            dropped: Some(7),
        };
        assert_eq!(stamps(&control), found);
    }

    #[test]
    fn zeros_are_no_stamp() {
        let body = times([(0, 0); 3]);
        let control = message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, &body);
        assert_eq!(stamps(&control), Stamps::default());
    }

    #[test]
    fn lengths_that_lie_end_the_reading() {
        let body = times([(5, 6), (0, 0), (0, 0)]);
        let whole = message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, &body);
        assert!(stamps(&whole).kernel_ns.is_some());
        for lie in [0, 1, HEAD - 1, whole.len() + 1, usize::MAX] {
            let mut control = whole.clone();
            control[..size_of::<usize>()].copy_from_slice(&lie.to_ne_bytes());
            assert_eq!(stamps(&control), Stamps::default(), "{lie}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fall_over(
            mut control in prop::collection::vec(any::<u8>(), 0..256),
            length in 0_usize..300,
        ) {
            let _ = stamps(&control);
            // Lengths that are nearly right get further.
            if let Some(head) = control.first_chunk_mut() {
                *head = length.to_ne_bytes();
            }
            let _ = stamps(&control);
        }
    }
}
