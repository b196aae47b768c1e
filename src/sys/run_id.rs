//! Ids of runs and campaigns.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// Returns a new id: the time in ms, and four random digits in case two runs start in the same
/// millisecond.
///
/// # Errors
/// The kernel has no random numbers.
pub fn new_id() -> io::Result<String> {
    let mut random = [0_u8; 2];
    getrandom(&mut random, GetRandomFlags::empty()).map_err(|error| {
        let error = io::Error::from(error);
        io::Error::new(error.kind(), format!("the kernel returned no random number: {error}"))
    })?;
    let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S%.3f").to_string();
    Ok(format!("{now}-{:04x}", u16::from_ne_bytes(random)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_plain_and_differ() {
        let (a, b) = (new_id().unwrap(), new_id().unwrap());
        assert!(a != b || a.len() == 24, "{a} {b}");
        assert!(a.bytes().all(|byte| byte.is_ascii_hexdigit() || b"-.".contains(&byte)), "{a}");
    }
}
